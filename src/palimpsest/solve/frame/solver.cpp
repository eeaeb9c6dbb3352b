// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/solve/frame/solver.hpp"

#include "palimpsest/base/config.hpp"
#include "palimpsest/base/stop_watch.hpp"
#include "palimpsest/graph/collective.hpp"
#include "palimpsest/linop/split/cache_tiles.hpp"
#include "palimpsest/plan/loop_plan.hpp"
#include "palimpsest/solve/frame/kept_solves.hpp"
#include "palimpsest/solve/frame/planned.hpp"
#include "palimpsest/solve/frame/prelude.hpp"
#include "palimpsest/solve/frame/program.hpp"
#include "palimpsest/solve/plan_solve.hpp"
#include "palimpsest/solve/scaling.hpp"

namespace palimpsest {
namespace {

// History up to here is reserved, so that it does not grow during the iterations.
constexpr int kReservedRecords = 1 << 16;

// Steps that grow in so many iterations in a row, and by so much in all, diverge.
constexpr int kGrowingSteps = 20;
constexpr double kGrowth = 100;

// An oscillation grows for long, too, but not beyond its earlier steps.
bool is_divergence(StepGrowth& growth, double change) {
  if (change > growth.before) {
    if (growth.count++ == 0) growth.first = growth.before;
  } else {
    if (std::isfinite(growth.before)) growth.most = std::max(growth.most, growth.before);
    growth.count = 0;
  }
  growth.before = change;
  return growth.count >= kGrowingSteps && change > kGrowth * growth.first && change > growth.most;
}

// Iterations between two looks at the objective, where the test of progress is on.
constexpr int kLook = 10;

// True if the square of a thousandth of the largest number vanishes in its precision. Norms and
// magnitudes of complex numbers are wrong then. The data of linear systems are scaled near 1
// before.
bool has_no_squares(const Space& space, const Tensor& b) {
  const double largest = space.total(largest_part(b));
  const double least = real_of(b.dtype()) == DType::float32 ? std::numeric_limits<float>::min()
                                                            : std::numeric_limits<double>::min();
  return largest > 0 && largest < 1000 * std::sqrt(least);
}

// Starts with a residual beyond this multiple of |b| are far.
constexpr double kFarStart = 10;
// A recurred residual has at least so many rounding errors of the first one.
constexpr double kDrift = 10;

double residual_of(const Verdict& verdict) {
  return std::isnan(verdict.residual) ? verdict.reported : verdict.residual;
}

double larger(double a, double b) { return std::isnan(a) || b > a ? b : a; }

// A run: decides when each element of the batch ends, and why.
class Run {
 public:
  Run(const SolverType& type, const Problem& problem, const SolveOptions& options,
      SolverProgram& program, const Plan& step, std::optional<double> data_norm2)
      : type_(type),
        problem_(problem),
        options_(options),
        program_(program),
        step_plan_(step),
        data_norm2_(data_norm2),
        tolerance_(type.is_linear ? std::max(options.tolerance, program.rounding())
                                  : options.tolerance),
        ended_(program.batch_count()),
        iterations_(program.batch_count(), 0),
        growth_(program.batch_count()),
        objectives_(program.batch_count(), std::numeric_limits<double>::quiet_NaN()),
        is_by_progress_(program.batch_count(), false) {
    if (options.history) {
      result_.history.reserve(
          static_cast<std::size_t>(std::min(options.max_iterations, kReservedRecords)));
    }
  }

