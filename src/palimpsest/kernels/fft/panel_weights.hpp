// SPDX-License-Identifier: Apache-2.0
// Internal: weights of the points of a panel of lines.
#pragma once

#include <complex>
#include <cstddef>

#include "palimpsest/base/dtype.hpp"

namespace palimpsest {

/// Complex numbers as pairs of real ones.
template <class T>
T* reals(std::complex<T>* z) {
  return reinterpret_cast<T*>(z);
}
template <class T>
const T* reals(const std::complex<T>* z) {
  return reinterpret_cast<const T*>(z);
}

/// Distance of lines in scratch, in elements: an odd number of cache lines. Lines a power of two
/// apart would compete for the same cache sets.
template <class T>
constexpr index_t scratch_distance(index_t elements) {
  constexpr index_t kInLine = 64 / static_cast<index_t>(sizeof(std::complex<T>));
  return ((elements + kInLine - 1) / kInLine | 1) * kInLine;
}

/// Place of the weights of a panel in their array. Strides in elements, any sign; 0 where they
/// repeat. Point j along an axis of n points has weight number (j + shift) mod n.
struct WeightAxis {
  index_t extent = 1, stride = 0, shift = 0;
  index_t at(index_t j) const {
    return (j + shift < extent ? j + shift : j + shift - extent) * stride;
  }
};

/// to = scale * weights * from for n complex numbers, as pairs of real ones.
/// Aliases  from is to, or disjoint
template <class T>
struct WeightedNumbers {
  const T* from;
  const T* weights;
  T* to;
  index_t n;
  bool is_complex;
  T scale;
};

void multiply(const WeightedNumbers<float>& p);
void multiply(const WeightedNumbers<double>& p);

/// to = conj(factors) * from for n complex numbers, as pairs of real ones; `adds`: to that.
/// Aliases  from is to, or disjoint
template <class T>
struct ConjugateProduct {
  const T* from;
  const T* factors;
  T* to;
  index_t n;
  bool adds;
};
void multiply(const ConjugateProduct<float>& p);
void multiply(const ConjugateProduct<double>& p);

/// Real or complex weights of the points of lines, times one number.
template <class T>
class PanelWeights {
 public:
  PanelWeights(const WeightAxis& line, const WeightAxis& panel, bool is_complex, T scale)
      : line_(line), panel_(panel), is_complex_(is_complex), scale_(scale) {}

  /// Bytes of one weight.
  index_t item() const { return static_cast<index_t>(is_complex_ ? 2 * sizeof(T) : sizeof(T)); }
  /// z = scale * weights * z for a line. `weights`: those of point 0 of line 0, real or complex.
  /// `memory`: for those of one line.
  void apply(const void* weights, index_t line, std::byte* memory, std::complex<T>* z) const;
  /// to = scale * weights * from for element j of lines first .. first + lines - 1, which lie side
  /// by side.
  void apply_across(const void* weights, index_t j, index_t first, index_t lines,
                    const std::complex<T>* from, std::complex<T>* to) const;
  /// Prefetches the weights of apply_across, if lines j and their weights are there.
  void ask_across(const void* weights, index_t j, index_t first, index_t lines) const;

 private:
  template <class W>
  void apply_as(const W* weights, index_t line, W* memory, std::complex<T>* z) const;

  WeightAxis line_, panel_;
  bool is_complex_;
  T scale_;
};

}  // namespace palimpsest
