// SPDX-License-Identifier: Apache-2.0
// Ops that place elements: copies of views, fills, joins, updates of parts, pads, rolls, choices.
// Each is a few launches that copy a box to a box.
#include <fmt/format.h>

#include <numeric>
#include <utility>

#include "palimpsest/lower/kernel_writer.hpp"
#include "palimpsest/ops/control/control_op.hpp"
#include "palimpsest/ops/create/create_op.hpp"
#include "palimpsest/ops/index/index_op.hpp"
#include "palimpsest/ops/products/contract_op.hpp"
#include "palimpsest/ops/shape/blocks_op.hpp"
#include "palimpsest/ops/shape/rearrange_op.hpp"
#include "palimpsest/ops/shape/shape_op.hpp"

namespace palimpsest::lower {
namespace {

// A step of one output, made of boxes.
class Moves {
 public:
  explicit Moves(const LowerRequest& request)
      : name_(request.node.op().name()),
        sources_(input_pieces(request, step_)),
        out_(output_pieces(request)[0]) {}

  const Piece& source(std::size_t i) const { return sources_[i]; }
  const Piece& out() const { return out_; }
  DeviceStep& step() { return step_; }

  void copy(const Piece& source, const Piece& target) {
    fits_ = fits_ && add_copy(step_, name_, source, target);
  }
  void fill(double value) { copy(literal(out_.layout.dtype, value), out_); }
  void map(const ElementwiseProgram& program, std::span<const Piece> sources, const Piece& target) {
    fits_ = fits_ && add_map(step_, name_, program, sources, {&target, 1});
  }
  std::optional<DeviceStep> done() {
    return fits_ ? std::optional(std::move(step_)) : std::nullopt;
  }

