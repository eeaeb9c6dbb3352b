// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/linop/containers/blocks.hpp"

#include <algorithm>
#include <numeric>

#include "palimpsest/linop/containers/chain.hpp"
#include "palimpsest/linop/core/prelude.hpp"
#include "palimpsest/linop/operators/diagonal_factors.hpp"
#include "palimpsest/linop/operators/restrict.hpp"
#include "palimpsest/named/inner_dimension.hpp"
#include "palimpsest/ops/control/control.hpp"
#include "palimpsest/ops/reduce/reduce.hpp"
#include "palimpsest/ops/shape/blocks.hpp"

namespace palimpsest {
namespace {

struct BlockSizes {
  explicit BlockSizes(const NamedLinop& A)
      : image(A.attr("im_size").as_integers()),
        block(A.attr("block_size").as_integers()),
        stride(A.attr("stride").as_integers()),
        count(nblocks(image, block, stride)) {}
  std::size_t n() const { return image.size(); }
  Extents image, block, stride, count;
};

bool is_masked(const NamedLinop& A) { return A.has_param("mask"); }

// The number of entries kept of a block.
index_t kept_count(const NamedLinop& A) { return A.param("position").shape()[0]; }

// The extents with the last n in place of others.
Extents with_last(const Extents& extents, std::size_t dropped, const Extents& last) {
  Extents result(std::span<const index_t>(extents).first(extents.size() - dropped));
  for (const index_t extent : last) result.push_back(extent);
  return result;
}

Variable blocks_fn(const NamedLinop& A, const Variable& x) {
  const BlockSizes sizes(A);
  const Variable y = ops::array_to_blocks(x, sizes.block, sizes.stride);
  if (!is_masked(A)) return y;
  const Extents flat = with_last(y.type().shape, sizes.n(), {element_count(sizes.block)});
  const Variable& index = A.param("position").var();
  return ops::gather(ops::reshape(y, flat), {&index, 1});
}

Variable blocks_adj_fn(const NamedLinop& A, const Variable& y) {
  const BlockSizes sizes(A);
  Variable blocks = y;
  if (is_masked(A)) {
    const Variable& index = A.param("position").var();
    const Variable flat = ops::scatter_add(y, {&index, 1}, {element_count(sizes.block)});
    blocks = ops::reshape(flat, with_last(y.type().shape, 1, sizes.block));
  }
  return ops::blocks_to_array(blocks, sizes.image, sizes.block, sizes.stride);
}

// The number of blocks that each element of one axis is in.
Tensor counts_along(index_t image, index_t block, index_t stride) {
  std::vector<float> counts(static_cast<std::size_t>(image), 0);
  for (index_t m = 0; m < nblocks(image, block, stride); ++m) {
    for (index_t p = 0; p < block; ++p) counts[static_cast<std::size_t>(m * stride + p)] += 1;
  }
  return Tensor::from(counts);
}

NamedLinop blocks_normal(const NamedLinop& A, const NamedLinop* inner) {
  if (inner || A.is_flipped()) return {};
  const BlockSizes sizes(A);
  std::vector<DiagonalFactor> factors;
  const Axes axes = last_axes(sizes.n());
  if (!is_masked(A)) {
    for (std::size_t d = 0; d < sizes.n(); ++d) {
      factors.push_back({Parameter(counts_along(sizes.image[d], sizes.block[d], sizes.stride[d])),
                         {axes[d]},
                         ""});
    }
  } else {
    const Variable mask = ops::astype(A.param("mask").var(), DType::float32);
    const Variable all = ops::broadcast_to(mask, with_last(sizes.count, 0, sizes.block));
    factors.push_back(
        {Parameter::derived(ops::blocks_to_array(all, sizes.image, sizes.block, sizes.stride)),
         axes, ""});
  }
  return make_diagonal({NamedShape(A.ishape()), std::move(factors), /*adapts=*/true});
}

std::optional<index_t> blocks_size(const NamedLinop& A, const ND& d) {
  const BlockSizes sizes(A);
  const Dims& array = A.is_flipped() ? A.oshape() : A.ishape();
  const Dims& blocks = A.is_flipped() ? A.ishape() : A.oshape();
  if (const auto i = find_axis(array, d, last_axes(sizes.n()))) return sizes.image[*i];
  Extents last = sizes.count;
  if (is_masked(A)) {
    last.push_back(kept_count(A));
  } else {
    for (const index_t extent : sizes.block) last.push_back(extent);
  }
  if (const auto i = find_axis(blocks, d, last_axes(last.size()))) return last[*i];
  return std::nullopt;
}

// The blocks of a tile lie in a window of the array, which is cut out first.
NamedLinop blocks_split(const NamedLinop& A, const Tile& tile) {
  const BlockSizes sizes(A);
  const std::size_t inner = is_masked(A) ? 1 : sizes.n();
  const Axes array = last_axes(sizes.n());
  Axes counted;
  for (const index_t axis : array) counted.push_back(axis - static_cast<index_t>(inner));
  Extents image = sizes.image;
  std::vector<std::pair<ND, Slice>> windows;
  Dims from = A.ishape(), names;
  const Dims all = unite(A.ishape(), A.oshape());
  std::vector<ND> taken(all.begin(), all.end());
  for (const auto& [d, range] : tile) {
    if (find_axis(A.ishape(), d, array)) refuse_split(A, d, "blocks may overlap along it");
    if (find_axis(A.oshape(), d, last_axes(inner))) refuse_split(A, d, "it lies within the blocks");
    const auto i = find_axis(A.oshape(), d, counted);
    if (!i) continue;
    const index_t first = *range.start * sizes.stride[*i];
    const index_t last = (*range.stop - 1) * sizes.stride[*i] + sizes.block[*i];
    const ND name = A.ishape()[A.ishape().size() - sizes.n() + *i];
    image[*i] = last - first;
    windows.emplace_back(name, slice(first, last));
    names.push_back(inner_dimension(name, last - first, 'w').fresh(taken));
    taken.push_back(names.back());
    from = from.replaced(name, Dims(names.back()));
  }
  if (windows.empty()) return split_unchanged(A, tile);
  LinopData data = tile_data(A, tile);
  DimMap recorded = sizes_in(data.shape);
  std::erase_if(recorded, [&](const auto& entry) {
    return !from.contains(entry.first) && !A.oshape().contains(entry.first);
  });
  data.shape = with_sizes_in(NamedShape(from, A.oshape()), recorded);
  put_attr(data, "im_size", Attribute(image));
  DimMap whole;
  for (const auto& [d, range] : windows) whole.emplace(d, *A.size(d));
  return Chain(Restrict(A.ishape(), windows, {.sizes = whole, .out = names}),
               from_data(std::move(data)));
}

void check_blocks(const NamedLinop& A) {
  const Extents image = A.attr("im_size").as_integers(), block = A.attr("block_size").as_integers();
  const Extents stride = A.attr("stride").as_integers();
  const bool one_length = image.size() == block.size() && image.size() == stride.size();
  if (!one_length || image.empty()) {
    throw ValueError(who(A) + "block: got sizes " + to_string(image) + ", " + to_string(block) +
                     " and strides " + to_string(stride) + ", expected lists of one length");
  }
  for (std::size_t d = 0; d < image.size(); ++d) {
    if (block[d] >= 1 && stride[d] >= 1 && block[d] <= image[d]) continue;
    throw ValueError(who(A) + "block: got " + to_string(block) + " with strides " +
                     to_string(stride) + ", expected positive ones that fit into " +
                     to_string(image));
  }
  if (!is_masked(A)) return;
  const TensorType& mask = A.param("mask").type();
  if (mask.dtype != DType::bool_ || mask.shape != block) {
    throw ValueError(who(A) + "mask: got " + mask.str() + ", expected bool " + to_string(block));
  }
}

// The positions of a block's true entries, row-major. A mask that is written later may have others,
// but as many.
Parameters derive_blocks(const NamedLinop& A) {
  if (!is_masked(A)) return {};
  const Tensor mask = on_host(A.param("mask").value()).contiguous();
  const index_t n = mask.numel(),
                count = std::count(mask.data<bool>(), mask.data<bool>() + n, true);
  std::vector<index_t> numbers(static_cast<std::size_t>(n));
  std::iota(numbers.begin(), numbers.end(), index_t{0});
  const Variable is_kept = ops::reshape(A.param("mask").var(), {n});
  const Variable found = ops::cumsum(ops::astype(is_kept, DType::int64), 0);
  // Dropped entries go to the place behind the end.
  const Variable place = ops::where(is_kept, found - 1, count);
  const Variable all = ops::scatter_add(constant(Tensor::from(numbers), {}, is_kept.type().device),
                                        {&place, 1}, {count + 1});
  const Variable is_as_many = ops::eq(ops::index(found, {Index(n - 1)}), count);
  return {{"position",
           Parameter::derived(ops::assert_that(
               ops::index(all, {slice(0, count)}), is_as_many,
               who(A) + "mask: expected " + std::to_string(count) + " true entries, as before"))}};
}

Dims names_for(const std::optional<Dims>& given, std::string_view base, std::size_t n,
               const char* what) {
  Dims usual = numbered(base, static_cast<int>(n));
  if (n <= 3) {
    usual.clear();
    for (std::size_t d = 0; d < n; ++d) usual.push_back(ND(std::string(base) + "xyz"[d]));
  }
  const Dims names = given.value_or(usual);
  if (names.size() == n && !names.has_ellipsis()) return names;
  throw ValueError(std::string("[ArrayToBlocks] ") + what + ": got names " + names.str() +
                   ", expected " + std::to_string(n));
}

}  // namespace

const LinopType& linop_types::array_to_blocks() {
  return PALIMPSEST_LINOP_TYPE(.name = "ArrayToBlocks",
                               .functions = {.fn = blocks_fn,
                                             .adj_fn = blocks_adj_fn,
                                             .split = blocks_split,
                                             .size = blocks_size},
                               .normal = blocks_normal, .check = check_blocks,
                               .derive = derive_blocks);
}

NamedLinop ArrayToBlocks(Extents im_size, Extents block_size, Extents stride,
                         BlocksOptions options) {
  const std::size_t n = im_size.size();
  if (stride.size() == 1) stride = Extents(n, stride[0]);
  const Dims array = names_for(options.array, "N", n, "array");
  const Dims blocks = names_for(options.blocks, "B", n, "blocks");
  const Dims inner =
      options.mask ? options.inner.value_or(Dims("P")) : names_for(options.inner, "P", n, "inner");
  if (options.mask && (inner.size() != 1 || inner.has_ellipsis())) {
    throw ValueError("[ArrayToBlocks] inner: got names " + inner.str() + ", expected 1");
  }
  Parameters params;
  if (options.mask) params.emplace_back("mask", *options.mask);
  return make_linop(linop_types::array_to_blocks(),
                    NamedShape(options.batch + array, options.batch + blocks + inner),
                    std::move(params),
                    {{"im_size", Attribute(im_size)},
                     {"block_size", Attribute(block_size)},
                     {"stride", Attribute(stride)}});
}

NamedLinop BlocksToArray(Extents im_size, Extents block_size, Extents stride,
                         BlocksOptions options) {
  return ArrayToBlocks(std::move(im_size), std::move(block_size), std::move(stride),
                       std::move(options))
      .H()
      .named("BlocksToArray");
}

}  // namespace palimpsest
