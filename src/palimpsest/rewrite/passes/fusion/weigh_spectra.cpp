// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/rewrite/passes/fusion/weigh_spectra.hpp"

#include "palimpsest/kernels/reduce/reduce_leaves.hpp"
#include "palimpsest/ops/index/index_op.hpp"
#include "palimpsest/ops/shape/rearrange_op.hpp"
#include "palimpsest/ops/transforms/fft_op.hpp"
#include "palimpsest/ops/transforms/sense_normal_op.hpp"
#include "palimpsest/ops/transforms/weighted_fft_op.hpp"
#include "palimpsest/rewrite/prelude.hpp"

namespace palimpsest {
namespace {

// A product of two arrays as they are, conversions aside.
bool is_two_factor_product(const Apply& node) {
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
  if (!is_two_factor_product(product)) return {};
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

// A slice that undoes a pad with zeros, with a weighed spectrum between them.
Replacements weigh_padded(const FunctionGraph& graph, const Apply& node) {
  const auto* const subtensor = op_of<ops::Subtensor>(node);
  const auto* const weighed = subtensor ? op_of<ops::WeightedFft>(node.input(0)) : nullptr;
  if (!weighed || !weighed->values().zeros.empty()) return {};
  if (!is_private_to(graph, node.input(0), node) || node.input(0).is_indestructible()) return {};
  const Apply step = node.input(0).owner();
  const Variable& padded = step.input(0);
  const auto* const pad = op_of<ops::Pad>(padded);
  if (!pad || pad->value() != 0 || !is_private_to(graph, padded, step)) return {};
  if (padded.is_indestructible()) return {};
  const auto widths = subtensor->index().widths(padded.type().shape);
  if (!widths) return {};
  ops::WeightedFftParameters parameters = weighed->values();
  const Axes& axes = parameters.there.axes;
  for (std::size_t k = 0; k < widths->size(); ++k) {
    const index_t before = pad->before()[k], after = pad->after()[k];
    if ((*widths)[k] != std::pair{before, after}) return {};
    const bool is_transformed =
        std::binary_search(axes.begin(), axes.end(), static_cast<index_t>(k));
    if (before + after != 0 && !is_transformed) return {};
    parameters.zeros.push_back(before + after);
  }
  const Variable inputs[] = {padded.owner().input(0), step.input(1)};
  return if_it_fits(
      node, std::make_shared<const ops::WeightedFft>(parameters)->make_node(inputs).output(0));
}

// A product with coil maps, or its adjoint, the sum of products with their conjugates: its maps.
std::optional<Variable> maps_of(const Apply& node, bool is_adjoint) {
  const auto* const op = op_of<ops::Contract>(node);
  if (!op) return {};
  const Contraction& c = op->contraction();
  const auto image_of = [](const auto& labels) {
    return SmallVector<int, 8>(labels.begin() + 1, labels.end());
  };
  for (const bool first : {true, false}) {
    const auto &maps = first ? c.a : c.b, &other = first ? c.b : c.a;
    const bool is_conjugated = first ? c.conj_a : c.conj_b;
    if (maps.empty() || (first ? c.conj_b : c.conj_a) || is_conjugated != is_adjoint) continue;
    const bool fits = is_adjoint ? other == maps && c.out == image_of(maps)
                                 : other == image_of(maps) && c.out == maps;
    if (fits) return node.input(first ? 0 : 1);
  }
  return {};
}

// More coils are summed in another order.
constexpr index_t kMostCoils = kLeafRows;

Replacements sum_over_coils(const FunctionGraph& graph, const Apply& node) {
  const auto maps = maps_of(node, true);
  if (!maps) return {};
  const Variable& images = node.input(node.input(0) == *maps ? 1 : 0);
  const auto* const weighed = op_of<ops::WeightedFft>(images);
  if (!weighed || !is_private_to(graph, images, node) || images.is_indestructible()) return {};
  const Apply step = images.owner();
  const Variable& products = step.input(0);
  if (!is_private_to(graph, products, step) || products.is_indestructible()) return {};
  const Apply product = products.owner();
  if (maps_of(product, false) != maps) return {};
  const Axes& axes = weighed->values().there.axes;
  const TensorType& type = maps->type();
  if (!type.is_fully_known() || type.shape[0] < 1 || type.shape[0] > kMostCoils) return {};
  if (axes.size() < 2 || axes[0] == 0) return {};
  const Variable& image = product.input(product.input(0) == *maps ? 1 : 0);
  const Variable inputs[] = {image, *maps, step.input(1)};
  return if_it_fits(
      node,
      std::make_shared<const ops::SenseNormal>(weighed->values())->make_node(inputs).output(0));
}

}  // namespace

RewriteResult weigh_spectra(FunctionGraph& graph, const RewriteHints&) {
  const NodeRewrite rules[] = {{"weigh_spectra", weigh_spectrum},
                               {"weigh_padded", weigh_padded},
                               {"sum_over_coils", sum_over_coils}};
  return walk(graph, rules);
}

}  // namespace palimpsest
