// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/solve/solvers/proximal.hpp"

#include "palimpsest/solve/frame/prelude.hpp"
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
  const Variable b = s.b(), weighted = p.has_op("W") ? s.apply("W", b) : b;
  Variable rhs = s.adjoint("A", weighted), bb = p.b().real_dot(b, weighted);
  for (index_t j = 0; p.has_op("L" + std::to_string(j)); ++j) {
    const std::string name = std::to_string(j);
    const Variable c = detail::lent_constant(p.attr("c" + name).as_tensor());
    const double lambda = p.attr("lambda" + name).as_real();
    rhs = rhs + s.adjoint("L" + name, c) * lambda;
    if (!p.flag("objective")) continue;
    const Space range = p.range_of("L" + name);
    bb = bb + range.norm2(ops::broadcast_to(c, range.type().shape)) * lambda;
  }
  rhs = rhs.astype(p.x().type().dtype);
  s.set("rhs", rhs);
  s.number("rhs", p.x().norm2(rhs));
  if (p.flag("objective")) s.number("bb", bb);
}

Variable gradient(const Problem& p, Scope& s, const Variable& v) {
  return applied_normal(p, s, v) - s["rhs"];
}

namespace {

// True if N is the normal operator of A. False if both were cut: the normal operator of a cut A
// would be a third operator, with data of its own.
bool is_plain_normal(const Problem& p, const NamedLinop& N) {
  return p.tiles().empty() && N.is(p.op("A").N());
}

}  // namespace

Preparation lipschitz(const Problem& p, std::uint64_t seed) {
  if (p.has_attr("L")) return {{{"L", p.attr("L").as_real()}}, 0};
  const NamedLinop N = normal_of(p);
  const bool is_plain = is_plain_normal(p, N);
  const OperatorNorm norm = is_plain ? operator_norm2(p.op("A"), p.x().type(), seed)
                                     : largest_eigenvalue(N, p.x().type(), seed);
  // Any step size fits if A is 0.
  return {{{"L", norm.value == 0 ? 1 : norm.value}}, norm.applications};
}

index_t lipschitz_bytes(const Problem& p) {
  if (p.has_attr("L")) return 0;
  const NamedLinop N = normal_of(p);
  const bool is_plain = is_plain_normal(p, N);
  return is_plain ? operator_norm2_bytes(p.op("A"), p.x().type()) : lanczos_bytes(N, p.x().type());
}

void check_lipschitz(const Problem& p, std::string_view solver) { expect_positive(p, solver, "L"); }

void change_numbers(const Problem& p, Scope& s, const Variable& before, const Variable& after) {
  s.number("change", p.x().norm2(after - before));
  s.number("size", p.x().norm2(after));
}

double recorded_objective(const Numbers& n) {
  if (!n.has("objective")) return std::numeric_limits<double>::quiet_NaN();
  return n["objective"] + (n.has("bb") ? n["bb"] / 2 : 0);
}

Verdict judge_change(const Problem&, const Numbers& n) {
  const double change = std::sqrt(n["change"]), size = std::sqrt(n["size"]);
  Verdict verdict;
  verdict.change = change;
  verdict.residual = change == 0 ? 0 : size > 0 ? change / size : 1;
  verdict.objective = recorded_objective(n);
  if (n.has("is right") && n["is right"] == 0) {  // x did not change
    verdict.change = verdict.residual = std::numeric_limits<double>::quiet_NaN();
  }
  return verdict;
}

Variable smooth_part(const Problem& p, const Variable& x, const Variable& image,
                     const Variable& rhs) {
  return p.x().real_dot(x, image) * 0.5 - p.x().real_dot(x, rhs);
}

Variable with_h(const Problem& p, Scope& s, const Variable& smooth, const Variable& x) {
  return p.has_prox("h") ? smooth + s.value("h", x) : smooth;
}

Variable objective_of(const Problem& p, Scope& s, const Variable& x, const Variable& rhs) {
  return with_h(p, s, smooth_part(p, x, applied_normal(p, s, x), rhs), x);
}

void objective_number(const Problem& p, Scope& s, const Variable& x) {
  if (p.flag("objective")) s.number("objective", objective_of(p, s, x, s["rhs"]));
}

}  // namespace palimpsest::proximal
