// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/io/cartesian.hpp"

#include <complex>
#include <set>

#include "palimpsest/io/prelude.hpp"

namespace palimpsest {

namespace {

using cfloat = std::complex<float>;

// Read at a time when a few readouts are looked at.
constexpr index_t kColumnBatchBytes = index_t{1} << 20;

constexpr ReadoutFlag kNoImage[] = {
    ReadoutFlag::noise,
    ReadoutFlag::navigation,
    ReadoutFlag::phase_correction,
    ReadoutFlag::hp_feedback,
    ReadoutFlag::dummy,
    ReadoutFlag::rt_feedback,
    ReadoutFlag::surface_coil_correction,
    ReadoutFlag::phase_stabilization_reference,
    ReadoutFlag::phase_stabilization,
};

enum class Use { none, image, calibration };

// The use of a readout: the image, or coil maps alone.
Use use_of(const Readout& readout, const RawScanHeader& header) {
  for (const ReadoutFlag flag : kNoImage) {
    if (readout.has(flag)) return Use::none;
  }
  if (readout.encoding_space != 0) return Use::none;
  const bool only_calibrates =
      readout.has(ReadoutFlag::calibration) && !readout.has(ReadoutFlag::calibration_and_imaging);
  const bool is_embedded = header.calibration_mode.empty() ||
                           header.calibration_mode == "embedded" ||
                           header.calibration_mode == "interleaved";
  return only_calibrates && !is_embedded ? Use::calibration : Use::image;
}

bool is_or_unnamed(const std::optional<index_t>& wanted, index_t value) {
  return !wanted || *wanted == value;
}

bool is_wanted(const Readout& readout, const CartesianOptions& options) {
  if (!is_or_unnamed(options.slice, readout.slice)) return false;
  return options.calibration ||
         (is_or_unnamed(options.contrast, readout.contrast) &&
          is_or_unnamed(options.phase, readout.phase) && is_or_unnamed(options.set, readout.set) &&
          is_or_unnamed(options.repetition, readout.repetition));
}

std::string range_of(const char* name, const std::vector<index_t>& values) {
  return values.size() == 1 ? fmt::format("{} {}", name, values.front())
                            : fmt::format("{}s {} to {}", name, values.front(), values.back());
}

// Several slices are several images: which one is not for this function to choose.
void check_unambiguous(const RawScan& scan, const std::vector<std::size_t>& wanted,
                       const CartesianOptions& options) {
  const auto check = [&](const char* name, index_t Readout::*counter) {
    std::set<index_t> values;
    for (const std::size_t i : wanted) values.insert(scan.readouts[i].*counter);
    if (values.size() < 2) return;
    throw ValueError(fmt::format("[scan] which {}? It has {}, from {} to {}. Try to name one.",
                                 name, values.size(), *values.begin(), *values.rbegin()));
  };
  check("slice", &Readout::slice);
  if (options.calibration || options.mean_of_all) return;
  check("contrast", &Readout::contrast);
  check("phase", &Readout::phase);
  check("set", &Readout::set);
}

/// The place of a readout in the grid. FormatError naming the fault if it has none.
class Grid {
 public:
  Grid(const RawScanHeader& header, index_t n_coils)
      : header_(header),
        n_coils_(n_coils),
        n_x_(header.encoded.matrix[0]),
        n_y_(header.encoded.matrix[1]),
        n_z_(header.encoded.matrix[2]) {}

  Extents kspace_shape() const { return {n_coils_, n_z_, n_y_, n_x_}; }
  Extents mask_shape() const { return {n_z_, n_y_}; }

  /// A header out of a hostile file may ask for more memory than the data it announces deserve.
  void check_size(index_t n_samples) const {
    constexpr index_t kAlwaysFine = index_t{1} << 23;
    constexpr index_t kSparsest = 256;
    const index_t allowed = std::max(kAlwaysFine, checked_multiply(n_samples, kSparsest));
    const Extents shape = kspace_shape();
    double n_elements = 1;
    for (const index_t extent : shape) n_elements *= static_cast<double>(extent);
    if (n_elements > static_cast<double>(allowed)) {
      throw FormatError(
          fmt::format("[scan] the header announces k-space of {}, but only {} samples "
                      "were measured.",
                      to_string(shape), n_samples));
    }
  }

