// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/tensor/placeholder.hpp"

#include <atomic>
#include <cstdint>

#include "palimpsest/base/shape.hpp"

namespace palimpsest {
namespace {

// Above the addresses of any process, and below the farthest that a tensor may reach.
constexpr std::uintptr_t kFirst = std::uintptr_t{1} << 56U, kBytes = std::uintptr_t{1} << 55U;
constexpr std::uintptr_t kAlignment = 64;

}  // namespace

Tensor placeholder(DType dtype, const Extents& extents, Device device) {
  static constinit std::atomic<std::uintptr_t> used{0};
  const auto bytes = static_cast<std::uintptr_t>(byte_count(extents, dtype));
  const std::uintptr_t taken = (bytes / kAlignment + 1) * kAlignment;
  const std::uintptr_t address = kFirst + used.fetch_add(taken, std::memory_order_relaxed) % kBytes;
  return Tensor::from_blob(reinterpret_cast<void*>(address), dtype, extents,
                           contiguous_strides(extents), {}, /*writable=*/true, device);
}

}  // namespace palimpsest
