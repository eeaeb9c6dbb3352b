// SPDX-License-Identifier: Apache-2.0
// Ops that reduce: Reduce, FusedReduce, Norm2, ElementwiseSums, ArgReduce.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "palimpsest/lower/sums.hpp"
#include "palimpsest/ops/elementwise/elementwise_sums.hpp"
#include "palimpsest/ops/products/contract_op.hpp"
#include "palimpsest/ops/reduce/reduce_op.hpp"

namespace palimpsest::lower {
namespace {

ScalarOp combining(ReduceOp op) {
  switch (op) {
    case ReduceOp::sum:
    case ReduceOp::any:
      return ScalarOp::add;
    case ReduceOp::prod:
    case ReduceOp::all:
      return ScalarOp::mul;
    case ReduceOp::max:
      return ScalarOp::maximum;
    case ReduceOp::min:
      return ScalarOp::minimum;
  }
  throw InternalError("[lower] not a reduction");
}

// The layout of the result with stride 0 along the reduced axes.
Layout spread(const Layout& out, std::span<const index_t> extents, const Axes& axes) {
  Layout wide{out.dtype, Extents(extents), Strides(extents.size()), 0};
  std::size_t kept = 0;
  for (std::size_t k = 0; k < extents.size(); ++k) {
    if (!std::ranges::binary_search(axes, static_cast<index_t>(k))) {
      wide.strides[k] = out.strides[kept++];
    }
  }
  return wide;
}

// Extents of inputs that broadcast against one another.
Extents common_extents(std::span<const Layout> inputs) {
  Extents extents(inputs[0].extents.size(), 1);
  for (const Layout& layout : inputs) {
    for (std::size_t k = 0; k < extents.size(); ++k) {
      if (layout.extents[k] != 1) extents[k] = layout.extents[k];
    }
  }
  return extents;
}

// Of an array that is not stored: from bytes to elements.
void count_in_elements(ReductionOrder& order, DType dtype) {
  const auto item = static_cast<index_t>(item_size(dtype));
  order.offsets[1] /= item;
  for (auto* const axes : {&order.kept, &order.reduced}) {
    for (ReductionOrder::Axis& axis : *axes) axis.steps[1] /= item;
  }
}

// The value of a reduction of no elements.
double identity_of(ReduceOp op) {
  constexpr double kLimit = std::numeric_limits<double>::infinity();
  if (op == ReduceOp::max) return -kLimit;
  if (op == ReduceOp::min) return kLimit;
  return op == ReduceOp::prod || op == ReduceOp::all ? 1 : 0;
}

std::optional<DeviceStep> lower_reduce(const LowerRequest& request, ReduceOp op, const Axes& axes,
                                       const ElementwiseProgram* program) {
  const Layout& out = request.outputs[0];
  DeviceStep step;
  SumTask task{.order = {},
               .sums = {{.combine = combining(op), .load = out.dtype, .accumulate = out.dtype}},
               .results = output_pieces(request),
               .operands = input_pieces(request, step),
               .load = out.dtype,
               .program = program};
  const std::string what = request.node.op().name();
  Extents extents = common_extents(request.inputs);
  if (element_count(out.extents) == 0) return step;
  if (element_count(extents) == 0) {
    if (!add_copy(step, what, literal(out.dtype, identity_of(op)), task.results[0])) return {};
    return step;
  }
  const ReduceLeaf leaf = reduce_leaf(op, out.dtype);
  const Layout to = spread(out, extents, axes);
  Layout from = task.operands[0].layout;
  if (program != nullptr) {
    from = Layout::dense(program->dtype_of_register(program->outputs()[0]), extents);
    task.converts = true;
    task.extents = extents;
  } else if (task.operands[0].is_number) {
    return std::nullopt;
  }
  const ConstView operand = view_of(from);
  task.order = reduction_order(leaf, {&operand, 1}, {nullptr, out.dtype, to.extents, to.strides});
  if (program != nullptr) count_in_elements(task.order, from.dtype);
  if (!add_sums(step, what, task)) return std::nullopt;
  return step;
}

std::optional<DeviceStep> lower_norm2(const LowerRequest& request) {
  const Layout& out = request.outputs[0];
  DeviceStep step;
  SumTask task{.order = {},
               .sums = {},
               .results = output_pieces(request),
               .operands = input_pieces(request, step)};
  const Layout& x = task.operands[0].layout;
  const std::string what = request.node.op().name();
  if (task.operands[0].is_number) return std::nullopt;
  if (element_count(x.extents) == 0) {
    if (!add_copy(step, what, literal(out.dtype, 0), task.results[0])) return {};
    return step;
  }
  task.load = is_complex(x.dtype) ? complex_of(out.dtype) : out.dtype;
  task.sums = {{.term = Sum::Term::norm2, .load = task.load, .accumulate = out.dtype}};
  const Strides still(x.extents.size());
  const ConstView operand = view_of(x);
  task.order =
      reduction_order(norm2_leaf(task.load), {&operand, 1}, {nullptr, out.dtype, x.extents, still});
  if (!add_sums(step, what, task)) return std::nullopt;
  return step;
}

std::optional<DeviceStep> lower_elementwise_sums(const LowerRequest& request,
                                                 const ops::ElementwiseSums& op) {
  if (!op.filtered().empty()) return std::nullopt;
  DeviceStep step;
  SumTask task{.order = {},
               .sums = {},
               .results = {},
               .operands = input_pieces(request, step),
               .program = &op.program(),
               .extents = common_extents(request.inputs)};
  const std::vector<Piece> outputs = output_pieces(request);
  const auto n_arrays = static_cast<std::ptrdiff_t>(op.n_arrays());
  task.arrays.assign(outputs.begin(), outputs.begin() + n_arrays);
  task.results.assign(outputs.begin() + n_arrays, outputs.end());
  for (const SumOfOutputs& sum : op.sums()) {
    const int r = op.program().outputs()[static_cast<std::size_t>(sum.a)];
    Sum made{.a = sum.a,
             .b = sum.b,
             .load = op.program().dtype_of_register(r),
             .accumulate = sum_dtype(sum, op.program())};
    made.term = sum.kind == SumOfOutputs::Kind::norm2          ? Sum::Term::norm2
                : sum.kind == SumOfOutputs::Kind::product      ? Sum::Term::product
                : sum.kind == SumOfOutputs::Kind::conj_product ? Sum::Term::conj_product
                                                               : Sum::Term::element;
    task.sums.push_back(made);
  }
  const std::string what = request.node.op().name();
  const index_t n = element_count(task.extents);
  if (n == 0) {
    for (const Piece& result : task.results) {
      if (!add_copy(step, what, literal(result.layout.dtype, 0), result)) return std::nullopt;
    }
    return step;
  }
  task.order.terms = n;
  task.order.chunk = chunk_of_terms(n, 1);
  task.order.chunks = (n + task.order.chunk - 1) / task.order.chunk;
  task.order.reduced = {{n, {0, 1, 0}}};
  if (!add_sums(step, what, task)) return std::nullopt;
  return step;
}

// The layout along some axes.
Layout along(const Layout& layout, const Axes& axes, bool others) {
  Layout part{layout.dtype, {}, {}, 0};
  for (std::size_t k = 0; k < layout.extents.size(); ++k) {
    if (std::ranges::binary_search(axes, static_cast<index_t>(k)) == others) continue;
    part.extents.push_back(layout.extents[k]);
    part.strides.push_back(layout.strides[k]);
  }
  return part;
}

// Writes the positions of `index` along the axes of pieces, and texts for their offsets.
std::vector<std::string> offsets_at(KernelWriter& w, std::string_view index, std::string_view stem,
                                    std::span<const Piece> pieces) {
  std::vector<NestAxis> axes = merged_axes(pieces[0].layout.extents, pieces);
  std::ranges::reverse(axes);
  Extents extents;
  for (const NestAxis& axis : axes) extents.push_back(axis.extent);
  const std::vector<std::string> places = w.positions(index, extents, stem);
  std::vector<std::string> offsets(pieces.size());
  for (std::size_t a = 0; a < axes.size(); ++a) {
    for (std::size_t p = 0; p < pieces.size(); ++p) {
      const auto item = static_cast<index_t>(item_size(pieces[p].layout.dtype));
      offsets[p] += w.offset(places[a], axes[a].steps[p], item);
    }
  }
  return offsets;
}

// A group has an output: its items look at terms each, and then agree. Of equal terms the first one
// is found, of NaNs too.
std::optional<DeviceStep> lower_arg_reduce(const LowerRequest& request, const ops::ArgReduce& op) {
  constexpr index_t kMost = std::numeric_limits<std::int32_t>::max() / 2;
  DeviceStep step;
  const Piece x = input_pieces(request, step)[0], out = output_pieces(request)[0];
  const DType dtype = x.layout.dtype;
  const index_t outputs = element_count(out.layout.extents);
  if (outputs == 0) return step;
  const Piece kept = part_of(x, along(x.layout, op.axes(), true));
  const Piece reduced = part_of(x, along(x.layout, op.axes(), false));
  const index_t terms = element_count(reduced.layout.extents);
  const bool fits = terms > 0 && terms <= kMost && outputs <= kMost;
  if (x.is_number || is_complex(dtype) || !fits) return std::nullopt;
  KernelWriter w("arg", op.name());
  const std::string from = w.piece(x), to = w.piece(out);
  const std::string_view type = type_of(dtype);
  const std::string better =
      w.numbers().function(op.reduce_op() == ReduceOp::max ? ScalarOp::gt : ScalarOp::lt, dtype);
  const std::string is_nan = w.numbers().function(ScalarOp::isnan, dtype);
  const auto wins = [&](std::string_view a, std::string_view b) {
    return fmt::format("(!{}({}) && ({}({}) || {}({}, {})))", is_nan, b, is_nan, a, better, a, b);
  };
  w.line(fmt::format("LOCAL {} values[{}];", type, kItems));
  w.line(fmt::format("LOCAL i32 places[{}];", kItems));
  w.open(fmt::format("for (i32 o = (i32)GROUP(0); o < (i32){}; o += (i32)GROUPS(0))",
                     w.integer(outputs)));
  const std::vector<std::string> at_output = offsets_at(w, "o", "k", std::array{out, kept});
  w.line(fmt::format("{} value = 0;", type));
  w.line("i32 place = -1;");
  w.open(fmt::format("for (i32 t = ITEM; t < (i32){}; t += {})", w.integer(terms), kItems));
  const std::string at_term = at_output[1] + offsets_at(w, "t", "q", {&reduced, 1})[0];
  w.line(fmt::format("const {} term = {};", type, w.load(from, x, at_term, dtype)));
  w.open(fmt::format("if (place < 0 || {})", wins("term", "value")));
  w.line("value = term;");
  w.line("place = t;");
  w.close();
  w.close();
  w.line("values[ITEM] = value;");
  w.line("places[ITEM] = place;");
  w.line("BARRIER;");
  w.open(fmt::format("for (i32 half_items = {}; half_items > 0; half_items /= 2)", kItems / 2));
  w.open("if (ITEM < half_items && places[ITEM + half_items] >= 0)");
  w.line(fmt::format("const {} own = values[ITEM], other = values[ITEM + half_items];", type));
  w.line("const i32 before = places[ITEM], after = places[ITEM + half_items];");
  w.open(fmt::format("if ({} || (!{} && after < before))", wins("other", "own"),
                     wins("own", "other")));
  w.line("values[ITEM] = other;");
  w.line("places[ITEM] = after;");
  w.close();
  w.close();
  w.line("BARRIER;");
  w.close();
  w.open("if (ITEM == 0)");
  w.line("const i64 found = places[0];");
  w.store(to, out, at_output[0], "found", DType::int64);
  w.close();
  w.line("BARRIER;");
  w.close();
  if (!w.add_to(step, {outputs, 1, 1})) return std::nullopt;
  return step;
}

}  // namespace

std::optional<DeviceStep> lower_sums(const LowerRequest& request) {
  const Op& op = request.node.op();
  if (const auto* reduce = dynamic_cast<const ops::Reduce*>(&op)) {
    return lower_reduce(request, reduce->reduce_op(), reduce->axes(), nullptr);
  }
  if (const auto* fused = dynamic_cast<const ops::FusedReduce*>(&op)) {
    if (!has_texts(fused->program())) return std::nullopt;
    return lower_reduce(request, fused->reduce().reduce_op(), fused->reduce().axes(),
                        &fused->program());
  }
  if (dynamic_cast<const ops::Norm2*>(&op) != nullptr) return lower_norm2(request);
  if (const auto* arg = dynamic_cast<const ops::ArgReduce*>(&op)) {
    return lower_arg_reduce(request, *arg);
  }
  if (const auto* sums = dynamic_cast<const ops::ElementwiseSums*>(&op)) {
    if (!has_texts(sums->program())) return std::nullopt;
    return lower_elementwise_sums(request, *sums);
  }
  return std::nullopt;
}

}  // namespace palimpsest::lower
