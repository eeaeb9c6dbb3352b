// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "palimpsest/base/api.hpp"

// Pages of files that Storage::from_file maps. Reading maps a page into the process. A page that
// was read can be released at once, because the file still has it.
namespace PALIMPSEST_API palimpsest {

/// True if these bytes lie in a mapped file.
/// Cost     one load where nothing is mapped
bool is_file_mapped(const void* data, std::size_t bytes);
/// Takes the pages of these bytes out of the process's memory; read again, they come from the file.
/// Does nothing for bytes that are not those of one mapped file.
void release_file_pages(const void* data, std::size_t bytes) noexcept;

}  // namespace palimpsest