  void start(const Tensor& b) {
    if (options_.checkpoint || !options_.resume.empty()) {
      fingerprint_ = fingerprint(type_, problem_, b);
    }
    if (!options_.resume.empty()) return resume(b);
    Preparation prepared;
    if (type_.prepare != nullptr) prepared = type_.prepare(problem_, options_.seed);
    if (prepared.applications > 0) result_.applications["setup"] = prepared.applications;
    start_ = program_.start(b, options_.x0, options_.seed, prepared);
    program_.add_counts(result_.applications);
    for (std::size_t k = 0; k < ended_.size(); ++k) {
      if (!start_.is_element_finite[k]) ended_[k] = Status::diverged;
    }
    if (start_.is_zero && type_.is_linear) {
      end_all(Status::converged);
    } else if (!type_.is_linear && has_no_squares(problem_.b(), b)) {
      end_all(Status::breakdown);
    } else if (type_.judge_start != nullptr) {
      for (std::size_t k = 0; k < ended_.size(); ++k) {
        if (ended_[k] || start_.is_element_zero[k]) continue;
        const Verdict verdict = type_.judge_start(problem_, numbers(k, 0));
        if (verdict.is_breakdown) {
          ended_[k] = Status::breakdown;
        } else if (is_converged(verdict)) {
          ended_[k] = Status::converged;
        }
      }
    }
    for (std::size_t k = 0; k < ended_.size() && !has_ended(); ++k) {
      if (start_.is_element_zero[k]) ended_[k] = Status::converged;
    }
    if (!has_ended() && options_.max_iterations == 0) end_all(Status::max_iterations);
    if (ended_.size() > 1 && !has_ended()) freeze();
  }

  void resume(const Tensor& b) {
    LoadedCheckpoint loaded = read_checkpoint(options_.resume, type_, fingerprint_);
    start_ = program_.restore(b, loaded.run, loaded.state);
    iteration_ = loaded.run.iteration;
    restarted_ = loaded.run.restarted;
    seconds_before_ = loaded.run.seconds;
    ended_ = std::move(loaded.run.ended);
    if (!loaded.run.growth.empty()) growth_ = std::move(loaded.run.growth);
    if (loaded.run.objectives.size() == objectives_.size()) {
      objectives_ = std::move(loaded.run.objectives);
    }
    iterations_ = std::move(loaded.run.iterations);
    result_.applications = std::move(loaded.run.applications);
    if (options_.history) {
      result_.history.insert(result_.history.end(), loaded.run.history.begin(),
                             loaded.run.history.end());
    }
    if (iteration_ >= options_.max_iterations) end_all(Status::max_iterations);
    if (ended_.size() > 1 && !has_ended()) freeze();
  }

  bool step() {
    if (has_ended()) return false;
    const int k = ++iteration_, own = k - restarted_;
    program_.step(type_.variant != nullptr ? type_.variant(problem_, own) : 0, own, looks_at(k));
    try {
      program_.add_counts(result_.applications);
      const bool has_progress = judge(k);
      if (has_progress) report(k);
      finish_step(k);
      if (options_.checkpoint && has_progress) save(k);
    } catch (const std::exception& error) {
      leave(error.what());
      throw;
    } catch (...) {
      leave("a callback threw an object that is not an exception");
      throw;
    }
    return !has_ended();
  }

  Tensor x() const { return program_.x(); }
  const Record& last() const { return record_; }

  SolveResult finish() {
    if (!has_ended()) end_all(Status::stopped);
    bool is_in_range = true;
    result_.x = program_.x(&is_in_range);
    if (start_.is_zero && type_.is_linear && iteration_ == 0) result_.x.fill(0.0);
    for (std::size_t k = 0; k < start_.is_element_finite.size(); ++k) {
      if (!start_.is_element_finite[k]) program_.put_start(result_.x, k, options_.x0);
    }
    if (!is_in_range) ended_[0] = Status::diverged;
    result_.status = *ended_[0];
    for (const auto& status : ended_) result_.status = worst(result_.status, *status);
    result_.iterations = *std::max_element(iterations_.begin(), iterations_.end());
    if (!problem_.batch().empty()) {
      for (const auto& status : ended_) result_.batch_status.push_back(*status);
      result_.batch_iterations = iterations_;
    }
    result_.seconds = seconds();
    result_.reason = reason();
    return std::move(result_);
  }

 private:
  Numbers numbers(std::size_t element, int iteration) const {
    return program_.numbers().of(element, iteration, start_.norm_b, tolerance_);
  }

