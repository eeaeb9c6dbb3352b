// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/solve/conjugate_gradients.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

#include "palimpsest/base/config.hpp"
#include "palimpsest/linop/core/node.hpp"
#include "palimpsest/linop/split/budget_search.hpp"
#include "palimpsest/named/matching.hpp"
#include "palimpsest/solve/cg_program.hpp"
#include "palimpsest/solve/scaling.hpp"

namespace palimpsest {
namespace {

// No step is worth a task: plans are those of one lane, whose peak is the lowest.
constexpr index_t kOneLane = std::numeric_limits<index_t>::max();

// History up to here is reserved, so that it does not grow during the iterations.
constexpr int kReservedRecords = 1 << 16;

void check_names(const NamedLinop& A, const CgOptions& options) {
  const auto fail = [](const NamedLinop& linop, const Dims& got, const Dims& expected) {
    throw ShapeError("[conjugate_gradients] Mismatched shape of " + linop.name() + ": got " +
                     got.str() + ", expected " + expected.str());
  };
  if (!isequal(A.ishape(), A.oshape())) fail(A, A.oshape(), A.ishape());
  if (!options.M) return;
  const NamedLinop& M = *options.M;
  if (!isequal(M.ishape(), A.oshape())) fail(M, M.ishape(), A.oshape());
  if (!isequal(M.oshape(), A.ishape())) fail(M, M.oshape(), A.ishape());
}

void check_numbers(const CgOptions& options) {
  const auto fail = [](const std::string& what, const std::string& got) {
    throw ValueError("[conjugate_gradients] " + what + ": got " + got + ", expected none negative");
  };
  if (!(options.tolerance >= 0)) fail("tolerance", std::to_string(options.tolerance));
  if (options.max_iterations < 0) fail("max_iterations", std::to_string(options.max_iterations));
  if (options.refresh < 0) fail("refresh", std::to_string(options.refresh));
}

void check_x0(const TensorType& state, const CgOptions& options) {
  if (!options.x0) return;
  const Tensor& x0 = *options.x0;
  if (x0.shape() != state.shape) {
    throw ShapeError("[conjugate_gradients] x0: got shape " + to_string(x0.shape()) +
                     ", expected " + to_string(state.shape));
  }
  if (x0.dtype() != state.dtype && x0.dtype() != real_of(state.dtype)) {
    throw DTypeError("[conjugate_gradients] x0: got " + std::string(name_of(x0.dtype())) +
                     ", expected " + std::string(name_of(state.dtype)));
  }
}

TensorType type_of(const Tensor& t) { return {t.dtype(), t.shape(), t.device()}; }

bool is_finite(const CgProgram::Step& step) {
  return std::isfinite(step.pq.real()) && std::isfinite(step.pq.imag()) && std::isfinite(step.rr) &&
         std::isfinite(step.rho);
}

// The loop around the program: decides when to stop, and why.
class Solver {
 public:
  Solver(CgProgram& program, const CgOptions& options) : program_(program), options_(options) {
    if (options.history) {
      result_.history.reserve(
          static_cast<std::size_t>(std::min(options.max_iterations, kReservedRecords)));
    }
  }

  SolveResult run(const Tensor& b) {
    const CgProgram::Start start = program_.start(b, options_.x0);
    objective_ = start.objective;
    norm_b_ = start.norm_b;
    if (!std::isfinite(start.bb) || !std::isfinite(start.rr)) {
      result_.status = Status::diverged;
    } else if (start.is_zero || is_converged(start.rr)) {
      result_.status = Status::converged;
    } else {
      iterate();
    }
    result_.x = program_.x().get_value({.borrow = true});
    if (start.is_zero && result_.iterations == 0) result_.x.fill(0.0);
    if (!multiply_by_power_of_two(result_.x, -program_.exponent())) {
      result_.status = Status::diverged;
    }
    return std::move(result_);
  }

 private:
  // Below the last digit of b the recurred residual says nothing any more.
  bool is_converged(double rr) const {
    const double rounding = real_of(program_.type().dtype) == DType::float32
                                ? std::numeric_limits<float>::epsilon()
                                : std::numeric_limits<double>::epsilon();
    return std::sqrt(rr) <= std::max(options_.tolerance, rounding) * norm_b_;
  }

  void iterate() {
    result_.status = Status::max_iterations;
    for (int k = 1; k <= options_.max_iterations; ++k) {
      const bool refresh = options_.refresh > 0 && k % options_.refresh == 0;
      const CgProgram::Step step = program_.step(refresh);
      if (!is_finite(step)) {
        result_.status = Status::diverged;
        return;
      }
      if (step.rho <= 0 || !program_.is_positive(step.pq)) {
        result_.status = Status::breakdown;
        return;
      }
      // The minimum along p lies rho^2 / (2 <p, A p>) below.
      objective_ -= step.rho * step.rho / (2 * step.pq.real());
      result_.iterations = k;
      if (!report(step.rr)) {
        result_.status = Status::stopped;
        return;
      }
      if (is_converged(step.rr)) {
        result_.status = Status::converged;
        return;
      }
    }
  }

