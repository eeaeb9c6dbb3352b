// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/solve/solvers/bidiagonal.hpp"

#include <cmath>

#include "palimpsest/solve/frame/options.hpp"

namespace palimpsest::bidiagonal {

using namespace krylov;

Rotation rotation(const Variable& a, const Variable& b) {
  const Variable r = ops::hypot(a, b), is_zero = ops::eq(r, 0.0);
  const Variable one = ops::full_like(r, 1.0), safe = ops::where(is_zero, one, r);
  return {ops::where(is_zero, one, a / safe), b / safe, r};
}

Variable number(const Problem& p, double value) {
  Tensor t = Tensor::empty({}, p.x().number_type().dtype);
  t.fill(value);
  return constant(t);
}

void declare(const Problem& p, StateList& state) {
  state.add("u", p.b(), Init::b());
  state.add("v", p.x());
  state.add("alpha", p.numbers());
}

Start start(const Problem& p, Scope& s) {
  const Space &X = p.x(), &B = p.b();
  const Variable bb = B.norm2(s["u"]);
  const Variable u = p.has_x0() ? s["u"] - s.apply("A", s["x"]) : s["u"];
  const Variable beta = p.has_x0() ? ops::sqrt(B.norm2(u)) : ops::sqrt(bb);
  const Variable unit = u * B.spread(value_if(ops::gt(beta, 0.0), ops::reciprocal(beta)));
  const Variable image = s.adjoint("A", unit).astype(X.type().dtype);
  const Variable alpha = ops::sqrt(X.norm2(image));
  const Variable v = image * X.spread(value_if(ops::gt(alpha, 0.0), ops::reciprocal(alpha)));
  s.set("u", unit);
  s.set("v", v);
  s.set("alpha", alpha);
  s.number("bb", bb);
  s.number("start.rnorm", beta);
  s.number("start.normal", alpha * beta);
  if (p.has_x0()) s.number("start.xnorm", ops::sqrt(X.norm2(s["x"])));
  return {v, alpha, beta};
}

Lengths advance(const Problem& p, Scope& s) {
  const Space &X = p.x(), &B = p.b();
  const Variable image = s.apply("A", s["v"]);
  const Variable u = ops::fma(B.spread(-s["alpha"]), s["u"], image);
  const Variable beta = ops::sqrt(B.norm2(u));
  s.guard(beta);
  const Variable unit = u * B.spread(value_if(ops::gt(beta, 0.0), ops::reciprocal(beta)));
  const Variable back = s.adjoint("A", unit).astype(X.type().dtype);
  const Variable w = ops::fma(X.spread(-beta), s["v"], back);
  const Variable alpha = ops::sqrt(X.norm2(w));
  s.guard(alpha);
  const Variable v = w * X.spread(value_if(ops::gt(alpha, 0.0), ops::reciprocal(alpha)));
  s.set("u", unit);
  s.set("v", v);
  s.set("alpha", alpha);
  return {v, alpha, beta, w};
}

namespace {

Verdict judged(const Problem& p, const Numbers& n, double rnorm, double arnorm, double xnorm) {
  const double norm_b = norm_of_b(p, n);
  const double anorm = n["anorm"], acond = n["acond"];
  const double atol = p.real("atol", 0), btol = p.real("btol", 0), conlim = p.real("conlim", 0);
  const double residual = rnorm / norm_b, scaled = anorm * xnorm / norm_b;
  const double normal = rnorm == 0 || anorm == 0 ? 0 : arnorm / (anorm * rnorm);
  double reason = 0;
  // Beyond rounding no test says anything: sums with 1 tell.
  if (conlim > 0 && (acond >= conlim || 1 + 1 / acond <= 1)) reason = 3;
  if (normal <= atol || 1 + normal <= 1) reason = 2;
  if (residual <= btol + atol * scaled || 1 + residual / (1 + scaled) <= 1) reason = 1;
  Verdict verdict{.residual = std::nan(""), .objective = 0.5 * rnorm * rnorm};
  verdict.is_converged = reason != 0;
  verdict.numbers = {reason, anorm, acond, arnorm};
  verdict.reported = residual;
  return verdict;
}

}  // namespace

Verdict judge(const Problem& p, const Numbers& n) {
  return judged(p, n, n["rnorm"], n["arnorm"], n["xnorm"]);
}

Verdict judge_start(const Problem& p, const Numbers& n) {
  const double rnorm = n["start.rnorm"], arnorm = n["start.normal"];
  if (n.iteration() > 0) return judged(p, n, rnorm, arnorm, n["start.xnorm"]);
  return {.reported = rnorm == 0 ? 0 : rnorm / norm_of_b(p, n), .is_converged = arnorm == 0};
}

void check_damped(const Problem& p, std::string_view solver) {
  for (const char* name : {"damp", "atol", "btol", "conlim"}) {
    expect_not_negative(p, solver, name);
  }
}

Variable result(const Problem& p, Scope& s) {
  if (!p.has_op("M")) return {};
  const Variable x = p.op("M")(s["x"]), is_finite = ops::isfinite(p.x().norm2(x));
  return ops::where(p.x().spread(is_finite), x, ops::zeros_like(x));
}

}  // namespace palimpsest::bidiagonal