  bool is_converged(const Verdict& verdict) const {
    return verdict.is_converged || verdict.residual == 0 ||
           (tolerance_ > 0 && verdict.residual <= tolerance_);
  }

  // True in the iterations in which the test of progress is made.
  bool looks_at(int k) const { return looks_at_objective(options_) && k % kLook == 0; }

  // The objective changed little since the last look.
  bool is_steady(std::size_t element, double objective, int k) {
    if (!looks_at(k)) return false;
    const double before = std::exchange(objectives_[element], objective);
    return std::abs(before - objective) <= options_.progress_tolerance * std::abs(objective) &&
           std::isfinite(objective);
  }

  // Objective of the verdict; where the data are A^H y, that of y.
  double objective_of(const Verdict& verdict, std::size_t element) const {
    const Numbers of_setup = numbers(element, iteration_);
    if (!data_norm2_ || !of_setup.has("bb")) return verdict.objective;
    return verdict.objective + (*data_norm2_ - of_setup["bb"]) / 2;
  }

  // A sentence, of the first element with the status of the result.
  std::string reason() const {
    const auto number = [](double value) { return Attribute(value).str(); };
    switch (result_.status) {
      case Status::converged: {
        if (result_.iterations == 0) return "the start is a solution";
        const auto first = std::find(is_by_progress_.begin(), is_by_progress_.end(), true);
        if (first != is_by_progress_.end()) {
          return "the objective changed by less than " + number(options_.progress_tolerance) +
                 " of itself in " + std::to_string(kLook) + " iterations";
        }
        return tolerance_ > 0 ? "the residual is at most " + number(tolerance_)
                              : "the test of the solver holds";
      }
      case Status::max_iterations:
        return "not converged after " + std::to_string(result_.iterations) + " iterations";
      case Status::time_limit:
        return "the time limit has passed";
      case Status::breakdown:
        return "the recurrence cannot go on";
      case Status::diverged:
        return "numbers are not finite, or steps grow";
      case Status::stopped:
        return "the caller ended it";
      case Status::cancelled:
        return "it was cancelled";
    }
    return {};
  }

  bool has_ended() const {
    return std::all_of(ended_.begin(), ended_.end(), [](const auto& s) { return s.has_value(); });
  }

  void end_all(Status status) {
    for (auto& ended : ended_) {
      if (!ended) ended = status;
    }
  }

  double seconds_of_run() const { return begin_.seconds(); }
  double seconds() const { return seconds_before_ + seconds_of_run(); }

  // Ends elements that are not finite or cannot go on, and makes the record. False if all elements
  // of this step ended so.
  bool judge(int k) {
    record_ = {.iteration = k,
               .residual = std::numeric_limits<double>::quiet_NaN(),
               .objective = std::numeric_limits<double>::quiet_NaN()};
    converged_.clear();
    doubted_.clear();
    bool has_progress = false;
    double objective = 0;
    for (std::size_t e = 0; e < ended_.size(); ++e) {
      if (ended_[e]) continue;
      if (!program_.numbers().is_finite(NumberTable::From::step, e)) {
        ended_[e] = Status::diverged;
        continue;
      }
      const Verdict verdict =
          type_.judge != nullptr ? type_.judge(problem_, numbers(e, k)) : Verdict{};
      if (verdict.is_breakdown) {
        ended_[e] = Status::breakdown;
        continue;
      }
      iterations_[e] = k;
      if (is_divergence(growth_[e], verdict.change)) ended_[e] = Status::diverged;
      if (!has_progress) record_.numbers = verdict.numbers;
      has_progress = true;
      record_.residual = larger(record_.residual, residual_of(verdict));
      const double own_objective = objective_of(verdict, e);
      objective += own_objective;
      if (is_converged(verdict)) {
        (is_doubtful(e, k) ? doubted_ : converged_).push_back(e);
      } else if (is_steady(e, own_objective, k)) {
        is_by_progress_[e] = true;
        converged_.push_back(e);
      }
    }
    if (!doubted_.empty()) check_residuals(k);
    if (has_progress) record_.objective = std::ldexp(objective, -2 * program_.exponent());
    return has_progress;
  }

