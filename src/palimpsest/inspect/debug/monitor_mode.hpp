// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <vector>

#include "palimpsest/base/api.hpp"
#include "palimpsest/graph/function_graph.hpp"
#include "palimpsest/run/mode.hpp"

namespace PALIMPSEST_API palimpsest {

/// The values of one step. Tensors show the memory of the call itself: they are valid until the
/// callback returns, and a clone() of one is for ever.
class StepView {
 public:
  StepView(std::vector<Tensor> inputs, std::vector<Tensor> outputs)
      : inputs_(std::move(inputs)), outputs_(std::move(outputs)) {}
  std::size_t input_count() const { return inputs_.size(); }
  std::size_t output_count() const { return outputs_.size(); }
  const Tensor& input(std::size_t i) const { return inputs_.at(i); }
  /// Before the step: the old bytes of the memory that the step will write.
  const Tensor& output(std::size_t i) const { return outputs_.at(i); }

 private:
  std::vector<Tensor> inputs_, outputs_;
};

/// Called with the optimized graph, the number of the step in the plan, its node and its values.
using StepCallback = std::function<void(const FunctionGraph&, int, const Apply&, const StepView&)>;

struct MonitorOptions {
  StepCallback pre = {};
  StepCallback post = {};
  Mode base = {};
};

/// A mode with callbacks before and after every step that runs, in the order of the plan, one at a
/// time. Views are not steps. An exception of a callback ends the call like an error of the step.
///
///     function({x}, y, {.mode = MonitorMode({.post = detect_nan})})
Mode MonitorMode(MonitorOptions options);

/// A callback for `post`: AssertionError when a result of the step is not a number anywhere, naming
/// the step, and its inputs' values when they are few.
void detect_nan(const FunctionGraph& graph, int step, const Apply& node, const StepView& view);

}  // namespace palimpsest
