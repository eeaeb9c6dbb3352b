// SPDX-License-Identifier: Apache-2.0
#include <numbers>

#include "palimpsest/linop/core/node.hpp"
#include "palimpsest/linop/operators/identity.hpp"
#include "palimpsest/named/matching.hpp"
#include "palimpsest/solve/frame/prelude.hpp"
#include "palimpsest/solve/preconditioner.hpp"

namespace palimpsest {
namespace {

constexpr const char* kWho = "[polynomial_preconditioner] ";
constexpr int kLargestDegree = 1000;

// The sum of c_j ((x - center) / half)^j.
struct Polynomial {
  double center = 0, half = 1;
  std::vector<double> c = {};

  double operator()(double x) const {
    const double t = (x - center) / half;
    double sum = 0;
    for (std::size_t j = c.size(); j-- > 0;) sum = sum * t + c[j];
    return sum;
  }
};

// Coefficients, in powers of t, of Legendre's or Chebyshev's polynomials of degree 0 .. n.
std::vector<std::vector<double>> orthogonal_polynomials(std::size_t n, bool is_legendre) {
  std::vector<std::vector<double>> list{{1.0}, {0.0, 1.0}};
  for (std::size_t k = 1; k < n; ++k) {
    const auto at = static_cast<double>(k);
    const double up = is_legendre ? (2 * at + 1) / (at + 1) : 2;
    const double back = is_legendre ? at / (at + 1) : 1;
    std::vector<double> next(k + 2, 0.0);
    for (std::size_t j = 0; j <= k; ++j) next[j + 1] = up * list[k][j];
    for (std::size_t j = 0; j < k; ++j) next[j] -= back * list[k - 1][j];
    list.push_back(std::move(next));
  }
  return list;
}

double value_at(const std::vector<double>& c, double t) { return Polynomial{0, 1, c}(t); }

// The polynomial r = 1 - x p in powers of t, with r = 1 at `origin`, where x is 0. The one of least
// integral of r^2 is the reproducing kernel of the orthogonal polynomials there. The one of least
// maximum is a single orthogonal polynomial.
std::vector<double> residual_polynomial(std::size_t n, double origin, PolynomialNorm norm) {
  const bool is_l2 = norm == PolynomialNorm::l2;
  const auto basis = orthogonal_polynomials(n, is_l2);
  std::vector<double> r(n + 1, 0.0);
  double at_origin = 0;
  for (std::size_t k = is_l2 ? 0 : n; k <= n; ++k) {
    const double value = value_at(basis[k], origin);
    const double weight = is_l2 ? (2 * static_cast<double>(k) + 1) * value : 1;
    for (std::size_t j = 0; j <= k; ++j) r[j] += weight * basis[k][j];
    at_origin += weight * value;
  }
  for (double& coefficient : r) coefficient /= at_origin;
  return r;
}

// (1 - r) / (t - origin), from the end at which rounding is not multiplied.
std::vector<double> quotient(const std::vector<double>& r, double origin) {
  const std::size_t n = r.size() - 1;
  std::vector<double> q(n, 0.0);
  double carried = 0;
  for (std::size_t k = 0; std::abs(origin) >= 1 && k < n; ++k) {
    const double a = k == 0 ? 1 - r[0] : -r[k];
    carried = q[k] = (carried - a) / origin;
  }
  for (std::size_t k = n; std::abs(origin) < 1 && k > 0; --k) {
    carried = q[k - 1] = -r[k] + origin * carried;
  }
  return q;
}

void check_polynomial(const PolynomialOptions& o) {
  if (o.norm > PolynomialNorm::ifista) {
    throw ValueError(kWho + std::string("norm: got ") + std::to_string(static_cast<int>(o.norm)) +
                     ", expected l2, linf or ifista");
  }
  const bool is_interval = o.lower < o.upper && std::isfinite(o.lower) && std::isfinite(o.upper);
  if (is_interval && (o.norm != PolynomialNorm::linf || o.lower > 0)) return;
  throw ValueError(kWho + std::string("lower: got bounds ") + Attribute(o.lower).str() + " and " +
                   Attribute(o.upper).str() + ", expected " +
                   (o.norm == PolynomialNorm::linf ? "0 < lower < upper" : "lower < upper"));
}

// Looks at p in more points than it can bend between.
void check_values(const Polynomial& p, int degree, const PolynomialOptions& o) {
  const int n = 64 * (degree + 1);
  double least = std::numeric_limits<double>::infinity(), where = 0, largest = 0;
  for (int i = 0; i <= n; ++i) {
    const double turn = std::cos(std::numbers::pi * i / n);
    const double x = (o.lower + o.upper) / 2 + (o.upper - o.lower) / 2 * turn, value = p(x);
    if (!(value >= least)) least = value, where = x;
    largest = std::max(largest, std::abs(value));
  }
  const double reach =
      std::max(std::abs(o.lower - p.center), std::abs(o.upper - p.center)) / p.half;
  double terms = 0, power = 1;
  for (const double c : p.c) terms += std::abs(c) * power, power *= reach;
  if (!(terms * std::numeric_limits<double>::epsilon() < 1e-6 * largest)) {
    throw ValueError(kWho + std::string("degree: got ") + std::to_string(degree) +
                     ", expected less: rounding would exceed the polynomial");
  }
  if (least > 0) return;
  throw ValueError(kWho + std::string("degree: got ") + std::to_string(degree) + " on " +
                   Attribute(o.lower).str() + " to " + Attribute(o.upper).str() +
                   ", expected a polynomial that is positive there: it is " +
                   Attribute(least).str() + " at " + Attribute(where).str());
}

// 1 - x p = (1 - x)^(d + 1), so p is the sum of (1 - x)^j: powers of x - 1 with alternating signs.
Polynomial ifista(int degree) {
  Polynomial p{.center = 1};
  for (int j = 0; j <= degree; ++j) p.c.push_back(j % 2 == 0 ? 1 : -1);
  return p;
}

Polynomial polynomial(int degree, const PolynomialOptions& o) {
  check_polynomial(o);
  if (degree > kLargestDegree) {
    throw ValueError(kWho + std::string("degree: got ") + std::to_string(degree) +
                     ", expected at most " + std::to_string(kLargestDegree));
  }
  Polynomial p{.center = (o.lower + o.upper) / 2, .half = (o.upper - o.lower) / 2};
  if (o.norm == PolynomialNorm::ifista) {
    p = ifista(degree);
  } else {
    const double origin = -p.center / p.half;
    const auto n = static_cast<std::size_t>(degree) + 1;
    p.c = quotient(residual_polynomial(n, origin, o.norm), origin);
    for (double& c : p.c) c /= p.half;
  }
  check_values(p, degree, o);
  return p;
}

}  // namespace

std::vector<double> polynomial_coefficients(int degree, const PolynomialOptions& options) {
  if (degree < 0) return {1.0};
  const Polynomial p = polynomial(degree, options);
  // Horner's rule on polynomials: times (x - center) / half, plus the next.
  std::vector<double> sum{p.c.back()};
  for (std::size_t j = p.c.size() - 1; j-- > 0;) {
    std::vector<double> next(sum.size() + 1, 0.0);
    for (std::size_t k = 0; k < sum.size(); ++k) {
      next[k + 1] += sum[k] / p.half;
      next[k] -= sum[k] * p.center / p.half;
    }
    next[0] += p.c[j];
    sum = std::move(next);
  }
  return sum;
}

NamedLinop polynomial_preconditioner(const NamedLinop& T, int degree,
                                     const PolynomialOptions& options) {
  if (!isequal(T.ishape(), T.oshape())) {
    throw ShapeError(kWho + std::string("Mismatched shape of ") + T.name() + ": got " +
                     T.shape().str() + ", expected two equal shapes");
  }
  const NamedLinop one = Identity(T.ishape());
  if (degree < 0) return one;
  const Polynomial p = polynomial(degree, options);
  NamedLinop sum = p.c.back() * one;
  if (degree == 0) return sum;
  const NamedLinop shifted = (1 / p.half) * T - (p.center / p.half) * one;
  for (std::size_t j = p.c.size() - 1; j-- > 0;) sum = p.c[j] * one + shifted * sum;
  return sum;
}

}  // namespace palimpsest
