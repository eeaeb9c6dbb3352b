// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

namespace palimpsest {

/// Sleeps until `word` differs from `seen`, which may be noticed late but never missed, provided
/// that whoever changes the word for good calls unpark(&word) afterwards.
void park(const std::atomic<std::uint64_t>& word, std::uint64_t seen);

/// Wakes all that sleep on this address. What stood there may be gone already.
void unpark(const void* address) noexcept;

}  // namespace palimpsest
