// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/linop/operators/repeat.hpp"

#include <algorithm>

#include "palimpsest/linop/core/prelude.hpp"
#include "palimpsest/linop/core/stretch.hpp"
#include "palimpsest/linop/operators/scalar.hpp"

namespace palimpsest {
namespace {

Variable repeat_fn(const NamedLinop& A, const Variable& x) {
  return repeated(x, A.attr("axes").as_integers(), A.attr("counts").as_integers());
}

Variable repeat_adj_fn(const NamedLinop& A, const Variable& y) {
  return summed(y, A.attr("axes").as_integers());
}

NamedLinop repeat_normal(const NamedLinop& A, const NamedLinop* inner) {
  if (inner || A.is_flipped()) return {};
  return Scalar(element_count(A.attr("counts").as_integers()), A.ishape());
}

NamedLinop repeat_split(const NamedLinop& A, const Tile& tile) {
  Extents counts = A.attr("counts").as_integers();
  for (const auto& [d, range] : tile) {
    const auto i = find_axis(A.oshape(), d, A.attr("axes").as_integers());
    if (i) counts[*i] = *range.stop - *range.start;
  }
  LinopData data = tile_data(A, tile);
  put_attr(data, "counts", Attribute(counts));
  return from_data(std::move(data));
}

std::optional<index_t> repeat_size(const NamedLinop& A, const ND& d) {
  const Dims& dims = A.is_flipped() ? A.ishape() : A.oshape();
  const auto i = find_axis(dims, d, A.attr("axes").as_integers());
  if (!i) return std::nullopt;
  return A.attr("counts").as_integers()[*i];
}

}  // namespace

const LinopType& linop_types::repeat() {
  return PALIMPSEST_LINOP_TYPE(.name = "Repeat",
                               .functions = {.fn = repeat_fn,
                                             .adj_fn = repeat_adj_fn,
                                             .split = repeat_split,
                                             .size = repeat_size},
                               .normal = repeat_normal);
}

NamedLinop Repeat(std::vector<std::pair<ND, index_t>> repeats, Dims ishape, Dims oshape) {
  const Axes axes = extra_axes(oshape, ishape);
  const auto fail = [&] {
    throw ShapeError("[Repeat] the output is to be longer: got " + arrow(ishape, oshape) +
                     ", expected ishape and the repeated dimensions");
  };
  if (axes.empty() || axes.size() != repeats.size()) fail();
  Extents counts(axes.size());
  for (const auto& [d, n] : repeats) {
    const auto i = find_axis(oshape, d, axes);
    if (!i) fail();
    if (n < 1) {
      throw ValueError("[Repeat] size of dim '" + d.str() + "': got " + std::to_string(n) +
                       ", expected at least 1");
    }
    counts[*i] = n;
  }
  return make_linop(linop_types::repeat(), NamedShape(std::move(ishape), std::move(oshape)), {},
                    {{"axes", Attribute(axes)}, {"counts", Attribute(counts)}});
}

}  // namespace palimpsest
