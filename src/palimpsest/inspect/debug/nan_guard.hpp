// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "palimpsest/base/api.hpp"
#include "palimpsest/base/config.hpp"
#include "palimpsest/base/error.hpp"
#include "palimpsest/graph/op.hpp"
#include "palimpsest/run/mode.hpp"

namespace PALIMPSEST_API palimpsest {

/// The first NaN, infinity or big value that NanGuardMode has found, and its place.
struct NanGuardReport {
  /// `NaN`, `infinity` or `a big value`.
  std::string kind;
  /// Variable that contains it: an argument, a shared variable, a constant or the result of a step;
  /// the input of a step, if the step only passes on its numbers.
  Variable variable;
  /// The examined step; undefined and -1 for a value that no step computes.
  Apply node;
  int step = -1;
  /// For a fused step: the scalar operation in it that gave the first bad number.
  std::string inner_op;
  Extents index;  // of the first one
  std::string value;
  index_t bad_elements = 0, elements = 0;
  /// Positions of the step's inputs that already contained such numbers.
  std::vector<int> affected_inputs;
  std::string text;
};

/// A number that should not be there.
class NanGuardError : public AssertionError {
 public:
  explicit NanGuardError(NanGuardReport report)
      : AssertionError(report.text),
        report_(std::make_shared<const NanGuardReport>(std::move(report))) {}
  const NanGuardReport& report() const { return *report_; }

 private:
  std::shared_ptr<const NanGuardReport> report_;
};

/// Reaction to a finding: an exception, a log message, or a callback, which may throw. The call
/// goes on after a message and after a callback that returns.
class NanGuardAction {
 public:
  using Callback = std::function<void(const NanGuardReport&)>;
  NanGuardAction(Reaction reaction) : reaction_(reaction) {}
  template <class F>
  requires std::is_invocable_v<F, const NanGuardReport&> NanGuardAction(F callback)
      : callback_(std::move(callback)) {}
  void operator()(NanGuardReport report) const;

 private:
  Reaction reaction_ = Reaction::raise;
  Callback callback_;
};

struct NanGuardOptions {
  bool nan_is_error = config().nan_guard_nan_is_error;
  bool inf_is_error = config().nan_guard_inf_is_error;
  bool big_is_error = config().nan_guard_big_is_error;
  /// A number is big above this absolute value.
  double big = config().nan_guard_big;
  NanGuardAction action = config().nan_guard_action;
  Mode base = {};
};

/// A mode that looks for NaN, infinities and big numbers: in arguments, shared variables, constants
/// and the results of every step. Variables with tags().nan_guard = false are exempt.
///
/// Errors  ValueError: a bound that is negative or NaN. Calls: NanGuardError; then no shared
///         variable has changed
/// Cost    one pass over every value; a copy of overwritten inputs
Mode NanGuardMode(NanGuardOptions options = {});

}  // namespace palimpsest
