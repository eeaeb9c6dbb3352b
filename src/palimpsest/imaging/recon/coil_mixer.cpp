// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/imaging/recon/coil_mixer.hpp"

#include "palimpsest/imaging/prelude.hpp"

namespace palimpsest {

CoilMixer::CoilMixer(index_t coils, index_t to)
    : coils_(coils), to_(to), sum_(static_cast<std::size_t>(coils * coils)) {}

index_t CoilMixer::bytes(index_t line) const {
  // First the sums, the eigenvectors and the workspace of LAPACK; then a line of all coils.
  return std::max(6 * 16 * coils_ * (coils_ + 8), 8 * coils_ * (line + to_ + 1));
}

void CoilMixer::count(const Sample* line, index_t step, index_t n) {
  for (index_t a = 0; a < coils_; ++a) {
    for (index_t b = a; b < coils_; ++b) {
      std::complex<double> product = 0;
      for (index_t i = 0; i < n; ++i) {
        product += std::complex<double>(line[a * step + i]) *
                   std::conj(std::complex<double>(line[b * step + i]));
      }
      sum_[static_cast<std::size_t>(a * coils_ + b)] += product;
    }
  }
}

void CoilMixer::make() {
  LeadingCoils found = leading_coils(std::exchange(sum_, {}), coils_, to_);
  rows_ = std::move(found.rows);
  energy_ = found.energy;
}

void CoilMixer::mix(Sample* line, index_t n) {
  column_.resize(static_cast<std::size_t>(coils_));
  for (index_t i = 0; i < n; ++i) {
    for (index_t c = 0; c < coils_; ++c) column_[static_cast<std::size_t>(c)] = line[c * n + i];
    for (index_t v = 0; v < to_; ++v) {
      Sample sum = 0;
      for (index_t c = 0; c < coils_; ++c) {
        sum +=
            rows_[static_cast<std::size_t>(v * coils_ + c)] * column_[static_cast<std::size_t>(c)];
      }
      line[v * n + i] = sum;
    }
  }
}

void CoilMixer::mix_into(const Tensor& grid, ScratchArray& into, index_t first) {
  const Extents& n = grid.shape();
  const index_t points = n[1] * n[2] * n[3];
  line_.resize(static_cast<std::size_t>(coils_ * n[3]));
  for (index_t z = 0; z < n[1]; ++z) {
    for (index_t y = 0; y < n[2]; ++y) {
      for (index_t c = 0; c < coils_; ++c) {
        const Tensor line =
            grid.select(0, c).select(0, z).select(0, y).to(DType::complex64).contiguous();
        std::copy_n(line.data<Sample>(), n[3], line_.begin() + c * n[3]);
      }
      mix(line_.data(), n[3]);
      for (index_t v = 0; v < to_; ++v) {
        into.write(first + v * points + (z * n[2] + y) * n[3], line_.data() + v * n[3], n[3]);
      }
    }
  }
  release_pages(grid);
}

Tensor CoilMixer::mixed(const Tensor& grid, const Place& place) {
  Extents shape = grid.shape();
  shape[0] = to_;
  ScratchArray result = place.array(shape);
  mix_into(grid, result, 0);
  return result.map();
}

}  // namespace palimpsest
