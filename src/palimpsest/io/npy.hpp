// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "palimpsest/base/api.hpp"
#include "palimpsest/tensor/tensor.hpp"

namespace PALIMPSEST_API palimpsest {

/// An array as NumPy saved it: format 1.0, 2.0 or 3.0, either byte order.
///
/// Shapes   those of the file; an array in Fortran order comes as a view with reversed strides
/// DTypes   all; others (float16, strings, objects, records) are a FormatError
/// Errors   IoError: the file cannot be read; FormatError: header malformed, size does not match
/// Cost     one read; memory of the announced size, once the file is known to hold it
/// Source   numpy.lib.format, NEP 1
Tensor read_npy(const std::string& path);

/// Maps the array of read_npy() without reading it: its elements are the bytes of the mapped file,
/// read when they are used; written, they become memory of their own. Arrays in the other byte
/// order and booleans are read after all.
///
/// Errors   as read_npy
/// Cost     none; a file that shrinks while it is mapped ends the program
Tensor map_npy(const std::string& path);

/// Writes format 1.0 in the host's byte order; in Fortran order where that avoids a copy.
///
/// Errors   IoError as AtomicFile; nothing is left behind
void write_npy(const std::string& path, const Tensor& tensor);

}  // namespace palimpsest
