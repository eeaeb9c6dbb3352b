// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/linop/transforms/sampling.hpp"

#include <algorithm>

#include "palimpsest/linop/core/prelude.hpp"
#include "palimpsest/linop/operators/diagonal_factors.hpp"
#include "palimpsest/ops/create/create.hpp"

namespace palimpsest {
namespace {

// Up to here a float32 counts exactly.
constexpr index_t kLargestFloat32Count = index_t{1} << 24;

std::string key_of_index(std::size_t i) { return "index" + std::to_string(i); }

std::vector<Variable> indices_of_points(const NamedLinop& A) {
  std::vector<Variable> result;
  for (const auto& [name, p] : A.params()) result.push_back(p.var());
  return result;
}

Extents common_extents(const NamedLinop& A) {
  Extents points;
  for (const auto& [name, p] : A.params()) {
    points = broadcast_extents(points, p.shape(), path_of(A));
  }
  return points;
}

Variable sampling_fn(const NamedLinop& A, const Variable& x) {
  return ops::gather(x, indices_of_points(A));
}

Variable sampling_adj_fn(const NamedLinop& A, const Variable& y) {
  return ops::scatter_add(y, indices_of_points(A), A.attr("input_size").as_integers());
}

// Adds values over the points up on the grid: a diagonal on the input.
NamedLinop diagonal_of(const NamedLinop& A, const Variable& values, bool adapts,
                       bool is_trainable) {
  const Extents sizes = A.attr("input_size").as_integers();
  const Variable grid = ops::scatter_add(values, indices_of_points(A), sizes);
  return make_diagonal(
      {NamedShape(A.ishape()),
       {{Parameter::derived(grid).as_trainable(is_trainable), last_axes(sizes.size()), ""}},
       adapts});
}

// The weights of a Diagonal over the sampled dimensions alone, one per point; undefined for others.
Variable point_weights(const NamedLinop& inner, const Extents& points) {
  if (&inner.type() != &linop_types::diagonal() || inner.attr("adapts").as_bool()) return {};
  const index_t rank = static_cast<index_t>(inner.ishape().size());
  const index_t n = static_cast<index_t>(points.size());
  Variable product;
  for (const DiagonalFactor& factor : diagonal_factors(inner)) {
    Axes axes = factor.axes;
    for (index_t& axis : axes) {
      if (axis >= 0 && !inner.ishape().has_ellipsis()) axis -= rank;
      if (axis >= 0 || axis < -n) return {};
    }
    const Variable values =
        put_in_place(factor_values(factor, inner.is_flipped()), axes, points.size());
    product = product.defined() ? product * values : values;
  }
  if (product.rank() < points.size()) {
    Axes leading;
    for (std::size_t k = product.rank(); k < points.size(); ++k) {
      leading.push_back(static_cast<index_t>(leading.size()));
    }
    product = ops::expand_dims(product, leading);
  }
  return ops::broadcast_to(product, points);
}

NamedLinop sampling_normal(const NamedLinop& A, const NamedLinop* inner) {
  if (A.is_flipped()) return {};
  const Extents points = common_extents(A);
  if (inner) {
    const Variable weights = point_weights(*inner, points);
    return weights.defined() ? diagonal_of(A, weights, false, has_trainable(*inner)) : NamedLinop();
  }
  const bool fits = element_count(points) <= kLargestFloat32Count;
  const DType dtype = fits ? DType::float32 : DType::float64;
  const Variable one = constant(Tensor::ones({}, dtype, A.params()[0].second.type().device));
  return diagonal_of(A, ops::full(points, one), true, false);
}

std::optional<index_t> sampling_size(const NamedLinop& A, const ND& d) {
  const Dims& inputs = A.is_flipped() ? A.oshape() : A.ishape();
  const Dims& outputs = A.is_flipped() ? A.ishape() : A.oshape();
  const Extents sizes = A.attr("input_size").as_integers(), points = common_extents(A);
  if (const auto i = find_axis(inputs, d, last_axes(sizes.size()))) return sizes[*i];
  if (const auto i = find_axis(outputs, d, last_axes(points.size()))) return points[*i];
  return std::nullopt;
}

NamedLinop sampling_split(const NamedLinop& A, const Tile& tile) {
  const std::size_t rank = common_extents(A).size();
  const Axes grid = last_axes(A.attr("input_size").as_integers().size()), points = last_axes(rank);
  LinopData data = tile_data(A, tile);
  for (const auto& [d, range] : tile) {
    if (find_axis(A.ishape(), d, grid)) refuse_split(A, d, "any point may need any part of it");
    const auto axis = find_axis(A.oshape(), d, points);
    if (!axis) continue;
    for (auto& [name, p] : data.params) {
      // The index arrays broadcast against each other, aligned at their last axes.
      const std::size_t missing = rank - p.shape().size();
      if (*axis < missing || p.shape()[*axis - missing] == 1) continue;
      p = p.narrow(*axis - missing, *range.start, *range.stop - *range.start);
    }
  }
  return from_data(std::move(data));
}

void check_range(const NamedLinop& A, const std::string& name, index_t size) {
  const Parameter& p = A.param(name);
  if (p.dtype() != DType::int64) {
    throw DTypeError(who(A) + name + ": got " + p.type().str() + ", expected int64");
  }
  const Tensor values = p.value().contiguous();
  const index_t* begin = values.data<index_t>();
  const index_t* end = begin + values.numel();
  const index_t* wrong = std::find_if(begin, end, [&](index_t i) { return i < 0 || i >= size; });
  if (wrong == end) return;
  throw ValueError(who(A) + name + ": index out of range: got " + std::to_string(*wrong) +
                   " at element " + std::to_string(wrong - begin) + ", expected 0.." +
                   std::to_string(size - 1));
}

void check_sampling(const NamedLinop& A) {
  const Extents sizes = A.attr("input_size").as_integers();
  if (sizes.size() != A.params().size() || sizes.empty()) {
    throw ValueError(who(A) + "input_size: got " + to_string(sizes) + ", expected one size for " +
                     "each of the " + std::to_string(A.params().size()) + " index arrays");
  }
  common_extents(A);
  for (std::size_t i = 0; i < sizes.size(); ++i) check_range(A, key_of_index(i), sizes[i]);
}

Dims names_of_points(const SamplingOptions& options, std::size_t rank) {
  const Dims names = options.output.value_or(rank == 0   ? Dims()
                                             : rank == 1 ? Dims("K")
                                                         : numbered("K", static_cast<int>(rank)));
  if (names.size() == rank && !names.has_ellipsis()) return names;
  throw ValueError("[Sampling] output: got names " + names.str() + ", expected " +
                   std::to_string(rank) + ", one per axis of the index arrays");
}

}  // namespace

const LinopType& linop_types::sampling() {
  return PALIMPSEST_LINOP_TYPE(.name = "Sampling",
                               .functions = {.fn = sampling_fn,
                                             .adj_fn = sampling_adj_fn,
                                             .split = sampling_split,
                                             .size = sampling_size},
                               .normal = sampling_normal, .check = check_sampling);
}

NamedLinop Sampling(std::vector<Tensor> idx, Extents input_size, SamplingOptions options) {
  Parameters params;
  Extents points;
  for (const Tensor& t : idx) {
    if (!t.defined() || !is_integer(t.dtype())) {
      throw DTypeError("[Sampling] index array " + std::to_string(params.size()) +
                       ": expected integers");
    }
    points = broadcast_extents(points, t.shape(), "Sampling");
    params.emplace_back(key_of_index(params.size()), Parameter(t.to(DType::int64)));
  }
  if (params.size() != input_size.size()) {
    throw ValueError("[Sampling] input_size: got " + to_string(input_size) +
                     ", expected one size for each of the " + std::to_string(params.size()) +
                     " index arrays");
  }
  const Dims in = options.input.value_or(std::vector<ND>(input_size.size(), ND::any()));
  if (in.size() != input_size.size() || in.has_ellipsis()) {
    throw ValueError("[Sampling] input: got names " + in.str() + ", expected " +
                     std::to_string(input_size.size()) + ", one per input_size");
  }
  const NamedShape shape(options.batch + in,
                         options.batch + names_of_points(options, points.size()));
  return make_linop(linop_types::sampling(), shape, std::move(params),
                    {{"input_size", Attribute(input_size)}});
}

NamedLinop SamplingFromStacked(const Tensor& idx, Extents input_size, SamplingOptions options) {
  const auto n = static_cast<index_t>(input_size.size());
  if (!idx.defined() || idx.rank() == 0 || idx.shape(-1) != n) {
    throw ValueError("[SamplingFromStacked] input_size: got " + to_string(input_size) +
                     " and indices " + (idx.defined() ? to_string(idx.shape()) : "undefined") +
                     ", expected as many sizes as the last axis has entries");
  }
  std::vector<Tensor> parts;
  for (index_t i = 0; i < n; ++i) parts.push_back(idx.select(-1, i));
  return Sampling(std::move(parts), std::move(input_size), std::move(options));
}

NamedLinop SamplingFromMask(const Tensor& mask, SamplingOptions options) {
  if (!mask.defined() || mask.dtype() != DType::bool_ || mask.rank() == 0) {
    throw DTypeError("[SamplingFromMask] mask: expected bool and at least one axis");
  }
  const Tensor dense = mask.contiguous();
  const bool* values = dense.data<bool>();
  const index_t n = dense.numel();
  const std::size_t rank = dense.rank();
  std::vector<std::vector<index_t>> found(rank);
  for (index_t i = 0; i < n; ++i) {
    if (!values[i]) continue;
    index_t rest = i;
    for (std::size_t axis = rank; axis-- > 0;) {
      found[axis].push_back(rest % dense.shape()[axis]);
      rest /= dense.shape()[axis];
    }
  }
  std::vector<Tensor> idx;
  for (const auto& indices : found) idx.push_back(Tensor::from(indices));
  return Sampling(std::move(idx), dense.shape(), std::move(options));
}

}  // namespace palimpsest
