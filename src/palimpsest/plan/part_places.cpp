// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/plan/part_places.hpp"

#include <algorithm>
#include <cstdlib>
#include <set>
#include <utility>

#include "palimpsest/graph/collective.hpp"
#include "palimpsest/ops/index/index_op.hpp"
#include "palimpsest/ops/loop/loop_op.hpp"
#include "palimpsest/ops/shape/contiguous_op.hpp"
#include "palimpsest/ops/shape/rearrange_op.hpp"
#include "palimpsest/plan/position.hpp"
#include "palimpsest/plan/taken_slices.hpp"

namespace palimpsest {
namespace {

index_t bytes_of_layout(const Layout& layout) { return byte_count(layout.extents, layout.dtype); }

const ops::UpdateSubtensor* set_in_place(const Apply& node) {
  const auto* op = dynamic_cast<const ops::UpdateSubtensor*>(&node.op());
  const bool is_one = op && op->in_place() && op->kind() == ops::UpdateSubtensor::Kind::set;
  return is_one ? op : nullptr;
}

bool has_buffer_of_its_own(const Layout& layout, index_t buffer_bytes) {
  return layout.is_dense() && layout.byte_offset == 0 && bytes_of_layout(layout) == buffer_bytes;
}

class Finder {
 public:
  explicit Finder(const LaidOut& laid_out) : laid_(laid_out), plan_(laid_out.plan) {
    for (std::size_t i = 0; i < laid_.order.size(); ++i) position_[laid_.order[i].node()] = i;
    visits_.resize(plan_.buffers.size());
    last_write_.assign(plan_.buffers.size(), -1);
    for (std::size_t i = 0; i < plan_.steps.size(); ++i) {
      step_of_[plan_.steps[i].node.node()] = static_cast<int>(i);
      for (const BufferUse& use : uses_of(plan_, plan_.steps[i])) {
        visits_[at(use.buffer)].push_back(static_cast<int>(i));
        if (use.writes) last_write_[at(use.buffer)] = static_cast<int>(i);
      }
    }
  }

  PartPlaces run() {
    for (int j = 0; j < static_cast<int>(plan_.steps.size()); ++j) {
      const PlannedStep& step = plan_.steps[at(j)];
      std::vector<Extents> extents;
      if (!dynamic_cast<const ops::Join*>(&step.node.op()) && !set_in_place(step.node)) continue;
      for (int s : step.inputs) extents.push_back(slot(s).layout.extents);
      const std::vector<index_t> starts = starts_of(step.node, extents);
      for (std::size_t i = 0; i < starts.size(); ++i) consider(j, i, starts[i]);
    }
    return std::move(places_);
  }

 private:
  // The sets in an array so far.
  struct Sets {
    std::size_t n_visits = 0;  // looked at
    bool is_spoiled = false;   // something else than a set happened
    TakenSlices taken;
  };

  const PlannedBuffer& buffer(const Slot& slot) const { return plan_.buffers[at(slot.buffer)]; }
  const Slot& slot(int number) const { return plan_.slots[at(number)]; }

  void consider(int j, std::size_t input, index_t start) {
    const PlannedStep& step = plan_.steps[at(j)];
    const Slot &result = slot(step.outputs[0]), &value = slot(step.inputs[input]);
    const Variable &whole = laid_.makers[at(result.buffer)], &part = laid_.makers[at(value.buffer)];
    if (!whole.defined() || !part.defined() || result.buffer == value.buffer) return;
    if (places_.contains(part.node()) || laid_.is_kept[at(value.buffer)]) return;
    if (buffer(value).kind != BufferKind::arena) return;
    if (bytes_of_layout(value.layout) != buffer(value).bytes || buffer(value).bytes == 0) return;
    if (!has_buffer_of_its_own(result.layout, buffer(result).bytes)) return;
    PartPlace place{step.node, input, whole, result.layout, {}, value.layout, start};
    place.part = layout_made_for(part, value.buffer);
    if (!has_buffer_of_its_own(place.part, buffer(value).bytes)) return;
    const auto slice = slice_for(step.node, input, result.layout, value.layout.extents, start);
    const auto layout = slice ? layout_in(place, *slice) : std::nullopt;
    if (!layout) return;
    // A loop fills its outputs row by row, and takes them for dense.
    const bool must_be_dense =
        dynamic_cast<const ops::Loop*>(&part.owner().op()) || as_collective(part.owner().op());
    if (must_be_dense && !layout->is_dense()) return;
    if (laid_.keeps_bits && !layout->is_dense() && rounds(part, value.buffer)) return;
    const bool fits = set_in_place(step.node) ? is_free_before(j, place, part, *slice)
                                              : whole == step.node.output(0);
    if (!fits || !is_done_with(j, value.buffer, result.buffer)) return;
    places_.emplace(part.node(), std::move(place));
  }

