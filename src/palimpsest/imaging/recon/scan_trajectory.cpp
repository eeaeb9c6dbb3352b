// SPDX-License-Identifier: Apache-2.0
// Scans along a trajectory: where their samples lie, and their readouts in order of the frames.

#include "palimpsest/imaging/prelude.hpp"
#include "palimpsest/imaging/recon/pixels.hpp"
#include "palimpsest/imaging/recon/scan_file.hpp"
#include "palimpsest/imaging/trajectories.hpp"

namespace palimpsest {
namespace {

// Bytes of the file that are read at a time for its coordinates.
constexpr index_t kReadingBytes = index_t{1} << 20;
// Coordinates up to here are parts of the width of k-space, -0.5 to 0.5; above, cycles.
constexpr double kLargestPart = 0.75;

index_t counter_of(const Readout& readout, FrameCounter counter) {
  const auto of_readout = kCounters[static_cast<std::size_t>(counter)].of_readout;
  return of_readout ? readout.*of_readout : 0;
}

// The numbers in the order in which a file is read.
std::vector<std::size_t> sorted_numbers(std::vector<std::size_t> numbers) {
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

index_t used_samples(const Readout& r) { return r.n_samples - r.discard_pre - r.discard_post; }

std::array<double, 3> largest_coordinate(const Tensor& trajectory) {
  std::array<double, 3> largest = {0, 0, 0};
  const auto* k = trajectory.data<float>();
  const index_t d = trajectory.shape(2);
  for (index_t i = 0, end = trajectory.numel(); i < end; ++i) {
    double& now = largest[static_cast<std::size_t>(i % d)];
    now = std::max(now, std::abs(static_cast<double>(k[i])));
  }
  return largest;
}

// True if the largest coordinate is that of the encoded pixels in cycles or radians per mm, and not
// that of parts of k-space, which end at 1/2.
bool are_per_mm(const Tensor& trajectory, const RawScanHeader& header) {
  constexpr double kNear = 0.1, kPart = 0.5;
  const std::array<double, 3> largest = largest_coordinate(trajectory);
  const auto axis =
      static_cast<std::size_t>(std::max_element(largest.begin(), largest.end()) - largest.begin());
  const double field = header.encoded.field_of_view_mm[axis];
  const auto n = static_cast<double>(header.encoded.matrix[axis]);
  if (!(field > 0) || std::abs(largest[axis] / kPart - 1) < kNear) return false;
  const double cycles = 2 * largest[axis] * field / n;
  return std::abs(cycles - 1) < kNear || std::abs(cycles / (2 * std::numbers::pi) - 1) < kNear;
}

// Cycles per field of view of the image, out of parts of k-space or cycles of the encoded one.
void rescale(Tensor& trajectory, const RawScanHeader& header, const ScanOptions& options) {
  const std::array<double, 3> largest = largest_coordinate(trajectory);
  const bool is_part = *std::max_element(largest.begin(), largest.end()) <= kLargestPart;
  auto* k = trajectory.mutable_data<float>();
  const index_t d = trajectory.shape(2);
  for (index_t i = 0, end = trajectory.numel(); i < end; ++i) {
    const auto axis = static_cast<std::size_t>(i % d);
    const double wide = header.encoded.field_of_view_mm[axis];
    const double wanted = image_field_mm(header, options, axis);
    double factor = wide > 0 && wanted > 0 ? wanted / wide : 1;
    if (is_part) factor *= static_cast<double>(header.encoded.matrix[axis]);
    k[i] = static_cast<float>(k[i] * factor);
  }
}

// The image that a trajectory reaches, z, y, x.
Extents nominal_extents(const Tensor& trajectory) {
  const std::array<double, 3> largest = largest_coordinate(trajectory);
  Extents extents{1, 1, 1};
  for (index_t a = 0; a < trajectory.shape(2); ++a) {
    extents[static_cast<std::size_t>(2 - a)] =
        std::max<index_t>(2, 2 * std::llround(std::ceil(largest[static_cast<std::size_t>(a)])));
  }
  return extents;
}

}  // namespace

// In the order of their frames; within one, as they were measured.
std::vector<std::size_t> ScanFile::ordered_readouts(index_t slice) const {
  const RawScan& scan = raw_->contents();
  std::vector<std::size_t> readouts = imaging_readouts(scan, options_of(slice));
  std::stable_sort(readouts.begin(), readouts.end(), [&](std::size_t a, std::size_t b) {
    return counter_of(scan.readouts[a], options_.as) < counter_of(scan.readouts[b], options_.as);
  });
  return readouts;
}

// FormatError, ValueError: readouts of a slice that are not like the first one, or as many.
void ScanFile::check_readouts(index_t slice, std::size_t n_readouts) const {
  const RawScan& scan = raw_->contents();
  const std::vector<std::size_t> readouts = ordered_readouts(slice);
  const Readout& first = scan.readouts[ordered_readouts(0).front()];
  for (const std::size_t i : readouts) {
    const Readout& r = scan.readouts[i];
    if (used_samples(r) == used_samples(first) && r.n_coils == first.n_coils &&
        r.n_trajectory_axes == first.n_trajectory_axes && used_samples(r) > 0 && r.n_coils > 0) {
      continue;
    }
    throw FormatError(fmt::format(
        "[scan] readout {} has {} coils, {} samples and {} coordinates, expected {}, {} and {} as "
        "the first one.",
        i, r.n_coils, used_samples(r), r.n_trajectory_axes, first.n_coils, used_samples(first),
        first.n_trajectory_axes));
  }
  if (readouts.size() != n_readouts) {
    throw ValueError(fmt::format(
        "[scan] slice {} has {} readouts, expected {} as the first one. Try ScanOptions.slice",
        layout_.slices[static_cast<std::size_t>(slice)], readouts.size(), n_readouts));
  }
  if (layout_.frames.empty()) return;
  const std::size_t per_frame = n_readouts / layout_.frames.size();
  bool is_even = per_frame * layout_.frames.size() == n_readouts;
  for (std::size_t k = 0; is_even && k < n_readouts; ++k) {
    is_even = counter_of(scan.readouts[readouts[k]], options_.as) == layout_.frames[k / per_frame];
  }
  if (is_even) return;
  throw ValueError(
      fmt::format("[ScanOptions.as] {} has {} readouts in {} frames: expected as many in each. Try "
                  "ScanOptions.readouts_per_frame N instead",
                  path_, n_readouts, layout_.frames.size()));
}

void ScanFile::open_raw_trajectory() {
  const RawScan& scan = raw_->contents();
  const std::vector<std::size_t> readouts = ordered_readouts(0);
  const Readout& first = scan.readouts[readouts.front()];
  for (index_t s = 0; s < layout_.n_slices(); ++s) check_readouts(s, readouts.size());
  const bool has_planes = std::any_of(readouts.begin(), readouts.end(), [&](std::size_t i) {
    return scan.readouts[i].step_2 != first.step_2;
  });
  if (has_planes && first.n_trajectory_axes == 2) {
    throw NotSupported(
        "[scan] a stack of planes along z with coordinates in x and y only, expected coordinates "
        "in z too");
  }
  const index_t n = used_samples(first);
  layout_.grid = {first.n_coils, 1, std::ssize(readouts), n};
  std::string unit;
  layout_.trajectory = raw_trajectory(readouts, unit);
  check_trajectories();
  const bool is_volume = layout_.trajectory.shape(2) == 3;
  layout_.wanted = {1, 1, 1};
  for (std::size_t k = is_volume ? 0 : 1; k < 3; ++k) {
    const std::size_t axis = 2 - k;
    const index_t asked = asked_pixels(options_, axis), points = scan.header.encoded.matrix[axis];
    layout_.wanted[k] = asked > 0 ? asked
                        : options_.encoded_pixels
                            ? image_axis(scan.header, options_, axis, points).pixels
                            : scan.header.recon.matrix[axis];
  }
  layout_.columns = layout_.wanted[2];
  const Extents& image = layout_.wanted;
  if (unit.empty()) {
    unit = unit_warning(layout_.trajectory, is_volume ? image : Extents{image[1], image[2]});
  }
  if (!unit.empty()) layout_.notes.push_back(unit);
  layout_.division = is_volume ? Division::volume : Division::plane;
  const index_t n_frames = layout_.n_frames();
  layout_.readouts_per_frame = std::ssize(readouts) / n_frames;
  layout_.readouts_per_step = layout_.readouts_per_frame;
  set_frames_of_readouts();
  opening_bytes_ = raw_->opening_bytes() +
                   raw_->reading_bytes(sorted_numbers(readouts), kReadingBytes) +
                   (layout_.n_slices() > 1 ? 2 : 1) * layout_.trajectory.nbytes();
}

// Along the readouts, in the unit of the image.
Tensor ScanFile::raw_trajectory(const std::vector<std::size_t>& readouts, std::string& unit) const {
  const RawScan& scan = raw_->contents();
  const Readout& first = scan.readouts[readouts.front()];
  const index_t n = used_samples(first), axes = first.n_trajectory_axes;
  const bool is_flat = scan.header.encoded.matrix[2] <= 1 && scan.header.recon.matrix[2] <= 1;
  const index_t d = is_flat ? 2 : 3;
  if (axes < d) {
    throw FormatError(
        fmt::format("[scan] its readouts have {} coordinates, expected {}.", axes, d));
  }
  std::vector<std::size_t> place(scan.readouts.size());
  for (std::size_t k = 0; k < readouts.size(); ++k) place[readouts[k]] = k;
  const std::vector<std::size_t> increasing = sorted_numbers(readouts);
  Tensor trajectory = Tensor::empty({std::ssize(readouts), n, d}, DType::float32);
  auto* k = trajectory.mutable_data<float>();
  raw_->read(increasing, kReadingBytes,
             [&](std::size_t i, const std::complex<float>*, const float* coordinates) {
               const index_t skipped = scan.readouts[i].discard_pre;
               float* to = k + static_cast<index_t>(place[i]) * n * d;
               for (index_t j = 0; j < n; ++j) {
                 for (index_t a = 0; a < d; ++a) {
                   const float value = coordinates[(skipped + j) * axes + a];
                   if (!std::isfinite(value)) {
                     throw FormatError(fmt::format(
                         "[scan] readout {} has a coordinate that is NaN or infinite.", i));
                   }
                   *to++ = value;
                 }
               }
             });
  const std::array<double, 3> largest = largest_coordinate(trajectory);
  if (*std::max_element(largest.begin(), largest.end()) == 0) {
    throw FormatError("[scan] all coordinates of its readouts are 0.");
  }
  if (are_per_mm(trajectory, scan.header)) {
    unit =
        "warning: units? The coordinates look like cycles or radians per mm, expected cycles per "
        "field of view, or parts of the width of k-space";
  }
  rescale(trajectory, scan.header, options_);
  return trajectory;
}

// All slices are solved along the trajectory of the first one.
void ScanFile::check_trajectories() {
  constexpr float kSame = 1e-3F;  // cycles per field of view
  const RawScan& scan = raw_->contents();
  const Tensor& known = layout_.trajectory;
  const index_t axes = scan.readouts[ordered_readouts(0).front()].n_trajectory_axes;
  if (axes > known.shape(2)) {
    layout_.notes.push_back(fmt::format("of {} coordinates of each sample the first {} are used",
                                        axes, known.shape(2)));
  }
  for (index_t s = 1; s < layout_.n_slices(); ++s) {
    std::string unit;
    const Tensor other = raw_trajectory(ordered_readouts(s), unit);
    const auto *a = known.data<float>(), *b = other.data<float>();
    const bool is_same = other.shape() == known.shape() &&
                         std::equal(a, a + known.numel(), b,
                                    [](float u, float v) { return std::abs(u - v) < kSame; });
    if (is_same) continue;
    throw ValueError(
        fmt::format("[scan] slice {} has another trajectory than slice {}, expected the same. Try "
                    "ScanOptions.slice",
                    layout_.slices[static_cast<std::size_t>(s)], layout_.slices[0]));
  }
}

// The lines (coil, sample) of a slice in the order of the file, whitened, and their places.
void ScanFile::read_along(index_t slice, index_t piece_bytes, const Line& visit) const {
  const RawScan& scan = raw_->contents();
  const std::vector<std::size_t> readouts = ordered_readouts(slice);
  std::vector<std::size_t> place(scan.readouts.size());
  for (std::size_t k = 0; k < readouts.size(); ++k) place[readouts[k]] = k;
  const std::vector<std::size_t> increasing = sorted_numbers(readouts);
  Tensor covariance;
  if (options_.prewhiten) covariance = noise_covariance(*raw_, piece_bytes);
  raw_->read(increasing, piece_bytes,
             [&](std::size_t i, const std::complex<float>* samples, const float*) {
               const Readout& r = scan.readouts[i];
               for (index_t k = 0; k < r.n_coils * r.n_samples; ++k) {
                 if (std::isfinite(samples[k].real()) && std::isfinite(samples[k].imag())) continue;
                 throw FormatError(
                     fmt::format("[scan] readout {} holds values that are NaN or infinite.", i));
               }
               const std::vector<std::complex<float>> given(samples,
                                                            samples + r.n_coils * r.n_samples);
               Tensor line = Tensor::from(given, Extents{r.n_coils, r.n_samples});
               if (covariance.defined()) line = prewhitened(line, covariance);
               visit(place[i], line.narrow(1, r.discard_pre, used_samples(r)));
             });
}

void ScanFile::sort_trajectory(index_t slice, ScratchArray& into, index_t piece_bytes) const {
  const index_t spokes = layout_.grid[2], n = layout_.grid[3];
  std::vector<std::complex<float>> line(static_cast<std::size_t>(physical_coils() * n));
  read_along(slice, piece_bytes, [&](std::size_t place, const Tensor& samples) {
    for (index_t c = 0; c < physical_coils(); ++c) {
      std::copy_n(samples.select(0, c).data<std::complex<float>>(), n, line.begin() + c * n);
    }
    if (mixer_) mixer_->mix(line.data(), n);
    for (index_t c = 0; c < layout_.grid[0]; ++c) {
      into.write((c * spokes + static_cast<index_t>(place)) * n, line.data() + c * n, n);
    }
  });
}

void ScanFile::open_array_trajectory() {
  layout_.trajectory = open_trajectory(options_.trajectory);
  const index_t spokes = layout_.trajectory.shape(0), n = layout_.trajectory.shape(1);
  file_ = open_kspace(path_, layout_.format);
  if (options_.slice) refuse_for_array("ScanOptions.slice", "slices");
  if (file_.has_slices) {
    throw ValueError(fmt::format(
        "[ScanOptions.trajectory] {} has {} slices, in dimension 13: expected one along a "
        "trajectory. Try each slice in a file of its own",
        path_, file_.array.shape(0)));
  }
  Tensor& data = file_.array;
  // BART's: readouts have a first axis of one point.
  if (data.shape(-1) == 1) data = data.select(data.rank() - 1, 0).unsqueeze(1);
  Extents shape = data.shape();
  if (shape.size() == 4 && shape[1] > 1) {  // (frame, coil, readout, sample)
    data = data.unsqueeze(2);
    shape = data.shape();
  }
  const bool has_frames = shape.size() == 5;
  const index_t frames = has_frames ? shape[0] : 1;
  const auto axes = shape.size();
  if (shape[axes - 1] != n || shape[axes - 2] * frames != spokes || shape[axes - 3] != 1) {
    throw ValueError(fmt::format(
        "[ScanOptions.trajectory] {} has {} readouts of {} samples, but k-space {} has the shape "
        "{}: expected (coil, {}, {})",
        options_.trajectory, spokes, n, path_, to_string(without_single_axes(shape)), spokes, n));
  }
  if (has_frames) {  // (coil, 1, frame * readout, sample)
    data = data.permute({1, 2, 0, 3, 4}).contiguous();
    data = data.view({shape[1], 1, spokes, n});
    for (index_t t = 0; t < frames; ++t) layout_.frames.push_back(t);
  }
  measured_points_of(path_, data);
  layout_.grid = {data.shape(0), 1, spokes, n};
  data = data.unsqueeze(0);
  layout_.wanted = nominal_extents(layout_.trajectory);
  for (std::size_t k = 0; k < 3; ++k) {
    const index_t asked = asked_pixels(options_, 2 - k);
    if (asked > 0 && layout_.wanted[k] > 1) layout_.wanted[k] = asked;
  }
  layout_.columns = layout_.wanted[2];
  layout_.division = layout_.trajectory.shape(2) == 3 ? Division::volume : Division::plane;
  layout_.readouts_per_frame = layout_.readouts_per_step = spokes / frames;
  set_frames_of_readouts();
  note_unit_of_array();
  opening_bytes_ = file_.held_bytes() + 2 * layout_.trajectory.nbytes() + spokes * n;
}

// The image follows from the reach of the trajectory, unless its pixels were asked for: coordinates
// in another unit give too few of them for so many samples.
void ScanFile::note_unit_of_array() {
  constexpr index_t kMostPerPoint = 24;
  const bool is_volume = layout_.trajectory.shape(2) == 3;
  const Extents image = is_volume ? layout_.wanted : Extents{layout_.wanted[1], layout_.wanted[2]};
  std::string warning = unit_warning(layout_.trajectory, image);
  const index_t samples = layout_.readouts_per_frame * layout_.trajectory.shape(1);
  if (warning.empty() && samples > kMostPerPoint * element_count(image)) {
    warning = fmt::format(
        "warning: units? The trajectory has {} samples and reaches an image of {} only, expected "
        "cycles per field of view",
        samples, to_string(image));
  }
  if (!warning.empty()) layout_.notes.push_back(warning);
}

// Frames of consecutive readouts.
void ScanFile::set_frames_of_readouts() {
  const index_t wanted = options_.readouts_per_frame, n_readouts = layout_.grid[2];
  if (wanted == 0) return;
  const index_t step = options_.readouts_per_step > 0 ? options_.readouts_per_step : wanted;
  if (layout_.n_frames() > 1) {
    throw ValueError(
        fmt::format("[ScanOptions.readouts_per_frame] {} has frames of its own, expected none. Try "
                    "without ScanOptions.readouts_per_frame or ScanOptions.as",
                    path_));
  }
  if (wanted > n_readouts) {
    throw ValueError(fmt::format(
        "[ScanOptions.readouts_per_frame] got {} readouts for a frame of {}, expected at most {}",
        wanted, path_, n_readouts));
  }
  layout_.frames.clear();
  for (index_t at = 0; at + wanted <= n_readouts; at += step) {
    layout_.frames.push_back(std::ssize(layout_.frames));
  }
  layout_.readouts_per_frame = wanted;
  layout_.readouts_per_step = step;
  const index_t left = n_readouts - ((layout_.n_frames() - 1) * step + wanted);
  if (left > 0) {
    layout_.notes.push_back(
        fmt::format("the last {} of {} readouts make no whole frame of {} and are left out", left,
                    n_readouts, wanted));
  }
}

}  // namespace palimpsest
