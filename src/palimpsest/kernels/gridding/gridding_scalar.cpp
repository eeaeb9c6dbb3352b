// SPDX-License-Identifier: Apache-2.0
// Loops over points for any kernel, element by element.
#include <algorithm>
#include <complex>
#include <type_traits>

#include "palimpsest/kernels/arrays/real_of.hpp"
#include "palimpsest/kernels/gridding/gridding_tables.hpp"

namespace palimpsest {
namespace {

using Impl = GriddingPlan::Impl;

// The elements that a point reaches along one axis.
class AxisTaps {
 public:
  AxisTaps() = default;
  AxisTaps(const Impl& plan, int d, double position, index_t step)
      : plan_(&plan), d_(d), step_(step), n_(plan.spec.grid[static_cast<std::size_t>(d)]) {
    const double half = plan.spec.width[static_cast<std::size_t>(d)] * 0.5;
    double first = std::ceil(position - half), last = std::floor(position + half);
    if (!plan.spec.circular) {
      first = std::max(first, 0.0);
      last = std::min(last, static_cast<double>(n_ - 1));
    }
    if (!(last >= first)) {
      count_ = 0;
      return;
    }
    count_ = static_cast<index_t>(last - first) + 1;
    start_ = wrapped(first, n_);
    u_ = (first - position) / half;
    u_step_ = 1 / half;
    for (index_t j = 0; j < std::min(count_, kKept); ++j) {
      weights_[static_cast<std::size_t>(j)] = computed(j);
    }
  }

  index_t count() const { return count_; }
  double u(index_t j) const { return std::clamp(u_ + static_cast<double>(j) * u_step_, -1.0, 1.0); }
  double weight(index_t j) const {
    return j < kKept ? weights_[static_cast<std::size_t>(j)] : computed(j);
  }
  index_t offset(index_t j) const {
    const index_t i = start_ + j;
    return (i < n_ ? i : i % n_) * step_;
  }

 private:
  static constexpr index_t kKept = 24;
  double computed(index_t j) const {
    const double factor = plan_->spec.factor[static_cast<std::size_t>(d_)];
    return plan_->spec.norm == 1 ? factor * plan_->kernel_at(d_, u(j)) : factor;
  }

  const Impl* plan_ = nullptr;
  int d_ = 0;
  index_t step_ = 0, n_ = 1, count_ = 1, start_ = 0;
  double u_ = 0, u_step_ = 0;
  std::array<double, kKept> weights_{1};
};

// The taps of a point on three axes. Axes that the grid lacks come first and have one element.
template <class R>
class PointTaps {
 public:
  PointTaps(const PointRun& run, index_t k) : plan_(*run.plan) {
    const GriddingSpec& spec = plan_.spec;
    const R* loc = static_cast<const R*>(run.locs) + run.loc_offset(k);
    for (int d = 0; d < spec.ndim; ++d) {
      const auto i = static_cast<std::size_t>(d);
      const double position = loc[d * run.loc_step] * spec.scale[i] + spec.shift[i];
      taps_[static_cast<std::size_t>(d + 3 - spec.ndim)] =
          AxisTaps(plan_, d, position, run.grid_step[i]);
    }
  }

  // Calls visit(offset, weight) for every element, row by row in order, and end_row after each row.
  template <class Visit, class EndRow>
  void for_each(Visit&& visit, EndRow&& end_row) const {
    const bool radial = plan_.spec.norm == 2;
    const auto& [outer, middle, inner] = taps_;
    for (index_t a = 0; a < outer.count(); ++a) {
      for (index_t b = 0; b < middle.count(); ++b) {
        const index_t row = outer.offset(a) + middle.offset(b);
        const double weight = outer.weight(a) * middle.weight(b);
        const double rest = 1 - outer.u(a) * outer.u(a) - middle.u(b) * middle.u(b);
        for (index_t c = 0; c < inner.count(); ++c) {
          const double s = radial ? rest - inner.u(c) * inner.u(c) : 1;
          if (s < -kRounding) continue;
          const double kernel = radial ? plan_.kernel(0, std::max(s, 0.0)) : 1;
          visit(row + inner.offset(c), weight * inner.weight(c) * kernel);
        }
        end_row();
      }
    }
  }

 private:
  // Tolerance: a point at the distance of the radius belongs to the kernel, whatever the rounding
  // of the squares.
  static constexpr double kRounding = 1e-15;

  const Impl& plan_;
  std::array<AxisTaps, 3> taps_;
};

// Sums are formed in double precision for both precisions, row by row.
template <class T>
void interpolate_one(const PointRun& run, index_t k) {
  using R = typename RealOf<T>::type;
  using Wide = std::conditional_t<std::is_same_v<T, R>, double, std::complex<double>>;
  const T* grid = static_cast<const T*>(run.grid);
  Wide sum{}, row{};
  PointTaps<R>(run, k).for_each(
      [&](index_t offset, double weight) { row += weight * static_cast<Wide>(grid[offset]); },
      [&] {
        sum += row;
        row = {};
      });
  static_cast<T*>(run.values)[run.value_offset(k)] = static_cast<T>(sum);
}

template <class T>
void spread_one(const PointRun& run, index_t k) {
  using R = typename RealOf<T>::type;
  T* grid = static_cast<T*>(run.grid);
  const T value = static_cast<const T*>(run.values)[run.value_offset(k)];
  PointTaps<R>(run, k).for_each(
      [&](index_t offset, double weight) { grid[offset] += static_cast<R>(weight) * value; },
      [] {});
}

template <class T, void (*One)(const PointRun&, index_t)>
void loop(const PointRun& run) {
  for (index_t i = run.first; i < run.last; ++i) {
    const index_t k = run.order_at(i);
    if (k >= 0 && k < run.n_points) One(run, k);
  }
}

}  // namespace

PointLoops scalar_point_loops(DType dtype) {
  return visit_inexact(dtype, "gridding", [](auto tag) -> PointLoops {
    using T = typename decltype(tag)::type;
    return {loop<T, interpolate_one<T>>, loop<T, spread_one<T>>};
  });
}

void interpolate_point(const PointRun& run, DType dtype, index_t k) {
  dtype == DType::complex64 ? interpolate_one<std::complex<float>>(run, k)
                            : interpolate_one<std::complex<double>>(run, k);
}
void spread_point(const PointRun& run, DType dtype, index_t k) {
  dtype == DType::complex64 ? spread_one<std::complex<float>>(run, k)
                            : spread_one<std::complex<double>>(run, k);
}

}  // namespace palimpsest
