// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "palimpsest/base/api.hpp"
#include "palimpsest/named/collection.hpp"
#include "palimpsest/plan/plan.hpp"
#include "palimpsest/tensor/tensor.hpp"

namespace palimpsest {
class SolverProgram;
}  // namespace palimpsest

namespace PALIMPSEST_API palimpsest {

/// Reason why a solver ended.
enum class Status : std::uint8_t {
  converged,
  max_iterations,
  time_limit,
  breakdown,
  diverged,
  stopped,
  cancelled,
};
std::string_view name_of(Status status);

/// A line of a solver's history.
struct Record {
  int iteration = 0;
  double residual = 0;   ///< the number compared with the tolerance
  double objective = 0;  ///< the minimized function; NaN if unknown
  double seconds = 0;    ///< since the start
  /// Numbers of the solver itself; its documentation names them.
  std::array<double, 4> numbers = {};
};

struct SolvePlan;
struct SolveResult {
  Tensor x;
  Status status = Status::max_iterations;
  int iterations = 0;
  std::vector<Record> history;
  /// Number of applications of each operator of the problem: "A" forward, "A^H" adjoint, "N" a
  /// normal operator.
  std::map<std::string, std::int64_t> applications;
  double seconds = 0;
  index_t peak_bytes = 0;  ///< of the plan
  /// Sizes only, without steps, which would keep the operators. Of a batch in several runs: that of
  /// the run with the largest peak. Null: no solver gave x.
  std::shared_ptr<const SolvePlan> plan = {};
  /// For a batch: status and iterations of every element, row-major in the order of the batch.
  std::vector<Status> batch_status;
  std::vector<int> batch_iterations;
  /// Test or limit that ended the solve, as a sentence; of a batch that of `status`.
  std::string reason = {};
};

/// Asks solvers to end. A handle: copies are the same token.
///
/// Threads  any thread and any signal handler may cancel
class CancelToken {
 public:
  void cancel() noexcept { flag_->store(true, std::memory_order_relaxed); }
  void reset() noexcept { flag_->store(false, std::memory_order_relaxed); }
  bool is_cancelled() const noexcept { return flag_->load(std::memory_order_relaxed); }

 private:
  std::shared_ptr<std::atomic<bool>> flag_ = std::make_shared<std::atomic<bool>>(false);
};

/// While it lives, solves that this thread starts look at the token besides their own.
class CancelScope {
 public:
  explicit CancelScope(CancelToken token);
  ~CancelScope();
  CancelScope(const CancelScope&) = delete;
  CancelScope& operator=(const CancelScope&) = delete;
  /// True if a token of this thread's scopes is cancelled.
  static bool is_cancelled() noexcept;

 private:
  CancelToken token_;
  const CancelScope* outer_;
};

/// State of the iteration as a callback sees it.
class SolveInfo {
 public:
  SolveInfo(const Record& record, SolverProgram& program, double seconds_left)
      : record_(record), program_(program), seconds_left_(seconds_left) {}
  int iteration() const { return record_.iteration; }
  double residual() const { return record_.residual; }
  double objective() const { return record_.objective; }
  double seconds() const { return record_.seconds; }
  const std::array<double, 4>& numbers() const { return record_.numbers; }
  /// Until the time limit; infinite without one.
  double seconds_left() const { return seconds_left_; }
  /// The present iterate: independent and valid longer than the call, by a lazy clone where the
  /// solver holds the iterate itself. Keeping it costs one copy at the next iteration; data far
  /// from 1 cost it at once.
  Tensor x() const;

