// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/rewrite/passes/canonicalize.hpp"

#include "palimpsest/rewrite/prelude.hpp"

namespace palimpsest {
namespace {

// f(v) -> v.owner()'s input, if v is op(input).
std::optional<Variable> inside(const Variable& v, ScalarOp op) {
  if (!is_plain(v, op)) return {};
  return v.owner().input(0);
}

std::optional<Variable> inside_any(const Variable& v, std::initializer_list<ScalarOp> list) {
  for (const ScalarOp op : list) {
    if (auto found = inside(v, op)) return found;
  }
  return {};
}

// Functions that undo themselves, and those that are the same twice as once.
Replacements cancel_repeated(const FunctionGraph&, const Apply& node) {
  const auto op = plain_op(node);
  if (!op) return {};
  const Variable& x = node.input(0);
  switch (*op) {
    case ScalarOp::neg:
    case ScalarOp::conj:
    case ScalarOp::bitwise_not:
      return if_it_fits(node, inside(x, *op));
    case ScalarOp::logical_not: {
      const auto inner = inside(x, *op);
      return inner && is_bool(inner->dtype()) ? if_it_fits(node, *inner) : Replacements();
    }
    case ScalarOp::abs: {
      // Squares of integers wrap.
      const bool is_positive =
          is_plain(x, ScalarOp::abs) ||
          (is_real_floating(x) && inside_any(x, {ScalarOp::abs2, ScalarOp::exp}));
      return is_positive ? if_it_fits(node, x) : Replacements();
    }
    case ScalarOp::round:
    case ScalarOp::sign:
      return is_plain(x, *op) && !is_complex(x.dtype()) ? if_it_fits(node, x) : Replacements();
    case ScalarOp::minimum:
    case ScalarOp::maximum:
    case ScalarOp::bitwise_and:
    case ScalarOp::bitwise_or:
      return x == node.input(1) ? if_it_fits(node, x) : Replacements();
    case ScalarOp::logical_and:
    case ScalarOp::logical_or:
      return x == node.input(1) && is_bool(x.dtype()) ? if_it_fits(node, x) : Replacements();
    default:
      return {};
  }
}

// Signs and conjugations in front of functions that do not see them.
Replacements drop_unseen(const FunctionGraph&, const Apply& node) {
  const auto op = plain_op(node);
  if (!op) return {};
  std::optional<Variable> inner;
  if (*op == ScalarOp::abs && is_unsigned(node.input(0).dtype())) return {};  // -x wraps
  if (*op == ScalarOp::abs || *op == ScalarOp::abs2) {
    inner = inside_any(node.input(0), {ScalarOp::neg, ScalarOp::conj});
  } else if (*op == ScalarOp::square) {
    inner = inside_any(node.input(0), {ScalarOp::neg});
    if (!inner && !is_complex(node.input(0).dtype())) {
      inner = inside(node.input(0), ScalarOp::abs);
      if (inner && is_complex(inner->dtype())) inner.reset();
    }
  }
  if (!inner) return {};
  return if_it_fits(node, ops::elementwise(*op, {*inner}));
}

// Replaces a + (-b) by a - b, and drops two signs of a product.
Replacements move_signs(const FunctionGraph&, const Apply& node) {
  const auto op = plain_op(node);
  if (!op || node.input_count() != 2) return {};
  const Variable &a = node.input(0), &b = node.input(1);
  const auto minus_a = inside(a, ScalarOp::neg), minus_b = inside(b, ScalarOp::neg);
  switch (*op) {
    case ScalarOp::add:
      if (minus_b) return if_it_fits(node, ops::sub(a, *minus_b));
      if (minus_a) return if_it_fits(node, ops::sub(b, *minus_a));
      return {};
    case ScalarOp::sub:
      return minus_b ? if_it_fits(node, ops::add(a, *minus_b)) : Replacements();
    case ScalarOp::mul:
      return minus_a && minus_b ? if_it_fits(node, ops::mul(*minus_a, *minus_b)) : Replacements();
    case ScalarOp::div:
      if (!minus_a || !minus_b || is_complex(node.output(0).dtype())) return {};
      return if_it_fits(node, ops::div(*minus_a, *minus_b));
    default:
      return {};
  }
}

Replacements simplify_choice(const FunctionGraph&, const Apply& node) {
  if (!is_plain(node, ScalarOp::where)) return {};
  const Variable &condition = node.input(0), &a = node.input(1), &b = node.input(2);
  if (a == b) return if_it_fits(node, a);
  if (const auto value = scalar_value(condition)) {
    return if_it_fits(node, *value != 0.0 ? a : b);
  }
  const auto opposite = inside(condition, ScalarOp::logical_not);
  if (!opposite) return {};
  return if_it_fits(node, ops::elementwise(ScalarOp::where, {*opposite, b, a}));
}

// Replaces parts of a number made of parts by these, and a number made of its own parts by itself.
Replacements join_parts(const FunctionGraph&, const Apply& node) {
  if (const auto* part = op_of<ops::ComplexPart>(node)) {
    const Variable& z = node.input(0);
    if (is_plain(z, ScalarOp::make_complex)) {
      return if_it_fits(node, z.owner().input(part->is_imaginary() ? 1 : 0));
    }
    if (const auto inner = inside(z, ScalarOp::conj)) {
      return if_it_fits(node,
                        part->is_imaginary() ? ops::neg(ops::imag(*inner)) : ops::real(*inner));
    }
    return {};
  }
  if (is_plain(node, ScalarOp::make_complex)) {
    const auto* const re = op_of<ops::ComplexPart>(node.input(0));
    const auto* const im = op_of<ops::ComplexPart>(node.input(1));
    if (!re || !im || re->is_imaginary() || !im->is_imaginary()) return {};
    const Variable z = node.input(0).owner().input(0);
    return node.input(1).owner().input(0) == z ? if_it_fits(node, z) : Replacements();
  }
  const bool to_real = op_of<ops::ViewAsReal>(node), to_complex = op_of<ops::ViewAsComplex>(node);
  if (!to_real && !to_complex) return {};
  const Apply inner = node.input(0).owner();
  if (to_real ? !op_of<ops::ViewAsComplex>(inner) : !op_of<ops::ViewAsReal>(inner)) return {};
  return if_it_fits(node, inner.input(0));
}

bool is_cast(const Apply& node) {
  const auto* const op = op_of<ops::Elementwise>(node);
  return op && op->scalar_op() == ScalarOp::identity && !op->is_in_place();
}

// A conversion that loses nothing before another one.
Replacements chain_conversions(const FunctionGraph&, const Apply& node) {
  if (!is_cast(node) || !is_cast(node.input(0).owner())) return {};
  const Variable x = node.input(0).owner().input(0);
  if (!converts_exactly(x.dtype(), node.input(0).dtype())) return {};
  if (is_complex(x.dtype()) && !is_complex(node.output(0).dtype())) return {};
  // Through floating numbers a conversion out of range is another one than from integers.
  if (is_inexact(node.input(0).dtype()) && !is_inexact(node.output(0).dtype())) return {};
  if (is_bool(node.output(0).dtype()) || is_bool(x.dtype())) return {};
  return if_it_fits(node, ops::astype(x, node.output(0).dtype()));
}

}  // namespace

RewriteResult canonicalize(FunctionGraph& graph, const RewriteHints&) {
  const NodeRewrite rules[] = {
      {"canonicalize", cancel_repeated}, {"canonicalize", drop_unseen},
      {"canonicalize", move_signs},      {"canonicalize", simplify_choice},
      {"canonicalize", join_parts},      {"canonicalize", chain_conversions}};
  return walk_to_fixed_point(graph, rules);
}

}  // namespace palimpsest