  // False when the callback wants to stop before convergence.
  bool report(double rr) {
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin_;
    const Record record{result_.iterations, std::sqrt(rr) / norm_b_,
                        std::ldexp(objective_, -2 * program_.exponent()), elapsed.count()};
    if (options_.history) result_.history.push_back(record);
    if (!options_.callback) return true;
    return options_.callback(CgInfo(record, program_.x(), program_.exponent())) || is_converged(rr);
  }

  CgProgram& program_;
  const CgOptions& options_;
  SolveResult result_;
  double objective_ = 0, norm_b_ = 0;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

// Reads a mapped file a step at a time, and is no limit otherwise.
constexpr index_t kUnlimited = std::numeric_limits<index_t>::max();

// What a solve takes and the program that runs it.
struct Compiled {
  CgProgram program;
  SolvePlan plan;
};

std::shared_ptr<Compiled> compiled(const NamedLinop& A, const TensorType& b,
                                   const CgOptions& options) {
  CgProgram program(A, b, options);
  SolvePlan plan = program.plan();
  plan.operator_bytes = operator_bytes(A) + (options.M ? operator_bytes(*options.M) : 0);
  return std::make_shared<Compiled>(Compiled{std::move(program), std::move(plan)});
}

// What a solve with an operator takes.
struct SolveCost {
  const TensorType& b;
  const CgOptions& options;

  BudgetCost operator()(const NamedLinop& B) const {
    const auto made = compiled(B, b, options);
    return {made->plan.total_bytes(), made->program.work(), made};
  }
};

// A budget is met with one lane: steps side by side need memory of their own.
ConfigOverrides of_search() {
  ConfigOverrides overrides;
  overrides.budget = kUnlimited;
  overrides.parallel_grain = kOneLane;
  return overrides;
}

std::optional<index_t> budget_of(const CgOptions& options) {
  return options.budget_bytes ? options.budget_bytes : config().budget;
}

void check(const NamedLinop& A, const CgOptions& options) {
  check_names(A, options);
  check_numbers(options);
}

}  // namespace

Tensor CgInfo::x() const {
  Tensor x = x_.get_value();
  multiply_by_power_of_two(x, -exponent_);
  return x;
}

ConjugateGradients::ConjugateGradients(const NamedLinop& A, const TensorType& b, CgOptions options)
    : A_(A), options_(std::move(options)) {
  check(A, options_);
  std::shared_ptr<Compiled> made;
  const auto budget = budget_of(options_);
  if (budget) {
    const ConfigScope scope(of_search());
    const NamedLinop sized = sized_for(A, b);
    const BudgetChoice choice = search_budget(sized, *budget, sized.dims(), SolveCost{b, options_},
                                              "[conjugate_gradients] ");
    A_ = choice.op;
    made = std::static_pointer_cast<Compiled>(choice.cost.programs);
    made->plan.sizes = choice.sizes;
    made->plan.tiles = choice.tiles;
  } else {
    made = compiled(A, b, options_);
  }
  plan_ = std::move(made->plan);
  program_ = std::shared_ptr<CgProgram>(made, &made->program);
  check_x0(program_->type(), options_);
}

ConjugateGradients::ConjugateGradients(ConjugateGradients&& other) noexcept = default;
ConjugateGradients& ConjugateGradients::operator=(ConjugateGradients&& other) noexcept = default;
ConjugateGradients::~ConjugateGradients() = default;

SolveResult ConjugateGradients::run(const Tensor& b) {
  const CgProgram::Finish finish(*program_);
  return Solver(*program_, options_).run(b);
}

SolveResult conjugate_gradients(const NamedLinop& A, const Tensor& b, const CgOptions& options) {
  return ConjugateGradients(A, type_of(b), options).run(b);
}

SolveResult cg_normal(const NamedLinop& A, const Tensor& b, const CgOptions& options) {
  const NamedLinop adjoint = A.H();
  std::optional<ConfigScope> scope;
  if (const auto budget = budget_of(options)) {
    scope.emplace(ConfigOverrides{.budget = budget, .parallel_grain = kOneLane});
  }
  const Tensor right_hand_side = adjoint(b);
  // Only this one application was needed: its workspace would stay beside the solver's.
  compiled_function(adjoint, type_of(b)).free();
  return conjugate_gradients(A.N(), right_hand_side, options);
}

SolvePlan plan_conjugate_gradients(const NamedLinop& A, const TensorType& b,
                                   const CgOptions& options) {
  return ConjugateGradients(A, b, options).plan();
}

index_t smallest_cg_budget(const NamedLinop& A, const TensorType& b, const CgOptions& options) {
  check(A, options);
  const ConfigScope scope(of_search());
  const NamedLinop sized = sized_for(A, b);
  return smallest_choice(sized, sized.dims(), SolveCost{b, options}).cost.peak_bytes;
}

}  // namespace palimpsest
