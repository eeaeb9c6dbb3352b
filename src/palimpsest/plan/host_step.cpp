// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/plan/host_step.hpp"

#include <algorithm>

#include "palimpsest/plan/position.hpp"
#include "palimpsest/tensor/reach.hpp"

namespace palimpsest {
namespace {

constexpr index_t kAlignment = 64;

index_t aligned(index_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

HostStep::Range range_of(const Slot& slot, bool is_read) {
  const ReachedRange reach = reached_range(slot.layout.extents, slot.layout.strides);
  const auto item = static_cast<index_t>(item_size(slot.layout.dtype));
  return {slot.buffer, slot.layout.byte_offset + reach.low * item,
          slot.layout.byte_offset + reach.high * item, 0, is_read};
}

bool is_host_variable(const Variable& v) { return v.is_constant() || v.type().device.is_host(); }

}  // namespace

bool is_on_accelerator(const PlannedStep& step) {
  const auto is_away = [](const Variable& v) { return !is_host_variable(v); };
  return std::ranges::any_of(step.node.inputs(), is_away) ||
         std::ranges::any_of(step.node.outputs(), is_away);
}

HostStep make_host_step(const Plan& plan, const PlannedStep& step, index_t op_scratch_bytes) {
  HostStep made;
  std::vector<HostStep::Range> wanted;
  const auto want = [&](const Variable& v, int slot, bool is_read) {
    const Slot& s = plan.slots[at(slot)];
    // A view of a constant is on the host as well.
    const bool is_constant = plan.buffers[at(s.buffer)].kind == BufferKind::constant;
    if (is_constant || v.type().device.is_host()) return;
    const HostStep::Range range = range_of(s, is_read);
    if (range.first < range.last) wanted.push_back(range);
  };
  for (std::size_t i = 0; i < step.inputs.size(); ++i) {
    want(step.node.input(i), step.inputs[i], true);
  }
  for (std::size_t k = 0; k < step.outputs.size(); ++k) {
    want(step.node.output(k), step.outputs[k], false);
  }
  std::ranges::sort(wanted, [](const auto& a, const auto& b) {
    return std::pair(a.buffer, a.first) < std::pair(b.buffer, b.first);
  });
  for (const HostStep::Range& range : wanted) {
    if (!made.ranges.empty()) {
      HostStep::Range& last = made.ranges.back();
      if (last.buffer == range.buffer && range.first < last.last) {
        last.last = std::max(last.last, range.last);
        last.is_read |= range.is_read;
        continue;
      }
    }
    made.ranges.push_back(range);
  }
  made.op_scratch_bytes = op_scratch_bytes;
  made.scratch_bytes = aligned(op_scratch_bytes);
  for (HostStep::Range& range : made.ranges) {
    // Elements keep their distance from addresses of aligned memory. A range begins in front of the
    // first element of an array with negative strides.
    const index_t residue = (range.first % kAlignment + kAlignment) % kAlignment;
    range.offset = made.scratch_bytes + residue;
    made.scratch_bytes = aligned(range.offset + range.last - range.first);
  }
  const auto range_with = [&](const Variable& v, int slot) {
    const HostStep::Range operand = range_of(plan.slots[at(slot)], false);
    if (is_host_variable(v)) return HostStep::kInPlace;
    for (std::size_t r = 0; r < made.ranges.size(); ++r) {
      const HostStep::Range& range = made.ranges[r];
      const bool is_there = range.buffer == operand.buffer && range.first <= operand.first &&
                            operand.last <= range.last;
      if (is_there) return static_cast<int>(r);
    }
    return HostStep::kInPlace;  // constants and empty arrays
  };
  for (std::size_t i = 0; i < step.inputs.size(); ++i) {
    made.inputs.push_back(range_with(step.node.input(i), step.inputs[i]));
  }
  for (std::size_t k = 0; k < step.outputs.size(); ++k) {
    made.outputs.push_back(range_with(step.node.output(k), step.outputs[k]));
  }
  return made;
}

}  // namespace palimpsest
