// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "palimpsest/base/api.hpp"
#include "palimpsest/imaging/results/image.hpp"
#include "palimpsest/io/format.hpp"
#include "palimpsest/io/ismrmrd.hpp"
#include "palimpsest/named/dims.hpp"
#include "palimpsest/tensor/tensor.hpp"

namespace PALIMPSEST_API palimpsest {

/// Position of the first slice or slab. Axes are x (readout), y (phase), z (slice or partition).
struct Geometry {
  std::array<double, 3> voxel_mm = {1, 1, 1};
  /// Unit vectors of the axes, in the patient's left, posterior, superior.
  std::array<std::array<double, 3>, 3> directions = {{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}};
  /// Centre of the slice or slab, and of the patient table, mm, left posterior superior.
  std::array<double, 3> position_mm = {0, 0, 0}, table_mm = {0, 0, 0};
  /// From the middle of a slice to that of the next, mm; 0: there is one, they are not parallel
  /// and equally spaced, or it is not known.
  std::array<double, 3> slice_step_mm = {0, 0, 0};
  /// Between two frames, the mean; 0: unknown.
  double time_step_us = 0;
};

/// The counter of a raw file that numbers the frames: the dimension T.
enum class FrameCounter { none, contrast, phase, set, repetition };
/// `T=repetition`, or one of the other counters.
///
/// Errors   ValueError "expected T=": another text
FrameCounter parse_frame_counter(const std::string& text);
const char* name_of(FrameCounter counter);

struct ScanOptions {
  /// For a raw file: the number of one slice, contrast, phase or set. Without a slice all are
  /// taken. One of several contrasts, phases and sets must be named, unless they are frames.
  std::optional<index_t> slice = {}, contrast = {}, phase = {}, set = {};
  /// All repetitions are averaged where none is named, unless they are frames.
  std::optional<index_t> repetition = {};
  FrameCounter as = FrameCounter::none;
  /// Readouts that make a frame, of a scan along a trajectory, and from the start of one frame to
  /// that of the next; 0: as many.
  index_t readouts_per_frame = 0, readouts_per_step = 0;
  /// Decorrelates the coils by the noise readouts of a raw file.
  bool prewhiten = false;
  /// Pixels and field of view of the image along x, y and, if given, z, in place of those of the
  /// header. With `encoded_pixels`: pixels of the size that was measured.
  std::vector<index_t> matrix = {};
  std::vector<double> field_of_view_mm = {};
  bool encoded_pixels = false;
  /// For an array file: a file with its trajectory, float32 (readouts, samples, D), or one for each
  /// frame; or BART's.
  std::string trajectory = {};
};

/// An axis of the image: `pixels` of them, `spacing` apart in units of the distance of the `points`
/// that were measured. Element floor(n / 2) of both lies at the same place.
struct ImageAxis {
  index_t points = 1, pixels = 1;
  double spacing = 1;

  /// True if pixels lie between or beyond the points.
  bool is_resampled() const { return spacing != 1 || pixels > points; }
};

/// The part of the grid that one solve covers: a 2-D grid; planes (z, y) of a volume that is
/// measured completely along x; or a whole volume.
enum class Division { plane, planes, volume };

/// Sizes and kind of a scan, known before it is sorted.
struct ScanLayout {
  FileFormat format = FileFormat::npy;
  /// Extents of k-space as measured: coil, z, y, x; along a trajectory coil, 1, readouts, samples.
  Extents grid;
  /// Columns along x that are solved: those of the image where readouts are complete and either
  /// only cut, or divided into planes; else all.
  index_t columns = 0;
  Division division = Division::plane;
  /// Values of the counters that are slices and frames; one slice at least.
  std::vector<index_t> slices = {0}, frames = {};
  /// Images of a temporal subspace, which take the place of the frames; 0: the frames do.
  index_t coefficients = 0;
  /// Repetitions and averages of a raw file that became one image.
  index_t n_repetitions = 1, n_averages = 1;
  /// bool, extents of an item: the measured points, of the first image. Undefined along a
  /// trajectory.
  Tensor mask;
  /// Extents of an item, 1 along axes on which no image's mask changes; empty along a trajectory.
  Extents mask_extents = {};
  /// Extents z, y, x of the wanted image, and on a grid its axes.
  Extents wanted;
  std::array<ImageAxis, 3> axes = {};
  /// Along a trajectory: float32 (readouts, samples, D), in cycles per field of view; of frames,
  /// one after the other. Readouts of a frame, and of a step.
  Tensor trajectory;
  index_t readouts_per_frame = 0, readouts_per_step = 0;
  Geometry geometry;
  /// Of a raw file: facts of each image, slices the slowest, then frames.
  std::vector<ImageFacts> images = {};
  FrameCounter frame_counter = FrameCounter::none;
  /// The header of a raw file.
  RawScanHeader header;
  /// Remarks for the user.
  std::vector<std::string> notes = {};

