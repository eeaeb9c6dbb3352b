// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/imaging/recon/scan_file.hpp"

#include <fmt/ranges.h>

#include <numeric>

#include "palimpsest/imaging/patterns.hpp"
#include "palimpsest/imaging/prelude.hpp"
#include "palimpsest/imaging/recon/mask_extents.hpp"
#include "palimpsest/imaging/recon/pixels.hpp"
#include "palimpsest/imaging/recon/value_checks.hpp"

namespace palimpsest {
namespace {

// Readouts that are looked at to find columns that a scanner filled with zeros.
constexpr std::size_t kReadoutsLookedAt = 16;

bool is_plane(const Extents& grid) { return grid[1] == 1 || (grid[2] == 1 && grid[3] > 1); }

// The mask of an item out of the measured points (z, y, x), or (z, y, 1) where lines are complete.
Tensor item_mask(const ScanLayout& layout, const Tensor& measured) {
  const bool is_short = layout.is_cut() || measured.shape(2) == 1;
  if (layout.division == Division::planes) return measured.select(2, 0).contiguous();
  if (layout.division == Division::volume) {
    if (!is_short || layout.columns == 1) return measured;
    const Extents full{measured.shape(0), measured.shape(1), layout.columns};
    return measured.narrow(2, 0, 1).expand(full).clone();
  }
  const index_t rows = layout.grid[1] * layout.grid[2];
  const Tensor lines = measured.view({rows, measured.shape(2)});
  if (is_short) return lines.narrow(1, 0, 1).expand({rows, layout.columns}).clone();
  return lines;
}

Division division_of(const Extents& grid, bool has_full_readouts, bool whole) {
  if (is_plane(grid)) return Division::plane;
  // For readouts of one sample the volume is one plane.
  const bool may_divide = !whole || grid[3] == 1;
  return has_full_readouts && may_divide ? Division::planes : Division::volume;
}

// `changes`: extents z, y, x, 1 along axes on which no image's mask changes.
Extents mask_extents_of(const ScanLayout& layout, const Extents& changes) {
  // All of a readout or nothing where its edges are cut.
  const index_t x = changes[2] == 1 ? 1 : layout.columns;
  switch (layout.division) {
    case Division::plane:
      return {std::max(changes[0], changes[1]), x};
    case Division::planes:
      return {changes[0], changes[1]};
    case Division::volume:
      break;
  }
  return {changes[0], changes[1], x};
}

}  // namespace

// -- scans ---------------------------------------------------------------------------------------

ScanFile::ScanFile(const std::string& path, const ScanOptions& options, MemoryLedger& ledger,
                   bool whole)
    : path_(path), options_(options), whole_(whole) {
  check_pixels(options);
  layout_.format = read_input(path, [&] { return detect_format(path); });
  const FileFormat format = layout_.format;
  if (format != FileFormat::npy && format != FileFormat::cfl && format != FileFormat::ismrmrd) {
    throw ValueError(
        fmt::format("[{}] is an image ({}), expected k-space as ISMRMRD, NPY or CFL. Try "
                    "k-space from fake_kspace()",
                    path, format_name(path)));
  }
  if (format == FileFormat::ismrmrd) {
    if (!options.trajectory.empty()) {
      throw ValueError(
          fmt::format("[ScanOptions.trajectory] {} is a raw file, whose readouts have their own "
                      "coordinates. Try without ScanOptions.trajectory",
                      path));
    }
    read_input(path, [&] { open_raw(ledger); });
  } else {
    check_is_raw();
    options.trajectory.empty() ? open_array() : open_array_trajectory();
    makes_array_ = !file_.is_dense();
    is_mapped_ = palimpsest::is_mapped(file_.array);
  }
  if (!layout_.has_trajectory() && options.readouts_per_frame > 0) {
    throw ValueError(
        fmt::format("[ScanOptions.readouts_per_frame] {} is measured on a grid, expected a scan "
                    "along a trajectory. Try ScanOptions.as T=repetition",
                    path));
  }
  if (layout_.samples_per_coil() == 0) {
    throw ValueError(fmt::format(
        "[{}] no samples: nothing is measured, all of k-space is 0. Try another file", path));
  }
}

void ScanFile::refuse_for_array(const char* option, const char* what) const {
  throw ValueError(fmt::format(
      "[{}] {} is an array and has no {}, only raw files (ISMRMRD) have. Try without {}", option,
      path_, what, option));
}

// Arrays have nothing but the samples of images.
void ScanFile::check_is_raw() const {
  const auto refuse = [&](const char* option, const char* what) { refuse_for_array(option, what); };
  if (options_.contrast) refuse("ScanOptions.contrast", "contrasts");
  if (options_.phase) refuse("ScanOptions.phase", "phases");
  if (options_.set) refuse("ScanOptions.set", "sets");
  if (options_.repetition) refuse("ScanOptions.repetition", "repetitions");
  if (options_.as != FrameCounter::none) refuse("ScanOptions.as", "counters");
  if (options_.prewhiten) refuse("ScanOptions.prewhiten", "noise readouts");
  if (options_.encoded_pixels) refuse("ScanOptions.encoded_pixels", "field of view");
  if (!options_.field_of_view_mm.empty()) {
    refuse("ScanOptions.field_of_view_mm", "field of view");
  }
  // Along a trajectory the number of pixels is free.
  if (!options_.matrix.empty() && options_.trajectory.empty()) {
    refuse("ScanOptions.matrix", "field of view");
  }
}

// Several contrasts, phases or sets: none is chosen silently.
void ScanFile::check_named() {
  const ScanContents contents = contents_of(raw_->contents(), options_of(-1));
  // Says which counters there are.
  if (contents.imaging_readouts == 0) imaging_readouts(raw_->contents(), options_of(-1));
  const auto look = [&](const char* option, const std::vector<index_t>& values,
                        FrameCounter counter) {
    const char* const name = name_of(counter);
    if (options_.as == counter) {
      layout_.frames = values;
      return;
    }
    if (values.size() < 2) return;
    throw ValueError(
        fmt::format("[{}] {} has {} {}s, {} to {}, each an image of its own: expected one to be "
                    "named. Try {} {}, or ScanOptions.as T={}",
                    option, path_, values.size(), name, values.front(), values.back(), option,
                    values.front(), name));
  };
  look("ScanOptions.contrast", contents.contrasts, FrameCounter::contrast);
  look("ScanOptions.phase", contents.phases, FrameCounter::phase);
  look("ScanOptions.set", contents.sets, FrameCounter::set);
  if (options_.as == FrameCounter::repetition) layout_.frames = contents.repetitions;
  if (!contents.slices.empty()) layout_.slices = contents.slices;
  layout_.n_repetitions =
      options_.as == FrameCounter::repetition ? 1 : std::ssize(contents.repetitions);
  layout_.n_averages = std::ssize(contents.averages);
}

// Options for one image, or with slice -1 for all.
CartesianOptions ScanFile::options_of(index_t slice, std::optional<index_t> frame,
                                      bool calibration) const {
  CartesianOptions result{.slice = options_.slice,
                          .contrast = options_.contrast,
                          .phase = options_.phase,
                          .set = options_.set,
                          .repetition = options_.repetition,
                          .prewhiten = options_.prewhiten,
                          .calibration = calibration,
                          .mean_of_all = options_.as != FrameCounter::none};
  if (slice >= 0) result.slice = layout_.slices[static_cast<std::size_t>(slice)];
  if (!frame || layout_.frames.empty()) return result;
  const auto counter = kCounters[static_cast<std::size_t>(options_.as)].of_options;
  if (counter) result.*counter = layout_.frames[static_cast<std::size_t>(*frame)];
  return result;
}

void ScanFile::open_raw(MemoryLedger& ledger) {
  raw_.emplace(path_);
  raw_charge_ = ledger.charge(raw_->opening_bytes());
  check_named();
  const std::string& trajectory = raw_->contents().header.trajectory;
  const bool has_coordinates =
      raw_->contents()
          .readouts[imaging_readouts(raw_->contents(), options_of(0)).front()]
          .n_trajectory_axes > 0;
  const bool is_on_grid = trajectory == "cartesian" || (trajectory == "epi" && !has_coordinates);
  if (!is_on_grid && !has_coordinates) {
    throw NotSupported(
        fmt::format("[scan] its trajectory is '{}', and its readouts have no coordinates: expected "
                    "some. Try ScanOptions.trajectory FILE with its k-space as an array",
                    trajectory));
  }
  is_on_grid ? open_raw_grid() : open_raw_trajectory();
  open_geometry();
  raw_charge_.reset();
  raw_charge_ = ledger.charge(raw_->contents_bytes());
}

// The measured points of an image, or of all frames. Columns that a scanner filled with zeros count
// as not measured: those of the slice's first frame.
CartesianLayout ScanFile::layout_of(index_t slice, std::optional<index_t> frame) const {
  CartesianLayout found = cartesian_layout(*raw_, options_of(slice, frame));
  const Extents& n = found.grid;
  const auto s = static_cast<std::size_t>(slice);
  if (s >= measured_columns_.size() || measured_columns_[s].empty()) return found;
  if (!found.has_full_readouts) return found;
  const Tensor rows = found.measured;
  found.has_full_readouts = false;
  found.measured = Tensor::zeros({n[1], n[2], n[3]}, DType::bool_);
  for (index_t x = 0; x < n[3]; ++x) {
    if (measured_columns_[s][static_cast<std::size_t>(x)]) {
      found.measured.narrow(2, x, 1).copy_from(rows);
    }
  }
  return found;
}

void ScanFile::open_raw_grid() {
  CartesianLayout found = cartesian_layout(*raw_, options_of(0, 0));
  const Extents& n = layout_.grid = found.grid;
  for (index_t s = 0; is_plane(n) && n[3] > 1 && s < layout_.n_slices(); ++s) {
    const CartesianLayout of_slice = cartesian_layout(*raw_, options_of(s, 0));
    measured_columns_.push_back(of_slice.has_full_readouts
                                    ? measured_columns(*raw_, of_slice, kReadoutsLookedAt)
                                    : std::vector<bool>{});
  }
  found = layout_of(0, 0);
  bool has_full_readouts = true;
  Extents changes{1, 1, 1};
  const index_t n_images = layout_.n_slices() * layout_.n_frames();
  for (index_t image = 0; image < n_images; ++image) {
    const index_t slice = image / layout_.n_frames(), frame = image % layout_.n_frames();
    const CartesianLayout other = layout_of(slice, frame);
    if (other.grid != n) {
      throw ValueError(fmt::format(
          "[scan] slice {} has k-space of {}, expected {} as the first one. Try ScanOptions.slice",
          layout_.slices[static_cast<std::size_t>(slice)], to_string(other.grid), to_string(n)));
    }
    has_full_readouts &= other.has_full_readouts;
    note_changes(other.measured, changes);
  }
  layout_.division = division_of(n, has_full_readouts, whole_);
  for (std::size_t k = 0; k < 3; ++k) {
    layout_.axes[k] = image_axis(raw_->contents().header, options_, 2 - k, n[k + 1]);
  }
  const ImageAxis& x = layout_.axes[2];
  const bool is_taken_first =
      layout_.division == Division::planes || (has_full_readouts && !x.is_resampled());
  layout_.columns = is_taken_first ? x.pixels : n[3];
  layout_.wanted = {layout_.axes[0].pixels, layout_.axes[1].pixels, x.pixels};
  layout_.mask = item_mask(layout_, found.measured);
  layout_.mask_extents = mask_extents_of(layout_, changes);
  index_t fewest = layout_.mask.numel(), most = 0;
  for (index_t image = 0; image < n_images; ++image) {
    const index_t count =
        count_samples(mask(image / layout_.n_frames(), image % layout_.n_frames()));
    layout_.samples_of_images += count;
    fewest = std::min(fewest, count);
    most = std::max(most, count);
  }
  note_lines(fewest, most);
  opening_bytes_ = raw_->opening_bytes() + found.measured.nbytes() + layout_.mask.nbytes();
  if (raw_->contents().header.trajectory == "epi") note_navigators();
}

// Images of which much was not measured are aborted scans, or say so nowhere.
void ScanFile::note_lines(index_t fewest, index_t most) {
  if (10 * fewest >= 9 * most) return;
  layout_.notes.push_back(fmt::format("images differ in what was measured: {} to {} points of {}",
                                      fewest, most, layout_.mask.numel()));
}

void ScanFile::note_navigators() {
  std::vector<index_t> without;
  for (index_t s = 0; s < layout_.n_slices(); ++s) {
    const index_t number = layout_.slices[static_cast<std::size_t>(s)];
    if (!has_navigators(raw_->contents(), number)) without.push_back(number);
  }
  if (without.empty()) return;
  const bool is_all = std::ssize(without) == layout_.n_slices();
  layout_.notes.push_back(is_all
                              ? "no phase correction: the scan has no navigator lines"
                              : fmt::format("no phase correction of slice {}: no navigator lines",
                                            fmt::join(without, ", ")));
}

// Separate calibration lines that fit on the grid; others are of no use here.
Tensor ScanFile::calibration_mask(index_t slice) const {
  if (!raw_ || layout_.has_trajectory()) return {};
  const CartesianOptions options = options_of(slice, {}, /*calibration=*/true);
  if (contents_of(raw_->contents(), options).separate_calibration_readouts == 0) return {};
  try {
    const CartesianLayout found = cartesian_layout(*raw_, options);
    const bool needs_full = layout_.is_cut() || layout_.division != Division::plane;
    if (found.grid != layout_.grid || (needs_full && !found.has_full_readouts)) return {};
    return item_mask(layout_, found.measured);
  } catch (const FormatError&) {
    return {};  // lines of another grid
  }
}

void ScanFile::take_slice_of_array(index_t slice) {
  if (!file_.has_slices) refuse_for_array("ScanOptions.slice", "slices");
  if (slice < 0 || slice >= layout_.n_slices()) {
    throw ValueError(fmt::format("[ScanOptions.slice] got {}, expected 0 to {}, those of {}", slice,
                                 layout_.n_slices() - 1, path_));
  }
  layout_.slices = {slice};
  file_.array = file_.array.narrow(0, slice, 1);
}

void ScanFile::open_array() {
  file_ = open_kspace(path_, layout_.format);
  if (file_.array.rank() == 5) {
    std::vector<index_t>& images = file_.has_slices ? layout_.slices : layout_.frames;
    images.resize(static_cast<std::size_t>(file_.array.shape(0)));
    std::iota(images.begin(), images.end(), 0);
  } else {
    file_.array = file_.array.unsqueeze(0);
  }
  if (options_.slice) take_slice_of_array(*options_.slice);
  const Extents shape = file_.array.shape();
  const Extents& n = layout_.grid = Extents(shape.begin() + 1, shape.end());
  layout_.columns = n[3];
  layout_.wanted = {n[1], n[2], n[3]};
  for (std::size_t k = 0; k < 3; ++k) layout_.axes[k] = {n[k + 1], n[k + 1], 1};
  Tensor measured = measured_points_of(path_, file_.array.select(0, 0));
  Extents changes{1, 1, 1};
  note_changes(measured, changes);
  index_t held = measured.nbytes();
  for (index_t t = 1; t < shape[0]; ++t) {
    note_changes(measured_points_of(path_, file_.array.select(0, t)), changes);
    held = 2 * measured.nbytes();
  }
  layout_.division = division_of(n, changes[2] == 1, whole_);
  layout_.mask_extents = mask_extents_of(layout_, changes);
  layout_.mask = item_mask(layout_, measured);
  opening_bytes_ = file_.held_bytes() + held + layout_.mask.nbytes();
}

// -- contents ------------------------------------------------------------------------------------

index_t ScanFile::held_bytes() const {
  return kept_bytes() + (raw_ ? raw_->contents_bytes() : file_.held_bytes());
}

index_t ScanFile::kept_bytes() const {
  const auto bytes = [](const Tensor& t) { return t.defined() ? t.nbytes() : 0; };
  const index_t trajectory = layout_.has_trajectory() && palimpsest::is_mapped(layout_.trajectory)
                                 ? 0
                                 : bytes(layout_.trajectory);
  return bytes(layout_.mask) + trajectory;
}

Tensor ScanFile::mask(index_t slice, index_t frame) const {
  if (slice == 0 && frame == 0 && layout_.mask.defined()) return layout_.mask;
  if (!raw_) {
    const Tensor image = file_.array.select(0, image_of_array(slice, frame));
    return item_mask(layout_, measured_points_of(path_, image));
  }
  return item_mask(layout_, layout_of(slice, frame).measured);
}

Tensor ScanFile::mean_mask(index_t slice) const {
  if (raw_) return item_mask(layout_, layout_of(slice, {}).measured);
  Tensor any = mask(slice, 0).clone();
  for (index_t t = 1; t < layout_.n_frames(); ++t) add_nonzero(mask(slice, t).view_of(), any);
  return any;
}

SortingBytes ScanFile::making_bytes(index_t piece_bytes) const {
  const index_t mixing = mixer_ ? mixer_->bytes(layout_.grid[3]) : 0;
  if (!raw_) {
    const index_t line = byte_count(Extents{layout_.grid[3]}, DType::complex64);
    return mixer_ ? SortingBytes{2 * line, mixing} : SortingBytes{copying_bytes(file_.array), 0};
  }
  SortingBytes most;
  if (layout_.has_trajectory()) {
    for (index_t s = 0; s < layout_.n_slices(); ++s) {
      std::vector<std::size_t> readouts = ordered_readouts(s);
      std::sort(readouts.begin(), readouts.end());  // as the file is read
      const index_t coils = physical_coils(), line = coils * layout_.grid[3];
      const index_t matrix = options_.prewhiten ? coils * coils * 16 : 0;
      most.tensors = std::max(most.tensors, matrix + (matrix > 0 ? 4 : 1) * 8 * line);
      most.others = std::max(most.others, raw_->reading_bytes(readouts, piece_bytes) +
                                              std::ssize(readouts) * 24 + 4 * matrix + 16 * line);
    }
    most.others += mixing;
    return most;
  }
  for (index_t s = 0; s < layout_.n_slices(); ++s) {
    for (index_t t = 0; t < layout_.n_frames(); ++t) {
      const SortingBytes bytes = sorting_bytes(*raw_, options_of(s, t), piece_bytes);
      most.tensors = std::max(most.tensors, bytes.tensors);
      most.others = std::max(most.others, bytes.others);
    }
    if (layout_.n_frames() > 1) {
      const SortingBytes bytes = sorting_bytes(*raw_, options_of(s), piece_bytes);
      most.tensors = std::max(most.tensors, bytes.tensors);
      most.others = std::max(most.others, bytes.others);
    }
  }
  most.others += mixing;
  return most;
}

SortingBytes ScanFile::calibration_bytes(index_t piece_bytes) const {
  SortingBytes bytes;
  for (index_t s = 0; s < layout_.n_slices(); ++s) {
    if (!has_calibration(s)) continue;
    const SortingBytes of_slice =
        sorting_bytes(*raw_, options_of(s, {}, /*calibration=*/true), piece_bytes);
    bytes.tensors = std::max(bytes.tensors, of_slice.tensors);
    bytes.others = std::max(bytes.others, of_slice.others);
  }
  if (mixer_) bytes.others += mixer_->bytes(layout_.grid[3]);
  return bytes;
}

// -- samples -------------------------------------------------------------------------------------

// The phase between the echoes of EPI, if navigators tell it.
const std::optional<EchoPhase>& ScanFile::echo_phase(index_t slice, index_t piece_bytes) const {
  if (std::exchange(phase_slice_, slice) != slice) {
    phase_ = echo_phase_of(*raw_, layout_.slices[static_cast<std::size_t>(slice)], piece_bytes);
  }
  return phase_;
}

SortOptions ScanFile::sorting(index_t slice, const Place& place, index_t piece_bytes) const {
  SortOptions how{.in_memory = place.in_memory, .folder = place.folder, .batch_bytes = piece_bytes};
  const std::optional<EchoPhase>& phase = echo_phase(slice, piece_bytes);
  CoilMixer* const mixer = mixer_ && mixer_->is_ready() ? mixer_.get() : nullptr;
  if (mixer) how.coils = mixer->to();
  if (!phase && !mixer) return how;
  const index_t n_x = layout_.grid[3];
  how.change = [phase, mixer, n_x](const Readout& readout, index_t, std::complex<float>* line) {
    if (phase && readout.has(ReadoutFlag::reverse)) {
      align_echo(line, readout.n_coils, n_x, *phase);
    }
    if (mixer) mixer->mix(line, n_x);
  };
  return how;
}

Tensor ScanFile::kspace(index_t slice, index_t frame, index_t n_frames, const Place& place,
                        index_t piece_bytes, MemoryLedger& ledger) const {
  return read_input(path_, [&] {
    const auto charge = ledger.charge(making_bytes(piece_bytes).others);
    if (!raw_) return frames_of_array(image_of_array(slice, frame), n_frames, place);
    Extents shape = layout_.grid;
    shape[0] *= n_frames;
    ScratchArray result = place.array(shape);
    if (layout_.has_trajectory()) {
      sort_trajectory(slice, result, piece_bytes);
      return result.map();
    }
    const index_t one = element_count(layout_.grid);
    for (index_t t = 0; t < n_frames; ++t) {
      sort_kspace(*raw_, options_of(slice, frame + t), sorting(slice, place, piece_bytes), result,
                  t * one);
    }
    return result.map();
  });
}

Tensor ScanFile::frames_of_array(index_t frame, index_t n_frames, const Place& place) const {
  Tensor part = file_.array.narrow(0, frame, n_frames);
  const Extents& n = layout_.grid;
  if (mixer_) {
    ScratchArray mixed = place.array({n_frames * n[0], n[1], n[2], n[3]});
    for (index_t t = 0; t < n_frames; ++t) {
      mixer_->mix_into(part.select(0, t), mixed, t * element_count(n));
    }
    return mixed.map();
  }
  if (!file_.is_dense()) part = dense_copy(part, place);
  return part.view({n_frames * n[0], n[1], n[2], n[3]});
}

Tensor ScanFile::mean_kspace(index_t slice, const Place& place, index_t piece_bytes,
                             MemoryLedger& ledger) const {
  if (layout_.n_frames() == 1 || layout_.has_trajectory()) {
    return kspace(slice, 0, 1, place, piece_bytes, ledger);
  }
  return read_input(path_, [&] {
    const auto charge = ledger.charge(making_bytes(piece_bytes).others);
    if (!raw_) return mean_of_array(place);
    ScratchArray result = place.array(layout_.grid);
    sort_kspace(*raw_, options_of(slice), sorting(slice, place, piece_bytes), result, 0);
    return result.map();
  });
}

// The mean of those frames that measured a point, of a line of a coil.
Tensor ScanFile::mean_line(index_t coil, index_t z, index_t y) const {
  const index_t width = layout_.grid[3];
  std::vector<std::complex<double>> sums(static_cast<std::size_t>(width));
  std::vector<index_t> counts(static_cast<std::size_t>(width));
  for (index_t t = 0; t < layout_.n_frames(); ++t) {
    const Tensor given = file_.array.select(0, t)
                             .select(0, coil)
                             .select(0, z)
                             .select(0, y)
                             .to(DType::complex64)
                             .contiguous();
    const auto* v = given.data<std::complex<float>>();
    for (std::size_t x = 0; x < sums.size(); ++x) {
      sums[x] += std::complex<double>(v[x]);
      counts[x] += v[x] != std::complex<float>(0) ? 1 : 0;
    }
  }
  Tensor line = Tensor::empty({width}, DType::complex64);
  auto* out = line.mutable_data<std::complex<float>>();
  for (std::size_t x = 0; x < sums.size(); ++x) {
    out[x] = std::complex<float>(sums[x] / static_cast<double>(std::max<index_t>(counts[x], 1)));
  }
  return line;
}

Tensor ScanFile::mean_of_array(const Place& place) const {
  const Extents& n = layout_.grid;
  ScratchArray result = place.array(n);
  const index_t width = n[3], rows = n[1] * n[2], coils = physical_coils();
  std::vector<std::complex<float>> lines(static_cast<std::size_t>(mixer_ ? coils * width : 0));
  for (index_t row = 0; row < rows; ++row) {
    for (index_t c = 0; c < coils; ++c) {
      const Tensor line = mean_line(c, row / n[2], row % n[2]);
      if (mixer_) {
        std::copy_n(line.data<std::complex<float>>(), width, lines.begin() + c * width);
      } else {
        result.write((c * rows + row) * width, line.raw_data(), width);
      }
    }
    if (!mixer_) continue;
    mixer_->mix(lines.data(), width);
    for (index_t v = 0; v < n[0]; ++v) {
      result.write((v * rows + row) * width, lines.data() + v * width, width);
    }
  }
  return result.map();
}

Tensor ScanFile::calibration_kspace(index_t slice, const Place& place, index_t piece_bytes,
                                    MemoryLedger& ledger) const {
  return read_input(path_, [&] {
    const auto charge = ledger.charge(calibration_bytes(piece_bytes).others);
    ScratchArray result = place.array(layout_.grid);
    sort_kspace(*raw_, options_of(slice, {}, /*calibration=*/true),
                sorting(slice, place, piece_bytes), result, 0);
    return result.map();
  });
}

void ScanFile::close() {
  file_ = {};
  raw_.reset();
  raw_charge_.reset();
}

}  // namespace palimpsest
