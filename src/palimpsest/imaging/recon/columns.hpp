// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <complex>
#include <functional>

#include "palimpsest/compile/function.hpp"
#include "palimpsest/imaging/recon/memory_ledger.hpp"
#include "palimpsest/imaging/recon/place.hpp"

namespace palimpsest {

inline index_t sample_bytes(const Extents& shape) { return byte_count(shape, DType::complex64); }

/// Transform along the last axis of a grid before columns are taken from it.
enum class AlongX { nothing, to_image, to_image_and_back };

/// Takes consecutive columns of a grid (coil, z, y, x) piece by piece: as planes (x, coil, z, y),
/// or as a narrower grid in the same order.
class ColumnTaker {
 public:
  struct Options {
    AlongX along = AlongX::nothing;
    index_t first = 0, count = 0;
    bool as_planes = false;
    /// In place of the transform and the choice: the columns as products with k-space, (count, x).
    Tensor factors = {};
    /// Bytes of the grid for one piece of work.
    index_t piece_bytes = 0;
    bool grid_is_mapped = false;
  };
  ColumnTaker(const Extents& grid, const Options& options);

  /// Bytes held beside grid and result.
  index_t bytes() const;
  /// Extents of the result.
  Extents shape() const;
  /// Gets the samples of a column, as they are written, as often as there are pieces.
  using Visit = std::function<void(index_t column, const std::complex<float>* samples, index_t n)>;
  Tensor take(const Tensor& grid, const Place& place, MemoryLedger& ledger,
              const Visit& visit = {}) const;

 private:
  Tensor worked_on(const Tensor& rows) const;

  Extents grid_;
  Options options_;
  index_t rows_ = 1;  // at a time
  Function function_;
};

}  // namespace palimpsest
