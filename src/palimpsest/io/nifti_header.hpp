// SPDX-License-Identifier: Apache-2.0
// Internal: places of the fields that are read and written in the headers of NIfTI-1 and NIfTI-2.
#pragma once

#include <array>

#include "palimpsest/base/dtype.hpp"

namespace palimpsest::io_detail {

inline constexpr int kNiftiBytes1 = 348, kNiftiBytes2 = 540;

struct NiftiLayout {
  int dim, datatype, bitpix, pixdim, vox_offset, slope, description, units;
  int qform_code, sform_code, quaternion, offset, sform;
  bool wide;  // 64-bit dimensions and doubles
};
inline constexpr NiftiLayout kNiftiLayout1 = {40,  70,  72,  76,  108, 112, 148,
                                              123, 252, 254, 256, 268, 280, false};
inline constexpr NiftiLayout kNiftiLayout2 = {16,  12,  14,  104, 168, 176, 240,
                                              500, 344, 348, 352, 376, 400, true};

struct NiftiType {
  int code;
  DType dtype;
};
inline constexpr NiftiType kNiftiTypes[] = {
    {2, DType::uint8},      {4, DType::int16},    {8, DType::int32},     {16, DType::float32},
    {32, DType::complex64}, {64, DType::float64}, {256, DType::int8},    {512, DType::uint16},
    {768, DType::uint32},   {1024, DType::int64}, {1280, DType::uint64}, {1792, DType::complex128}};

/// The rotation of a quaternion (b, c, d), a >= 0: columns are the directions of the axes, the last
/// one times `sign`.
std::array<std::array<double, 3>, 3> rotation_of(const std::array<double, 3>& bcd, double sign);

}  // namespace palimpsest::io_detail
