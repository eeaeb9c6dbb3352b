// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <complex>
#include <vector>

#include "palimpsest/imaging/recon/place.hpp"

namespace palimpsest {

/// Leading left singular vectors of samples with the sum `covariance` of y y^H (upper triangle):
/// the rows (to, coils), conjugated, and the part of the energy that they keep.
///
/// Errors   ValueError "no signal"
struct LeadingCoils {
  std::vector<std::complex<float>> rows;
  double energy = 0;
};
LeadingCoils leading_coils(std::vector<std::complex<double>> covariance, index_t coils, index_t to);

/// Virtual coils of a scan that is read one line at a time: first the samples are counted, then the
/// matrix of the svd is made, and from then on lines are mixed.
class CoilMixer {
 public:
  CoilMixer(index_t coils, index_t to);

  index_t coils() const { return coils_; }
  index_t to() const { return to_; }
  /// The part of the energy that is kept, once the matrix is there.
  double energy() const { return energy_; }
  bool is_ready() const { return !rows_.empty(); }
  /// Bytes held while lines of this many samples are mixed, and while the matrix is made.
  index_t bytes(index_t line) const;

  /// Counts `n` samples of each coil, `step` apart from one coil to the next.
  void count(const std::complex<float>* line, index_t step, index_t n);
  void make();
  /// Turns the first `to` lines of (coil, n) into those of virtual coils.
  void mix(std::complex<float>* line, index_t n);
  /// A dense array (to, ..) of a grid (coil, z, y, x), any strides, complex64 or complex128.
  Tensor mixed(const Tensor& grid, const Place& place);
  /// The same into an array, from element `first` on.
  void mix_into(const Tensor& grid, ScratchArray& into, index_t first);

 private:
  index_t coils_, to_;
  double energy_ = 0;
  std::vector<std::complex<double>> sum_;
  std::vector<std::complex<float>> rows_, column_, line_;
};

}  // namespace palimpsest
