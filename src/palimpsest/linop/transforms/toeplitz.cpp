// SPDX-License-Identifier: Apache-2.0
// The normal operator of a Nufft as a convolution. With n and n' elements of the image and w_k the
// weights of the points, (A^H w A)[n, n'] depends on n - n' alone: it is p[n - n'],
//     p[m] = s^2 sum_k w_k exp(-sign 2 pi i sum_d k_d m_d / N_d),     |m_d| < N_d.
// p is an adjoint Nufft of the weights onto a grid of twice the size, in double precision; its DFT
// on a grid of at least 2 N - 1 elements multiplies the spectrum of the zero-padded image.
#include <algorithm>
#include <cmath>

#include "palimpsest/linop/core/prelude.hpp"
#include "palimpsest/linop/operators/dense_roles.hpp"
#include "palimpsest/linop/operators/diagonal_factors.hpp"
#include "palimpsest/linop/operators/pad.hpp"
#include "palimpsest/linop/transforms/fft.hpp"
#include "palimpsest/linop/transforms/nufft_detail.hpp"
#include "palimpsest/linop/transforms/point_axes.hpp"
#include "palimpsest/named/inner_dimension.hpp"
#include "palimpsest/ops/create/create.hpp"
#include "palimpsest/ops/transforms/fft.hpp"