  index_t n_coils() const { return grid[0]; }
  index_t n_slices() const { return static_cast<index_t>(slices.size()); }
  /// The number of frames; 1 without that dimension.
  index_t n_frames() const;
  bool has_trajectory() const { return trajectory.defined(); }
  bool is_cut() const { return !has_trajectory() && columns < grid[3]; }
  /// Number of the items that are solved one by one, and the extents of each: (row, column), or
  /// (z, y, x) of a whole volume; and their names.
  index_t n_items() const { return division == Division::planes ? columns : 1; }
  Extents item_shape() const;
  Dims item_dims() const;
  /// (coil, ..) of maps, and on a grid of k-space, of one item.
  Extents item_array_shape() const;
  /// The axes of an item's image on a grid, out of the extents of the item.
  std::vector<ImageAxis> axes_of_item() const;
  /// True if some of them, or planes along x, are computed between the measured points.
  bool is_resampled() const;
  /// Extents of the image of an item; of one image; and of all of them, ([slice], [frame or
  /// coefficient], ..).
  Extents wanted_of_item() const;
  Extents image_shape() const;
  Extents result_shape() const;
  /// Names of the axes of image_shape() and of result_shape().
  Dims image_dims() const;
  Dims result_dims() const;
  /// Extents of coil maps of a slice: (coil, z, y, x), and without the axes of one point.
  Extents maps_shape() const;
  Extents short_maps_shape() const;
  /// Points of an item per sample.
  double acceleration() const;
  /// The mean of all images.
  index_t samples_per_coil() const;
  /// The sum of all images on a grid; 0: as in the first one.
  index_t samples_of_images = 0;
};

/// A logical scan, in memory.
struct Scan {
  ScanLayout layout;
  /// complex64 (S, T, C, z, y, x), or along a trajectory (S, C, readouts, samples) with the
  /// readouts of all frames one after the other; axes that the scan lacks have one element.
  Tensor kspace;
  /// bool (S, T, z, y, x); undefined along a trajectory.
  std::optional<Tensor> mask;
  /// float32 (readouts, samples, D).
  std::optional<Tensor> trajectory;
  /// complex64 (C, samples) of noise alone, from noise readouts one after the other.
  std::optional<Tensor> noise;
  /// complex64 (S, C, z, y, x) of separate calibration lines on the same grid; 0 for slices that
  /// have none.
  std::optional<Tensor> calibration;
  Geometry geometry;
  /// The header of a raw file.
  RawScanHeader header;
};

/// Images of a scan, an array of ScanLayout::result_shape(), with names and, of a raw file, their
/// place and its header.
Image image_of(const ScanLayout& layout, const Tensor& data);

/// Reads a raw file (ISMRMRD) or an array (NPY, BART CFL) of k-space into memory: sorted, averaged,
/// echoes of EPI aligned; oversampling stays.
///
/// Errors   ValueError beginning with the path: the fault of the file, or the name of a feature in
///          it that is not supported
Scan read_scan(const std::string& path, const ScanOptions& options = {});

}  // namespace palimpsest
