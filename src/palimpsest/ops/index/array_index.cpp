// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/ops/index/array_index.hpp"

#include "palimpsest/kernels/arrays/index.hpp"
#include "palimpsest/ops/prelude.hpp"

namespace palimpsest::ops {
void check_index_arrays(std::span<const Variable> indices, bool constant, std::string_view who) {
  if (indices.empty()) {
    throw ValueError("[" + std::string(who) + "] got no index array, expected at least one");
  }
  for (const Variable& v : indices) {
    if (v.dtype() != DType::int64 || v.rank() != indices[0].rank()) {
      throw DTypeError("[" + std::string(who) + "] index array: got " + v.type().str() +
                       ", expected int64 of " + std::to_string(indices[0].rank()) + " axes");
    }
    if (constant && !v.is_constant()) {
      throw ValueError("[" + std::string(who) + "] index array: got " + v.str() +
                       ", expected a constant");
    }
  }
}

std::vector<Variable> as_index_arrays(std::span<const Variable> indices, std::string_view who) {
  std::vector<Variable> result;
  for (const Variable& v : indices) {
    if (!is_integer(v.dtype())) {
      throw DTypeError("[" + std::string(who) + "] index array: got " + v.type().str() +
                       ", expected integers");
    }
    result.push_back(astype(v, DType::int64));
  }
  return with_equal_ranks(result);
}

bool are_constant(std::span<const Variable> indices) {
  return std::all_of(indices.begin(), indices.end(),
                     [](const Variable& v) { return v.is_constant(); });
}

Extents points_extents(std::span<const Extents> actual, std::span<const Variable> declared,
                       std::string_view who) {
  const auto is_one = [&](std::size_t i, std::size_t k) {
    return declared[i].type().shape[k] == 1;
  };
  Extents result = actual[0];
  for (std::size_t k = 0; k < result.size(); ++k) {
    std::size_t source = 0;
    while (source + 1 < actual.size() && is_one(source, k)) ++source;
    result[k] = actual[source][k];
    for (std::size_t i = source + 1; i < actual.size(); ++i) {
      if (!is_one(i, k)) result[k] = agreed_extent(result, actual[i], k, who);
    }
  }
  return result;
}

std::string written(const ArrayIndex& value) {
  return parameter("axes", value.axes) + ", " +
         parameter("position", static_cast<index_t>(value.position)) + ", " +
         parameter("constant_indices", value.constant ? 1 : 0) + (value.wraps ? ", wraps" : "");
}

void read(ParameterText& text, ArrayIndex& value) {
  text.expect("axes=");
  value.axes = text.integers();
  check_axes(value.axes);
  text.expect(", position=");
  read(text, value.position);
  text.expect(", constant_indices=");
  value.constant = text.flag();
  value.wraps = text.take(", wraps");
}

void ArrayIndex::check(const Variable& x, std::span<const Variable> indices,
                       std::string_view who) const {
  check_index_arrays(indices, constant, who);
  if (indices.size() != axes.size()) {
    throw ValueError("[" + std::string(who) + "] number of index arrays: got " +
                     std::to_string(indices.size()) + ", expected one per axis of " +
                     to_string(axes));
  }
  normalize_axes(axes, x.rank(), who);
  if (wraps && indices[0].rank() > 0) {
    throw ValueError("[" + std::string(who) + "] index array: got " + indices[0].type().str() +
                     ", expected a number that wraps around");
  }
  check_constants(indices, x.type().shape, who);
}

void ArrayIndex::check_constants(std::span<const Variable> indices, std::span<const index_t> x,
                                 std::string_view who) const {
  for (std::size_t d = 0; d < indices.size(); ++d) {
    const index_t size = x[static_cast<std::size_t>(axes[d])];
    if (wraps && size == 0) {
      throw ValueError("[" + std::string(who) + "] got an axis without elements");
    }
    if (!wraps && indices[d].is_constant() && size != kUnknown) {
      check_index_range(indices[d].constant_value().view_of(), size, who);
    }
  }
}

Extents ArrayIndex::extents(std::span<const index_t> x, std::span<const Extents> indices,
                            std::span<const Variable> declared, std::string_view who) const {
  const Extents points = points_extents(indices, declared, who);
  Extents result;
  const auto add_points = [&] {
    for (index_t extent : points) result.push_back(extent);
  };
  std::size_t n_kept = 0;
  for (std::size_t k = 0; k < x.size(); ++k) {
    if (contains(axes, k)) continue;
    if (n_kept++ == position) add_points();
    result.push_back(x[k]);
  }
  if (n_kept == position) add_points();
  if (result.size() > kMaxRank || n_kept < position) {
    throw ShapeError("[" + std::string(who) + "] number of axes of the result: got " +
                     std::to_string(result.size()) + ", expected at most " +
                     std::to_string(kMaxRank));
  }
  return result;
}

Positions::Positions(const ArrayIndex& index, std::span<const ConstView> given,
                     std::span<const index_t> extents)
    : views_(given) {
  if (!index.wraps) return;
  for (std::size_t d = 0; d < given.size(); ++d) {
    const index_t n = extents[static_cast<std::size_t>(index.axes[d])];
    const index_t rest = *static_cast<const index_t*>(given[d].data) % n;
    wrapped_[d] = rest < 0 ? rest + n : rest;
    wrapped_views_.push_back({&wrapped_[d], DType::int64, {}, {}});
  }
  views_ = {wrapped_views_.begin(), wrapped_views_.size()};
}

// -- views -------------------------------------------------------------------------------------

PointViews::PointViews(const ArrayIndex& index, std::span<const ConstView> indices)
    : index_(index), given_(indices), n_points_axes_(indices[0].rank()) {}

template <class View>
View PointViews::reordered(const View& view, bool is_array, Order& order) {
  const auto goes_last = [&](std::size_t k) {
    return is_array ? contains(index_.axes, k)
                    : k >= index_.position && k < index_.position + n_points_axes_;
  };
  for (const bool last : {false, true}) {
    for (std::size_t k = 0; k < view.extents.size(); ++k) {
      if (goes_last(k) != last) continue;
      order.extents.push_back(view.extents[k]);
      order.strides.push_back(view.strides[k]);
    }
  }
  View result = view;
  result.extents = order.extents;
  result.strides = order.strides;
  if (is_array) return result;
  const std::span<const index_t> points =
      std::span<const index_t>(order.extents).last(n_points_axes_);
  index_strides_.resize(given_.size() * n_points_axes_);
  for (std::size_t d = 0; d < given_.size(); ++d) {
    indices_.push_back(
        stretched(given_[d], points, {index_strides_.data() + d * n_points_axes_, n_points_axes_}));
  }
  return result;
}

ConstView PointViews::of_array(const ConstView& x) { return reordered(x, true, array_); }
MutableView PointViews::of_array(const MutableView& x) { return reordered(x, true, array_); }
ConstView PointViews::of_values(const ConstView& v) { return reordered(v, false, values_); }
MutableView PointViews::of_values(const MutableView& v) { return reordered(v, false, values_); }

}  // namespace palimpsest::ops
