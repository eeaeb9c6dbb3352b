// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include "palimpsest/base/atomic_file.hpp"
#include "palimpsest/io/input_file.hpp"
#include "palimpsest/tensor/tensor.hpp"

namespace palimpsest::io_detail {

/// A new row-major tensor from `offset` on; `swapped`: the file has the other byte order.
/// The caller has held the byte count against the file's size.
Tensor read_elements(const InputFile& file, index_t offset, const Extents& shape, DType dtype,
                     bool swapped);

/// The same for the host's byte order, mapped. The caller has checked the byte count against the
/// file's.
Tensor map_elements(const std::string& path, index_t offset, const Extents& shape, DType dtype);

/// Elements that were read as bytes become values: host byte order, booleans 0 or 1.
void make_native(Tensor& tensor, bool swapped);

/// All elements, row-major, for any strides; copies at most a small piece at a time.
void write_elements(AtomicFile& file, const Tensor& tensor);

/// element_count and byte_count of extents out of a file: FormatError instead of OverflowError.
index_t foreign_byte_count(const std::string& path, const Extents& shape, DType dtype);

}  // namespace palimpsest::io_detail
