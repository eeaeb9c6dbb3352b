// SPDX-License-Identifier: Apache-2.0
// Internal: what the caches of this machine mean for loops over memory.
#pragma once

#include "palimpsest/base/dtype.hpp"

namespace palimpsest {

/// Bytes of a destination from which on it is written past the caches: those of the last one, since
/// what comes after it would not be found there. Results do not depend on it.
index_t streaming_bytes();
/// The same where lines are not written one after the other, which makes a core wait for each that
/// is read first: about what the caches next to it hold.
index_t line_streaming_bytes();
/// Replaces the first, of which the second is a share, for tests; 0: back to what the machine has.
void set_streaming_bytes(index_t bytes);

/// Bytes that stay in the cache of one core from one step to the next. Results do not depend on it.
index_t core_cache_bytes();
/// Replaces it, for tests; 0: back to what the machine has.
void set_core_cache_bytes(index_t bytes);

}  // namespace palimpsest
