// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/rewrite/passes/fusion/weigh_spectra.hpp"

#include "palimpsest/ops/transforms/fft_op.hpp"
#include "palimpsest/ops/transforms/weighted_fft_op.hpp"
#include "palimpsest/rewrite/prelude.hpp"

namespace palimpsest {
namespace {

// A product of two arrays as they are, conversions aside.
bool is_product(const Apply& node) {
  const auto* const op = op_of<ops::Elementwise>(node);
  return op && !op->is_in_place() && op->scalar_op() == ScalarOp::mul && node.input_count() == 2 &&
         node.output_count() == 1;
}

Replacements weigh_spectrum(const FunctionGraph& graph, const Apply& node) {
  const auto* const back = op_of<ops::Fft>(node);
  if (!back) return {};
  const Variable& weighed = node.input(0);
  if (!is_private_to(graph, weighed, node) || weighed.is_indestructible()) return {};
  const Apply product = weighed.owner();
  if (!is_product(product)) return {};
  for (const std::size_t i : {std::size_t{0}, std::size_t{1}}) {
    const Variable &spectrum = product.input(i), &weights = product.input(1 - i);
    const auto* const there = op_of<ops::Fft>(spectrum);
    if (!there || !there->is_opposite_of(*back) || weights == spectrum) continue;
    if (!is_private_to(graph, spectrum, product) || spectrum.is_indestructible()) continue;
    if (!ops::WeightedFft::takes(spectrum.type(), weights.type())) continue;
    const ops::WeightedFftParameters both{there->values(), back->scale()};
    const Variable inputs[] = {spectrum.owner().input(0), weights};
    return if_it_fits(node,
                      std::make_shared<const ops::WeightedFft>(both)->make_node(inputs).output(0));
  }
  return {};
}

}  // namespace

RewriteResult weigh_spectra(FunctionGraph& graph, const RewriteHints&) {
  const NodeRewrite rule{"weigh_spectra", weigh_spectrum};
  return walk(graph, {&rule, 1});
}

}  // namespace palimpsest
