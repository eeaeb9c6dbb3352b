// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "palimpsest/base/api.hpp"
#include "palimpsest/graph/variable.hpp"
#include "palimpsest/linop/core/total.hpp"
#include "palimpsest/named/dims.hpp"

namespace PALIMPSEST_API palimpsest {

/// The sum over all axes but those of a batch, which come out in its order.
Variable sum_besides(const Variable& terms, const Axes& batch_axes);

/// The vectors of one kind in a solver: their type, the names of their axes, and which of these are
/// the batch. Numbers of a solver (inner products, step sizes) have the shape of the batch, in the
/// order in which the batch names its dimensions; without a batch they have no axes.
class Space {
 public:
  Space() = default;
  /// Errors   ShapeError "batch": a dimension of the batch is not in `dims`
  explicit Space(TensorType type, Dims dims = {"..."}, const Dims& batch = {});

  /// The same space, for the vectors on one side of an operator: if several processes hold parts of
  /// them, inner products are summed over the processes.
  Space of(const NamedLinop& A, VectorSide side) const;
  /// The same space, for vectors of another type with the same names.
  Space of_type(TensorType type) const;

  const TensorType& type() const { return type_; }
  const Dims& dims() const { return dims_; }
  /// The axes of the batch, counted from the front, in the order of the batch.
  const Axes& batch_axes() const { return batch_axes_; }
  /// A real number for each element of the batch, in the precision of the vectors.
  TensorType number_type() const;

  /// sum of conj(a) b over all axes but those of the batch; complex for complex vectors.
  Variable dot(const Variable& a, const Variable& b) const;
  /// The real part of dot(a, b).
  Variable real_dot(const Variable& a, const Variable& b) const;
  /// sum of |a|^2, real.
  Variable norm2(const Variable& a) const;
  /// A number with axes of extent 1 in the place of the vectors' axes outside the batch, so that it
  /// broadcasts against them. Without a batch the number itself.
  Variable spread(const Variable& number) const;
  /// The sum over all processes of a number that each has computed from its part of a vector; the
  /// number itself where vectors are whole.
  Variable total(const Variable& number) const;
  /// The same for a known number. All processes call it.
  double total(double number) const;
  /// True if each process has a part of the vectors.
  bool is_in_parts() const { return is_in_parts_; }
  /// The dimensions that processes hold in parts.
  Dims cut_dims() const;

 private:
  TensorType type_;
  Dims dims_;
  Axes batch_axes_;
  NamedLinop spread_by_;  // undefined: vectors are whole
  VectorSide side_ = VectorSide::input;
  bool is_in_parts_ = false;
};

}  // namespace palimpsest
