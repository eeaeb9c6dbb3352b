// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/linop/operators/pad_dim.hpp"

#include "palimpsest/linop/core/prelude.hpp"

namespace palimpsest {
namespace {

// The axis, and its extents in the input and the output of the type.
struct Change {
  explicit Change(const NamedLinop& A)
      : axis(A.attr("axis").as_integer()),
        from(A.attr("from").as_integer()),
        to(A.attr("to").as_integer()) {}
  index_t axis, from, to;
};

Variable with_extent(const Variable& x, index_t axis, index_t from, index_t to) {
  const auto k = static_cast<std::size_t>(from_front(Axes{axis}, x.rank())[0]);
  if (to < from) {
    std::vector<Index> first(k, Index(all));
    first.emplace_back(slice(0, to));
    return ops::index(x, std::move(first));
  }
  std::vector<std::pair<index_t, index_t>> widths(x.rank(), {0, 0});
  widths[k].second = to - from;
  return ops::pad(x, std::move(widths));
}

Variable change_fn(const NamedLinop& A, const Variable& x) {
  const Change c(A);
  return with_extent(x, c.axis, c.from, c.to);
}
Variable change_adj_fn(const NamedLinop& A, const Variable& y) {
  const Change c(A);
  return with_extent(y, c.axis, c.to, c.from);
}
std::optional<index_t> change_size(const NamedLinop& A, const ND& d) {
  const Change c(A);
  const Axes axes{c.axis};
  if (find_axis(A.ishape(), d, axes)) return A.is_flipped() ? c.to : c.from;
  if (find_axis(A.oshape(), d, axes)) return A.is_flipped() ? c.from : c.to;
  return std::nullopt;
}

NamedLinop change_split(const NamedLinop& A, const Tile& tile) {
  const Axes axis{Change(A).axis};
  return split_besides(A, tile, axis, axis, "its length changes");
}

void check_lengths(const NamedLinop& A, bool grows) {
  const Change c(A);
  if (c.from >= 0 && c.to >= 0 && (grows ? c.from <= c.to : c.from >= c.to)) return;
  throw ValueError(who(A) + "length: got " + std::to_string(c.from) + " -> " +
                   std::to_string(c.to) + ", expected none negative and one that " +
                   (grows ? "does not shrink. Try Truncate" : "does not grow. Try PadDim"));
}
void check_growing(const NamedLinop& A) { check_lengths(A, true); }
void check_shrinking(const NamedLinop& A) { check_lengths(A, false); }

NamedLinop make_change(const LinopType& type, const ND& d, index_t from, index_t to,
                       const Dims& dims, const PadDimOptions& options) {
  const index_t axis = axis_of(dims, d, type.name);
  const ND out = options.out.value_or((d + 1).fresh(std::span(dims.data(), dims.size())));
  return make_linop(type, NamedShape(dims, dims.replaced(d, Dims(out))), {},
                    {{"axis", axis}, {"from", from}, {"to", to}});
}

}  // namespace

const LinopType& linop_types::pad_dim() {
  return PALIMPSEST_LINOP_TYPE(.name = "PadDim",
                               .functions = {.fn = change_fn,
                                             .adj_fn = change_adj_fn,
                                             .normal_fn = unchanged,
                                             .split = change_split,
                                             .size = change_size},
                               .normal = embedding_normal, .check = check_growing);
}

const LinopType& linop_types::truncate() {
  return PALIMPSEST_LINOP_TYPE(.name = "Truncate",
                               .functions = {.fn = change_fn,
                                             .adj_fn = change_adj_fn,
                                             .split = change_split,
                                             .size = change_size},
                               .adj_normal_fn = unchanged, .normal = restriction_normal,
                               .check = check_shrinking);
}

NamedLinop PadDim(ND d, index_t from, index_t to, Dims dims, PadDimOptions options) {
  return make_change(linop_types::pad_dim(), d, from, to, dims, options);
}

NamedLinop Truncate(ND d, index_t from, index_t to, Dims dims, PadDimOptions options) {
  return make_change(linop_types::truncate(), d, from, to, dims, options);
}

}  // namespace palimpsest
