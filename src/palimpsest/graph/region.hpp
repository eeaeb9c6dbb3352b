// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "palimpsest/base/api.hpp"
#include "palimpsest/graph/type.hpp"

namespace PALIMPSEST_API palimpsest {

/// Position of an array in the memory of another one.
struct Layout;

/// Map from the elements of a child array to elements of its parent, as a set of bytes of the
/// parent. Maps along a chain of views can be composed. Offsets refer to a dense row-major
/// parent: two sets that are disjoint there are disjoint in every layout without overlapping
/// elements.
///
/// Contract  never smaller than the truth: where extents are unknown it grows up to the whole
/// Cost      O(axes); meets() of byte lattices is a bounded search and says yes at its bound
class Region {
 public:
  /// The child's elements along one axis of the parent: `start + k step` for k < count.
  struct Range {
    index_t start = 0, step = 1;
    index_t count = kUnknown;  // kUnknown: the whole axis
    int child_axis = -1;       // the axis of the child along which k runs; -1 if irrelevant
    friend bool operator==(const Range&, const Range&) = default;
  };
  /// An axis of the child: bytes in the parent from one element to the next.
  struct Stride {
    index_t extent = 1, bytes = 0;
    friend bool operator==(const Stride&, const Stride&) = default;
  };

  /// The child is the parent, element by element.
  static Region whole() { return Region(Kind::whole); }
  /// Anything: counts as the whole parent, and so does every part of the child.
  static Region unknown() {
    Region r(Kind::unknown);
    r.is_bound_ = true;
    return r;
  }
  /// An index box: one range per axis of the parent.
  static Region box(std::vector<Range> axes, int child_rank);
  /// A byte lattice: one stride per axis of the child, whose items have `width` bytes.
  static Region lattice(index_t byte_offset, std::vector<Stride> axes, index_t width);
  /// The lattice of an array that lies in a dense parent as the layout says.
  static Region of(const Layout& in_dense_parent);

  bool is_whole() const { return kind_ == Kind::whole; }
  bool is_unknown() const { return kind_ == Kind::unknown; }
  /// False: only a bound is known. The child lies somewhere in it, and so does every part of it.
  bool is_exact() const { return !is_bound_; }
  bool is_box() const { return kind_ == Kind::box; }
  /// True if it shows no element.
  bool is_empty() const;

  /// This region of a middle array, which is the region `middle` of a parent: the region of the
  /// parent. `parent` is the parent's type.
  Region within(const Region& middle, const TensorType& parent) const;
  /// True if two regions of one parent have a byte in common.
  bool meets(const Region& other, const TensorType& parent) const;
  /// True only if every byte of `other` is one of this region; false may be wrong.
  bool covers(const Region& other) const;

  static constexpr std::size_t kBytes = static_cast<std::size_t>(-1);
  /// The first and the last position that it may show: along an axis of the parent, for a box; of
  /// the parent's bytes, for a lattice and the axis kBytes. Nothing: any.
  std::optional<std::pair<index_t, index_t>> bounds(std::size_t axis) const;

  /// `whole`, `unknown`, `[0:3, :]`, `bytes 8 + (3 x 16, ) of 8`.
  std::string str() const;
  friend bool operator==(const Region&, const Region&) = default;

 private:
  enum class Kind { whole, unknown, box, lattice };
  explicit Region(Kind kind) : kind_(kind) {}
  std::optional<Region> as_lattice(std::span<const index_t> parent, index_t item) const;
  Region composed(const Region& middle, const TensorType& parent) const;
  Region box_within_box(const Region& middle) const;
  Region lattice_within_lattice(const Region& middle) const;

  Kind kind_ = Kind::whole;
  bool is_bound_ = false;
  std::vector<Range> ranges_;  // of a box
  int child_rank_ = 0;         // of a box
  index_t offset_ = 0;         // of a lattice, like the fields below
  std::vector<Stride> strides_;
  index_t width_ = 1;
};

}  // namespace palimpsest
