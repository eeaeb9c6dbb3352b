// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <cstddef>
#include <cstdint>

namespace palimpsest {

/// XXH3-64 of the bytes, the checksum of archives.
std::uint64_t content_hash(const void* data, std::size_t bytes);

}  // namespace palimpsest