  // Samples of a readout that go onto the grid.
  static index_t n_used(const Readout& readout) {
    return readout.n_samples - readout.discard_pre - readout.discard_post;
  }

  index_t row(const Readout& readout) const {
    return centred(readout.step_2, header_.step_2_limit, n_z_, "kspace_encode_step_2") * n_y_ +
           centred(readout.step_1, header_.step_1_limit, n_y_, "kspace_encode_step_1");
  }

  index_t column(const Readout& readout) const {
    const index_t n_used = Grid::n_used(readout);
    const index_t centre = readout.has(ReadoutFlag::reverse)
                               ? readout.n_samples - 1 - readout.center_sample
                               : readout.center_sample;
    const index_t before =
        readout.has(ReadoutFlag::reverse) ? readout.discard_post : readout.discard_pre;
    // Many writers leave the centre of full readouts 0.
    const index_t first = n_used == n_x_ ? 0 : n_x_ / 2 - (centre - before);
    if (n_used < 1 || first < 0 || first + n_used > n_x_) {
      throw FormatError(
          fmt::format("[scan] a readout of {} samples with its centre at {} does not "
                      "fit in the encoded matrix of {}.",
                      n_used, centre - before, n_x_));
    }
    return first;
  }

 private:
  static index_t centred(index_t step, const std::optional<EncodingLimit>& limit, index_t extent,
                         std::string_view name) {
    const index_t place = limit ? step - limit->center + extent / 2 : step;
    if (place >= 0 && place < extent) return place;
    throw FormatError(
        fmt::format("[scan] a readout has {} {}, which lies at {} of the encoded "
                    "matrix, expected 0 to {}.",
                    name, step, place, extent - 1));
  }

