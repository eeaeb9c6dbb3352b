// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/linop/functional.hpp"

#include <algorithm>
#include <span>

#include "palimpsest/compile/tensor_math.hpp"
#include "palimpsest/linop/transforms/convolution_graph.hpp"
#include "palimpsest/ops/index/index.hpp"
#include "palimpsest/ops/products/products.hpp"
#include "palimpsest/ops/shape/shape_ops.hpp"

namespace palimpsest::functional {
namespace {

using tensor_detail::computed;

Axes axes_of(const Variable& x, const TransformOptions& options) {
  if (options.axes.value()) return *options.axes.value();
  Axes all_axes;
  for (std::size_t k = 0; k < x.rank(); ++k) all_axes.push_back(static_cast<index_t>(k));
  return all_axes;
}

// The extents of the last axes of x. ValueError unless x can be padded (`grows`) or cropped to
// `size`.
Extents last_extents(const Variable& x, const Extents& size, bool grows, const char* who) {
  const std::span<const index_t> shape = x.type().shape;
  const auto fail = [&] {
    throw ValueError(std::string("[") + who + "] size: got " + to_string(size) + " for " +
                     x.type().str() + ", expected one per last axis, none " +
                     (grows ? "smaller" : "larger") + ", all known");
  };
  if (size.size() > shape.size()) fail();
  Extents last = shape.last(size.size());
  for (std::size_t d = 0; d < size.size(); ++d) {
    if (last[d] == kUnknown || (grows ? size[d] < last[d] : size[d] > last[d])) fail();
  }
  return last;
}

Variable padded_to(const Variable& x, const Extents& size, bool centered, const char* who) {
  const Extents last = last_extents(x, size, true, who);
  std::vector<std::pair<index_t, index_t>> widths(x.rank(), {0, 0});
  for (std::size_t d = 0; d < size.size(); ++d) {
    const index_t before = centered ? size[d] / 2 - last[d] / 2 : 0;
    widths[x.rank() - size.size() + d] = {before, size[d] - last[d] - before};
  }
  return ops::pad(x, std::move(widths));
}

std::vector<Tensor> with_first(const Tensor& first, const std::vector<Tensor>& others) {
  std::vector<Tensor> all_of_them{first};
  all_of_them.insert(all_of_them.end(), others.begin(), others.end());
  return all_of_them;
}

std::vector<Variable> rest(std::span<const Variable> v) { return {v.begin() + 1, v.end()}; }

}  // namespace

Variable fft(const Variable& x, const TransformOptions& options) {
  return ops::fft(x, axes_of(x, options), {.norm = options.norm, .centered = options.centered});
}
Variable ifft(const Variable& x, const TransformOptions& options) {
  return ops::ifft(x, axes_of(x, options), {.norm = options.norm, .centered = options.centered});
}
Variable index(const Variable& x, const std::vector<Variable>& idx) { return ops::gather(x, idx); }
Variable index_adjoint(const Variable& y, const std::vector<Variable>& idx, const Extents& size) {
  return ops::scatter_add(y, idx, size);
}
Variable center_pad(const Variable& x, const Extents& size) {
  return padded_to(x, size, true, "center_pad");
}
Variable end_pad(const Variable& x, const Extents& size) {
  return padded_to(x, size, false, "end_pad");
}
Variable center_crop(const Variable& x, const Extents& size) {
  const Extents last = last_extents(x, size, false, "center_crop");
  std::vector<Index> centre{ellipsis};
  for (std::size_t d = 0; d < size.size(); ++d) {
    const index_t before = last[d] / 2 - size[d] / 2;
    centre.emplace_back(slice(before, before + size[d]));
  }
  return ops::index(x, std::move(centre));
}
Variable convolve(const Variable& x, const Variable& kernel, Boundary boundary) {
  return convolved(x, kernel, {.boundary = boundary}, "convolve");
}
Variable inner(const Variable& a, const Variable& b) { return ops::vdot(a, b); }

Tensor fft(const Tensor& x, const TransformOptions& options) {
  return computed("fft", {&x, 1}, [&](auto v) { return fft(v[0], options); });
}
Tensor ifft(const Tensor& x, const TransformOptions& options) {
  return computed("ifft", {&x, 1}, [&](auto v) { return ifft(v[0], options); });
}
Tensor nufft(const Tensor& x, const Tensor& locs, const NufftOptions& options) {
  const Tensor arguments[] = {x, locs};
  return computed("nufft", arguments, [&](auto v) { return nufft(v[0], v[1], options); });
}
Tensor nufft_adjoint(const Tensor& y, const Tensor& locs, const Extents& grid_size,
                     const NufftOptions& options) {
  const Tensor arguments[] = {y, locs};
  return computed("nufft_adjoint", arguments,
                  [&](auto v) { return nufft_adjoint(v[0], v[1], grid_size, options); });
}
Tensor interpolate(const Tensor& x, const Tensor& locs, const InterpolateOptions& options) {
  const Tensor arguments[] = {x, locs};
  return computed("interpolate", arguments,
                  [&](auto v) { return interpolate(v[0], v[1], options); });
}
Tensor interpolate_adjoint(const Tensor& y, const Tensor& locs, const Extents& grid_size,
                           const InterpolateOptions& options) {
  const Tensor arguments[] = {y, locs};
  return computed("interpolate_adjoint", arguments,
                  [&](auto v) { return interpolate_adjoint(v[0], v[1], grid_size, options); });
}
Tensor array_to_blocks(const Tensor& x, const Extents& block, const Extents& stride) {
  return computed("array_to_blocks", {&x, 1},
                  [&](auto v) { return array_to_blocks(v[0], block, stride); });
}
Tensor blocks_to_array(const Tensor& y, const Extents& im_size, const Extents& block,
                       const Extents& stride) {
  return computed("blocks_to_array", {&y, 1},
                  [&](auto v) { return blocks_to_array(v[0], im_size, block, stride); });
}
Tensor index(const Tensor& x, const std::vector<Tensor>& idx) {
  return computed("index", with_first(x, idx), [&](auto v) { return index(v[0], rest(v)); });
}
Tensor index_adjoint(const Tensor& y, const std::vector<Tensor>& idx, const Extents& size) {
  return computed("index_adjoint", with_first(y, idx),
                  [&](auto v) { return index_adjoint(v[0], rest(v), size); });
}
Tensor center_pad(const Tensor& x, const Extents& size) {
  return computed("center_pad", {&x, 1}, [&](auto v) { return center_pad(v[0], size); });
}
Tensor center_crop(const Tensor& x, const Extents& size) {
  return computed("center_crop", {&x, 1}, [&](auto v) { return center_crop(v[0], size); });
}
Tensor end_pad(const Tensor& x, const Extents& size) {
  return computed("end_pad", {&x, 1}, [&](auto v) { return end_pad(v[0], size); });
}
Tensor convolve(const Tensor& x, const Tensor& kernel, Boundary boundary) {
  const Tensor arguments[] = {x, kernel};
  return computed("convolve", arguments, [&](auto v) { return convolve(v[0], v[1], boundary); });
}
Tensor inner(const Tensor& a, const Tensor& b) {
  const Tensor arguments[] = {a, b};
  return computed("inner", arguments, [&](auto v) { return inner(v[0], v[1]); });
}

std::vector<Tensor> mask_to_index(const Tensor& mask) {
  if (!mask.defined() || mask.dtype() != DType::bool_ || mask.rank() == 0) {
    throw DTypeError("[mask_to_index] mask: expected bool and at least one axis");
  }
  const Tensor dense = mask.contiguous();
  const bool* values = dense.data<bool>();
  std::vector<std::vector<index_t>> found(dense.rank());
  for (index_t i = 0; i < dense.numel(); ++i) {
    if (!values[i]) continue;
    index_t remaining = i;
    for (std::size_t axis = dense.rank(); axis-- > 0;) {
      found[axis].push_back(remaining % dense.shape()[axis]);
      remaining /= dense.shape()[axis];
    }
  }
  std::vector<Tensor> result;
  for (const auto& positions : found) {
    result.push_back(positions.empty() ? Tensor::zeros({0}, DType::int64)
                                       : Tensor::from(positions));
  }
  return result;
}

std::vector<index_t> slice_to_range(const Slice& slice, index_t n) {
  if (slice.step < 1) {
    throw ValueError("[slice_to_range] step: got " + std::to_string(slice.step) +
                     ", expected a positive one");
  }
  const auto place = [&](index_t i) { return std::clamp<index_t>(i < 0 ? i + n : i, 0, n); };
  std::vector<index_t> result;
  const index_t stop = place(slice.stop.value_or(n));
  for (index_t i = place(slice.start.value_or(0)); i < stop; i += slice.step) result.push_back(i);
  return result;
}

}  // namespace palimpsest::functional
