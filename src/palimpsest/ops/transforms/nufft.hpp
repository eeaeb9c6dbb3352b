// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <initializer_list>
#include <optional>
#include <variant>

#include "palimpsest/base/api.hpp"
#include "palimpsest/graph/variable.hpp"

namespace PALIMPSEST_API palimpsest {

/// A number for all axes, or one per axis.
struct PerAxis {
  PerAxis(double value) : values{value} {}
  PerAxis(std::initializer_list<double> list) : values(list) {}
  explicit PerAxis(std::span<const double> list) : values(list.begin(), list.end()) {}
  bool fits(std::size_t n) const { return values.size() == 1 || values.size() == n; }
  double operator[](std::size_t axis) const { return values[values.size() == 1 ? 0 : axis]; }

  SmallVector<double, 3> values;
};

/// I0(beta sqrt(1 - u^2)).
struct KaiserBessel {
  PerAxis beta = 1.0;
};
/// order 0: 1; 1: 1 - |u|; 2: (9/8) (1 - |u|)^2 for |u| > 1/3, else (3/4) (1 - 3 u^2).
struct Spline {
  int order = 1;
};
using InterpolationKernel = std::variant<KaiserBessel, Spline>;

/// Beyond the grid: the grid again, as often as needed, or zeros.
enum class PadMode { circular, zero };

struct InterpolateOptions {
  /// Width of the kernel, in grid units.
  PerAxis width = 4.0;
  InterpolationKernel kernel = KaiserBessel{};
  /// 1: the product of the kernels of the axes; 2: the kernel of the distance.
  int norm = 1;
  PadMode pad_mode = PadMode::circular;
};

/// Unit of a location: cycles per field of view; n cycles, n the size of the axis; n/(2 pi) cycles.
enum class LocsUnit { cycles, normalized, radians };
enum class NufftScale { ortho, none };

struct NufftOptions {
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
  /// Locations are positions on the padded grid.
  bool prepared = false;
};

/// The smallest even size >= oversamp * n without a prime factor above 7; not `fast`: the ceiling.
index_t nufft_padded_size(index_t n, double oversamp, bool fast = true);
/// pi sqrt((width / oversamp)^2 (oversamp - 1/2)^2 - 0.8).
/// Errors   ValueError "width": the root is not real
double kaiser_bessel_beta(double width, double oversamp);

namespace ops {

/// Values of a grid between its elements.
///
/// Math     y[b, k] = sum over g with |g_d - k_d| <= w_d / 2, both ends included, of K x[b, g]
/// Shapes   x (b.., g_1 .. g_D), locs (k.., D) in grid units, D = 1, 2, 3; y (b.., k..)
/// DTypes   any floating or complex x; locs of its precision
/// Errors   ValueError "kernel", "norm", "width", "locs", "finite"; DTypeError; NotSupported
///          "locs": a gradient with respect to locs
/// Cost     points w^D per batch entry; points are sorted each time. See run_interpolate
Variable interpolate(const Variable& x, const Variable& locs, InterpolateOptions options = {});
/// The adjoint of interpolate: gridding onto a grid of this size.
Variable interpolate_adjoint(const Variable& y, const Variable& locs, const Extents& grid_size,
                             InterpolateOptions options = {});

/// Image to samples at any frequencies.
///
/// Math     y[b, k] = s sum_n x[b, n] exp(sign 2 pi i sum_d k_d (n_d - floor(N_d / 2)) / N_d),
///          s = prod N^(-1/2) (ortho) or 1 (none)
/// Shapes   x (b.., N_1 .. N_D), extents known; locs (k.., D); y (b.., k..)
/// Units    locs in cycles per field of view, nominally -N/2 .. N/2; see LocsUnit; periodic
/// Errors   ValueError "eps", "width", "sign", "oversamp"
/// Cost     an FFT of the padded grid and an interpolation of w^D elements per point
/// Source   Fessler & Sutton 2003, doi:10.1109/TSP.2002.807005; Beatty, Nishimura & Pauly 2005,
///          doi:10.1109/TMI.2005.848376
Variable nufft(const Variable& x, const Variable& locs, NufftOptions options = {});
/// The exact adjoint of nufft, for images of this size.
Variable nufft_adjoint(const Variable& y, const Variable& locs, const Extents& image_size,
                       NufftOptions options = {});

}  // namespace ops
}  // namespace palimpsest
