// SPDX-License-Identifier: Apache-2.0
// Sums of products over labels: Contract, AddContract. Terms are added in the order of the host's
// strided pass; where the host has a matrix product of a library, results differ by rounding.
#include <algorithm>
#include <array>

#include "palimpsest/lower/sums.hpp"
#include "palimpsest/ops/products/contract_op.hpp"

namespace palimpsest::lower {
namespace {

// Extents of all labels, each once, in the order of the result, a, b; and the strides of the three
// arrays along them, 0 where a label does not occur.
struct Labels {
  Extents extents;
  Strides a, b, out;
};

Labels labels_of(const Contraction& c, const Layout& a, const Layout& b, const Layout& out) {
  Labels made;
  std::vector<int> names;
  const auto enter = [&](const SmallVector<int, 8>& list, const Layout& layout,
                         Strides Labels::*strides) {
    for (std::size_t i = 0; i < list.size(); ++i) {
      const auto found = std::ranges::find(names, list[i]);
      const auto k = static_cast<std::size_t>(found - names.begin());
      if (found == names.end()) {
        names.push_back(list[i]);
        made.extents.push_back(layout.extents[i]);
        for (Strides* const all : {&made.a, &made.b, &made.out}) all->push_back(0);
      }
      (made.*strides)[k] = layout.strides[i];
    }
  };
  enter(c.out, out, &Labels::out);
  enter(c.a, a, &Labels::a);
  enter(c.b, b, &Labels::b);
  return made;
}

bool add_contraction(DeviceStep& step, std::string_view what, const Contraction& c, const Piece& a,
                     const Piece& b, const Piece& out) {
  const DType dtype = out.layout.dtype;
  if (a.is_number || b.is_number) return false;
  if (element_count(out.layout.extents) == 0) return true;
  const Labels labels = labels_of(c, a.layout, b.layout, out.layout);
  if (element_count(labels.extents) == 0) return add_copy(step, what, literal(dtype, 0), out);
  const bool conj_first = c.conj_a || c.conj_b, conj_both = c.conj_a && c.conj_b;
  SumTask task;
  task.results = {out};
  task.operands = {a, b};
  task.load = dtype;
  std::array operands{ConstView{nullptr, dtype, labels.extents, labels.a},
                      ConstView{nullptr, dtype, labels.extents, labels.b}};
  if (c.conj_b && !c.conj_a) {
    std::swap(task.operands[0], task.operands[1]);
    std::swap(operands[0], operands[1]);
  }
  Sum sum;
  sum.term = conj_both    ? Sum::Term::product_of_conj
             : conj_first ? Sum::Term::conj_product
                          : Sum::Term::product;
  sum.b = 1;
  sum.load = sum.accumulate = dtype;
  task.sums = {sum};
  task.order = reduction_order(product_leaf(dtype, conj_first, conj_both), operands,
                               {nullptr, dtype, labels.extents, labels.out});
  return add_sums(step, what, task);
}

std::optional<DeviceStep> lower_contract(const LowerRequest& request, const ops::Contract& op) {
  DeviceStep step;
  const std::vector<Piece> inputs = input_pieces(request, step);
  const Piece out = output_pieces(request)[0];
  if (!add_contraction(step, op.name(), op.contraction(), inputs[0], inputs[1], out)) return {};
  return step;
}

// beta z + alpha times the product; z is not looked at where beta is 0.
ElementwiseProgram sum_of(DType dtype) {
  ElementwiseProgram program;
  const int z = program.input(dtype), alpha = program.input(dtype);
  const int product = program.input(dtype), beta = program.input(dtype);
  const int scaled = program.apply(ScalarOp::mul, {alpha, product});
  const int both = program.apply(ScalarOp::add, {program.apply(ScalarOp::mul, {beta, z}), scaled});
  program.output(program.apply(ScalarOp::where, {program.cast(beta, DType::bool_), both, scaled}));
  return program;
}

std::optional<DeviceStep> lower_add_contract(const LowerRequest& request,
                                             const ops::AddContract& op) {
  DeviceStep step;
  const std::vector<Piece> inputs = input_pieces(request, step);
  const Piece out = output_pieces(request)[0];
  const DType dtype = out.layout.dtype;
  const auto on_all_axes = [&](Piece piece) {
    if (piece.is_number) return piece;
    const std::size_t rank = out.layout.extents.size();
    piece.layout.extents = Extents(rank, 1);
    piece.layout.strides = Strides(rank);
    return piece;
  };
  const Piece product = scratch_piece(step, dtype, out.layout.extents);
  if (!add_contraction(step, op.name(), op.contraction(), inputs[2], inputs[3], product)) return {};
  const std::array sources{inputs[0], on_all_axes(inputs[1]), product, on_all_axes(inputs[4])};
  if (!add_map(step, op.name(), sum_of(dtype), sources, {&out, 1})) return {};
  return step;
}

}  // namespace

std::optional<DeviceStep> lower_products(const LowerRequest& request) {
  const Op& op = request.node.op();
  if (const auto* contract = dynamic_cast<const ops::Contract*>(&op)) {
    return lower_contract(request, *contract);
  }
  if (const auto* sum = dynamic_cast<const ops::AddContract*>(&op)) {
    return lower_add_contract(request, *sum);
  }
  return std::nullopt;
}

}  // namespace palimpsest::lower
