// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "palimpsest/base/api.hpp"
#include "palimpsest/linop/core/named_linop.hpp"

namespace PALIMPSEST_API palimpsest {

/// Values outside of the grid of a convolution.
enum class Boundary : std::uint8_t { zeros, circular };
/// Algorithm of a convolution; automatic chooses by cost.
enum class ConvolutionMethod : std::uint8_t { automatic, direct, fft };
/// Form of the normal operator: multiplication by |DFT h|^2, convolution with the autocorrelation
/// of the kernel, or the convolution followed by its adjoint.
enum class ConvolutionNormal : std::uint8_t { automatic, fft, kernel, composed };

struct ConvolutionOptions {
  Dims batch = "...";
  /// Names of the axes; default Nx, Ny, Nz.
  std::optional<Dims> grid = {};
  /// Names in the output; default those of grid.
  std::optional<Dims> out = {};
  Boundary boundary = Boundary::zeros;
  ConvolutionMethod method = ConvolutionMethod::automatic;
  ConvolutionNormal normal = ConvolutionNormal::automatic;
};
/// Convolution of the last axes, 1 to 3, with a kernel that has as many.
///
/// Math     y[n] = sum_m h[m] x[n + c - m], c = floor(k / 2), also for even sizes; the adjoint is
///          the correlation with conj(h)
/// Shapes   the grid's size is kept
/// DTypes   real with real gives real
/// Errors   ValueError: a kernel of another rank; "circular": .normal fft or kernel with zeros
///          around
/// Cost     direct: grid times kernel in one pass; fft: two FFTs and one multiplication. The
///          transform of the kernel is kept while functions use it, one per grid, and renewed when
///          the kernel was written
NamedLinop Convolution(Parameter kernel, ConvolutionOptions options = {});

struct FftConvolutionOptions {
  Dims batch = "...";
  std::optional<Dims> grid = {}, out = {};
};
/// The circular convolution, by FFT.
/// Errors   ValueError "grid_sizes": a kernel larger than the grid
NamedLinop FftConvolution(Parameter kernel, FftConvolutionOptions options = {});

}  // namespace palimpsest
