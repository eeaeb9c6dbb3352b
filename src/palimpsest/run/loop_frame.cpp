// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/run/loop_frame.hpp"

#include <algorithm>

#include "palimpsest/base/config.hpp"
#include "palimpsest/memory/device_copy.hpp"
#include "palimpsest/plan/position.hpp"
#include "palimpsest/run/device_step.hpp"
#include "palimpsest/run/frame.hpp"

namespace palimpsest {
namespace {

using Parts = ops::LoopParts;

// Sets the rows from n on to zero.
void clear_rows(Device device, const MutableView& array, index_t n) {
  const index_t rows = array.extents[0], bytes = byte_count(array.extents, array.dtype);
  if (rows == n) return;
  const index_t done = bytes / rows * n;
  fill_bytes_on(device, static_cast<std::byte*>(array.data) + done, std::byte{0},
                static_cast<std::size_t>(bytes - done));
}

}  // namespace

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

std::byte* LoopFrame::scratch(const RunContext& context, Device device, index_t offset) const {
  return (device == plan_.device ? context.scratch() : host_scratch_).data() + offset;
}

Device LoopFrame::device_of(const Slot& slot) const {
  return plan_.body.buffers[at(slot.buffer)].device;
}

// The address of the value of a state after step t; t is negative before the first step.
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
  return scratch(context, places.device, places.offset + turn * places.distance);
}

std::byte* LoopFrame::place_of_result(const RunContext& context, std::size_t r, index_t t) const {
  const Parts& parts = plan_.op->structure();
  if (r < parts.states.size()) return place(context, r, t);
  const std::size_t m = r - parts.states.size();
  if (m == parts.mapped.size()) {
    return scratch(context, plan_.results[r].device, plan_.until_offset);
  }
  auto* rows = static_cast<std::byte*>(context.output(plan_.op->mapped_output(m)).data);
  return rows + t * plan_.results[r].bytes;
}

void LoopFrame::bind_fixed(const RunContext& context) {
  const std::span<std::byte*> bases = frame_->bases();
  if (plan_.device.is_host()) {
    frame_->use_arena(context.scratch(), {});
  }
  for (const PlannedArena& arena : plan_.body.arenas) {
    frame_->use_arena(arena.device == plan_.device ? context.scratch() : host_scratch_,
                      arena.device);
  }
  for (std::size_t b = 0; b < bases.size(); ++b) {
    const PlannedBuffer& buffer = plan_.body.buffers[b];
    if (buffer.kind != BufferKind::constant) continue;
    const void* data = plan_.body.constants[at(buffer.index)].node()->value.raw_data();
    bases[b] = static_cast<std::byte*>(const_cast<void*>(data));
  }
  for (std::size_t r = 0; r < plan_.results.size(); ++r) {
    const index_t offset = plan_.results[r].offset;
    if (offset < 0) continue;
    const PlannedBuffer& buffer = plan_.body.buffers[at(result_buffers_[r])];
    frame_->use_memory(at(result_buffers_[r]), {scratch(context, buffer.device, offset),
                                                static_cast<std::size_t>(buffer.bytes)});
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
      copy_elements_on(plan_.inputs[plan_.op->init_input(k)],
                       {from, row.dtype, row.extents, strides}, plan_.states[k].device,
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
      frame_->use_memory(
          at(result_buffers_[r]),
          {place_of_result(context, r, t), static_cast<std::size_t>(plan_.results[r].bytes)});
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
    copy_elements_on(device_of(slot),
                     {from, slot.layout.dtype, slot.layout.extents, slot.layout.strides},
                     result.device,
                     {place_of_result(context, r, t), result.place.dtype, result.place.extents,
                      result.place.strides});
  }
}

void LoopFrame::finish(const RunContext& context, index_t n_done) {
  const Parts& parts = plan_.op->structure();
  for (std::size_t k = 0; k < parts.states.size(); ++k) {
    if (!parts.states[k].has_last || plan_.states[k].row_bytes == 0) continue;
    const std::byte* from = place(context, k, n_done - 1);
    const MutableView& out = context.output(*plan_.op->last_output(k));
    const Device device = plan_.states[k].device;
    if (plan_.states[k].is_apart) {
      const Layout& row = plan_.results[k].place;
      copy_elements_on(device, {from, row.dtype, row.extents, row.strides}, device, out);
    } else if (from != out.data) {
      copy_bytes_on(device, from, device, out.data,
                    static_cast<std::size_t>(plan_.states[k].row_bytes));
    }
  }
  if (!parts.until.defined()) return;
  for (std::size_t k = 0; k < parts.states.size(); ++k) {
    if (!parts.states[k].has_history) continue;
    clear_rows(plan_.states[k].device, context.output(*plan_.op->history_output(k)),
               parts.states[k].rows + n_done);
  }
  for (std::size_t m = 0; m < parts.mapped.size(); ++m) {
    clear_rows(plan_.results[parts.states.size() + m].device,
               context.output(plan_.op->mapped_output(m)), n_done);
  }
  fill_elements_on(&n_done, plan_.results.back().device, context.output(plan_.op->count_output()));
}

// The number of steps.
index_t LoopFrame::count(const RunContext& context) const {
  if (plan_.n_steps) return *plan_.n_steps;
  const std::size_t input = plan_.op->count_input();
  index_t n = 0;
  copy_bytes_on(plan_.inputs[input], context.input(input).data, {}, &n, sizeof n);
  return std::max<index_t>(0, n);
}

// The value of `until`. The host waits for it.
bool LoopFrame::has_ended(const RunContext& context) const {
  const Device device = plan_.results.back().device;
  bool value = false;
  copy_bytes_on(device, scratch(context, device, plan_.until_offset), {}, &value, sizeof value);
  if (!device.is_host() && config().log_device_transfers) {
    log_transfer("until of a loop", "bool ()", sizeof value, device, {});
  }
  return value;
}

void LoopFrame::run(const RunContext& context, std::span<std::byte> host_scratch) {
  host_scratch_ = host_scratch;
  n_ = count(context);
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
      holds = stops && has_ended(context);
    }
  } catch (Error& error) {
    error.add_note("in step " + std::to_string(t) + " of " + std::to_string(n_) + " of a loop");
    throw;
  }
  finish(context, t);
}

}  // namespace palimpsest
