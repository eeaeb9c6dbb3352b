// SPDX-License-Identifier: Apache-2.0
// Tables of gridding: the kernel as polynomials, and how the grid is cut into tiles.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <list>
#include <mutex>
#include <string>

#include "palimpsest/base/immortal.hpp"
#include "palimpsest/kernels/gridding/gridding_tables.hpp"

namespace palimpsest {
namespace {

using Real = long double;
// libc++ has that of double in std::numbers::pi_v<long double>.
constexpr Real kLongPi = 3.141592653589793238462643383279502884L;

// Computes I0(sqrt(y)) by its series; all terms are positive.
Real bessel_of_root(Real y) {
  Real term = 1, sum = 1;
  for (int k = 1; term > sum * std::numeric_limits<Real>::epsilon() / 4; ++k) {
    term *= y / (4.0L * k * k);
    sum += term;
  }
  return sum;
}

// Chebyshev coefficients of the polynomial in z in [-1, 1] that interpolates f in n Chebyshev
// nodes.
template <class F>
std::vector<Real> chebyshev_coefficients(F&& f, int n) {
  std::vector<Real> values;
  for (int i = 0; i < n; ++i) {
    values.push_back(f(std::cos(kLongPi * (i + 0.5L) / n)));
  }
  std::vector<Real> result;
  for (int q = 0; q < n; ++q) {
    Real sum = 0;
    for (int i = 0; i < n; ++i) {
      sum += values[static_cast<std::size_t>(i)] * std::cos(kLongPi * q * (i + 0.5L) / n);
    }
    result.push_back(sum * (q == 0 ? 1 : 2) / n);
  }
  return result;
}

// Converts the first n Chebyshev terms to powers of z.
std::vector<Real> powers(const std::vector<Real>& chebyshev, int n) {
  const auto size = static_cast<std::size_t>(n);
  std::vector<Real> result(size), before(size), present(size);
  before[0] = 1;
  if (n > 1) present[1] = 1;
  for (std::size_t q = 0; q < size; ++q) {
    const std::vector<Real>& polynomial = q == 0 ? before : present;
    for (std::size_t i = 0; i < size; ++i) result[i] += chebyshev[q] * polynomial[i];
    if (q == 0) continue;
    std::vector<Real> next(size);
    for (std::size_t i = 0; i < size; ++i) {
      next[i] = (i > 0 ? 2 * present[i - 1] : 0) - before[i];
    }
    before = std::exchange(present, std::move(next));
  }
  return result;
}

// The number of leading terms to keep: the sum of the others is below the tolerance.
int terms_needed(const std::vector<Real>& chebyshev, Real tolerance) {
  Real tail = 0;
  int n = static_cast<int>(chebyshev.size());
  while (n > 1) {
    tail += std::abs(chebyshev[static_cast<std::size_t>(n - 1)]);
    if (tail > tolerance) break;
    --n;
  }
  return n;
}

// The kernel at u in [-1, 1], without the factor of the axis.
Real kernel_at(const GriddingSpec& spec, std::size_t axis, Real u) {
  if (spec.kernel == GriddingKernel::spline) return 1 - std::abs(u);
  const Real b = spec.beta[axis];
  return bessel_of_root(b * b * (1 - u * u));
}

// Chebyshev coefficients of the kernel on each of the w intervals.
std::vector<std::vector<Real>> interval_fits(const GriddingSpec& spec, std::size_t axis) {
  std::vector<std::vector<Real>> result;
  const auto w = static_cast<int>(spec.width[axis]);
  for (int j = 0; j < w; ++j) {
    result.push_back(chebyshev_coefficients(
        [&](Real z) { return kernel_at(spec, axis, 2 * ((z + 1) / 2 + j) / w - 1); },
        kMaxGriddingDegree + 8));
  }
  return result;
}

// Fills the tables of one precision; false when the degree does not suffice.
template <class R>
bool fill(const GriddingSpec& spec, const std::array<std::vector<std::vector<Real>>, 3>& fits,
          TapPolynomials<R>& to) {
  int terms = 1;
  for (int d = 0; d < spec.ndim; ++d) {
    const auto i = static_cast<std::size_t>(d);
    const Real largest = kernel_at(spec, i, 0);
    for (const auto& fit : fits[i]) {
      terms = std::max(terms, terms_needed(fit, largest * std::numeric_limits<R>::epsilon() / 16));
    }
  }
  if (terms > kMaxGriddingDegree + 1) return false;
  to.degree = terms - 1;
  for (int d = 0; d < spec.ndim; ++d) {
    const bool inner = d == spec.ndim - 1;
    const auto i = static_cast<std::size_t>(d);
    for (std::size_t j = 0; j < fits[i].size(); ++j) {
      const std::vector<Real> c = powers(fits[i][j], terms);
      for (int q = 0; q < terms; ++q) {
        const Real scaled = c[static_cast<std::size_t>(q)] * spec.factor[i];
        if (inner) {
          to.inner[q][2 * j] = to.inner[q][2 * j + 1] = static_cast<R>(scaled);
        } else {
          to.outer[i][q][j] = static_cast<R>(scaled);
        }
      }
    }
  }
  return true;
}

// A linear spline is a polynomial on each interval if its tip lies on the border of two.
bool has_fast_kernel(const GriddingSpec& spec) {
  const double w = spec.width[0];
  const bool is_linear =
      spec.kernel == GriddingKernel::spline && spec.order == 1 && std::fmod(w, 2) == 0;
  bool fits = (spec.kernel == GriddingKernel::kaiser_bessel || is_linear) && spec.norm == 1 &&
              spec.circular && w >= 2 && w <= kLargestFastWidth && w == std::floor(w);
  for (int d = 1; d < spec.ndim; ++d) fits = fits && spec.width[static_cast<std::size_t>(d)] == w;
  return fits;
}

void check(const GriddingSpec& spec, std::string_view who) {
  const std::string prefix = "[" + std::string(who) + "] ";
  if (spec.ndim < 1 || spec.ndim > 3) {
    throw ValueError(prefix + "locs: got points of " + std::to_string(spec.ndim) +
                     " coordinates, expected 1, 2 or 3");
  }
  if (spec.norm != 1 && spec.norm != 2) {
    throw ValueError(prefix + "norm: got " + std::to_string(spec.norm) + ", expected 1 or 2");
  }
  if (spec.kernel == GriddingKernel::spline && (spec.order < 0 || spec.order > 2)) {
    throw ValueError(prefix + "kernel: got a spline of order " + std::to_string(spec.order) +
                     ", expected 0, 1 or 2");
  }
  for (std::size_t d = 0; d < static_cast<std::size_t>(spec.ndim); ++d) {
    if (!(spec.width[d] > 0 && spec.width[d] < 1e6)) {
      throw ValueError(prefix + "width: got " + fmt::format("{}", spec.width[d]) +
                       ", expected a positive number of grid units");
    }
    if (!(spec.beta[d] >= 0 && spec.beta[d] <= 700)) {
      throw ValueError(prefix + "kernel: got beta " + fmt::format("{}", spec.beta[d]) +
                       ", expected 0 .. 700");
    }
    if (spec.norm == 2 && spec.beta[d] != spec.beta[0]) {
      throw ValueError(prefix +
                       "kernel: got several betas for a radial one (norm 2), expected one");
    }
    if (spec.grid[d] < 1) {
      throw ValueError(prefix + "grid_size: got " + std::to_string(spec.grid[d]) +
                       ", expected at least 1");
    }
  }
}

void cut_into_tiles(GriddingPlan::Impl& plan) {
  // Tile sizes: the elements around a tile of the inner two or three axes fit a first or second
  // level cache. Cell sizes: the elements around a cell are close to each other in that cache.
  static constexpr index_t kSizes[3][3] = {{1024, 0, 0}, {32, 64, 0}, {16, 16, 32}};
  static constexpr index_t kCells[3][3] = {{64, 0, 0}, {8, 16, 0}, {4, 4, 8}};
  for (int d = 0; d < plan.spec.ndim; ++d) {
    const auto i = static_cast<std::size_t>(d);
    index_t reach = static_cast<index_t>(std::floor(plan.spec.width[i])) + 1;
    if (plan.fast && d == plan.spec.ndim - 1) reach = std::max(reach, kFastReach);
    index_t n = plan.spec.grid[i] / std::max(kSizes[plan.spec.ndim - 1][i], reach);
    if (n > 1) n -= n % 2;
    plan.tiles[i] = std::max<index_t>(n, 1);
    plan.cell_size[i] = kCells[plan.spec.ndim - 1][i];
    const index_t longest = (plan.spec.grid[i] + plan.tiles[i] - 1) / plan.tiles[i];
    plan.cells[i] = (longest + plan.cell_size[i] - 1) / plan.cell_size[i];
  }
}

std::shared_ptr<const GriddingPlan::Impl> made(const GriddingSpec& spec) {
  auto impl = std::make_shared<GriddingPlan::Impl>();
  impl->spec = spec;
  if (spec.kernel == GriddingKernel::kaiser_bessel) {
    for (int d = 0; d < (spec.norm == 1 ? spec.ndim : 1); ++d) {
      const auto i = static_cast<std::size_t>(d);
      const bool known = d > 0 && spec.beta[i] == spec.beta[i - 1];
      impl->radial[i] = known ? impl->radial[i - 1] : RadialTable(spec.beta[i]);
    }
  }
  if (has_fast_kernel(spec)) {
    std::array<std::vector<std::vector<Real>>, 3> fits;
    for (std::size_t i = 0; i < static_cast<std::size_t>(spec.ndim); ++i) {
      const bool known = i > 0 && spec.beta[i] == spec.beta[i - 1];
      fits[i] = known ? fits[i - 1] : interval_fits(spec, i);
    }
    const bool single = fill(spec, fits, impl->f32), both = fill(spec, fits, impl->f64) && single;
    impl->fast = both;
  }
  cut_into_tiles(*impl);
  return impl;
}

// The tables used last. Tables take 1 to 2 ms to make, and an operator that is cut into thousands
// of tiles shares them.
class Cache {
 public:
  std::shared_ptr<const GriddingPlan::Impl> find_or_make(const GriddingSpec& spec) {
    const std::lock_guard lock(mutex_);
    const auto found = std::find_if(kept_.begin(), kept_.end(),
                                    [&](const auto& impl) { return impl->spec == spec; });
    if (found == kept_.end()) {
      kept_.push_front(made(spec));
      if (kept_.size() > kMostKept) kept_.pop_back();
    } else {
      kept_.splice(kept_.begin(), kept_, found);
    }
    return kept_.front();
  }

