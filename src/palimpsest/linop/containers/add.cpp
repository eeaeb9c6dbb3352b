// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/linop/containers/add.hpp"

#include "palimpsest/linop/containers/along.hpp"
#include "palimpsest/linop/core/prelude.hpp"
#include "palimpsest/linop/core/threadable.hpp"

namespace palimpsest {
namespace {

// Sums in the order of the children. A Zero is left out if there is another term.
Variable sum_of(const NamedLinop& A, const std::vector<NamedLinop>& children, const Variable& x) {
  const WorkersScope workers(A);
  Variable sum;
  for (std::size_t i = 0; i < children.size(); ++i) {
    const PathScope path(A, i);
    const bool is_zero = &children[i].type() == &linop_types::zero();
    if (is_zero && (sum.defined() || i + 1 < children.size())) continue;
    const Variable term = children[i](x);
    sum = sum.defined() ? sum + term : term;
  }
  return sum;
}

Variable add_fn(const NamedLinop& A, const Variable& x) { return sum_of(A, A.linops(), x); }
Variable add_adj_fn(const NamedLinop& A, const Variable& y) { return sum_of(A, adjoints_of(A), y); }

NamedLinop add_adjoint(const NamedLinop& A) {
  return with_records_of(A, make_container(A.type(), adjoints_of(A), A.attrs()));
}

NamedShape assemble_add(std::vector<NamedLinop>& children, const Assembly& how) {
  expect_children("Add", children);
  for (NamedLinop& child : children) {
    child = child.copy();
    if (!how.wanted) continue;
    if (child.ishape() != how.wanted->ishape()) child.set_ishape(how.wanted->ishape());
    if (child.oshape() != how.wanted->oshape()) child.set_oshape(how.wanted->oshape());
  }
  unify_shapes("Add", children);
  check_summand_sizes("Add", children);
  return NamedShape(children[0].ishape(), children[0].oshape());
}

NamedLinop add_split(const NamedLinop& A, const Tile& tile) {
  return with_recorded(Add(split_summands(A, tile), workers_of(A)), A, tile);
}

std::optional<index_t> add_size(const NamedLinop& A, const ND& d) {
  return size_of_summands(A.linops(), d);
}

}  // namespace

const LinopType& linop_types::add() {
  return PALIMPSEST_LINOP_TYPE(
          .name = "Add",
          .functions = {.fn = add_fn, .adj_fn = add_adj_fn, .split = add_split, .size = add_size},
          .adjoint = add_adjoint, .check = check_workers, .assemble = assemble_add);
}

NamedLinop Add(std::vector<NamedLinop> linops, Workers workers) {
  return make_container(linop_types::add(), std::move(linops), with_workers(workers));
}

}  // namespace palimpsest
