// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "palimpsest/graph/op.hpp"
#include "palimpsest/ops/parameter_text.hpp"

namespace palimpsest::ops {

/// Points of an array x, given by one index array per indexed axis. These arrays are int64, of one
/// rank, and broadcast against each other along axes known to be 1. The result has the axes of x
/// that are not indexed, in order, with the axes of the points at `position` among them.
struct ArrayIndex {
  Axes axes;                 // of x, sorted, counted from the front
  std::size_t position = 0;  // of the points among the axes of the result
  /// The index arrays are constants, checked when shapes are known; else each run checks them.
  bool constant = false;
  /// The index arrays have no axes and count modulo the extents, so that no run can fail.
  bool wraps = false;

  /// Errors  ValueError: no index array, one outside its axis; DTypeError, ShapeError
  void check(const Variable& x, std::span<const Variable> indices, std::string_view who) const;
  /// ValueError: a constant index outside its axis, if that is known.
  void check_constants(std::span<const Variable> indices, std::span<const index_t> x,
                       std::string_view who) const;
  /// Extents of the result. `declared` are the index arrays as the graph knows them.
  Extents extents(std::span<const index_t> x, std::span<const Extents> indices,
                  std::span<const Variable> declared, std::string_view who) const;
};

std::string written(const ArrayIndex& value);
void read(ParameterText& text, ArrayIndex& value);

/// The common extents of index arrays; those that are declared 1 broadcast.
Extents points_extents(std::span<const Extents> actual, std::span<const Variable> declared,
                       std::string_view who);
/// ValueError, DTypeError unless these are int64 of one rank, constants if asked for.
void check_index_arrays(std::span<const Variable> indices, bool constant, std::string_view who);
/// The index arrays of one rank, as int64; constants stay constants.
std::vector<Variable> as_index_arrays(std::span<const Variable> indices, std::string_view who);
bool are_constant(std::span<const Variable> indices);

/// The index arrays of a run: as given, or wrapped around the extents of the array.
class Positions {
 public:
  Positions(const ArrayIndex& index, std::span<const ConstView> given,
            std::span<const index_t> extents);
  Positions(const Positions&) = delete;
  Positions& operator=(const Positions&) = delete;
  std::span<const ConstView> views() const { return views_; }

 private:
  std::array<index_t, kMaxRank> wrapped_;
  SmallVector<ConstView, 4> wrapped_views_;
  std::span<const ConstView> views_;
};

/// The views that the kernels want: in x the indexed axes are the last ones, in the values the
/// points, and the index arrays are stretched to the points.
class PointViews {
 public:
  PointViews(const ArrayIndex& index, std::span<const ConstView> indices);
  ConstView of_array(const ConstView& x);
  MutableView of_array(const MutableView& x);
  ConstView of_values(const ConstView& values);
  MutableView of_values(const MutableView& values);
  /// After of_values.
  std::span<const ConstView> indices() const { return {indices_.begin(), indices_.size()}; }

 private:
  struct Order {
    Extents extents;
    Strides strides;
  };
  template <class View>
  View reordered(const View& view, bool is_array, Order& order);

  const ArrayIndex& index_;
  std::span<const ConstView> given_;
  std::size_t n_points_axes_;
  Order array_, values_;
  SmallVector<ConstView, 4> indices_;
  SmallVector<index_t, 16> index_strides_;
};

}  // namespace palimpsest::ops
