// SPDX-License-Identifier: Apache-2.0
// The normal operator of a Nufft as a convolution. With n and n' elements of the image and w_k the
// weights of the points, (A^H w A)[n, n'] depends on n - n' alone: it is p[n - n'],
//     p[m] = s^2 sum_k w_k exp(-sign 2 pi i sum_d k_d m_d / N_d),     |m_d| < N_d.
// p is an adjoint Nufft of the weights onto a grid of twice the size, in double precision; its DFT
// on a grid of at least 2 N - 1 elements multiplies the spectrum of the zero-padded image.
#include <algorithm>
#include <cmath>

#include "palimpsest/linop/axes.hpp"
#include "palimpsest/linop/builtin_types.hpp"
#include "palimpsest/linop/diagonal_factors.hpp"
#include "palimpsest/linop/fft.hpp"
#include "palimpsest/linop/node.hpp"
#include "palimpsest/linop/nufft_detail.hpp"
#include "palimpsest/linop/pad.hpp"
#include "palimpsest/linop/point_axes.hpp"
#include "palimpsest/ops/create.hpp"
#include "palimpsest/ops/elementwise.hpp"
#include "palimpsest/ops/fft.hpp"
#include "palimpsest/ops/index.hpp"
#include "palimpsest/ops/shape_ops.hpp"

