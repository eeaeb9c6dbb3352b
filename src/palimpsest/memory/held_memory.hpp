// SPDX-License-Identifier: Apache-2.0
// Internal: memory that others still read or write when its owner frees it.
#pragma once

#include <cstddef>
#include <span>

#include "palimpsest/memory/kept_memory.hpp"

namespace palimpsest {

/// Keeps the memory of these bytes from being given back to the system or used again after its
/// owner has freed it. MPI needs this for a message that a failed exchange did not deliver.
void hold_memory(std::span<const std::byte> bytes);
/// Ends one hold_memory(). Memory that was freed in the meantime is given back.
void release_memory(std::span<const std::byte> bytes);
/// True if some of these bytes are held. One load if nothing is held.
bool is_held(std::span<const std::byte> bytes) noexcept;
bool is_anything_held() noexcept;
/// True if some of these bytes are held: give_back_memory(raw) is then called when they are not.
bool is_given_back_later(std::span<const std::byte> bytes, const RawMemory& raw) noexcept;

}  // namespace palimpsest
