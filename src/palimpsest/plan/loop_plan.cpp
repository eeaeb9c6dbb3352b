// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/plan/loop_plan.hpp"

#include <algorithm>

#include "palimpsest/graph/collective.hpp"
#include "palimpsest/graph/graph_state.hpp"
#include "palimpsest/plan/planner.hpp"
#include "palimpsest/plan/position.hpp"

namespace palimpsest {
namespace {

using Parts = ops::LoopParts;

constexpr index_t kAlignment = 64;

// A piece of scratch.
index_t take_bytes(index_t& end, index_t bytes) {
  const index_t start = end;
  end += (bytes + kAlignment - 1) / kAlignment * kAlignment;
  return start;
}

Layout without_rows(const Layout& array) {
  return {array.dtype, Extents(array.extents.begin() + 1, array.extents.end()),
          Strides(array.strides.begin() + 1, array.strides.end()), 0};
}

// Layouts of the inputs of the body, the same in each step.
std::vector<Layout> body_layouts(const ops::Loop& op, std::span<const Layout> inputs) {
  const Parts& parts = op.structure();
  std::vector<Layout> result;
  for (std::size_t i = 0; i < parts.reads.size(); ++i) result.push_back(without_rows(inputs[i]));
  for (std::size_t k = 0; k < parts.states.size(); ++k) {
    const Layout& init = inputs[op.init_input(k)];
    Extents extents(init.extents.begin() + (parts.states[k].rows > 1 ? 1 : 0), init.extents.end());
    const Layout row = Layout::dense(init.dtype, std::move(extents));
    result.insert(result.end(), parts.states[k].inner.size(), row);
  }
  for (std::size_t j = 0; j < parts.captured.size(); ++j) {
    const Layout& value = inputs[op.captured_input(j)];
    result.push_back({value.dtype, value.extents, value.strides, 0});
  }
  return result;
}

// Results of the body: states, mapped values, `until`.
Device device_of_result(const LoopPlan& plan, std::size_t r) {
  if (plan.device.is_host()) return {};
  const Parts& parts = plan.op->structure();
  if (r < parts.states.size()) return parts.states[r].inner[0].type().device;
  return plan.op->body_outputs()[r].type().device;
}

void place_results(LoopPlan& plan) {
  for (std::size_t r = 0; r < plan.body.outputs.size(); ++r) {
    const Delivery& delivery = plan.body.outputs[r];
    const Slot& slot = plan.body.slots[at(delivery.slot)];
    const PlannedBuffer& buffer = plan.body.buffers[at(slot.buffer)];
    LoopPlan::Result result;
    result.device = device_of_result(plan, r);
    result.place = Layout::dense(slot.layout.dtype, slot.layout.extents);
    result.bytes = byte_count(slot.layout.extents, slot.layout.dtype);
    const bool is_own = buffer.kind == BufferKind::output && at(buffer.index) == r;
    result.is_direct = is_own && delivery.how == Handover::own && slot.layout.is_dense() &&
                       slot.layout.byte_offset == 0 && buffer.bytes == result.bytes &&
                       buffer.device == result.device;
    if (is_own && !result.is_direct) {
      result.offset = take_bytes(plan.scratch_for(buffer.device), buffer.bytes);
    }
    plan.results.push_back(std::move(result));
  }
}

// The input of the body whose memory a result shows; -1 if it shows no input.
int shown_input(const LoopPlan& plan, std::size_t r) {
  const Slot& slot = plan.body.slots[at(plan.body.outputs[r].slot)];
  const PlannedBuffer& buffer = plan.body.buffers[at(slot.buffer)];
  return buffer.kind == BufferKind::argument ? buffer.index : -1;
}

// True if the state needs one place only: its result is computed there, or no other result shows
// the old value when the result is copied there. `input` is the position of its first inner
// variable among the inputs of the body; `is_shown` says for each input whether a result shows it.
bool has_one_place(LoopPlan& plan, std::size_t k, std::size_t input,
                   const std::vector<bool>& is_shown) {
  const Parts& parts = plan.op->structure();
  if (!parts.states[k].is_replaced() || plan.results[k].is_direct) return false;
  if (shown_input(plan, k) == static_cast<int>(input)) {
    const Slot& slot = plan.body.slots[at(plan.body.outputs[k].slot)];
    const Layout& place = plan.results[k].place;
    plan.results[k].stays = slot.layout.is_dense() && slot.layout.byte_offset == 0 &&
                            slot.layout.extents == place.extents &&
                            slot.layout.dtype == place.dtype;
    return plan.results[k].stays;
  }
  return !is_shown[input];
}

void place_states(LoopPlan& plan, std::span<const Layout> inputs) {
  const Parts& parts = plan.op->structure();
  std::vector<bool> is_shown(plan.op->body_inputs().size(), false);
  for (std::size_t r = 0; r < plan.results.size(); ++r) {
    if (const int input = shown_input(plan, r); input >= 0) is_shown[at(input)] = true;
  }
  std::size_t body_input = parts.reads.size();
  for (std::size_t k = 0; k < parts.states.size(); ++k) {
    LoopPlan::StatePlaces places;
    places.device = plan.results[k].device;
    places.row_bytes = plan.results[k].bytes;
    places.count = has_one_place(plan, k, body_input, is_shown) ? 1 : parts.states[k].rows + 1;
    body_input += parts.states[k].inner.size();
    const Layout& init = inputs[plan.op->init_input(k)];
    places.is_apart = parts.states[k].overwrites_init && !init.is_dense();
    if (!parts.states[k].has_history) {
      index_t size = 0;
      take_bytes(size, places.row_bytes);
      places.distance = size;
      const bool uses_output = parts.states[k].has_last && !places.is_apart;
      places.offset = take_bytes(plan.scratch_for(places.device),
                                 (places.count - (uses_output ? 1 : 0)) * size);
    }
    plan.states.push_back(places);
  }
  if (parts.until.defined()) {
    plan.until_offset = take_bytes(plan.scratch_for(plan.results.back().device), 1);
  }
}

// The accelerator of the operands; the host: none has one.
Device accelerator_of(const Apply& loop) {
  for (const Variable& v : loop.outputs()) {
    if (!v.type().device.is_host()) return v.type().device;
  }
  for (const Variable& v : loop.inputs()) {
    if (!v.type().device.is_host()) return v.type().device;
  }
  return {};
}

// False if the body would look for an input or a result elsewhere than where it lies. Initial
// values are copied from anywhere.
bool is_where_expected(const LoopPlan& plan) {
  const Parts& parts = plan.op->structure();
  const auto lies_on = [&](std::size_t input, const Variable& inner) {
    return plan.inputs[input] == inner.type().device;
  };
  for (std::size_t i = 0; i < parts.reads.size(); ++i) {
    if (!lies_on(i, parts.reads[i].inner)) return false;
  }
  for (std::size_t j = 0; j < parts.captured.size(); ++j) {
    const std::size_t input = plan.op->captured_input(j);
    if (!lies_on(input, parts.captured[j].inner) && !plan.node.input(input).is_constant()) {
      return false;
    }
  }
  const auto is_on = [&](std::optional<std::size_t> output, Device device) {
    return !output || plan.node.output(*output).type().device == device;
  };
  for (std::size_t k = 0; k < parts.states.size(); ++k) {
    const Device device = parts.states[k].inner[0].type().device;
    if (!is_on(plan.op->history_output(k), device)) return false;
    if (!is_on(plan.op->last_output(k), device)) return false;
  }
  for (std::size_t m = 0; m < parts.mapped.size(); ++m) {
    if (!is_on(plan.op->mapped_output(m), parts.mapped[m].type().device)) return false;
  }
  return true;
}

// True if kernels of the device compute all that lies there.
bool needs_no_copies(const Plan& body, Device device) {
  return !body.arenas.empty() && std::ranges::none_of(body.steps, [](const PlannedStep& s) {
    return s.on_host != nullptr;
  }) && std::ranges::all_of(body.arenas, [&](const PlannedArena& arena) {
    return arena.device.is_host() || arena.device == device;
  });
}

// The body with constants for values that are constants, which a plan places on the accelerator.
std::shared_ptr<FunctionGraph> body_on_device(const LoopPlan& plan) {
  auto graph = std::make_shared<FunctionGraph>(plan.op->body_inputs(), plan.op->body_outputs());
  const Parts& parts = plan.op->structure();
  for (std::size_t j = 0; j < parts.captured.size(); ++j) {
    const Variable& outer = plan.node.input(plan.op->captured_input(j));
    if (outer.is_constant()) graph->replace(parts.captured[j].inner, outer);
  }
  return graph;
}

void plan_body(LoopPlan& plan, std::shared_ptr<FunctionGraph> graph,
               std::span<const Layout> inputs) {
  plan.graph = graph;
  PlanRequest request;
  request.graph = graph.get();
  request.n_arguments = graph->inputs().size();
  request.n_results = graph->outputs().size();
  for (const Variable& v : graph->inputs()) {
    request.overwritten.push_back(graph->state().is_overwritten(v));
    if (!request.overwritten.back()) graph->protect(v);
  }
  request.argument_is_lent.assign(request.n_arguments, false);
  request.borrowed.assign(request.n_results, false);
  request.input_layouts = body_layouts(*plan.op, inputs);
  request.body = plan.device.is_host() ? PlanRequest::Body::on_host : PlanRequest::Body::anywhere;
  request.keeps_bits = true;  // the mode of the function is unknown here
  plan.body = make_plan(request);
}

}  // namespace

std::shared_ptr<const LoopPlan> make_loop_plan(const Apply& loop, std::span<const Layout> inputs,
                                               std::vector<Device> devices) {
  auto plan = std::make_shared<LoopPlan>();
  plan->node = loop;
  plan->op = &dynamic_cast<const ops::Loop&>(loop.op());
  plan->inputs = std::move(devices);
  if (!plan->inputs.empty()) plan->device = accelerator_of(loop);
  if (!plan->device.is_host()) {
    const bool is_there = is_where_expected(*plan);
    if (is_there) plan_body(*plan, body_on_device(*plan), inputs);
    if (!is_there || !needs_no_copies(plan->body, plan->device)) plan->device = {};
  }
  if (plan->device.is_host()) {
    plan->inputs.assign(loop.input_count(), Device{});
    plan_body(*plan,
              std::make_shared<FunctionGraph>(plan->op->body_inputs(), plan->op->body_outputs()),
              inputs);
  }
  if (!plan->body.run_time_extents.empty()) return plan;
  std::vector<Extents> extents;
  for (const Layout& layout : inputs) extents.push_back(layout.extents);
  plan->n_steps = plan->op->n_steps(extents);
  // At the start of the scratch.
  if (plan->device.is_host()) {
    take_bytes(plan->scratch_bytes.on_device, plan->body.arena_bytes);
  }
  for (const PlannedArena& arena : plan->body.arenas) {
    take_bytes(plan->scratch_for(arena.device), arena.bytes);
  }
  place_results(*plan);
  place_states(*plan, inputs);
  return plan;
}

std::shared_ptr<const LoopPlan> LoopPlans::find_or_make(const Apply& loop,
                                                        std::span<const Layout> inputs,
                                                        const std::vector<Device>& devices) {
  std::vector<Entry>& entries = entries_[loop.node()];
  for (const Entry& entry : entries) {
    if (std::ranges::equal(entry.inputs, inputs) && entry.devices == devices) return entry.plan;
  }
  entries.push_back(
      {{inputs.begin(), inputs.end()}, devices, make_loop_plan(loop, inputs, devices)});
  return entries.back().plan;
}

std::size_t measured_steps(const Plan& plan) {
  std::size_t count = plan.steps.size();
  for (const PlannedStep& step : plan.steps) {
    if (step.loop) count += measured_steps(step.loop->body);
  }
  return count;
}

const Collective* first_collective(const PlannedStep& step) {
  if (step.loop) return first_collective(step.loop->body);
  return as_collective(step.node.op());
}

const Collective* first_collective(const Plan& plan) {
  for (const PlannedStep& step : plan.steps) {
    if (const Collective* const op = first_collective(step)) return op;
  }
  return nullptr;
}

}  // namespace palimpsest
