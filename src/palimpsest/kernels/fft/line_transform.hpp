// SPDX-License-Identifier: Apache-2.0
// Internal: transforms of lines of any length.
#pragma once

#include <array>
#include <complex>
#include <cstddef>
#include <memory>

#include "palimpsest/base/dtype.hpp"

namespace palimpsest {

/// Lines on both sides of a transform: element j of line c lies at c * line + j * step, in complex
/// numbers. Rows: all `line` are 1. Dense lines: all `step` are 1.
template <class T>
struct TransformLines {
  const std::complex<T>* x = nullptr;
  std::complex<T>* y = nullptr;
  index_t x_line = 0, x_step = 0, y_line = 0, y_step = 0;
  index_t lines = 0;
  /// Rows: the elements of a line that the array has, the others are 0; elements that are stored.
  /// Dense lines: all.
  index_t given = 0, taken = 0;
  bool forward = true;
  /// Real factors of even and of odd elements, before the transform (1 or -1) and of its result.
  std::array<T, 2> before{1, 1}, after{1, 1};
  /// Rows: complex factors of results, conjugated in the transform back, where `y` is and where
  /// those of lines in excess of `lines` would be; turn_line is 1, or 0 for the same of all lines.
  const std::complex<T>* turns = nullptr;
  index_t turn_line = 0, turn_step = 0;
  /// Rows: stores past the caches those that are whole lines of cache; finish_streams() follows.
  bool streams = false;
};

/// Layout of lines: rows on both sides; dense lines on both sides; dense lines that become rows.
enum class LineLayout { rows, dense, dense_to_rows };

/// y = FFT(x) for lines of n elements, exp(-2 pi i j k / n) if forward. The length decides how:
///
/// - Products of primes to 127, up to 1,024: SplitTransform.
/// - Longer ones: as a matrix, in columns and rows (LongTransform).
/// - With a larger prime factor: as a convolution (ChirpTransform).
///
/// The operations on a line and their roundings depend on n and T alone: results depend neither on
/// layouts, neighbours and threads nor on the width of vectors. Products are rounded before they
/// are added. The transform back exchanges real and imaginary parts, or has conjugate factors.
///
/// Aliases  x is y with the same strides, or disjoint
/// Errors   none; nothing is allocated while computing
template <class T>
class LineTransform {
 public:
  /// Made once per process for each length.
  static std::shared_ptr<const LineTransform> find_or_make(index_t n);

  explicit LineTransform(index_t n) : n_(n) {}
  LineTransform(const LineTransform&) = delete;
  LineTransform& operator=(const LineTransform&) = delete;
  virtual ~LineTransform() = default;

  index_t size() const { return n_; }
  /// Bytes of tables.
  virtual std::size_t bytes() const = 0;
  /// Bytes of scratch for `lines` lines at once.
  virtual std::size_t scratch_bytes(LineLayout layout, index_t lines) const = 0;
  /// Lines in a vector or more: of a number that is no multiple of it some are computed in vain.
  virtual index_t lines_together(LineLayout layout) const = 0;
  /// Are factors `before` and `after` applied? Otherwise they must be 1.
  virtual bool takes_factors() const { return true; }
  /// Do several threads share a line? Then `execute` uses them.
  virtual bool is_shared() const { return false; }
  /// Lines are rows, or dense, on both sides; SplitTransform takes dense lines that become rows,
  /// too. Rows of fewer than four elements only. Scratch is aligned to 64 bytes.
  virtual void execute(const TransformLines<T>& lines, std::byte* scratch) const = 0;

 private:
  index_t n_;
};

/// Numbers between rows of scratch. Rows of a single line have room for two, so that its elements
/// are not mistaken for a dense line.
inline index_t row_width(index_t lines) { return lines > 2 ? lines : 2; }

/// Of n >= 2; else 1.
index_t largest_prime_factor(index_t n);

/// Memory aligned to 64 bytes; contents undefined.
class AlignedMemory {
 public:
  explicit AlignedMemory(std::size_t bytes);
  AlignedMemory(const AlignedMemory&) = delete;
  AlignedMemory& operator=(const AlignedMemory&) = delete;
  ~AlignedMemory();
  std::byte* data() const { return data_; }

 private:
  std::byte* data_;
};

}  // namespace palimpsest
