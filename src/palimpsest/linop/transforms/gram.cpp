// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/linop/transforms/gram.hpp"

#include <algorithm>

#include "palimpsest/linop/core/node.hpp"
#include "palimpsest/ops/elementwise/elementwise.hpp"
#include "palimpsest/ops/products/products.hpp"

namespace palimpsest {
namespace {

bool has(const Extents& labels, index_t label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

bool has_repeated(Extents labels) {
  std::sort(labels.begin(), labels.end());
  return std::adjacent_find(labels.begin(), labels.end()) != labels.end();
}

std::vector<int> as_ints(const Extents& labels) { return {labels.begin(), labels.end()}; }

}  // namespace

Dims summed_dims(const NamedLinop& A) {
  return A.shape().contains("summed") ? A.shape().dims("summed") : Dims();
}

std::optional<GramLabels> gram_labels(const NamedLinop& A) {
  // A weight that was set later is not a Gram weight.
  if (!A.has_param("factor") || (A.has_param("weight") && !A.param("weight").is_derived())) {
    return std::nullopt;
  }
  return GramLabels{.columns = A.attr("gram_columns").as_integers(),
                    .rows = A.attr("gram_rows").as_integers(),
                    .weight = A.attr("w").as_integers(),
                    .summed = A.attr("gram_summed").as_integers(),
                    .names = summed_dims(A),
                    .conjugated = A.attr("gram_conjugated").as_bool()};
}

Attributes gram_attributes(const GramLabels& labels) {
  return {{"gram_columns", Attribute(labels.columns)},
          {"gram_rows", Attribute(labels.rows)},
          {"gram_summed", Attribute(labels.summed)},
          {"gram_conjugated", labels.conjugated}};
}

Variable gram_expression(const GramLabels& labels, const Parameter& factor) {
  const Variable& w = factor.var();
  const Variable gram =
      ops::contract(w, as_ints(labels.rows), w, as_ints(labels.columns), as_ints(labels.weight),
                    {.conj_a = !labels.conjugated, .conj_b = labels.conjugated});
  // Without rows it is a sum of |W|^2.
  return labels.rows == labels.columns ? ops::real(gram) : gram;
}

Parameters derive_gram(const NamedLinop& A) {
  const auto labels = gram_labels(A);
  if (!labels) return {};
  const Parameter& factor = A.param("factor");
  return {
      {"weight",
       Parameter::derived(gram_expression(*labels, factor)).as_trainable(factor.is_trainable())}};
}

void check_gram(const NamedLinop& A) {
  const auto labels = gram_labels(A);
  if (!labels) return;
  const auto fail = [&](const std::string& what) {
    throw ShapeError(who(A) + "Gram labels: " + what + ": got " + to_string(labels->rows) +
                     " and " + to_string(labels->columns) + " -> " + to_string(labels->weight));
  };
  const std::size_t rank = A.param("factor").type().rank();
  if (labels->rows.size() != rank || labels->columns.size() != rank) {
    fail("expected " + std::to_string(rank) + ", one per axis of the factor");
  }
  if (has_repeated(labels->rows) || has_repeated(labels->columns) || has_repeated(labels->weight)) {
    fail("one is there twice");
  }
  for (const Extents* const list : {&labels->rows, &labels->columns, &labels->weight}) {
    for (const index_t label : *list) {
      if (label < 0 || label >= index_t{4 * kMaxRank}) fail("one is out of range");
    }
  }
  for (const index_t label : labels->weight) {
    if (!has(labels->rows, label) && !has(labels->columns, label)) fail("one is of no factor");
  }
  if (labels->summed.size() != labels->names.size()) fail("not one per dimension that is summed");
  for (const index_t label : labels->summed) {
    const bool is_summed =
        has(labels->columns, label) && has(labels->rows, label) && !has(labels->weight, label);
    if (label >= 0 && !is_summed) fail("the label of a summed dimension is not summed");
  }
}

}  // namespace palimpsest
