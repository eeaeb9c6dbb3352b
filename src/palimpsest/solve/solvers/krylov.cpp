// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/solve/solvers/krylov.hpp"

#include "palimpsest/named/matching.hpp"
#include "palimpsest/solve/frame/prelude.hpp"
#include "palimpsest/solve/solvers/dual_steps.hpp"

namespace palimpsest::krylov {
namespace {

// An imaginary part of <p, A p> up to this multiple of the real part counts as rounding. Not a few
// units: along directions that A almost removes, both parts are small differences.
double imaginary_bound(DType dtype) { return 30 * std::sqrt(rounding_of(dtype)); }

// `"Ny Nx"`, as a user writes it.
std::string quoted(const Dims& dims) {
  std::string text;
  for (const ND& d : dims) text += (text.empty() ? "" : " ") + d.str();
  return '"' + text + '"';
}

Variable zero_of(DType dtype) { return constant(Tensor::zeros({}, dtype)); }

}  // namespace

void check_square(const Problem& p, std::string_view solver) {
  const auto fail = [&](const NamedLinop& linop, const Dims& got, const Dims& expected,
                        const std::string& advice = "") {
    throw ShapeError("[" + std::string(solver) + "] Mismatched shape of " + linop.name() +
                     ": got " + got.str() + ", expected " + expected.str() + advice);
  };
  const NamedLinop& A = p.op("A");
  if (!isequal(A.ishape(), A.oshape())) {
    fail(A, A.oshape(), A.ishape(),
         ". Try its normal operator; where it is square, ShapeSpec(" + quoted(A.oshape()) + ", " +
             quoted(A.ishape()) + ") * A, or a Dense without names");
  }
  if (!p.has_op("M")) return;
  const NamedLinop& M = p.op("M");
  if (!isequal(M.ishape(), A.oshape())) fail(M, M.ishape(), A.oshape());
  if (!isequal(M.oshape(), A.ishape())) fail(M, M.oshape(), A.ishape());
}

Variable value_if(const Variable& condition, const Variable& value) {
  return ops::where(condition, value, zero_of(value.dtype()));
}

Variable ratio(const Variable& a, const Variable& b) {
  return value_if(ops::ne(b, zero_of(b.dtype())), a / b);
}

Variable is_positive(const Variable& pq) {
  const Variable re = ops::real(pq);
  const Variable condition = ops::logical_and(ops::gt(re, zero_of(re.dtype())), ops::isfinite(pq));
  if (!is_complex(pq.dtype())) return condition;
  const Variable size = ops::abs(ops::imag(pq)), bound = re * imaginary_bound(pq.dtype());
  return ops::logical_and(condition, ops::le(size, bound));
}

bool is_positive(double re, double im, DType dtype) {
  return re > 0 && std::abs(im) <= imaginary_bound(dtype) * re;
}

void complex_number(Scope& s, std::string_view name, const Variable& z) {
  s.number(name, ops::real(z));
  if (is_complex(z.dtype())) s.number(std::string(name) + ".im", ops::imag(z));
}

Variable set_with_norm(const Space& space, Scope& s, std::string_view name, const Variable& value,
                       std::vector<Variable> leaves) {
  const Variable guarded = s.guarded(space, value, s[name]);
  leaves.push_back(s[name]);
  const ops::Pass made = proximal::one_pass(space, {guarded}, {guarded}, leaves);
  s.set_as_is(name, made.arrays[0]);
  return made.norms[0];
}

double norm_of_b(const Problem& p, const Numbers& n) {
  return p.batch().empty() ? n.norm_b() : std::sqrt(n["bb"]);
}

double relative_residual(const Problem& p, const Numbers& n, double rr) {
  return rr == 0 ? 0 : std::sqrt(rr) / norm_of_b(p, n);
}

}  // namespace palimpsest::krylov
