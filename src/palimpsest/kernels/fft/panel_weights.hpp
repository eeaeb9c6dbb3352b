// SPDX-License-Identifier: Apache-2.0
// Internal: weights of the points of a panel of lines.
#pragma once

#include <complex>
#include <cstddef>
#include <type_traits>

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

/// to = scale * weights * from for n complex numbers, as pairs of real ones. Real weights lie
/// `step` elements apart, 1 or 2; of those 2 apart an element behind the last one may be read too.
/// Aliases  from is to, or disjoint
template <class T>
struct WeightedNumbers {
  const T* from;
  const T* weights;
  T* to;
  index_t n, step;
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
///
/// Of complex64 panels, weights are transposed in registers, two lines of real ones at a time, and
/// multiplied in vectors. Bits are those of plain loops.
template <class T>
class PanelWeights {
 public:
  PanelWeights(const WeightAxis& line, const WeightAxis& panel, bool is_complex, T scale)
      : line_(line), panel_(panel), is_complex_(is_complex), scale_(scale) {}

  /// Bytes of one weight.
  index_t item() const { return static_cast<index_t>(is_complex_ ? 2 * sizeof(T) : sizeof(T)); }
  /// Bytes of memory that `load` needs for each line; one line more than the panel has.
  std::size_t bytes_per_line() const;
  /// Copies the weights of lines first .. first + lines - 1 to memory, line by line. `weights`:
  /// those of point 0 of line 0, real or complex.
  void load(const void* weights, index_t first, index_t lines, std::byte* memory) const;
  /// z = scale * weights * z for line number `line` of those that were loaded.
  void apply(std::byte* memory, index_t line, std::complex<T>* z) const;
  /// to = scale * weights * from for element j of lines first .. first + lines - 1, which lie side
  /// by side. Nothing is loaded for this.
  void apply_across(const void* weights, index_t j, index_t first, index_t lines,
                    const std::complex<T>* from, std::complex<T>* to) const;

 private:
  // Between loaded lines (complex) or pairs of lines (real), in complex<T>.
  index_t distance() const { return scratch_distance<T>(line_.extent); }
  template <class W>
  W* loaded(std::byte* memory, index_t line) const {
    constexpr bool kIsReal = std::is_same_v<W, T>;
    return reinterpret_cast<W*>(memory) +
           (kIsReal ? line / 2 * 2 * distance() + line % 2 : line * distance());
  }
  bool are_neighbours(index_t first, index_t lines) const;
  bool transposes(index_t first, index_t lines) const;
  template <class W>
  void transpose(const W* weights, index_t lines, std::byte* memory) const;
  template <class W>
  void load_as(const W* weights, index_t first, index_t lines, std::byte* memory) const;

  WeightAxis line_, panel_;
  bool is_complex_;
  T scale_;
};

}  // namespace palimpsest
