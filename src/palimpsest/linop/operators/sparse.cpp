// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/linop/operators/sparse.hpp"

#include <algorithm>

#include "palimpsest/linop/core/prelude.hpp"
#include "palimpsest/ops/products/sparse_op.hpp"

namespace palimpsest {
namespace {

index_t row_count(const NamedLinop& A) { return A.param("row_start").shape()[0] - 1; }

Variable product_with_matrix(const NamedLinop& A, const Variable& x, bool adjoint) {
  return ops::sparse_product(A.param("values").var(), A.param("column_index").var(),
                             A.param("row_start").var(), x, A.attr("columns").as_integer(),
                             adjoint);
}
Variable sparse_fn(const NamedLinop& A, const Variable& x) {
  return product_with_matrix(A, x, false);
}
Variable sparse_adj_fn(const NamedLinop& A, const Variable& y) {
  return product_with_matrix(A, y, true);
}

std::optional<index_t> sparse_size(const NamedLinop& A, const ND& d) {
  const Dims& inputs = A.is_flipped() ? A.oshape() : A.ishape();
  const Dims& outputs = A.is_flipped() ? A.ishape() : A.oshape();
  if (find_axis(inputs, d, last_axes(1))) return A.attr("columns").as_integer();
  if (find_axis(outputs, d, last_axes(1))) return row_count(A);
  return std::nullopt;
}

std::vector<index_t> numbers_of_entries(const NamedLinop& A, std::string_view name) {
  const Parameter& p = A.param(name);
  if (!(p.dtype() == DType::int64 || p.dtype() == DType::int32) || p.shape().size() != 1) {
    throw DTypeError(who(A) + std::string(name) + ": got " + p.type().str() +
                     ", expected int32 or int64 along one axis");
  }
  return p.value().to(DType::int64).to_vector<index_t>();
}

void check_sparse(const NamedLinop& A) {
  const Parameter& values = A.param("values");
  if (!is_inexact(values.dtype()) || values.shape().size() != 1) {
    throw DTypeError(who(A) + "values: got " + values.type().str() +
                     ", expected floating or complex numbers along one axis");
  }
  const index_t n = values.shape()[0], columns = A.attr("columns").as_integer();
  const std::vector<index_t> column = numbers_of_entries(A, "column_index"),
                             start = numbers_of_entries(A, "row_start");
  if (static_cast<index_t>(column.size()) != n) {
    throw ShapeError(who(A) + "column_index: got " + std::to_string(column.size()) +
                     " numbers, expected " + std::to_string(n) + ", one per value");
  }
  const bool ascends = !start.empty() && start.front() == 0 && start.back() == n &&
                       std::is_sorted(start.begin(), start.end());
  if (!ascends) {
    throw ValueError(who(A) + "row_start: expected ascending numbers from 0 to " +
                     std::to_string(n) + ", one per row and one more");
  }
  const auto wrong =
      std::find_if(column.begin(), column.end(), [&](index_t c) { return c < 0 || c >= columns; });
  if (wrong == column.end()) return;
  throw ValueError(who(A) + "column_index: out of range: got " + std::to_string(*wrong) +
                   " at element " + std::to_string(wrong - column.begin()) + ", expected 0.." +
                   std::to_string(columns - 1));
}

// The values of consecutive rows are consecutive: views. Where rows start is counted anew.
NamedLinop sparse_split(const NamedLinop& A, const Tile& tile) {
  LinopData data = tile_data(A, tile);
  for (const auto& [d, range] : tile) {
    if (find_axis(A.ishape(), d, last_axes(1))) refuse_split(A, d, "any row may need any column");
    if (!find_axis(A.oshape(), d, last_axes(1))) continue;
    const std::vector<index_t> start = numbers_of_entries(A, "row_start");
    std::vector<index_t> own(start.begin() + *range.start, start.begin() + *range.stop + 1);
    const index_t first = own.front(), n = own.back() - first;
    for (index_t& s : own) s -= first;
    put_param(data, "values", A.param("values").narrow(0, first, n));
    put_param(data, "column_index", A.param("column_index").narrow(0, first, n));
    put_param(data, "row_start", Parameter(Tensor::from(own)));
  }
  return from_arguments(std::move(data));
}

// Columns are used as they come if they are int32 or int64.
Parameter index_parameter(const Tensor& index, const char* name, bool keeps_int32) {
  if (!index.defined() || !is_integer(index.dtype())) {
    throw DTypeError(std::string("[Sparse] ") + name + ": expected integers");
  }
  if (keeps_int32 && index.dtype() == DType::int32) return Parameter(index);
  return Parameter(index.to(DType::int64));
}

}  // namespace

const LinopType& linop_types::sparse() {
  return PALIMPSEST_LINOP_TYPE(.name = "Sparse",
                               .functions = {.fn = sparse_fn,
                                             .adj_fn = sparse_adj_fn,
                                             .split = sparse_split,
                                             .size = sparse_size},
                               .check = check_sparse);
}

NamedLinop Sparse(Parameter values, const Tensor& column_index, const Tensor& row_start,
                  index_t columns, SparseOptions options) {
  for (const Dims& dims : {options.in, options.out}) {
    if (dims.size() == 1 && !dims.has_ellipsis()) continue;
    throw ValueError("[Sparse] names: got " + dims.str() + ", expected one");
  }
  return make_linop(linop_types::sparse(),
                    NamedShape(options.batch + options.in, options.batch + options.out),
                    {{"values", std::move(values)},
                     {"column_index", index_parameter(column_index, "column_index", true)},
                     {"row_start", index_parameter(row_start, "row_start", false)}},
                    {{"columns", columns}});
}

}  // namespace palimpsest
