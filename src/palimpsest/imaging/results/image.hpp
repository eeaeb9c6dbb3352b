// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "palimpsest/base/api.hpp"
#include "palimpsest/imaging/results/image_facts.hpp"
#include "palimpsest/named/dims.hpp"
#include "palimpsest/tensor/tensor.hpp"

namespace PALIMPSEST_API palimpsest {

/// From voxel (i, j, k) along x, y, z to a place: three rows of x, y, z, offset.
using AffineMatrix = std::array<std::array<double, 4>, 3>;

/// An array with the names of its axes and its place in space.
struct Image {
  Tensor data;
  /// Names of the axes of data, slow to fast, such as (T, Nz, Ny, Nx).
  Dims names;
  /// Along x, y, z.
  std::array<double, 3> voxel_mm = {1, 1, 1};
  /// Millimetres to the left, posterior and superior; absent: not known. Slices (S) without z are
  /// counted by k.
  std::optional<AffineMatrix> affine_lps = {};
  /// Along T.
  double time_step_s = 0;
  /// Units of the values, and the method that made them.
  std::string units = {}, description = {};
  /// The header of the raw scan, XML; empty: none.
  std::string header = {};
  /// Of each image, slices (S) the slowest, then frames (T); empty: not known.
  std::vector<ImageFacts> facts = {};
  /// The counter of the frames in a raw scan, `contrast`, `phase` or `set`; empty: repetitions.
  std::string frame_counter = {};
};

/// Numbers of slices (S) and of frames (T); 1 without that axis.
index_t slices_of(const Image& image);
index_t frames_of(const Image& image);
/// The facts of an image of a series; null: not known.
const ImageFacts* facts_at(const Image& image, index_t slice, index_t frame);
/// Sets the affine, and of slices (S) their distance, by the facts of the first frame.
void take_place_of_facts(Image& image);
/// The image, or where its slices are not parallel and equally spaced, each slice with its own
/// place.
std::vector<Image> volumes_of(const Image& image);

/// The affine of an image: column d is direction_d voxel_d, the offset puts element floor(n / 2)
/// of each axis at the position.
AffineMatrix lps_affine(const Orientation& orientation, const std::array<double, 3>& voxel_mm,
                        const std::array<index_t, 3>& extents);
/// The inverse: directions and position that give it. Columns of 0 get the direction that is
/// missing.
Orientation orientation_of(const AffineMatrix& affine, const std::array<index_t, 3>& extents);
/// LPS as RAS, or back: the first two rows negated.
AffineMatrix lps_to_ras(const AffineMatrix& affine);

/// Extents along x, y and z, where z may be called S; 1 of axes that the image lacks.
std::array<index_t, 3> spatial_extents(const Image& image);

/// Names for the axes of an array that has none: (.., T, Nz, Ny, Nx), with B5, B6 .. before T.
///
/// Errors   ShapeError: more than 8 axes
Dims usual_names(std::size_t rank);

/// The image with the axes turned so that it is looked at from the feet, as radiologists do: left
/// is shown on the right, and anterior, or in coronal and sagittal planes superior, at the top. As
/// it is if its place is not known or it lacks x or y.
Image radiological(const Image& image);

/// Extents of with_square_pixels().
Extents square_extents(const Dims& names, const Extents& extents,
                       const std::array<double, 3>& voxel_mm);
/// The image with more elements along one of its last two axes, where their voxels differ: those of
/// the shown plane become squares. Between elements it is linear, or the nearest one with
/// `nearest`. float32, dense; as it is where voxels differ by less than 1 %, or by more than 16
/// times.
Image with_square_pixels(const Image& image, bool nearest = false);

/// |x| as float32, dense; any real or complex dtype.
Tensor magnitude(const Tensor& x);

/// The real-valued part of a complex image to keep.
enum class ImagePart { magnitude, phase, real, imag };
/// `magnitude`, `phase`, `real`, `imag`; ValueError "part" for other names.
ImagePart parse_image_part(const std::string& name);
/// The part of x as float32, dense; the phase is in (-pi, pi]. Any real or complex dtype.
Tensor part_of(const Tensor& x, ImagePart part);

/// The middle part of the last two axes, with element floor(n/2) in the middle again. Larger sizes
/// change nothing. A view.
Tensor center_crop(const Tensor& x, index_t ny, index_t nx);
/// Zeros around the last two axes, element floor(n/2) staying the middle.
Tensor center_pad(const Tensor& x, index_t ny, index_t nx);

/// The value that the given part of all elements does not exceed; 0 <= part <= 1. float32 only.
double quantile(const Tensor& x, double part);

}  // namespace palimpsest
