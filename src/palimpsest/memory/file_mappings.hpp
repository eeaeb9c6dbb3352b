// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace palimpsest {

/// For Storage::from_file: says which memory is mapped, from the first to the last use of it.
void note_file_mapping(const void* data, std::size_t bytes);
void forget_file_mapping(const void* data) noexcept;

}  // namespace palimpsest