 private:
  static constexpr std::size_t kMostKept = 16;  // about 25 KB each
  Mutex mutex_;
  std::list<std::shared_ptr<const GriddingPlan::Impl>> kept_;
};

}  // namespace

RadialTable::RadialTable(double beta) : pieces_(8 + static_cast<int>(beta)) {
  const Real b = beta;
  for (int piece = 0; piece < pieces_; ++piece) {
    const auto fit = chebyshev_coefficients(
        [&](Real z) { return bessel_of_root(b * b * (piece + (z + 1) / 2) / pieces_); }, kTerms);
    for (const Real c : powers(fit, kTerms)) coefficients_.push_back(static_cast<double>(c));
  }
}

GriddingPlan::GriddingPlan(const GriddingSpec& spec, std::string_view who) {
  check(spec, who);
  Cache& cache = immortal([] { return Cache(); });
  impl_ = cache.find_or_make(spec);
}

const GriddingSpec& GriddingPlan::spec() const { return impl_->spec; }
index_t GriddingPlan::tile_count() const { return impl_->tile_count(); }
std::size_t GriddingPlan::sort_scratch_bytes() const {
  return static_cast<std::size_t>(impl_->tile_count() * impl_->cell_count() + 1) * sizeof(index_t);
}

}  // namespace palimpsest
