// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/linop/operators/complex_parts.hpp"

#include "palimpsest/linop/core/prelude.hpp"
#include "palimpsest/ops/create/create.hpp"

namespace palimpsest {
namespace {

Variable real_of_any(const Variable& x) { return is_complex(x.dtype()) ? ops::real(x) : x; }

Variable real_part_fn(const NamedLinop&, const Variable& x) { return real_of_any(x); }
Variable real_part_adj_fn(const NamedLinop&, const Variable& y) {
  return ops::astype(real_of_any(y), complex_of(y.dtype()));
}

Variable imag_part_fn(const NamedLinop&, const Variable& x) {
  return is_complex(x.dtype()) ? ops::imag(x) : ops::zeros_like(x);
}
Variable imag_part_adj_fn(const NamedLinop&, const Variable& y) {
  const Variable re = real_of_any(y);
  return ops::make_complex(ops::zeros_like(re), re);
}

Variable as_real_fn(const NamedLinop&, const Variable& x) {
  return ops::view_as_real(ops::astype(x, complex_of(x.dtype())));
}
Variable as_real_adj_fn(const NamedLinop&, const Variable& y) {
  return ops::view_as_complex(real_of_any(y));
}

NamedLinop as_real_split(const NamedLinop& A, const Tile& tile) {
  return split_besides(A, tile, {}, last_axes(1), "it holds real and imaginary parts");
}

std::optional<index_t> as_real_size(const NamedLinop& A, const ND& d) {
  const Dims& pairs = A.is_flipped() ? A.ishape() : A.oshape();
  return find_axis(pairs, d, last_axes(1)) ? std::optional<index_t>(2) : std::nullopt;
}

}  // namespace

const LinopType& linop_types::real_part() {
  return PALIMPSEST_LINOP_TYPE(.name = "RealPart",
                               .functions = {.fn = real_part_fn,
                                             .adj_fn = real_part_adj_fn,
                                             .split = split_unchanged},
                               .real_linear = true);
}

const LinopType& linop_types::imag_part() {
  return PALIMPSEST_LINOP_TYPE(.name = "ImagPart",
                               .functions = {.fn = imag_part_fn,
                                             .adj_fn = imag_part_adj_fn,
                                             .split = split_unchanged},
                               .real_linear = true);
}

const LinopType& linop_types::as_real() {
  return PALIMPSEST_LINOP_TYPE(
          .name = "AsReal",
          .functions = {.fn = as_real_fn,
                        .adj_fn = as_real_adj_fn,
                        .split = as_real_split,
                        .size = as_real_size},
          .normal = embedding_normal,  // of the adjoint only real data come back unchanged
          .real_linear = true);
}

NamedLinop RealPart(Dims dims) { return make_linop(linop_types::real_part(), NamedShape(dims)); }
NamedLinop ImagPart(Dims dims) { return make_linop(linop_types::imag_part(), NamedShape(dims)); }

NamedLinop AsReal(Dims dims, ND pair) {
  if (dims.contains(pair)) {
    throw ShapeError("[AsReal] " + dims.str() + " already contains '" + pair.str() +
                     "', expected a new name");
  }
  const Dims pairs = dims + Dims(pair);
  return make_linop(linop_types::as_real(), NamedShape(std::move(dims), pairs));
}

NamedLinop AsComplex(Dims dims, ND pair) {
  return AsReal(std::move(dims), pair).H().named("AsComplex");
}

}  // namespace palimpsest
