// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/linop/transforms/radon.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "palimpsest/graph/inputs.hpp"
#include "palimpsest/linop/containers/chain.hpp"
#include "palimpsest/linop/core/prelude.hpp"
#include "palimpsest/linop/transforms/convolution.hpp"

namespace palimpsest {
namespace {

Variable radon_fn(const NamedLinop& A, const Variable& x) {
  return ops::radon(x, A.param("angles").var(),
                    {.n_detectors = A.attr("n_detectors").as_integer(),
                     .spacing = A.attr("spacing").as_real(),
                     .center = A.attr("center").as_real()});
}

// An image beside these angles.
Variable some_image(const Extents& size, const Parameter& angles) {
  return make_input({DType::float64, size, angles.type().device});
}

void check_radon(const NamedLinop& A) {
  const Extents size = A.attr("image_size").as_integers();
  if (size.size() != 2) {
    throw ValueError(who(A) + "image_size: got " + to_string(size) + ", expected two extents");
  }
  radon_fn(A, some_image(size, A.param("angles")));
  const Tensor angles = A.param("angles").value().contiguous().to(DType::float64);
  const double* values = angles.numel() > 0 ? angles.data<double>() : nullptr;
  for (index_t a = 0; a < angles.numel(); ++a) {
    if (std::isfinite(values[a])) continue;
    throw ValueError(who(A) + "angles: number " + std::to_string(a) +
                     " is not finite: expected finite numbers");
  }
}

std::optional<index_t> radon_size(const NamedLinop& A, const ND& d) {
  const Dims& images = A.is_flipped() ? A.oshape() : A.ishape();
  const Dims& sinograms = A.is_flipped() ? A.ishape() : A.oshape();
  const Axes axes = last_axes(2);
  if (const auto i = find_axis(images, d, axes)) return A.attr("image_size").as_integers()[*i];
  const auto i = find_axis(sinograms, d, axes);
  if (!i) return std::nullopt;
  return *i == 0 ? A.param("angles").shape()[0] : A.attr("n_detectors").as_integer();
}

NamedLinop radon_split(const NamedLinop& A, const Tile& tile) {
  const Axes axes = last_axes(2);
  LinopData data = tile_data(A, tile);
  for (const auto& [d, slice] : tile) {
    if (find_axis(A.ishape(), d, axes)) refuse_split(A, d, "any ray may need any part of it");
    const auto i = find_axis(A.oshape(), d, axes);
    if (!i) continue;
    const index_t start = *slice.start, size = *slice.stop - start;
    if (*i == 0) {
      put_param(data, "angles", A.param("angles").narrow(0, start, size));
    } else {
      put_attr(data, "n_detectors", size);
      put_attr(data, "center", A.attr("center").as_real() - static_cast<double>(start));
    }
  }
  return from_arguments(std::move(data));
}

}  // namespace

const LinopType& linop_types::radon() {
  return PALIMPSEST_LINOP_TYPE(.name = "Radon",
                               .functions = {.fn = radon_fn,
                                             .split = radon_split,
                                             .size = radon_size},
                               .check = check_radon);
}

NamedLinop Radon(Parameter angles, Extents image_size, RadonLinopOptions options) {
  const Variable sinogram = ops::radon(
      some_image(image_size, angles), angles.var(),
      {.n_detectors = options.n_detectors, .spacing = options.spacing, .center = options.center});
  const index_t n_detectors = sinogram.type().shape.back();
  const double middle = 0.5 * static_cast<double>(n_detectors - 1);
  return make_linop(linop_types::radon(),
                    NamedShape(options.batch + options.image, options.batch + options.output),
                    {{"angles", std::move(angles)}},
                    {{"image_size", Attribute(image_size)},
                     {"n_detectors", n_detectors},
                     {"spacing", options.spacing},
                     {"center", options.center.value_or(middle)}});
}

NamedLinop filtered_back_projection(const NamedLinop& A) {
  if (&A.type() != &linop_types::radon() || A.is_flipped()) {
    throw ValueError("[filtered_back_projection] got " + A.name() +
                     (A.is_flipped() ? ", an adjoint" : "") + ", expected a Radon operator");
  }
  const Parameter& parameter = A.param("angles");
  const auto angles = parameter.value().to(DType::float64).to_vector<double>();
  const index_t n = A.attr("n_detectors").as_integer();
  std::vector<double> ramp(static_cast<std::size_t>(2 * n - 1));
  for (index_t k = 1 - n; k < n; ++k) {
    const double turn = std::numbers::pi * static_cast<double>(k);
    ramp[static_cast<std::size_t>(k + n - 1)] = k == 0 ? 0.25 : k % 2 != 0 ? -1 / (turn * turn) : 0;
  }
  const auto count = static_cast<double>(angles.size());
  double step = std::numbers::pi / std::max(count, 1.0);
  if (angles.size() > 1) {
    const auto [least, largest] = std::minmax_element(angles.begin(), angles.end());
    step = std::min((*largest - *least) / (count - 1), step);
  }
  const Tensor kernel = Tensor::from(ramp, Extents{2 * n - 1}).to(parameter.dtype());
  const Dims sinogram = A.oshape(), line(sinogram.back());
  const ConvolutionOptions along{
      .batch = sinogram.slice(0, sinogram.size() - 1), .grid = line, .out = line};
  return Chain(Convolution(kernel, along), step * A.H());
}

}  // namespace palimpsest
