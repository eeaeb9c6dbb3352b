// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <complex>
#include <optional>

#include "palimpsest/base/api.hpp"
#include "palimpsest/tensor/tensor.hpp"

namespace PALIMPSEST_API palimpsest {

/// The default mask of a comparison: points where the reference exceeds 5 % of its 99th percentile.
///
/// Shapes   reference (..), real or complex -> bool (..)
/// Errors   ValueError "0 everywhere"
Tensor quality_mask(const Tensor& reference);

struct QualityOptions {
  /// bool, the shape of the images: the points that count; absent: quality_mask().
  std::optional<Tensor> mask = {};
  /// Compares complex values with a complex factor, not magnitudes with a real one.
  bool complex = false;
  /// Multiplies the image with the factor that makes the error least; else with 1.
  bool fit = true;
};

/// Difference between an image and a known one.
struct Quality {
  /// a = <x, r> / <x, x>, or 1 of an image of zeros.
  std::complex<double> factor = 1;
  /// |a x - r| / |r|.
  double nrmse = 0;
  /// 20 log10(max |r| / root mean square of a x - r); infinite without an error.
  double psnr_db = 0;
  /// Structural similarity of the magnitudes, 1 of equal images.
  double ssim = 1;
  /// Points that were compared.
  index_t points = 0;
};

/// Compares an image with a known one.
///
/// Math     all norms over the points of the mask; ssim() of |a x|, its mean over the mask
/// Shapes   reference, image (.., y, x), the same
/// Errors   ShapeError "differ in shape", a mask of another shape, fewer than two axes; DTypeError:
///          a mask that is not bool; ValueError "0 everywhere", "no points"
/// Cost     three passes; ssim: seven planes of float64
Quality image_quality(const Tensor& reference, const Tensor& image,
                      const QualityOptions& options = {});

/// Structural similarity at each point, slice by slice.
///
/// Math     ((2 m_x m_r + c1)(2 v_xr + c2)) / ((m_x^2 + m_r^2 + c1)(v_x + v_r + c2)), means and
///          population variances under a Gaussian of sigma 1.5 and 11 points, reflected at the
///          border; c1 = (0.01 L)^2, c2 = (0.03 L)^2, L the largest value of the reference
/// Shapes   reference, image (.., y, x), real -> float32
/// Errors   ShapeError; ValueError "0 everywhere"
/// Source   Wang et al. 2004, doi:10.1109/TIP.2003.819861
Tensor ssim_map(const Tensor& reference, const Tensor& image);

}  // namespace palimpsest
