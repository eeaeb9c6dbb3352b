// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cctype>

#include "palimpsest/ops/index/index_op.hpp"
#include "palimpsest/tensor/layout.hpp"

namespace palimpsest::ops {
namespace {

std::string on_axis(std::size_t axis) { return "[index] axis " + std::to_string(axis) + ": "; }

void check_element(index_t i, index_t n, std::size_t axis) {
  if (i >= -n && i < n) return;
  throw ShapeError(on_axis(axis) + "element out of range: got " + std::to_string(i) +
                   ", expected " + std::to_string(-n) + " .. " + std::to_string(n - 1));
}

bool is_everything(const Slice& s) { return s.step == 1 && !s.stop && (!s.start || *s.start == 0); }

std::string text_of_slice(const Slice& s) {
  const auto end = [](std::optional<index_t> i) { return i ? std::to_string(*i) : std::string(); };
  return end(s.start) + ":" + end(s.stop) + (s.step == 1 ? "" : ":" + std::to_string(s.step));
}

// Calls f(entry, axis) with the axis of the input that the entry is about, or that comes next.
template <class F>
void walk(const std::vector<Index>& entries, F&& f) {
  std::size_t axis = 0;
  for (const Index& entry : entries) {
    f(entry, axis);
    if (!std::holds_alternative<NewAxis>(entry)) ++axis;
  }
}

}  // namespace

BasicIndex::BasicIndex(std::vector<Index> entries, std::size_t rank) {
  std::size_t n_named = 0, n_new = 0, n_ellipses = 0;
  for (const Index& entry : entries) {
    if (std::holds_alternative<EllipsisIndex>(entry)) {
      ++n_ellipses;
    } else if (std::holds_alternative<NewAxis>(entry)) {
      ++n_new;
    } else {
      ++n_named;
    }
  }
  if (n_ellipses > 1) throw ShapeError("[index] got several '...', expected at most one");
  if (n_named > rank || rank + n_new > kMaxRank) {
    throw ShapeError("[index] too many entries: got " + std::to_string(n_named) + " and " +
                     std::to_string(n_new) + " new axes, expected at most " + std::to_string(rank) +
                     " for an array of " + std::to_string(rank) + " axes");
  }
  if (n_ellipses == 0) entries.emplace_back(ellipsis);
  for (const Index& entry : entries) {
    const auto* s = std::get_if<Slice>(&entry);
    if (std::holds_alternative<EllipsisIndex>(entry)) {
      entries_.insert(entries_.end(), rank - n_named, Index(all));
    } else if (s && s->step == 0) {
      throw ValueError("[index] step of a slice: got 0, expected another number");
    } else {
      entries_.push_back(s && is_everything(*s) ? Index(all) : entry);
    }
  }
}

bool BasicIndex::is_whole() const {
  return std::all_of(entries_.begin(), entries_.end(),
                     [](const Index& e) { return std::holds_alternative<All>(e); });
}

std::string BasicIndex::str() const {
  std::string text;
  for (const Index& entry : entries_) {
    if (!text.empty()) text += ", ";
    if (const auto* i = std::get_if<index_t>(&entry)) {
      text += std::to_string(*i);
    } else if (const auto* s = std::get_if<Slice>(&entry)) {
      text += text_of_slice(*s);
    } else {
      text += std::holds_alternative<All>(entry) ? ":" : "None";
    }
  }
  return text;
}

template <>
BasicIndex read_value<BasicIndex>(ParameterText& text) {
  std::vector<Index> entries;
  std::size_t rank = 0;
  const auto is_number = [&] {
    return !text.is_at_end() && (text.rest()[0] == '-' || std::isdigit(text.rest()[0]) != 0);
  };
  while (!text.is_at_end() && !text.rest().starts_with(";")) {
    if (!entries.empty()) text.expect(", ");
    if (text.take("None")) {
      entries.emplace_back(newaxis);
      continue;
    }
    ++rank;
    Slice range;
    if (is_number()) range.start = text.integer();
    if (!text.take(":")) {
      if (!range.start) throw FormatError("an entry of an index");
      entries.emplace_back(*range.start);
      continue;
    }
    if (is_number()) range.stop = text.integer();
    if (text.take(":")) range.step = text.integer();
    entries.emplace_back(range);
  }
  return BasicIndex(std::move(entries), rank);
}
Extents BasicIndex::extents(std::span<const index_t> in) const {
  Extents result;
  walk(entries_, [&](const Index& entry, std::size_t axis) {
    if (std::holds_alternative<NewAxis>(entry)) {
      result.push_back(1);
    } else if (const auto* i = std::get_if<index_t>(&entry)) {
      if (in[axis] != kUnknown) check_element(*i, in[axis], axis);
    } else if (const auto* s = std::get_if<Slice>(&entry); s && in[axis] != kUnknown) {
      result.push_back(resolve(*s, in[axis]).count);
    } else {
      result.push_back(s ? kUnknown : in[axis]);
    }
  });
  return result;
}

Layout BasicIndex::layout(const Layout& in) const {
  Layout result;
  result.dtype = in.dtype;
  index_t offset = 0;
  bool is_empty = false;
  walk(entries_, [&](const Index& entry, std::size_t axis) {
    SliceRange range{0, 1, 1};
    if (std::holds_alternative<NewAxis>(entry)) {
      result.extents.push_back(1);
      result.strides.push_back(1);
      return;
    }
    const index_t n = in.extents[axis], stride = in.strides[axis];
    if (const auto* i = std::get_if<index_t>(&entry)) {
      check_element(*i, n, axis);
      offset += (*i < 0 ? *i + n : *i) * stride;
      return;
    }
    const auto* s = std::get_if<Slice>(&entry);
    range = s ? resolve(*s, n) : SliceRange{0, 1, n};
    offset += range.first * stride;
    is_empty = is_empty || range.count == 0;
    result.extents.push_back(range.count);
    result.strides.push_back(range.count > 1 ? range.step * stride : stride);
  });
  // An empty view keeps its offset: behind the last element there may be nothing to point to.
  result.byte_offset = in.byte_offset;
  if (!is_empty) result.byte_offset += offset * static_cast<index_t>(item_size(in.dtype));
  return result;
}

// The region that is shown. An entry whose elements depend on an unknown extent counts as the whole
// axis.
Region BasicIndex::region(std::span<const index_t> in) const {
  std::vector<Region::Range> axes;
  int child_axis = 0;
  walk(entries_, [&](const Index& entry, std::size_t axis) {
    if (std::holds_alternative<NewAxis>(entry)) {
      ++child_axis;
      return;
    }
    const index_t n = in[axis];
    Region::Range range;
    if (const auto* i = std::get_if<index_t>(&entry)) {
      if (*i >= 0 || n != kUnknown) range = {*i < 0 ? *i + n : *i, 1, 1, -1};
      axes.push_back(range);
      return;
    }
    const auto* s = std::get_if<Slice>(&entry);
    if (!s) {
      range.child_axis = child_axis;
    } else if (n != kUnknown) {
      const SliceRange r = resolve(*s, n);
      range = {r.first, r.step, r.count, child_axis};
    } else if (s->step > 0 && s->start.value_or(0) >= 0 && s->stop && *s->stop >= 0) {
      const SliceRange r = resolve(*s, *s->stop);  // of a shorter axis it selects less
      range = {r.first, r.step, r.count, child_axis};
    }
    ++child_axis;
    axes.push_back(range);
  });
  return Region::box(std::move(axes), child_axis);
}

std::optional<std::vector<std::pair<index_t, index_t>>> BasicIndex::widths(
    std::span<const index_t> in) const {
  std::vector<std::pair<index_t, index_t>> result;
  bool is_block = true;
  walk(entries_, [&](const Index& entry, std::size_t axis) {
    if (std::holds_alternative<NewAxis>(entry)) return;
    SliceRange range{0, 1, 1};
    const index_t n = in[axis];
    if (n == kUnknown) {
      is_block = is_block && std::holds_alternative<All>(entry);
      range.count = n;
    } else if (const auto* i = std::get_if<index_t>(&entry)) {
      range.first = *i < 0 ? *i + n : *i;
    } else if (const auto* s = std::get_if<Slice>(&entry)) {
      range = resolve(*s, n);
      is_block = is_block && (range.step == 1 || range.count == 1);
    } else {
      range.count = n;
    }
    result.emplace_back(range.first, n - range.first - range.count);
  });
  if (!is_block) return {};
  return result;
}

Axes BasicIndex::dropped_axes() const {
  Axes result;
  walk(entries_, [&](const Index& entry, std::size_t axis) {
    if (std::holds_alternative<index_t>(entry)) result.push_back(static_cast<index_t>(axis));
  });
  return result;
}

Axes BasicIndex::new_axes() const {
  Axes result;
  index_t position = 0;
  for (const Index& entry : entries_) {
    if (std::holds_alternative<NewAxis>(entry)) result.push_back(position);
    if (!std::holds_alternative<index_t>(entry)) ++position;
  }
  return result;
}

}  // namespace palimpsest::ops
