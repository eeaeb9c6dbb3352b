// SPDX-License-Identifier: Apache-2.0
// Internal: which elements of a line the taps of a stencil read.
#pragma once

#include <algorithm>
#include <cassert>

#include "palimpsest/kernels/arrays/stencil.hpp"

namespace palimpsest {

/// A line of `wide` elements and the line of `narrow` elements that a stencil computes from it.
class StencilLine {
 public:
  StencilLine(const Stencil& stencil, index_t narrow, index_t wide, index_t start)
      : stencil_(&stencil), count_(narrow), wide_(wide), offset_(offset_of(stencil, wide, start)) {
    // Results with all taps inside: 0 <= step i + offset + m < wide.
    const index_t reach = offset_ + static_cast<index_t>(stencil.taps.size()) - 1;
    inner_begin_ = offset_ < 0 ? (-offset_ + stencil.step - 1) / stencil.step : 0;
    inner_end_ = reach < wide ? (wide - 1 - reach) / stencil.step + 1 : 0;
    inner_begin_ = std::min(inner_begin_, narrow);
    inner_end_ = std::clamp(inner_end_, inner_begin_, narrow);
  }

  const Stencil& stencil() const { return *stencil_; }
  index_t count() const { return count_; }
  index_t wide() const { return wide_; }
  /// Tap m of result i reads element step i + offset + m, if that exists.
  index_t offset() const { return offset_; }
  index_t inner_begin() const { return inner_begin_; }
  index_t inner_end() const { return inner_end_; }

  /// Calls body(m, j) for every tap m of result i that reads an element j.
  template <class Body>
  void for_taps(index_t i, Body&& body) const {
    const index_t first = stencil_->step * i + offset_;
    for (std::size_t m = 0; m < stencil_->taps.size(); ++m) {
      const index_t j = within(first + static_cast<index_t>(m));
      if (j >= 0) body(m, j);
    }
  }

 private:
  // With a start: the equivalent offset with the fewest results that wrap around.
  static index_t offset_of(const Stencil& stencil, index_t n, index_t start) {
    if (start == 0 || n == 0) return stencil.offset;
    assert(stencil.edge == StencilEdge::periodic);
    const index_t offset = ((stencil.offset + start % n) % n + n) % n;
    return offset > n / 2 ? offset - n : offset;
  }

  // Element j after applying the edge rule; -1: none.
  index_t within(index_t j) const {
    if (j >= 0 && j < wide_) return j;
    switch (stencil_->edge) {
      case StencilEdge::periodic:
        return (j % wide_ + wide_) % wide_;
      case StencilEdge::nearest:
        return j < 0 ? 0 : wide_ - 1;
      case StencilEdge::nearest_then_zero:
        if (j < 0) return 0;
        break;
      case StencilEdge::zero_then_nearest:
        if (j >= wide_) return wide_ - 1;
        break;
      case StencilEdge::zero:
        break;
    }
    return -1;
  }

  const Stencil* stencil_;
  index_t count_, wide_, offset_;
  index_t inner_begin_ = 0, inner_end_ = 0;
};

}  // namespace palimpsest