  // Could another layout of the value change a bit of it, or of a value computed from it?
  bool rounds(const Variable& part, int buffer) const {
    const std::vector<int>& steps = visits_[at(buffer)];
    return ops::rounds_by_layout(part.owner()) ||
           std::any_of(steps.begin(), steps.end(),
                       [&](int i) { return ops::rounds_by_layout(plan_.steps[at(i)].node); });
  }

  Layout layout_made_for(const Variable& v, int buffer) const {
    const auto it = step_of_.find(v.owner().node());
    if (it == step_of_.end()) return {};
    for (int s : plan_.steps[at(it->second)].outputs) {
      if (slot(s).buffer == buffer) return slot(s).layout;
    }
    return {};
  }

  // After step j no step writes the value, and its readers end before the result dies or is
  // overwritten.
  bool is_done_with(int j, int value, int result) const {
    const int end = visits_[at(value)].back();
    if (end <= j) return true;
    const int last = laid_.is_kept[at(result)] ? static_cast<int>(plan_.steps.size())
                                               : visits_[at(result)].back();
    return last_write_[at(value)] <= j && last_write_[at(result)] <= j && end <= last;
  }

  // So far the array has only been filled, and set in other places; and it can be filled before the
  // value is computed.
  bool is_free_before(int j, const PartPlace& place, const Variable& part, const Layout& slice) {
    const Apply maker = place.whole.owner();
    if (!overwritten_inputs(maker).empty()) return false;
    const TensorType type{place.whole_layout.dtype, place.whole_layout.extents, {}};
    const Sets& sets = sets_before(j, slot(plan_.steps[at(j)].outputs[0]).buffer, maker);
    if (sets.is_spoiled || !sets.taken.is_apart(slice, type)) return false;
    const std::size_t by = position_.at(part.owner().node());
    const auto is_there = [&](const Variable& v) {
      return !v.owner().defined() || position_.at(v.owner().node()) < by;
    };
    return std::all_of(maker.inputs().begin(), maker.inputs().end(), is_there);
  }

  // Steps come in rising order, so that each visit is looked at once.
  const Sets& sets_before(int j, int whole, const Apply& maker) {
    Sets& sets = sets_[whole];
    const std::vector<int>& visits = visits_[at(whole)];
    for (; !sets.is_spoiled && sets.n_visits < visits.size(); ++sets.n_visits) {
      const int i = visits[sets.n_visits];
      if (i >= j) break;
      const PlannedStep& other = plan_.steps[at(i)];
      if (other.node == maker) continue;
      const auto taken = slice_set_by(other, whole);
      sets.is_spoiled = !taken;
      if (taken) sets.taken.add(*taken);
    }
    return sets;
  }
  // The slice that the step sets in this array or in a part of it; nothing for other steps.
  std::optional<Layout> slice_set_by(const PlannedStep& step, int whole) const {
    if (!set_in_place(step.node) || slot(step.outputs[0]).buffer != whole) return {};
    const Slot& value = slot(step.inputs[1]);
    if (value.buffer == whole) return {};
    return slice_for(step.node, 1, slot(step.outputs[0]).layout, value.layout.extents, 0);
  }

