// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/linop/add.hpp"

#include <algorithm>

#include "palimpsest/base/config.hpp"
#include "palimpsest/linop/builtin_types.hpp"
#include "palimpsest/linop/container.hpp"
#include "palimpsest/named/matching.hpp"
#include "palimpsest/ops/elementwise.hpp"

namespace palimpsest {
namespace {

// Sums in the order of the children. A Zero adds nothing, unless there is nothing else.
Variable sum_of(const NamedLinop& A, const std::vector<NamedLinop>& children, const Variable& x) {
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

std::vector<NamedLinop> adjoints(const NamedLinop& A) {
  std::vector<NamedLinop> result;
  for (const NamedLinop& child : A.linops()) result.push_back(child.H());
  return result;
}

Variable add_fn(const NamedLinop& A, const Variable& x) { return sum_of(A, A.linops(), x); }
Variable add_adj_fn(const NamedLinop& A, const Variable& y) { return sum_of(A, adjoints(A), y); }

NamedLinop add_adjoint(const NamedLinop& A) {
  const NamedLinop made = make_container(A.type(), adjoints(A));
  const DimMap recorded = A.recorded_sizes();
  return recorded.empty() ? made : made.with_sizes(recorded);
}

void check_shapes(const std::vector<NamedLinop>& children) {
  for (std::size_t i = 1; i < children.size(); ++i) {
    if (children[i].shape() == children[0].shape()) continue;
    throw ShapeError("[Add[" + std::to_string(i) + "]/" + children[i].name() +
                     "] Add needs equal shapes: got " + children[i].shape().str() + ", expected " +
                     children[0].shape().str());
  }
}

// Makes every child's wildcards as definite as those of its neighbour allow, until nothing changes.
void resolve(std::vector<NamedLinop>& children) {
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t i = 0; i + 1 < children.size(); ++i) {
      NamedLinop &a = children[i], &b = children[i + 1];
      const auto make_definite = [&](NamedLinop& one, const NamedLinop& other) {
        const Dims input = resolve_wildcards(one.ishape(), other.ishape());
        if (input != one.ishape()) {
          one.set_ishape(input);
          changed = true;
        }
        const Dims output = resolve_wildcards(one.oshape(), other.oshape());
        if (output != one.oshape()) {
          one.set_oshape(output);
          changed = true;
        }
      };
      make_definite(a, b);
      make_definite(b, a);
    }
  }
}

NamedShape assemble_add(std::vector<NamedLinop>& children, const NamedShape* wanted) {
  expect_children("Add", children);
  for (NamedLinop& child : children) {
    child = child.copy();
    if (!wanted) continue;
    if (child.ishape() != wanted->ishape()) child.set_ishape(wanted->ishape());
    if (child.oshape() != wanted->oshape()) child.set_oshape(wanted->oshape());
  }
  check_shapes(children);
  if (config().shape_inference) resolve(children);
  check_sizes("Add", children);
  return NamedShape(children[0].ishape(), children[0].oshape());
}

std::optional<index_t> add_size(const NamedLinop& A, const ND& d) {
  return common_size(A.linops(), d);
}

}  // namespace

const LinopType& linop_types::add() {
  static const LinopType type{
      .name = "Add",
      .functions = {.fn = add_fn, .adj_fn = add_adj_fn, .size = add_size},
      .adjoint = add_adjoint,
      .assemble = assemble_add,
  };
  return type;
}

NamedLinop Add(std::vector<NamedLinop> linops) {
  return make_container(linop_types::add(), std::move(linops));
}

}  // namespace palimpsest
