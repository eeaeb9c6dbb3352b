// SPDX-License-Identifier: Apache-2.0
// Internal: letters of 5 x 7 points for pictures.
#pragma once

#include <string_view>

#include "palimpsest/tensor/tensor.hpp"

namespace palimpsest {

/// Points that a letter and its distance to the next one take, and those of a line of text.
inline constexpr index_t kLetterWidth = 6, kTextHeight = 9;

/// Width of a text in pixels; each point is `scale` pixels wide.
inline index_t text_width(std::string_view text, index_t scale) {
  return text.empty() ? 0 : (static_cast<index_t>(text.size()) * kLetterWidth - 1) * scale;
}

/// Draws a text into a picture, its top left corner at (row, column). Parts outside are cut off.
/// `to` is uint8 (height, width), contiguous.
void draw_text(Tensor& to, std::string_view text, index_t row, index_t column, index_t scale,
               std::uint8_t gray);

}  // namespace palimpsest
