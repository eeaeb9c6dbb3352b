// SPDX-License-Identifier: Apache-2.0
// Internal: the only place that calls FFTW is fftw.cpp.
#pragma once

#include <complex>
#include <cstddef>
#include <memory>

#include "palimpsest/kernels/fft.hpp"

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
template <class T>
class LinePlan {
 public:
  /// Transforms `lines` lines of n elements, `distance` apart, at a time.
  LinePlan(index_t n, index_t lines, index_t distance, bool forward, FftEffort effort);
  LinePlan(const LinePlan&) = delete;
  LinePlan& operator=(const LinePlan&) = delete;
  ~LinePlan();

  /// `in` and `out` are 64-byte aligned and disjoint; the contents of `in` are lost. Safe from
  /// several threads.
  void execute(std::complex<T>* in, std::complex<T>* out) const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace palimpsest
