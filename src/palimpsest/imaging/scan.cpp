// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/imaging/scan.hpp"

#include <array>

#include "palimpsest/imaging/patterns.hpp"
#include "palimpsest/imaging/prelude.hpp"
#include "palimpsest/imaging/recon/scan_file.hpp"
#include "palimpsest/imaging/results/image_formats.hpp"

namespace palimpsest {
namespace {

constexpr std::array<const char*, 5> kCounterNames = {"none", "contrast", "phase", "set",
                                                      "repetition"};
constexpr index_t kPieceBytes = index_t{16} << 20;

}  // namespace

const char* name_of(FrameCounter counter) {
  return kCounterNames[static_cast<std::size_t>(counter)];
}

FrameCounter parse_frame_counter(const std::string& text) {
  for (std::size_t k = 1; k < kCounterNames.size(); ++k) {
    if (text == fmt::format("T={}", kCounterNames[k])) return static_cast<FrameCounter>(k);
  }
  throw ValueError(fmt::format(
      "[ScanOptions.as] got '{}', expected T=contrast, T=phase, T=set or T=repetition", text));
}

index_t ScanLayout::n_frames() const {
  return frames.empty() ? 1 : static_cast<index_t>(frames.size());
}

Extents ScanLayout::item_shape() const {
  if (has_trajectory()) {
    return division == Division::volume ? wanted : Extents{wanted[1], wanted[2]};
  }
  switch (division) {
    case Division::plane:
      return {grid[1] * grid[2], columns};
    case Division::planes:
      return {grid[1], grid[2]};
    case Division::volume:
      break;
  }
  return {grid[1], grid[2], columns};
}

Dims ScanLayout::item_dims() const {
  switch (division) {
    case Division::plane:
      return has_trajectory() || grid[1] == 1 ? Dims("Ny Nx") : Dims("Nz Nx");
    case Division::planes:
      return Dims("Nz Ny");
    case Division::volume:
      break;
  }
  return Dims("Nz Ny Nx");
}

Extents ScanLayout::item_array_shape() const {
  Extents shape = item_shape();
  shape.insert(0, n_coils());
  return shape;
}

Extents ScanLayout::wanted_of_item() const {
  if (has_trajectory()) return item_shape();
  switch (division) {
    case Division::plane:
      return {grid[1] == 1 ? wanted[1] : wanted[0], wanted[2]};
    case Division::planes:
      return {wanted[0], wanted[1]};
    case Division::volume:
      break;
  }
  return wanted;
}

std::vector<ImageAxis> ScanLayout::axes_of_item() const {
  const ImageAxis whole{columns, columns, 1};
  const ImageAxis& x = columns == axes[2].points ? axes[2] : whole;
  switch (division) {
    case Division::plane:
      return {axes[grid[1] == 1 ? 1 : 0], x};
    case Division::planes:
      return {axes[0], axes[1]};
    case Division::volume:
      break;
  }
  return {axes[0], axes[1], x};
}

bool ScanLayout::is_resampled() const {
  return !has_trajectory() &&
         std::any_of(axes.begin(), axes.end(), [](const ImageAxis& a) { return a.is_resampled(); });
}

Extents ScanLayout::image_shape() const {
  Extents shape = wanted_of_item();
  if (n_items() > 1) shape.push_back(columns);
  return shape;
}

Extents ScanLayout::result_shape() const {
  Extents shape = image_shape();
  if (!frames.empty()) shape.insert(0, coefficients > 0 ? coefficients : n_frames());
  if (n_slices() > 1) shape.insert(0, n_slices());
  return shape;
}

Dims ScanLayout::image_dims() const {
  return n_items() > 1 ? item_dims() + Dims("Nx") : item_dims();
}

Dims ScanLayout::result_dims() const {
  Dims dims = image_dims();
  if (!frames.empty()) dims = Dims(coefficients > 0 ? "B" : "T") + dims;
  return n_slices() > 1 ? Dims("S") + dims : dims;
}

Extents ScanLayout::maps_shape() const {
  if (!has_trajectory()) return {grid[0], grid[1], grid[2], columns};
  return {grid[0], wanted[0], wanted[1], wanted[2]};
}

Extents ScanLayout::short_maps_shape() const { return without_single_axes(maps_shape()); }

index_t ScanLayout::samples_per_coil() const {
  if (has_trajectory()) return grid[2] * grid[3];
  const index_t n_images = n_slices() * n_frames();
  if (samples_of_images == 0) return count_samples(mask);
  return (samples_of_images + n_images / 2) / n_images;
}

double ScanLayout::acceleration() const {
  if (has_trajectory()) {
    const auto points = static_cast<double>(element_count(item_shape()));
    const auto per_frame = static_cast<double>(readouts_per_frame * grid[3]);
    return points / per_frame;
  }
  const auto points = static_cast<double>(mask.numel());
  if (samples_of_images == 0) return points / static_cast<double>(count_samples(mask));
  return points * static_cast<double>(n_slices() * n_frames()) /
         static_cast<double>(samples_of_images);
}

namespace {

// Readouts of noise one after the other, (coil, sample).
Tensor noise_of(const RawScanFile& file) {
  std::vector<std::size_t> numbers;
  index_t coils = 0, length = 0;
  for (std::size_t i = 0; i < file.contents().readouts.size(); ++i) {
    const Readout& r = file.contents().readouts[i];
    if (!r.has(ReadoutFlag::noise) || r.n_samples == 0) continue;
    if (numbers.empty()) coils = r.n_coils;
    if (r.n_coils != coils) continue;
    numbers.push_back(i);
    length += r.n_samples;
  }
  if (numbers.empty()) return {};
  Tensor noise = Tensor::empty({coils, length}, DType::complex64);
  auto* to = noise.mutable_data<std::complex<float>>();
  index_t at = 0;
  file.read(numbers, kPieceBytes,
            [&](std::size_t i, const std::complex<float>* samples, const float*) {
              const index_t n = file.contents().readouts[i].n_samples;
              for (index_t c = 0; c < coils; ++c) {
                std::copy_n(samples + c * n, n, to + c * length + at);
              }
              at += n;
            });
  return noise;
}

// (S, T, z, y, x) of the masks of all images: of complete planes along x as they are.
Tensor masks_of(const ScanFile& file) {
  const ScanLayout& layout = file.layout();
  const Extents n{layout.grid[1], layout.grid[2], layout.grid[3]};
  Tensor masks =
      Tensor::zeros({layout.n_slices(), layout.n_frames(), n[0], n[1], n[2]}, DType::bool_);
  for (index_t s = 0; s < layout.n_slices(); ++s) {
    for (index_t t = 0; t < layout.n_frames(); ++t) {
      Tensor mask = file.mask(s, t);
      // Every line of cut readouts, and of planes, is complete.
      const bool is_line = layout.division == Division::planes || layout.is_cut();
      if (layout.division == Division::planes) {
        mask = mask.view({n[0], n[1], 1});
      } else {
        mask = mask.view({n[0], n[1], layout.columns});
        if (is_line) mask = mask.narrow(2, 0, 1);
      }
      masks.select(0, s).select(0, t).copy_from(mask.expand(n));
    }
  }
  return masks;
}

// Coefficients in place of the frames have the facts of the first one.
void take_facts(Image& image, const ScanLayout& layout) {
  const auto n_frames = static_cast<std::size_t>(layout.n_frames());
  const std::size_t step = layout.coefficients > 0 ? n_frames : 1;
  for (std::size_t i = 0; i < layout.images.size(); i += step) {
    image.facts.push_back(layout.images[i]);
  }
  if (layout.frame_counter != FrameCounter::none &&
      layout.frame_counter != FrameCounter::repetition) {
    image.frame_counter = name_of(layout.frame_counter);
  }
}

}  // namespace

Image image_of(const ScanLayout& layout, const Tensor& data) {
  Image image;
  image.data = data;
  image.names = layout.result_dims();
  image.voxel_mm = layout.geometry.voxel_mm;
  image.time_step_s = layout.coefficients > 0 ? 0 : layout.geometry.time_step_us * 1e-6;
  image.header = layout.header.xml;
  if (layout.format != FileFormat::ismrmrd) return image;
  take_facts(image, layout);
  take_place_of_facts(image);
  return image;
}

Scan read_scan(const std::string& path, const ScanOptions& options) {
  MemoryLedger ledger;
  const ScanFile file(path, options, ledger, /*whole=*/false);
  const ScanLayout& layout = file.layout();
  const Place memory{};
  Scan scan;
  scan.layout = layout;
  scan.geometry = layout.geometry;
  const bool is_curved = layout.has_trajectory();
  const index_t frames = is_curved ? 1 : layout.n_frames();
  const Extents& n = layout.grid;
  scan.kspace =
      Tensor::empty({layout.n_slices(), frames, n[0], n[1], n[2], n[3]}, DType::complex64);
  std::vector<bool> calibrated;
  for (index_t s = 0; s < layout.n_slices(); ++s) calibrated.push_back(file.has_calibration(s));
  if (std::find(calibrated.begin(), calibrated.end(), true) != calibrated.end()) {
    scan.calibration = Tensor::empty({layout.n_slices(), n[0], n[1], n[2], n[3]}, DType::complex64);
  }
  for (index_t s = 0; s < layout.n_slices(); ++s) {
    Tensor slice = scan.kspace.select(0, s);
    slice.copy_from(file.kspace(s, 0, frames, memory, kPieceBytes, ledger).view(slice.shape()));
    if (!scan.calibration) continue;
    if (!calibrated[static_cast<std::size_t>(s)]) {
      scan.calibration->select(0, s).fill(std::complex<float>(0));
      continue;
    }
    scan.calibration->select(0, s).copy_from(
        file.calibration_kspace(s, memory, kPieceBytes, ledger));
  }
  if (is_curved) {
    scan.kspace = scan.kspace.view({layout.n_slices(), n[0], n[2], n[3]});
    scan.trajectory = layout.trajectory;
  } else {
    scan.mask = masks_of(file);
  }
  if (!file.raw()) return scan;
  scan.header = layout.header;
  const Tensor noise = noise_of(*file.raw());
  if (noise.defined()) scan.noise = noise;
  return scan;
}

}  // namespace palimpsest
