// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/solve/prox/norms.hpp"

#include "palimpsest/solve/frame/prelude.hpp"
#include "palimpsest/solve/prox/node.hpp"
#include "palimpsest/solve/prox/parts.hpp"

namespace palimpsest {
namespace {

Variable lambda_of(const Prox& g, const Variable& v) {
  return weight_of(g, "lambda", real_of(v.dtype()));
}
void check_lambda(const Prox& g) { check_weight(g, "lambda"); }

// t lambda, of the precision of v.
Variable threshold(const Prox& g, const Variable& v, const Variable& t) {
  const Variable one = t.astype(real_of(v.dtype())) * lambda_of(g, v);
  if (!g.has_param("weights")) return one;
  return one * param_for(g, "weights", v).astype(real_of(v.dtype()));
}

Variable abs2(const Variable& x) { return ops::elementwise(ScalarOp::abs2, {x}); }

// -- L1 ------------------------------------------------------------------------------------------

Variable l1_prox(const Prox& g, const Variable& v, const Variable& t, StateScope&) {
  return soft_threshold(v, threshold(g, v, t));
}

// The projection onto |u| <= lambda, for any step.
Variable l1_conjugate(const Prox& g, const Variable& u, const Variable& s, StateScope&) {
  const Variable bound = threshold(g, u, ops::full_like(s, 1.0));
  if (!is_complex(u.dtype())) return ops::clip(u, -bound, bound);
  return u * cut_back(ops::abs(u), bound);
}

Variable l1_value(const Prox& g, const Variable& x, const Axes& batch) {
  const Variable one = constant(Tensor::ones({}, real_of(x.dtype())));
  return sum_besides(ops::abs(x) * threshold(g, x, one), batch);
}

void l1_check(const Prox& g) {
  check_weight(g, "lambda");
  if (g.has_param("weights")) check_weight(g, "weights");
}

constexpr ProxType kL1{.name = "L1",
                       .prox = l1_prox,
                       .conjugate = l1_conjugate,
                       .value = l1_value,
                       .check = l1_check,
                       .is_separable = is_separable_everywhere,
                       .is_elementwise = true};
PALIMPSEST_REGISTER_PROX(kL1);

// -- norms of vectors ----------------------------------------------------------------------------

Variable l2_prox(const Prox& g, const Variable& v, const Variable& t, StateScope&) {
  return shrunk(v, norm_along(v, axes_over(g, v.rank())), threshold(g, v, t));
}

Variable l2_conjugate(const Prox& g, const Variable& u, const Variable&, StateScope&) {
  return u * cut_back(norm_along(u, axes_over(g, u.rank())), lambda_of(g, u));
}

Variable l2_value(const Prox& g, const Variable& x, const Axes& batch) {
  return sum_besides(norm_along(x, axes_over(g, x.rank())), batch) * lambda_of(g, x);
}

constexpr ProxType kL2{.name = "L2",
                       .prox = l2_prox,
                       .conjugate = l2_conjugate,
                       .value = l2_value,
                       .check = check_lambda,
                       .is_separable = is_separable_besides_over};
PALIMPSEST_REGISTER_PROX(kL2);

constexpr ProxType kL21{.name = "L21",
                        .prox = l2_prox,
                        .conjugate = l2_conjugate,
                        .value = l2_value,
                        .check = check_lambda,
                        .is_separable = is_separable_besides_over};
PALIMPSEST_REGISTER_PROX(kL21);

}  // namespace

bool takes_norms_of_parts(const Prox& g, const TensorType& operand) {
  constexpr index_t kMost = 4;
  const bool is_norm = &g.type() == &kL2 || &g.type() == &kL21;
  if (!is_norm || operand.rank() < 2) return false;
  const index_t n = operand.shape[0];
  return n >= 2 && n <= kMost && axes_over(g, operand.rank()) == Axes{0};
}

std::vector<Variable> conjugate_prox_of_parts(const Prox& g, const std::vector<Variable>& u) {
  Variable sum;
  for (const Variable& part : u) sum = sum.defined() ? sum + abs2(part) : abs2(part);
  const Variable scale = cut_back(ops::sqrt(sum), lambda_of(g, u[0]));
  std::vector<Variable> made;
  for (const Variable& part : u) made.push_back(part * scale);
  return made;
}

namespace {

// -- smooth functions ----------------------------------------------------------------------------

Variable squared_prox(const Prox& g, const Variable& v, const Variable& t, StateScope&) {
  const Variable weight = threshold(g, v, t), scale = ops::reciprocal(weight + 1.0);
  if (!g.has_param("center")) return v * scale;
  return (v + weight * param_like(g, "center", v)) * scale;
}

Variable off_center(const Prox& g, const Variable& x) {
  return g.has_param("center") ? x - param_like(g, "center", x) : x;
}

Variable squared_value(const Prox& g, const Variable& x, const Axes& batch) {
  return sum_besides(abs2(off_center(g, x)), batch) * (lambda_of(g, x) * 0.5);
}

Variable squared_gradient(const Prox& g, const Variable& x) {
  return off_center(g, x) * lambda_of(g, x);
}

double lambda_number(const Prox& g) {
  return g.has_attr("lambda") ? g.attr("lambda").as_real()
                              : g.param("lambda").value().to(DType::float64).item<double>();
}

constexpr ProxType kSquaredL2{.name = "SquaredL2",
                              .prox = squared_prox,
                              .value = squared_value,
                              .gradient = squared_gradient,
                              .lipschitz = lambda_number,
                              .check = check_lambda,
                              .is_separable = is_separable_everywhere,
                              .is_elementwise = true};
PALIMPSEST_REGISTER_PROX(kSquaredL2);

double delta_of(const Prox& g) { return g.attr("delta").as_real(); }

Variable huber_prox(const Prox& g, const Variable& v, const Variable& t, StateScope&) {
  const double delta = delta_of(g);
  const Variable size = ops::abs(v), tl = threshold(g, v, t), bound = tl + delta;
  const Variable inside = delta / bound, outside = 1.0 - tl / size;
  return v * ops::where(ops::gt(size, bound), outside, inside);
}

Variable huber_value(const Prox& g, const Variable& x, const Axes& batch) {
  const double delta = delta_of(g);
  const Variable size = ops::abs(x);
  const Variable terms =
      ops::where(ops::le(size, delta), size * size * (0.5 / delta), size - 0.5 * delta);
  return sum_besides(terms, batch) * lambda_of(g, x);
}

Variable huber_gradient(const Prox& g, const Variable& x) {
  const Variable size = ops::maximum(ops::abs(x), delta_of(g));
  return x * (lambda_of(g, x) / size);
}

double huber_lipschitz(const Prox& g) { return lambda_number(g) / delta_of(g); }

void huber_check(const Prox& g) {
  check_lambda(g);
  if (delta_of(g) > 0 && std::isfinite(delta_of(g))) return;
  throw ValueError(who(g) + "delta: got " + g.attr("delta").str() + ", expected a positive number");
}

constexpr ProxType kHuber{.name = "Huber",
                          .prox = huber_prox,
                          .value = huber_value,
                          .gradient = huber_gradient,
                          .lipschitz = huber_lipschitz,
                          .check = huber_check,
                          .is_separable = is_separable_everywhere,
                          .is_elementwise = true};
PALIMPSEST_REGISTER_PROX(kHuber);

// -- nothing, and anything -----------------------------------------------------------------------

Variable zero_prox(const Prox&, const Variable& v, const Variable&, StateScope&) { return v; }
Variable zero_value(const Prox&, const Variable& x, const Axes& batch) {
  return sum_besides(ops::zeros_like(ops::abs(x)), batch);
}
Variable zero_gradient(const Prox&, const Variable& x) { return ops::zeros_like(x); }

constexpr ProxType kZero{.name = "Zero",
                         .prox = zero_prox,
                         .value = zero_value,
                         .gradient = zero_gradient,
                         .lipschitz = [](const Prox&) { return 0.0; },
                         .is_separable = is_separable_everywhere,
                         .is_elementwise = true};
PALIMPSEST_REGISTER_PROX(kZero);

Variable custom_prox(const Prox& g, const Variable& v, const Variable& t, StateScope&) {
  return g.node().data.functions->prox(v, t);
}

Variable custom_value(const Prox& g, const Variable& x, const Axes&) {
  const auto& value = g.node().data.functions->value;
  if (!value) throw ValueError(who(g) + "value: it was given none");
  return value(x);
}

void custom_check(const Prox& g) {
  if (g.node().data.functions) return;
  throw ValueError(who(g) + "prox: expected a function");
}

constexpr ProxType kCustom{
    .name = "Custom", .prox = custom_prox, .value = custom_value, .check = custom_check};
PALIMPSEST_REGISTER_PROX(kCustom);

}  // namespace

Prox L1(const Weight& lambda, const L1Options& options) {
  ProxParts parts{.dims = options.dims};
  put_weight(parts, "lambda", lambda);
  if (options.weights) parts.params.emplace_back("weights", *options.weights);
  return make_prox(kL1, std::move(parts));
}

Prox L2(const Weight& lambda, const NormOptions& options) {
  ProxParts parts{.dims = options.dims, .attrs = {{"over", options.over}}};
  put_weight(parts, "lambda", lambda);
  return make_prox(kL2, std::move(parts));
}

Prox L21(const Weight& lambda, const Dims& over, std::optional<Dims> dims) {
  ProxParts parts{.dims = std::move(dims), .attrs = {{"over", over}}};
  put_weight(parts, "lambda", lambda);
  return make_prox(kL21, std::move(parts));
}

Prox SquaredL2(const Weight& lambda, const SquaredL2Options& options) {
  ProxParts parts{.dims = options.dims};
  put_weight(parts, "lambda", lambda);
  if (options.center) parts.params.emplace_back("center", *options.center);
  return make_prox(kSquaredL2, std::move(parts));
}

Prox Huber(const Weight& lambda, double delta, std::optional<Dims> dims) {
  ProxParts parts{.dims = std::move(dims), .attrs = {{"delta", delta}}};
  put_weight(parts, "lambda", lambda);
  return make_prox(kHuber, std::move(parts));
}

Prox ZeroProx() { return make_prox(kZero); }

Prox CustomProx(ProxFunctions functions, std::string name) {
  if (!functions.prox) throw ValueError("[" + name + "] prox: expected a function");
  return make_prox(kCustom,
                   {.name = std::move(name),
                    .functions = std::make_shared<const ProxFunctions>(std::move(functions))});
}

}  // namespace palimpsest
