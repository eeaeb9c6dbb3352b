// SPDX-License-Identifier: Apache-2.0

#include "palimpsest/ops/products/svd.hpp"
#include "palimpsest/solve/frame/prelude.hpp"
#include "palimpsest/solve/solvers/basis.hpp"
#include "palimpsest/solve/solvers/krylov.hpp"
#include "palimpsest/solve/solvers/svd.hpp"

namespace palimpsest::svd_parts {
namespace {

// The size of one element of the batch.
index_t size_of_space(const Problem& p, const Space& space) {
  // The size of other processes' parts of a vector is unknown.
  if (space.is_in_parts()) return std::numeric_limits<index_t>::max();
  const index_t batch = element_count(p.x().number_type().shape);
  return batch == 0 ? 0 : element_count(space.type().shape) / batch;
}

}  // namespace

index_t rows_of(const Problem& p) { return size_of_space(p, p.b()); }
index_t columns_of(const Problem& p) { return size_of_space(p, p.x()); }

index_t side_of(const Problem& p) { return std::min(rows_of(p), columns_of(p)); }
index_t vectors_of(const Problem& p) {
  const index_t given = p.integer("vectors", 0);
  return std::min(given > 0 ? given : 2 * count_of(p) + 10, side_of(p));
}

index_t count_of(const Problem& p) {
  const index_t k = p.integer("k", 1), side = std::min(rows_of(p), columns_of(p));
  if (k <= side) return k;
  throw ValueError("[svd] k: got " + std::to_string(k) + ", expected at most " +
                   std::to_string(side) + ", the smaller side");
}

void check_svd(const Problem& p, std::string_view solver) {
  const auto fail = [&](const std::string& what, const std::string& expected) {
    throw ValueError("[" + std::string(solver) + "] " + what + ", expected " + expected);
  };
  const index_t k = p.integer("k", 1), vectors = p.integer("vectors", 0);
  if (k < 1) fail("k: got " + std::to_string(k), "at least 1");
  if (vectors != 0 && vectors <= k) {
    fail("vectors: got " + std::to_string(vectors), "more than k, " + std::to_string(k));
  }
}

Variable packed(const Problem& p, const Variable& u, const Variable& s, const Variable& vh) {
  const DType dtype = p.x().type().dtype;
  const Variable values = ops::moveaxis(s, 0, -1).astype(dtype);
  return ops::join(0, {ops::moveaxis(u, 0, -1).ravel(), vh.ravel(), values.ravel()});
}

// -- vectors and triplets ------------------------------------------------------------------------

namespace {

Variable unit_or_zero(const Space& X, const Variable& v, const Variable& length,
                      const Variable& is_new) {
  return v * X.spread(krylov::value_if(is_new, ops::reciprocal(length)));
}

// Vectors in the rows of a matrix (batch.., n, entries) as coefficients (entries, n, batch..).
Variable coefficients(const Variable& rows, DType dtype) {
  const auto rank = static_cast<index_t>(rows.rank());
  Axes order{rank - 1, rank - 2};
  for (index_t axis = 0; axis < rank - 2; ++axis) order.push_back(axis);
  return ops::transpose(rows, order).astype(dtype);
}

}  // namespace

Next next_vector(const Space& X, const Variable& vectors, const Variable& counts,
                 const Variable& candidate, const Variable& length, const Variable& least,
                 const Variable& key) {
  const Variable is_new = ops::gt(length, least);
  const Variable v = unit_or_zero(X, candidate, length, is_new);
  const TensorType& type = X.type();
  const Variable drawn = ops::random_normal(key, type.shape, type.dtype);
  const Variable other = basis::orthogonal(X, vectors, counts, drawn).next;
  const Variable other_length = ops::sqrt(X.norm2(other));
  const Variable there = ops::logical_and(ops::logical_not(is_new), ops::gt(other_length, 1e-3));
  const Variable filled = v + unit_or_zero(X, other, other_length, there);
  return {ops::ifelse(ops::all_of(is_new), v, filled), krylov::value_if(is_new, length)};
}

Variable matrices(const Variable& B) {
  Axes order;
  for (index_t axis = 2; axis < static_cast<index_t>(B.rank()); ++axis) order.push_back(axis);
  order.push_back(1);
  order.push_back(0);
  return ops::transpose(B, order).astype(DType::float64);
}

Triplets triplets(const Problem& p, const Variable& U, const Variable& V, const Variable& B,
                  index_t n) {
  const ops::SingularVectors parts = ops::svd(B);
  const DType dtype = p.x().type().dtype;
  const auto first = [&](const Variable& v) { return v(ellipsis, slice(0, n), all); };
  const Variable left = first(ops::swapaxes(parts.u, -1, -2));
  return {
      basis::combinations(p.b(), U, coefficients(left, dtype)),
      ops::moveaxis(parts.s(ellipsis, slice(0, n)), -1, 0),
      basis::combinations(p.x(), V(slice(0, vectors_of(p))), coefficients(first(parts.vh), dtype)),
      left(ellipsis, -1)};
}

Variable unit_matrix(const Problem& p, index_t n) {
  const index_t side = vectors_of(p);
  Extents extents(2 + p.x().batch_axes().size(), 1);
  extents[0] = extents[1] = side;
  Tensor one = Tensor::zeros({side, side}, p.x().number_type().dtype);
  for (index_t i = 0; i < n; ++i) one(i, i).fill(1.0);
  return constant(one.reshape(extents));
}

}  // namespace palimpsest::svd_parts
