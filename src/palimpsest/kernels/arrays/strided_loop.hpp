// SPDX-License-Identifier: Apache-2.0
// Internal: nested loops over several operands at once.
#pragma once

#include <algorithm>
#include <array>
#include <cstdlib>
#include <span>
#include <utility>

#include "palimpsest/base/shape.hpp"

namespace palimpsest {

/// An axis of a loop over N operands; steps in bytes.
template <int N>
struct LoopAxis {
  index_t extent = 1;
  std::array<index_t, N> steps;
};

/// Nested axes over up to N operands, outermost first. Owns no memory.
template <int N>
struct StridedLoop {
  int n_operands = 0;
  int rank = 0;
  std::array<LoopAxis<N>, kMaxRank> axes;
  std::array<std::byte*, N> data;

  /// All operands must have these extents.
  void set_extents(std::span<const index_t> extents) {
    rank = static_cast<int>(extents.size());
    for (int i = 0; i < rank; ++i) at(i).extent = extents[static_cast<std::size_t>(i)];
  }
  /// `strides` in elements, one per axis.
  void add_operand(const void* pointer, std::span<const index_t> strides, std::size_t item) {
    const auto operand = static_cast<std::size_t>(n_operands++);
    data[operand] = static_cast<std::byte*>(const_cast<void*>(pointer));
    for (int i = 0; i < rank; ++i) {
      at(i).steps[operand] = strides[static_cast<std::size_t>(i)] * static_cast<index_t>(item);
    }
  }

  LoopAxis<N>& at(int axis) { return axes[static_cast<std::size_t>(axis)]; }
  const LoopAxis<N>& at(int axis) const { return axes[static_cast<std::size_t>(axis)]; }
  index_t step(int operand, int axis) const {
    return at(axis).steps[static_cast<std::size_t>(operand)];
  }
  index_t count() const {
    index_t n = 1;
    for (int i = 0; i < rank; ++i) n *= at(i).extent;
    return n;
  }

  /// Drops axes of one element.
  void squeeze() {
    int kept = 0;
    for (int i = 0; i < rank; ++i) {
      if (at(i).extent != 1) copy_axis(i, kept++);
    }
    rank = kept;
  }
  /// Turns the direction of every axis along which `operand` runs backwards.
  void flip_to(int operand) {
    for (int i = 0; i < rank; ++i) {
      if (step(operand, i) >= 0) continue;
      for (int k = 0; k < n_operands; ++k) {
        index_t& s = at(i).steps[static_cast<std::size_t>(k)];
        data[static_cast<std::size_t>(k)] += (at(i).extent - 1) * s;
        s = -s;
      }
    }
  }
  /// Sorts axes [first, last) by descending `key(position)`; stable.
  template <class Key>
  void sort(int first, int last, Key&& key) {
    for (int i = first + 1; i < last; ++i) {
      for (int j = i; j > first && key(j - 1) < key(j); --j) swap_axes(j - 1, j);
    }
  }
  /// Merges neighbouring axes in [first, last) where all operands have even steps; returns the new
  /// end of the range.
  int merge(int first, int last) {
    int kept = first;
    for (int i = first; i < last; ++i) {
      if (kept > first && is_even(at(kept - 1), at(i))) {
        const index_t extent = at(kept - 1).extent;
        copy_axis(i, kept - 1);
        at(kept - 1).extent *= extent;
      } else {
        copy_axis(i, kept++);
      }
    }
    for (int i = last; i < rank; ++i) copy_axis(i, kept + i - last);
    rank -= last - kept;
    return kept;
  }
  /// Offset of an operand for a row-major index over axes [first, last).
  index_t offset(int operand, int first, int last, index_t flat) const {
    index_t bytes = 0;
    for (int i = last - 1; i > first; --i) {
      bytes += flat % at(i).extent * step(operand, i);
      flat /= at(i).extent;
    }
    return last > first ? bytes + flat * step(operand, first) : bytes;
  }

 private:
  // Copies only the operands in use.
  void copy_axis(int from, int to) {
    if (from == to) return;
    at(to).extent = at(from).extent;
    std::copy_n(at(from).steps.begin(), n_operands, at(to).steps.begin());
  }
  void swap_axes(int a, int b) {
    std::swap(at(a).extent, at(b).extent);
    std::swap_ranges(at(a).steps.begin(), at(a).steps.begin() + n_operands, at(b).steps.begin());
  }
  bool is_even(const LoopAxis<N>& outer, const LoopAxis<N>& inner) const {
    for (int k = 0; k < n_operands; ++k) {
      const auto operand = static_cast<std::size_t>(k);
      if (outer.steps[operand] != inner.steps[operand] * inner.extent) return false;
    }
    return true;
  }
};

}  // namespace palimpsest
