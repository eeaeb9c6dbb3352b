// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>
#include <numbers>

#include "contract/linop_samples.hpp"

namespace palimpsest::testing {
namespace {

using Complex = std::complex<double>;

const std::vector<double>& angles() {
  static const std::vector<double> all{0, 0.4, 0.9, std::numbers::pi / 2, 2.1, -3};
  return all;
}

Parameter angles_like(DType dtype) {
  return Tensor::from(angles(), Extents{std::ssize(angles())}).to(real_of(dtype));
}

// Linear interpolation in a line of elements.
Complex between(const std::vector<Complex>& line, double position) {
  const double below = std::floor(position), share = position - below;
  const auto at = [&](double k) {
    return k >= 0 && k < static_cast<double>(line.size()) ? line[static_cast<std::size_t>(k)] : 0;
  };
  return (1 - share) * at(below) + share * at(below + 1);
}

// The sinogram of an image, ray by ray.
Tensor by_rays(const Tensor& x, index_t n_detectors, double spacing, double center, DType angle) {
  const index_t ny = x.shape(-2), nx = x.shape(-1), n_images = x.numel() / (ny * nx);
  const auto values = x.to(DType::complex128).to_vector<Complex>();
  std::vector<Complex> out;
  for (index_t image = 0; image < n_images; ++image) {
    for (const double exact : angles()) {
      const double a =
          angle == DType::float32 ? static_cast<double>(static_cast<float>(exact)) : exact;
      const bool by_rows = std::abs(std::cos(a)) >= std::abs(std::sin(a));
      const double way = by_rows ? std::cos(a) : std::sin(a);
      const double other = by_rows ? std::sin(a) : std::cos(a);
      const index_t lines = by_rows ? ny : nx, length = by_rows ? nx : ny;
      for (index_t t = 0; t < n_detectors; ++t) {
        Complex sum = 0;
        for (index_t i = 0; i < lines; ++i) {
          std::vector<Complex> line;
          for (index_t j = 0; j < length; ++j) {
            const index_t pixel = by_rows ? i * nx + j : j * nx + i;
            line.push_back(values[static_cast<std::size_t>(image * ny * nx + pixel)]);
          }
          const double height = static_cast<double>(i) - 0.5 * static_cast<double>(lines - 1);
          const double s = (static_cast<double>(t) - center) * spacing;
          sum += between(line, (s - height * other) / way + 0.5 * static_cast<double>(length - 1));
        }
        out.push_back(sum / std::abs(way));
      }
    }
  }
  Extents shape = x.shape();
  shape[shape.size() - 2] = std::ssize(angles());
  shape[shape.size() - 1] = n_detectors;
  return Tensor::from(out, shape).to(x.dtype());
}

}  // namespace

std::vector<LinopSample> radon_samples() {
  return {{"Radon",
           [](DType t) {
             return Radon(angles_like(t), {5, 7});
           },
           {.ellipsis = {3}},
           [](const Tensor& x) { return by_rays(x, 9, 1, 4, real_of(x.dtype())); }},
          {"RadonOffCenter",
           [](DType t) {
             return Radon(angles_like(t), {6, 4},
                          {.n_detectors = 5,
                           .spacing = 1.5,
                           .center = 1.25,
                           .batch = "C",
                           .image = "Nz Nx",
                           .output = "T R"});
           },
           {.sizes = {{"C", 2}}},
           [](const Tensor& x) { return by_rays(x, 5, 1.5, 1.25, real_of(x.dtype())); }},
          {"RadonOfOnePixel",
           [](DType t) {
             return Radon(Tensor::from<double>({0.3}).to(real_of(t)), {1, 1}, {.batch = Dims()});
           }},
          {"RadonFiltered",
           [](DType t) {
             return Chain(Radon(angles_like(t), {5, 5}, {.batch = "C"}),
                          Fft(1, {.batch = "C A", .grid = Grid{"R", "Kr"}}));
           },
           {.sizes = {{"C", 2}}}}};
}

std::vector<testing::Refusal> radon_refusals() {
  const Tensor good = Tensor::from(angles(), Extents{std::ssize(angles())});
  const double infinity = std::numeric_limits<double>::infinity();
  return {refusal<ValueError>("angles: number 1 is not finite",
                              [=] {
                                Radon(Tensor::from<double>({0, infinity}), {4, 4});
                              }),
          refusal<DTypeError>("angles: got",
                              [] {
                                Radon(Tensor::from<index_t>({0, 1}), {4, 4});
                              }),
          refusal<ShapeError>("angles: got",
                              [=] {
                                Radon(good.reshape({2, 3}), {4, 4});
                              }),
          refusal<ValueError>("image_size: got (2, 4, 4)",
                              [=] {
                                Radon(good, {2, 4, 4});
                              }),
          refusal<ShapeError>("two axes or more", [=] { Radon(good, {4}); }),
          refusal<ValueError>("spacing: got 0",
                              [=] {
                                Radon(good, {4, 4}, {.spacing = 0});
                              }),
          refusal<SplitError>("any ray may need any part of it", [=] {
            split_linop(Radon(good, {4, 4}), {{"Nx", 2}});
          })};
}

}  // namespace palimpsest::testing
