// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <optional>

#include "palimpsest/memory/file_mappings.hpp"
#include "palimpsest/tensor/bounded_sum.hpp"
#include "palimpsest/tensor/reach.hpp"
#include "palimpsest/tensor/tensor.hpp"

// Addresses and reaches of existing memory are far below 2^62, so differences and sums of two of
// them fit 63 bits. BoundedSum checks larger ones.
namespace palimpsest {
namespace {

// The bytes of a tensor: from `low` on, one byte for every sum of multiples of the steps up to
// their bounds. Axes whose elements continue those of the next axis are joined with it, so that a
// dense tensor has a single term. The bytes of an element are the last axis.
struct ByteSet {
  struct Term {
    index_t step, bound;
  };

  ByteSet(const Tensor& t, index_t start) {
    const auto item = static_cast<index_t>(item_size(t.dtype()));
    const Extents& shape = t.shape();
    const Strides& strides = t.strides();
    if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return;
    is_empty = false;
    low = start + t.offset() * item;
    high = low + item;
    Term run{1, item};
    for (std::size_t axis = shape.size(); axis-- > 0;) {
      const index_t n = shape[axis];
      // Strides of axes of one element mean nothing, and their products need not fit.
      if (n == 1 || strides[axis] == 0) continue;
      const index_t step = strides[axis] * item;
      (step < 0 ? low : high) += (n - 1) * step;
      if (std::abs(step) == run.step * run.bound) {
        run.bound *= n;
      } else {
        push(run);
        run = {std::abs(step), n};
      }
    }
    push(run);
  }

  // Runs count elements, terms start from 0.
  void push(const Term& run) { terms[n_terms++] = {run.step, run.bound - 1}; }
  bool meets(const ByteSet& other) const {
    return !is_empty && !other.is_empty && low < other.high && other.low < high;
  }
  bool has_no_gap() const { return n_terms == 1; }
  // True if it has a byte at an end of `other`, which it meets.
  bool has_an_end_of(const ByteSet& other) const { return low <= other.low || other.high <= high; }
  void add_to(BoundedSum& sum) const {
    for (std::size_t k = n_terms; k-- > 0;) sum.add(terms[k].step, terms[k].bound);
  }

  index_t low, high;  // bytes [low, high)
  bool is_empty = true;
  std::size_t n_terms = 0;
  std::array<Term, kMaxRank + 1> terms;
};

// Start addresses of both storages on one scale; empty if the storages cannot meet. Lazy clones
// never alias, although they may show the same bytes. Beside them only foreign or mapped memory can
// lie in two storages: at one address, or at one place of a file or segment that is mapped twice.
struct Starts {
  index_t a, b;
};
bool are_reached_alike(Device a, Device b) { return a == b || (a.is_host() && b.is_host()); }
std::optional<Starts> common_scale(const Storage& a, const Storage& b) {
  if (a.is(b)) return Starts{0, 0};
  if (a.shares_data(b) || !are_reached_alike(a.device(), b.device())) return std::nullopt;
  const auto place = [](const Storage& s) { return mapped_place(s.data(), s.nbytes()); };
  if (const auto x = place(a)) {
    const auto y = place(b);
    if (y && x->is_in_same_file(*y)) return Starts{x->offset, y->offset};
  }
  const auto address = [](const Storage& s) {
    return static_cast<index_t>(reinterpret_cast<std::uintptr_t>(s.data()));
  };
  return Starts{address(a), address(b)};
}

struct Axis {
  index_t step, extent;
};

}  // namespace

bool may_reach(const Tensor& t, const Storage& storage) {
  const std::optional<Starts> starts = common_scale(t.storage(), storage);
  if (!starts) return false;
  const ReachedRange range = reached_range(t.shape(), t.strides());
  const auto item = static_cast<index_t>(item_size(t.dtype()));
  const index_t first = starts->a + t.offset() * item;
  const index_t end = starts->b + static_cast<index_t>(storage.nbytes());
  return range.low < range.high && first + range.low * item < end &&
         starts->b < first + range.high * item;
}

bool may_share_memory(const Tensor& a, const Tensor& b) {
  const std::optional<Starts> starts = common_scale(a.storage(), b.storage());
  return starts && ByteSet(a, starts->a).meets(ByteSet(b, starts->b));
}

// A byte of a is low_a + S and one of b is high_b - 1 - T, where S and T are bounded sums: they
// meet where S + T = high_b - 1 - low_a.
bool overlaps(const Tensor& a, const Tensor& b, bool* exact) {
  if (exact != nullptr) *exact = true;
  const std::optional<Starts> starts = common_scale(a.storage(), b.storage());
  if (!starts) return false;
  const ByteSet x(a, starts->a), y(b, starts->b);
  if (!x.meets(y)) return false;
  // Both have the bytes at the ends of their ranges, and a set without gaps has all bytes between.
  if (x.low == y.low || x.high == y.high) return true;
  if (x.has_no_gap() && x.has_an_end_of(y)) return true;
  if (y.has_no_gap() && y.has_an_end_of(x)) return true;
  BoundedSum sum;
  x.add_to(sum);
  y.add_to(sum);
  const BoundedSum::Answer answer = sum.solve(y.high - 1 - x.low);
  if (answer == BoundedSum::Answer::unknown && exact != nullptr) *exact = false;
  return answer != BoundedSum::Answer::no;
}

// Two different indices hit one element iff the sum of step_k d_k is 0 for some differences d that
// are not all 0. The first d that is not 0 may be taken positive: one bounded sum for each first.
bool has_internal_overlap(const Tensor& t) {
  SmallVector<Axis, kMaxRank> axes;
  if (t.numel() == 0) return false;
  for (std::size_t axis = 0; axis < t.rank(); ++axis) {
    const index_t extent = t.shape()[axis];
    if (extent == 1) continue;
    if (t.strides()[axis] == 0) return true;
    axes.push_back({std::abs(t.strides()[axis]), extent});
  }
  std::sort(axes.begin(), axes.end(), [](const Axis& a, const Axis& b) { return a.step > b.step; });
  index_t reach = 0;
  bool is_nested = true;
  for (std::size_t k = axes.size(); k-- > 0;) {
    is_nested = is_nested && axes[k].step > reach;
    reach = checked_add(reach, checked_multiply(axes[k].step, axes[k].extent - 1));
  }
  if (is_nested) return false;
  for (std::size_t first = 0; first < axes.size(); ++first) {
    BoundedSum sum;
    sum.add(axes[first].step, axes[first].extent - 2);
    index_t target = -axes[first].step;
    for (std::size_t k = first + 1; k < axes.size(); ++k) {
      sum.add(axes[k].step, 2 * (axes[k].extent - 1));
      target += axes[k].step * (axes[k].extent - 1);
    }
    if (sum.solve(target) != BoundedSum::Answer::no) return true;
  }
  return false;
}

}  // namespace palimpsest