  // True if a recurred residual may be far from the true one: it began far above b, or was wrong
  // before.
  bool is_doubtful(std::size_t element, int k) const {
    if (!type_.is_linear || !problem_.has_x0() || type_.judge_start == nullptr) return false;
    const double start = residual_of(type_.judge_start(problem_, numbers(element, k)));
    return restarted_ > 0 ||
           (start > kFarStart && kDrift * program_.rounding() * start > tolerance_);
  }

  // Begins anew from x, with the true residual, which decides whether an element has converged.
  void check_residuals(int k) {
    program_.restart();
    program_.add_counts(result_.applications);
    restarted_ = k;
    for (const std::size_t e : doubted_) {
      if (!program_.numbers().is_finite(NumberTable::From::setup, e)) {
        ended_[e] = Status::diverged;
        continue;
      }
      const Verdict verdict = type_.judge_start(problem_, numbers(e, k));
      record_.residual = larger(record_.residual, residual_of(verdict));
      if (ended_.size() == 1) record_.numbers = verdict.numbers;
      if (verdict.is_breakdown) {
        ended_[e] = Status::breakdown;
      } else if (is_converged(verdict)) {
        converged_.push_back(e);
      }
    }
  }

  // Processes that have parts of the problem would wait for the next step of this one.
  void leave(std::string_view why) const noexcept {
    if (const Collective* const op = first_collective(step_plan_)) op->abandon(why);
  }

  // True if any process with parts of the problem decides so: the decision then holds for all.
  bool decided(bool here) const { return on_any_process(problem_.op("A"), here); }

  // Makes the record and calls the callback, which may stop the elements that have not converged.
  void report(int k) {
    record_.seconds = seconds();
    if (options_.history) result_.history.push_back(record_);
    bool goes_on = true;
    if (options_.callback && k % options_.callback_every == 0) {
      const double left = options_.time_limit_s ? *options_.time_limit_s - seconds_of_run()
                                                : std::numeric_limits<double>::infinity();
      goes_on = !decided(!options_.callback(SolveInfo(record_, program_, left)));
    }
    for (const std::size_t e : converged_) ended_[e] = Status::converged;
    if (!goes_on) end_all(Status::stopped);
  }

  void finish_step(int k) {
    if (has_ended()) return;
    const bool is_cancelled =
        CancelScope::is_cancelled() || (options_.cancel && options_.cancel->is_cancelled());
    if (options_.cancel ? decided(is_cancelled) : is_cancelled) {
      end_all(Status::cancelled);
      if (!options_.cancel) leave("its solve was cancelled");  // others do not ask
    } else if (options_.time_limit_s && decided(seconds_of_run() >= *options_.time_limit_s)) {
      end_all(Status::time_limit);
    } else if (k >= options_.max_iterations) {
      end_all(Status::max_iterations);
    } else if (ended_.size() > 1) {
      freeze();
    }
  }

  // Writes a checkpoint when it is time for one, and when the run ends although it could go on.
  void save(int k) {
    const CheckpointOptions& options = *options_.checkpoint;
    const bool is_time = last_save_.seconds() >= options.every_s;
    const bool is_turn = options.every_iterations > 0 && k % options.every_iterations == 0;
    if (!is_time && !is_turn && !(has_ended() && can_go_on())) return;
    Checkpoint run{.iteration = k,
                   .restarted = restarted_,
                   .seconds = seconds(),
                   .exponent = program_.exponent(),
                   .is_zero = start_.is_zero,
                   .norm_b = start_.norm_b,
                   .setup_numbers = program_.numbers().setup_values(),
                   .ended = ended_,
                   .iterations = iterations_,
                   .growth = growth_,
                   .objectives = objectives_,
                   .history = std::move(result_.history),
                   .applications = result_.applications};
    for (auto& status : run.ended) {
      if (status && is_interruption(*status)) status.reset();
    }
    const auto give_back = [&] { result_.history = std::move(run.history); };
    try {
      write_checkpoint(options.path, type_, fingerprint_, run, program_.state());
    } catch (...) {
      give_back();
      throw;
    }
    give_back();
    last_save_ = StopWatch();
  }