 private:
  std::string name_;
  DeviceStep step_;
  std::vector<Piece> sources_;
  Piece out_;
  bool fits_ = true;
};

// Elements [start, start + count) of an axis.
Piece narrowed(const Piece& piece, std::size_t axis, index_t start, index_t count) {
  Layout layout = piece.layout;
  layout.extents[axis] = count;
  layout.byte_offset = start * layout.strides[axis] * static_cast<index_t>(item_size(layout.dtype));
  return part_of(piece, std::move(layout));
}

// The elements of `source` in row-major order; none if no strides of the target give them in the
// shape of the source.
std::optional<DeviceStep> lower_reshape(Moves moves) {
  const Layout &in = moves.source(0).layout, &to = moves.out().layout;
  if (moves.source(0).is_number) {
    moves.copy(moves.source(0), moves.out());
    return moves.done();
  }
  Strides strides;
  if (!view_strides(to.extents, to.strides, in.extents, strides)) return std::nullopt;
  moves.copy(moves.source(0), part_of(moves.out(), {to.dtype, in.extents, strides, 0}));
  return moves.done();
}

std::optional<DeviceStep> lower_view(const LowerRequest& request, const ops::ViewOp& op) {
  if (dynamic_cast<const ops::Reshape*>(&op) != nullptr) return lower_reshape(Moves(request));
  Moves moves(request);
  const Piece& source = moves.source(0);
  if (dynamic_cast<const ops::Contiguous*>(&op) != nullptr) {
    moves.copy(source, moves.out());
    return moves.done();
  }
  const std::optional<Layout> layout = op.layout_of(source.layout);
  if (!layout || source.is_number) return std::nullopt;
  moves.copy(part_of(source, *layout), moves.out());
  return moves.done();
}

std::optional<DeviceStep> lower_join(const LowerRequest& request, const ops::Join& op) {
  Moves moves(request);
  index_t start = 0;
  for (std::size_t i = 0; i < request.inputs.size(); ++i) {
    const index_t n = request.inputs[i].extents[op.axis()];
    const Piece target = narrowed(moves.out(), op.axis(), start, n);
    start += n;
    // It may have been computed in its place.
    Layout there = request.outputs[0];
    there.extents = target.layout.extents;
    there.byte_offset += target.where.byte_offset;
    const bool is_there =
        request.input_buffers[i] == request.output_buffers[0] && there == request.inputs[i];
    if (!is_there) moves.copy(moves.source(i), target);
  }
  return moves.done();
}

std::optional<DeviceStep> lower_part(const LowerRequest& request, const ops::PartOf& op) {
  Moves moves(request);
  index_t start = 0;
  for (std::size_t i = 1; i <= op.position(); ++i) start += request.inputs[i].extents[op.axis()];
  const index_t n = request.inputs[op.position() + 1].extents[op.axis()];
  if (moves.source(0).is_number) return std::nullopt;
  moves.copy(narrowed(moves.source(0), op.axis(), start, n), moves.out());
  return moves.done();
}

std::optional<DeviceStep> lower_update(const LowerRequest& request,
                                       const ops::UpdateSubtensor& op) {
  if (!has_texts(op.sum())) return std::nullopt;
  Moves moves(request);
  if (!op.in_place()) moves.copy(moves.source(0), moves.out());
  const Piece target = part_of(moves.out(), op.index().layout(moves.out().layout));
  Piece value = moves.source(1);
  if (op.is_buffered() && !value.is_number) {
    const Piece copy = scratch_piece(moves.step(), target.layout.dtype, value.layout.extents);
    moves.copy(value, copy);
    value = copy;
  }
  if (op.kind() == ops::UpdateSubtensor::Kind::set) {
    moves.copy(value, target);
  } else {
    moves.map(op.sum(), std::array{target, value}, target);
  }
  return moves.done();
}

std::optional<DeviceStep> lower_pad(const LowerRequest& request, const ops::Pad& op) {
  Moves moves(request);
  moves.fill(op.value());
  Piece inner = moves.out();
  for (std::size_t k = 0; k < op.before().size(); ++k) {
    inner = narrowed(inner, k, op.before()[k], request.inputs[0].extents[k]);
  }
  moves.copy(moves.source(0), inner);
  return moves.done();
}

// Each rolled axis in two parts: a box for each choice of parts.
std::optional<DeviceStep> lower_roll(const LowerRequest& request, const ops::Roll& op) {
  Moves moves(request);
  const Extents& extents = request.inputs[0].extents;
  if (moves.source(0).is_number || element_count(extents) == 0) {
    moves.copy(moves.source(0), moves.out());
    return moves.done();
  }
  std::vector<std::pair<Piece, Piece>> boxes{{moves.source(0), moves.out()}};
  for (const ops::AxisRoll& roll : op.rolls()) {
    const index_t n = extents[roll.axis], shift = roll.shift_along(n);
    if (shift == 0) continue;
    std::vector<std::pair<Piece, Piece>> parts;
    for (const auto& [from, to] : boxes) {
      parts.emplace_back(narrowed(from, roll.axis, 0, n - shift),
                         narrowed(to, roll.axis, shift, n - shift));
      parts.emplace_back(narrowed(from, roll.axis, n - shift, shift),
                         narrowed(to, roll.axis, 0, shift));
    }
    boxes = std::move(parts);
  }
  for (const auto& [from, to] : boxes) moves.copy(from, to);
  return moves.done();
}

std::optional<DeviceStep> lower_diagonal(const LowerRequest& request, const ops::DiagonalInto& op) {
  Moves moves(request);
  moves.fill(0);
  const std::optional<Layout> target = op.diagonal().layout_of(moves.out().layout);
  moves.copy(moves.source(0), part_of(moves.out(), *target));
  return moves.done();
}

// Takes one of two values; the other may never have been computed.
std::optional<DeviceStep> lower_choice(const LowerRequest& request, const ops::IfElse& op) {
  DeviceStep step;
  const std::vector<Piece> inputs = input_pieces(request, step);
  const std::vector<Piece> outputs = output_pieces(request);
  for (std::size_t k = 0; k < op.count(); ++k) {
    const Piece& out = outputs[k];
    const Extents& extents = out.layout.extents;
    const DType dtype = out.layout.dtype;
    if (element_count(extents) == 0) continue;
    KernelWriter writer("choice", op.name());
    Nest nest(writer, extents,
              {out, inputs[op.then_input(k)], inputs[op.else_input(k)],
               with_rank(inputs[0], extents.size())});
    writer.line("const bool holds = " + nest.load(3, DType::bool_) + " != 0;");
    writer.open("if (holds)");
    nest.store(0, nest.load(1, dtype), dtype);
    writer.close();
    writer.open("if (!holds)");
    nest.store(0, nest.load(2, dtype), dtype);
    writer.close();
    if (!nest.add_to(step)) return std::nullopt;
  }
  return step;
}

// Windows of x behind the batch axes: which one, and then the place in it.
std::optional<DeviceStep> lower_blocks(const LowerRequest& request, const ops::Blocks& op) {
  Moves moves(request);
  if (moves.source(0).is_number) return std::nullopt;
  const Layout& x = moves.source(0).layout;
  const std::size_t n = op.stride().size(), batch = x.extents.size() - n;
  Layout windows{x.dtype, moves.out().layout.extents, Strides(x.extents.size() + n), 0};
  for (std::size_t k = 0; k < x.extents.size(); ++k) {
    windows.strides[k] = k < batch ? x.strides[k] : x.strides[k] * op.stride()[k - batch];
    if (k >= batch) windows.strides[k + n] = x.strides[k];
  }
  moves.copy(part_of(moves.source(0), std::move(windows)), moves.out());
  return moves.done();
}

// Adds up the blocks that cover an element, in row-major order of the blocks.
std::optional<DeviceStep> lower_unblock(const LowerRequest& request, const ops::Blocks& op) {
  DeviceStep step;
  const Piece y = input_pieces(request, step)[0], out = output_pieces(request)[0];
  const Extents& extents = out.layout.extents;
  const std::size_t n = op.stride().size(), batch = extents.size() - n;
  if (y.is_number) return std::nullopt;
  if (element_count(extents) == 0) return step;
  const DType dtype = out.layout.dtype;
  // The kernel walks over blocks, and within them, by itself.
  Layout still{dtype, extents, Strides(extents.size()), 0};
  for (std::size_t k = 0; k < batch; ++k) still.strides[k] = y.layout.strides[k];
  std::vector<std::size_t> axes(n);
  std::iota(axes.begin(), axes.end(), batch);
  KernelWriter writer("unblock", op.name());
  Nest nest(writer, extents, {out, part_of(y, std::move(still))}, axes);
  writer.line(fmt::format("{} sum = {};", type_of(dtype), zero_of(dtype)));
  writer.line("bool is_begun = false;");
  std::string place;
  for (std::size_t d = 0; d < n; ++d) {
    const std::string stride = writer.integer(op.stride()[d]);
    const std::string size = writer.integer(y.layout.extents[batch + n + d]);
    const std::string blocks = writer.integer(y.layout.extents[batch + d]);
    const std::string to_block = writer.integer(y.step(batch + d));
    const std::string within = writer.integer(y.step(batch + n + d));
    const std::string at = fmt::format("p{}", d), m = fmt::format("m{}", d);
    writer.line(fmt::format("const i32 {} = {};", at, nest.position(d)));
    writer.line(fmt::format("const i32 first{} = {} < (i32){} ? 0 : ({} - (i32){}) / (i32){} + 1;",
                            d, at, size, at, size, stride));
    writer.open(fmt::format("for (i32 {} = first{}; {} < (i32){} && {} * (i32){} <= {}; ++{})", m,
                            d, m, blocks, m, stride, at, m));
    place += fmt::format(" + (i64){} * {} + (i64)({} - {} * (i32){}) * {}", m, to_block, at, m,
                         stride, within);
  }
  writer.line(fmt::format("const {} element = {};", type_of(dtype), nest.load(1, dtype, place)));
  writer.line(fmt::format("sum = is_begun ? {}(sum, element) : element;",
                          writer.numbers().function(ScalarOp::add, dtype)));
  writer.line("is_begun = true;");
  for (std::size_t d = 0; d < n; ++d) writer.close();
  nest.store(0, "sum", dtype);
  if (!nest.add_to(step)) return std::nullopt;
  return step;
}

std::optional<DeviceStep> lower_broadcast(const LowerRequest& request) {
  Moves moves(request);
  moves.copy(with_rank(moves.source(0), moves.out().layout.extents.size()), moves.out());
  return moves.done();
}

}  // namespace

std::optional<DeviceStep> lower_moves(const LowerRequest& request) {
  const Op& op = request.node.op();
  if (const auto* view = dynamic_cast<const ops::ViewOp*>(&op)) return lower_view(request, *view);
  if (const auto* join = dynamic_cast<const ops::Join*>(&op)) return lower_join(request, *join);
  if (const auto* part = dynamic_cast<const ops::PartOf*>(&op)) return lower_part(request, *part);
  if (const auto* update = dynamic_cast<const ops::UpdateSubtensor*>(&op)) {
    return lower_update(request, *update);
  }
  if (const auto* pad = dynamic_cast<const ops::Pad*>(&op)) return lower_pad(request, *pad);
  if (const auto* roll = dynamic_cast<const ops::Roll*>(&op)) return lower_roll(request, *roll);
  if (const auto* diagonal = dynamic_cast<const ops::DiagonalInto*>(&op)) {
    return lower_diagonal(request, *diagonal);
  }
  if (const auto* choice = dynamic_cast<const ops::IfElse*>(&op)) {
    return lower_choice(request, *choice);
  }
  if (const auto* blocks = dynamic_cast<const ops::Blocks*>(&op)) {
    return (blocks->is_adjoint() ? lower_unblock : lower_blocks)(request, *blocks);
  }
  if (dynamic_cast<const ops::Alloc*>(&op) != nullptr ||
      dynamic_cast<const ops::BroadcastLike*>(&op) != nullptr) {
    return lower_broadcast(request);
  }
  if (dynamic_cast<const ops::ReshapeTo*>(&op) != nullptr) return lower_reshape(Moves(request));
  return std::nullopt;
}

}  // namespace palimpsest::lower
