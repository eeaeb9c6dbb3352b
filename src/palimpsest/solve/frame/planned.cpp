// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/solve/frame/planned.hpp"

#include <optional>

#include "palimpsest/base/config.hpp"
#include "palimpsest/linop/core/node.hpp"
#include "palimpsest/linop/split/budget_search.hpp"
#include "palimpsest/linop/split/cache_tiles.hpp"
#include "palimpsest/named/matching.hpp"
#include "palimpsest/solve/frame/prelude.hpp"
#include "palimpsest/solve/frame/solver.hpp"

namespace palimpsest {
namespace {

std::string who_of(const SolverType& type) { return "[" + std::string(type.name) + "] "; }

void check_numbers(const SolverType& type, const SolveOptions& options) {
  const auto expect = [&](bool holds, const std::string& what, double got, const char* expected) {
    if (holds) return;
    throw ValueError(who_of(type) + what + ": got " + Attribute(got).str() + ", expected " +
                     expected);
  };
  expect(options.tolerance >= 0, "tolerance", options.tolerance, "at least 0");
  expect(options.progress_tolerance >= 0, "progress_tolerance", options.progress_tolerance,
         "at least 0");
  expect(options.max_iterations >= 0, "max_iterations", options.max_iterations, "at least 0");
  expect(options.callback_every >= 1, "callback_every", options.callback_every, "at least 1");
  const double limit = options.time_limit_s.value_or(1);
  expect(limit > 0, "time_limit_s", limit, "more than 0");
  const CheckpointOptions checkpoint = options.checkpoint.value_or(CheckpointOptions());
  expect(checkpoint.every_s >= 0, "checkpoint.every_s", checkpoint.every_s, "at least 0");
  expect(checkpoint.every_iterations >= 0, "checkpoint.every_iterations",
         checkpoint.every_iterations, "at least 0");
}

// Sizes that the operators lack, from the extents of x and b.
void record_sizes(Problem& problem) {
  const NamedLinop A = sized_for(problem.op("A"), problem.x().type());
  problem.replace("A", A);
  for (const auto& [name, B] : Problem::Ops(problem.ops())) {
    if (name != "W" && isequal(B.ishape(), A.ishape())) {
      problem.replace(name, sized_for(B, problem.x().type()));
    } else if (isequal(B.ishape(), A.oshape())) {
      problem.replace(name, sized_for(B, problem.b().type()));
    }
  }
}

// The dimensions along which all operators that have them can be cut; those of "cuts", if it names
// any.
TileAxes tile_axes_of(const Problem& problem) {
  Dims all = problem.has_attr("cuts") ? problem.attr("cuts").as_dims() : Dims();
  if (all.empty()) {
    for (const auto& [name, A] : problem.ops()) all = unite(all, A.dims());
  }
  TileAxes axes;
  for (const ND& d : all) {
    std::optional<index_t> extent;
    bool is_refused = false;
    for (const auto& [name, A] : problem.ops()) {
      if (!A.dims().contains(d)) continue;
      const TileAxes of_op = tile_axes(A, Dims(d));
      is_refused |= of_op.empty();
      if (!of_op.empty()) extent = of_op[0].second;
    }
    if (extent && !is_refused) axes.emplace_back(d, *extent);
  }
  return axes;
}

std::optional<Problem> cut_problem(const Problem& problem, const TileAxes& axes,
                                   const DimMap& sizes) {
  Problem result = problem;
  for (const auto& [name, A] : problem.ops()) {
    DimMap own;
    for (const auto& [d, size] : sizes) {
      if (A.dims().contains(d)) own.emplace(d, size);
    }
    const auto op = cut_into_tiles(A, axes, own);
    if (!op) return std::nullopt;
    result.replace(name, *op);
  }
  result.set_tiles(sizes);
  return result;
}

std::vector<NamedLinop> operators_of(const Problem& problem) {
  std::vector<NamedLinop> operators;
  for (const auto& [name, A] : problem.ops()) operators.push_back(A);
  return operators;
}

// The problem may be `whole` itself, or that cut into tiles.
std::shared_ptr<PlannedSolve> compiled_solve(const SolverType& type, Problem problem,
                                             const std::vector<NamedLinop>& whole, bool looks) {
  PlannedSolve made;
  std::vector<NamedLinop> both = whole;
  for (const NamedLinop& A : operators_of(problem)) both.push_back(A);
  made.problem = std::make_shared<Problem>(std::move(problem));
  made.program = std::make_shared<SolverProgram>(type, *made.problem, looks);
  made.plan = made.program->plan();
  made.plan.operator_bytes = operator_bytes(whole);
  made.plan.tile_bytes = operator_bytes(both) - made.plan.operator_bytes;
  made.plan.peak_bytes += made.plan.tile_bytes;
  return std::make_shared<PlannedSolve>(std::move(made));
}

// `state_bytes` receives the bytes of the state of the uncut problem. Cuts do not change them,
// except that admm keeps fewer vectors when operators in tiles have no common basis.
TileCost cost_of(const SolverType& type, const Problem& problem, const TileAxes& axes, bool looks,
                 index_t& state_bytes) {
  return [&, looks](const DimMap& sizes) -> std::optional<BudgetCost> {
    auto tiled = cut_problem(problem, axes, sizes);
    if (!tiled) return std::nullopt;
    const auto made = compiled_solve(type, std::move(*tiled), operators_of(problem), looks);
    if (sizes.empty() || state_bytes == 0) state_bytes = made->plan.state_bytes;
    return BudgetCost{made->plan.total_bytes(), made->program->work(), made};
  };
}

void prepare_problem(const SolverType& type, Problem& problem, const SolveOptions& options) {
  if (type.check != nullptr) type.check(problem);
  check_numbers(type, options);
  problem.resolve(options.batch, has_start(type, options), type.name);
  check_x0(type, problem, options.x0);
}

}  // namespace

std::optional<index_t> budget_of(const SolveOptions& options) {
  return options.budget_bytes ? options.budget_bytes : config().budget;
}

bool has_start(const SolverType& type, const SolveOptions& options) {
  return options.x0.has_value() || (type.is_linear && !options.resume.empty());
}

void check_x0(const SolverType& type, const Problem& problem, const std::optional<Tensor>& x0) {
  if (!x0) return;
  const TensorType& x = problem.x().type();
  if (x0->shape() != x.shape) {
    throw ShapeError(who_of(type) + "x0: got shape " + to_string(x0->shape()) + ", expected " +
                     to_string(x.shape));
  }
  if (x0->dtype() != x.dtype && x0->dtype() != real_of(x.dtype)) {
    throw DTypeError(who_of(type) + "x0: got " + std::string(name_of(x0->dtype())) + ", expected " +
                     std::string(name_of(x.dtype)));
  }
}

void check_options(const SolverType& type, const Problem& problem, const SolveOptions& options) {
  check_numbers(type, options);
  check_x0(type, problem, options.x0);
}

PlannedSolve plan_program(const SolverType& type, Problem problem, const SolveOptions& options) {
  prepare_problem(type, problem, options);
  const auto budget = budget_of(options);
  std::optional<ConfigScope> scope;
  if (budget) scope.emplace(config_of_budget(*budget));
  // A budget that is no limit cuts nothing: operators keep their data.
  if (!budget || *budget == kNoLimit) {
    const std::vector<NamedLinop> whole = operators_of(problem);
    return *compiled_solve(type, std::move(problem), whole, looks_at_objective(options));
  }
  record_sizes(problem);
  const TileAxes axes = tile_axes_of(problem);
  index_t state_bytes = 0;
  const TileCost cost = cost_of(type, problem, axes, looks_at_objective(options), state_bytes);
  const TileChoice choice = [&] {
    try {
      return search_tiles(axes, *budget, cost, who_of(type));
    } catch (const BudgetError& error) {
      throw BudgetError(std::string(error.what()) + ". The state takes " +
                        std::to_string(state_bytes) + " of them for any tiles");
    }
  }();
  PlannedSolve made = *std::static_pointer_cast<PlannedSolve>(choice.cost.programs);
  made.plan.sizes = choice.sizes;
  made.plan.tiles = choice.tiles;
  return made;
}

index_t smallest_solve_budget(const SolverType& type, const Problem& problem,
                              const SolveOptions& options) {
  Problem sized = problem;
  prepare_problem(type, sized, options);
  const ConfigScope scope(config_of_budget(0));
  record_sizes(sized);
  const TileAxes axes = tile_axes_of(sized);
  index_t state_bytes = 0;
  const TileCost cost = cost_of(type, sized, axes, looks_at_objective(options), state_bytes);
  return smallest_tiles(axes, cost).cost.peak_bytes;
}

void check_data(const SolverType& type, const Problem& problem, const Tensor& b) {
  const TensorType& expected = problem.b_type();
  if (b.shape() != expected.shape) {
    throw ShapeError(who_of(type) + "b: got shape " + to_string(b.shape()) + ", expected " +
                     to_string(expected.shape));
  }
  if (b.dtype() != expected.dtype) {
    throw DTypeError(who_of(type) + "b: got " + std::string(name_of(b.dtype())) + ", expected " +
                     std::string(name_of(expected.dtype)));
  }
}

}  // namespace palimpsest