  const RawScanHeader& header_;
  index_t n_coils_, n_x_, n_y_, n_z_;
};

}  // namespace

std::vector<std::size_t> imaging_readouts(const RawScan& scan, const CartesianOptions& options) {
  const Use use = options.calibration ? Use::calibration : Use::image;
  std::vector<std::size_t> wanted;
  for (std::size_t i = 0; i < scan.readouts.size(); ++i) {
    const Readout& readout = scan.readouts[i];
    if (use_of(readout, scan.header) == use && is_wanted(readout, options)) wanted.push_back(i);
  }
  if (!wanted.empty()) {
    check_unambiguous(scan, wanted, options);
    return wanted;
  }
  const ScanContents contents = contents_of(scan);
  if (contents.imaging_readouts == 0) throw FormatError("[scan] it has no imaging readouts.");
  if (options.calibration) throw ValueError("[scan] no separate calibration lines of this slice.");
  std::string asked;
  const auto ask = [&asked](const char* name, const std::optional<index_t>& value) {
    if (value) asked += fmt::format("{}{} {}", asked.empty() ? "" : ", ", name, *value);
  };
  ask("slice", options.slice);
  ask("contrast", options.contrast);
  ask("phase", options.phase);
  ask("set", options.set);
  ask("repetition", options.repetition);
  throw ValueError(fmt::format("[scan] no readouts of {}: the scan has {}, {}, {}, {}, {}.", asked,
                               range_of("slice", contents.slices),
                               range_of("contrast", contents.contrasts),
                               range_of("phase", contents.phases), range_of("set", contents.sets),
                               range_of("repetition", contents.repetitions)));
}

namespace {

index_t coils_of(const RawScan& scan, const std::vector<std::size_t>& wanted) {
  const index_t n_coils = scan.readouts[wanted.front()].n_coils;
  for (const std::size_t i : wanted) {
    if (scan.readouts[i].n_coils == n_coils && n_coils > 0) continue;
    throw FormatError(
        fmt::format("[scan] readout {} has {} coils, expected {} as in the first one.", i,
                    scan.readouts[i].n_coils, std::max<index_t>(n_coils, 1)));
  }
  return n_coils;
}

/// Adds the used samples of one readout to lines (coil, kx).
void add_readout(const Readout& readout, const cfloat* samples, index_t column, index_t n_x,
                 cfloat* lines) {
  const index_t n_used = Grid::n_used(readout);
  for (index_t coil = 0; coil < readout.n_coils; ++coil) {
    const cfloat* from = samples + coil * readout.n_samples + readout.discard_pre;
    cfloat* to = lines + coil * n_x + column;
    if (readout.has(ReadoutFlag::reverse)) {
      for (index_t i = 0; i < n_used; ++i) to[i] += from[n_used - 1 - i];
    } else {
      for (index_t i = 0; i < n_used; ++i) to[i] += from[i];
    }
  }
}

ValueError no_noise_readouts() {
  return ValueError(
      "[scan] prewhitening needs noise readouts, and the scan has none. Try without prewhitening.");
}

void check_cartesian(const RawScan& scan) {
  const std::string& trajectory = scan.header.trajectory;
  if (trajectory == "cartesian" || trajectory == "epi") return;
  throw NotSupported(
      fmt::format("[scan] its trajectory is '{}', expected 'cartesian' or 'epi'.", trajectory));
}

void check_encodable(const Extents& shape) {
  for (const index_t extent : shape) {
    if (extent < 1 || extent > 65535) {
      throw OverflowError(fmt::format("[cartesian_scan] got shape {}, expected axes of 1 to 65535.",
                                      to_string(shape)));
    }
  }
}

}  // namespace

ScanContents contents_of(const RawScan& scan, const CartesianOptions& named) {
  ScanContents contents;
  std::set<index_t> slices, contrasts, phases, sets, repetitions, averages, segments;
  for (const Readout& readout : scan.readouts) {
    const Use use = use_of(readout, scan.header);
    if (readout.has(ReadoutFlag::noise)) ++contents.noise_readouts;
    if (readout.has(ReadoutFlag::calibration) ||
        readout.has(ReadoutFlag::calibration_and_imaging)) {
      ++contents.calibration_readouts;
    }
    if (use == Use::calibration && is_or_unnamed(named.slice, readout.slice)) {
      ++contents.separate_calibration_readouts;
    }
    if (use != Use::image || !is_wanted(readout, named)) continue;
    ++contents.imaging_readouts;
    slices.insert(readout.slice);
    contrasts.insert(readout.contrast);
    phases.insert(readout.phase);
    sets.insert(readout.set);
    repetitions.insert(readout.repetition);
    averages.insert(readout.average);
    segments.insert(readout.segment);
  }
  const auto listed = [](const std::set<index_t>& values) {
    return std::vector<index_t>(values.begin(), values.end());
  };
  contents.slices = listed(slices);
  contents.contrasts = listed(contrasts);
  contents.phases = listed(phases);
  contents.sets = listed(sets);
  contents.repetitions = listed(repetitions);
  contents.averages = listed(averages);
  contents.segments = listed(segments);
  return contents;
}

namespace {

std::vector<std::size_t> noise_readouts(const RawScan& scan) {
  std::vector<std::size_t> numbers;
  for (std::size_t i = 0; i < scan.readouts.size(); ++i) {
    if (scan.readouts[i].has(ReadoutFlag::noise)) numbers.push_back(i);
  }
  return numbers;
}

index_t count_samples(const RawScan& scan, const std::vector<std::size_t>& numbers) {
  index_t n = 0;
  for (const std::size_t i : numbers) n += scan.readouts[i].n_coils * scan.readouts[i].n_samples;
  return n;
}

}  // namespace

Tensor noise_covariance(const RawScanFile& file, index_t batch_bytes) {
  const std::vector<std::size_t> numbers = noise_readouts(file.contents());
  RawScan noise;
  index_t n_samples = 0;
  for (const std::size_t i : numbers) {
    const Readout& readout = file.contents().readouts[i];
    noise.readouts.push_back(readout);
    noise.readouts.back().first_sample = n_samples;
    n_samples += readout.n_coils * readout.n_samples;
  }
  if (n_samples == 0) return {};
  noise.samples = Tensor::empty({n_samples}, DType::complex64);
  auto* to = noise.samples.mutable_data<cfloat>();
  file.read(numbers, batch_bytes, [&](std::size_t i, const cfloat* samples, const float*) {
    const Readout& readout = file.contents().readouts[i];
    to = std::copy_n(samples, readout.n_coils * readout.n_samples, to);
  });
  return noise_covariance(noise);
}

namespace {

/// Puts readouts into their rows, and averages rows that were measured repeatedly.
class RowSorter {
 public:
  RowSorter(ScratchArray& kspace, index_t first, const Extents& grid, std::vector<index_t> counts)
      : kspace_(kspace), first_(first), grid_(grid), missing_(counts), counts_(std::move(counts)) {}

