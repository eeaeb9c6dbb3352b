// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/rewrite/passes/call_libraries.hpp"

#include "palimpsest/ops/products/products.hpp"
#include "palimpsest/rewrite/prelude.hpp"

namespace palimpsest {
namespace {

// A term of a sum: factor * base.
struct ScaledTerm {
  double number = 1;
  Variable factor;  // 0-d; undefined: the number alone
  Variable base;
};

bool has_one_element(const Variable& v) {
  const Extents& shape = v.type().shape;
  return std::all_of(shape.begin(), shape.end(), [](index_t n) { return n == 1; });
}

// True if v has all the extents of `whole`, as far as they are known.
bool is_spread_like(const Variable& v, const Variable& whole) {
  if (v.rank() != whole.rank()) return false;
  for (std::size_t k = 0; k < v.rank(); ++k) {
    if (v.type().shape[k] == 1 && whole.type().shape[k] != 1) return false;
  }
  return true;
}

Variable as_number(const Variable& v) {
  if (v.is_constant()) return constant(v.constant_value().reshape({}), {}, v.type().device);
  Axes axes;
  for (std::size_t k = 0; k < v.rank(); ++k) axes.push_back(static_cast<index_t>(k));
  return ops::squeeze(v, axes);
}

// The value v as `reader` uses it, with the factors that only `reader` reads taken apart.
ScaledTerm term_of(const FunctionGraph& graph, const Variable& v, const Apply& reader) {
  const Apply node = v.owner();
  if (!is_private_to(graph, v, reader)) return {1, {}, v};
  if (is_plain(node, ScalarOp::neg)) return {-1, {}, node.input(0)};
  if (is_plain(node, ScalarOp::add) && node.input(0) == node.input(1)) {
    return {2, {}, node.input(0)};
  }
  if (!is_plain(node, ScalarOp::mul)) return {1, {}, v};
  for (const std::size_t i : {std::size_t{0}, std::size_t{1}}) {
    const Variable &factor = node.input(i), &base = node.input(1 - i);
    if (has_one_element(factor) && !has_one_element(base)) {
      return {1, as_number(factor), base};
    }
  }
  return {1, {}, v};
}

Variable factor_of(const ScaledTerm& term, double sign, const Variable& like) {
  const double number = sign * term.number;
  if (!term.factor.defined()) return as_number(number_like(number, like));
  return number == 1 ? term.factor : ops::neg(term.factor);
}

// True for a product of two matrices, of a matrix and a vector, or of two vectors to a matrix.
bool is_product_of_matrices(const Contraction& c) {
  const std::size_t a = c.a.size(), b = c.b.size(), out = c.out.size();
  if (a < 1 || a > 2 || b < 1 || b > 2) return false;
  std::size_t summed = 0, shared = 0;
  for (const int label : c.a) {
    const bool in_b = std::find(c.b.begin(), c.b.end(), label) != c.b.end();
    const bool is_kept = std::find(c.out.begin(), c.out.end(), label) != c.out.end();
    if (!in_b && !is_kept) return false;
    summed += in_b && !is_kept ? 1 : 0;
    shared += in_b ? 1 : 0;
  }
  return out == a + b - 2 * shared && shared == summed && out >= 1 &&
         shared == (a == 1 && b == 1 ? 0u : 1u);
}

const ops::Contract* product_of(const FunctionGraph& graph, const ScaledTerm& term,
                                const Variable& v, const Apply& node) {
  const auto* const product = op_of<ops::Contract>(term.base);
  if (!product || !is_inexact(term.base.dtype())) return nullptr;
  const Apply reader = term.base == v ? node : v.owner();
  if (!is_private_to(graph, term.base, reader) || term.base.is_indestructible()) return nullptr;
  if (!is_spread_like(term.base, node.output(0))) return nullptr;
  return is_product_of_matrices(product->contraction()) ? product : nullptr;
}

// beta z + alpha x y
Replacements add_product(const FunctionGraph& graph, const Apply& node) {
  const bool is_difference = is_plain(node, ScalarOp::sub);
  if (!is_difference && !is_plain(node, ScalarOp::add)) return {};
  if (node.input(0) == node.input(1)) return {};
  for (const std::size_t i : {std::size_t{1}, std::size_t{0}}) {
    const Variable &v = node.input(i), &other = node.input(1 - i);
    const ScaledTerm product = term_of(graph, v, node);
    const auto* const op = product_of(graph, product, v, node);
    if (!op) continue;
    const ScaledTerm rest = term_of(graph, other, node);
    if (!is_spread_like(rest.base, node.output(0)) || rest.base.dtype() != v.dtype()) continue;
    const double sign_of_product = is_difference && i == 1 ? -1 : 1;
    const double sign_of_rest = is_difference && i == 0 ? -1 : 1;
    const Apply contraction = product.base.owner();
    const Variable inputs[] = {rest.base, factor_of(product, sign_of_product, v),
                               contraction.input(0), contraction.input(1),
                               factor_of(rest, sign_of_rest, v)};
    const auto sum = std::make_shared<const ops::AddContract>(op->contraction(), v.dtype());
    return if_it_fits(node, sum->make_node(inputs).output(0));
  }
  return {};
}

// An operand of a product under a sum: labels for the axes along which it varies.
struct Factor {
  Variable value;
  SmallVector<int, 8> labels;
  bool conj = false;
};

Factor factor_in(const FunctionGraph& graph, const Apply& product, std::size_t i) {
  Factor result;
  Variable v = product.input(i);
  if (is_plain(v, ScalarOp::conj) && is_private_to(graph, v, product)) {
    result.conj = true;
    v = v.owner().input(0);
  }
  Axes still;
  for (std::size_t k = 0; k < v.rank(); ++k) {
    const bool is_broadcast = v.type().shape[k] == 1 && product.input(1 - i).type().shape[k] != 1;
    if (is_broadcast) {
      still.push_back(static_cast<index_t>(k));
    } else {
      result.labels.push_back(static_cast<int>(k));
    }
  }
  result.value = ops::squeeze(v, still);
  return result;
}

// The sum over axes of a product: worth a contraction when it is over all of them, or when the
// factors do not vary along the same ones, as those of a matrix product.
Replacements sum_product(const FunctionGraph& graph, const Apply& node) {
  const auto* const sum = op_of<ops::Reduce>(node);
  if (!sum || sum->reduce_op() != ReduceOp::sum || sum->axes().empty()) return {};
  const Variable& v = node.input(0);
  if (!is_inexact(v.dtype()) || !is_private_to(graph, v, node)) return {};
  const bool is_total = sum->axes().size() == v.rank();
  if (is_total && is_plain(v, ScalarOp::abs2)) {
    return if_it_fits(node, ops::norm2(v.owner().input(0)));
  }
  if (is_total && is_plain(v, ScalarOp::square) && is_real_floating(v)) {
    return if_it_fits(node, ops::norm2(v.owner().input(0)));
  }
  if (!is_plain(v, ScalarOp::mul)) return {};
  const Apply product = v.owner();
  const Factor a = factor_in(graph, product, 0), b = factor_in(graph, product, 1);
  const bool is_matrix_product = a.labels.size() < v.rank() || b.labels.size() < v.rank();
  if (a.labels.empty() || b.labels.empty() || (!is_total && !is_matrix_product)) return {};
  Contraction contraction{a.labels, b.labels, {}, a.conj, b.conj};
  for (std::size_t k = 0; k < v.rank(); ++k) {
    const auto axis = static_cast<index_t>(k);
    if (std::find(sum->axes().begin(), sum->axes().end(), axis) == sum->axes().end()) {
      contraction.out.push_back(static_cast<int>(k));
    }
  }
  const Variable inputs[] = {a.value, b.value};
  const auto op = std::make_shared<const ops::Contract>(std::move(contraction));
  return if_it_fits(node, op->make_node(inputs).output(0));
}

}  // namespace

RewriteResult call_libraries(FunctionGraph& graph, const RewriteHints&) {
  const NodeRewrite rules[] = {{"call_libraries", sum_product}, {"call_libraries", add_product}};
  return walk_to_fixed_point(graph, rules);
}

}  // namespace palimpsest
