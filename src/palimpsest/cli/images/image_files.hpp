// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "palimpsest/cli/command_line.hpp"
#include "palimpsest/cli/outputs.hpp"
#include "palimpsest/imaging/results/image.hpp"
#include "palimpsest/io/cartesian.hpp"

namespace palimpsest::cli {

/// Endings of the files that an image can be written as.
const std::vector<std::string>& image_endings();
/// The endings of formats that keep all numbers: without .png.
const std::vector<std::string>& array_endings();

/// An image out of a file: NPY, CFL, NIfTI, images of an ISMRMRD file, gray PNG, image_formats().
///
/// Axes of 1 are dropped, but x and y. A CFL has the names of BART's dimensions (Nx, Ny, Nz, C, M,
/// B5 .. B9, T, B11, B12, S); NPY has usual_names(). Names of all that it has are in `names`.
///
/// Errors   UsageError: no such file, a raw scan, too many axes
Image read_image(const std::string& path);

/// Gives the axes other names, such as `T,C,Ny,Nx`; an empty text changes nothing.
///
/// Errors   UsageError [--axes]: not as many as axes, one twice, no names
void name_axes(Image& image, const std::string& axes);

struct WriteImageOptions {
  /// Part of a complex image to write; absent: all if the format can hold it, else the magnitude.
  std::optional<ImagePart> part = {};
  /// Bit depth and number of columns of a PNG.
  index_t bits = 8, columns = 0;
  std::optional<double> window_low = {}, window_high = {};
};

/// Adds --part, --bits and --columns of an image that is written.
void add_written_image(Command& command, std::string& part, index_t& bits, index_t& columns);

/// True if the name is that of a PNG.
bool is_png(const std::string& path);

/// Announces an image to be written; the ending decides the format.
void announce_image(Outputs& outputs, const std::string& path,
                    const std::vector<std::string>& endings = image_endings());
/// Writes it: NIfTI with its place; ISMRMRD images with the header; NPY the array; CFL in BART's
/// order; PNG one plane, or a montage of all, of square pixels, radiologically where the place is
/// known.
///
/// NIfTI and other formats with one place get a file for each slice where the slices are not one
/// volume: files_of_image().
///
/// Errors   UsageError: names that the format has no place for
void write_image(Outputs& outputs, const std::string& path, const Image& image,
                 const WriteImageOptions& options = {});
/// The elements that write_image() writes, such as `float32`, or `gray values of 8 bits`.
std::string written_elements(const std::string& path, const Image& image,
                             const WriteImageOptions& options = {});
/// Memory of write_image() beside a dense complex64 image with these axes; 0 for an empty path.
SortingBytes image_writing_bytes(const std::string& path, const Dims& names, const Extents& extents,
                                 const WriteImageOptions& options = {},
                                 const std::array<double, 3>& voxel_mm = {1, 1, 1},
                                 bool is_one_volume = true);
/// The files that write_image() makes of images with these facts, frames the fastest: the path, or
/// `name_slice3.nii` and so on by the scanner's numbers of the slices.
std::vector<std::string> files_of_image(const std::string& path, std::span<const ImageFacts> images,
                                        index_t n_slices);
/// Notes for the user: the files that take the place of one, and facts that the format loses.
std::vector<std::string> notes_of_image(const std::string& path, std::span<const ImageFacts> images,
                                        index_t n_slices);
/// True if the file shows one plane of such an image; false for a montage of several.
bool is_single_plane(const Extents& extents);

}  // namespace palimpsest::cli
