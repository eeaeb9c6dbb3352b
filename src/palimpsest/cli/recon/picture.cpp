// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/cli/recon/picture.hpp"

#include <algorithm>

#include "palimpsest/cli/recon/image.hpp"
#include "palimpsest/io/png.hpp"

namespace palimpsest::cli {
namespace {

// White is the value that the brightest half percent (fat, vessels) exceeds, but at least this part
// of the largest value: the object may be small.
constexpr double kBelowWhite = 0.995, kLeastWhite = 0.4;

}  // namespace

void write_picture(const std::string& path, const Tensor& image, index_t bits) {
  Tensor shown = image;
  while (shown.rank() > 2) shown = shown.select(0, shown.shape(0) / 2);
  const Tensor plane = magnitude(shown);
  const double largest = quantile(plane, 1);
  const double white = std::max(quantile(plane, kBelowWhite), kLeastWhite * largest);
  write_png(
      path, plane,
      {.bits = static_cast<int>(bits), .window_low = 0.0, .window_high = white > 0 ? white : 1.0});
}

// Magnitude of the plane that is shown, and a copy to find its brightness.
index_t picture_bytes(const Extents& image) {
  return 2 * byte_count(Extents{image[image.size() - 2], image.back()}, DType::float32);
}

}  // namespace palimpsest::cli
