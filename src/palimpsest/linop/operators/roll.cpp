// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/linop/operators/roll.hpp"

#include "palimpsest/linop/core/prelude.hpp"

namespace palimpsest {
namespace {

Variable roll_by_sign(const NamedLinop& A, const Variable& x, index_t sign) {
  std::vector<index_t> shifts;
  for (const index_t s : A.attr("shifts").as_integers()) shifts.push_back(sign * s);
  return ops::roll(x, shifts, from_front(A.attr("axes").as_integers(), x.rank()));
}

Variable roll_fn(const NamedLinop& A, const Variable& x) { return roll_by_sign(A, x, 1); }
Variable roll_adj_fn(const NamedLinop& A, const Variable& y) { return roll_by_sign(A, y, -1); }
NamedLinop roll_split(const NamedLinop& A, const Tile& tile) {
  const Axes axes = A.attr("axes").as_integers();
  return split_besides(A, tile, axes, axes, "it is shifted along it");
}

void check_roll(const NamedLinop& A) {
  const std::size_t got = A.attr("shifts").as_integers().size();
  const std::size_t expected = A.attr("axes").as_integers().size();
  if (got == expected) return;
  throw ValueError(who(A) + "shifts: got " + std::to_string(got) + ", expected " +
                   std::to_string(expected) + ", one for each dimension");
}

}  // namespace

const LinopType& linop_types::roll() {
  return PALIMPSEST_LINOP_TYPE(
          .name = "Roll",
          .functions = {.fn = roll_fn,
                        .adj_fn = roll_adj_fn,
                        .normal_fn = unchanged,
                        .split = roll_split},
          .adj_normal_fn = unchanged, .normal = unitary_normal, .check = check_roll,
          .inverse = [](const NamedLinop& A) { return A.H(); }, .one_shape = true);
}

NamedLinop Roll(Dims dims, Dims over, Extents shifts) {
  Axes axes;
  for (const ND& d : over) axes.push_back(axis_of(dims, d, "Roll"));
  return make_linop(linop_types::roll(), NamedShape(std::move(dims)), {},
                    {{"axes", Attribute(axes)}, {"shifts", Attribute(shifts)}});
}

}  // namespace palimpsest
