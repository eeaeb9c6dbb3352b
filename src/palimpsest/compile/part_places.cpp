// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/compile/part_places.hpp"

#include <algorithm>

#include "palimpsest/ops/index_op.hpp"
#include "palimpsest/ops/loop_op.hpp"
#include "palimpsest/ops/rearrange_op.hpp"

namespace palimpsest {
namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }

index_t bytes_of(const Layout& layout) { return byte_count(layout.extents, layout.dtype); }

const ops::UpdateSubtensor* set_in_place(const Apply& node) {
  const auto* op = dynamic_cast<const ops::UpdateSubtensor*>(&node.op());
  const bool is_one = op && op->in_place() && op->kind() == ops::UpdateSubtensor::Kind::set;
  return is_one ? op : nullptr;
}

bool has_buffer_of_its_own(const Layout& layout, index_t buffer_bytes) {
  return layout.is_dense() && layout.byte_offset == 0 && bytes_of(layout) == buffer_bytes;
}

// What the steps do to each buffer.
struct Visit {
  int step;
  bool writes;
};

class Finder {
 public:
  explicit Finder(const LaidOut& laid_out) : laid_(laid_out), plan_(laid_out.plan) {
    for (std::size_t i = 0; i < laid_.order.size(); ++i) position_[laid_.order[i].node()] = i;
    visits_.resize(plan_.buffers.size());
    for (std::size_t i = 0; i < plan_.steps.size(); ++i) {
      for (const BufferUse& use : uses_of(plan_, plan_.steps[i])) {
        visits_[at(use.buffer)].push_back({static_cast<int>(i), use.writes});
      }
    }
  }

  PartPlaces run() {
    for (int j = 0; j < static_cast<int>(plan_.steps.size()); ++j) {
      const Apply& node = plan_.steps[at(j)].node;
      if (dynamic_cast<const ops::Join*>(&node.op())) {
        for (std::size_t i = 0; i < node.input_count(); ++i) consider(j, i);
      } else if (set_in_place(node)) {
        consider(j, 1);
      }
    }
    return std::move(places_);
  }

 private:
  const PlannedBuffer& buffer(const Slot& slot) const { return plan_.buffers[at(slot.buffer)]; }
  const Slot& slot(int number) const { return plan_.slots[at(number)]; }

  void consider(int j, std::size_t input) {
    const PlannedStep& step = plan_.steps[at(j)];
    const Slot &result = slot(step.outputs[0]), &value = slot(step.inputs[input]);
    const Variable &whole = laid_.makers[at(result.buffer)], &part = laid_.makers[at(value.buffer)];
    if (!whole.defined() || !part.defined() || result.buffer == value.buffer) return;
    if (places_.contains(part.node()) || laid_.is_kept[at(value.buffer)]) return;
    if (buffer(value).kind != BufferKind::arena) return;
    if (bytes_of(value.layout) != buffer(value).bytes || buffer(value).bytes == 0) return;
    if (!has_buffer_of_its_own(result.layout, buffer(result).bytes)) return;
    PartPlace place{step.node, input, whole, result.layout, {}, value.layout, {}};
    place.part = layout_made_for(part, value.buffer);
    if (!has_buffer_of_its_own(place.part, buffer(value).bytes)) return;
    for (int s : step.inputs) place.extents.push_back(slot(s).layout.extents);
    const auto slice = slice_for(step.node, input, result.layout, place.extents);
    const auto layout = slice ? layout_in(place, *slice) : std::nullopt;
    if (!layout) return;
    // A loop fills its outputs row by row, and takes them for dense.
    if (dynamic_cast<const ops::Loop*>(&part.owner().op()) && !layout->is_dense()) return;
    const bool fits = set_in_place(step.node) ? is_free_before(j, place, part, *slice)
                                              : whole == step.node.output(0);
    if (!fits || !is_done_with(j, value.buffer, result.buffer)) return;
    places_.emplace(part.node(), std::move(place));
  }

  Layout layout_made_for(const Variable& v, int buffer) const {
    for (const PlannedStep& step : plan_.steps) {
      for (int s : step.outputs) {
        if (slot(s).buffer == buffer && step.node == v.owner()) return slot(s).layout;
      }
    }
    return {};
  }

