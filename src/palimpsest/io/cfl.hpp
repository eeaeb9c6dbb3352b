// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "palimpsest/base/api.hpp"
#include "palimpsest/tensor/tensor.hpp"

namespace PALIMPSEST_API palimpsest {

/// An array of BART, the pair STEM.hdr and STEM.cfl; the path may have either ending, or none.
///
/// Shapes   axes reversed: BART's first dimension is the fastest, so it becomes the last axis.
///          BART's trailing dimensions of 1 are dropped: (180, 230, 1, 8, 1, ..) is (8, 1, 230,
///          180)
/// DTypes   complex64
/// Errors   IoError: a file cannot be read; FormatError: header malformed, size does not match
Tensor read_cfl(const std::string& path);

/// Maps the array of read_cfl() without reading it: its elements are the bytes of the mapped file,
/// see map_npy().
Tensor map_cfl(const std::string& path);

/// Writes the pair with 16 dimensions, those that the tensor lacks being 1.
///
/// DTypes   all; converted to complex64, which rounds 64-bit values
/// Errors   IoError as AtomicFile; neither file is left behind
void write_cfl(const std::string& path, const Tensor& tensor);

}  // namespace palimpsest
