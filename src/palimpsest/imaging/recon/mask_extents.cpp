// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/imaging/recon/mask_extents.hpp"

#include <fmt/format.h>

#include <array>

#include "palimpsest/base/error.hpp"
#include "palimpsest/kernels/reduce/reduce_all.hpp"

namespace palimpsest {
namespace {

// True if neighbours along the axis differ.
bool changes_along(const Tensor& mask, index_t axis) {
  const index_t n = mask.shape(axis) - 1;
  const Tensor a = mask.narrow(axis, 0, n), b = mask.narrow(axis, 1, n);
  return reduce_all<bool>(ReduceOp::any,
                          ElementwiseProgram(ScalarOp::ne, std::array{a.dtype(), b.dtype()}),
                          std::array{a.view_of(), b.view_of()});
}

}  // namespace

void note_changes(const Tensor& mask, Extents& extents) {
  Tensor rest = mask;
  // Readouts are the last axis and mostly complete: one element of them is enough for the others.
  for (index_t axis = -1; axis >= -static_cast<index_t>(extents.size()); --axis) {
    index_t& extent = extents[extents.size() - static_cast<std::size_t>(-axis)];
    const index_t n = rest.shape(axis);
    if (n < 2 || rest.numel() == 0) continue;
    if (extent == 1 && changes_along(rest, axis)) extent = n;
    if (extent == 1) rest = rest.narrow(axis, 0, 1);
  }
}

Tensor shortened_mask(const Tensor& mask, const Extents& extents) {
  Tensor result = mask;
  const auto axes = static_cast<index_t>(extents.size());
  for (index_t axis = -axes; axis < 0; ++axis) {
    const index_t extent = extents[static_cast<std::size_t>(axis + axes)];
    if (extent < result.shape(axis)) result = result.narrow(axis, 0, extent);
  }
  return result;
}

Tensor factors_of_mask(const Tensor& mask) {
  if (is_complex(mask.dtype())) {
    throw DTypeError(
        fmt::format("[mask] got {}, expected bool or real numbers", name_of(mask.dtype())));
  }
  return is_floating(mask.dtype()) ? mask : mask.to(DType::bool_);
}

}  // namespace palimpsest