  const LaidOut& laid_;
  const Plan& plan_;
  std::unordered_map<const ApplyNode*, std::size_t> position_;
  std::unordered_map<const ApplyNode*, int> step_of_;
  std::vector<std::vector<int>> visits_;  // per buffer: the steps that use it, in their order
  std::vector<int> last_write_;           // per buffer: the last step that writes it; -1: none
  std::unordered_map<int, Sets> sets_;    // per buffer
  PartPlaces places_;
};

}  // namespace

std::vector<BufferUse> uses_of(const Plan& plan, const PlannedStep& step) {
  std::vector<BufferUse> uses;
  const auto add = [&](int number, bool writes) {
    const Slot& slot = plan.slots[at(number)];
    uses.push_back({slot.buffer, slot.part, writes});
  };
  for (int slot : step.outputs) add(slot, true);
  const std::set<int> overwritten = overwritten_inputs(step.node);
  for (std::size_t i = 0; i < step.inputs.size(); ++i) {
    add(step.inputs[i], overwritten.contains(static_cast<int>(i)));
  }
  for (const int scratch : {step.scratch, step.host_scratch}) {
    if (scratch >= 0) uses.push_back({scratch, -1, true});
  }
  for (int g = step.guard; g >= 0; g = plan.guards[at(g)].parent) {
    add(plan.guards[at(g)].condition, false);
  }
  std::sort(uses.begin(), uses.end(), [](const BufferUse& a, const BufferUse& b) {
    return std::pair(a.buffer, a.part) < std::pair(b.buffer, b.part);
  });
  std::size_t n = 0;
  for (const BufferUse& use : uses) {
    if (n > 0 && uses[n - 1].buffer == use.buffer && uses[n - 1].part == use.part) {
      uses[n - 1].writes |= use.writes;
    } else {
      uses[n++] = use;
    }
  }
  uses.resize(n);
  return uses;
}

std::vector<index_t> starts_of(const Apply& node, std::span<const Extents> extents) {
  const auto* const join = dynamic_cast<const ops::Join*>(&node.op());
  if (!join && !set_in_place(node)) return {};
  std::vector<index_t> starts(extents.size(), 0);
  for (std::size_t i = 1; join && i < extents.size(); ++i) {
    starts[i] = starts[i - 1] + extents[i - 1][join->axis()];
  }
  return starts;
}

std::optional<Layout> slice_for(const Apply& node, std::size_t input, const Layout& result,
                                const Extents& extents, index_t start) {
  if (const auto* join = dynamic_cast<const ops::Join*>(&node.op())) {
    const auto item = static_cast<index_t>(item_size(result.dtype));
    return Layout{result.dtype, extents, result.strides,
                  result.byte_offset + start * result.strides[join->axis()] * item};
  }
  const ops::UpdateSubtensor* set = set_in_place(node);
  if (!set || input != 1) return {};
  Layout slice = set->index().layout(result);
  if (slice.extents != extents) return {};
  return slice;
}

std::optional<Layout> layout_in(const PartPlace& place, const Layout& slice) {
  Layout result = place.part;
  const Layout& value = place.value;
  const auto matters = [&](std::size_t k) { return value.extents[k] > 1; };
  bool is_moved_only = true;
  for (std::size_t k = 0; k < value.extents.size(); ++k) {
    is_moved_only &= !matters(k) || value.strides[k] == slice.strides[k];
  }
  if (is_moved_only) {
    result.byte_offset = slice.byte_offset - value.byte_offset;
    return result;
  }
  // The same axes in another order, each with the stride of the slice.
  if (value.dtype != result.dtype || value.byte_offset != 0) return {};
  std::vector<bool> is_taken(value.extents.size(), false);
  for (std::size_t j = 0; j < result.extents.size(); ++j) {
    if (result.extents[j] == 1) continue;
    std::size_t k = 0;
    for (; k < value.extents.size(); ++k) {
      if (!is_taken[k] && matters(k) && value.extents[k] == result.extents[j] &&
          value.strides[k] == place.part.strides[j]) {
        break;
      }
    }
    if (k == value.extents.size()) return {};
    is_taken[k] = true;
    result.strides[j] = slice.strides[k];
  }
  result.byte_offset = slice.byte_offset;
  return result;
}

bool are_same_bytes(const Layout& a, const Layout& b) {
  if (a.extents != b.extents || a.byte_offset != b.byte_offset || a.dtype != b.dtype) return false;
  for (std::size_t k = 0; k < a.extents.size(); ++k) {
    if (a.extents[k] > 1 && a.strides[k] != b.strides[k]) return false;
  }
  return true;
}

bool may_overlap_itself(const Layout& layout) {
  struct Axis {
    index_t step, extent;
  };
  SmallVector<Axis, 8> axes;
  for (std::size_t i = 0; i < layout.extents.size(); ++i) {
    if (layout.extents[i] == 0) return false;
    if (layout.extents[i] > 1) axes.push_back({std::abs(layout.strides[i]), layout.extents[i]});
  }
  std::sort(axes.begin(), axes.end(), [](const Axis& a, const Axis& b) { return a.step < b.step; });
  index_t reach = 0;
  for (const auto& [step, extent] : axes) {
    if (step <= reach) return true;
    reach += step * (extent - 1);
  }
  return false;
}

PartPlaces find_part_places(const LaidOut& laid_out) { return Finder(laid_out).run(); }

}  // namespace palimpsest
