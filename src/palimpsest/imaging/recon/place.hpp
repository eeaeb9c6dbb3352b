// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <string>

#include "palimpsest/io/scratch_array.hpp"
#include "palimpsest/memory/file_pages.hpp"

namespace palimpsest {

/// Location of the large arrays of a reconstruction: memory, or unnamed files in a folder.
struct Place {
  bool in_memory = true;
  std::string folder = ".";

  ScratchArray array(const Extents& shape) const {
    return in_memory ? ScratchArray::in_memory(shape, DType::complex64)
                     : ScratchArray(folder, shape, DType::complex64);
  }
};

inline bool is_mapped(const Tensor& t) { return t.numel() > 0 && is_file_mapped(t.raw_data(), 1); }

/// Takes the read pages of a mapped array out of the process's memory.
void release_pages(const Tensor& t);

}  // namespace palimpsest
