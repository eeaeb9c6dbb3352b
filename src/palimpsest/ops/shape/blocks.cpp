// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/ops/shape/blocks.hpp"

#include "palimpsest/kernels/arrays/blocks.hpp"
#include "palimpsest/ops/prelude.hpp"
#include "palimpsest/ops/shape/blocks_op.hpp"

namespace palimpsest {

index_t nblocks(index_t im, index_t block, index_t stride) {
  if (block >= 1 && stride >= 1 && block <= im) return (im - block) / stride + 1;
  throw ValueError("[nblocks] block: got size " + std::to_string(block) + " and stride " +
                   std::to_string(stride) + " in " + std::to_string(im) +
                   ", expected positive ones and a block that fits");
}

Extents nblocks(const Extents& im, const Extents& block, const Extents& stride) {
  if (im.size() != block.size() || im.size() != stride.size() || im.empty()) {
    throw ValueError("[nblocks] block: got sizes " + to_string(im) + ", " + to_string(block) +
                     ", " + to_string(stride) + ", expected three lists of one length");
  }
  Extents result;
  for (std::size_t d = 0; d < im.size(); ++d) {
    result.push_back(nblocks(im[d], block[d], stride[d]));
  }
  return result;
}

namespace ops {

std::string Blocks::misfit(const Extents& image, const Extents& block, const Extents& stride,
                           bool) {
  if (image.size() != block.size() || image.size() != stride.size()) {
    return "numbers of axes that differ";
  }
  for (std::size_t k = 0; k < image.size(); ++k) {
    const bool is_legal = stride[k] > 0 && block[k] > 0 && block[k] <= image[k];
    if (!is_legal) return "blocks that do not fit";
  }
  return {};
}

Extents Blocks::blocked() const {
  Extents result = nblocks(image_, block_, stride_);
  for (const index_t extent : block_) result.push_back(extent);
  return result;
}

Apply Blocks::make_node(std::span<const Variable> inputs) const {
  expect_inputs(inputs, 1, name());
  const TensorType& x = inputs[0].type();
  if (adjoint_ && !is_inexact(x.dtype)) {
    throw DTypeError("[blocks_to_array] got " + x.str() + ", expected floating or complex data");
  }
  return node(inputs, {{x.dtype, infer_shapes({}, {&x.shape, 1})[0], x.device}});
}

std::vector<Extents> Blocks::infer_shapes(const Apply&, ExtentsSpan inputs) const {
  const Extents from = adjoint_ ? blocked() : image_, to = adjoint_ ? image_ : blocked();
  const std::span<const index_t> x = inputs[0];
  const auto fits = [](index_t a, index_t b) { return a == b || a == kUnknown; };
  if (x.size() < from.size() || !std::equal(from.begin(), from.end(), x.last(from.size()).begin(),
                                            [&](index_t b, index_t a) { return fits(a, b); })) {
    throw ShapeError(std::string(adjoint_ ? "[blocks_to_array]" : "[array_to_blocks]") + " got " +
                     to_string(x) + ", expected the last axes to be " + to_string(from));
  }
  Extents result = x.first(x.size() - from.size());
  for (const index_t extent : to) result.push_back(extent);
  return {std::move(result)};
}

std::vector<Variable> Blocks::pullback(const Apply&, CotangentSpan cotangents) const {
  const auto transposed = std::make_shared<Blocks>(image_, block_, stride_, !adjoint_);
  return {transposed->make_node(cotangents.first(1)).output(0)};
}

void Blocks::run(RunContext& context) const {
  (adjoint_ ? run_blocks_to_array : run_array_to_blocks)(context.input(0), stride_,
                                                         context.output(0));
}

Variable array_to_blocks(const Variable& x, Extents block, Extents stride) {
  const std::span<const index_t> shape = x.type().shape;
  if (shape.size() < block.size()) {
    throw ShapeError("[array_to_blocks] got " + x.type().str() + ", expected at least " +
                     std::to_string(block.size()) + " axes");
  }
  Extents image = shape.last(block.size());
  if (!is_known(image)) {
    throw ShapeError("[array_to_blocks] got " + x.type().str() +
                     ", expected last axes of known extents. Try specify_shape");
  }
  nblocks(image, block, stride);
  return std::make_shared<Blocks>(std::move(image), std::move(block), std::move(stride), false)
      ->make_node({&x, 1})
      .output(0);
}

Variable blocks_to_array(const Variable& y, Extents im_size, Extents block, Extents stride) {
  nblocks(im_size, block, stride);
  return std::make_shared<Blocks>(std::move(im_size), std::move(block), std::move(stride), true)
      ->make_node({&y, 1})
      .output(0);
}

void register_ops_of_blocks() { register_type<Blocks>(); }

}  // namespace ops
}  // namespace palimpsest
