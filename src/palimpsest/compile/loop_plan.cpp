// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/compile/loop_plan.hpp"

#include <algorithm>
#include <cstring>

#include "palimpsest/base/strided_copy.hpp"
#include "palimpsest/compile/frame.hpp"
#include "palimpsest/compile/planner.hpp"

namespace palimpsest {
namespace {

using Parts = ops::LoopParts;

constexpr index_t kAlignment = 64;

std::size_t at(int i) { return static_cast<std::size_t>(i); }

// A piece of scratch.
index_t take(index_t& end, index_t bytes) {
  const index_t start = end;
  end += (bytes + kAlignment - 1) / kAlignment * kAlignment;
  return start;
}

Layout without_rows(const Layout& array) {
  return {array.dtype, Extents(array.extents.begin() + 1, array.extents.end()),
          Strides(array.strides.begin() + 1, array.strides.end()), 0};
}

// How the inputs of the body lie in each step.
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

void place_results(LoopPlan& plan) {
  for (std::size_t r = 0; r < plan.body.outputs.size(); ++r) {
    const Delivery& delivery = plan.body.outputs[r];
    const Slot& slot = plan.body.slots[at(delivery.slot)];
    const PlannedBuffer& buffer = plan.body.buffers[at(slot.buffer)];
    LoopPlan::Result result;
    result.place = Layout::dense(slot.layout.dtype, slot.layout.extents);
    result.bytes = byte_count(slot.layout.extents, slot.layout.dtype);
    const bool is_own = buffer.kind == BufferKind::output && at(buffer.index) == r;
    result.is_direct = is_own && delivery.how == Handover::own && slot.layout.is_dense() &&
                       slot.layout.byte_offset == 0 && buffer.bytes == result.bytes;
    if (is_own && !result.is_direct) result.offset = take(plan.scratch_bytes, buffer.bytes);
    plan.results.push_back(std::move(result));
  }
}

// The position of a state's first inner variable among the inputs of the body.
std::size_t body_input_of(const Parts& parts, std::size_t k) {
  std::size_t input = parts.reads.size();
  for (std::size_t i = 0; i < k; ++i) input += parts.states[i].inner.size();
  return input;
}

// Does the state need one place only? Its result is computed there, or is copied there when all
// other results that show the old value are done with.
bool has_one_place(LoopPlan& plan, std::size_t k) {
  const Parts& parts = plan.op->structure();
  if (!parts.states[k].is_replaced() || plan.results[k].is_direct) return false;
  const auto input = body_input_of(parts, k);
  const auto shows_old = [&](std::size_t r) {
    const Slot& slot = plan.body.slots[at(plan.body.outputs[r].slot)];
    const PlannedBuffer& buffer = plan.body.buffers[at(slot.buffer)];
    return buffer.kind == BufferKind::argument && at(buffer.index) == input;
  };
  if (shows_old(k)) {
    const Slot& slot = plan.body.slots[at(plan.body.outputs[k].slot)];
    const Layout& place = plan.results[k].place;
    plan.results[k].stays = slot.layout.is_dense() && slot.layout.byte_offset == 0 &&
                            slot.layout.extents == place.extents &&
                            slot.layout.dtype == place.dtype;
    return plan.results[k].stays;
  }
  for (std::size_t r = 0; r < plan.results.size(); ++r) {
    if (shows_old(r)) return false;
  }
  return true;
}

void place_states(LoopPlan& plan, std::span<const Layout> inputs) {
  const Parts& parts = plan.op->structure();
  for (std::size_t k = 0; k < parts.states.size(); ++k) {
    LoopPlan::StatePlaces places;
    places.row_bytes = plan.results[k].bytes;
    places.count = has_one_place(plan, k) ? 1 : parts.states[k].rows + 1;
    const Layout& init = inputs[plan.op->init_input(k)];
    places.is_apart = parts.states[k].overwrites_init && !init.is_dense();
    if (!parts.states[k].has_history) {
      index_t size = 0;
      take(size, places.row_bytes);
      places.distance = size;
      const bool uses_output = parts.states[k].has_last && !places.is_apart;
      places.offset = take(plan.scratch_bytes, (places.count - (uses_output ? 1 : 0)) * size);
    }
    plan.states.push_back(places);
  }
  if (parts.until.defined()) plan.until_offset = take(plan.scratch_bytes, 1);
}

}  // namespace

std::shared_ptr<const LoopPlan> make_loop_plan(const Apply& loop, std::span<const Layout> inputs) {
  auto plan = std::make_shared<LoopPlan>();
  plan->node = loop;
  plan->op = &dynamic_cast<const ops::Loop&>(loop.op());
  auto graph = std::make_shared<FunctionGraph>(plan->op->body_inputs(), plan->op->body_outputs());
  plan->graph = graph;
  PlanRequest request;
  request.graph = graph.get();
  request.n_arguments = graph->inputs().size();
  request.n_results = graph->outputs().size();
  for (const Variable& v : graph->inputs()) {
    request.overwritten.push_back(!graph->destroyers(v).empty());
    if (!request.overwritten.back()) graph->protect(v);
  }
  request.argument_is_lent.assign(request.n_arguments, false);
  request.borrowed.assign(request.n_results, false);
  request.input_layouts = body_layouts(*plan->op, inputs);
  request.keeps_bits = true;  // what mode the function has is not known here
  plan->body = make_plan(request);
  if (!plan->body.run_time_extents.empty()) return plan;
  std::vector<Extents> extents;
  for (const Layout& layout : inputs) extents.push_back(layout.extents);
  plan->n_steps = plan->op->n_steps(extents);
  take(plan->scratch_bytes, plan->body.arena_bytes);  // at its start
  place_results(*plan);
  place_states(*plan, inputs);
  return plan;
}

std::size_t measured_steps(const Plan& plan) {
  std::size_t count = plan.steps.size();
  for (const PlannedStep& step : plan.steps) {
    if (step.loop) count += measured_steps(step.loop->body);
  }
  return count;
}

LoopFrame::LoopFrame(const LoopPlan& plan, Device device)
    : plan_(plan), frame_(std::make_unique<Frame>(plan.body, device, Frame::Arena::given)) {
  input_buffers_.assign(plan.op->body_inputs().size(), -1);
  result_buffers_.assign(plan.results.size(), -1);
  for (std::size_t b = 0; b < plan.body.buffers.size(); ++b) {
    const PlannedBuffer& buffer = plan.body.buffers[b];
    if (buffer.kind == BufferKind::argument) input_buffers_[at(buffer.index)] = static_cast<int>(b);
    if (buffer.kind == BufferKind::output) result_buffers_[at(buffer.index)] = static_cast<int>(b);
  }
}

LoopFrame::~LoopFrame() = default;

std::byte* LoopFrame::scratch(const RunContext& context, index_t offset) const {
  return context.scratch().data() + offset;
}

// Where the value of a state after step t is; before the first one t is negative.
std::byte* LoopFrame::place(const RunContext& context, std::size_t k, index_t t) const {
  const Parts::State& state = plan_.op->structure().states[k];
  const LoopPlan::StatePlaces& places = plan_.states[k];
  if (state.has_history) {
    auto* rows = static_cast<std::byte*>(context.output(*plan_.op->history_output(k)).data);
    return rows + (state.rows + t) * places.row_bytes;
  }
  index_t turn = (n_ - 1 - t) % places.count;
  if (state.has_last && !places.is_apart) {
    if (turn == 0) {
      return static_cast<std::byte*>(context.output(*plan_.op->last_output(k)).data);
    }
    --turn;
  }
  return scratch(context, places.offset + turn * places.distance);
}

std::byte* LoopFrame::place_of_result(const RunContext& context, std::size_t r, index_t t) const {
  const Parts& parts = plan_.op->structure();
  if (r < parts.states.size()) return place(context, r, t);
  const std::size_t m = r - parts.states.size();
  if (m == parts.mapped.size()) return scratch(context, plan_.until_offset);
  auto* rows = static_cast<std::byte*>(context.output(plan_.op->mapped_output(m)).data);
  return rows + t * plan_.results[r].bytes;
}

void LoopFrame::bind_fixed(const RunContext& context) {
  const std::span<std::byte*> bases = frame_->bases();
  frame_->use_arena(context.scratch().data());
  for (std::size_t b = 0; b < bases.size(); ++b) {
    const PlannedBuffer& buffer = plan_.body.buffers[b];
    if (buffer.kind != BufferKind::constant) continue;
    const void* data = plan_.body.constants[at(buffer.index)].node()->value.raw_data();
    bases[b] = static_cast<std::byte*>(const_cast<void*>(data));
  }
  for (std::size_t r = 0; r < plan_.results.size(); ++r) {
    const index_t offset = plan_.results[r].offset;
    if (offset >= 0) bases[at(result_buffers_[r])] = scratch(context, offset);
  }
}

void LoopFrame::set_inits(const RunContext& context) {
  const Parts& parts = plan_.op->structure();
  for (std::size_t k = 0; k < parts.states.size(); ++k) {
    const ConstView& init = context.input(plan_.op->init_input(k));
    const Layout& row = plan_.results[k].place;
    const bool stacked = parts.states[k].rows > 1;
    const Strides strides(init.strides.begin() + (stacked ? 1 : 0), init.strides.end());
    for (index_t i = 0; i < parts.states[k].rows; ++i) {
      const index_t skipped = stacked ? i * init.strides[0] : 0;
      const auto* from = static_cast<const std::byte*>(init.data) +
                         skipped * static_cast<index_t>(item_size(init.dtype));
      std::byte* const to = place(context, k, i - parts.states[k].rows);
      if (from == to) continue;  // overwritten, and just where it is to be
      strided_copy({from, row.dtype, row.extents, strides},
                   {to, row.dtype, row.extents, row.strides});
    }
  }
}

void LoopFrame::bind_step(const RunContext& context, index_t t) {
  const Parts& parts = plan_.op->structure();
  const std::span<std::byte*> bases = frame_->bases();
  std::size_t next = 0;
  const auto set = [&](const void* data) {
    bases[at(input_buffers_[next++])] = static_cast<std::byte*>(const_cast<void*>(data));
  };
  for (std::size_t i = 0; i < parts.reads.size(); ++i) {
    const ConstView& array = context.input(i);
    const index_t row = parts.reads[i].offset + (parts.reads[i].reversed ? n_ - 1 - t : t);
    set(static_cast<const std::byte*>(array.data) +
        row * array.strides[0] * static_cast<index_t>(item_size(array.dtype)));
  }
  for (std::size_t k = 0; k < parts.states.size(); ++k) {
    for (index_t lag : parts.states[k].lags) set(place(context, k, t - lag));
  }
  for (std::size_t j = 0; j < parts.captured.size(); ++j) {
    set(context.input(plan_.op->captured_input(j)).data);
  }
  for (std::size_t r = 0; r < plan_.results.size(); ++r) {
    if (plan_.results[r].is_direct) {
      bases[at(result_buffers_[r])] = place_of_result(context, r, t);
    }
  }
  frame_->bind();
}

void LoopFrame::copy_results(const RunContext& context, index_t t) {
  for (std::size_t r = 0; r < plan_.results.size(); ++r) {
    const LoopPlan::Result& result = plan_.results[r];
    if (result.is_direct || result.stays || result.bytes == 0) continue;
    const Slot& slot = plan_.body.slots[at(plan_.body.outputs[r].slot)];
    const std::byte* from = frame_->bases()[at(slot.buffer)] + slot.layout.byte_offset;
    strided_copy({from, slot.layout.dtype, slot.layout.extents, slot.layout.strides},
                 {place_of_result(context, r, t), result.place.dtype, result.place.extents,
                  result.place.strides});
  }
}

// Those from row n on.
void LoopFrame::clear_rows(const MutableView& array, index_t n) {
  const index_t rows = array.extents[0], bytes = byte_count(array.extents, array.dtype);
  if (rows == n) return;
  const index_t done = bytes / rows * n;
  std::memset(static_cast<std::byte*>(array.data) + done, 0,
              static_cast<std::size_t>(bytes - done));
}

void LoopFrame::finish(const RunContext& context, index_t n_done) {
  const Parts& parts = plan_.op->structure();
  for (std::size_t k = 0; k < parts.states.size(); ++k) {
    if (!parts.states[k].has_last || plan_.states[k].row_bytes == 0) continue;
    const std::byte* from = place(context, k, n_done - 1);
    const MutableView& out = context.output(*plan_.op->last_output(k));
    void* const to = out.data;
    if (plan_.states[k].is_apart) {
      const Layout& row = plan_.results[k].place;
      strided_copy({from, row.dtype, row.extents, row.strides}, out);
    } else if (from != to) {
      std::memcpy(to, from, static_cast<std::size_t>(plan_.states[k].row_bytes));
    }
  }
  if (!parts.until.defined()) return;
  for (std::size_t k = 0; k < parts.states.size(); ++k) {
    if (!parts.states[k].has_history) continue;
    clear_rows(context.output(*plan_.op->history_output(k)), parts.states[k].rows + n_done);
  }
  for (std::size_t m = 0; m < parts.mapped.size(); ++m) {
    clear_rows(context.output(plan_.op->mapped_output(m)), n_done);
  }
  *static_cast<index_t*>(context.output(plan_.op->count_output()).data) = n_done;
}

void LoopFrame::run(const RunContext& context) {
  n_ = plan_.n_steps
           ? *plan_.n_steps
           : std::max<index_t>(
                 0, *static_cast<const index_t*>(context.input(plan_.op->count_input()).data));
  const bool stops = plan_.op->structure().until.defined();
  bind_fixed(context);
  set_inits(context);
  index_t t = 0;
  try {
    for (bool holds = false; t < n_ && !holds; ++t) {
      bind_step(context, t);
      if (seconds_) {
        frame_->run_measured({seconds_, measured_steps(plan_.body)});
      } else {
        frame_->run();
      }
      copy_results(context, t);
      holds = stops && *reinterpret_cast<const bool*>(scratch(context, plan_.until_offset));
    }
  } catch (Error& error) {
    error.add_note("in step " + std::to_string(t) + " of " + std::to_string(n_) + " of a loop");
    throw;
  }
  finish(context, t);
}

}  // namespace palimpsest
