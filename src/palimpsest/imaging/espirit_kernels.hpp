// SPDX-License-Identifier: Apache-2.0
// Internal: from calibration samples to the matrices of an image point, as a polynomial.
#pragma once

#include <array>
#include <complex>
#include <cstddef>
#include <vector>

#include "palimpsest/imaging/sensitivities.hpp"

namespace palimpsest {

/// Places in one piece of memory, given out one after the other; at null, to know the bytes.
class Room {
 public:
  explicit Room(std::byte* at = nullptr) : at_(at) {}

  template <class T>
  T* take(index_t count) {
    std::byte* const here = at_ ? at_ + bytes_ : nullptr;
    bytes_ += (count * static_cast<index_t>(sizeof(T)) + 63) / 64 * 64;
    return reinterpret_cast<T*>(here);
  }
  index_t bytes() const { return bytes_; }

 private:
  std::byte* at_;
  index_t bytes_ = 0;
};

/// The sizes of an estimate, checked; axes are z, y, x.
struct EspiritSizes {
  /// ShapeError, ValueError: see espirit().
  EspiritSizes(const Extents& kspace, const EspiritOptions& options, const CalibrationArea& area);

  index_t offsets(std::size_t axis) const { return 2 * kernel[axis] - 1; }
  index_t pairs() const { return n_coils * (n_coils + 1) / 2; }
  index_t window() const { return kernel[0] * kernel[1] * kernel[2]; }
  index_t columns() const { return n_coils * window(); }
  index_t rows() const;
  index_t samples() const { return n_coils * area.extent[0] * area.extent[1] * area.extent[2]; }
  index_t coefficients() const { return offsets(0) * offsets(1) * offsets(2) * pairs(); }

  index_t n_coils = 1, n_axes = 2, sets = 1;
  std::array<index_t, 3> n = {1, 1, 1}, kernel = {1, 1, 1};
  CalibrationArea area;
};

/// True if the noise level is to be found in the data.
inline bool finds_noise(const EspiritOptions& o) {
  return !o.sigma2 && (!o.crop || (!o.threshold && !o.rank && !o.percent));
}

struct SignalSpace {
  /// complex128 (dz, dy, dx, pair): coefficients of the elements a >= b of G, for the differences
  /// of window positions from 1 - kernel on.
  Tensor polynomial;
  /// The strongest virtual coil, its largest element positive.
  std::vector<std::complex<double>> reference;
  index_t vectors = 0, of_vectors = 0;
  /// Variance of the noise of a sample; only if something is automatic.
  double sigma2 = 0;
};
/// `samples` is the calibration area, (C, z, y, x).
SignalSpace signal_space(const Tensor& samples, const EspiritSizes& sizes,
                         const EspiritOptions& options);
/// Peak bytes of signal_space(), its result included.
index_t signal_space_bytes(const EspiritSizes& sizes, const EspiritOptions& options);

/// Weights (1 - l / sigma)+ of the singular values, in descending order, of a matrix with noise of
/// variance sigma2 in its elements.
///
/// Source   Candes et al. 2013, doi:10.1109/TSP.2013.2270464
std::vector<double> soft_weights(const std::vector<double>& values, index_t rows, index_t columns,
                                 double sigma2);

/// The crop value with the smallest estimated risk; maps (M, C, ..) are not cropped.
double best_crop(const Tensor& samples, const EspiritSizes& sizes, const Tensor& maps,
                 const Tensor& eigenvalues, double sigma2);

}  // namespace palimpsest
