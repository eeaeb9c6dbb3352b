// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/cli/raw_kspace.hpp"

#include <algorithm>

#include "palimpsest/cli/image.hpp"
#include "palimpsest/cli/inputs.hpp"
#include "palimpsest/io/cartesian.hpp"
#include "palimpsest/linop/fft.hpp"

namespace palimpsest::cli {
namespace {

// Readouts are read in parts of this size, less where the budget is small.
constexpr index_t kBatchBytes = index_t{16} << 20, kSmallestBatchBytes = index_t{1} << 18;
// A readout's header, as the file's reader and as the sorted list hold it.
constexpr index_t kReadoutBytes = 1024;

// The same grid with `width` columns, over the wanted field of view.
ScratchArray without_oversampling(const ScratchArray& kspace, index_t width,
                                  const RawKspaceOptions& options) {
  Extents shape = kspace.shape();
  const index_t rows = shape[2], columns = shape[3], planes = shape[0] * shape[1];
  shape[3] = width;
  ScratchArray cut(options.folder, shape, kspace.dtype());
  if (options.plan_only) return cut;
  const NamedLinop transform = Fft(1, {.norm = FftNorm::ortho, .centered = true});
  Tensor plane = Tensor::empty({rows, columns}, kspace.dtype());
  for (index_t i = 0; i < planes; ++i) {
    kspace.read(i * rows * columns, plane.raw_mutable_data(), rows * columns);
    const Tensor image = center_crop(transform.H()(plane), rows, width).contiguous();
    const Tensor spectrum = transform(image).contiguous();
    cut.write(i * rows * width, spectrum.raw_data(), rows * width);
  }
  return cut;
}

// (coil, z, y, 1) as planes (coil, y, z): both axes are phase encodings.
ScratchArray planes_of_encodings(const ScratchArray& kspace, const RawKspaceOptions& options) {
  const Extents& shape = kspace.shape();
  const index_t n = shape[1] * shape[2];
  ScratchArray planes(options.folder, {shape[0], shape[2], shape[1]}, kspace.dtype());
  if (options.plan_only) return planes;
  Tensor plane = Tensor::empty({shape[1], shape[2]}, kspace.dtype());
  for (index_t c = 0; c < shape[0]; ++c) {
    kspace.read(c * n, plane.raw_mutable_data(), n);
    const Tensor turned = plane.transpose().contiguous();
    planes.write(c * n, turned.raw_data(), n);
  }
  return planes;
}

}  // namespace

RawKspace sort_raw_kspace(const std::string& path, const RawKspaceOptions& options) {
  return read_input(path, [&] {
    const RawScanFile file(path);
    SortOptions how{.folder = options.folder, .reads_samples = !options.plan_only};
    index_t n_samples = 0;
    for (const Readout& r : file.contents().readouts) n_samples += r.n_coils * r.n_samples;
    how.batch_bytes =
        std::clamp(options.budget.value_or(kBatchBytes * 8) / 8, kSmallestBatchBytes, kBatchBytes);
    const SortedKspace sorted = sorted_kspace(file,
                                              {.slice = options.scan.slice,
                                               .repetition = options.scan.repetition,
                                               .prewhiten = options.scan.prewhiten},
                                              how);
    const Extents grid = sorted.kspace.shape();
    const auto& wanted = sorted.recon_matrix;
    const auto pick = [](index_t n, index_t of) { return n < 1 ? of : std::min(n, of); };
    RawKspace result;
    result.image = {pick(wanted[2], grid[1]), pick(wanted[1], grid[2]), pick(wanted[0], grid[3])};
    const bool cuts =
        sorted.readout_oversampling > 1 && sorted.has_full_readouts && result.image[2] < grid[3];
    if (grid[3] == 1 && grid[1] > 1) {
      result.kspace = planes_of_encodings(sorted.kspace, options).map();
      result.image = {result.image[1], result.image[0]};
    } else {
      result.kspace = cuts ? without_oversampling(sorted.kspace, wanted[0], options).map()
                           : sorted.kspace.map();
      if (grid[1] == 1) {
        result.kspace = result.kspace.select(1, 0);
        result.image = {result.image[1], result.image[2]};
      }
    }
    const auto n_readouts = static_cast<index_t>(file.contents().readouts.size());
    const Extents plane{grid[2], std::max(grid[1], grid[3])};
    const index_t planes = 4 * byte_count(plane, DType::complex64);
    const index_t batch =
        std::min(how.batch_bytes, byte_count(Extents{n_samples}, DType::complex64));
    result.peak_bytes = n_readouts * kReadoutBytes + std::max(2 * batch, planes);
    return result;
  });
}

}  // namespace palimpsest::cli
