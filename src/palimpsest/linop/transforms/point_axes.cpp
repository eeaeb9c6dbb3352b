// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/linop/transforms/point_axes.hpp"

#include <cmath>

#include "palimpsest/linop/core/prelude.hpp"

namespace palimpsest {

Extents point_extents(const NamedLinop& A) {
  const std::span<const index_t> shape = A.param("locs").shape();
  return shape.first(shape.size() - 1);
}

std::optional<index_t> grid_to_points_size(const NamedLinop& A, const ND& d) {
  const Dims& inputs = A.is_flipped() ? A.oshape() : A.ishape();
  const Dims& outputs = A.is_flipped() ? A.ishape() : A.oshape();
  const Extents sizes = A.attr("grid_size").as_integers(), points = point_extents(A);
  if (const auto i = find_axis(inputs, d, last_axes(sizes.size()))) return sizes[*i];
  if (const auto i = find_axis(outputs, d, last_axes(points.size()))) return points[*i];
  return std::nullopt;
}

NamedLinop grid_to_points_split(const NamedLinop& A, const Tile& tile) {
  const Axes grid = last_axes(A.attr("grid_size").as_integers().size());
  const Axes points = last_axes(point_extents(A).size());
  Parameter locs = A.param("locs");
  for (const auto& [d, range] : tile) {
    if (find_axis(A.ishape(), d, grid)) refuse_split(A, d, "any point may need any part of it");
    const auto axis = find_axis(A.oshape(), d, points);
    if (axis) locs = locs.narrow(*axis, *range.start, *range.stop - *range.start);
  }
  if (locs.is(A.param("locs"))) return split_unchanged(A, tile);
  LinopData data = tile_data(A, tile);
  put_param(data, "locs", std::move(locs));
  return from_arguments(std::move(data));
}

void check_locs(const NamedLinop& A) {
  const TensorType& type = A.param("locs").type();
  const Extents sizes = A.attr("grid_size").as_integers();
  const auto n = static_cast<index_t>(sizes.size());
  if (n < 1 || n > 3 || type.rank() == 0 || type.shape[type.rank() - 1] != n) {
    throw ValueError(who(A) + "locs: got " + type.str() + " for a grid " + to_string(sizes) +
                     ", expected 1, 2 or 3 coordinates along the last axis, one per size");
  }
  if (!is_floating(type.dtype)) {
    throw DTypeError(who(A) + "locs: got " + type.str() + ", expected float32 or float64");
  }
  const Tensor dense = A.param("locs").value().contiguous().to(DType::float64);
  const double* values = dense.numel() > 0 ? dense.data<double>() : nullptr;
  for (index_t i = 0; i < dense.numel(); ++i) {
    if (std::isfinite(values[i])) continue;
    throw ValueError(who(A) + "locs: point " + std::to_string(i / n) +
                     " is not finite: expected finite numbers");
  }
}

Dims point_names(const std::optional<Dims>& names, const TensorType& locs, std::string_view who) {
  const std::size_t rank = locs.rank() == 0 ? 0 : locs.rank() - 1;
  const Dims result = names.value_or(rank == 0   ? Dims()
                                     : rank == 1 ? Dims("K")
                                                 : numbered("K", static_cast<int>(rank)));
  if (result.size() == rank && !result.has_ellipsis()) return result;
  throw ValueError("[" + std::string(who) + "] names of the points: got " + result.str() +
                   ", expected " + std::to_string(rank) + ", one per axis of locs but the last");
}

Dims grid_names(const std::optional<Dims>& names, std::size_t n, std::string_view who) {
  const Dims result = names.value_or(std::vector<ND>(n, ND::any()));
  if (result.size() == n && !result.has_ellipsis()) return result;
  throw ValueError("[" + std::string(who) + "] names of the grid: got " + result.str() +
                   ", expected " + std::to_string(n) + ", one per size");
}

Attribute number_list(const PerAxis& values) {
  Attribute::List list;
  for (const double value : values.values) list.emplace_back(value);
  return Attribute(std::move(list));
}

PerAxis per_axis(const Attribute& list) {
  SmallVector<double, 3> values;
  for (const Attribute& value : list.as_list()) values.push_back(value.as_real());
  return PerAxis(std::span<const double>(values));
}

}  // namespace palimpsest
