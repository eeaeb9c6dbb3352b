// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include "palimpsest/graph/variable.hpp"
#include "palimpsest/linop/core/named_linop.hpp"

// The dimensions of a Dense by their labels: small integers, one per dimension of the contraction.
// kRun stands for the axes that an ellipsis in both input and output takes.
namespace palimpsest {

using DenseLabels = Extents;
constexpr index_t kDenseRun = -1;

bool has_label(const DenseLabels& labels, index_t label);

/// The contraction of an instance as it maps its own input to its own output.
struct DenseRoles {
  explicit DenseRoles(const NamedLinop& A);
  /// The labels of the weight without those that stretch.
  DenseLabels fixed() const;
  /// Greater than all labels.
  index_t first_free() const;

  DenseLabels w, in, out, stretch;
  bool conjugated;
};

/// A Dense with these labels and, behind its own, these attributes. The shape has `weightshape`;
/// the parameters contain `weight`, or those that it is computed from.
NamedLinop make_dense(NamedShape shape, Parameters parameters, const DenseLabels& w,
                      const DenseLabels& in, const DenseLabels& out, const DenseLabels& stretch,
                      bool conjugated, Attributes further = {});

/// A Dense over the last axes of x, for all that stand before them, though its shape names no
/// batch: one contraction.
Variable dense_over_batch(const NamedLinop& A, const Variable& x);

}  // namespace palimpsest
