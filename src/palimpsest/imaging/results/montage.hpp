// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "palimpsest/base/api.hpp"
#include "palimpsest/tensor/tensor.hpp"

namespace PALIMPSEST_API palimpsest {

/// An image of a montage, with a line of text above it and one below; either may be empty.
struct Panel {
  Tensor image;
  std::string label, note = {};
};

struct MontageOptions {
  /// Panels in a row; 0: all of them up to 4, else about as many as there are rows.
  index_t columns = 0;
  /// Pixels between and around panels.
  index_t gap = 8;
  /// The values that become black and white in all panels; default 0 and the largest of them.
  double low = 0;
  std::optional<double> high = {};
};

/// Images of one size side by side, all with one window, gray, with their texts.
///
/// Texts are of ASCII in a font of 5 x 7 points, enlarged with the panels; other characters are
/// shown as '?'. Cells are as wide as the longest text needs.
///
/// Shapes   panels (ny, nx), real -> uint8 (height, width)
/// Errors   ValueError "no panels", "window"; ShapeError: sizes differ, or another rank;
///          DTypeError: complex
Tensor montage(const std::vector<Panel>& panels, const MontageOptions& options = {});

/// The planes of an image (.., y, x) as panels: magnitudes, or the real values as they are. Labels
/// are the indices of the other axes.
std::vector<Panel> planes_of(const Tensor& image, bool signed_values = false);

/// Extents of the montage of planes_of() an image of these extents.
Extents montage_extents(const Extents& image, const MontageOptions& options = {});

/// The value that is shown as white: the one that the brightest half percent (fat, vessels)
/// exceeds, but at least 0.4 of the largest, since the object may be small; 1 of an image of zeros.
double white_level(const Tensor& image);

/// An image as lines of characters, darker ones first in " .:-=+*#%@"; each stands for twice as
/// many rows as columns.
///
/// Shapes   image (ny, nx), real
/// Errors   ShapeError; ValueError: `columns` below 1
std::string text_preview(const Tensor& image, index_t columns = 72);

}  // namespace palimpsest
