// SPDX-License-Identifier: Apache-2.0
// Sums of products over labels: Contract, AddContract. Terms are added in the order of the host's
// strided pass; where the host has a matrix product of a library, results differ by rounding.
#include <array>

#include "palimpsest/kernels/matrices/contraction_order.hpp"
#include "palimpsest/lower/sums.hpp"
#include "palimpsest/ops/products/contract_op.hpp"

namespace palimpsest::lower {
namespace {

bool add_contraction(DeviceStep& step, std::string_view what, const Contraction& c, const Piece& a,
                     const Piece& b, const Piece& out) {
  const DType dtype = out.layout.dtype;
  if (a.is_number || b.is_number) return false;
  if (element_count(out.layout.extents) == 0) return true;
  if (element_count(a.layout.extents) == 0 || element_count(b.layout.extents) == 0) {
    return add_copy(step, what, literal(dtype, 0), out);
  }
  const ContractionOrder pass =
      contraction_order(c, view_of(a.layout), view_of(b.layout),
                        {nullptr, dtype, out.layout.extents, out.layout.strides});
  Sum sum;
  sum.term = pass.conj_both    ? Sum::Term::product_of_conj
             : pass.conj_first ? Sum::Term::conj_product
                               : Sum::Term::product;
  sum.b = 1;
  sum.load = sum.accumulate = dtype;
  SumTask task;
  task.order = pass.order;
  task.sums = {sum};
  task.results = {out};
  task.operands = pass.exchanged ? std::vector{b, a} : std::vector{a, b};
  task.load = dtype;
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
  const std::size_t rank = out.layout.extents.size();
  const Piece product = scratch_piece(step, dtype, out.layout.extents);
  if (!add_contraction(step, op.name(), op.contraction(), inputs[2], inputs[3], product)) return {};
  const std::array sources{inputs[0], with_rank(inputs[1], rank), product,
                           with_rank(inputs[4], rank)};
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
