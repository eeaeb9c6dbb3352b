// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "palimpsest/base/api.hpp"
#include "palimpsest/linop/core/named_linop.hpp"
#include "palimpsest/ops/transforms/nufft.hpp"

namespace PALIMPSEST_API palimpsest {

/// interpolate: between the elements of the padded spectrum; sampling: at the nearest one, without
/// apodization and scale.
enum class NufftMode { interpolate, sampling };
/// Use of a convolution on a grid of twice the size as the normal operator.
enum class Toeplitz { no, yes, automatic };

struct NufftLinopOptions {
  /// Names of the image axes; default Nx, Ny, Nz.
  std::optional<Dims> input = {};
  /// Names that the axes of the spectrum of a Toeplitz normal operator have; default Kx, Ky, Kz.
  std::optional<Dims> kspace = {};
  Dims batch = "...";
  LocsUnit units = LocsUnit::cycles;
  /// Sign of the exponent: -1 or +1.
  int sign = -1;
  NufftScale scale = NufftScale::ortho;
  /// Accuracy wanted, instead of a width.
  std::optional<double> eps = {};
  /// Padded size over size; default 1.25, with eps 2 where 1.25 is not enough, for the kernel
  /// or for rounding errors.
  std::optional<double> oversamp = {};
  /// Width of the kernel, in units of the padded grid; default 4.
  std::optional<PerAxis> width = {};
  /// Shape of the kernel; default pi sqrt((w/os)^2 (os - 1/2)^2 - 0.8).
  std::optional<PerAxis> beta = {};
  /// Padded sizes are even and have no prime factor above 7.
  bool fast_size = true;
  NufftMode mode = NufftMode::interpolate;
  /// Locations are positions on the padded grid.
  bool prepared = false;
  /// Factors of the image, instead of q / sinh(q).
  Parameter apodization = {};
  Toeplitz toeplitz = Toeplitz::no;
  /// Accuracy of the Toeplitz kernel; default 1e-6 in single and 1e-12 in double precision.
  std::optional<double> toeplitz_eps = {};
};
/// Image to samples at any frequencies (type 2); the adjoint (type 1) is exact to rounding.
///
/// Math     y[k] = s sum_n x[n] exp(sign 2 pi i sum_d k_d (n_d - floor(N_d / 2)) / N_d),
///          s = prod N^(-1/2) (ortho) or 1 (none). N is composed, or with `toeplitz` the
///          convolution that belongs to the exact transform
/// Shapes   locs (k.., D), D = 1, 2, 3; `output` names the axes of the points
/// Units    locs in cycles per field of view, nominally -N/2 .. N/2; see LocsUnit; periodic
/// Errors   ValueError "eps", "width", "sign", "oversamp", "locs", "finite", "Nan/Inf"
///          (apodization), "Toeplitz" (an inner operator that has no such normal); NotSupported
///          "locs": a gradient
/// Cost     an FFT of the padded grid and w^D elements per point; memory: two padded grids, or one
///          where the FFT works in place
/// Source   Fessler & Sutton 2003, doi:10.1109/TSP.2002.807005; Beatty, Nishimura & Pauly 2005,
///          doi:10.1109/TMI.2005.848376
NamedLinop Nufft(Parameter locs, Extents grid_size, Dims output, NufftLinopOptions options = {});

/// The Nufft with NufftMode::sampling: image to the elements of the padded spectrum that lie next
/// to the points, without apodization and scale.
///
/// Math     y[k] = s sum_n x[n] exp(-2 pi i sum_d g_d (n_d - floor(N_d / 2)) / P_d), s = prod
///          P^(-1/2), P the padded sizes, g the grid point nearest to k
/// Cost     an FFT of the padded grid and a gather; the centring is a phase, at the points or on
///          the grid, whichever are fewer
NamedLinop SamplingNufft(Parameter locs, Extents grid_size, Dims output,
                         NufftLinopOptions options = {});

/// Factors of the spectrum in the Toeplitz normal operator A^H inner A (inner undefined: none), on
/// the grid of twice the size, its zero frequency in the middle. Real for real weights.
/// Errors   ValueError "Toeplitz"
Tensor toeplitz_kernel(const NamedLinop& A, const NamedLinop& inner = {});

}  // namespace palimpsest
