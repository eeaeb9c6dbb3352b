// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <string_view>

#include "palimpsest/memory/byte_layout.hpp"
#include "palimpsest/tensor/tensor.hpp"

// Common parts of the sources of this layer.
namespace palimpsest {

/// ShapeError unless this is a rank up to kMaxRank, with as many strides as extents, none negative.
void check_layout(std::span<const index_t> shape, std::span<const index_t> strides,
                  std::string_view who);
/// Strides of axes without neighbours mean nothing and may come from anywhere. Those that reach
/// farther than memory does become 0, so that views can calculate with them.
void drop_far_strides(std::span<const index_t> shape, Strides& strides);
/// ValueError unless an element of `dtype` may lie at this address.
void check_alignment(const void* address, DType dtype, std::string_view who);
/// The extents with a single -1 replaced by `count` divided by the others. ShapeError.
Extents infer_extent(Extents shape, index_t count, std::string_view who);
/// DTypeError when a conversion would drop imaginary parts.
void check_conversion(DType from, DType to, std::string_view who);

/// DeviceError "the host cannot reach" naming `who` unless the elements are on the host.
void check_on_host(const Tensor& t, std::string_view who);
/// Addresses of the elements on their device, which the host may be unable to read.
ConstView addresses_of(const Tensor& t);

/// Layout of the elements in the storage, in bytes; strides without a meaning are 0.
ByteLayout byte_layout(const Tensor& t);

/// The elements first, first + step, ... of an axis, `count` of them.
struct SliceRange {
  index_t first, step, count;
};
/// The result of Python's slice.indices for an axis of n elements; the step is not 0.
SliceRange resolve(const Slice& slice, index_t n);

}  // namespace palimpsest
