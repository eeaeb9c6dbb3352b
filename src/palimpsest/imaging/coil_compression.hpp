// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "palimpsest/base/api.hpp"
#include "palimpsest/imaging/calibration.hpp"
#include "palimpsest/linop/core/named_linop.hpp"

namespace PALIMPSEST_API palimpsest {

/// svd: one matrix for all of k-space. geometric: one for each position along the readout.
enum class CompressionMethod { svd, geometric };

struct CompressOptions {
  /// Virtual coils; or the smallest number that keeps such a part of the energy; default: all.
  std::optional<index_t> to = {};
  std::optional<double> energy = {};
  CompressionMethod method = CompressionMethod::svd;
  /// The area that the matrices are computed from. Default: calibration_area_of(); with svd all
  /// samples if that finds no area.
  std::optional<CalibrationArea> area = {};
};

/// A change from C coils to V virtual coils.
struct Compression {
  /// (C, [Kz,] Ky, Kx) -> (V, ..): for k-space, noise and calibration data on the same readout.
  NamedLinop kspace;
  /// (C, [Nz,] Ny, Nx) -> (V, ..): for images and maps.
  NamedLinop image;
  /// complex64 (V, C), or (x, V, C) with the geometric method; rows are orthonormal.
  Tensor matrices;
  /// The part of the energy that each virtual coil has, in descending order, all C of them.
  std::vector<double> energies;
};
struct CompressedKspace {
  Tensor kspace;
  Compression compression;
};

/// Fewer, virtual coils with most of the energy. Whiten first: energies count noise as well.
///
/// Math     y' = A y, A the leading left singular vectors of the calibration samples (C x samples).
///          geometric: the same after the unitary inverse transform along the readout, for each x;
///          then from x to x + 1: A_{x+1} A_x^H = U S V^H, A_{x+1} <- V U^H A_{x+1}
/// Shapes   kspace (C, y, x) or (C, z, y, x) -> (V, ..); the readout x fully sampled (geometric)
/// DTypes   complex64
/// Errors   ShapeError, DTypeError: not such; ValueError "to", "energy": out of range;
///          "calibration area": geometric without one; "no signal"
/// Source   Buehrer et al. 2007, doi:10.1002/mrm.21237; Zhang et al. 2013, doi:10.1002/mrm.24267
CompressedKspace compress_coils(const Tensor& kspace, const CompressOptions& options = {});

/// Peak bytes of compress_coils() beside k-space, its result included. With an energy, which
/// decides the number of coils, the bytes for all coils.
///
/// Errors   as compress_coils()
index_t plan_compress_coils(const Tensor& kspace, const CompressOptions& options = {});

/// Removes oversampling along the readout: the middle `n_x` points of the image are kept.
///
/// Math     F_n Crop F_N^H along the last axis, unitary and centred
/// Shapes   kspace (.., N) -> (.., n_x), n_x <= N
/// Errors   ValueError "size": n_x > N or < 1
Tensor remove_oversampling(const Tensor& kspace, index_t n_x);

}  // namespace palimpsest
