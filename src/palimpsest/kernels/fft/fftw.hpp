// SPDX-License-Identifier: Apache-2.0
// Internal: the interface to FFTW. Only fftw.cpp calls it.
#pragma once

#include <complex>
#include <cstddef>
#include <memory>
#include <string>

#include "palimpsest/kernels/fft/fft.hpp"

namespace palimpsest {

/// Memory aligned to 64 bytes for FFTW; contents undefined.
class FftMemory {
 public:
  explicit FftMemory(std::size_t bytes);
  FftMemory(const FftMemory&) = delete;
  FftMemory& operator=(const FftMemory&) = delete;
  ~FftMemory();
  std::byte* data() const { return data_; }

 private:
  std::byte* data_;
};

/// Transforms of dense lines.
///
/// Plans of one size are made once per process and kept: a second measurement could select another
/// algorithm, whose results differ in their last bits.
template <class T>
class LinePlan {
 public:
  /// A plan for `lines` lines of n elements, `distance` elements apart. `measure` tries algorithms
  /// on memory of its own, for a limited time, if the length makes it worthwhile and wisdom_place()
  /// allows it; measurements are kept there.
  static std::shared_ptr<const LinePlan> find_or_make(index_t n, index_t lines, index_t distance,
                                                      bool forward, FftEffort effort);
  LinePlan(index_t n, index_t lines, index_t distance, bool forward, FftEffort effort);
  LinePlan(const LinePlan&) = delete;
  LinePlan& operator=(const LinePlan&) = delete;
  ~LinePlan();

  /// `in` and `out` are disjoint, and both are aligned to 64 bytes, or fits() is true for them.
  /// Safe from several threads.
  void execute(const std::complex<T>* in, std::complex<T>* out) const;
  /// Is this address as good as aligned memory, with the same bits as result?
  static bool fits(const std::complex<T>* line);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// Adds FFTW's measurements of a file to those of this process, in the precision of T. False: the
/// file is missing, or FFTW does not understand it.
template <class T>
bool load_wisdom(const std::string& path);
/// Writes the measurements of this process. The file is replaced as a whole or left unchanged.
/// False if it cannot be written, which is not an error.
template <class T>
bool save_wisdom(const std::string& path);

}  // namespace palimpsest
