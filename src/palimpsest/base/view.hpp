// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "palimpsest/base/api.hpp"
#include "palimpsest/base/shape.hpp"

namespace PALIMPSEST_API palimpsest {

/// Elements in memory of another owner, for kernels to read. `data` is the first element, strides
/// count elements and may have any sign. The spans must outlive the view.
struct ConstView {
  const void* data = nullptr;
  DType dtype = DType::float32;
  std::span<const index_t> extents, strides;

  std::size_t rank() const { return extents.size(); }
};

/// The same, written by kernels.
struct MutableView {
  void* data = nullptr;
  DType dtype = DType::float32;
  std::span<const index_t> extents, strides;

  std::size_t rank() const { return extents.size(); }
  operator ConstView() const { return {data, dtype, extents, strides}; }
};

}  // namespace palimpsest
