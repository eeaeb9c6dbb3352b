// SPDX-License-Identifier: Apache-2.0
// Direct: one fused pass that reads the grid with its surroundings once per element of the kernel.
// FFT: the kernel stands around the origin of a grid P. P is the grid itself (circular), or so
// large that the wrapped part meets zeros. The kernel's transform is kept between calls.
#include "palimpsest/linop/transforms/convolution.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

#include "palimpsest/linop/core/prelude.hpp"
#include "palimpsest/linop/transforms/convolution_graph.hpp"
#include "palimpsest/ops/transforms/fft.hpp"
#include "palimpsest/ops/transforms/nufft.hpp"

namespace palimpsest {
namespace {

// A graph has a node per element of a kernel that is applied directly.
constexpr index_t kMostDirect = 64;
// Assumed number of elements of a grid of unknown size.
constexpr double kUsualGrid = 65536;

struct Setup {
  Setup(const Variable& x, const Variable& kernel_values, const ConvolutionSpec& spec,
        std::string_view who)
      : whole(kernel_values),
        h(kernel_values),
        kernel(h.type().shape),
        n(kernel.size()),
        circular(spec.boundary == Boundary::circular) {
    if (n < 1 || n > 3 || x.rank() < n) {
      throw ValueError("[" + std::string(who) + "] kernel: got " + h.type().str() + " and data " +
                       x.type().str() + ", expected 1 to 3 axes that the data have too");
    }
    grid = std::span<const index_t>(x.type().shape).last(n);
    for (const index_t k : kernel) centres.push_back(k / 2);
    const bool fits = std::equal(kernel.begin(), kernel.end(), grid.begin(), std::less_equal<>());
    if (spec.must_fit && !fits) {
      throw ValueError("[" + std::string(who) + "] grid_sizes: got a kernel " + to_string(kernel) +
                       " on a grid " + to_string(grid) +
                       ", expected one that fits. Try Convolution");
    }
    if (!circular) drop_what_reaches_no_element();
    direct = spec.method == ConvolutionMethod::direct || (circular && !fits);
    keeps_spectrum = spec.keeps_spectrum;
    if (direct || spec.method == ConvolutionMethod::fft) return;
    const auto own = static_cast<double>(element_count(grid)),
               padded = static_cast<double>(element_count(transform_grid()));
    direct = element_count(kernel) <= kMostDirect &&
             own * direct_cost(kernel, x.dtype(), h.dtype()) <= padded * fft_cost(padded);
  }
  index_t centre(std::size_t d) const { return centres[d]; }

  // Removes elements of h that shift by a grid or more: they read only zeros, or write elements
  // that are cut off.
  void drop_what_reaches_no_element() {
    std::vector<Index> kept;
    for (std::size_t d = 0; d < n; ++d) {
      const index_t reach = std::max<index_t>(grid[d], 1);
      const index_t first = std::max<index_t>(centres[d] - reach + 1, 0);
      const index_t end = std::min(kernel[d], centres[d] + reach);
      kept.emplace_back(slice(first, end));
      kernel[d] = end - first;
      centres[d] -= first;
    }
    if (kernel != whole.type().shape) h = ops::index(whole, std::move(kept));
  }

  // The grid of the transforms.
  Extents transform_grid() const {
    Extents padded = grid;
    if (circular) return padded;
    for (std::size_t d = 0; d < n; ++d) {
      padded[d] += std::max(centre(d), kernel[d] - 1 - centre(d));
      padded[d] = nufft_padded_size(padded[d], 1.0);
    }
    return padded;
  }

