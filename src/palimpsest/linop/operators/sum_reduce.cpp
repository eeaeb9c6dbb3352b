// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/linop/operators/sum_reduce.hpp"

#include "palimpsest/linop/core/prelude.hpp"
#include "palimpsest/linop/core/stretch.hpp"

namespace palimpsest {
namespace {

Variable sum_fn(const NamedLinop& A, const Variable& x) {
  return summed(x, A.attr("axes").as_integers());
}

Variable sum_adj_fn(const NamedLinop& A, const Variable& y) {
  const Dims& dims = A.is_flipped() ? A.oshape() : A.ishape();
  const Axes axes = A.attr("axes").as_integers();
  Extents sizes(axes.size());
  for (const ND& d : dims) {
    const auto i = find_axis(dims, d, axes);
    if (!i) continue;
    const auto n = A.size(d);
    if (!n) {
      throw ShapeError(who(A) + "size of dim '" + d.str() +
                       "' is unknown: the adjoint repeats along it. Try with_sizes");
    }
    sizes[*i] = *n;
  }
  return repeated(y, axes, sizes);
}

}  // namespace

const LinopType& linop_types::sum_reduce() {
  return PALIMPSEST_LINOP_TYPE(.name = "SumReduce",
                               .functions = {
                                   .fn = sum_fn, .adj_fn = sum_adj_fn, .split = split_unchanged});
}

NamedLinop SumReduce(Dims ishape, Dims oshape, SumReduceOptions options) {
  const Axes axes = extra_axes(ishape, oshape);
  if (axes.empty()) {
    throw ShapeError("[SumReduce] the output is to be shorter: got " + arrow(ishape, oshape) +
                     ", expected ishape without the dimensions to sum over");
  }
  const NamedLinop made =
      make_linop(linop_types::sum_reduce(), NamedShape(std::move(ishape), std::move(oshape)), {},
                 {{"axes", Attribute(axes)}});
  return options.sizes.empty() ? made : made.with_sizes(options.sizes);
}

}  // namespace palimpsest
