// SPDX-License-Identifier: Apache-2.0
// Loops whose number of steps is known only at run time, or whose values change their extents from
// step to step.
#include <algorithm>
#include <deque>

#include "palimpsest/compile/stages/staged_run.hpp"

namespace palimpsest {
namespace {

using ops::Loop;
using ops::LoopParts;

// Largest history, in bytes, whose memory is made for all steps at once, even if the loop stops
// early.
constexpr index_t kMostRoomBytes = index_t{1} << 20;

// An array of n elements in the memory of one: only its extent is read.
Tensor of_extent(index_t n, Device device) {
  return n == 0 ? Tensor::empty({0}, DType::bool_, device)
                : Tensor::zeros({1}, DType::bool_, device).expand({n});
}

Tensor first_rows(const Tensor& array, index_t n) {
  if (array.shape(0) == n) return array;
  const Tensor rows = array.narrow(0, 0, n);
  const bool is_small = 2 * rows.nbytes() < static_cast<index_t>(array.storage().nbytes());
  return is_small ? rows.clone() : rows;
}

// Joins the rows, and releases each when it is copied.
Tensor stacked(std::vector<Tensor> rows, const TensorType& row, const std::string& what) {
  Extents extents{static_cast<index_t>(rows.size())};
  for (std::size_t k = 0; k < row.rank(); ++k) {
    const index_t known = row.shape[k] == kUnknown ? 0 : row.shape[k];
    extents.push_back(rows.empty() ? known : rows[0].shape()[k]);
  }
  Tensor result = Tensor::empty(extents, row.dtype, row.device);
  const Extents first(extents.begin() + 1, extents.end());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].shape() != first) {
      throw ShapeError("[loop] " + what + ": got extents " + to_string(rows[i].shape()) +
                       " in step " + std::to_string(i) + ", expected " + to_string(first) +
                       " as in the first one");
    }
    Tensor place = result.select(0, static_cast<index_t>(i));
    place.copy_from(rows[i]);
    rows[i] = {};
  }
  return result;
}

// The same loop with one more input, whose extent is the number of steps. Constants stay what they
// are: those of the host go with any device.
Apply closed_form(const Apply& node) {
  const auto& op = dynamic_cast<const Loop&>(node.op());
  LoopParts parts = op.structure();
  std::size_t i = 0;
  const auto fresh = [&] {
    const Variable& v = node.input(i++);
    return v.is_constant() ? v : make_input(v.type());
  };
  for (LoopParts::Read& read : parts.reads) read.array = fresh();
  for (LoopParts::State& state : parts.states) state.init = fresh();
  for (LoopParts::Captured& value : parts.captured) value.outer = fresh();
  parts.step_arrays = {make_input({DType::bool_, {kUnknown}, node.output(0).type().device})};
  parts.steps = ops::ExtentProgram::of_input(0, 0);
  parts.count = {};
  parts.keeps_room = parts.until.defined();
  return Loop::make(std::move(parts));
}

std::vector<In> as_inputs(std::span<const Variable> variables) {
  return std::vector<In>(variables.begin(), variables.end());
}

}  // namespace

std::vector<Tensor> StagedRun::run_loop(const Apply& node, const std::vector<Tensor>& inputs,
                                        std::span<const Extents> extents) {
  const auto& op = dynamic_cast<const Loop&>(node.op());
  const bool is_value = op.structure().count.defined();
  const index_t n = is_value ? std::max<index_t>(0, inputs[op.count_input()].item<index_t>())
                             : *op.n_steps(extents);
  const bool is_known = with_note(node, extents, [&] { return op.has_known_body(extents); });
  return is_known ? run_closed(node, inputs, n) : run_steps(node, n);
}

