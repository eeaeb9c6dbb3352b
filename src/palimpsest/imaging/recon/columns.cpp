// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/imaging/recon/columns.hpp"

#include <algorithm>

#include "palimpsest/linop/operators/dense.hpp"
#include "palimpsest/linop/transforms/fft.hpp"

namespace palimpsest {
namespace {

// More bytes at a time are not faster.
constexpr index_t kMostPieceBytes = index_t{4} << 20;

NamedLinop transform_along_x() { return Fft(1, {.norm = FftNorm::ortho, .centered = true}); }

}  // namespace

ColumnTaker::ColumnTaker(const Extents& grid, const Options& options)
    : grid_(grid), options_(options) {
  const index_t all_rows = grid[1] * grid[2];
  const index_t bytes = std::min(options.piece_bytes, kMostPieceBytes);
  rows_ = std::clamp<index_t>(bytes / sample_bytes({grid[3]}), 1, all_rows);
  if (options.along == AlongX::nothing) return;
  const ConfigScope scope({.budget = std::optional<index_t>(), .allow_gc = true});
  const Variable x = make_input({DType::complex64, {rows_, grid[3]}, {}}, "rows");
  Variable y;
  if (options.factors.defined()) {
    y = Dense(options.factors, "Nx Kx", "Rows Kx", "Rows Nx")(x);
  } else {
    const NamedLinop F = transform_along_x();
    y = F.H()(x)(all, slice(options.first, options.first + options.count));
    if (options.along == AlongX::to_image_and_back) y = F(y);
  }
  function_ = function({x}, {Out(y)}, {.name = "columns"});
}

Extents ColumnTaker::shape() const {
  if (options_.as_planes) return {options_.count, grid_[0], grid_[1], grid_[2]};
  return {grid_[0], grid_[1], grid_[2], options_.count};
}

index_t ColumnTaker::bytes() const {
  const index_t result = sample_bytes({rows_ * options_.count});
  const index_t turned = options_.as_planes ? result : 0;
  const index_t factors = options_.factors.defined() ? options_.factors.nbytes() : 0;
  const index_t read = factors + (options_.grid_is_mapped ? sample_bytes({rows_ * grid_[3]}) : 0);
  if (!function_.defined()) return read + (options_.as_planes ? turned : result);
  const TensorType type{DType::complex64, {rows_, grid_[3]}, {}};
  const index_t work = function_.plan(std::span<const TensorType>(&type, 1)).peak_bytes;
  return read + std::max(work, result + turned);
}

Tensor ColumnTaker::worked_on(const Tensor& rows) const {
  if (!function_.defined()) return rows.narrow(1, options_.first, options_.count);
  Tensor result;
  function_.call({&rows, 1}, {&result, 1});
  return result;
}

Tensor ColumnTaker::take(const Tensor& grid, const Place& place, MemoryLedger& ledger,
                         const Visit& visit) const {
  const index_t n_coils = grid_[0], all_rows = grid_[1] * grid_[2], n = options_.count;
  ScratchArray result = place.array(shape());
  const auto charge = ledger.charge(options_.grid_is_mapped ? sample_bytes({rows_ * grid_[3]}) : 0);
  for (index_t c = 0; c < n_coils; ++c) {
    const Tensor coil = grid.select(0, c).view({all_rows, grid_[3]});
    for (index_t next = 0; next < all_rows; next += rows_) {
      // The last piece is as large as the others: some of its rows are taken twice.
      const index_t row = std::min(next, all_rows - rows_);
      const Tensor rows = coil.narrow(0, row, rows_), worked = worked_on(rows);
      const Tensor piece = (options_.as_planes ? worked.transpose() : worked).contiguous();
      release_pages(rows);
      const auto* samples = piece.data<std::complex<float>>();
      if (!options_.as_planes) {
        result.write((c * all_rows + row) * n, samples, rows_ * n);
        continue;
      }
      for (index_t x = 0; x < n; ++x) {
        if (visit) visit(x, samples + x * rows_, rows_);
        result.write((x * n_coils + c) * all_rows + row, samples + x * rows_, rows_);
      }
    }
  }
  return result.map();
}

}  // namespace palimpsest