namespace palimpsest {
namespace {

// What stands between A and A^H: values (batch.., k..), undefined for ones, or nothing that a
// convolution can hold.
struct PointWeights {
  bool fits = true;
  Variable values;
};

PointWeights weights_of(const NamedLinop* inner, const Extents& points) {
  if (!inner) return {};
  if (&inner->type() != &linop_types::diagonal()) return {.fits = false, .values = {}};
  const auto rank = static_cast<index_t>(inner->ishape().size());
  Variable product;
  for (const DiagonalFactor& factor : diagonal_factors(*inner)) {
    Axes axes = factor.axes;
    for (index_t& axis : axes) {
      if (axis >= 0 && inner->ishape().has_ellipsis()) return {.fits = false, .values = {}};
      if (axis >= 0) axis -= rank;
    }
    // Axes of one element in front of the points and of what else there is.
    std::size_t n = points.size();
    if (!axes.empty()) n = std::max(n, static_cast<std::size_t>(-axes[0]));
    Variable values = put_in_place(factor_values(factor, inner->is_flipped()), axes, n);
    Axes leading;
    for (std::size_t k = values.rank(); k < points.size(); ++k) {
      leading.push_back(static_cast<index_t>(leading.size()));
    }
    if (!leading.empty()) values = ops::expand_dims(values, leading);
    product = product.defined() ? product * values : values;
  }
  Extents shape = product.type().shape;
  std::copy(points.begin(), points.end(), shape.end() - static_cast<std::ptrdiff_t>(points.size()));
  return {.fits = true, .values = ops::broadcast_to(product, shape)};
}

Extents spectrum_size(const Extents& image) {
  Extents result;
  for (const index_t n : image) result.push_back(nufft_padded_size(2 * n - 1, 1));
  return result;
}

Variable ones_at_points(const NamedLinop& A) {
  const Device device = A.param("locs").type().device;
  return ops::full(point_extents(A), constant(Tensor::ones({}, DType::float64, device)));
}

// p on 2 N elements per axis, the zeroth at N.
Variable convolution_kernel(const NamedLinop& A, const Variable& weights) {
  const NufftGeometry g = nufft_geometry(A);
  Extents doubled;
  for (const index_t n : g.image) doubled.push_back(2 * n);
  NufftGeometry wide(doubled, {.scale = NufftScale::none, .eps = A.attr("toeplitz_eps").as_real()},
                     DType::float64, path_of(A));
  for (std::size_t d = 0; d < g.ndim(); ++d) {
    // Positions on the padded grid of A, less its middle, are cycles times padded / image.
    const double ratio = static_cast<double>(wide.padded[d]) / static_cast<double>(g.padded[d]);
    const double middle = static_cast<double>(g.padded[d] / 2);
    wide.spec.scale[d] = g.spec.scale[d] * ratio;
    wide.spec.shift[d] =
        (g.spec.shift[d] - middle) * ratio + static_cast<double>(wide.padded[d] / 2);
  }
  const Variable locs = ops::astype(A.param("locs").var(), DType::float64);
  const GriddingPlan plan = wide.interpolation();
  const Variable values =
      weights.defined() ? ops::astype(weights, DType::complex128) : ones_at_points(A);
  const Variable p =
      ops::nufft_adjoint_graph(wide, plan, values, locs, ops::point_order(plan, locs));
  if (A.attr("scale").as_string() == "none") return p;
  return p * (1 / static_cast<double>(element_count(g.image)));
}

// The DFT of p on the larger grid, its zero frequency in the middle.
Variable spectrum_factors(const NamedLinop& A, const Variable& weights) {
  const Extents image = A.attr("grid_size").as_integers(), size = spectrum_size(image);
  const Variable p = convolution_kernel(A, weights);
  std::vector<Index> inside{ellipsis};
  std::vector<std::pair<index_t, index_t>> widths(p.rank(), {0, 0});
  for (std::size_t d = 0; d < image.size(); ++d) {
    inside.push_back(slice(1, 2 * image[d]));
    const index_t before = size[d] / 2 - (image[d] - 1);
    widths[p.rank() - image.size() + d] = {before, size[d] - (2 * image[d] - 1) - before};
  }
  const Variable L = ops::fft(ops::pad(ops::index(p, std::move(inside)), std::move(widths)),
                              last_axes(image.size()), {.centered = true});
  const bool is_real = !weights.defined() || !is_complex(weights.dtype());
  const DType real = A.param("locs").dtype();
  return is_real ? ops::astype(ops::real(L), real) : ops::astype(L, complex_of(real));
}

// In mode sampling: the weights that meet in each element of the padded grid.
Variable multiplicities(const NamedLinop& A, const Variable& weights) {
  const NufftGeometry g = nufft_geometry(A);
  std::vector<Variable> indices;
  for (std::size_t d = 0; d < g.ndim(); ++d) {
    indices.push_back(nearest_index(g, A.param("locs").var(), d));
  }
  const DType real = A.param("locs").dtype();
  const Variable values = weights.defined() ? weights : ops::astype(ones_at_points(A), real);
  return ops::scatter_add(values, indices, g.padded);
}

struct Names {
  explicit Names(const NamedLinop& A) {
    const std::size_t n = A.attr("grid_size").as_integers().size();
    const std::vector<ND> all(A.ishape().begin(), A.ishape().end());
    const auto split = all.end() - static_cast<std::ptrdiff_t>(n);
    batch = Dims(std::vector<ND>(all.begin(), split));
    image = Dims(std::vector<ND>(split, all.end()));
    padded = fresh_names(image, A.ishape());
    kspace = A.attr("kspace").absent() ? default_names(n, true) : A.attr("kspace").as_dims();
    const Dims taken = unite(A.ishape(), padded);
    const bool collides =
        std::any_of(kspace.begin(), kspace.end(), [&](const ND& d) { return taken.contains(d); });
    if (collides) kspace = fresh_names(padded, taken);
  }
  Dims batch, image, padded, kspace;
};

}  // namespace

NamedLinop toeplitz_normal(const NamedLinop& A, const NamedLinop* inner) {
  const PointWeights weights = weights_of(inner, point_extents(A));
  if (!weights.fits) return {};
  const bool sampling = is_sampling(A);
  const Variable factors =
      sampling ? multiplicities(A, weights.values) : spectrum_factors(A, weights.values);
  const NufftGeometry g = nufft_geometry(A);
  const Extents size = sampling ? g.padded : spectrum_size(g.image);
  const Names names(A);
  if (factors.rank() > names.batch.size() + g.ndim() && !names.batch.has_ellipsis()) return {};
  const NamedLinop L =
      make_diagonal({NamedShape(names.batch + names.kspace),
                     {{Parameter::derived(factors), last_axes(factors.rank()), ""}},
                     false});
  const NamedLinop transform =
      Fft(static_cast<int>(g.ndim()),
          {.batch = names.batch, .grid = Grid{names.padded, names.kspace}, .centered = true});
  const NamedLinop pad =
      Pad(g.image, size, {.batch = names.batch, .in = names.image, .out = names.padded});
  return pad.normal(transform.normal(L));
}

bool is_toeplitz_cheaper(const NamedLinop& A) {
  const auto fft_work = [](const Extents& size) {
    const auto n = static_cast<double>(element_count(size));
    return 5 * n * std::log2(std::max(n, 2.0));
  };
  const NufftGeometry g = nufft_geometry(A);
  double gridding = 4 * static_cast<double>(element_count(point_extents(A)));
  for (std::size_t d = 0; d < g.ndim(); ++d) gridding *= g.spec.width[d];
  if (is_sampling(A)) return true;
  return fft_work(spectrum_size(g.image)) < fft_work(g.padded) + gridding;
}

double nufft_normal_allowance(const NamedLinop& A) {
  if (A.is_flipped() || A.attr("toeplitz").as_string() == "no" || is_sampling(A)) return 0;
  const NufftGeometry g = nufft_geometry(A);
  double error = A.attr("toeplitz_eps").as_real();
  for (std::size_t d = 0; d < g.ndim(); ++d) {
    const double oversamp = static_cast<double>(g.padded[d]) / static_cast<double>(g.image[d]);
    error += 4 * nufft_error_estimate(1, g.spec.width[d], oversamp);
  }
  return error;
}

Tensor toeplitz_kernel(const NamedLinop& A, const NamedLinop& inner) {
  if (&A.type() != &linop_types::nufft() || A.is_flipped()) {
    throw ValueError("[toeplitz_kernel] Toeplitz: got " + A.name() + ", expected a Nufft");
  }
  const bool plain = !inner.defined() || &inner.type() == &linop_types::identity();
  const PointWeights weights = weights_of(plain ? nullptr : &inner, point_extents(A));
  if (!weights.fits) {
    throw ValueError(who(A) + "Toeplitz: got the inner operator " + inner.name() +
                     ", expected none, Identity or a Diagonal over the points");
  }
  return Parameter::derived(is_sampling(A) ? multiplicities(A, weights.values)
                                           : spectrum_factors(A, weights.values))
      .value();
}

}  // namespace palimpsest
