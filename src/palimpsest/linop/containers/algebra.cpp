// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <iterator>

#include "palimpsest/linop/containers/add.hpp"
#include "palimpsest/linop/containers/chain.hpp"
#include "palimpsest/linop/core/number_product.hpp"
#include "palimpsest/linop/core/prelude.hpp"
#include "palimpsest/linop/operators/diagonal_factors.hpp"
#include "palimpsest/linop/operators/identity.hpp"
#include "palimpsest/linop/operators/scalar.hpp"
#include "palimpsest/named/matching.hpp"

namespace palimpsest {
namespace {

bool is_type(const NamedLinop& A, const LinopType& type) { return &A.type() == &type; }

bool is_number(const NamedLinop& A) {
  return is_type(A, linop_types::scalar()) && A.has_attr("alpha");
}

// The number that a Scalar multiplies by.
std::complex<double> factor_of(const NamedLinop& A) {
  const std::complex<double> alpha = A.attr("alpha").as_complex();
  return A.is_flipped() ? std::conj(alpha) : alpha;
}

// A number next to an operator: it joins a number that is there already.
NamedLinop scaled(const NamedLinop& A, std::complex<double> s, bool output) {
  std::vector<NamedLinop> parts = flatten(A);
  NamedLinop& neighbour = output ? parts.back() : parts.front();
  const auto both = is_number(neighbour) ? product_of_numbers(s, factor_of(neighbour))
                                         : std::optional<std::complex<double>>();
  if (both) {
    neighbour = with_records_of(neighbour, Scalar(*both, neighbour.ishape()));
  } else if (is_type(neighbour, linop_types::identity())) {
    neighbour = with_records_of(neighbour, Scalar(s, neighbour.ishape()));
  } else if (output) {
    parts.push_back(Scalar(s, A.oshape()));
  } else {
    parts.insert(parts.begin(), Scalar(s, A.ishape()));
  }
  return parts.size() == 1 ? parts[0] : Chain(std::move(parts));
}

NamedLinop elementwise_power(const NamedLinop& A, double n) {
  if (is_number(A)) {
    const std::complex<double> z = factor_of(A);
    if (z == 0.0 && n < 0) throw ValueError(who(A) + "pow: division by zero");
    // The power of a complex number with a negative real part would have rounding errors.
    const bool is_real = z.imag() == 0 && (z.real() >= 0 || n == std::floor(n));
    const std::complex<double> power = is_real ? std::pow(z.real(), n) : std::pow(z, n);
    return with_records_of(A, Scalar(power, A.ishape()));
  }
  DiagonalParts parts{NamedShape(A.ishape()), diagonal_factors(A), A.attr("adapts").as_bool()};
  char digits[32];
  const std::string exponent(digits, std::to_chars(digits, std::end(digits), n).ptr);
  for (DiagonalFactor& factor : parts.factors) {
    factor.form += (factor.form.empty() ? "pow " : " pow ") + exponent;
  }
  const NamedLinop made = make_diagonal(std::move(parts));
  return A.is_flipped() ? made.H() : made;
}

}  // namespace

// A chain may be very deep.
std::vector<NamedLinop> flatten(const NamedLinop& A) {
  std::vector<NamedLinop> result;
  std::vector<const NamedLinop*> open{&A};
  while (!open.empty()) {
    const NamedLinop& next = *open.back();
    open.pop_back();
    if (!is_type(next, linop_types::chain())) {
      result.push_back(next);
      continue;
    }
    const auto& children = next.linops();
    for (auto child = children.rbegin(); child != children.rend(); ++child) open.push_back(&*child);
  }
  return result;
}

NamedLinop NamedLinop::compose(const NamedLinop& B) const {
  std::vector<NamedLinop> parts = flatten(B);
  for (NamedLinop& part : flatten(*this)) parts.push_back(std::move(part));
  return Chain(std::move(parts));
}

NamedLinop operator*(const NamedLinop& A, const NamedLinop& B) { return A.compose(B); }
NamedLinop operator+(const NamedLinop& A, const NamedLinop& B) { return Add(A, B); }
NamedLinop operator-(const NamedLinop& A, const NamedLinop& B) { return Add(A, -B); }
NamedLinop operator-(const NamedLinop& A) { return scaled(A, -1.0, true); }

NamedLinop operator*(const LinopScalar& s, const NamedLinop& A) { return scaled(A, s.value, true); }
NamedLinop operator*(const Parameter& s, const NamedLinop& A) {
  return Scalar(s, A.oshape()).compose(A);
}
NamedLinop operator*(const NamedLinop& A, const LinopScalar& s) {
  return scaled(A, s.value, false);
}
NamedLinop operator*(const NamedLinop& A, const Parameter& s) {
  return A.compose(Scalar(s, A.ishape()));
}

NamedLinop operator/(const NamedLinop& A, const LinopScalar& s) {
  if (s.value == 0.0) throw ValueError(who(A) + "division by zero");
  return scaled(A, 1.0 / s.value, true);
}

NamedLinop operator/(const NamedLinop& A, const Parameter& s) {
  Scalar(s, A.oshape());  // throws the error about s
  if (s.value().to(DType::complex128).item<std::complex<double>>() == 0.0) {
    throw ValueError(who(A) + "division by zero");
  }
  const Variable inverse = 1.0 / s.var();
  return Parameter::derived(inverse).as_trainable(s.is_trainable()) * A;
}

Tensor operator*(const NamedLinop& A, const Tensor& x) { return A(x); }
Variable operator*(const NamedLinop& A, const Variable& x) { return A(x); }

NamedLinop pow(const NamedLinop& A, int n) {
  const bool is_elementwise =
      is_number(A) || is_type(A, linop_types::identity()) || is_type(A, linop_types::diagonal());
  if (n < 0 && is_elementwise) return pow(A, static_cast<double>(n));
  if (n < 0) {
    throw ValueError(who(A) + "pow: got " + std::to_string(n) + ", expected none negative");
  }
  if (!isequal(A.ishape(), A.oshape())) {
    throw ShapeError(who(A) + "pow: Mismatched shape: got " + A.shape().str() +
                     ", expected two equal shapes");
  }
  if (n == 0) return with_records_of(A, Identity(A.ishape()));
  if (n == 1 || is_type(A, linop_types::identity())) return A;
  if (is_number(A)) return elementwise_power(A, n);
  NamedLinop result = A;
  for (int k = 1; k < n; ++k) result = A.compose(result);
  return result;
}

NamedLinop pow(const NamedLinop& A, double n) {
  if (is_type(A, linop_types::identity())) return A;
  if (is_number(A) || is_type(A, linop_types::diagonal())) return elementwise_power(A, n);
  if (n == std::floor(n) && std::abs(n) < 1e6) return pow(A, static_cast<int>(n));
  throw ValueError(who(A) + "pow: got " + fmt::format("{}", n) +
                   ", expected a whole number for this type");
}

}  // namespace palimpsest