  Variable whole;  // the kernel as it was given
  Variable h;      // the part of it that is applied, of these extents
  Extents kernel;
  std::size_t n;
  bool circular;
  bool direct = true, keeps_spectrum = false;
  Extents grid, centres;
};

ConvolutionSpec spec_of(const NamedLinop& A) {
  const std::string& method = A.attr("method").as_string();
  return {.boundary =
              A.attr("boundary").as_string() == "circular" ? Boundary::circular : Boundary::zeros,
          .method = method == "direct" ? ConvolutionMethod::direct
                    : method == "fft"  ? ConvolutionMethod::fft
                                       : ConvolutionMethod::automatic,
          .must_fit = A.attr("must_fit").as_bool(),
          // Gradients must find the way to a kernel that is learned.
          .keeps_spectrum = !A.param("kernel").is_trainable()};
}

Setup setup_of(const NamedLinop& A, const Variable& x) {
  return {x, A.param("kernel").var(), spec_of(A), path_of(A)};
}

std::vector<std::pair<index_t, index_t>> no_widths(const Variable& x) {
  return std::vector<std::pair<index_t, index_t>>(x.rank(), {0, 0});
}

// x with `before` and `after` further elements around the last axes.
Variable surrounded(const Setup& s, const Variable& x, const Extents& before,
                    const Extents& after) {
  if (!s.circular) {
    auto widths = no_widths(x);
    for (std::size_t d = 0; d < s.n; ++d) widths[x.rank() - s.n + d] = {before[d], after[d]};
    return ops::pad(x, std::move(widths));
  }
  std::vector<Variable> positions;
  for (std::size_t d = 0; d < s.n; ++d) {
    std::vector<index_t> index;
    for (index_t i = -before[d]; i < s.grid[d] + after[d]; ++i) {
      index.push_back((i % s.grid[d] + s.grid[d]) % s.grid[d]);
    }
    Extents shape(s.n, 1);
    shape[d] = static_cast<index_t>(index.size());
    positions.push_back(constant(Tensor::from(index).reshape(shape).to(x.type().device)));
  }
  return ops::gather(x, positions);
}

// The sum over the elements m of the kernel of coefficient(m) times `source` from first(m) on.
template <class First>
Variable sum_of_shifts(const Setup& s, const Variable& source, const Extents& size, bool conjugated,
                       First&& first) {
  Variable sum;
  Extents m(s.n, 0);
  for (index_t i = 0; i < element_count(s.kernel); ++i) {
    index_t rest = i;
    std::vector<Index> element, window{ellipsis};
    for (std::size_t d = s.n; d-- > 0;) {
      m[d] = rest % s.kernel[d];
      rest /= s.kernel[d];
    }
    for (std::size_t d = 0; d < s.n; ++d) {
      element.emplace_back(m[d]);
      const index_t start = first(d, m[d]);
      window.emplace_back(slice(start, start + size[d]));
    }
    const Variable coefficient = ops::index(s.h, std::move(element));
    const Variable term =
        ops::index(source, std::move(window)) * (conjugated ? ops::conj(coefficient) : coefficient);
    sum = sum.defined() ? sum + term : term;
  }
  return sum;
}

Variable direct_convolution(const Setup& s, const Variable& x, bool adjoint) {
  if (element_count(s.grid) == 0) {  // nothing to sum: any element gives the dtype
    return x * ops::index(s.h, std::vector<Index>(s.n, Index(0)));
  }
  // Forward reads x[n + c - m], the adjoint y[n - c + m].
  Extents before, after;
  for (std::size_t d = 0; d < s.n; ++d) {
    const index_t c = s.centre(d), last = s.kernel[d] - 1 - c;
    before.push_back(adjoint ? c : last);
    after.push_back(adjoint ? last : c);
  }
  const Variable around = surrounded(s, x, before, after);
  return sum_of_shifts(s, around, s.grid, adjoint,
                       [&](std::size_t d, index_t m) { return adjoint ? m : s.kernel[d] - 1 - m; });
}

// The transform of the kernel around the origin of P: element m stands at m - c.
Variable kernel_spectrum(const Setup& s, const Extents& padded) {
  auto widths = no_widths(s.h);
  for (std::size_t d = 0; d < s.n; ++d) widths[d].second = padded[d] - s.kernel[d];
  Variable h = ops::pad(s.h, std::move(widths));
  std::vector<index_t> shifts;
  Axes axes;
  for (std::size_t d = 0; d < s.n; ++d) {
    shifts.push_back(-s.centre(d));
    axes.push_back(static_cast<index_t>(d));
  }
  const Variable spectrum = ops::fft(ops::roll(h, shifts, axes), last_axes(s.n));
  if (!s.keeps_spectrum) return spectrum;
  Extents key = padded;  // and the kernel's kept extents, which follow from the grid
  for (std::size_t d = 0; d < s.n; ++d) {
    key.push_back(s.kernel[d]);
    key.push_back(s.centre(d));
  }
  return kept_spectrum(s.whole, key, spectrum);
}

template <class Factor>
Variable through_spectrum(const Setup& s, const Variable& x, Factor&& factor) {
  const Extents padded = s.transform_grid();
  auto widths = no_widths(x);
  std::vector<Index> cut{ellipsis};
  for (std::size_t d = 0; d < s.n; ++d) {
    widths[x.rank() - s.n + d].second = padded[d] - s.grid[d];
    cut.emplace_back(slice(0, s.grid[d]));
  }
  const Axes axes = last_axes(s.n);
  const Variable spectrum = ops::fft(ops::pad(x, std::move(widths)), axes);
  const Variable result = ops::ifft(spectrum * factor(kernel_spectrum(s, padded)), axes);
  const Variable y = padded == s.grid ? result : ops::index(result, std::move(cut));
  return is_complex(promote(x.dtype(), s.h.dtype())) ? y : ops::real(y);
}

Variable convolution_fn(const NamedLinop& A, const Variable& x) {
  return convolved(x, A.param("kernel").var(), spec_of(A), path_of(A));
}

Variable convolution_adj_fn(const NamedLinop& A, const Variable& y) {
  return convolved_adjoint(y, A.param("kernel").var(), spec_of(A), path_of(A));
}

// The normal operator of a circular convolution: multiplication with |DFT h|^2, the same for A A^H.
Variable convolution_normal_fn(const NamedLinop& A, const Variable& x) {
  const Setup s = setup_of(A, x);
  const bool is_composed = s.direct || A.attr("boundary").as_string() != "circular" ||
                           A.attr("normal").as_string() == "composed";
  if (is_composed) return convolution_adj_fn(A, convolution_fn(A, x));
  return through_spectrum(s, x, [](const Variable& spectrum) { return ops::abs2(spectrum); });
}

// sum_m conj(h[m]) h[m + j] for |j| < k, in the middle j = 0.
Variable autocorrelation(const NamedLinop& A) {
  const Setup s = setup_of(A, A.param("kernel").var());
  Extents size;
  auto widths = no_widths(s.h);
  for (std::size_t d = 0; d < s.n; ++d) {
    size.push_back(2 * s.kernel[d] - 1);
    widths[d] = {s.kernel[d] - 1, s.kernel[d] - 1};
  }
  return sum_of_shifts(s, ops::pad(s.h, std::move(widths)), size, true,
                       [](std::size_t, index_t m) { return m; });
}

struct Names {
  Names(const Dims& dims, std::size_t n)
      : batch(dims.slice(0, dims.size() - n)), grid(dims.slice(dims.size() - n, dims.size())) {}
  Dims batch, grid;
};

NamedLinop autocorrelated(const NamedLinop& A) {
  const Parameter& h = A.param("kernel");
  const Names names(A.ishape(), h.shape().size());
  const NamedLinop made =
      Convolution(Parameter::derived(autocorrelation(A)).as_trainable(h.is_trainable()),
                  {.batch = names.batch,
                   .grid = names.grid,
                   .boundary = Boundary::circular,
                   .method = ConvolutionMethod::direct});
  return with_records_of(A, made);
}

// True if the autocorrelation is less work than two transforms, for complex data with the most
// work.
bool is_autocorrelation_cheaper(const NamedLinop& A) {
  const Parameter& h = A.param("kernel");
  Extents wide;
  for (const index_t k : h.shape()) wide.push_back(2 * k - 1);
  double grid = 1;
  const Names names(A.ishape(), wide.size());
  for (const ND& d : names.grid) {
    const auto n = A.size(d);
    if (!n) grid = kUsualGrid;
    if (!n) break;
    grid *= static_cast<double>(*n);
  }
  return element_count(wide) <= kMostDirect &&
         direct_cost(wide, complex_of(h.dtype()), h.dtype()) <= fft_cost(grid);
}

// Shifts commute, so that A A^H is A^H A.
NamedLinop convolution_normal(const NamedLinop& A, const NamedLinop* inner) {
  const std::string& choice = A.attr("normal").as_string();
  if (inner || A.attr("boundary").as_string() != "circular") return {};
  const bool is_free = choice == "automatic" && A.attr("method").as_string() != "fft";
  if (choice == "kernel" || (is_free && is_autocorrelation_cheaper(A))) return autocorrelated(A);
  NamedLinop plain = A;
  if (choice == "fft" || is_free) plain.set_attr("method", "fft");
  return make_container(linop_types::normal(), {std::move(plain)});
}

// A grid has one size by both of its names.
std::optional<index_t> convolution_size(const NamedLinop& A, const ND& d) {
  const Axes grid = last_axes(A.param("kernel").shape().size());
  const DimMap recorded = A.recorded_sizes();
  for (const auto& [dims, others] : {std::pair(A.ishape(), A.oshape()), {A.oshape(), A.ishape()}}) {
    const auto i = find_axis(dims, d, grid);
    if (!i) continue;
    const auto found = recorded.find(others[others.size() - grid.size() + *i]);
    if (found != recorded.end()) return found->second;
  }
  return std::nullopt;
}

NamedLinop convolution_split(const NamedLinop& A, const Tile& tile) {
  const Axes grid = last_axes(A.param("kernel").shape().size());
  return split_besides(A, tile, grid, grid, "neighbours along it are mixed");
}

void check_convolution(const NamedLinop& A) {
  const TensorType& h = A.param("kernel").type();
  if (!is_inexact(h.dtype)) {
    throw DTypeError(who(A) + "kernel: got " + h.str() + ", expected floating or complex");
  }
  const std::size_t n = h.rank();
  if (n < 1 || n > 3 || A.ishape().size() < n || A.oshape().size() < n ||
      element_count(h.shape) == 0) {
    throw ValueError(who(A) + "kernel: got " + h.str() +
                     ", expected 1 to 3 axes with elements, one per axis of the grid");
  }
  const auto one_of = [&](std::string_view name, std::initializer_list<std::string_view> allowed) {
    const std::string& value = A.attr(name).as_string();
    if (std::find(allowed.begin(), allowed.end(), value) != allowed.end()) return;
    throw ValueError(who(A) + std::string(name) + ": got '" + value + "'");
  };
  one_of("boundary", {"zeros", "circular"});
  one_of("method", {"automatic", "direct", "fft"});
  one_of("normal", {"automatic", "fft", "kernel", "composed"});
  const std::string& normal = A.attr("normal").as_string();
  if (A.attr("boundary").as_string() == "zeros" && (normal == "fft" || normal == "kernel")) {
    throw ValueError(who(A) + "normal: got '" + normal +
                     "' with zeros around, expected a circular boundary");
  }
}

const char* name_of_method(ConvolutionMethod method) {
  if (method == ConvolutionMethod::automatic) return "automatic";
  return method == ConvolutionMethod::direct ? "direct" : "fft";
}

const char* name_of_normal(ConvolutionNormal normal) {
  switch (normal) {
    case ConvolutionNormal::automatic:
      return "automatic";
    case ConvolutionNormal::fft:
      return "fft";
    case ConvolutionNormal::kernel:
      return "kernel";
    case ConvolutionNormal::composed:
      break;
  }
  return "composed";
}

NamedLinop make_convolution(const char* name, Parameter kernel, const ConvolutionOptions& options,
                            bool must_fit) {
  const std::size_t n = kernel.shape().size();
  if (n < 1 || n > 3) {
    throw ValueError("[" + std::string(name) + "] kernel: got " + kernel.type().str() +
                     ", expected 1 to 3 axes");
  }
  const Dims grid = options.grid.value_or(default_names(n, false));
  const Dims out = options.out.value_or(grid);
  for (const Dims& dims : {grid, out}) {
    if (dims.size() == n && !dims.has_ellipsis()) continue;
    throw ValueError("[" + std::string(name) + "] grid: got names " + dims.str() + ", expected " +
                     std::to_string(n) + ", one per axis of the kernel");
  }
  const NamedLinop made =
      make_linop(linop_types::convolution(), NamedShape(options.batch + grid, options.batch + out),
                 {{"kernel", std::move(kernel)}},
                 {{"boundary", options.boundary == Boundary::zeros ? "zeros" : "circular"},
                  {"method", name_of_method(options.method)},
                  {"normal", name_of_normal(options.normal)},
                  {"must_fit", must_fit}});
  return made.name() == name ? made : made.named(name);
}

}  // namespace

double direct_cost(const Extents& kernel, DType x, DType h) {
  const double parts = (is_complex(x) ? 2 : 1) * (is_complex(h) ? 2 : 1);
  return 2 * parts * static_cast<double>(element_count(kernel));
}

double fft_cost(double grid_elements) {
  // Work of two transforms and the product. Their passes cost more than one pass over the grid.
  return 1.5 * (10 * std::log2(std::max(grid_elements, 2.0)) + 6);
}

Variable convolved(const Variable& x, const Variable& h, const ConvolutionSpec& spec,
                   std::string_view who) {
  const Setup s(x, h, spec, who);
  if (s.direct) return direct_convolution(s, x, false);
  return through_spectrum(s, x, [](const Variable& spectrum) { return spectrum; });
}

Variable convolved_adjoint(const Variable& y, const Variable& h, const ConvolutionSpec& spec,
                           std::string_view who) {
  const Setup s(y, h, spec, who);
  if (s.direct) return direct_convolution(s, y, true);
  return through_spectrum(s, y, [](const Variable& spectrum) { return ops::conj(spectrum); });
}

const LinopType& linop_types::convolution() {
  return PALIMPSEST_LINOP_TYPE(.name = "Convolution",
                               .functions = {.fn = convolution_fn,
                                             .adj_fn = convolution_adj_fn,
                                             .normal_fn = convolution_normal_fn,
                                             .split = convolution_split,
                                             .size = convolution_size},
                               .normal = convolution_normal, .check = check_convolution);
}

NamedLinop Convolution(Parameter kernel, ConvolutionOptions options) {
  return make_convolution("Convolution", std::move(kernel), options, false);
}

NamedLinop FftConvolution(Parameter kernel, FftConvolutionOptions options) {
  return make_convolution("FftConvolution", std::move(kernel),
                          {.batch = options.batch,
                           .grid = options.grid,
                           .out = options.out,
                           .boundary = Boundary::circular,
                           .method = ConvolutionMethod::fft},
                          true);
}

}  // namespace palimpsest