  void add(const Readout& readout, const cfloat* samples, index_t row, index_t column,
           const SortOptions& how) {
    const index_t n_x = grid_[3], plane = grid_[1] * grid_[2] * n_x;
    line_.assign(static_cast<std::size_t>(readout.n_coils * n_x), cfloat(0));
    const index_t count = counts_[static_cast<std::size_t>(row)];
    const bool is_first = missing_[static_cast<std::size_t>(row)] == count;
    const bool is_last = --missing_[static_cast<std::size_t>(row)] == 0;
    add_readout(readout, samples, column, n_x, line_.data());
    if (how.change) how.change(readout, row, line_.data());
    const index_t coils = how.coils.value_or(readout.n_coils);
    if (!is_first) before_.resize(static_cast<std::size_t>(n_x));
    for (index_t coil = 0; coil < coils && !is_first; ++coil) {
      kspace_.read(first_ + coil * plane + row * n_x, before_.data(), n_x);
      for (index_t i = 0; i < n_x; ++i) {
        line_[static_cast<std::size_t>(coil * n_x + i)] += before_[static_cast<std::size_t>(i)];
      }
    }
    if (is_last && count > 1) {
      const float share = 1.0f / static_cast<float>(count);
      for (cfloat& value : line_) value *= share;
    }
    for (index_t coil = 0; coil < coils; ++coil) {
      kspace_.write(first_ + coil * plane + row * n_x, line_.data() + coil * n_x, n_x);
    }
  }