 private:
  const Record& record_;
  SolverProgram& program_;
  double seconds_left_;
};

/// When a checkpoint is written.
struct CheckpointOptions {
  std::string path;
  double every_s = 600;      ///< seconds from the end of the last write
  int every_iterations = 0;  ///< 0: only by time
};

/// Choice whether the objective is recorded if that costs applications of an operator.
enum class RecordObjective : std::uint8_t { never, automatic, always };

/// The limits that every solver has; `relative` is its default tolerance, 0 switches the test off.
#define PALIMPSEST_SOLVE_LIMITS(relative)            \
  /** Compared with Record::residual; 0: no test. */ \
  double tolerance = relative;                       \
  /** 0 gives the start. */                          \
  int max_iterations = 100

/// The test that solvers with an objective have besides.
#define PALIMPSEST_SOLVE_PROGRESS                                                   \
  /** Relative change of the objective over 10 iterations at which the solve has  \
      converged, too; 0: no test. Every 10 iterations the objective is computed. */ \
  double progress_tolerance = 0

/// The start, of solvers that take one.
#define PALIMPSEST_SOLVE_START                                         \
  /** Start, of the shape of x, in its dtype or the real one below. */ \
  std::optional<::palimpsest::Tensor> x0 = {}

/// The options that every solver has, in the order in which designators name them.
#define PALIMPSEST_SOLVE_OPTIONS                                                  \
  /** Runs once per `callback_every` iterations; false stops. */                  \
  std::function<bool(const ::palimpsest::SolveInfo&)> callback = {};              \
  /** A Record per iteration. */                                                  \
  bool history = true;                                                            \
  /** Bytes that the solve may take, the data of operators included: they are   \
      cut into tiles until it does. Unset: the config's. */ \
  std::optional<::palimpsest::index_t> budget_bytes = {};                         \
  int callback_every = 1;                                                         \
  /** Seconds from the start, looked at after each iteration. */                  \
  std::optional<double> time_limit_s = {};                                        \
  /** Dimensions of x along which the problem falls apart. */                     \
  ::palimpsest::Dims batch = {};                                                  \
  std::optional<::palimpsest::CheckpointOptions> checkpoint = {};                 \
  /** Path of a checkpoint to continue from. */                                   \
  std::string resume = {};                                                        \
  std::optional<::palimpsest::CancelToken> cancel = {};                           \
  /** Of everything random. */                                                    \
  std::uint64_t seed = 0;                                                         \
  ::palimpsest::RecordObjective objective = ::palimpsest::RecordObjective::automatic

struct SolveOptions {
  PALIMPSEST_SOLVE_LIMITS(1e-6);
  PALIMPSEST_SOLVE_PROGRESS;
  PALIMPSEST_SOLVE_START;
  PALIMPSEST_SOLVE_OPTIONS;
};

/// The options that two solvers have in common. A missing tolerance becomes 0.
template <class To = SolveOptions, class From>
To solve_options(const From& o) {
  To made;
  made.tolerance = 0;
  if constexpr (requires { o.tolerance; }) made.tolerance = o.tolerance;
  made.max_iterations = o.max_iterations;
  if constexpr (requires { o.progress_tolerance; }) {
    made.progress_tolerance = o.progress_tolerance;
  }
  if constexpr (requires { o.x0; }) made.x0 = o.x0;
  made.callback = o.callback;
  made.history = o.history;
  made.budget_bytes = o.budget_bytes;
  made.callback_every = o.callback_every;
  made.time_limit_s = o.time_limit_s;
  made.batch = o.batch;
  made.checkpoint = o.checkpoint;
  made.resume = o.resume;
  made.cancel = o.cancel;
  made.seed = o.seed;
  made.objective = o.objective;
  return made;
}

/// Memory that a solve will take, in bytes.
struct SolvePlan {
  index_t peak_bytes = 0;      ///< above operators, b and x0 at the worst moment, exactly
  index_t state_bytes = 0;     ///< vectors and numbers that live from one iteration to the next
  index_t setup_bytes = 0;     ///< workspace before the first iteration
  index_t step_bytes = 0;      ///< workspace of the iterations
  index_t result_bytes = 0;    ///< for making x after the last iteration, x included
  index_t tile_bytes = 0;      ///< data that the tiles of operators need besides, such as weights
  index_t operator_bytes = 0;  ///< data of operators: see operator_bytes()
  index_t streamed_bytes = 0;  ///< of mapped files, that one step reads
  /// The number compared with budget_bytes: peak, operator data and streamed file bytes.
  index_t total_bytes() const { return peak_bytes + operator_bytes + streamed_bytes; }
  /// Tiles into which the operators are cut for the budget: their sizes and number. Each is one
  /// pass.
  DimMap sizes = {};
  index_t tiles = 1;
  Plan step = {};  ///< the memory plan of one iteration
};

}  // namespace palimpsest
