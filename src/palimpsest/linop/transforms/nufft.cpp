// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/linop/transforms/nufft.hpp"

#include <fmt/format.h>

#include <cmath>
#include <numbers>

#include "palimpsest/linop/core/prelude.hpp"
#include "palimpsest/linop/transforms/nufft_detail.hpp"
#include "palimpsest/linop/transforms/point_axes.hpp"
#include "palimpsest/ops/transforms/fft.hpp"

namespace palimpsest {
namespace {

Variable apodization_of(const NamedLinop& A) {
  return A.has_param("apodization") ? A.param("apodization").var() : Variable();
}

GriddingPlan plan_of_points(const NamedLinop& A, const NufftGeometry& g) {
  if (!A.has_param("apodization")) return g.interpolation();
  return GriddingPlan(g.spec_for_given_apodization(), path_of(A));
}

std::string index_key(std::size_t d) { return "index" + std::to_string(d); }

std::vector<Variable> indices_of(const NamedLinop& A, std::size_t n) {
  std::vector<Variable> result;
  for (std::size_t d = 0; d < n; ++d) result.push_back(A.param(index_key(d)).var());
  return result;
}

// -- sampling: the image is padded at its end only and transformed as it lies --------------------

// Turns of the phase factors along axis d that the spectrum has for an image whose middle is
// element 0: exp(2 pi i u floor(N / 2) / P) for element u of a grid that begins with frequency 0.
Variable turns(const NufftGeometry& g, const Variable& u, std::size_t d) {
  const auto middle = static_cast<double>(g.image[d] / 2), size = static_cast<double>(g.padded[d]);
  const Variable whole = ops::astype(u, DType::float64) * middle;
  return ops::elementwise(ScalarOp::mod, {whole, constant(Tensor::scalar(size, u.type().device))}) *
         (1 / size);
}
Variable phase_of(const Variable& turns, DType dtype) {
  constexpr double kTurn = 2 * std::numbers::pi;
  return ops::astype(ops::complex(ops::cos(turns * kTurn), ops::sin(turns * kTurn)), dtype);
}

bool has_phase_at_points(const NamedLinop& A) { return A.has_param("phase"); }

// On the grid: a product over the axes, in one pass.
Variable centred(const NufftGeometry& g, Variable grid, bool is_adjoint) {
  for (std::size_t d = 0; d < g.ndim(); ++d) {
    Extents shape(g.ndim() - d, 1);
    shape[0] = g.padded[d];
    const Device device = grid.type().device;
    const Variable u = constant(Tensor::arange(g.padded[d], DType::int64, device).reshape(shape));
    const Variable phase = phase_of(turns(g, u, d), grid.dtype());
    grid = grid * (is_adjoint ? ops::conj(phase) : phase);
  }
  return grid;
}

Variable sampled(const NamedLinop& A, const NufftGeometry& g, const Variable& x) {
  std::vector<std::pair<index_t, index_t>> widths(x.rank(), {0, 0});
  for (std::size_t d = 0; d < g.ndim(); ++d) {
    widths[x.rank() - g.ndim() + d].second = g.padded[d] - g.image[d];
  }
  const Variable image = ops::pad(ops::astype(x, complex_of(x.dtype())), std::move(widths));
  const Variable grid = ops::fft(image, last_axes(g.ndim()), {.norm = FftNorm::ortho});
  if (!has_phase_at_points(A)) {
    return ops::gather(centred(g, grid, false), indices_of(A, g.ndim()));
  }
  const Variable y = ops::gather(grid, indices_of(A, g.ndim()));
  return y * ops::astype(A.param("phase").var(), y.dtype());
}

Variable sampled_adjoint(const NamedLinop& A, const NufftGeometry& g, const Variable& y) {
  Variable samples = ops::astype(y, complex_of(y.dtype()));
  const bool at_points = has_phase_at_points(A);
  if (at_points) {
    samples = samples * ops::conj(ops::astype(A.param("phase").var(), samples.dtype()));
  }
  Variable grid = ops::scatter_add(samples, indices_of(A, g.ndim()), g.padded);
  if (!at_points) grid = centred(g, grid, true);
  const Variable image = ops::fft_adjoint(grid, last_axes(g.ndim()), {.norm = FftNorm::ortho});
  std::vector<Index> front{ellipsis};
  for (const index_t n : g.image) front.push_back(slice(0, n));
  return ops::index(image, std::move(front));
}

// -- the operator --------------------------------------------------------------------------------

Variable nufft_fn(const NamedLinop& A, const Variable& x) {
  const NufftGeometry g = nufft_geometry(A);
  if (is_sampling(A)) return sampled(A, g, x);
  return ops::nufft_graph(g, plan_of_points(A, g), x, A.param("locs").var(), A.param("order").var(),
                          apodization_of(A));
}

Variable nufft_adj_fn(const NamedLinop& A, const Variable& y) {
  const NufftGeometry g = nufft_geometry(A);
  if (is_sampling(A)) return sampled_adjoint(A, g, y);
  return ops::nufft_adjoint_graph(g, plan_of_points(A, g), y, A.param("locs").var(),
                                  A.param("order").var(), apodization_of(A));
}

NamedLinop nufft_normal(const NamedLinop& A, const NamedLinop* inner) {
  const std::string& choice = A.attr("toeplitz").as_string();
  if (A.is_flipped() || choice == "no") return {};
  if (choice == "automatic" && !is_toeplitz_cheaper(A)) return {};
  NamedLinop made = toeplitz_normal(A, inner);
  if (made.defined() || choice == "automatic") return made;
  throw ValueError(who(A) + "Toeplitz: got the inner operator " + inner->name() + kExpectedInner +
                   ". Try Toeplitz::automatic");
}

void check_apodization(const NamedLinop& A) {
  const Parameter& p = A.param("apodization");
  if (p.shape() != A.attr("grid_size").as_integers()) {
    throw ShapeError(who(A) + "apodization: got " + p.type().str() + ", expected the shape " +
                     to_string(A.attr("grid_size").as_integers()));
  }
  if (!is_inexact(p.dtype())) {
    throw DTypeError(who(A) + "apodization: got " + p.type().str() + ", expected floating");
  }
  const auto values = p.value().to(DType::complex128).to_vector<std::complex<double>>();
  for (const std::complex<double>& value : values) {
    if (std::isfinite(value.real()) && std::isfinite(value.imag())) continue;
    throw ValueError(who(A) + "apodization: got Nan/Inf, expected finite factors");
  }
}

void check_nufft(const NamedLinop& A) {
  check_locs(A);
  const std::string& mode = A.attr("mode").as_string();
  if (mode != "interpolate" && mode != "sampling") {
    throw ValueError(who(A) + "mode: got '" + mode + "', expected interpolate or sampling");
  }
  const double eps = A.attr("toeplitz_eps").as_real();
  if (!(eps >= 1e-14 && eps < 1)) {
    throw ValueError(who(A) + "toeplitz_eps: got " + fmt::format("{}", eps) +
                     ", expected at least 1e-14 and less than 1");
  }
  if (A.has_param("apodization")) check_apodization(A);
  plan_of_points(A, nufft_geometry(A));
}

Parameters derive_nufft(const NamedLinop& A) {
  const NufftGeometry g = nufft_geometry(A);
  const Variable& locs = A.param("locs").var();
  if (!is_sampling(A)) {
    return {{"order", Parameter::derived(ops::point_order(plan_of_points(A, g), locs))}};
  }
  Parameters result;
  Variable turned;
  for (std::size_t d = 0; d < g.ndim(); ++d) {
    const Variable centred = ops::astype(nearest_index(g, locs, d), DType::float64);
    const auto size = static_cast<double>(g.padded[d]);
    const Variable u =
        ops::elementwise(ScalarOp::mod, {centred - static_cast<double>(g.padded[d] / 2),
                                         constant(Tensor::scalar(size, locs.type().device))});
    result.emplace_back(index_key(d), Parameter::derived(ops::astype(u, DType::int64)));
    const Variable more = turns(g, u, d);
    turned = turned.defined() ? turned + more : more;
  }
  if (element_count(point_extents(A)) <= element_count(g.padded)) {
    result.emplace_back("phase", Parameter::derived(phase_of(turned, complex_of(locs.dtype()))));
  }
  return result;
}

const char* name_of_unit(LocsUnit units) {
  if (units == LocsUnit::cycles) return "cycles";
  return units == LocsUnit::normalized ? "normalized" : "radians";
}

LocsUnit unit_of(const NamedLinop& A) {
  const std::string& units = A.attr("units").as_string();
  if (units == "cycles") return LocsUnit::cycles;
  if (units == "normalized") return LocsUnit::normalized;
  if (units == "radians") return LocsUnit::radians;
  throw ValueError(who(A) + "units: got '" + units + "', expected cycles, normalized or radians");
}

NufftScale scale_of(const NamedLinop& A) {
  const std::string& scale = A.attr("scale").as_string();
  if (scale == "ortho") return NufftScale::ortho;
  if (scale == "none") return NufftScale::none;
  throw ValueError(who(A) + "scale: got '" + scale + "', expected ortho or none");
}

const char* name_of_choice(Toeplitz choice) {
  if (choice == Toeplitz::no) return "no";
  return choice == Toeplitz::yes ? "yes" : "automatic";
}

// The options of the transform, as given.
NufftOptions transform_options(const NufftLinopOptions& o) {
  return {.units = o.units,
          .sign = o.sign,
          .scale = o.scale,
          .eps = o.eps,
          .oversamp = o.oversamp,
          .width = o.width,
          .beta = o.beta,
          .fast_size = o.fast_size,
          .prepared = o.prepared};
}

}  // namespace

NufftOptions nufft_options(const NamedLinop& A) {
  NufftOptions options;
  options.units = unit_of(A);
  options.sign = static_cast<int>(A.attr("sign").as_integer());
  options.scale = scale_of(A);
  options.oversamp = A.attr("oversamp").as_real();
  options.width = per_axis(A.attr("width"));
  if (!A.attr("beta").absent()) options.beta = per_axis(A.attr("beta"));
  options.fast_size = A.attr("fast_size").as_bool();
  options.prepared = A.attr("prepared").as_bool();
  return options;
}

NufftGeometry nufft_geometry(const NamedLinop& A) {
  return NufftGeometry(A.attr("grid_size").as_integers(), nufft_options(A), A.param("locs").dtype(),
                       path_of(A));
}

Variable nearest_index(const NufftGeometry& g, const Variable& locs, std::size_t d) {
  const Variable loc = ops::index(locs, {ellipsis, Index(static_cast<index_t>(d))});
  const Variable position = ops::astype(loc, DType::float64) * g.spec.scale[d] + g.spec.shift[d];
  const Variable rounded = ops::elementwise(ScalarOp::round, {position});
  const Variable size =
      constant(Tensor::scalar(static_cast<double>(g.padded[d]), locs.type().device));
  return ops::astype(ops::elementwise(ScalarOp::mod, {rounded, size}), DType::int64);
}

bool is_sampling(const NamedLinop& A) { return A.attr("mode").as_string() == "sampling"; }

const LinopType& linop_types::nufft() {
  return PALIMPSEST_LINOP_TYPE(.name = "Nufft",
                               .functions = {.fn = nufft_fn,
                                             .adj_fn = nufft_adj_fn,
                                             .split = grid_to_points_split,
                                             .size = grid_to_points_size},
                               .normal = nufft_normal, .check = check_nufft,
                               .derive = derive_nufft);
}

NamedLinop SamplingNufft(Parameter locs, Extents grid_size, Dims output,
                         NufftLinopOptions options) {
  options.mode = NufftMode::sampling;
  return Nufft(std::move(locs), std::move(grid_size), std::move(output), std::move(options));
}

NamedLinop Nufft(Parameter locs, Extents grid_size, Dims output, NufftLinopOptions options) {
  const Dims points = point_names(output, locs.type(), "Nufft");
  const Dims input = grid_names(options.input.value_or(default_names(grid_size.size(), false)),
                                grid_size.size(), "Nufft");
  const NufftGeometry g(grid_size, transform_options(options), locs.dtype(), "Nufft");
  const bool single = locs.dtype() == DType::float32;
  const std::span<const double> widths(g.spec.width.data(), g.ndim());
  Attributes attrs{{"grid_size", Attribute(grid_size)},
                   {"units", name_of_unit(options.units)},
                   {"sign", options.sign},
                   {"scale", options.scale == NufftScale::ortho ? "ortho" : "none"},
                   {"oversamp", g.oversamp},
                   {"width", number_list(PerAxis(widths))},
                   {"beta", options.beta ? number_list(*options.beta) : Attribute()},
                   {"fast_size", options.fast_size},
                   {"mode", options.mode == NufftMode::sampling ? "sampling" : "interpolate"},
                   {"prepared", options.prepared},
                   {"toeplitz", name_of_choice(options.toeplitz)},
                   {"toeplitz_eps", options.toeplitz_eps.value_or(single ? 1e-6 : 1e-12)},
                   {"kspace", options.kspace ? Attribute(*options.kspace) : Attribute()}};
  Parameters params{{"locs", std::move(locs)}};
  if (options.apodization.present()) {
    params.emplace_back("apodization", std::move(options.apodization));
  }
  return make_linop(linop_types::nufft(), NamedShape(options.batch + input, options.batch + points),
                    std::move(params), std::move(attrs));
}

}  // namespace palimpsest
