// SPDX-License-Identifier: Apache-2.0
// Internal: what one thread has asked of the allocators, which no other thread can blur.
#pragma once

#include <cstdint>

namespace palimpsest {

/// Successful allocations by the calling thread since it began, over all devices.
std::uint64_t allocations_by_this_thread();

}  // namespace palimpsest
