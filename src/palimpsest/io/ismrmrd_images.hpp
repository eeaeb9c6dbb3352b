// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "palimpsest/base/api.hpp"
#include "palimpsest/tensor/tensor.hpp"

namespace PALIMPSEST_API palimpsest {

/// Position and kind of an image of an ISMRMRD file: the standard's ImageHeader.
struct IsmrmrdImageHead {
  /// Field of view of the whole image, along x, y, z.
  std::array<float, 3> field_of_view_mm = {1, 1, 1};
  /// Position of the middle of the image, and the directions of x, y, z: LPS.
  std::array<float, 3> position_mm = {0, 0, 0};
  std::array<float, 3> read_direction = {1, 0, 0}, phase_direction = {0, 1, 0};
  std::array<float, 3> slice_direction = {0, 0, 1}, patient_table_position_mm = {0, 0, 0};
  index_t average = 0, slice = 0, contrast = 0, phase = 0, repetition = 0, set = 0;
  std::uint32_t acquisition_time_stamp = 0;
  std::array<std::uint32_t, 3> physiology_time_stamp = {0, 0, 0};
  /// 1 magnitude, 2 phase, 3 real, 4 imaginary, 5 complex.
  index_t image_type = 5;
  index_t image_index = 0, series_index = 0;
  std::uint64_t flags = 0;
  /// The standard's attributes: names and values.
  std::vector<std::pair<std::string, std::string>> attributes = {};
};

/// A series of images of one size and type in an ISMRMRD file.
struct IsmrmrdImages {
  std::string series = "image_0";
  /// The header of the scan, XML.
  std::string header = {};
  std::vector<IsmrmrdImageHead> heads = {};
  /// (image, channel, z, y, x).
  Tensor data = {};
};

/// Contents of an ISMRMRD file.
struct IsmrmrdContents {
  bool has_scan = false;
  std::vector<std::string> image_series = {};
};

/// Lists a file without believing it: a child process reads it, as in read_ismrmrd().
///
/// Errors   IoError, FormatError as read_ismrmrd
IsmrmrdContents ismrmrd_contents(const std::string& path);

/// Images of a file; those of the first series where none is named.
///
/// DTypes   uint16, int16, uint32, int32, float32, float64, complex64, complex128
/// Errors   as read_ismrmrd; FormatError "no images"
IsmrmrdImages read_ismrmrd_images(const std::string& path, const std::string& series = {});

/// Writes a file of one series that the standard's own tools read. The HDF5 library runs in a child
/// process.
///
/// DTypes   all; those that the standard lacks become the next larger one, int64 and uint64 float64
/// Errors   ValueError: no images, heads that do not fit them, an invalid name; OverflowError: an
///          extent or a number above 65535; IoError as AtomicFile, nothing is left behind
/// Cost     twice the memory of the images: the file is built first, so that a full disk cannot
///          leave a part of it
void write_ismrmrd_images(const std::string& path, const IsmrmrdImages& images);

}  // namespace palimpsest
