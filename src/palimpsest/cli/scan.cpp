// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/cli/scan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <complex>
#include <vector>

#include "palimpsest/cli/image.hpp"
#include "palimpsest/cli/inputs.hpp"
#include "palimpsest/cli/sampling_pattern.hpp"
#include "palimpsest/io/cartesian.hpp"
#include "palimpsest/io/cfl.hpp"
#include "palimpsest/io/npy.hpp"
#include "palimpsest/linop/fft.hpp"

namespace palimpsest::cli {
namespace {

using Sample = std::complex<float>;

// What a file holds, before it is cut into planes.
struct RawGrid {
  Tensor kspace;               // (coil, kz, ky, kx)
  std::vector<bool> measured;  // (kz, ky, kx)
  double readout_oversampling = 1;
  std::array<index_t, 3> image = {0, 0, 0};  // wanted extents x, y, z; 0: those of the grid
};

Tensor complex_array(const std::string& path, FileFormat format) {
  Tensor data =
      read_input(path, [&] { return format == FileFormat::npy ? read_npy(path) : read_cfl(path); });
  if (!is_complex(data.dtype())) {
    throw UsageError(
        fmt::format("[{}] not complex: got {}, expected complex64 or complex128. Try "
                    "k-space instead of a magnitude image",
                    path, name_of(data.dtype())));
  }
  return data.to(DType::complex64).contiguous();
}

// Points where any coil has a value other than 0.
std::vector<bool> nonzero_points(const Tensor& kspace) {
  const Sample* values = kspace.data<Sample>();
  const index_t n_coils = kspace.shape(0), n = kspace.numel() / std::max<index_t>(1, n_coils);
  std::vector<bool> result(static_cast<std::size_t>(n), false);
  for (index_t c = 0; c < n_coils; ++c) {
    for (index_t i = 0; i < n; ++i) {
      if (values[c * n + i] != Sample(0)) result[static_cast<std::size_t>(i)] = true;
    }
  }
  return result;
}

RawGrid grid_from_array(const std::string& path, FileFormat format) {
  RawGrid grid;
  Tensor data = complex_array(path, format);
  if (data.rank() == 3) data = data.unsqueeze(1);
  if (data.rank() != 4 || data.numel() == 0) {
    throw UsageError(fmt::format(
        "[{}] wrong rank of k-space: got the shape {}, expected (coil, y, x) or (coil, z, y, x)",
        path, to_string(data.shape())));
  }
  grid.kspace = data.contiguous();
  grid.measured = nonzero_points(grid.kspace);
  return grid;
}

RawGrid grid_from_raw_file(const std::string& path, const ScanOptions& options) {
  CartesianKspace sorted = read_input(path, [&] {
    const RawScan raw = read_ismrmrd(path);
    check_finite(path, raw.samples, kspace_values());
    return cartesian_kspace(
        raw,
        {.slice = options.slice, .repetition = options.repetition, .prewhiten = options.prewhiten});
  });
  RawGrid grid;
  grid.kspace = sorted.kspace.contiguous();
  grid.readout_oversampling = sorted.readout_oversampling;
  grid.image = sorted.recon_matrix;
  // A point counts as measured if its readout is there and its column is not left out by all.
  const index_t kx = grid.kspace.shape(3), lines = sorted.mask.numel();
  const std::vector<bool> nonzero = nonzero_points(grid.kspace);
  std::vector<bool> column(static_cast<std::size_t>(kx), false);
  for (std::size_t i = 0; i < nonzero.size(); ++i) {
    if (nonzero[i]) column[i % static_cast<std::size_t>(kx)] = true;
  }
  const Tensor mask = sorted.mask.contiguous();
  const bool* line = mask.data<bool>();
  for (index_t l = 0; l < lines; ++l) {
    for (std::size_t x = 0; x < column.size(); ++x) grid.measured.push_back(line[l] && column[x]);
  }
  return grid;
}

// Is every measured line measured from end to end?
bool readouts_are_complete(const RawGrid& grid) {
  const auto kx = static_cast<std::size_t>(grid.kspace.shape(3));
  for (std::size_t i = 0; i < grid.measured.size(); ++i) {
    if (grid.measured[i] != grid.measured[i - i % kx]) return false;
  }
  return true;
}

NamedLinop readout_transform() { return Fft(1, {.norm = FftNorm::ortho, .centered = true}); }

Tensor mask_tensor(const std::vector<bool>& measured, index_t ny, index_t nx, index_t step) {
  Tensor mask = Tensor::empty({ny, nx}, DType::bool_);
  bool* values = mask.mutable_data<bool>();
  for (index_t i = 0; i < ny * nx; ++i) values[i] = measured[static_cast<std::size_t>(i * step)];
  return mask;
}

// Cuts the image to the wanted field of view along the readout, the last axis of `hybrid`.
Tensor cut_readout(const Tensor& hybrid, const RawGrid& grid) {
  const index_t wanted = grid.image[0];
  if (!(grid.readout_oversampling > 1) || wanted < 1 || wanted >= hybrid.shape(-1)) return hybrid;
  return center_crop(hybrid, hybrid.shape(-2), wanted).contiguous();
}

void set_image_size(Scan& scan, index_t wanted_ny, index_t wanted_nx) {
  const auto pick = [](index_t wanted, index_t n) { return wanted < 1 ? n : std::min(wanted, n); };
  scan.image_ny = pick(wanted_ny, scan.ny());
  scan.image_nx = pick(wanted_nx, scan.nx());
}

// One plane whose columns run along the readout.
void set_plane_with_readout(Scan& scan, const RawGrid& grid) {
  const index_t n_coils = grid.kspace.shape(0), nx = grid.kspace.shape(3);
  const index_t ny = grid.kspace.shape(1) * grid.kspace.shape(2);
  const bool is_partition = grid.kspace.shape(2) == 1;
  Tensor plane = grid.kspace.view({n_coils, ny, nx});
  Tensor mask = mask_tensor(grid.measured, ny, nx, 1);
  if (grid.readout_oversampling > 1 && readouts_are_complete(grid)) {
    const NamedLinop transform = readout_transform();
    plane = transform(cut_readout(transform.H()(plane), grid)).contiguous();
    mask = mask.narrow(1, 0, plane.shape(2)).contiguous();
  }
  scan.kspace = plane.unsqueeze(0);
  scan.mask = mask;
  set_image_size(scan, is_partition ? grid.image[2] : grid.image[1], grid.image[0]);
}

// One plane of two phase encodings: rows ky, columns kz.
void set_plane_of_encodings(Scan& scan, const RawGrid& grid) {
  const index_t nz = grid.kspace.shape(1), ny = grid.kspace.shape(2);
  scan.kspace = grid.kspace.permute({3, 0, 2, 1}).contiguous();
  scan.mask = mask_tensor(grid.measured, nz, ny, 1).transpose().contiguous();
  set_image_size(scan, grid.image[1], grid.image[2]);
}

void set_volume(Scan& scan, const RawGrid& grid, const std::string& path) {
  if (!readouts_are_complete(grid)) {
    throw UsageError(
        fmt::format("[{}] a volume of shape {} is undersampled along its readout x, which must be "
                    "complete. Try "
                    "another order of axes, or one plane",
                    path, to_string(grid.kspace.shape())));
  }
  const Tensor hybrid = cut_readout(readout_transform().H()(grid.kspace), grid);
  const index_t nz = grid.kspace.shape(1), ny = grid.kspace.shape(2), nx = grid.kspace.shape(3);
  scan.kspace = hybrid.permute({3, 0, 1, 2}).contiguous();
  scan.mask = mask_tensor(grid.measured, nz, ny, nx);
  scan.is_volume = true;
  set_image_size(scan, grid.image[2], grid.image[1]);
}

}  // namespace

double Scan::acceleration() const {
  return static_cast<double>(mask.numel()) / static_cast<double>(count_samples(mask));
}

UsageError no_noise_in(const std::string& path) {
  return UsageError(
      fmt::format("[--prewhiten] {} has no noise readouts, only ISMRMRD has. Try without", path));
}

Scan read_scan(const std::string& path, const ScanOptions& options) {
  Scan scan;
  scan.format = read_input(path, [&] { return detect_format(path); });
  if (scan.format == FileFormat::nifti || scan.format == FileFormat::png) {
    throw UsageError(
        fmt::format("[{}] is an image ({}), expected k-space as ISMRMRD, NPY or CFL. Try "
                    "palimpsest simulate --image {}",
                    path, name_of(scan.format), path));
  }
  const bool is_raw = scan.format == FileFormat::ismrmrd;
  if (options.prewhiten && !is_raw) throw no_noise_in(path);
  const RawGrid grid =
      is_raw ? grid_from_raw_file(path, options) : grid_from_array(path, scan.format);
  check_finite(path, grid.kspace, kspace_values());
  if (std::find(grid.measured.begin(), grid.measured.end(), true) == grid.measured.end()) {
    throw UsageError(
        fmt::format("[{}] nothing is measured: all samples are 0. Try another file", path));
  }
  scan.readout_oversampling = grid.readout_oversampling;
  if (grid.kspace.shape(1) == 1 || (grid.kspace.shape(2) == 1 && grid.kspace.shape(3) > 1)) {
    set_plane_with_readout(scan, grid);
  } else if (grid.kspace.shape(3) == 1) {
    set_plane_of_encodings(scan, grid);
  } else {
    set_volume(scan, grid, path);
  }
  return scan;
}

Tensor read_maps(const std::string& path, const Scan& scan) {
  const FileFormat format = read_input(path, [&] { return detect_format(path); });
  if (format != FileFormat::npy && format != FileFormat::cfl) {
    throw UsageError(fmt::format("[--maps] {} is {}, expected NPY or CFL", path, name_of(format)));
  }
  Tensor maps = complex_array(path, format);
  check_finite(path, maps, coil_map_values());
  if (maps.rank() == 4 && !scan.is_volume && maps.shape(1) == 1) maps = maps.select(1, 0);
  if (maps.rank() == 3 && !scan.is_volume) maps = maps.unsqueeze(3);
  const Extents expected = scan.is_volume
                               ? Extents{scan.n_coils(), scan.ny(), scan.nx(), scan.n_planes()}
                               : Extents{scan.n_coils(), scan.ny(), scan.nx(), 1};
  if (maps.shape() != expected) {
    const Extents plane{scan.n_coils(), scan.ny(), scan.nx()};
    throw UsageError(fmt::format("[--maps] {} does not fit the scan: got the shape {}, expected {}",
                                 path, to_string(maps.shape()),
                                 to_string(scan.is_volume ? expected : plane)));
  }
  return maps.permute({3, 0, 1, 2}).contiguous();
}

}  // namespace palimpsest::cli
