// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "palimpsest/cli/scan.hpp"
#include "palimpsest/tensor/tensor.hpp"

namespace palimpsest::cli {

/// k-space of a raw scan, sorted into a file that has no name and is mapped.
struct RawKspace {
  /// complex64 (coil, y, x) or (coil, z, y, x), zero where nothing was measured. Readout
  /// oversampling is removed where readouts are complete.
  Tensor kspace;
  /// Extents of the wanted image: at most those of the grid.
  Extents image;
  /// Held while it was sorted.
  index_t peak_bytes = 0;
};
struct RawKspaceOptions {
  ScanOptions scan;
  /// Of the file.
  std::string folder;
  std::optional<index_t> budget;
  /// No sample is read; k-space is zero.
  bool plan_only = false;
};

/// Errors   UsageError: no Cartesian scan, damaged, samples that are NaN, no room for the file
RawKspace sort_raw_kspace(const std::string& path, const RawKspaceOptions& options);

}  // namespace palimpsest::cli
