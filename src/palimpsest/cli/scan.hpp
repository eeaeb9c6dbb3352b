// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "palimpsest/cli/failure.hpp"
#include "palimpsest/io/format.hpp"
#include "palimpsest/tensor/tensor.hpp"

namespace palimpsest::cli {

struct ScanOptions {
  /// Of a raw file with several slices.
  index_t slice = 0;
  /// Of a raw file with several; all are averaged where none is named.
  std::optional<index_t> repetition;
  /// Decorrelates the coils by the noise readouts of a raw file.
  bool prewhiten = false;
};

/// k-space of one or more planes that can be reconstructed one by one.
///
/// A 2-D scan is one plane (ky, kx), or (ky, kz) when its readouts have one sample. A 3-D scan is
/// transformed along the fully sampled readout; each position there is a plane (kz, ky).
struct Scan {
  FileFormat format = FileFormat::npy;
  /// complex64 (plane, coil, y, x), DC in the middle; zero where nothing was measured.
  Tensor kspace;
  /// bool (y, x), the same for all planes.
  Tensor mask;
  /// Extents of the wanted image: at most those of the plane.
  index_t image_ny = 0, image_nx = 0;
  /// The planes are positions along the readout of a volume.
  bool is_volume = false;
  /// What was done along the readout: encoded over wanted field of view.
  double readout_oversampling = 1;

  index_t n_planes() const { return kspace.shape(0); }
  index_t n_coils() const { return kspace.shape(1); }
  index_t ny() const { return kspace.shape(2); }
  index_t nx() const { return kspace.shape(3); }
  /// Points of the plane per sample.
  double acceleration() const;
};

/// What is wrong with --prewhiten of an array.
UsageError no_noise_in(const std::string& path);

/// Reads ISMRMRD, NPY or BART CFL; arrays are (coil, y, x) or (coil, z, y, x), with zeros at points
/// that were not measured. Readout oversampling is removed.
///
/// Errors   UsageError: another format or rank, real numbers, NaN, nothing measured, a 3-D scan
/// that is
///          undersampled along its readout
Scan read_scan(const std::string& path, const ScanOptions& options = {});

/// Coil maps for a scan, from NPY or CFL: (coil, y, x), for a volume (coil, z, y, x).
///
/// Shapes   -> (plane, coil, y, x) complex64
/// Errors   UsageError: they do not fit the scan
Tensor read_maps(const std::string& path, const Scan& scan);

}  // namespace palimpsest::cli
