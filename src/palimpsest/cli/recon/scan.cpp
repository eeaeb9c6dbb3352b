// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/cli/recon/scan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <utility>

#include "palimpsest/cli/inputs.hpp"
#include "palimpsest/imaging/patterns.hpp"
#include "palimpsest/io/cfl.hpp"
#include "palimpsest/io/npy.hpp"

namespace palimpsest::cli {
namespace {

// Elements that are converted at a time.
constexpr index_t kPieceElements = index_t{1} << 17;
// Readouts that are looked at to find columns that a scanner filled with zeros.
constexpr std::size_t kReadoutsLookedAt = 16;

// `lacks_coils`: an array of fewer axes may be that of one coil.
GridFile map_grid(const std::string& path, FileFormat format, const char* what,
                  bool lacks_coils = false) {
  Tensor data =
      read_input(path, [&] { return format == FileFormat::npy ? map_npy(path) : map_cfl(path); });
  if (!is_complex(data.dtype())) {
    throw UsageError(
        fmt::format("[{}] not complex: got {}, expected complex64 or complex128. Try "
                    "k-space instead of a magnitude image",
                    path, name_of(data.dtype())));
  }
  if (data.numel() == 0) {
    throw UsageError(fmt::format("[{}] {} is empty: got the shape {}. Try another file", path, what,
                                 to_string(data.shape())));
  }
  if (lacks_coils && data.rank() < 4 && data.rank() > 1 && data.shape(0) > 1) {
    data = data.unsqueeze(0);
  }
  if (data.rank() == 3) data = data.unsqueeze(1);
  if (data.rank() != 4) {
    throw UsageError(
        fmt::format("[{}] wrong rank of {}: got the shape {}, expected (coil, y, x) or "
                    "(coil, z, y, x)",
                    path, what, to_string(data.shape())));
  }
  return {path, data};
}

// What the samples of an array tell.
struct Samples {
  Tensor measured;  // bool (z, y, x): where any coil has a value other than 0
  index_t not_finite = 0;
  Extents first_not_finite;
};

template <class T>
void look_at(const Tensor& array, Samples& found) {
  const Extents& n = array.shape();
  const Strides& step = array.strides();
  auto* measured = found.measured.mutable_data<bool>();
  for (index_t c = 0; c < n[0]; ++c) {
    bool* point = measured;
    for (index_t z = 0; z < n[1]; ++z) {
      const Tensor plane = array.select(0, c).select(0, z);
      const auto* values = plane.template data<std::complex<T>>();
      for (index_t y = 0; y < n[2]; ++y) {
        for (index_t x = 0; x < n[3]; ++x, ++point) {
          const std::complex<T> v = values[y * step[2] + x * step[3]];
          *point = *point || v != std::complex<T>(0);
          if (std::isfinite(v.real()) && std::isfinite(v.imag())) continue;
          if (found.not_finite++ == 0) found.first_not_finite = {c, z, y, x};
        }
      }
      release_pages(plane);
    }
  }
}

Samples samples_of(const GridFile& file) {
  const Extents& n = file.array.shape();
  Samples found{Tensor::zeros({n[1], n[2], n[3]}, DType::bool_), 0, {}};
  if (file.array.dtype() == DType::complex64) {
    look_at<float>(file.array, found);
  } else {
    look_at<double>(file.array, found);
  }
  if (found.not_finite > 0) {
    throw not_finite(file.path, kspace_values(), found.not_finite, found.first_not_finite);
  }
  return found;
}

// Is every line along x that is measured at all measured from end to end?
bool lines_are_complete(const Tensor& measured) {
  const bool* point = measured.data<bool>();
  const index_t n = measured.shape(2);
  for (index_t i = 0; i < measured.numel(); ++i) {
    if (point[i] != point[i - i % n]) return false;
  }
  return true;
}

bool is_plane(const Extents& grid) { return grid[1] == 1 || (grid[2] == 1 && grid[3] > 1); }

// The mask of an item out of the measured points (z, y, x), or (z, y, 1) where lines are complete.
Tensor item_mask(const ScanLayout& layout, const Tensor& measured) {
  if (layout.division == Division::volume) return measured;
  if (layout.division == Division::planes) return measured.select(2, 0).contiguous();
  const index_t rows = layout.grid[1] * layout.grid[2];
  const Tensor lines = measured.view({rows, measured.shape(2)});
  if (layout.is_cut() || measured.shape(2) == 1) {
    return lines.narrow(1, 0, 1).expand({rows, layout.columns}).clone();
  }
  return lines;
}

// Extents without those of 1 from axis 1 on, but two at least.
Extents without_single_axes(const Extents& shape) {
  Extents result{shape[0]};
  for (std::size_t i = 1; i < shape.size(); ++i) {
    const bool is_needed = result.size() + (shape.size() - i) <= 3;
    if (shape[i] > 1 || is_needed) result.push_back(shape[i]);
  }
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

// -- layout
// ----------------------------------------------------------------------------------------

Extents ScanLayout::item_shape() const {
  switch (division) {
    case Division::plane:
      return {grid[1] * grid[2], columns};
    case Division::planes:
      return {grid[1], grid[2]};
    case Division::volume:
      break;
  }
  return {grid[1], grid[2], grid[3]};
}

Extents ScanLayout::item_array_shape() const {
  Extents shape = item_shape();
  shape.insert(0, n_coils());
  return shape;
}

Extents ScanLayout::wanted_of_item() const {
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

Extents ScanLayout::image_shape() const {
  Extents shape = wanted_of_item();
  if (n_items() > 1) shape.push_back(columns);
  return shape;
}

Extents ScanLayout::maps_shape() const { return {grid[0], grid[1], grid[2], columns}; }

Extents ScanLayout::short_maps_shape() const { return without_single_axes(maps_shape()); }

index_t ScanLayout::samples_per_coil() const { return count_samples(mask); }

double ScanLayout::acceleration() const {
  return static_cast<double>(mask.numel()) / static_cast<double>(samples_per_coil());
}

// -- arrays
// ----------------------------------------------------------------------------------------

index_t GridFile::copying_bytes() const {
  const index_t rows = std::clamp<index_t>(kPieceElements / array.shape(3), 1, array.shape(2));
  return byte_count(Extents{rows, array.shape(3)}, DType::complex64);
}

Tensor GridFile::dense_copy(const Place& place) const {
  ScratchArray copy = place.array(array.shape());
  const Extents& n = array.shape();
  const index_t rows = std::clamp<index_t>(kPieceElements / n[3], 1, n[2]);
  for (index_t i = 0; i < n[0] * n[1]; ++i) {
    const Tensor plane = array.select(0, i / n[1]).select(0, i % n[1]);
    for (index_t y = 0; y < n[2]; y += rows) {
      const Tensor given = plane.narrow(0, y, std::min(rows, n[2] - y));
      const Tensor piece = given.to(DType::complex64).contiguous();
      copy.write((i * n[2] + y) * n[3], piece.raw_data(), piece.numel());
    }
    release_pages(plane);
  }
  return copy.map();
}

GridFile open_maps(const std::string& path, const ScanLayout& layout) {
  const FileFormat format = read_input(path, [&] { return detect_format(path); });
  if (format != FileFormat::npy && format != FileFormat::cfl) {
    throw UsageError(fmt::format("[--maps] {} is {}, expected NPY or CFL", path, name_of(format)));
  }
  GridFile file = map_grid(path, format, "coil maps", layout.n_coils() == 1);
  const Extents got = without_single_axes(file.array.shape());
  if (got != layout.short_maps_shape()) {
    throw UsageError(fmt::format("[--maps] {} does not fit the scan: got the shape {}, expected {}",
                                 path, to_string(got), to_string(layout.short_maps_shape())));
  }
  const auto& s = file.array.strides();
  // Axes of one point may have been left out, whichever they are.
  const Extents full = layout.maps_shape();
  Strides strides;
  std::vector<index_t> of_long_axes;
  for (std::size_t i = 1; i < 4; ++i) {
    if (file.array.shape()[i] > 1) of_long_axes.push_back(s[i]);
  }
  strides.push_back(s[0]);
  std::size_t next = 0;
  for (std::size_t i = 1; i < 4; ++i) {
    strides.push_back(full[i] > 1 ? of_long_axes[next++] : 1);
  }
  file.array = file.array.as_strided(full, strides, file.array.offset());
  return file;
}

// -- scans
// -----------------------------------------------------------------------------------------

Scan::Scan(const std::string& path, const ScanOptions& options, MemoryLedger& ledger)
    : path_(path), options_(options) {
  layout_.format = read_input(path, [&] { return detect_format(path); });
  if (layout_.format == FileFormat::nifti || layout_.format == FileFormat::png) {
    throw UsageError(
        fmt::format("[{}] is an image ({}), expected k-space as ISMRMRD, NPY or CFL. Try "
                    "palimpsest simulate --image {}",
                    path, name_of(layout_.format), path));
  }
  if (layout_.format == FileFormat::ismrmrd) {
    read_input(path, [&] { open_raw(ledger); });
  } else {
    check_is_raw();
    open_array();
  }
  if (layout_.samples_per_coil() == 0) {
    throw UsageError(
        fmt::format("[{}] nothing is measured: all samples are 0. Try another file", path));
  }
}

// Arrays have one image, and nothing but its samples.
void Scan::check_is_raw() const {
  const auto refuse = [&](const char* option, const char* what) {
    throw UsageError(
        fmt::format("[{}] {} is an array and has no {}, only raw files (ISMRMRD) have. "
                    "Try without {}",
                    option, path_, what, option));
  };
  if (options_.slice) refuse("--slice", "slices");
  if (options_.contrast) refuse("--contrast", "contrasts");
  if (options_.phase) refuse("--phase", "phases");
  if (options_.set) refuse("--set", "sets");
  if (options_.repetition) refuse("--repetition", "repetitions");
  if (options_.prewhiten) refuse("--prewhiten", "noise readouts");
}

// Of several images none is chosen silently.
void Scan::check_named() {
  const ScanContents contents = contents_of(raw_->contents(), cartesian_options());
  const auto check = [&](const char* name, const std::vector<index_t>& values) {
    if (values.size() < 2) return;
    throw UsageError(fmt::format(
        "[--{}] {} has {} {}s, {} to {}, each an image of its own: expected one to be named. Try "
        "--{} {}",
        name, path_, values.size(), name, values.front(), values.back(), name, values.front()));
  };
  check("slice", contents.slices);
  check("contrast", contents.contrasts);
  check("phase", contents.phases);
  check("set", contents.sets);
  layout_.n_repetitions = std::ssize(contents.repetitions);
  layout_.n_averages = std::ssize(contents.averages);
}

void Scan::open_raw(MemoryLedger& ledger) {
  raw_.emplace(path_);
  raw_charge_ = ledger.charge(raw_->opening_bytes());
  check_named();
  const CartesianOptions options = cartesian_options();
  CartesianLayout found = cartesian_layout(*raw_, options);
  const Extents& n = layout_.grid = found.grid;
  if (is_plane(n) && found.has_full_readouts && n[3] > 1) {
    // Columns that a scanner filled with zeros count as not measured.
    note_empty_columns(*raw_, found, kReadoutsLookedAt);
  }
  layout_.division = is_plane(n)               ? Division::plane
                     : found.has_full_readouts ? Division::planes
                                               : Division::volume;
  const auto pick = [](index_t wanted, index_t of) {
    return wanted < 1 ? of : std::min(wanted, of);
  };
  const auto& wanted = found.recon_matrix;
  const bool cuts = found.readout_oversampling > 1 && found.has_full_readouts;
  layout_.columns = cuts ? pick(wanted[0], n[3]) : n[3];
  layout_.wanted = {pick(wanted[2], n[1]), pick(wanted[1], n[2]), pick(wanted[0], layout_.columns)};
  layout_.mask = item_mask(layout_, found.measured);
  open_calibration();
  opening_bytes_ = raw_->opening_bytes() + found.measured.nbytes() + layout_.mask.nbytes();
  if (calibration_mask_.defined()) {
    opening_bytes_ += found.measured.nbytes() + calibration_mask_.nbytes();
  }
  raw_charge_.reset();
  raw_charge_ = ledger.charge(raw_->contents_bytes());
}

// Separate calibration lines that fit on the grid; others are of no use here.
void Scan::open_calibration() {
  const CartesianOptions options = cartesian_options(/*calibration=*/true);
  if (contents_of(raw_->contents(), options).separate_calibration_readouts == 0) return;
  try {
    const CartesianLayout found = cartesian_layout(*raw_, options);
    const bool needs_full = layout_.is_cut() || layout_.division != Division::plane;
    if (found.grid != layout_.grid || (needs_full && !found.has_full_readouts)) return;
    calibration_mask_ = item_mask(layout_, found.measured);
  } catch (const FormatError&) {
    return;  // lines of another grid
  }
}

void Scan::open_array() {
  file_ = map_grid(path_, layout_.format, "k-space");
  const Extents& n = layout_.grid = file_.array.shape();
  layout_.columns = n[3];
  layout_.wanted = {n[1], n[2], n[3]};
  const Tensor measured = samples_of(file_).measured;
  layout_.division = is_plane(n)                    ? Division::plane
                     : lines_are_complete(measured) ? Division::planes
                                                    : Division::volume;
  layout_.mask = item_mask(layout_, measured);
  opening_bytes_ = file_.held_bytes() + measured.nbytes() + layout_.mask.nbytes();
}

CartesianOptions Scan::cartesian_options(bool calibration) const {
  return {.slice = options_.slice,
          .contrast = options_.contrast,
          .phase = options_.phase,
          .set = options_.set,
          .repetition = options_.repetition,
          .prewhiten = options_.prewhiten,
          .calibration = calibration};
}

index_t Scan::held_bytes() const {
  return mask_bytes() + (raw_ ? raw_->contents_bytes() : file_.held_bytes());
}

index_t Scan::mask_bytes() const {
  return layout_.mask.nbytes() + (calibration_mask_.defined() ? calibration_mask_.nbytes() : 0);
}

SortingBytes Scan::making_bytes(index_t piece_bytes) const {
  if (!raw_) return {file_.copying_bytes(), 0};
  return sorting_bytes(*raw_, cartesian_options(), piece_bytes);
}

Tensor Scan::take_kspace(const Place& place, index_t piece_bytes, MemoryLedger& ledger) {
  return read_input(path_, [&] {
    if (!raw_) {
      const GridFile file = std::exchange(file_, {});
      return file.is_dense() ? file.array : file.dense_copy(place);
    }
    const auto charge = ledger.charge(making_bytes(piece_bytes).others);
    Tensor kspace = sorted(cartesian_options(), place, piece_bytes);
    raw_.reset();
    raw_charge_.reset();
    return kspace;
  });
}

Tensor Scan::sorted(const CartesianOptions& options, const Place& place,
                    index_t piece_bytes) const {
  return sorted_kspace(
             *raw_, options,
             {.in_memory = place.in_memory, .folder = place.folder, .batch_bytes = piece_bytes})
      .map();
}

SortingBytes Scan::calibration_bytes(index_t piece_bytes) const {
  return sorting_bytes(*raw_, cartesian_options(/*calibration=*/true), piece_bytes);
}

Tensor Scan::calibration_kspace(const Place& place, index_t piece_bytes,
                                MemoryLedger& ledger) const {
  return read_input(path_, [&] {
    const auto charge = ledger.charge(calibration_bytes(piece_bytes).others);
    return sorted(cartesian_options(/*calibration=*/true), place, piece_bytes);
  });
}

}  // namespace palimpsest::cli