std::vector<Tensor> StagedRun::run_closed(const Apply& node, const std::vector<Tensor>& inputs,
                                          index_t n) {
  const auto& op = dynamic_cast<const Loop&>(node.op());
  const LoopParts& parts = op.structure();
  const Function& f = program_.compiled(node.node(), 1, [&] {
    const Apply closed = closed_form(node);
    StagedProgram::Signature of{.outputs = closed.outputs()};
    for (const Variable& v : closed.inputs()) {
      if (!v.is_constant()) of.inputs.emplace_back(v);
    }
    return of;
  });
  std::vector<Tensor> arguments;
  for (std::size_t i = 0; i < op.captured_input(parts.captured.size()); ++i) {
    if (!node.input(i).is_constant()) arguments.push_back(inputs[i]);
  }
  arguments.push_back(of_extent(n, node.output(0).type().device));
  const bool may_stop = parts.until.defined();
  if (may_stop && f.plan(arguments).peak_bytes > kMostRoomBytes) return run_steps(node, n);
  std::vector<Tensor> results = call(f, std::move(arguments));
  if (!may_stop) return results;
  const index_t n_done = results.back().item<index_t>();
  for (std::size_t k = 0; k < parts.states.size(); ++k) {
    if (const auto history = op.history_output(k)) {
      results[*history] = first_rows(results[*history], parts.states[k].rows + n_done);
    }
  }
  for (std::size_t m = 0; m < parts.mapped.size(); ++m) {
    Tensor& rows = results[op.mapped_output(m)];
    rows = first_rows(rows, n_done);
  }
  return results;
}

std::vector<Tensor> StagedRun::run_steps(const Apply& node, index_t n) {
  const auto& op = dynamic_cast<const Loop&>(node.op());
  const LoopParts& parts = op.structure();
  std::vector<Tensor> inputs;
  for (const Variable& v : node.inputs()) inputs.push_back(placed(v));
  const Function& body = program_.compiled(node.node(), 2, [&] {
    return StagedProgram::Signature{as_inputs(op.body_inputs()), op.body_outputs()};
  });
  std::vector<std::deque<Tensor>> states(parts.states.size());  // all that a lag may ask for
  std::vector<std::vector<Tensor>> histories(parts.states.size()), mapped(parts.mapped.size());
  for (std::size_t k = 0; k < states.size(); ++k) {
    const Tensor& init = inputs[op.init_input(k)];
    for (index_t i = 0; i < parts.states[k].rows; ++i) {
      states[k].push_back(parts.states[k].rows > 1 ? init.select(0, i) : init);
      if (parts.states[k].has_history) histories[k].push_back(states[k].back());
    }
  }
  index_t t = 0;
  for (bool holds = false; t < n && !holds; ++t) {
    std::vector<Tensor> arguments;
    for (std::size_t i = 0; i < parts.reads.size(); ++i) {
      const LoopParts::Read& read = parts.reads[i];
      arguments.push_back(inputs[i].select(0, read.offset + (read.reversed ? n - 1 - t : t)));
    }
    for (std::size_t k = 0; k < states.size(); ++k) {
      for (const index_t lag : parts.states[k].lags) {
        arguments.push_back(states[k][states[k].size() - static_cast<std::size_t>(lag)]);
      }
    }
    for (std::size_t j = 0; j < parts.captured.size(); ++j) {
      arguments.push_back(inputs[op.captured_input(j)]);
    }
    std::vector<Tensor> results;
    try {
      results = call(body, std::move(arguments));
    } catch (Error& error) {
      error.add_note("in step " + std::to_string(t) + " of " + std::to_string(n) + " of a loop");
      throw;
    }
    for (std::size_t k = 0; k < states.size(); ++k) {
      if (results[k].shape() != states[k].back().shape()) {
        throw ShapeError("[loop] new value of state " + std::to_string(k) + ": got extents " +
                         to_string(results[k].shape()) + " in step " + std::to_string(t) +
                         ", expected those of its init, " + to_string(states[k].back().shape()));
      }
      states[k].push_back(results[k]);
      states[k].pop_front();
      if (parts.states[k].has_history) histories[k].push_back(results[k]);
    }
    for (std::size_t m = 0; m < mapped.size(); ++m) mapped[m].push_back(results[states.size() + m]);
    holds = parts.until.defined() && results.back().item<bool>();
  }
  std::vector<Tensor> outputs(node.output_count());
  for (std::size_t k = 0; k < states.size(); ++k) {
    const TensorType& row = parts.states[k].inner[0].type();
    if (const auto to = op.history_output(k)) {
      outputs[*to] = stacked(std::move(histories[k]), row, "state " + std::to_string(k));
    }
    if (const auto to = op.last_output(k)) outputs[*to] = states[k].back().clone();
  }
  for (std::size_t m = 0; m < mapped.size(); ++m) {
    outputs[op.mapped_output(m)] =
        stacked(std::move(mapped[m]), parts.mapped[m].type(), "mapped value " + std::to_string(m));
  }
  if (parts.until.defined()) outputs[op.count_output()] = Tensor::scalar<index_t>(t);
  return outputs;
}

}  // namespace palimpsest
