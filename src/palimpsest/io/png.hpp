// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "palimpsest/base/api.hpp"
#include "palimpsest/tensor/tensor.hpp"

namespace PALIMPSEST_API palimpsest {

struct PngOptions {
  /// Per sample: 8 or 16.
  int bits = 8;
  /// The values that become black and white; the smallest and largest finite one where absent.
  std::optional<double> window_low = {}, window_high = {};
};

/// Writes an image: gray out of (height, width), colour out of uint8 (height, width, 3).
///
/// Math     gray = round((x - low) / (high - low) * (2^bits - 1)), clamped; NaN is black
/// DTypes   real ones; take the magnitude of complex images first. Without a window, uint8 at 8
/// bits
///          and uint16 at 16 bits are stored as they are. Colours always are
/// Errors   DTypeError: complex; ShapeError: not such a shape, or empty; ValueError: other bits, a
///          window that is empty or not finite; IoError as AtomicFile, nothing is left behind
void write_png(const std::string& path, const Tensor& image, const PngOptions& options = {});

/// The bytes of that file.
///
/// Errors   as write_png, but for IoError
std::string png_bytes(const Tensor& image, const PngOptions& options = {});

/// The samples of an image: (height, width) or (height, width, 3), uint8 or uint16.
///
/// Palettes become colours, fewer than 8 bits become 8, transparency is dropped.
///
/// Errors   IoError: the file cannot be read; FormatError: damaged, truncated
Tensor read_png(const std::string& path);

}  // namespace palimpsest
