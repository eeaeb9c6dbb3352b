// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/imaging/recon/grid_file.hpp"

#include "palimpsest/imaging/prelude.hpp"
#include "palimpsest/imaging/recon/subspace.hpp"
#include "palimpsest/imaging/recon/value_checks.hpp"
#include "palimpsest/io/cfl.hpp"
#include "palimpsest/io/npy.hpp"

namespace palimpsest {
namespace {

// Axes of a BART file whose last dimension counts slices, number 13.
constexpr std::size_t kAxesWithSlices = 14;
// Elements that are converted at a time.
constexpr index_t kPieceElements = index_t{1} << 17;

// BART's dimensions between coils and frames have one element: those of a series are left out.
Tensor without_middle_axes(Tensor data) {
  while (data.rank() > 5 && data.shape(1) == 1) data = data.select(1, 0);
  return data;
}

Tensor real_part(const Tensor& data) {
  const Tensor dense = data.to(DType::complex64).contiguous();
  Tensor result = Tensor::empty(data.shape(), DType::float32);
  const auto* from = dense.data<std::complex<float>>();
  auto* to = result.mutable_data<float>();
  for (index_t i = 0, end = dense.numel(); i < end; ++i) to[i] = from[i].real();
  return result;
}

}  // namespace

void release_pages(const Tensor& t) {
  if (!is_mapped(t)) return;
  index_t last = 0;
  for (std::size_t i = 0; i < t.rank(); ++i) last += (t.shape()[i] - 1) * t.strides()[i];
  const auto item = static_cast<index_t>(item_size(t.dtype()));
  release_file_pages(t.raw_data(), static_cast<std::size_t>((last + 1) * item));
}

index_t copying_bytes(const Tensor& array) {
  const index_t rows = std::clamp<index_t>(kPieceElements / array.shape(-1), 1, array.shape(-2));
  return byte_count(Extents{rows, array.shape(-1)}, DType::complex64);
}

void copy_dense(const Tensor& array, ScratchArray& into, index_t first) {
  if (array.rank() > 2) {
    const index_t n = array.shape(0), part = array.numel() / n;
    for (index_t i = 0; i < n; ++i) copy_dense(array.select(0, i), into, first + i * part);
    return;
  }
  const index_t n = array.shape(0), width = array.shape(1);
  const index_t rows = std::clamp<index_t>(kPieceElements / width, 1, n);
  for (index_t y = 0; y < n; y += rows) {
    const Tensor given = array.narrow(0, y, std::min(rows, n - y));
    const Tensor piece = given.to(DType::complex64).contiguous();
    into.write(first + y * width, piece.raw_data(), piece.numel());
  }
  release_pages(array);
}

Tensor dense_copy(const Tensor& array, const Place& place) {
  if (place.in_memory) {  // without zeros and pieces in between
    Tensor copy = Tensor::empty(array.shape(), DType::complex64);
    for (index_t i = 0; i < array.shape(0); ++i) {
      copy.select(0, i).copy_from(array.select(0, i));
      release_pages(array.select(0, i));
    }
    return copy;
  }
  ScratchArray copy = place.array(array.shape());
  copy_dense(array, copy, 0);
  return copy.map();
}

namespace {

Tensor open_complex(const std::string& path, FileFormat format, const char* what) {
  Tensor data =
      read_input(path, [&] { return format == FileFormat::npy ? map_npy(path) : map_cfl(path); });
  if (!is_complex(data.dtype())) {
    throw ValueError(
        fmt::format("[{}] not complex: got {}, expected complex64 or complex128. Try "
                    "k-space instead of a magnitude image",
                    path, name_of(data.dtype())));
  }
  if (data.numel() > 0) return data;
  throw ValueError(fmt::format("[{}] {} is empty: got the shape {}. Try another file", path, what,
                               to_string(data.shape())));
}

}  // namespace

GridFile open_kspace(const std::string& path, FileFormat format) {
  Tensor data = open_complex(path, format, "k-space");
  const bool has_slices = format == FileFormat::cfl && data.rank() == kAxesWithSlices;
  // BART's axes are x, y, z, coil; the last ones of one point are not in the file.
  while (format == FileFormat::cfl && data.rank() < 4) data = data.unsqueeze(0);
  if (data.rank() == 3) data = data.unsqueeze(1);
  data = without_middle_axes(data);
  if (data.rank() == 4 || data.rank() == 5) return {path, data, has_slices};
  throw ValueError(fmt::format(
      "[{}] wrong rank of k-space: got the shape {}, expected (coil, y, x) or (coil, z, y, x), or "
      "frames of the latter",
      path, to_string(data.shape())));
}

Tensor measured_points_of(const std::string& path, const Tensor& grid) {
  const Extents& n = grid.shape();
  Tensor measured = Tensor::zeros({n[1], n[2], n[3]}, DType::bool_);
  for (index_t c = 0; c < n[0]; ++c) {
    for (index_t z = 0; z < n[1]; ++z) {
      const Tensor plane = grid.select(0, c).select(0, z);
      if (!all_finite(plane)) {
        const NotFinite bad = count_not_finite(grid);
        throw not_finite(path, kspace_values(), bad.count, index_of(bad.first, grid.shape()));
      }
      Tensor of_plane = measured.select(0, z);
      add_nonzero(plane.view_of(), of_plane);
      release_pages(plane);
    }
  }
  return measured;
}

Extents without_ones(const Extents& shape) {
  Extents result;
  for (const index_t n : shape) {
    if (n != 1) result.push_back(n);
  }
  return result;
}

Extents without_single_axes(const Extents& shape) {
  Extents result{shape[0]};
  for (std::size_t i = 1; i < shape.size(); ++i) {
    const bool is_needed = result.size() + (shape.size() - i) <= 3;
    if (shape[i] > 1 || is_needed) result.push_back(shape[i]);
  }
  return result;
}

namespace {

// Axes of one point may have been left out, whichever they are.
Tensor with_all_axes(const Tensor& maps, const Extents& full) {
  std::vector<index_t> of_long_axes;
  for (std::size_t i = 0; i < maps.rank(); ++i) {
    if (maps.shape()[i] > 1) of_long_axes.push_back(maps.strides()[i]);
  }
  Strides strides;
  std::size_t next = 0;
  for (const index_t n : full) strides.push_back(n > 1 ? of_long_axes[next++] : 1);
  return maps.as_strided(full, strides, maps.offset());
}

[[noreturn]] void refuse_maps(const std::string& path, const Extents& got,
                              const ScanLayout& layout) {
  Extents expected = layout.short_maps_shape();
  if (layout.n_slices() > 1) expected.insert(0, layout.n_slices());
  throw ValueError(fmt::format(
      "[ScanReconstructionOptions.maps] {} does not fit the scan: got the shape {}, expected {}",
      path, to_string(got), to_string(expected)));
}

}  // namespace

GridFile open_maps(const std::string& path, const ScanLayout& layout) {
  const FileFormat format = read_input(path, [&] { return detect_format(path); });
  if (format != FileFormat::npy && format != FileFormat::cfl) {
    throw ValueError(fmt::format("[ScanReconstructionOptions.maps] {} is {}, expected NPY or CFL",
                                 path, name_of(format)));
  }
  GridFile file{path, open_complex(path, format, "coil maps")};
  Extents full = layout.maps_shape();  // (coil, z, y, x)
  const index_t one = element_count(full) * layout.n_slices();
  // Sets are told by the number of elements.
  file.sets = file.array.numel() % one == 0 ? file.array.numel() / one : 0;
  full.insert(0, file.sets);
  full.insert(0, layout.n_slices());
  const bool fits = file.sets > 0 && file.sets <= layout.n_coils() &&
                    without_ones(file.array.shape()) == without_ones(full);
  if (!fits) refuse_maps(path, file.array.shape(), layout);
  Tensor grid = with_all_axes(file.array, full);
  full[2] *= file.sets;
  full.erase(1);
  // Sets of equal distances are one axis with their coils; those of columns first are copied.
  if (file.sets == 1) {
    grid = grid.select(1, 0);
  } else if (const Strides& s = grid.strides(); s[1] == grid.shape(2) * s[2]) {
    grid = grid.as_strided(full, {s[0], s[2], s[3], s[4], s[5]}, grid.offset());
  } else {
    grid = grid.contiguous().view(full);
  }
  file.array = layout.n_slices() > 1 ? grid : grid.select(0, 0);
  return file;
}

Tensor open_trajectory(const std::string& path) {
  const auto refuse = [&](const std::string& got) {
    throw ValueError(fmt::format(
        "[ScanOptions.trajectory] {}: got {}, expected NPY of real numbers (readouts, samples, 2 "
        "or 3) in cycles per field of view, or BART's (3, samples, readouts)",
        path, got));
  };
  const FileFormat format = read_input(path, [&] { return detect_format(path); });
  Tensor data;
  if (format == FileFormat::npy) {
    data = read_input(path, [&] { return map_npy(path); });
  } else if (format == FileFormat::cfl) {
    data = read_input(path, [&] { return map_cfl(path); });
    while (data.rank() > 4 && data.shape(1) == 1) data = data.select(1, 0);
  } else {
    refuse(std::string(name_of(format)));
  }
  data = is_complex(data.dtype()) ? real_part(data) : data.to(DType::float32).contiguous();
  if (data.rank() == 4) {
    data = data.view({data.shape(0) * data.shape(1), data.shape(2), data.shape(3)});
  }
  if (data.rank() != 3 || data.numel() == 0 || data.shape(2) < 2 || data.shape(2) > 3) {
    refuse("the shape " + to_string(data.shape()));
  }
  check_finite(path, data, {"the trajectory", "Try another file"});
  const auto* given = data.data<float>();
  if (std::all_of(given, given + data.numel(), [](float v) { return v == 0; })) {
    refuse("zeros only");
  }
  if (data.shape(2) == 2) return data;
  const auto* k = data.data<float>();
  for (index_t i = 2; i < data.numel(); i += 3) {
    if (k[i] != 0) return data;
  }
  return data.narrow(2, 0, 2).contiguous();
}

namespace {

Tensor without_axes_of_one_point(Tensor data) {
  for (std::size_t axis = data.rank(); axis-- > 0;) {
    if (data.shape()[axis] == 1) data = data.select(static_cast<index_t>(axis), 0);
  }
  return data;
}

}  // namespace

Tensor open_array(const std::string& option, const std::string& path) {
  const FileFormat format = read_input(path, [&] { return detect_format(path); });
  if (format == FileFormat::npy) return read_input(path, [&] { return map_npy(path); });
  if (format != FileFormat::cfl) {
    throw ValueError(
        fmt::format("[{}] {} is {}, expected NPY or CFL", option, path, name_of(format)));
  }
  return without_axes_of_one_point(read_input(path, [&] { return map_cfl(path); }));
}

void check_finite_lines(const std::string& option, const std::string& path, const Tensor& values) {
  const NotFinite bad = count_not_finite(values);
  release_pages(values);
  if (bad.count == 0) return;
  throw ValueError(fmt::format(
      "[{}] {}: NaN or infinite values, the first is element {} at {}: got {} of them. Try another "
      "file",
      option, path, bad.first, to_string(index_of(bad.first, values.shape())), bad.count));
}

Tensor open_phase(const std::string& path, const Extents& image) {
  const Tensor given = open_array("ScanReconstructionOptions.phase", path);
  Tensor phase = without_axes_of_one_point(given);
  Extents expected;
  for (const index_t n : image) {
    if (n > 1) expected.push_back(n);
  }
  if (phase.shape() != expected) {
    throw ValueError(
        fmt::format("[ScanReconstructionOptions.phase] {} has the shape {}, expected {}", path,
                    to_string(given.shape()), to_string(image)));
  }
  for (std::size_t axis = 0; axis < image.size(); ++axis) {
    if (image[axis] == 1) phase = phase.unsqueeze(static_cast<index_t>(axis));
  }
  check_finite_lines("ScanReconstructionOptions.phase", path, phase);
  return phase;
}

Tensor open_basis(const std::string& path, index_t frames) {
  const FileFormat format = read_input(path, [&] { return detect_format(path); });
  if (format != FileFormat::npy && format != FileFormat::cfl) {
    throw ValueError(fmt::format("[ScanReconstructionOptions.basis] {} is {}, expected NPY or CFL",
                                 path, name_of(format)));
  }
  Tensor data =
      read_input(path, [&] { return format == FileFormat::npy ? read_npy(path) : read_cfl(path); });
  // ([coefficient], frame, 1, 1, 1, 1, 1) of BART.
  constexpr std::size_t kBefore = 5;
  const bool is_long = data.rank() == kBefore + 1 || data.rank() == kBefore + 2;
  if (format == FileFormat::cfl && is_long) {
    if (data.rank() == kBefore + 1) data = data.unsqueeze(0);
    const index_t n = data.shape(0) * data.shape(1);
    if (data.numel() == n) data = data.view({data.shape(0), data.shape(1)}).permute({1, 0});
  }
  return checked_basis(fmt::format("[ScanReconstructionOptions.basis] {}:", path), data, frames);
}

}  // namespace palimpsest
