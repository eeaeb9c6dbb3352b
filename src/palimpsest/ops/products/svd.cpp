// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/ops/products/svd.hpp"

#include "palimpsest/kernels/matrices/singular_vectors.hpp"
#include "palimpsest/ops/prelude.hpp"
#include "palimpsest/ops/products/svd_op.hpp"

namespace palimpsest::ops {

Apply Svd::make_node(std::span<const Variable> inputs) const {
  expect_inputs(inputs, 1, name());
  const TensorType& a = inputs[0].type();
  if (!is_inexact(a.dtype)) {
    throw DTypeError("[Svd] got " + a.str() + ", expected floating or complex data");
  }
  if (a.rank() < 2) {
    throw ShapeError("[Svd] got " + a.str() + ", expected at least two axes");
  }
  return node(inputs, {{a.dtype, infer_shapes({}, {&a.shape, 1})[0], a.device}});
}

std::vector<Extents> Svd::infer_shapes(const Apply&, ExtentsSpan inputs) const {
  Extents result = inputs[0];
  const std::size_t rank = result.size();
  const index_t rows = result[rank - 2], columns = result[rank - 1];
  const bool is_known = rows != kUnknown && columns != kUnknown;
  result[rank - 2] = is_known ? std::min(rows, columns) : kUnknown;
  result[rank - 1] = is_known ? rows + 1 + columns : kUnknown;
  return {result};
}

std::size_t Svd::scratch_bytes(const Apply&, std::span<const Layout> inputs) const {
  const Extents& a = inputs[0].extents;
  return singular_vectors_scratch(inputs[0].dtype, a[a.size() - 2], a[a.size() - 1]);
}

void Svd::run(RunContext& context) const {
  singular_vectors(context.input(0), context.output(0), context.scratch());
}

SingularVectors svd(const Variable& a) {
  const Variable triplets = std::make_shared<Svd>()->make_node({&a, 1}).output(0);
  const index_t rows = a.type().shape[a.rank() - 2];
  if (rows == kUnknown) {
    throw ShapeError("[svd] got " + a.type().str() + ", expected known rows. Try specify_shape");
  }
  const Variable s = triplets(ellipsis, rows);
  return {swapaxes(triplets(ellipsis, slice(std::nullopt, rows)), -1, -2),
          is_complex(s.dtype()) ? elementwise(ScalarOp::real, {s}) : s,
          triplets(ellipsis, slice(rows + 1, std::nullopt))};
}

void register_ops_of_svd() { register_type<Svd>(); }

}  // namespace palimpsest::ops
