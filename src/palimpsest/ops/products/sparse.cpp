// SPDX-License-Identifier: Apache-2.0

#include "palimpsest/kernels/matrices/csr.hpp"
#include "palimpsest/ops/prelude.hpp"
#include "palimpsest/ops/products/sparse_op.hpp"

namespace palimpsest::ops {
namespace {

enum Input { kValues, kColumn, kStart, kVector };

bool may_be(index_t a, index_t b) { return a == b || a == kUnknown || b == kUnknown; }

// The row of every value: how many rows have begun, less one.
Variable rows_of_values(const Variable& row_start, index_t n) {
  const index_t rows = row_start.type().shape[0] - 1;
  const Variable later = index(row_start, {slice(1, rows)});
  const Variable one = constant(Tensor::ones({}, DType::int64, row_start.type().device));
  const Variable begun =
      scatter_add(broadcast_to(one, {std::max<index_t>(rows - 1, 0)}), {&later, 1}, {n + 1});
  return index(cumsum(begun, 0), {slice(0, n)});
}

}  // namespace

Apply SparseProduct::make_node(std::span<const Variable> inputs) const {
  expect_inputs(inputs, 4, name());
  const TensorType &values = inputs[kValues].type(), &column = inputs[kColumn].type(),
                   &start = inputs[kStart].type(), &x = inputs[kVector].type();
  const bool is_column = column.dtype == DType::int32 || column.dtype == DType::int64;
  if (!is_column || start.dtype != DType::int64) {
    throw DTypeError("[" + name() + "] got indices " + column.str() + " and " + start.str() +
                     ", expected columns of int32 or int64 and starts of int64");
  }
  const bool fits =
      is_inexact(x.dtype) && (values.dtype == x.dtype || values.dtype == real_of(x.dtype));
  if (!fits) {
    throw DTypeError("[" + name() + "] got values " + values.str() + " for " + x.str() +
                     ", expected floating or complex numbers of its dtype or its real one");
  }
  if (values.rank() != 1 || column.rank() != 1 || start.rank() != 1 || x.rank() == 0) {
    throw ShapeError("[" + name() + "] got " + values.str() + ", " + column.str() + ", " +
                     start.str() + " and " + x.str() +
                     ", expected three arrays of one axis and one with at least one");
  }
  const Extents shapes[] = {values.shape, column.shape, start.shape, x.shape};
  return node(inputs, {{x.dtype, infer_shapes({}, shapes)[0], common_device(inputs, name())}});
}

std::vector<Extents> SparseProduct::infer_shapes(const Apply&, ExtentsSpan inputs) const {
  const index_t n = inputs[kValues][0], start = inputs[kStart][0];
  const index_t rows = start == kUnknown ? kUnknown : start - 1;
  if (!may_be(n, inputs[kColumn][0]) || start == 0) {
    throw ShapeError("[" + name() + "] got " + std::to_string(n) + " values, " +
                     to_string(inputs[kColumn]) + " columns and " + to_string(inputs[kStart]) +
                     " starts of rows, expected one column per value and one start more than rows");
  }
  Extents result = inputs[kVector];
  const index_t from = adjoint_ ? rows : columns_;
  if (!may_be(result.back(), from)) {
    throw ShapeError("[" + name() + "] data: got " + to_string(result) +
                     ", expected the last axis to have " + std::to_string(from) + " elements");
  }
  result.back() = adjoint_ ? columns_ : rows;
  return {std::move(result)};
}

Linearity SparseProduct::linear_in(const Apply& apply, int in) const {
  if (in == kVector) return Linearity::complex;
  if (in != kValues) return Linearity::no;
  if (apply.input(kValues).dtype() != apply.input(kVector).dtype()) return Linearity::real;
  return adjoint_ ? Linearity::conjugate : Linearity::complex;
}

std::vector<Variable> SparseProduct::pullback(const Apply& apply, CotangentSpan cotangents) const {
  const Variable &values = apply.input(kValues), &start = apply.input(kStart),
                 &x = apply.input(kVector), &w = cotangents[0];
  std::vector<Variable> result(4);
  result[kVector] = sparse_product(values, apply.input(kColumn), start, w, columns_, !adjoint_);
  const index_t n = values.type().shape[0];
  if (n == kUnknown || start.type().shape[0] == kUnknown) {
    throw NotSupported("[" + name() +
                       "] derivative for values: got extents that are not known "
                       "when the graph is built, expected known ones");
  }
  // A value v in row r and column c: v x[c] is in y[r], conj(v) y[r] in x[c].
  const Variable row = rows_of_values(start, n);
  const Variable column = astype(apply.input(kColumn), DType::int64);
  const Variable of_w = gather(w, {adjoint_ ? &column : &row, 1});
  const Variable of_x = gather(x, {adjoint_ ? &row : &column, 1});
  Variable products = adjoint_ ? conj(of_w) * of_x : of_w * conj(of_x);
  Axes batch;
  for (std::size_t k = 0; k + 1 < x.rank(); ++k) batch.push_back(static_cast<index_t>(k));
  if (!batch.empty()) products = sum(products, {.axes = batch});
  const bool is_real = !is_complex(values.dtype()) && is_complex(x.dtype());
  result[kValues] = is_real ? real(products) : products;
  return result;
}

void SparseProduct::run(RunContext& context) const {
  const SparseRows matrix{context.input(kValues), context.input(kColumn), context.input(kStart)};
  (adjoint_ ? run_sparse_adjoint : run_sparse_product)(matrix, context.input(kVector),
                                                       context.output(0), name());
}

Variable sparse_product(const Variable& values, const Variable& column, const Variable& row_start,
                        const Variable& x, index_t columns, bool adjoint) {
  const DType dtype = promote(values.dtype(), x.dtype());
  const Variable v = astype(values, is_complex(values.dtype()) ? dtype : real_of(dtype));
  const Variable inputs[] = {v, column, row_start, astype(x, dtype)};
  return std::make_shared<SparseProduct>(columns, adjoint)->make_node(inputs).output(0);
}

void register_ops_of_sparse() { register_type<SparseProduct>(); }

}  // namespace palimpsest::ops
