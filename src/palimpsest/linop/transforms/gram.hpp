// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <optional>
#include <vector>

#include "palimpsest/linop/core/named_linop.hpp"

// A Dense whose weight is a Gram weight,
//
//     G[b, r, c] = sum over p of conj(W[b, p, r]) W[b, p, c],
//
// of another weight W, its parameter `factor`; c are the contracted, p the produced, b the batch
// dimensions of W, and r are c under labels of their own. The attributes `gram_columns` and
// `gram_rows` hold the labels of the axes of W in its two roles, `gram_conjugated` says which copy
// is conjugated, and `w` of the Dense holds the labels of G. The shape `summed` names the
// dimensions p, along which the operator is a sum, and `gram_summed` has their labels: -1 for a
// dimension that cannot be cut.
namespace palimpsest {

struct GramLabels {
  Extents columns, rows, weight, summed;
  Dims names;  // of `summed`
  bool conjugated = false;
};
/// The labels of a Gram weight; empty unless the weight is computed from a factor.
std::optional<GramLabels> gram_labels(const NamedLinop& A);
/// Labels as attributes.
Attributes gram_attributes(const GramLabels& labels);

/// The graph of the Gram weight.
Variable gram_expression(const GramLabels& labels, const Parameter& factor);
/// The parameters that follow from others: `weight`, of a factor.
Parameters derive_gram(const NamedLinop& A);
/// Errors   ShapeError: labels that fit neither the factor nor each other
void check_gram(const NamedLinop& A);

/// The names of the dimensions along which the operator is a sum inside.
Dims summed_dims(const NamedLinop& A);

}  // namespace palimpsest
