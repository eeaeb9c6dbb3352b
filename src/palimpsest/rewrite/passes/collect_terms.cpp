// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/rewrite/passes/collect_terms.hpp"

#include <cmath>
#include <limits>

#include "palimpsest/rewrite/prelude.hpp"

namespace palimpsest {
namespace {

// Bounds: longer and deeper expressions keep their form. Lists are searched linearly, and trees may
// be very deep.
constexpr std::size_t kMostTerms = 64;
constexpr int kDeepest = 64;
// Of an expression that stands twice in another one, which stands twice in a third, and so on.
constexpr int kMostLeaves = 4096;

struct Term {
  double times;  // a multiple in sums
  Variable value;
};

bool is_sum_of_two(const Apply& node) {
  return is_plain(node, ScalarOp::add) || is_plain(node, ScalarOp::sub);
}

bool is_product(const Apply& node) {
  return is_plain(node, ScalarOp::mul) || is_plain(node, ScalarOp::div);
}

// True if v has the extents of `whole`, so that adding it earlier or later makes no difference.
bool is_as_wide(const Variable& v, const Variable& whole) {
  for (std::size_t k = 0; k < v.rank(); ++k) {
    if (v.type().shape[k] == 1 && whole.type().shape[k] != 1) return false;
  }
  return true;
}

bool is_inner(const FunctionGraph& graph, const Variable& v, const Apply& reader) {
  return is_private_to(graph, v, reader) && !v.is_indestructible() &&
         v.type() == reader.output(0).type();
}

// True if the node is part of a bigger sum or product that will be visited.
template <class Is>
bool is_part(const FunctionGraph& graph, const Apply& node, Is is) {
  const Variable v = node.output(0);
  if (graph.use_count(v) == 0 || graph.use_count(v) > 2) return false;
  const Apply reader = graph.uses(v)[0].node;
  return reader.defined() && is(reader) && is_inner(graph, v, reader);
}

double number_or_nan(const Variable& v) {
  const auto value = scalar_value(v);
  return value && value->imag() == 0 ? value->real() : std::numeric_limits<double>::quiet_NaN();
}

struct SumOfTerms {
  std::vector<Term> terms;
  double number = 0;
  int n_numbers = 0, n_leaves = 0;
};

void add_terms(const FunctionGraph& graph, const Apply& node, double sign, SumOfTerms& sum,
               int depth = 0) {
  for (const std::size_t i : {std::size_t{0}, std::size_t{1}}) {
    const Variable& v = node.input(i);
    const double s = i == 1 && is_plain(node, ScalarOp::sub) ? -sign : sign;
    const Apply inner = v.owner();
    if (sum.n_leaves > kMostLeaves || sum.terms.size() > kMostTerms) return;
    if (depth < kDeepest && is_sum_of_two(inner) && is_inner(graph, v, node)) {
      add_terms(graph, inner, s, sum, depth + 1);
      continue;
    }
    ++sum.n_leaves;
    if (const double number = number_or_nan(v); std::isfinite(number)) {
      sum.number += s * number;
      ++sum.n_numbers;
      continue;
    }
    Term term{s, v};
    if (is_plain(inner, ScalarOp::mul) && is_inner(graph, v, node)) {
      for (const std::size_t k : {std::size_t{0}, std::size_t{1}}) {
        const double factor = number_or_nan(inner.input(k));
        if (!std::isfinite(factor)) continue;
        term = {s * factor, inner.input(1 - k)};
        break;
      }
    }
    const auto known = std::find_if(sum.terms.begin(), sum.terms.end(),
                                    [&](const Term& t) { return t.value == term.value; });
    if (known == sum.terms.end()) {
      sum.terms.push_back(term);
    } else {
      known->times += term.times;
    }
  }
}

Variable multiple(const Term& term, double sign) {
  const double times = sign * term.times;
  if (times == 1) return term.value;
  if (times == -1) return ops::neg(term.value);
  return ops::mul(term.value, number_like(times, term.value));
}

Replacements collect_sum(const FunctionGraph& graph, const Apply& node) {
  const Variable& whole = node.output(0);
  if (!is_sum_of_two(node) || !is_inexact(whole.dtype()) || is_part(graph, node, is_sum_of_two))
    return {};
  SumOfTerms sum;
  add_terms(graph, node, 1, sum);
  const bool is_shorter =
      sum.n_numbers > 1 || sum.terms.size() + static_cast<std::size_t>(sum.n_numbers) <
                               static_cast<std::size_t>(sum.n_leaves);
  if (!is_shorter || sum.terms.empty() || sum.terms.size() > kMostTerms) return {};
  if (sum.n_leaves > kMostLeaves) return {};
  for (const Term& term : sum.terms) {
    if (term.times == 0 || !is_as_wide(term.value, whole)) return {};
  }
  Variable result = multiple(sum.terms[0], 1);
  for (std::size_t i = 1; i < sum.terms.size(); ++i) {
    const bool is_taken_off = sum.terms[i].times < 0;
    const Variable term = multiple(sum.terms[i], is_taken_off ? -1 : 1);
    result = is_taken_off ? ops::sub(result, term) : ops::add(result, term);
  }
  if (sum.n_numbers > 0) result = ops::add(result, number_like(sum.number, result));
  return if_it_fits(node, result);
}

struct Product {
  std::vector<std::pair<Variable, bool>> factors;  // and whether it divides
  double number = 1;
  int n_numbers = 0;
};

bool is_ordinary(double number, DType dtype) {
  return real_of(dtype) == DType::float32 ? std::isnormal(static_cast<float>(number))
                                          : std::isnormal(number);
}

void add_factors(const FunctionGraph& graph, const Apply& node, bool divides, Product& product,
                 int depth = 0) {
  for (const std::size_t i : {std::size_t{0}, std::size_t{1}}) {
    const Variable& v = node.input(i);
    const bool below = divides != (i == 1 && is_plain(node, ScalarOp::div));
    const Apply inner = v.owner();
    if (product.factors.size() > kMostTerms || product.n_numbers > kMostLeaves) return;
    if (depth < kDeepest && is_product(inner) && is_inner(graph, v, node)) {
      add_factors(graph, inner, below, product, depth + 1);
    } else if (const double number = number_or_nan(v); is_ordinary(number, v.dtype())) {
      product.number = below ? product.number / number : product.number * number;
      ++product.n_numbers;
    } else {
      product.factors.emplace_back(v, below);
    }
  }
}

Replacements collect_product(const FunctionGraph& graph, const Apply& node) {
  const Variable& whole = node.output(0);
  if (!is_product(node) || !is_inexact(whole.dtype()) || is_part(graph, node, is_product))
    return {};
  Product product;
  add_factors(graph, node, false, product);
  if (product.n_numbers < 2 || !is_ordinary(product.number, whole.dtype())) return {};
  if (product.n_numbers > kMostLeaves) return {};
  if (product.factors.empty() || product.factors.size() > kMostTerms || product.factors[0].second) {
    return {};
  }
  Variable result = product.factors[0].first;
  for (std::size_t i = 1; i < product.factors.size(); ++i) {
    const auto& [v, divides] = product.factors[i];
    result = divides ? ops::div(result, v) : ops::mul(result, v);
  }
  if (product.number != 1) result = ops::mul(result, number_like(product.number, result));
  return if_it_fits(node, result);
}

}  // namespace

RewriteResult collect_terms(FunctionGraph& graph, const RewriteHints&) {
  const NodeRewrite rules[] = {{"collect_terms", collect_sum}, {"collect_terms", collect_product}};
  return walk(graph, rules, WalkOrder::outputs_first);
}

}  // namespace palimpsest
