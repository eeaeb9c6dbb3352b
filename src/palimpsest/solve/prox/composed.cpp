// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/solve/prox/composed.hpp"

#include "palimpsest/linop/core/axes.hpp"
#include "palimpsest/linop/core/builtin_types.hpp"
#include "palimpsest/named/sizes.hpp"
#include "palimpsest/solve/frame/prelude.hpp"
#include "palimpsest/solve/prox/node.hpp"

namespace palimpsest {
namespace {

const Prox& part_of(const Prox& g) { return g.parts().front(); }
double number_attr(const Prox& g, const char* name) { return g.attr(name).as_real(); }

// The state is that of the part, under its own names.
void declare(const Prox& g, const Space& v, StateList& state) {
  state.add_all("part", part_of(g).state(v));
}
Variable prox_of_part(const Prox& g, const Variable& v, const Variable& t, StateScope& s) {
  StateScope inner = s.within("part");
  return part_of(g).prox(v, t, inner);
}

// -- w g -----------------------------------------------------------------------------------------

Variable weighted_prox(const Prox& g, const Variable& v, const Variable& t, StateScope& s) {
  return prox_of_part(g, v, t * number_attr(g, "w"), s);
}
Variable weighted_value(const Prox& g, const Variable& x, const Axes& batch) {
  return part_of(g).value(x, batch) * number_attr(g, "w");
}

// -- g(a x) --------------------------------------------------------------------------------------

// a v, or conj(a) v; a is real, or of modulus 1.
Variable turned(const Prox& g, const Variable& v, bool is_back) {
  const std::complex<double> a = g.attr("a").as_complex();
  if (a.imag() == 0) return v * (is_back ? 1 / a.real() : a.real());
  if (!is_complex(v.dtype())) {
    throw DTypeError(who(g) + "got real numbers, expected complex ones for a complex scale");
  }
  const Tensor factor = Tensor::full<std::complex<double>>({}, is_back ? std::conj(a) : a);
  return v * constant(factor.to(v.dtype()));
}
Variable scaled_prox(const Prox& g, const Variable& v, const Variable& t, StateScope& s) {
  const double square = std::norm(g.attr("a").as_complex());
  return turned(g, prox_of_part(g, turned(g, v, false), t * square, s), true);
}
Variable scaled_value(const Prox& g, const Variable& x, const Axes& batch) {
  return part_of(g).value(turned(g, x, false), batch);
}

// -- g(x - c) ------------------------------------------------------------------------------------

Variable center_of(const Prox& g, const Variable& v) { return param_like(g, "c", v); }
Variable translated_prox(const Prox& g, const Variable& v, const Variable& t, StateScope& s) {
  const Variable c = center_of(g, v);
  return c + prox_of_part(g, v - c, t, s);
}
Variable translated_value(const Prox& g, const Variable& x, const Axes& batch) {
  return part_of(g).value(x - center_of(g, x), batch);
}

// -- g + mu / 2 |x - c|^2 ------------------------------------------------------------------------

Variable quadratic_prox(const Prox& g, const Variable& v, const Variable& t, StateScope& s) {
  const Variable step = t.astype(real_of(v.dtype())), weight = step * number_attr(g, "mu");
  const Variable scale = ops::reciprocal(weight + 1.0);
  const Variable pulled = g.has_param("c") ? v + weight * center_of(g, v) : v;
  return prox_of_part(g, pulled * scale, step * scale, s);
}
Variable quadratic_value(const Prox& g, const Variable& x, const Axes& batch) {
  const Variable off = g.has_param("c") ? x - center_of(g, x) : x;
  return part_of(g).value(x, batch) +
         sum_besides(ops::elementwise(ScalarOp::abs2, {off}), batch) * (0.5 * number_attr(g, "mu"));
}

// -- g(W x) --------------------------------------------------------------------------------------

Variable unitary_prox(const Prox& g, const Variable& v, const Variable& t, StateScope& s) {
  const NamedLinop& W = g.linops().front();
  return W.H()(prox_of_part(g, W(v), t, s));
}
Variable unitary_value(const Prox& g, const Variable& x, const Axes& batch) {
  if (!batch.empty()) throw ShapeError(who(g) + "batch: got one, expected none");
  return part_of(g).value(g.linops().front()(x));
}

// -- g* ------------------------------------------------------------------------------------------

Variable conjugate_of_part(const Prox& g, const Variable& u, const Variable& t, StateScope& s) {
  StateScope inner = s.within("part");
  return part_of(g).conjugate_prox(u, t, inner);
}

// -- parts along a dimension ---------------------------------------------------------------------

index_t axis_in(const Prox& g, const Variable& v) {
  return from_front(Axes{axis_of(*g.dims(), g.attr("along").as_dims()[0])}, v.rank())[0];
}
Variable part_along(const Variable& v, index_t axis, index_t start, index_t stop) {
  std::vector<Index> index(static_cast<std::size_t>(axis), all);
  index.emplace_back(slice(start, stop));
  return ops::index(v, std::move(index));
}

void stacked_declare(const Prox& g, const Space& v, StateList& state) {
  const Variable whole = make_input(v.type(), "v");
  const Extents extents = g.attr("extents").as_integers();
  index_t start = 0;
  for (std::size_t k = 0; k < extents.size(); start += extents[k++]) {
    const Variable part = part_along(whole, axis_in(g, whole), start, start + extents[k]);
    state.add_all("part" + std::to_string(k), g.parts()[k].state(Space(part.type(), v.dims())));
  }
}

Variable stacked_prox(const Prox& g, const Variable& v, const Variable& t, StateScope& s) {
  const index_t axis = axis_in(g, v);
  const Extents extents = g.attr("extents").as_integers();
  const index_t n = v.type().shape[static_cast<std::size_t>(axis)];
  std::vector<Variable> results;
  index_t start = 0;
  for (std::size_t k = 0; k < extents.size(); start += extents[k++]) {
    StateScope inner = s.within("part" + std::to_string(k));
    const Variable part = part_along(v, axis, start, start + extents[k]);
    results.push_back(g.parts()[k].prox(part, t, inner));
  }
  if (start != n) {
    throw ShapeError(who(g) + "extent: got " + std::to_string(n) + ", expected " +
                     std::to_string(start) + ", the sum of the parts");
  }
  return ops::join(axis, results);
}

Variable stacked_value(const Prox& g, const Variable& x, const Axes& batch) {
  const index_t axis = axis_in(g, x);
  const Extents extents = g.attr("extents").as_integers();
  Variable sum;
  index_t start = 0;
  for (std::size_t k = 0; k < extents.size(); start += extents[k++]) {
    const Variable part = part_along(x, axis, start, start + extents[k]);
    const Variable more = g.parts()[k].value(part, batch);
    sum = sum.defined() ? sum + more : more;
  }
  return sum;
}

// The dimension that the parts lie along.
void check_along(const Prox& g) {
  const Dims& along = g.attr("along").as_dims();
  if (!g.dims() || along.size() != 1) {
    throw ShapeError(who(g) + "along: got " + along.str() + ", expected one of the dimensions");
  }
  axis_of(*g.dims(), along[0], g.name());
}

void stacked_check(const Prox& g) {
  check_along(g);
  const std::size_t n = g.attr("extents").as_integers().size();
  if (g.parts().size() == n) return;
  throw ValueError(who(g) + "parts: got " + std::to_string(g.parts().size()) + " and " +
                   std::to_string(n) + " extents, expected as many, at least one");
}

void on_check(const Prox& g) {
  check_along(g);
  const Extents range = g.attr("range").as_integers();
  if (range.size() == 2 && range[0] >= 0 && range[0] < range[1]) return;
  throw ValueError(who(g) + "range: got " + g.attr("range").str() + ", expected 0 <= start < stop");
}

Variable part_of_range(const Prox& g, const Variable& v) {
  const Extents range = g.attr("range").as_integers();
  const index_t axis = axis_in(g, v), n = v.type().shape[static_cast<std::size_t>(axis)];
  if (range[1] > n) {
    throw ShapeError(who(g) + "range: got " + g.attr("range").str() + " of an operand of extent " +
                     std::to_string(n));
  }
  return part_along(v, axis, range[0], range[1]);
}
void on_declare(const Prox& g, const Space& v, StateList& state) {
  const Variable part = part_of_range(g, make_input(v.type(), "v"));
  state.add_all("part", part_of(g).state(Space(part.type(), v.dims())));
}
Variable on_prox(const Prox& g, const Variable& v, const Variable& t, StateScope& s) {
  const Extents range = g.attr("range").as_integers();
  std::vector<Index> index(static_cast<std::size_t>(axis_in(g, v)), all);
  index.emplace_back(slice(range[0], range[1]));
  return ops::set_subtensor(v, std::move(index), prox_of_part(g, part_of_range(g, v), t, s));
}
Variable on_value(const Prox& g, const Variable& x, const Axes& batch) {
  return part_of(g).value(part_of_range(g, x), batch);
}

// -- min over y of g(y) + |x - y|^2 / (2 mu) -----------------------------------------------------

// The envelope's prox is a mean of v and of a prox of g at v.
Variable envelope_prox(const Prox& g, const Variable& v, const Variable& t, StateScope& s) {
  const Variable step = t.astype(real_of(v.dtype())), whole = step + number_attr(g, "mu");
  return v + (prox_of_part(g, v, whole, s) - v) * (step / whole);
}
Variable nearest(const Prox& g, const Variable& x) {
  const double mu = number_attr(g, "mu");
  return part_of(g).prox(x, constant(Tensor::full<double>({}, mu)).astype(real_of(x.dtype())));
}
Variable envelope_value(const Prox& g, const Variable& x, const Axes& batch) {
  const Variable y = nearest(g, x);
  return part_of(g).value(y, batch) +
         sum_besides(ops::elementwise(ScalarOp::abs2, {x - y}), batch) *
             (0.5 / number_attr(g, "mu"));
}
Variable envelope_gradient(const Prox& g, const Variable& x) {
  return (x - nearest(g, x)) * (1 / number_attr(g, "mu"));
}

constexpr ProxType composition(std::string_view name, decltype(ProxType::prox) prox,
                               decltype(ProxType::value) value) {
  return {.name = name,
          .parts = 1,
          .declare = declare,
          .prox = prox,
          .value = value,
          .is_separable = is_separable_as_parts,
          .is_state_of_parts = true};
}

// The parts lie along this dimension.
bool is_separable_across(const Prox& g, const ND& d) {
  return !g.attr("along").as_dims().contains(d) && is_separable_as_parts(g, d);
}

constexpr ProxType kWeighted = composition("weighted", weighted_prox, weighted_value);
constexpr ProxType kScaled = composition("scaled", scaled_prox, scaled_value);
constexpr ProxType kTranslated = composition("translated", translated_prox, translated_value);
constexpr ProxType kPlusQuadratic = composition("plus_quadratic", quadratic_prox, quadratic_value);
constexpr ProxType kWithUnitary = [] {
  ProxType type = composition("with_unitary", unitary_prox, unitary_value);
  type.linops = 1;
  return type;
}();
constexpr ProxType kStacked = [] {
  ProxType type = composition("stacked", stacked_prox, stacked_value);
  type.declare = stacked_declare;
  type.check = stacked_check;
  type.is_separable = is_separable_across;
  return type;
}();
constexpr ProxType kOn = [] {
  ProxType type = composition("on", on_prox, on_value);
  type.declare = on_declare;
  type.check = on_check;
  type.is_separable = is_separable_across;
  return type;
}();
constexpr ProxType kConjugate = [] {
  ProxType type = composition("conjugate", conjugate_of_part, nullptr);
  type.conjugate = prox_of_part;
  return type;
}();
constexpr ProxType kEnvelope = [] {
  ProxType type = composition("moreau_envelope", envelope_prox, envelope_value);
  type.gradient = envelope_gradient;
  type.lipschitz = [](const Prox& g) { return 1 / number_attr(g, "mu"); };
  return type;
}();
PALIMPSEST_REGISTER_PROX(kWeighted);
PALIMPSEST_REGISTER_PROX(kScaled);
PALIMPSEST_REGISTER_PROX(kTranslated);
PALIMPSEST_REGISTER_PROX(kPlusQuadratic);
PALIMPSEST_REGISTER_PROX(kWithUnitary);
PALIMPSEST_REGISTER_PROX(kStacked);
PALIMPSEST_REGISTER_PROX(kOn);
PALIMPSEST_REGISTER_PROX(kConjugate);
PALIMPSEST_REGISTER_PROX(kEnvelope);

Prox composed(const ProxType& type, const Prox& g, ProxParts parts) {
  parts.parts = {g};
  if (!parts.dims) parts.dims = g.dims();
  return make_prox(type, std::move(parts));
}

void expect_that(bool holds, const char* who, const char* what, double got, const char* expected) {
  if (holds && std::isfinite(got)) return;
  throw ValueError("[" + std::string(who) + "] " + what + ": got " + Attribute(got).str() +
                   ", expected " + expected);
}

}  // namespace

Prox weighted(const Prox& g, double w) {
  expect_that(w >= 0, "weighted", "w", w, "a number that is not negative");
  return composed(kWeighted, g, {.attrs = {{"w", w}}});
}

Prox scaled(const Prox& g, std::complex<double> a) {
  const double modulus = std::abs(a);
  expect_that(modulus != 0, "scaled", "scale", modulus, "a number that is not 0");
  if (a.imag() == 0) {
    return composed(kScaled, g, {.attrs = {{"a", a.real()}}});
  }
  expect_that(std::abs(modulus - 1) < 1e-12, "scaled", "scale of modulus", modulus,
              "1, or a real one");
  return composed(kScaled, g, {.attrs = {{"a", a}}});
}

Prox translated(const Prox& g, const Tensor& c) {
  return composed(kTranslated, g, {.params = {{"c", Parameter(c)}}});
}

Prox plus_quadratic(const Prox& g, double mu, const std::optional<Tensor>& c) {
  expect_that(mu >= 0, "plus_quadratic", "mu", mu, "a number that is not negative");
  ProxParts parts{.attrs = {{"mu", mu}}};
  if (c) parts.params.emplace_back("c", Parameter(*c));
  return composed(kPlusQuadratic, g, std::move(parts));
}

Prox with_unitary(const Prox& g, const NamedLinop& W) {
  if (&W.N().type() != &linop_types::identity()) {
    throw ValueError("[with_unitary] got " + W.name() + ", expected a unitary operator");
  }
  return composed(kWithUnitary, g.bound_to(W.oshape()), {.dims = W.ishape(), .linops = {W}});
}

Prox stacked(const std::vector<Prox>& parts, const ND& d, const Extents& extents,
             const Dims& dims) {
  ProxParts data{.dims = dims, .attrs = {{"along", Dims(d)}, {"extents", Attribute(extents)}}};
  for (const Prox& part : parts) data.parts.push_back(part.bound_to(dims));
  return make_prox(kStacked, std::move(data));
}

Prox on(const Prox& g, const ND& d, index_t start, index_t stop, const Dims& dims) {
  return make_prox(kOn, {.dims = dims,
                         .attrs = {{"along", Dims(d)}, {"range", Attribute(Extents{start, stop})}},
                         .parts = {g.bound_to(dims)}});
}

Prox conjugate(const Prox& g) { return composed(kConjugate, g, {}); }

Prox moreau_envelope(const Prox& g, double mu) {
  expect_that(mu > 0, "moreau_envelope", "mu", mu, "a positive number");
  return composed(kEnvelope, g, {.attrs = {{"mu", mu}}});
}

}  // namespace palimpsest
