// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/solve/solvers/basis.hpp"

#include <algorithm>
#include <numeric>

#include "palimpsest/linop/core/axes.hpp"
#include "palimpsest/ops/index/rows.hpp"
#include "palimpsest/ops/ops.hpp"
#include "palimpsest/solve/solvers/krylov.hpp"

namespace palimpsest::basis {
namespace {

// Labels of a contraction: axis k of a vector has label k, the count one of these.
constexpr int kCount = 100, kOther = 101;

std::vector<int> labels_of_vector(const Space& X) {
  std::vector<int> labels(X.type().rank());
  std::iota(labels.begin(), labels.end(), 0);
  return labels;
}

std::vector<int> joined_rows(std::vector<int> front, const std::vector<int>& rest) {
  front.insert(front.end(), rest.begin(), rest.end());
  return front;
}

std::vector<int> labels_of_batch(const Space& X) {
  return {X.batch_axes().begin(), X.batch_axes().end()};
}

Extents extents_of_batch(const Space& X) { return X.number_type().shape; }

// The axes of (count, x..) in the order (batch.., count, other axes).
Axes rows_order(const Space& X) {
  Axes order, rest;
  for (const index_t axis : X.batch_axes()) order.push_back(axis + 1);
  order.push_back(0);
  for (index_t axis = 1; axis <= static_cast<index_t>(X.type().rank()); ++axis) {
    if (std::find(order.begin(), order.end(), axis) == order.end()) rest.push_back(axis);
  }
  for (const index_t axis : rest) order.push_back(axis);
  return order;
}

// 0 .. n - 1 along the first axis of a table.
Variable positions(const Problem& p, index_t n) {
  Extents extents(1 + p.x().batch_axes().size(), 1);
  extents[0] = n;
  return constant(Tensor::arange(n).reshape(extents));
}

}  // namespace

Space vectors(const Problem& p, const Space& X, index_t count) {
  const TensorType& x = X.type();
  Extents extents = x.shape;
  extents.insert(0, count);
  return Space({x.dtype, extents, x.device}, fresh_names("V", X.dims()) + X.dims(), p.batch());
}

Space table(const Problem& p, DType dtype, Extents extents) {
  Dims names(std::vector<ND>(extents.size(), "V"));
  const TensorType number = p.x().number_type();
  for (const index_t extent : number.shape) extents.push_back(extent);
  return Space({dtype, std::move(extents), number.device},
               fresh_names(names, p.batch()) + p.batch(), p.batch());
}

Variable products(const Space& X, const Variable& V, const Variable& w) {
  if (X.batch_axes().empty()) {
    const Variable rows = V.reshape({V.type().shape[0], element_count(X.type().shape)});
    return X.total(ops::contract(rows, std::vector{kCount, 0}, w.ravel(), std::vector{0},
                                 std::vector{kCount}, {.conj_a = true}));
  }
  const std::vector<int> x = labels_of_vector(X);
  return X.total(ops::contract(V, joined_rows({kCount}, x), w, x,
                               joined_rows({kCount}, labels_of_batch(X)), {.conj_a = true}));
}

Variable combination(const Space& X, const Variable& V, const Variable& c) {
  if (X.batch_axes().empty()) {
    const Variable rows = V.reshape({V.type().shape[0], element_count(X.type().shape)});
    return ops::contract(c, std::vector{kCount}, rows, std::vector{kCount, 0}, std::vector{0})
        .reshape(X.type().shape);
  }
  const std::vector<int> x = labels_of_vector(X);
  return ops::contract(c, joined_rows({kCount}, labels_of_batch(X)), V, joined_rows({kCount}, x),
                       x);
}

Variable combinations(const Space& X, const Variable& V, const Variable& c) {
  const std::vector<int> x = labels_of_vector(X);
  return ops::contract(c, joined_rows({kCount, kOther}, labels_of_batch(X)), V,
                       joined_rows({kCount}, x), joined_rows({kOther}, x));
}

Orthogonal orthogonal(const Space& X, const Variable& V, const Variable& counts,
                      const Variable& w) {
  const Variable once = products(X, V, w) * counts;
  const Variable rest = w - combination(X, V, once);
  const Variable again = products(X, V, rest) * counts;
  return {rest - combination(X, V, again), once + again};
}

Variable least_squares(const Problem& p, const Variable& H, const Variable& null,
                       const Variable& factor) {
  const index_t n = H.type().shape[1];
  const Variable right = null * factor.astype(null.dtype());
  ops::LoopOptions options;
  options.states = {ops::zeros_like(H[0])};
  options.sequences = {constant(Tensor::arange(n - 1))};
  options.backwards = true;
  options.fixed = {ops::swapaxes(H, 0, 1), right};
  const auto body = [&](const std::vector<Variable>& a) -> std::vector<Variable> {
    const Variable &i = a[0], &z = a[1], &columns = a[2], &rhs = a[3];
    // z_i is entry i + 1 of z, as in the rows of H.
    const Variable row = ops::row(columns, i + 1), diagonal = ops::row(row, i);
    const Variable shifted = z(slice(1, std::nullopt));
    const Variable rest = ops::row(rhs, i + 1) - (row * shifted).sum({0});
    return {z + unit_vector(p, i + 1, n, z.dtype()) * krylov::ratio(rest, diagonal)};
  };
  return ops::loop(body, options).last(0)(slice(1, std::nullopt));
}

Variable unit_vector(const Problem& p, const Variable& at, index_t n, DType dtype) {
  return ops::eq(positions(p, n), at).astype(dtype);
}

Variable first_rows(const Problem& p, const Variable& at, index_t n, DType dtype) {
  return ops::le(positions(p, n), at).astype(dtype);
}

Variable as_rows(const Space& X, const Variable& V) {
  Extents extents = extents_of_batch(X);
  const index_t count = V.type().shape[0], all = element_count(V.type().shape);
  extents.push_back(count);
  extents.push_back(all == 0 ? 0 : all / (count * element_count(X.number_type().shape)));
  return ops::transpose(V, rows_order(X)).reshape(extents);
}

Variable from_rows(const Space& X, const Variable& rows) {
  const Axes order = rows_order(X);
  const index_t count = rows.type().shape[rows.rank() - 2];
  Extents extents;
  Axes back(order.size(), 0);
  for (std::size_t k = 0; k < order.size(); ++k) {
    const auto axis = static_cast<std::size_t>(order[k]);
    extents.push_back(axis == 0 ? count : X.type().shape[axis - 1]);
    back[axis] = static_cast<index_t>(k);
  }
  return ops::transpose(rows.reshape(extents), back);
}

}  // namespace palimpsest::basis