  // After step j nobody writes the value, and who reads it is done before the result goes away or
  // is overwritten.
  bool is_done_with(int j, int value, int result) const {
    const auto& of_result = visits_[at(result)];
    const bool changes = std::any_of(of_result.begin(), of_result.end(),
                                     [&](const Visit& v) { return v.step > j && v.writes; });
    const int last =
        laid_.is_kept[at(result)] ? static_cast<int>(plan_.steps.size()) : of_result.back().step;
    const auto& of_value = visits_[at(value)];
    return std::all_of(of_value.begin(), of_value.end(), [&](const Visit& v) {
      return v.step <= j || (!v.writes && !changes && v.step <= last);
    });
  }

  // So far the array has only been filled, and set in other places; and it can be filled before the
  // value is computed.
  bool is_free_before(int j, const PartPlace& place, const Variable& part,
                      const Layout& slice) const {
    const Apply maker = place.whole.owner();
    if (!overwritten_inputs(maker).empty()) return false;
    const Region region = Region::of(slice);
    const TensorType type{place.whole_layout.dtype, place.whole_layout.extents, {}};
    const int whole = slot(plan_.steps[at(j)].outputs[0]).buffer;
    for (const Visit& visit : visits_[at(whole)]) {
      if (visit.step >= j) break;
      const PlannedStep& other = plan_.steps[at(visit.step)];
      if (other.node == maker) continue;
      if (!set_in_place(other.node) || slot(other.outputs[0]).buffer != whole) return false;
      if (slot(other.inputs[1]).buffer == whole) return false;
      std::vector<Extents> extents;
      for (int s : other.inputs) extents.push_back(slot(s).layout.extents);
      const auto taken = slice_for(other.node, 1, slot(other.outputs[0]).layout, extents);
      if (!taken || Region::of(*taken).meets(region, type)) return false;
    }
    const std::size_t by = position_.at(part.owner().node());
    const auto is_there = [&](const Variable& v) {
      return !v.owner().defined() || position_.at(v.owner().node()) < by;
    };
    return std::all_of(maker.inputs().begin(), maker.inputs().end(), is_there);
  }

  const LaidOut& laid_;
  const Plan& plan_;
  std::unordered_map<const ApplyNode*, std::size_t> position_;
  std::vector<std::vector<Visit>> visits_;  // per buffer, in the order of the steps
  PartPlaces places_;
};

}  // namespace

std::vector<BufferUse> uses_of(const Plan& plan, const PlannedStep& step) {
  std::vector<BufferUse> uses;
  const auto add = [&](int buffer, int part, bool writes) {
    const auto it = std::find_if(uses.begin(), uses.end(), [&](const BufferUse& use) {
      return use.buffer == buffer && use.part == part;
    });
    if (it == uses.end()) {
      uses.push_back({buffer, part, writes});
    } else {
      it->writes |= writes;
    }
  };
  const auto add_slot = [&](int number, bool writes) {
    const Slot& slot = plan.slots[at(number)];
    add(slot.buffer, slot.part, writes);
  };
  for (int slot : step.outputs) add_slot(slot, true);
  const std::set<int> overwritten = overwritten_inputs(step.node);
  for (std::size_t i = 0; i < step.inputs.size(); ++i) {
    add_slot(step.inputs[i], overwritten.contains(static_cast<int>(i)));
  }
  if (step.scratch >= 0) add(step.scratch, -1, true);
  for (int g = step.guard; g >= 0; g = plan.guards[at(g)].parent) {
    add_slot(plan.guards[at(g)].condition, false);
  }
  return uses;
}

std::optional<Layout> slice_for(const Apply& node, std::size_t input, const Layout& result,
                                std::span<const Extents> extents) {
  if (const auto* join = dynamic_cast<const ops::Join*>(&node.op())) {
    index_t start = 0;
    for (std::size_t i = 0; i < input; ++i) start += extents[i][join->axis()];
    const auto item = static_cast<index_t>(item_size(result.dtype));
    return Layout{result.dtype, extents[input], result.strides,
                  result.byte_offset + start * result.strides[join->axis()] * item};
  }
  const ops::UpdateSubtensor* set = set_in_place(node);
  if (!set || input != 1) return {};
  Layout slice = set->index().layout(result);
  if (slice.extents != extents[1]) return {};
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
  // The same axes in some order, each with the stride that the slice has there.
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

PartPlaces find_part_places(const LaidOut& laid_out) { return Finder(laid_out).run(); }

}  // namespace palimpsest
