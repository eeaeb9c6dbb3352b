// SPDX-License-Identifier: Apache-2.0
// The normal operator of an operator that has no better one: A^H after A, or the table's normal_fn.
#include "palimpsest/linop/containers/container.hpp"
#include "palimpsest/linop/core/prelude.hpp"

namespace palimpsest {
namespace {

Variable normal_of_child(const NamedLinop& A, const Variable& x) {
  const PathScope path(A, 0);
  return normal_graph(A[0], x);
}

NamedShape assemble_normal(std::vector<NamedLinop>& children, const Assembly& how) {
  expect_children("Normal", children);
  children.resize(1);
  children[0] = children[0].copy();
  if (how.wanted && children[0].ishape() != how.wanted->ishape()) {
    children[0].set_ishape(how.wanted->ishape());
  }
  return NamedShape(children[0].ishape());
}

// Splits a normal operator: a sum of squares over the output, one per part of the output. A cut of
// the input alone, or within A, would leave out products of different parts.
NamedLinop normal_split(const NamedLinop& A, const Tile& tile) {
  const NamedLinop& child = A[0];
  for (const auto& [d, range] : tile) {
    if (!child.oshape().contains(d)) refuse_split(A, d, "its parts meet in cross terms");
  }
  const PathScope path(A, 0);
  return child.split(tile).N();
}

std::optional<index_t> normal_size(const NamedLinop& A, const ND& d) { return A[0].size(d); }

}  // namespace

const LinopType& linop_types::normal() {
  return PALIMPSEST_LINOP_TYPE(.name = "Normal",
                               .functions = {.fn = normal_of_child,
                                             .adj_fn = normal_of_child,
                                             .split = normal_split,
                                             .size = normal_size},
                               .adjoint = own_adjoint, .one_shape = true,
                               .assemble = assemble_normal);
}

}  // namespace palimpsest
