// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <cstddef>
#include <cstdint>

#include "palimpsest/device/device.hpp"
#include "palimpsest/memory/byte_layout.hpp"

// Elements of sparse views, laid out densely. Internal.
namespace palimpsest {

/// Row-major and without gaps, at the offset of the view; repeated elements stay repeated.
ByteLayout dense_layout(const ByteLayout& view);
/// Bytes of that.
std::int64_t dense_bytes(const ByteLayout& view);
/// Copies each element of `view`, on the device `from`, to where `dense`, its dense_layout(), has
/// it on the device `to`; both addresses are those of the first element.
void copy_elements(const ByteLayout& view, const ByteLayout& dense, Device from,
                   const std::byte* source, Device to, std::byte* target);

}  // namespace palimpsest
