// SPDX-License-Identifier: Apache-2.0
// Internal: the only place that calls FFTW is fftw.cpp.
#pragma once

#include <complex>
#include <cstddef>
#include <memory>
#include <string>

#include "palimpsest/kernels/fft/fft.hpp"

namespace palimpsest {

/// Memory as FFTW likes it, 64-byte aligned; contents arbitrary.
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

/// One-dimensional transforms of dense lines.
///
/// Plans of one size are made once in a process and kept: a measurement that came out otherwise the
/// second time would give other bits.
template <class T>
class LinePlan {
 public:
  /// Transforms `lines` lines of n elements, `distance` apart, at a time. `measure` tries
  /// algorithms on memory of its own, for a limited time, where that pays and wisdom_place() lets
  /// it; what it learns is kept there.
  static std::shared_ptr<const LinePlan> find_or_make(index_t n, index_t lines, index_t distance,
                                                      bool forward, FftEffort effort);
  LinePlan(index_t n, index_t lines, index_t distance, bool forward, FftEffort effort);
  LinePlan(const LinePlan&) = delete;
  LinePlan& operator=(const LinePlan&) = delete;
  ~LinePlan();

  /// `in` and `out` are disjoint, and both are aligned to 64 bytes or what fits() says. Safe from
  /// several threads.
  void execute(const std::complex<T>* in, std::complex<T>* out) const;
  /// Is memory that begins here as good as aligned memory, with the same bits as result?
  static bool fits(const std::complex<T>* line);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// FFTW's measurements in this process, as its own texts of both precisions.
void export_wisdom(std::string& single, std::string& twice);
/// Adds to it; nothing for an empty text. False: FFTW does not understand the texts.
bool import_wisdom(const std::string& single, const std::string& twice);

}  // namespace palimpsest