  static bool is_interruption(Status status) {
    return status == Status::time_limit || status == Status::cancelled ||
           status == Status::stopped || status == Status::max_iterations;
  }

  bool can_go_on() const {
    return std::any_of(ended_.begin(), ended_.end(),
                       [](const auto& status) { return status && is_interruption(*status); });
  }

  void freeze() {
    std::vector<bool> active;
    for (const auto& status : ended_) active.push_back(!status.has_value());
    program_.set_active(active);
  }

  const SolverType& type_;
  const Problem& problem_;
  const SolveOptions& options_;
  SolverProgram& program_;
  const Plan& step_plan_;
  const std::optional<double> data_norm2_;
  const double tolerance_;
  SolverProgram::Start start_;
  SolveResult result_;
  Record record_;
  std::vector<std::optional<Status>> ended_;  // of each element of the batch
  std::vector<int> iterations_;
  std::vector<StepGrowth> growth_;
  std::vector<double> objectives_;                // at the last look
  std::vector<bool> is_by_progress_;              // the test of progress ended it
  std::vector<std::size_t> converged_, doubted_;  // in this step
  int iteration_ = 0, restarted_ = 0;             // restarted_: the iteration of the last restart
  Fingerprint fingerprint_;                       // where there are checkpoints
  double seconds_before_ = 0;
  StopWatch begin_, last_save_;
};

}  // namespace

Status worst(Status a, Status b) {
  static constexpr std::array kOrder = {
      Status::diverged,   Status::breakdown,      Status::cancelled, Status::stopped,
      Status::time_limit, Status::max_iterations, Status::converged};
  const auto rank = [](Status s) { return std::find(kOrder.begin(), kOrder.end(), s); };
  return rank(a) < rank(b) ? a : b;
}

Tensor SolveInfo::x() const { return program_.x(); }

struct Solver::Impl {
  const SolverType& type;
  SolveOptions options;
  PlannedSolve planned;
  std::optional<index_t> budget;
  std::optional<double> data_norm2 = std::nullopt;
  std::optional<Run> run = std::nullopt;
  std::shared_ptr<const SolvePlan> plan_of_results = nullptr;  // made at the first one

