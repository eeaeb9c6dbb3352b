// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/rewrite/passes/specialize.hpp"

#include <cmath>
#include <span>

#include "palimpsest/rewrite/prelude.hpp"

namespace palimpsest {
namespace {

bool is_complex_value(const Variable& v) { return is_complex(v.dtype()); }

// 1/c, if c is a power of two and both are normal numbers of this dtype.
std::optional<double> exact_reciprocal(double c, DType dtype) {
  int exponent = 0;
  if (std::abs(std::frexp(c, &exponent)) != 0.5) return {};
  const int most = dtype == DType::float32 ? 126 : 1022;
  if (std::abs(exponent - 1) > most) return {};
  return 1 / c;
}

// True if x is never a negative zero. Then adding a positive zero changes nothing.
bool is_never_negative_zero(const Variable& x) {
  if (!is_real_floating(x)) return !is_complex_value(x);
  for (const ScalarOp op : {ScalarOp::abs, ScalarOp::abs2, ScalarOp::exp, ScalarOp::hypot}) {
    if (is_plain(x, op)) return true;
  }
  return is_plain(x, ScalarOp::square);
}

// x if `node` is op(x, number) and leaves x alone.
Replacements drop_neutral(const FunctionGraph&, const Apply& node) {
  const auto op = plain_op(node);
  if (!op || node.input_count() != 2 || is_bool(node.output(0).dtype())) return {};
  const Variable &a = node.input(0), &b = node.input(1);
  const bool is_complex = is_complex_value(node.output(0));
  switch (*op) {
    case ScalarOp::mul:
      if (is_complex) return {};
      if (is_number(b, 1)) return if_it_fits(node, a);
      return is_number(a, 1) ? if_it_fits(node, b) : Replacements();
    case ScalarOp::div:
      return !is_complex && is_number(b, 1) ? if_it_fits(node, a) : Replacements();
    case ScalarOp::pow:
      return !is_complex && is_number(b, 1) ? if_it_fits(node, a) : Replacements();
    case ScalarOp::add:
      if (is_complex) return {};
      if (is_number(b, 0) && (is_exactly(b, -0.0) || is_never_negative_zero(a))) {
        return if_it_fits(node, a);
      }
      if (is_number(a, 0) && (is_exactly(a, -0.0) || is_never_negative_zero(b))) {
        return if_it_fits(node, b);
      }
      return {};
    case ScalarOp::sub: {
      const auto value = scalar_value(b);
      if (!value || *value != 0.0) return {};
      if (!is_integer(b.dtype()) && (std::signbit(value->real()) || std::signbit(value->imag()))) {
        return {};
      }
      return if_it_fits(node, a);
    }
    default:
      return {};
  }
}

Replacements cheapen(const FunctionGraph&, const Apply& node) {
  const auto op = plain_op(node);
  if (!op || node.input_count() != 2 || is_complex_value(node.output(0))) return {};
  const Variable &a = node.input(0), &b = node.input(1);
  if (*op == ScalarOp::mul && is_number(b, -1)) return if_it_fits(node, ops::neg(a));
  if (*op == ScalarOp::mul && is_number(a, -1)) return if_it_fits(node, ops::neg(b));
  if (*op == ScalarOp::pow && is_number(b, 2) && is_integer(a.dtype())) {
    return if_it_fits(node, ops::square(a));
  }
  if (*op == ScalarOp::div && is_real_floating(b)) {
    const auto value = scalar_value(b);
    const auto factor = value ? exact_reciprocal(value->real(), b.dtype()) : std::nullopt;
    if (factor && *factor != 1) return if_it_fits(node, ops::mul(a, number_like(*factor, b)));
  }
  return {};
}

// Nowhere less than +0, except where it is NaN.
bool is_nowhere_negative(const Variable& x) {
  return is_never_negative_zero(x) && is_real_floating(x);
}

Replacements replace_powers(const FunctionGraph&, const Apply& node) {
  if (!is_plain(node, ScalarOp::pow)) return {};
  const Variable& x = node.input(0);
  const auto exponent = scalar_value(node.input(1));
  if (!exponent || exponent->imag() != 0 || !is_inexact(x.dtype())) return {};
  const double p = exponent->real();
  if (p == 2) return if_it_fits(node, ops::square(x));
  if (p == 3) return if_it_fits(node, ops::mul(ops::square(x), x));
  if (p == 4) return if_it_fits(node, ops::square(ops::square(x)));
  if (is_complex_value(x)) return {};
  if (p == -1) return if_it_fits(node, ops::reciprocal(x));
  if (p == -2) return if_it_fits(node, ops::reciprocal(ops::square(x)));
  // The root of -0 is -0 and that of -infinity no number; the power is 0, and infinity.
  if (!is_nowhere_negative(x)) return {};
  if (p == 0.5) return if_it_fits(node, ops::sqrt(x));
  if (p == -0.5) return if_it_fits(node, ops::reciprocal(ops::sqrt(x)));
  if (p == 1.5) return if_it_fits(node, ops::mul(x, ops::sqrt(x)));
  return {};
}

Replacements use_abs2(const FunctionGraph&, const Apply& node) {
  // |z|^2
  if (is_plain(node, ScalarOp::square) && is_plain(node.input(0), ScalarOp::abs)) {
    const Variable z = node.input(0).owner().input(0);
    return is_complex_value(z) ? if_it_fits(node, ops::abs2(z)) : Replacements();
  }
  if (is_plain(node, ScalarOp::sqrt) && is_plain(node.input(0), ScalarOp::abs2)) {
    const Variable z = node.input(0).owner().input(0);
    return is_complex_value(z) ? if_it_fits(node, ops::abs(z)) : Replacements();
  }
  // re(conj(z) z)
  const auto* const part = op_of<ops::ComplexPart>(node);
  if (!part || part->is_imaginary() || !is_plain(node.input(0), ScalarOp::mul)) return {};
  const Apply product = node.input(0).owner();
  const Variable &a = product.input(0), &b = product.input(1);
  const auto is_conj_of = [](const Variable& u, const Variable& v) {
    return is_plain(u, ScalarOp::conj) && u.owner().input(0) == v;
  };
  if (is_conj_of(a, b)) return if_it_fits(node, ops::abs2(b));
  return is_conj_of(b, a) ? if_it_fits(node, ops::abs2(a)) : Replacements();
}

Replacements drop_complex_neutral(const FunctionGraph&, const Apply& node) {
  const auto op = plain_op(node);
  if (!op || node.input_count() != 2 || !is_complex_value(node.output(0))) return {};
  const Variable &a = node.input(0), &b = node.input(1);
  if ((*op == ScalarOp::mul || *op == ScalarOp::div || *op == ScalarOp::pow) && is_number(b, 1)) {
    return if_it_fits(node, a);
  }
  if (*op != ScalarOp::mul) return {};
  if (is_number(a, 1)) return if_it_fits(node, b);
  if (is_number(b, -1)) return if_it_fits(node, ops::neg(a));
  return is_number(a, -1) ? if_it_fits(node, ops::neg(b)) : Replacements();
}

// An operand of a contraction without its summed axes of one element. Undefined unless the rest are
// the axes of the result.
Variable without_summed(const Variable& x, std::span<const int> labels, std::span<const int> kept) {
  Extents extents;
  std::size_t found = 0;
  for (std::size_t k = 0; k < labels.size(); ++k) {
    const index_t n = x.type().shape[k];
    const bool is_kept = found < kept.size() && labels[k] == kept[found];
    if (n == kUnknown || (!is_kept && n != 1)) return {};
    if (is_kept) extents.push_back(n), ++found;
  }
  if (found < kept.size()) return {};
  return extents.size() == labels.size() ? x : ops::reshape(x, extents);
}

// The sum of one product, as that of a tile with one coil.
Replacements multiply_single_terms(const FunctionGraph&, const Apply& node) {
  const auto* const op = op_of<ops::Contract>(node);
  if (op == nullptr) return {};
  const Contraction& c = op->contraction();
  if (c.a.size() == c.out.size() && c.b.size() == c.out.size()) return {};
  Variable a = without_summed(node.input(0), c.a, c.out),
           b = without_summed(node.input(1), c.b, c.out);
  if (!a.defined() || !b.defined()) return {};
  if (c.conj_a) a = ops::conj(a);
  if (c.conj_b) b = ops::conj(b);
  return if_it_fits(node, ops::mul(a, b));
}

}  // namespace

RewriteResult specialize(FunctionGraph& graph, const RewriteHints&) {
  const NodeRewrite rules[] = {
      {"specialize", drop_neutral}, {"specialize", cheapen}, {"specialize", multiply_single_terms}};
  return walk_to_fixed_point(graph, rules);
}

RewriteResult specialize_powers(FunctionGraph& graph, const RewriteHints&) {
  const NodeRewrite rules[] = {{"specialize_powers", replace_powers},
                               {"specialize_powers", use_abs2},
                               {"specialize_powers", drop_complex_neutral}};
  return walk_to_fixed_point(graph, rules);
}

}  // namespace palimpsest
