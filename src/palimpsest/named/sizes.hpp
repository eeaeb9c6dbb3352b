// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <initializer_list>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "palimpsest/base/api.hpp"
#include "palimpsest/base/shape.hpp"
#include "palimpsest/named/dims.hpp"

namespace PALIMPSEST_API palimpsest {

/// Sizes of dimensions. The extents of an ellipsis are kept, in order, under the key `...`.
class DimSizes {
 public:
  using value_type = std::pair<const NamedDimension, index_t>;

  DimSizes() = default;
  DimSizes(std::initializer_list<value_type> sizes);
  DimSizes(const std::map<NamedDimension, index_t>& sizes);

  bool empty() const { return entries_.empty(); }
  bool contains(const NamedDimension& d) const { return entries_.contains(d); }
  /// The size of one dimension; none for an unknown one and for `...`.
  std::optional<index_t> size(const NamedDimension& d) const;
  /// A number for a dimension, any number for `...`. ShapeError "is unknown".
  const Extents& operator[](const NamedDimension& d) const;
  /// All, ordered by dimension.
  const std::map<NamedDimension, Extents>& entries() const { return entries_; }

  /// Adds or changes one size. ValueError for `...`, which has set_ellipsis, and for `()`.
  void set(const NamedDimension& d, index_t size);
  void set_ellipsis(const Extents& extents);

  /// `{A: 3, ...: (4, 5)}`.
  std::string str() const;

  friend bool operator==(const DimSizes& a, const DimSizes& b) = default;

 private:
  std::map<NamedDimension, Extents> entries_;
};

/// Matches names with the extents of an array: the result holds the known sizes and those found.
/// An anonymous any takes one axis and is not recorded.
/// Write palimpsest::bind where `who` is a std::string: std::bind would fit better.
/// Errors   ShapeErrors starting with `[who]`: "expects" for another number of axes; "size of dim"
///          where a name has two sizes or a size differs from a known one; "Cannot infer" for two
///          ellipses
DimSizes bind(const Dims& dims, const Extents& extents, const DimSizes& known = {},
              std::string_view who = "bind");

/// The extents of an array with these dimensions: the inverse of bind.
/// Errors   ShapeError "is unknown" naming the dimension; an ellipsis without a size is empty
Extents extents_of(const Dims& dims, const DimSizes& sizes, std::string_view who = "extents_of");

/// The axis of the first d, counted from the front if d precedes the ellipsis, negative if it
/// follows.
/// Errors   ShapeError without such a dimension; "Cannot infer" between two ellipses and for `...`
index_t axis_of(const Dims& dims, const NamedDimension& d, std::string_view who = "axis_of");

}  // namespace palimpsest
