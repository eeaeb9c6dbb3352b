// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "palimpsest/imaging/results/image.hpp"

namespace palimpsest::cli {

/// k-space in a file: NPY or CFL, mapped where it can be used as it lies; or a raw scan, sorted.
///
/// Shapes   complex64 (C, y, x) or (C, z, y, x); along a trajectory (C, readouts, samples)
/// Errors   UsageError: another rank or dtype, NaN, "no samples"
struct KspaceFile {
  Tensor kspace;
  Dims names;
  /// Bytes of the allocator that it holds.
  index_t held_bytes = 0;
  bool is_raw = false;
};
KspaceFile read_kspace(const std::string& path);

/// A trajectory (readouts, samples, D), D = 2 or 3, float32: NPY, or CFL as BART writes it. A third
/// coordinate of 0 in a CFL is dropped.
///
/// Errors   UsageError: another array
Tensor read_trajectory(const std::string& path);

/// Numbers separated by commas, such as the extents `128,96`.
///
/// Errors   UsageError naming the option: other texts, numbers below `least`, not `counts` of them
std::vector<index_t> parse_numbers(const std::string& option, const std::string& text,
                                   const std::vector<std::size_t>& counts, index_t least = 1);

}  // namespace palimpsest::cli
