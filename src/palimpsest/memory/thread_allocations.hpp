// SPDX-License-Identifier: Apache-2.0
// Internal: allocations of one thread, without those of other threads.
#pragma once

#include <cstdint>

namespace palimpsest {

/// Successful allocations by the calling thread since it began, over all devices.
std::uint64_t allocations_by_this_thread();

}  // namespace palimpsest
