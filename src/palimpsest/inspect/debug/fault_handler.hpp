// SPDX-License-Identifier: Apache-2.0
// Internal: the handler of SIGSEGV behind GuardedMemory.
#pragma once

#include <cstddef>
#include <vector>

#include "palimpsest/inspect/debug/guarded_memory.hpp"

namespace palimpsest::fault_handler {

struct Record {
  const std::byte* address = nullptr;
  MemoryFault::Kind kind = MemoryFault::Kind::unknown;
  bool is_stale = false;  // outside of the range: at an address without memory
};

/// Watches a range of pages; the handler is installed with the first one. Accesses of this thread
/// to retired ranges, and to addresses without memory, are recorded as well. An empty range watches
/// nothing else. -1: no room in the table, or no page protection on this system.
int watch(std::byte* begin, std::byte* end);
/// Ends that; the handler that was there before comes back with the last one.
std::vector<Record> unwatch(int slot);
/// Gives mapped pages back to the system and keeps their addresses from being used again, until
/// many more ranges have been retired.
void retire(std::byte* begin, std::size_t bytes);
/// Bytes per page; 0: none that could be protected.
std::size_t page_size();

}  // namespace palimpsest::fault_handler
