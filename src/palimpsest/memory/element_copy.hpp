// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <cstddef>
#include <cstdint>

#include "palimpsest/memory/byte_layout.hpp"

// Elements of sparse views, laid out densely. Internal.
namespace palimpsest {

/// Row-major and without gaps, at the offset of the view; repeated elements stay repeated.
ByteLayout dense_layout(const ByteLayout& view);
/// Bytes of that.
std::int64_t dense_bytes(const ByteLayout& view);
/// Copies each element of `view` to where `dense`, its dense_layout(), has it; both addresses are
/// those of the first element.
void copy_elements(const ByteLayout& view, const ByteLayout& dense, const std::byte* source,
                   std::byte* target);

}  // namespace palimpsest