  void end() {
    run.reset();
    planned.program->finish();
  }
};

Solver::Solver(const SolverType& type, Problem problem, SolveOptions options) {
  PlannedSolve planned = plan_program(type, std::move(problem), options);
  const auto budget = budget_of(options);
  impl_ = std::make_unique<Impl>(Impl{type, std::move(options), std::move(planned), budget});
}

Solver::Solver(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Solver::Solver(Solver&& other) noexcept = default;
Solver& Solver::operator=(Solver&& other) noexcept = default;
Solver::~Solver() = default;

const SolvePlan& Solver::plan() const { return impl_->planned.plan; }

void Solver::start(const Tensor& b) {
  if (is_planning()) {
    throw NotSupported("[" + std::string(impl_->type.name) +
                       "] plan_solve: got a solve in single steps, expected a whole one");
  }
  check_data(impl_->type, *impl_->planned.problem, b);
  impl_->end();
  std::optional<ConfigScope> scope;  // functions that find step sizes are compiled as planned
  if (impl_->budget) scope.emplace(config_of_budget(*impl_->budget));
  try {
    impl_->run.emplace(impl_->type, *impl_->planned.problem, impl_->options,
                       *impl_->planned.program, impl_->planned.plan.step, impl_->data_norm2);
    impl_->run->start(b);
  } catch (...) {
    impl_->end();
    throw;
  }
}

namespace {

template <class R>
auto& running(R& run, const SolverType& type) {
  if (!run) throw StateError("[" + std::string(type.name) + "] no run: expected start() before");
  return *run;
}

}  // namespace

bool Solver::step() { return running(impl_->run, impl_->type).step(); }
void Solver::set_x0(Tensor x0) {
  if (!impl_->options.x0) {
    throw StateError("[" + std::string(impl_->type.name) + "] x0: expected options with one");
  }
  check_x0(impl_->type, *impl_->planned.problem, x0);
  impl_->options.x0 = std::move(x0);
}

void Solver::set_data_norm2(double norm2) { impl_->data_norm2 = norm2; }

Tensor Solver::x() const { return running(impl_->run, impl_->type).x(); }
const Record& Solver::last() const { return running(impl_->run, impl_->type).last(); }

namespace {

// Steps hold graphs, and these the data of operators.
std::shared_ptr<const SolvePlan> without_steps(const SolvePlan& plan) {
  auto sizes = std::make_shared<SolvePlan>(plan);
  Plan& step = sizes->step;
  step.steps.clear();
  step.constants.clear();
  step.guards.clear();
  step.buffers.clear();
  step.slots.clear();
  step.parts.clear();
  step.outputs.clear();
  step.updates.clear();
  return sizes;
}

}  // namespace

SolveResult Solver::finish() {
  SolveResult result = running(impl_->run, impl_->type).finish();
  std::shared_ptr<const SolvePlan>& plan = impl_->plan_of_results;
  if (!plan) plan = without_steps(impl_->planned.plan);
  result.plan = plan;
  result.peak_bytes = plan->peak_bytes;
  impl_->end();
  return result;
}

namespace {

// The latest plan of the innermost plan_solve() of a thread.
thread_local std::optional<SolvePlan>* latest_plan = nullptr;

SolveResult result_of_plan(const SolvePlan& plan) {
  *latest_plan = plan;
  SolveResult result;
  result.peak_bytes = plan.peak_bytes;
  result.plan = std::make_shared<SolvePlan>(plan);
  return result;
}

}  // namespace

bool is_planning() { return latest_plan != nullptr; }

SolvePlan plan_solve(const std::function<void()>& call) {
  std::optional<SolvePlan> plan;
  std::optional<SolvePlan>* const outer = std::exchange(latest_plan, &plan);
  try {
    call();
  } catch (...) {
    latest_plan = outer;
    throw;
  }
  latest_plan = outer;
  if (!plan) throw ValueError("[plan_solve] the call asks for no solver, expected one");
  return *plan;
}

void add_bytes_besides(SolveResult& result, index_t bytes, index_t least) {
  result.peak_bytes = std::max(result.peak_bytes + bytes, least);
  if (!result.plan) return;
  auto plan = std::make_shared<SolvePlan>(*result.plan);
  if (plan->peak_bytes != result.peak_bytes) {
    plan->state_bytes += bytes;
    plan->peak_bytes = result.peak_bytes;
  }
  if (is_planning()) *latest_plan = *plan;
  result.plan = std::move(plan);
}

SolveResult Solver::run(const Tensor& b) {
  if (is_planning()) return result_of_plan(plan());
  start(b);
  try {
    while (step()) {
    }
    return finish();
  } catch (...) {
    impl_->end();
    throw;
  }
}

SolveResult solve(const SolverType& type, const Problem& problem, const Tensor& b,
                  const SolveOptions& options) {
  // Kept programs hold their constants, which the solve would then not allocate.
  if (is_planning()) return result_of_plan(plan_solve(type, problem, options));
  KeptSolve kept(type, problem, options);
  Solver solver(std::make_unique<Solver::Impl>(
      Solver::Impl{type, options, kept.planned(), budget_of(options)}));
  SolveResult result = solver.run(b);
  std::move(kept).keep();
  return result;
}

SolvePlan plan_solve(const SolverType& type, const Problem& problem, const SolveOptions& options) {
  return Solver(type, problem, options).plan();
}

}  // namespace palimpsest
