// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string>

#include "palimpsest/base/api.hpp"
#include "palimpsest/tensor/tensor.hpp"

namespace PALIMPSEST_API palimpsest {

/// A map of electron microscopy: a volume, an image, or a stack of images such as a tilt series.
struct MrcImage {
  /// (section, row, column), the axes of the file reversed; (row, column) of one image; (volume,
  /// section, row, column) of a stack of volumes.
  Tensor data;
  /// Distance between voxels along sections, rows and columns; 0: the file gives none.
  std::array<double, 3> spacing_angstrom = {0, 0, 0};
  /// Position of the first voxel along x, y, z.
  std::array<double, 3> origin_angstrom = {0, 0, 0};
  /// Sections are images of their own and no volume.
  bool is_stack = false;
  /// Lines of the labels.
  std::string description = {};
};

/// An image as MRC2014 (.mrc, .map, .rec, .st, .mrcs), in either byte order, with or without an
/// extended header, which is skipped.
///
/// Shapes   see MrcImage
/// DTypes   int8 (uint8 where IMOD wrote it so), int16, float32, complex64, uint16; 16-bit floating
///          numbers become float32
/// Errors   IoError: the file cannot be read; FormatError: not such a file, damaged, truncated, or
///          of another mode
/// Cost     one read; memory of the announced size, once the file is known to hold it
/// Source   Cheng et al. 2015, doi:10.1016/j.jsb.2015.04.002
MrcImage read_mrc(const std::string& path);

/// Maps the image of read_mrc() without reading it: its elements are the bytes of the mapped file,
/// see map_npy().
/// The other byte order and 16-bit floating numbers are read after all.
///
/// Errors   as read_mrc
MrcImage map_mrc(const std::string& path);

/// Writes an image in the host's byte order, with the least, largest and mean value and the
/// standard deviation of real ones in the header.
///
/// Shapes   data of two, three or four axes
/// DTypes   as read; uint8 as uint16, bool as int8, float64 and complex128 rounded to 32 bits
/// Errors   ShapeError: another number of axes, an empty array, an extent above 2^31 - 1;
///          DTypeError: integers of 32 or 64 bits; ValueError: spacing or origin that are not
///          finite; IoError as AtomicFile, nothing is left behind
void write_mrc(const std::string& path, const MrcImage& image);

}  // namespace palimpsest