 private:
  ScratchArray& kspace_;
  const index_t first_;
  const Extents grid_;
  std::vector<index_t> missing_, counts_;  // per row: readouts to come, and all
  std::vector<cfloat> line_, before_;
};

void check_finite(const cfloat* samples, index_t n, std::size_t readout) {
  const auto is_finite = [](cfloat v) {
    return std::isfinite(v.real()) && std::isfinite(v.imag());
  };
  if (std::all_of(samples, samples + n, is_finite)) return;
  throw FormatError(
      fmt::format("[scan] readout {} holds values that are NaN or infinite.", readout));
}

CartesianLayout layout_of(const RawScan& scan, const CartesianOptions& options) {
  check_cartesian(scan);
  if (options.prewhiten && count_samples(scan, noise_readouts(scan)) == 0) {
    throw no_noise_readouts();
  }
  CartesianLayout layout;
  layout.readouts = imaging_readouts(scan, options);
  const Grid grid(scan.header, coils_of(scan, layout.readouts));
  index_t n_samples = 0;
  for (const Readout& readout : scan.readouts) n_samples += readout.n_coils * readout.n_samples;
  grid.check_size(n_samples);
  layout.grid = grid.kspace_shape();
  layout.readout_oversampling = scan.header.readout_oversampling();
  layout.recon_matrix = scan.header.recon.matrix;
  const index_t n_x = layout.grid[3];
  for (const std::size_t i : layout.readouts) {
    layout.has_full_readouts &= grid.n_used(scan.readouts[i]) == n_x;
  }
  const index_t columns = layout.has_full_readouts ? 1 : n_x;
  layout.measured = Tensor::zeros({layout.grid[1], layout.grid[2], columns}, DType::bool_);
  auto* measured = layout.measured.mutable_data<bool>();
  for (const std::size_t i : layout.readouts) {
    const Readout& readout = scan.readouts[i];
    const index_t row = grid.row(readout), column = grid.column(readout);
    if (layout.has_full_readouts) {
      measured[row] = true;
    } else {
      std::fill_n(measured + row * n_x + column, grid.n_used(readout), true);
    }
  }
  return layout;
}

// `read` hands the readouts of the layout in their order to a visitor.
void sort_readouts(const RawScan& scan, const CartesianLayout& layout, const SortOptions& how,
                   ScratchArray& into, index_t first,
                   const std::function<void(const RawScanFile::Visit&)>& read) {
  const Grid grid(scan.header, layout.grid[0]);
  std::vector<index_t> counts(static_cast<std::size_t>(layout.grid[1] * layout.grid[2]));
  for (const std::size_t i : layout.readouts) {
    ++counts[static_cast<std::size_t>(grid.row(scan.readouts[i]))];
  }
  RowSorter sorter(into, first, layout.grid, std::move(counts));
  read([&](std::size_t i, const cfloat* samples, const float*) {
    const Readout& readout = scan.readouts[i];
    sorter.add(readout, samples, grid.row(readout), grid.column(readout), how);
  });
}

}  // namespace

CartesianLayout cartesian_layout(const RawScanFile& file, const CartesianOptions& options) {
  return layout_of(file.contents(), options);
}

CartesianKspace cartesian_kspace(const RawScan& scan, const CartesianOptions& options) {
  const CartesianLayout layout = layout_of(scan, options);
  ScratchArray sorted = ScratchArray::in_memory(layout.grid, DType::complex64);
  Tensor mask = Tensor::zeros({layout.grid[1], layout.grid[2]}, DType::bool_);
  auto* is_measured = mask.mutable_data<bool>();
  const cfloat* samples = scan.samples.data<cfloat>();
  const Grid grid(scan.header, layout.grid[0]);
  sort_readouts(scan, layout, {}, sorted, 0, [&](const RawScanFile::Visit& visit) {
    for (const std::size_t i : layout.readouts) {
      visit(i, samples + scan.readouts[i].first_sample, nullptr);
      is_measured[grid.row(scan.readouts[i])] = true;
    }
  });
  CartesianKspace result{sorted.map(), mask, layout.readout_oversampling, layout.recon_matrix};
  if (options.prewhiten) result.kspace = prewhitened(result.kspace, noise_covariance(scan));
  return result;
}

std::vector<bool> measured_columns(const RawScanFile& file, const CartesianLayout& layout,
                                   std::size_t n_readouts) {
  const std::size_t n = layout.readouts.size(), looked_at = std::min(n, n_readouts);
  const std::span<const std::size_t> middle(layout.readouts.data() + (n - looked_at) / 2,
                                            looked_at);
  const index_t n_coils = layout.grid[0], n_x = layout.grid[3];
  std::vector<cfloat> sums(static_cast<std::size_t>(n_coils * n_x));
  std::vector<bool> is_taken(static_cast<std::size_t>(n_x));
  file.read(middle, kColumnBatchBytes, [&](std::size_t i, const cfloat* samples, const float*) {
    std::fill(sums.begin(), sums.end(), cfloat(0));
    add_readout(file.contents().readouts[i], samples, 0, n_x, sums.data());
    for (std::size_t k = 0; k < sums.size(); ++k) {
      if (sums[k] != cfloat(0)) is_taken[k % is_taken.size()] = true;
    }
  });
  if (std::find(is_taken.begin(), is_taken.end(), false) == is_taken.end()) is_taken.clear();
  return is_taken;
}

SortingBytes sorting_bytes(const RawScanFile& file, const CartesianOptions& options,
                           index_t batch_bytes) {
  const RawScan& scan = file.contents();
  const CartesianLayout layout = cartesian_layout(file, options);
  const std::vector<std::size_t>& wanted = layout.readouts;
  const Extents& shape = layout.grid;
  const index_t coils = shape[0], rows = shape[1] * shape[2];
  constexpr auto kSample = static_cast<index_t>(sizeof(cfloat));
  SortingBytes bytes;
  bytes.tensors = layout.measured.nbytes();
  bytes.others = (std::ssize(wanted) + 2 * rows) * 8 + (coils + 1) * shape[3] * kSample +
                 file.reading_bytes(wanted, batch_bytes);
  if (!options.prewhiten) return bytes;
  index_t longest = 0;
  for (const std::size_t i : wanted) longest = std::max(longest, scan.readouts[i].n_samples);
  const std::vector<std::size_t> noise = noise_readouts(scan);
  const index_t matrix = coils * coils * 16, readout = coils * longest * kSample;
  bytes.tensors += matrix + std::max(count_samples(scan, noise) * kSample, 2 * readout);
  bytes.others += 3 * matrix + readout;
  const auto heads = std::ssize(noise) * static_cast<index_t>(sizeof(Readout) + 8);
  bytes.others = std::max(bytes.others, (std::ssize(wanted) + rows) * 8 + heads + matrix +
                                            file.reading_bytes(noise, batch_bytes));
  return bytes;
}

ScratchArray sorted_kspace(const RawScanFile& file, const CartesianOptions& options,
                           const SortOptions& how) {
  const Extents grid = cartesian_layout(file, options).grid;
  ScratchArray result = how.in_memory ? ScratchArray::in_memory(grid, DType::complex64)
                                      : ScratchArray(how.folder, grid, DType::complex64);
  sort_kspace(file, options, how, result, 0);
  return result;
}

void sort_kspace(const RawScanFile& file, const CartesianOptions& options, const SortOptions& how,
                 ScratchArray& into, index_t first) {
  const RawScan& scan = file.contents();
  const CartesianLayout layout = cartesian_layout(file, options);
  Tensor covariance;
  if (options.prewhiten) covariance = noise_covariance(file, how.batch_bytes);
  const auto read = [&](const RawScanFile::Visit& visit) {
    file.read(layout.readouts, how.batch_bytes,
              [&](std::size_t i, const cfloat* samples, const float* coordinates) {
                const Readout& readout = scan.readouts[i];
                const index_t n = readout.n_coils * readout.n_samples;
                check_finite(samples, n, i);
                if (!covariance.defined()) return visit(i, samples, coordinates);
                const Tensor given = Tensor::from(std::vector<cfloat>(samples, samples + n),
                                                  Extents{readout.n_coils, readout.n_samples});
                const Tensor white = prewhitened(given, covariance);
                visit(i, white.data<cfloat>(), coordinates);
              });
  };
  sort_readouts(scan, layout, how, into, first, read);
}

RawScan cartesian_scan(const Tensor& kspace, const Tensor& mask, RawScanHeader header) {
  if (kspace.dtype() != DType::complex64 || mask.dtype() != DType::bool_) {
    throw DTypeError(
        fmt::format("[cartesian_scan] got k-space {} and mask {}, expected complex64 "
                    "and bool.",
                    name_of(kspace.dtype()), name_of(mask.dtype())));
  }
  if (kspace.rank() != 4 || mask.rank() != 2 || mask.shape(0) != kspace.shape(1) ||
      mask.shape(1) != kspace.shape(2)) {
    throw ShapeError(
        fmt::format("[cartesian_scan] got k-space {} and mask {}, expected "
                    "(coil, kz, ky, kx) and (kz, ky).",
                    to_string(kspace.shape()), to_string(mask.shape())));
  }
  check_encodable(kspace.shape());
  const index_t n_coils = kspace.shape(0), n_x = kspace.shape(3);
  header.encoded.matrix = {n_x, kspace.shape(2), kspace.shape(1)};
  header.n_coils = n_coils;
  header.step_0_limit = EncodingLimit{0, n_x - 1, n_x / 2};
  header.step_1_limit = EncodingLimit{0, kspace.shape(2) - 1, kspace.shape(2) / 2};
  header.step_2_limit = EncodingLimit{0, kspace.shape(1) - 1, kspace.shape(1) / 2};
  RawScan scan;
  scan.header = std::move(header);
  const std::vector<bool> sampled = mask.to_vector<bool>();
  const index_t n_readouts = std::count(sampled.begin(), sampled.end(), true);
  scan.samples = Tensor::empty({n_readouts * n_coils * n_x}, DType::complex64);
  for (index_t kz = 0; kz < mask.shape(0); ++kz) {
    for (index_t ky = 0; ky < mask.shape(1); ++ky) {
      if (!sampled[static_cast<std::size_t>(kz * mask.shape(1) + ky)]) continue;
      Readout readout;
      readout.n_samples = n_x;
      readout.n_coils = n_coils;
      readout.center_sample = n_x / 2;
      readout.step_1 = ky;
      readout.step_2 = kz;
      readout.sample_time_us = 5.0;
      readout.first_sample = std::ssize(scan.readouts) * n_coils * n_x;
      scan.readouts.push_back(readout);
      scan.samples_of(scan.readouts.size() - 1).copy_from(kspace(all, kz, ky, all));
    }
  }
  if (!scan.readouts.empty()) scan.readouts.back().set_flag(ReadoutFlag::last_in_measurement);
  return scan;
}

}  // namespace palimpsest
