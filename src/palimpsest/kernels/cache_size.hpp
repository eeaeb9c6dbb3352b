// SPDX-License-Identifier: Apache-2.0
// Internal: what the caches of this machine mean for loops over memory.
#pragma once

#include "palimpsest/base/dtype.hpp"

namespace palimpsest {

/// Bytes of a destination from which on it is written past the caches: twice the last one, so that
/// what a reader would find there is at most the end of it. Results do not depend on it.
index_t streaming_bytes();
/// Replaces it, for tests; 0: back to what the machine has.
void set_streaming_bytes(index_t bytes);

}  // namespace palimpsest
