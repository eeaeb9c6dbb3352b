// SPDX-License-Identifier: Apache-2.0
// Internal: sizes of this machine's caches, for loops over memory.
#pragma once

#include "palimpsest/base/dtype.hpp"

namespace palimpsest {

/// Least size in bytes of a destination that is written past the caches: the size of the last
/// cache, where the destination would not be found afterwards. Results do not depend on it.
index_t streaming_bytes();
/// The same for lines that are not written one after the other, where a core waits to read each
/// line first: about the size of the core's own caches.
index_t line_streaming_bytes();
/// Replaces the first size, of which the second is a share, for tests; 0 restores the machine's.
void set_streaming_bytes(index_t bytes);

/// Bytes that stay in the cache of one core from one step to the next. Results do not depend on it.
index_t core_cache_bytes();
/// Replaces it, for tests; 0 restores the machine's.
void set_core_cache_bytes(index_t bytes);

}  // namespace palimpsest
