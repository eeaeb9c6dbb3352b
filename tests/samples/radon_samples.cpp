// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <complex>
#include <limits>
#include <numbers>

#include "palimpsest/ops/transforms/radon.hpp"
#include "samples/op_samples.hpp"

namespace palimpsest::ops {
namespace {

struct RadonCase {
  const char* name;
  Extents batch, image;
  DType dtype;
  std::vector<double> angles;
  RadonOptions options = {};
};

std::vector<RadonCase> radon_cases() {
  const std::vector<double> all{0, 0.3, 0.7853981633974483, 1.2, std::numbers::pi / 2, 2, -2.6, 40};
  std::vector<double> many;
  for (int a = 0; a < 20; ++a) many.push_back(0.17 * a);
  return {{"square", {}, {6, 6}, DType::float64, all},
          {"tall", {}, {9, 4}, DType::float64, all},
          {"wide complex", {}, {3, 8}, DType::complex128, all, {.n_detectors = 5}},
          {"single", {}, {7, 6}, DType::float32, all, {.n_detectors = 4, .spacing = 2.5}},
          {"volume", {3, 5}, {4, 5}, DType::float64, {0.1, 1.7}, {.spacing = 0.7, .center = 1.25}},
          {"volume c64", {7}, {4, 3}, DType::complex64, {0.1, 1.7}, {.n_detectors = 6}},
          {"in parallel", {9}, {24, 30}, DType::float64, many},
          {"one of each", {1}, {5, 5}, DType::float64, {0.5}, {.n_detectors = 1}},
          {"far away", {}, {4, 4}, DType::float64, {0, 1}, {.n_detectors = 3, .center = 1e9}},
          {"no batch", {0}, {4, 4}, DType::complex64, {0, 1}},
          {"no angles", {2}, {4, 4}, DType::float64, {}, {.n_detectors = 3}},
          {"no detector", {2}, {4, 4}, DType::float64, {0, 2}, {.n_detectors = 0}},
          {"no image", {2}, {4, 0}, DType::float64, {0, 2}, {.n_detectors = 3}}};
}

Tensor angles_of(const RadonCase& c) {
  const Tensor angles = Tensor::from(c.angles, Extents{std::ssize(c.angles)});
  return c.dtype == DType::complex64 ? angles.to(DType::float32) : angles;
}

index_t detectors_of(const RadonCase& c) {
  if (c.options.n_detectors) return *c.options.n_detectors;
  const double diagonal =
      std::hypot(static_cast<double>(c.image[0]), static_cast<double>(c.image[1]));
  return static_cast<index_t>(std::ceil(diagonal / c.options.spacing));
}

using Complex = std::complex<double>;

// The weight of element (i, j) in ray t of an angle: the hat function at the distance along the row
// or column.
double weight(const RadonCase& c, double angle, index_t t, index_t i, index_t j) {
  const auto number = [](index_t n) { return static_cast<double>(n); };
  const double x = number(j) - 0.5 * number(c.image[1] - 1);
  const double y = number(i) - 0.5 * number(c.image[0] - 1);
  const double center = c.options.center.value_or(0.5 * number(detectors_of(c) - 1));
  const double s = (number(t) - center) * c.options.spacing;
  const double cosine = std::cos(angle), sine = std::sin(angle);
  const bool by_rows = std::abs(cosine) >= std::abs(sine);
  const double way = by_rows ? cosine : sine;
  const double distance = std::abs((s - x * cosine - y * sine) / way);
  return distance < 1 ? (1 - distance) / std::abs(way) : 0;
}

// Either direction as a product with the matrix of all weights.
Tensor radon_by_loop(const RadonCase& c, std::span<const Tensor> inputs, bool adjoint) {
  const auto in = inputs[0].to(DType::complex128).to_vector<Complex>();
  const auto angles = inputs[1].to(DType::float64).to_vector<double>();
  const auto n_angles = static_cast<index_t>(angles.size());
  const index_t n = detectors_of(c), ny = c.image[0], nx = c.image[1];
  const index_t pixels = ny * nx, rays = n_angles * n;
  Extents shape = c.batch;
  for (const index_t extent : adjoint ? c.image : Extents{n_angles, n}) shape.push_back(extent);
  std::vector<Complex> out(static_cast<std::size_t>(element_count(shape)));
  for (index_t b = 0; b < element_count(c.batch); ++b) {
    for (index_t ray = 0; ray < rays; ++ray) {
      for (index_t pixel = 0; pixel < pixels; ++pixel) {
        const double w =
            weight(c, angles[static_cast<std::size_t>(ray / n)], ray % n, pixel / nx, pixel % nx);
        const auto at_ray = static_cast<std::size_t>(b * rays + ray);
        const auto at_pixel = static_cast<std::size_t>(b * pixels + pixel);
        if (adjoint) {
          out[at_pixel] += w * in[at_ray];
        } else {
          out[at_ray] += w * in[at_pixel];
        }
      }
    }
  }
  if (is_complex(c.dtype)) return Tensor::from(out, shape).to(c.dtype);
  std::vector<double> real;
  for (const Complex& value : out) real.push_back(value.real());
  return Tensor::from(real, shape).to(c.dtype);
}

std::vector<OpSample> samples(bool adjoint) {
  std::vector<OpSample> result;
  for (const RadonCase& c : radon_cases()) {
    Extents shape = c.batch;
    const Extents rays{static_cast<index_t>(c.angles.size()), detectors_of(c)};
    for (const index_t extent : adjoint ? rays : c.image) shape.push_back(extent);
    result.push_back({c.name,
                      {sample_values(shape, c.dtype), angles_of(c)},
                      [c, adjoint](Vars v) {
                        return adjoint ? radon_adjoint(v[0], v[1], c.image, c.options)
                                       : radon(v[0], v[1], c.options);
                      },
                      [c, adjoint](std::span<const Tensor> inputs) {
                        return radon_by_loop(c, inputs, adjoint);
                      }});
  }
  return result;
}

}  // namespace

std::vector<OpSample> radon_samples() { return samples(false); }
std::vector<OpSample> radon_adjoint_samples() { return samples(true); }

std::vector<testing::Refusal> radon_refusals() {
  const auto input = [](Extents shape, DType dtype = DType::float64) {
    return make_input({dtype, std::move(shape), {}});
  };
  const Variable x = input({4, 5}), y = input({3, 7}), angles = input({3});
  const auto with = [=](RadonOptions options) { return [=] { radon(x, angles, options); }; };
  const double nan = std::numeric_limits<double>::quiet_NaN();
  using testing::refusal;
  return {refusal<ShapeError>("[radon] got float64 (5,)", [=] { radon(input({5}), angles); }),
          refusal<ShapeError>("expected known extents",
                              [=] {
                                radon(input({4, -1}), angles);
                              }),
          refusal<ShapeError>("angles: got",
                              [=] {
                                radon(x, input({3, 1}));
                              }),
          refusal<DTypeError>("angles: got", [=] { radon(x, input({3}, DType::int64)); }),
          refusal<DTypeError>("floating or complex",
                              [=] {
                                radon(input({4, 5}, DType::int32), angles);
                              }),
          refusal<ValueError>("[radon] spacing: got -1", with({.spacing = -1})),
          refusal<ValueError>("[radon] spacing: got 0", with({.spacing = 0})),
          refusal<ValueError>("spacing: got nan", with({.spacing = nan})),
          refusal<ValueError>("center: got nan", with({.center = nan})),
          refusal<ValueError>("n_detectors: got -1", with({.n_detectors = -1})),
          refusal<ValueError>("n_detectors: got 4611686018427387904",
                              with({.n_detectors = index_t{1} << 62})),
          refusal<ValueError>("n_detectors: got 1000000000001",
                              [=] {
                                radon(input({index_t{1} << 40, 1}), angles, {.spacing = 1e-9});
                              }),
          refusal<ShapeError>("expected the last axes to be (3, 6)",
                              [=] {
                                radon_adjoint(y, angles, {4, 5}, {.n_detectors = 6});
                              }),
          refusal<ShapeError>("known number of detector elements",
                              [=] {
                                radon_adjoint(input({3, -1}), angles, {4, 5});
                              }),
          refusal<ValueError>("[radon_adjoint] image: got (4,)",
                              [=] { radon_adjoint(y, angles, {4}); }),
          refusal<ValueError>("image: got (4, -5)", [=] {
            radon_adjoint(y, angles, {4, -5});
          })};
}

}  // namespace palimpsest::ops
