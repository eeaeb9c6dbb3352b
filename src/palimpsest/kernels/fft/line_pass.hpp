// SPDX-License-Identifier: Apache-2.0
// Internal: transforms all lines of an array along one axis.
#pragma once

#include <memory>
#include <vector>

#include "palimpsest/base/fork.hpp"
#include "palimpsest/kernels/fft/fftw.hpp"

namespace palimpsest {

/// One axis of an array on both sides; strides in elements, any sign.
struct PassAxis {
  index_t extent = 1, in_stride = 0, out_stride = 0;
};

/// Factors of the elements of a line: real, complex, or none.
template <class T>
struct LinePhases {
  std::vector<T> real;
  std::vector<std::complex<T>> complex;
};

/// y = after * FFT(before * x) for every line along one axis.
///
/// Lines are brought into dense scratch in panels of neighbours, so that cache lines are used
/// whole whatever the strides, transformed there, and brought back. Phases and scales are applied
/// on the way. Nothing depends on where x and y lie, hence results do not depend on alignment.
template <class T>
class LinePass {
 public:
  struct Options {
    bool transforms = true;  // else y = after * before * x
    bool forward = true;
    FftEffort effort = FftEffort::estimate;
    LinePhases<T> before = {}, after = {};
  };
  /// `others`: the axes along which lines repeat.
  LinePass(const PassAxis& line, std::vector<PassAxis> others, Options options);

  /// Aliases  y is x with the same strides, or disjoint
  void run(const std::complex<T>* x, std::complex<T>* y) const;
  /// Of tables and scratch.
  std::size_t bytes() const;

 private:
  void order_axes();
  void run_panels(const std::complex<T>* x, std::complex<T>* y, std::complex<T>* scratch,
                  index_t begin, index_t end) const;
  void transform(std::complex<T>* scratch, index_t lines) const;
  bool transform_to(const std::complex<T>* scratch, std::complex<T>* to, index_t lines) const;
  bool is_plain() const;
  void transform_rows(const std::complex<T>* from, std::complex<T>* to, std::complex<T>* scratch,
                      index_t lines) const;
  std::size_t scratch_bytes() const;
  std::unique_ptr<FftMemory> take_scratch() const;

  PassAxis line_;
  std::vector<PassAxis> outer_;  // outermost first
  PassAxis panel_;               // along which lines are taken together
  Options options_;
  index_t distance_ = 0;    // of lines in scratch
  index_t lines_ = 1;       // of a full panel
  index_t together_ = 1;    // lines in one call of FFTW
  index_t first_line_ = 0;  // where gathered lines begin in scratch; results begin at 0
  index_t panels_ = 1, tasks_ = 1;
  std::shared_ptr<const LinePlan<T>> plan_;
  // Scratch of lines that are too long for a thread to keep, for the next run.
  mutable Mutex mutex_;
  mutable std::vector<std::unique_ptr<FftMemory>> spare_;
};

}  // namespace palimpsest
