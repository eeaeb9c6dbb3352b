// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <functional>
#include <optional>
#include <vector>

#include "palimpsest/base/api.hpp"
#include "palimpsest/graph/variable.hpp"

namespace PALIMPSEST_API palimpsest {
namespace ops {

/// An array with rows for every step: the one at its position plus each tap.
struct LoopSequence {
  template <class T>
  requires std::convertible_to<const T&, const Variable&> LoopSequence(const T& array,
                                                                       std::vector<index_t> t = {0})
      : value(static_cast<const Variable&>(array)), taps(std::move(t)) {}
  Variable value;
  std::vector<index_t> taps;
};

/// A value that every step computes from those of earlier steps: the one of -tap steps ago for each
/// tap. With taps {-1} `init` is the value before the first step; with others it has -min(taps)
/// rows, the oldest first.
struct LoopState {
  template <class T>
  requires std::convertible_to<const T&, const Variable&> LoopState(const T& first,
                                                                    std::vector<index_t> t = {-1})
      : init(static_cast<const Variable&>(first)), taps(std::move(t)) {}
  Variable init;
  std::vector<index_t> taps;
};

/// Runs once, symbolically. Its arguments are, for each sequence and then for each state, one
/// variable per tap, and then the fixed values; it returns the next states, then values to be
/// mapped. It may use any other variable of the graph around it as well.
using LoopBody = std::function<std::vector<Variable>(const std::vector<Variable>& arguments)>;
/// Given the arguments and the results of the body: after which step to stop.
using LoopUntil = std::function<Variable(const std::vector<Variable>& arguments,
                                         const std::vector<Variable>& results)>;

struct LoopOptions {
  std::vector<LoopSequence> sequences = {};
  std::vector<LoopState> states = {};
  std::vector<Variable> fixed = {};
  /// Unset: as many as the sequences have positions, which must agree. A negative one is 0.
  std::optional<Operand> n_steps = {};
  /// The first step is at the last position.
  bool backwards = false;
  LoopUntil until = {};
};

/// Results of a loop. Rows of traces and mapped values are in the order of the steps.
class LoopResult {
 public:
  /// The values of state k after each step. With `until`, or a number of steps computed from more
  /// than extents, the number of rows is known only after the run.
  Variable trace(std::size_t k) const;
  /// The value of state k after the last step; its initial value if there are no steps.
  Variable last(std::size_t k) const;
  /// The values that the body returned after the states, number k of them, for each step.
  Variable mapped(std::size_t k) const;
  /// Number of steps, int64 (): known in the graph, or with `until` counted.
  /// Errors   NotSupported: without `until`
  Variable n_steps() const;

 private:
  friend LoopResult loop(const LoopBody& body, const LoopOptions& options);
  void check(std::size_t k, std::size_t count, const char* what) const;
  Apply node_;
  std::size_t n_states_ = 0, n_mapped_ = 0;
};

/// Repeats a body. Only functions run it: the body is planned once, and all its steps run in the
/// same memory.
///
/// Shapes   a state keeps its extents
/// DTypes   a state keeps its dtype; a result of the body is converted if that loses nothing
/// Errors   ValueError: the number of steps is not given, taps, numbers of results; TypeError,
///          DTypeError, ShapeError: a state changes its type, sequences of different lengths
/// Cost     a state with only `last` used takes two buffers
LoopResult loop(const LoopBody& body, const LoopOptions& options);

}  // namespace ops
}  // namespace palimpsest
