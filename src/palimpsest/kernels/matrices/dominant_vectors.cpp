// SPDX-License-Identifier: Apache-2.0
// Compiled once per instruction set. A group of points fills the lanes of a vector. Every lane does
// the same steps, so vector width affects a result only by when a group stops.
#include "palimpsest/kernels/matrices/dominant_vectors.hpp"

#include "palimpsest/copy/loop_targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "palimpsest/kernels/matrices/dominant_vectors.cpp"
#define HWY_DISABLED_TARGETS PALIMPSEST_NO_LOOPS_FOR
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace palimpsest {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using Floats = hn::CappedTag<float, kPointLanes>;
using Lanes = hn::Vec<Floats>;

// The arrays of one group, a vector of lanes for each element.
struct Group {
  Group(index_t n_, float* work, index_t lanes)
      : n(n_),
        g_re(work),
        g_im(g_re + n * (n + 1) / 2 * lanes),
        x_re(g_im + n * (n + 1) / 2 * lanes),
        x_im(x_re + n * lanes),
        y_re(x_im + n * lanes),
        y_im(y_re + n * lanes) {}
  index_t n;
  float *g_re, *g_im, *x_re, *x_im, *y_re, *y_im;
};

HWY_INLINE void evaluate(const MatrixPolynomial& p, index_t first, const Group& group) {
  const Floats d;
  const auto lanes = static_cast<index_t>(hn::Lanes(d));
  const index_t pairs = p.pairs();
  for (index_t e = 0; e < pairs; ++e) {
    Lanes re = hn::Set(d, p.re[e]), im = hn::Set(d, p.im[e]);
    for (index_t j = 1; j < p.k; ++j) {
      const Lanes c = hn::LoadU(d, p.cos + (j - 1) * p.points + first);
      const Lanes s = hn::LoadU(d, p.sin + (j - 1) * p.points + first);
      const index_t even = (2 * j - 1) * pairs + e, odd = even + pairs;
      re = hn::MulAdd(hn::Set(d, p.re[even]), c, hn::MulAdd(hn::Set(d, p.re[odd]), s, re));
      im = hn::MulAdd(hn::Set(d, p.im[even]), c, hn::MulAdd(hn::Set(d, p.im[odd]), s, im));
    }
    hn::StoreU(re, d, group.g_re + e * lanes);
    hn::StoreU(im, d, group.g_im + e * lanes);
  }
}

// y = G x
HWY_INLINE void multiply(const Group& g) {
  const Floats d;
  const auto lanes = static_cast<index_t>(hn::Lanes(d));
  for (index_t a = 0; a < g.n; ++a) {
    Lanes re = hn::Zero(d), im = hn::Zero(d);
    for (index_t b = 0; b <= a; ++b) {
      const index_t e = (a * (a + 1) / 2 + b) * lanes;
      const Lanes gr = hn::LoadU(d, g.g_re + e), gi = hn::LoadU(d, g.g_im + e);
      const Lanes xr = hn::LoadU(d, g.x_re + b * lanes), xi = hn::LoadU(d, g.x_im + b * lanes);
      re = hn::NegMulAdd(gi, xi, hn::MulAdd(gr, xr, re));
      im = hn::MulAdd(gi, xr, hn::MulAdd(gr, xi, im));
    }
    for (index_t b = a + 1; b < g.n; ++b) {
      const index_t e = (b * (b + 1) / 2 + a) * lanes;
      const Lanes gr = hn::LoadU(d, g.g_re + e), gi = hn::LoadU(d, g.g_im + e);
      const Lanes xr = hn::LoadU(d, g.x_re + b * lanes), xi = hn::LoadU(d, g.x_im + b * lanes);
      re = hn::MulAdd(gi, xi, hn::MulAdd(gr, xr, re));
      im = hn::NegMulAdd(gi, xr, hn::MulAdd(gr, xi, im));
    }
    hn::StoreU(re, d, g.y_re + a * lanes);
    hn::StoreU(im, d, g.y_im + a * lanes);
  }
}

struct Step {
  Lanes value, residual2;
};
// The Rayleigh quotient and the squared residual of x for y = G x, |x| = 1. Then x = y / |y|,
// unless y is 0.
HWY_INLINE Step advance(const Group& g) {
  const Floats d;
  const auto lanes = static_cast<index_t>(hn::Lanes(d));
  Lanes value = hn::Zero(d), norm2 = hn::Zero(d), residual2 = hn::Zero(d);
  for (index_t a = 0; a < g.n; ++a) {
    const Lanes xr = hn::LoadU(d, g.x_re + a * lanes), xi = hn::LoadU(d, g.x_im + a * lanes);
    const Lanes yr = hn::LoadU(d, g.y_re + a * lanes), yi = hn::LoadU(d, g.y_im + a * lanes);
    value = hn::MulAdd(xr, yr, hn::MulAdd(xi, yi, value));
    norm2 = hn::MulAdd(yr, yr, hn::MulAdd(yi, yi, norm2));
  }
  const auto is_zero = hn::Eq(norm2, hn::Zero(d));
  const Lanes scale = hn::IfThenZeroElse(
      is_zero,
      hn::Div(hn::Set(d, 1.0F), hn::Sqrt(hn::IfThenElse(is_zero, hn::Set(d, 1.0F), norm2))));
  for (index_t a = 0; a < g.n; ++a) {
    const Lanes xr = hn::LoadU(d, g.x_re + a * lanes), xi = hn::LoadU(d, g.x_im + a * lanes);
    const Lanes yr = hn::LoadU(d, g.y_re + a * lanes), yi = hn::LoadU(d, g.y_im + a * lanes);
    const Lanes dr = hn::NegMulAdd(value, xr, yr), di = hn::NegMulAdd(value, xi, yi);
    residual2 = hn::MulAdd(dr, dr, hn::MulAdd(di, di, residual2));
    hn::StoreU(hn::IfThenElse(is_zero, xr, hn::Mul(yr, scale)), d, g.x_re + a * lanes);
    hn::StoreU(hn::IfThenElse(is_zero, xi, hn::Mul(yi, scale)), d, g.x_im + a * lanes);
  }
  return {value, residual2};
}

struct Element {
  Lanes re, im;
};
HWY_INLINE Element element(const Group& g, index_t a, index_t b) {
  const Floats d;
  const index_t row = a < b ? b : a, column = a < b ? a : b;
  const index_t e = (row * (row + 1) / 2 + column) * static_cast<index_t>(hn::Lanes(d));
  const Lanes im = hn::LoadU(d, g.g_im + e);
  return {hn::LoadU(d, g.g_re + e), a < b ? hn::Neg(im) : im};
}

// |G G|^2
HWY_INLINE Lanes sum_of_fourth_powers(const Group& g) {
  const Floats d;
  Lanes sum = hn::Zero(d);
  for (index_t a = 0; a < g.n; ++a) {
    for (index_t b = 0; b <= a; ++b) {
      Lanes re = hn::Zero(d), im = hn::Zero(d);
      for (index_t c = 0; c < g.n; ++c) {
        const Element x = element(g, a, c), y = element(g, c, b);
        re = hn::NegMulAdd(x.im, y.im, hn::MulAdd(x.re, y.re, re));
        im = hn::MulAdd(x.im, y.re, hn::MulAdd(x.re, y.im, im));
      }
      const Lanes square = hn::MulAdd(re, re, hn::Mul(im, im));
      sum = hn::Add(sum, a == b ? square : hn::Add(square, square));
    }
  }
  return sum;
}

void vectors(const MatrixPolynomial& p, const DominantVectors& s, int steps, float tolerance,
             float* work) {
  const Floats d;
  const auto lanes = static_cast<index_t>(hn::Lanes(d));
  const Group g(p.n, work, lanes);
  for (index_t first = 0; first < p.points; first += lanes) {
    evaluate(p, first, g);
    for (index_t a = 0; a < p.n; ++a) {
      hn::StoreU(hn::LoadU(d, s.re + a * p.points + first), d, g.x_re + a * lanes);
      hn::StoreU(hn::LoadU(d, s.im + a * p.points + first), d, g.x_im + a * lanes);
    }
    const Lanes limit = hn::Set(d, tolerance * tolerance);
    Step step{hn::Zero(d), hn::Zero(d)};
    for (int i = 0; i < steps; ++i) {
      multiply(g);
      step = advance(g);
      if (hn::AllTrue(d, hn::Le(step.residual2, limit))) break;
    }
    for (index_t a = 0; a < p.n; ++a) {
      hn::StoreU(hn::LoadU(d, g.x_re + a * lanes), d, s.re + a * p.points + first);
      hn::StoreU(hn::LoadU(d, g.x_im + a * lanes), d, s.im + a * p.points + first);
    }
    hn::StoreU(step.value, d, s.values + first);
    hn::StoreU(hn::Sqrt(step.residual2), d, s.residuals + first);
    if (s.fourth_powers) hn::StoreU(sum_of_fourth_powers(g), d, s.fourth_powers + first);
  }
}

}  // namespace

index_t lanes_of_points() { return static_cast<index_t>(hn::Lanes(Floats())); }
void power_steps(const MatrixPolynomial& p, const DominantVectors& s, int steps, float tolerance,
                 float* work) {
  vectors(p, s, steps, tolerance, work);
}

}  // namespace HWY_NAMESPACE
}  // namespace palimpsest
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace palimpsest {

HWY_EXPORT(lanes_of_points);
HWY_EXPORT(power_steps);

void dominant_vectors(const MatrixPolynomial& g, const DominantVectors& s, int steps,
                      float tolerance, float* work) {
  HWY_DYNAMIC_DISPATCH(power_steps)(g, s, steps, tolerance, work);
}

index_t dominant_vectors_work(index_t n) {
  return (n * (n + 1) + 4 * n) * HWY_DYNAMIC_DISPATCH(lanes_of_points)();
}

}  // namespace palimpsest
#endif
