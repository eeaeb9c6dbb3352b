// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/linop/operators/pad.hpp"

#include "palimpsest/linop/core/prelude.hpp"

namespace palimpsest {
namespace {

// Sizes of the last axes on the small and on the big side.
struct Sizes {
  Extents small, big;
  std::size_t n() const { return small.size(); }
  index_t before(std::size_t i) const { return big[i] / 2 - small[i] / 2; }
};

Sizes pad_sizes(const NamedLinop& A) {
  return {A.attr("im_size").as_integers(), A.attr("padded_size").as_integers()};
}
Sizes crop_sizes(const NamedLinop& A) {
  return {A.attr("cropped_size").as_integers(), A.attr("im_size").as_integers()};
}

Variable enlarged(const Variable& x, const Sizes& sizes) {
  std::vector<std::pair<index_t, index_t>> widths(x.rank(), {0, 0});
  for (std::size_t i = 0; i < sizes.n(); ++i) {
    const index_t before = sizes.before(i);
    widths[x.rank() - sizes.n() + i] = {before, sizes.big[i] - sizes.small[i] - before};
  }
  return ops::pad(x, std::move(widths));
}

Variable centre_of(const Variable& x, const Sizes& sizes) {
  std::vector<Index> index{ellipsis};
  for (std::size_t i = 0; i < sizes.n(); ++i) {
    index.push_back(slice(sizes.before(i), sizes.before(i) + sizes.small[i]));
  }
  return ops::index(x, std::move(index));
}

Variable pad_fn(const NamedLinop& A, const Variable& x) { return enlarged(x, pad_sizes(A)); }
Variable pad_adj_fn(const NamedLinop& A, const Variable& y) { return centre_of(y, pad_sizes(A)); }
Variable crop_fn(const NamedLinop& A, const Variable& x) { return centre_of(x, crop_sizes(A)); }
Variable crop_adj_fn(const NamedLinop& A, const Variable& y) { return enlarged(y, crop_sizes(A)); }
// The size of d on the input and output side of the type.
std::optional<index_t> size_in(const NamedLinop& A, const ND& d, const Extents& input,
                               const Extents& output) {
  const Axes axes = last_axes(input.size());
  const Dims& inputs = A.is_flipped() ? A.oshape() : A.ishape();
  const Dims& outputs = A.is_flipped() ? A.ishape() : A.oshape();
  if (const auto i = find_axis(inputs, d, axes)) return input[*i];
  if (const auto i = find_axis(outputs, d, axes)) return output[*i];
  return std::nullopt;
}

std::optional<index_t> pad_size(const NamedLinop& A, const ND& d) {
  const Sizes sizes = pad_sizes(A);
  return size_in(A, d, sizes.small, sizes.big);
}
std::optional<index_t> crop_size(const NamedLinop& A, const ND& d) {
  const Sizes sizes = crop_sizes(A);
  return size_in(A, d, sizes.big, sizes.small);
}

NamedLinop pad_split(const NamedLinop& A, const Tile& tile) {
  const Axes axes = last_axes(A.attr("im_size").as_list().size());
  return split_besides(A, tile, axes, axes, "it is padded or cropped");
}

void check_sizes_of(const NamedLinop& A, const Sizes& sizes) {
  const auto fail = [&] {
    throw ValueError(who(A) + "size: got " + to_string(sizes.small) + " within " +
                     to_string(sizes.big) + ", expected lists of one length without growth");
  };
  if (sizes.small.size() != sizes.big.size()) fail();
  for (const Dims& dims : {A.ishape(), A.oshape()}) {
    if (dims.size() - dims.count(ND::ellipsis()) < sizes.n()) fail();
  }
  for (std::size_t i = 0; i < sizes.n(); ++i) {
    if (sizes.small[i] < 0 || sizes.small[i] > sizes.big[i]) fail();
  }
}
void check_pad(const NamedLinop& A) { check_sizes_of(A, pad_sizes(A)); }
void check_crop(const NamedLinop& A) { check_sizes_of(A, crop_sizes(A)); }

NamedShape shape_of(const std::string& name, std::size_t n, const PadOptions& options) {
  const Dims in = options.in.value_or(default_names(n, false));
  const Dims out = options.out.value_or(fresh_names(in, options.batch));
  for (const Dims& dims : {in, out}) {
    if (dims.size() == n && !dims.has_ellipsis()) continue;
    throw ValueError("[" + name + "] size: got names " + dims.str() + ", expected " +
                     std::to_string(n) + ", one per size");
  }
  return NamedShape(options.batch + in, options.batch + out);
}

}  // namespace

const LinopType& linop_types::pad() {
  return PALIMPSEST_LINOP_TYPE(.name = "Pad",
                               .functions = {.fn = pad_fn,
                                             .adj_fn = pad_adj_fn,
                                             .normal_fn = unchanged,
                                             .split = pad_split,
                                             .size = pad_size},
                               .normal = embedding_normal, .check = check_pad);
}

const LinopType& linop_types::crop() {
  return PALIMPSEST_LINOP_TYPE(.name = "Crop",
                               .functions = {.fn = crop_fn,
                                             .adj_fn = crop_adj_fn,
                                             .split = pad_split,
                                             .size = crop_size},
                               .adj_normal_fn = unchanged, .normal = restriction_normal,
                               .check = check_crop);
}

NamedLinop Pad(Extents im_size, Extents padded_size, PadOptions options) {
  return make_linop(linop_types::pad(), shape_of("Pad", im_size.size(), options), {},
                    {{"im_size", Attribute(im_size)}, {"padded_size", Attribute(padded_size)}});
}

NamedLinop Crop(Extents im_size, Extents cropped_size, PadOptions options) {
  return make_linop(linop_types::crop(), shape_of("Crop", im_size.size(), options), {},
                    {{"im_size", Attribute(im_size)}, {"cropped_size", Attribute(cropped_size)}});
}

}  // namespace palimpsest
