// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/imaging/results/bitmap_font.hpp"

#include <array>
#include <cstdint>

namespace palimpsest {
namespace {

constexpr index_t kColumns = 5, kRows = 7;
constexpr char kFirst = ' ', kLast = '~';
using Glyph = std::array<std::uint8_t, kRows>;

// From ' ' to '~': rows from the top, the highest of five bits is the left point.
constexpr Glyph kGlyphs[] = {
    {0, 0, 0, 0, 0, 0, 0},        {4, 4, 4, 4, 4, 0, 4},        {10, 10, 10, 0, 0, 0, 0},
    {10, 10, 31, 10, 31, 10, 10}, {4, 15, 20, 14, 5, 30, 4},    {24, 25, 2, 4, 8, 19, 3},
    {12, 18, 20, 8, 21, 18, 13},  {4, 4, 8, 0, 0, 0, 0},        {2, 4, 8, 8, 8, 4, 2},
    {8, 4, 2, 2, 2, 4, 8},        {0, 4, 21, 14, 21, 4, 0},     {0, 4, 4, 31, 4, 4, 0},
    {0, 0, 0, 0, 12, 4, 8},       {0, 0, 0, 31, 0, 0, 0},       {0, 0, 0, 0, 0, 12, 12},
    {0, 1, 2, 4, 8, 16, 0},       {14, 17, 19, 21, 25, 17, 14}, {4, 12, 4, 4, 4, 4, 14},
    {14, 17, 1, 2, 4, 8, 31},     {31, 2, 4, 2, 1, 17, 14},     {2, 6, 10, 18, 31, 2, 2},
    {31, 16, 30, 1, 1, 17, 14},   {6, 8, 16, 30, 17, 17, 14},   {31, 1, 2, 4, 8, 8, 8},
    {14, 17, 17, 14, 17, 17, 14}, {14, 17, 17, 15, 1, 2, 12},   {0, 12, 12, 0, 12, 12, 0},
    {0, 12, 12, 0, 12, 4, 8},     {2, 4, 8, 16, 8, 4, 2},       {0, 0, 31, 0, 31, 0, 0},
    {8, 4, 2, 1, 2, 4, 8},        {14, 17, 1, 2, 4, 0, 4},      {14, 17, 1, 13, 21, 21, 14},
    {14, 17, 17, 31, 17, 17, 17}, {30, 17, 17, 30, 17, 17, 30}, {14, 17, 16, 16, 16, 17, 14},
    {28, 18, 17, 17, 17, 18, 28}, {31, 16, 16, 30, 16, 16, 31}, {31, 16, 16, 30, 16, 16, 16},
    {14, 17, 16, 23, 17, 17, 15}, {17, 17, 17, 31, 17, 17, 17}, {14, 4, 4, 4, 4, 4, 14},
    {7, 2, 2, 2, 2, 18, 12},      {17, 18, 20, 24, 20, 18, 17}, {16, 16, 16, 16, 16, 16, 31},
    {17, 27, 21, 21, 17, 17, 17}, {17, 17, 25, 21, 19, 17, 17}, {14, 17, 17, 17, 17, 17, 14},
    {30, 17, 17, 30, 16, 16, 16}, {14, 17, 17, 17, 21, 18, 13}, {30, 17, 17, 30, 20, 18, 17},
    {15, 16, 16, 14, 1, 1, 30},   {31, 4, 4, 4, 4, 4, 4},       {17, 17, 17, 17, 17, 17, 14},
    {17, 17, 17, 17, 17, 10, 4},  {17, 17, 17, 21, 21, 21, 10}, {17, 17, 10, 4, 10, 17, 17},
    {17, 17, 17, 10, 4, 4, 4},    {31, 1, 2, 4, 8, 16, 31},     {14, 8, 8, 8, 8, 8, 14},
    {0, 16, 8, 4, 2, 1, 0},       {14, 2, 2, 2, 2, 2, 14},      {4, 10, 17, 0, 0, 0, 0},
    {0, 0, 0, 0, 0, 0, 31},       {8, 4, 2, 0, 0, 0, 0},        {0, 0, 14, 1, 15, 17, 15},
    {16, 16, 22, 25, 17, 17, 30}, {0, 0, 14, 16, 16, 17, 14},   {1, 1, 13, 19, 17, 17, 15},
    {0, 0, 14, 17, 31, 16, 14},   {6, 9, 8, 28, 8, 8, 8},       {0, 0, 15, 17, 15, 1, 14},
    {16, 16, 22, 25, 17, 17, 17}, {4, 0, 12, 4, 4, 4, 14},      {2, 0, 6, 2, 2, 18, 12},
    {16, 16, 18, 20, 24, 20, 18}, {12, 4, 4, 4, 4, 4, 14},      {0, 0, 26, 21, 21, 17, 17},
    {0, 0, 22, 25, 17, 17, 17},   {0, 0, 14, 17, 17, 17, 14},   {0, 0, 30, 17, 30, 16, 16},
    {0, 0, 13, 19, 15, 1, 1},     {0, 0, 22, 25, 16, 16, 16},   {0, 0, 15, 16, 14, 1, 30},
    {8, 8, 28, 8, 8, 9, 6},       {0, 0, 17, 17, 17, 19, 13},   {0, 0, 17, 17, 17, 10, 4},
    {0, 0, 17, 17, 21, 21, 10},   {0, 0, 17, 10, 4, 10, 17},    {0, 0, 17, 17, 15, 1, 14},
    {0, 0, 31, 2, 4, 8, 31},      {2, 4, 4, 8, 4, 4, 2},        {4, 4, 4, 4, 4, 4, 4},
    {8, 4, 4, 2, 4, 4, 8},        {0, 0, 8, 21, 2, 0, 0}};
static_assert(std::size(kGlyphs) == kLast - kFirst + 1);

// These stand below the line by two points.
bool descends(char letter) {
  return std::string_view("gpqy,;j").find(letter) != std::string_view::npos;
}

}  // namespace

void draw_text(Tensor& to, std::string_view text, index_t row, index_t column, index_t scale,
               std::uint8_t gray) {
  const index_t height = to.shape(0), width = to.shape(1);
  auto* pixels = to.mutable_data<std::uint8_t>();
  for (const char given : text) {
    const char letter = given < kFirst || given > kLast ? '?' : given;
    const Glyph& glyph = kGlyphs[letter - kFirst];
    const index_t top = row + (descends(letter) ? 2 * scale : 0);
    for (index_t y = 0; y < kRows * scale; ++y) {
      for (index_t x = 0; x < kColumns * scale; ++x) {
        const auto bits = glyph[static_cast<std::size_t>(y / scale)];
        const bool is_set = (bits >> (kColumns - 1 - x / scale) & 1) != 0;
        const index_t at_y = top + y, at_x = column + x;
        if (is_set && at_y >= 0 && at_y < height && at_x >= 0 && at_x < width) {
          pixels[at_y * width + at_x] = gray;
        }
      }
    }
    column += kLetterWidth * scale;
  }
}

}  // namespace palimpsest
