// SPDX-License-Identifier: Apache-2.0
// Shared by the examples with pictures: a test image, an error measure, and output of images.
#pragma once

#include <array>
#include <cmath>
#include <numbers>
#include <palimpsest/palimpsest.hpp>
#include <string>
#include <vector>

namespace pictures {

using namespace palimpsest;

/// The head phantom of Shepp and Logan with the contrasts of Toft, float32 n x n. An ellipse counts
/// where the centre of a pixel lies inside it.
inline Tensor phantom(index_t n) {
  struct Ellipse {
    double value, a, b, x, y, degrees;
  };
  static constexpr std::array<Ellipse, 10> kEllipses = {{{1, .69, .92, 0, 0, 0},
                                                         {-.8, .6624, .874, 0, -.0184, 0},
                                                         {-.2, .11, .31, .22, 0, -18},
                                                         {-.2, .16, .41, -.22, 0, 18},
                                                         {.1, .21, .25, 0, .35, 0},
                                                         {.1, .046, .046, 0, .1, 0},
                                                         {.1, .046, .046, 0, -.1, 0},
                                                         {.1, .046, .023, -.08, -.605, 0},
                                                         {.1, .023, .023, 0, -.606, 0},
                                                         {.1, .023, .046, .06, -.605, 0}}};
  Tensor image = Tensor::zeros({n, n}, DType::float32);
  float* const pixels = image.mutable_data<float>();
  const auto at = [n](index_t k) { return (2.0 * static_cast<double>(k) + 1) / double(n) - 1; };
  for (const Ellipse& e : kEllipses) {
    const double angle = e.degrees * std::numbers::pi / 180;
    for (index_t i = 0; i < n * n; ++i) {
      const double x = at(i % n) - e.x, y = -at(i / n) - e.y;
      const double u = x * std::cos(angle) + y * std::sin(angle);
      const double v = y * std::cos(angle) - x * std::sin(angle);
      if (u * u / (e.a * e.a) + v * v / (e.b * e.b) <= 1) pixels[i] += static_cast<float>(e.value);
    }
  }
  return image;
}

/// |x - truth| / |truth|.
inline double error_of(const Tensor& x, const Tensor& truth) {
  return norm(x - truth).item<double>() / norm(truth).item<double>();
}

/// Magnitudes of images of one size beside one another, 0 black and `white` white.
inline void show(const std::string& path, const std::vector<Tensor>& images, double white = 1) {
  std::vector<Variable> columns;
  for (const Tensor& image : images) columns.push_back(ops::abs(constant(image)));
  const Tensor row = function({}, ops::join(1, columns))();
  write_png(path, row, {.window_low = 0.0, .window_high = white});
}

}  // namespace pictures