namespace palimpsest {
namespace {

// Weights between A and A^H: values (batch.., k..), undefined for ones. `fits` is false for an
// operator that a convolution cannot include.
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
    // Axes of one element in front of the points and of the other axes.
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
  // toeplitz_eps holds for any image, the accuracy of a Nufft for white noise.
  const double eps = std::max(A.attr("toeplitz_eps").as_real() / 4, 1e-14);
  NufftGeometry wide(doubled, {.scale = NufftScale::none, .eps = eps}, DType::float64, path_of(A));
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

Variable factors_of(const NamedLinop& A, const Variable& weights) {
  return is_sampling(A) ? multiplicities(A, weights) : spectrum_factors(A, weights);
}

Extents factors_size(const NamedLinop& A, const NufftGeometry& g) {
  return is_sampling(A) ? g.padded : spectrum_size(g.image);
}

// A Dense that acts point by point: W has an axis for some of its labels, and maybe for points.
// `values` is undefined for any other Dense.
struct PointMatrices {
  DenseLabels w, in, out;  // of the Dense over the spectrum; the labels of its axes are the last
  Variable values;         // (axes of w but the spectrum's.., k..)
};

PointMatrices matrices_of(const NamedLinop& inner, const Extents& points, std::size_t ndim) {
  if (&inner.type() != &linop_types::dense()) return {};
  const DenseRoles roles(inner);
  const std::size_t n = points.size();
  if (roles.in.size() < n || roles.out.size() < n) return {};
  const std::span<const index_t> of_points(roles.in.end() - static_cast<std::ptrdiff_t>(n), n);
  const bool passes = std::equal(of_points.begin(), of_points.end(),
                                 roles.out.end() - static_cast<std::ptrdiff_t>(n));
  if (!passes || has_label(DenseLabels(of_points), kDenseRun)) return {};
  PointMatrices result;
  Axes order, missing, stretched;
  for (std::size_t axis = 0; axis < roles.w.size(); ++axis) {
    const index_t label = roles.w[axis];
    const bool is_point = has_label(DenseLabels(of_points), label);
    if (has_label(roles.stretch, label)) {
      if (!is_point) return {};
      stretched.push_back(static_cast<index_t>(axis));
    }
  }
  const DenseLabels fixed = roles.fixed();
  for (std::size_t axis = 0; axis < fixed.size(); ++axis) {
    if (has_label(DenseLabels(of_points), fixed[axis])) continue;
    order.push_back(static_cast<index_t>(axis));
    result.w.push_back(fixed[axis]);
  }
  const std::size_t n_others = order.size();
  for (std::size_t k = 0; k < n; ++k) {
    const auto at = std::find(fixed.begin(), fixed.end(), of_points[k]);
    if (at == fixed.end()) {
      missing.push_back(static_cast<index_t>(n_others + k));
    } else {
      order.push_back(at - fixed.begin());
    }
  }
  const Variable& weight = inner.param("weight").var();
  Variable values = stretched.empty() ? weight : ops::squeeze(weight, stretched);
  if (roles.conjugated) values = ops::conj(values);
  values = ops::transpose(values, std::move(order));
  if (!missing.empty()) values = ops::expand_dims(values, std::move(missing));
  Extents shape = values.type().shape;
  std::copy(points.begin(), points.end(), shape.end() - static_cast<std::ptrdiff_t>(n));
  result.values = ops::broadcast_to(values, std::move(shape));
  result.in = DenseLabels(std::span<const index_t>(roles.in).first(roles.in.size() - n));
  result.out = DenseLabels(std::span<const index_t>(roles.out).first(roles.out.size() - n));
  const index_t free = roles.first_free();
  for (DenseLabels* labels : {&result.w, &result.in, &result.out}) {
    for (std::size_t d = 0; d < ndim; ++d) labels->push_back(free + static_cast<index_t>(d));
  }
  return result;
}

// Names for the inside that no neighbour has, unless the user chose those of the spectrum.
struct ToeplitzNames {
  ToeplitzNames(const NamedLinop& A, const Dims& others, const Extents& size) {
    const std::size_t n = A.attr("grid_size").as_integers().size();
    const std::vector<ND> all(A.ishape().begin(), A.ishape().end());
    const auto split = all.end() - static_cast<std::ptrdiff_t>(n);
    batch = Dims(std::vector<ND>(all.begin(), split));
    image = Dims(std::vector<ND>(split, all.end()));
    if (!A.attr("kspace").absent()) kspace = A.attr("kspace").as_dims();
    const Dims taken = unite(A.ishape(), others);
    const bool is_free =
        !kspace.empty() &&
        std::none_of(kspace.begin(), kspace.end(), [&](const ND& d) { return taken.contains(d); });
    if (!is_free) kspace = {};
    for (std::size_t k = 0; k < n; ++k) {
      padded.push_back(inner_dimension(image[k], size[k], 'p'));
      if (!is_free) kspace.push_back(inner_dimension(image[k], size[k], 'k'));
    }
  }
  Dims batch, image, padded, kspace;
};

}  // namespace

NamedLinop toeplitz_normal(const NamedLinop& A, const NamedLinop* inner) {
  const NufftGeometry g = nufft_geometry(A);
  const Extents size = factors_size(A, g);
  const ToeplitzNames names(A, inner ? inner->dims() : Dims(), size);
  const bool is_trainable = inner && has_trainable(*inner);
  const auto parameter_of = [&](const Variable& factors) {
    return Parameter::derived(factors).as_trainable(is_trainable);
  };
  NamedLinop L;
  const PointMatrices matrices =
      inner ? matrices_of(*inner, point_extents(A), g.ndim()) : PointMatrices();
  if (matrices.values.defined()) {
    const auto without_points = [&](const Dims& dims) {
      return dims.slice(0, dims.size() - point_extents(A).size()) + names.kspace;
    };
    const Variable factors = factors_of(A, matrices.values);
    const Dims weightshape = numbered("W", static_cast<int>(factors.rank()));
    L = make_dense(NamedShape(without_points(inner->ishape()), without_points(inner->oshape()),
                              {{"weightshape", weightshape}}),
                   {{"weight", parameter_of(factors)}}, matrices.w, matrices.in, matrices.out, {},
                   false);
  } else {
    const PointWeights weights = weights_of(inner, point_extents(A));
    if (!weights.fits) return {};
    const Variable factors = factors_of(A, weights.values);
    if (factors.rank() > names.batch.size() + g.ndim() && !names.batch.has_ellipsis()) return {};
    L = make_diagonal({NamedShape(names.batch + names.kspace),
                       {{parameter_of(factors), last_axes(factors.rank()), ""}},
                       false});
  }
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
    error += 4 * nufft_error_bound(g.spec.width[d], oversamp);
  }
  return error;
}

Tensor toeplitz_kernel(const NamedLinop& A, const NamedLinop& inner) {
  if (&A.type() != &linop_types::nufft() || A.is_flipped()) {
    throw ValueError("[toeplitz_kernel] Toeplitz: got " + A.name() + ", expected a Nufft");
  }
  const bool plain = !inner.defined() || &inner.type() == &linop_types::identity();
  if (!plain) {
    const PointMatrices matrices =
        matrices_of(inner, point_extents(A), A.attr("grid_size").as_list().size());
    if (matrices.values.defined()) {
      return Parameter::derived(factors_of(A, matrices.values)).value();
    }
  }
  const PointWeights weights = weights_of(plain ? nullptr : &inner, point_extents(A));
  if (!weights.fits) {
    throw ValueError(who(A) + "Toeplitz: got the inner operator " + inner.name() + kExpectedInner);
  }
  return Parameter::derived(factors_of(A, weights.values)).value();
}

}  // namespace palimpsest
