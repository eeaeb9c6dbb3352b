// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/solve/solvers/proximal.hpp"

#include <cmath>
#include <limits>
#include <string>

#include "palimpsest/base/error.hpp"
#include "palimpsest/ops/ops.hpp"
#include "palimpsest/solve/spectrum.hpp"

namespace palimpsest::proximal {

NamedLinop normal_of(const Problem& p) {
  if (p.has_op("N")) return p.op("N");
  return p.has_op("W") ? p.op("A").normal(p.op("W")) : p.op("A").N();
}

Variable applied_normal(const Problem& p, Scope& s, const Variable& v) {
  if (p.has_op("N")) return s.apply("N", v);
  const Variable image = s.apply("A", v);
  return s.adjoint("A", p.has_op("W") ? s.apply("W", image) : image);
}

void declare_rhs(const Problem& p, StateList& state) { state.add("rhs", p.x()); }

void set_up_rhs(const Problem& p, Scope& s) {
  const Variable b = s.b();
  Variable rhs = s.adjoint("A", p.has_op("W") ? s.apply("W", b) : b);
  for (index_t j = 0; p.has_op("L" + std::to_string(j)); ++j) {
    const std::string name = std::to_string(j);
    const Variable c = constant(p.attr("c" + name).as_tensor());
    rhs = rhs + s.adjoint("L" + name, c) * p.attr("lambda" + name).as_real();
  }
  rhs = rhs.astype(p.x().type().dtype);
  s.set("rhs", rhs);
  s.number("rhs", p.x().norm2(rhs));
  if (p.flag("objective")) s.number("bb", p.b().norm2(b));
}

Variable gradient(const Problem& p, Scope& s, const Variable& v) {
  return applied_normal(p, s, v) - s["rhs"];
}

Preparation lipschitz(const Problem& p, std::uint64_t seed) {
  if (p.has_attr("L")) return {{{"L", p.attr("L").as_real()}}, 0};
  const NamedLinop N = normal_of(p);
  const bool is_plain = N.is(p.op("A").N());
  const OperatorNorm norm = is_plain ? operator_norm2(p.op("A"), p.x().type(), seed)
                                     : largest_eigenvalue(N, p.x().type(), seed);
  // Where A is 0 any step will do.
  return {{{"L", norm.value == 0 ? 1 : norm.value}}, norm.applications};
}

index_t lipschitz_bytes(const Problem& p) {
  if (p.has_attr("L")) return 0;
  const NamedLinop N = normal_of(p);
  const bool is_plain = N.is(p.op("A").N());
  return is_plain ? operator_norm2_bytes(p.op("A"), p.x().type()) : lanczos_bytes(N, p.x().type());
}

void check_lipschitz(const Problem& p, std::string_view solver) {
  const double L = p.real("L", 1);
  if (L > 0 && std::isfinite(L)) return;
  throw ValueError("[" + std::string(solver) + "] L: got " + p.attr("L").str() +
                   ", expected a positive number");
}

void change_numbers(const Problem& p, Scope& s, const Variable& before, const Variable& after) {
  s.number("change", p.x().norm2(after - before));
  s.number("size", p.x().norm2(after));
}

Verdict judge_change(const Problem&, const Numbers& n) {
  const double change = std::sqrt(n["change"]), size = std::sqrt(n["size"]);
  Verdict verdict;
  verdict.change = change;
  verdict.residual = change == 0 ? 0 : size > 0 ? change / size : 1;
  if (n.has("objective")) verdict.objective = n["objective"];
  return verdict;
}

void objective_number(const Problem& p, Scope& s, const Variable& x) {
  if (!p.flag("objective")) return;
  const Space& X = p.x();
  Variable value = X.real_dot(x, applied_normal(p, s, x)) * 0.5 - X.real_dot(x, s["rhs"]);
  if (p.has_prox("h")) value = value + s.value("h", x);
  s.number("objective", value);
}

}  // namespace palimpsest::proximal
