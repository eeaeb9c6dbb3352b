// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include "palimpsest/graph/op.hpp"
#include "palimpsest/ops/parameters.hpp"

namespace palimpsest::ops {

/// Inputs values, column, row_start and x (b.., columns): y (b.., rows), the product of a sparse
/// matrix by rows. `adjoint`: inputs .., y (b.., rows), output (b.., columns).
class SparseProduct final : public Declared<SparseProduct> {
 public:
  SparseProduct(index_t columns, bool adjoint) : columns_(columns), adjoint_(adjoint) {}
  bool is_adjoint() const { return adjoint_; }
  Apply make_node(std::span<const Variable> inputs) const override;
  std::vector<Extents> infer_shapes(const Apply&, ExtentsSpan inputs) const override;
  Linearity linear_in(const Apply& apply, int in) const override;
  std::vector<Variable> pullback(const Apply& apply, CotangentSpan cotangents) const override;
  bool can_fail() const override { return true; }
  void run(RunContext& context) const override;
  static constexpr auto declaration() {
    return declare("Sparse", field("columns", &SparseProduct::columns_),
                   named<SparseProduct, bool>(&SparseProduct::adjoint_,
                                              {{"Product", false}, {"Adjoint", true}}));
  }

 private:
  index_t columns_;
  bool adjoint_;
};

/// The matrix with these values times the last axis of x, or its adjoint. The result has the
/// promoted dtype; real values stay real.
Variable sparse_product(const Variable& values, const Variable& column, const Variable& row_start,
                        const Variable& x, index_t columns, bool adjoint = false);

}  // namespace palimpsest::ops
