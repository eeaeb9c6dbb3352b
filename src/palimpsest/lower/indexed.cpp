// SPDX-License-Identifier: Apache-2.0
// Elements that index arrays name. Index arrays that a run must check stay on the host, which has
// the error to throw.
#include <fmt/format.h>

#include <algorithm>

#include "palimpsest/lower/kernel_writer.hpp"
#include "palimpsest/ops/index/gather_op.hpp"

namespace palimpsest::lower {
namespace {

// A piece on the axes of the result: `places[k]` is the axis of the piece, or -1.
Piece on_axes(const Piece& piece, std::span<const index_t> extents, std::span<const int> places) {
  if (piece.is_number) return piece;
  Piece placed = piece;
  placed.layout.extents = Extents(extents.size(), 1);
  placed.layout.strides = Strides(extents.size());
  for (std::size_t k = 0; k < extents.size(); ++k) {
    if (places[k] < 0) continue;
    const auto axis = static_cast<std::size_t>(places[k]);
    placed.layout.extents[k] = piece.layout.extents[axis];
    placed.layout.strides[k] = piece.layout.strides[axis];
  }
  return placed;
}

}  // namespace

std::optional<DeviceStep> lower_indexed(const LowerRequest& request) {
  const auto* const op = dynamic_cast<const ops::Gather*>(&request.node.op());
  if (op == nullptr || op->can_fail()) return std::nullopt;
  const ops::ArrayIndex& index = op->index();
  DeviceStep step;
  const std::vector<Piece> inputs = input_pieces(request, step);
  const Piece out = output_pieces(request)[0];
  const Extents& extents = out.layout.extents;
  if (element_count(extents) == 0) return step;
  const Piece& x = inputs[0];
  if (x.is_number) return std::nullopt;
  const std::size_t n_points = request.inputs[1].extents.size();
  std::vector<int> of_x(extents.size(), -1), of_points(extents.size(), -1);
  int axis = 0, point = 0;
  for (std::size_t k = 0; k < extents.size(); ++k) {
    if (k >= index.position && k < index.position + n_points) {
      of_points[k] = point++;
      continue;
    }
    while (std::ranges::count(index.axes, axis) > 0) ++axis;
    of_x[k] = axis++;
  }
  std::vector<Piece> pieces{out, on_axes(x, extents, of_x)};
  for (std::size_t d = 1; d < inputs.size(); ++d) {
    pieces.push_back(on_axes(inputs[d], extents, of_points));
  }
  KernelWriter writer("gather", op->name());
  Nest nest(writer, extents, pieces);
  std::string further;
  for (std::size_t d = 0; d < index.axes.size(); ++d) {
    const auto k = static_cast<std::size_t>(index.axes[d]);
    const std::string n = writer.integer(x.layout.extents[k]);
    const std::string given = fmt::format("p{}", d), place = fmt::format("at{}", d);
    writer.line(fmt::format("const i64 {} = {};", given, nest.load(2 + d, DType::int64)));
    std::string value = fmt::format("{} < 0 ? {} + {} : {}", given, given, n, given);
    if (index.wraps) {
      value = fmt::format("{}({}, {})", writer.numbers().function(ScalarOp::mod, DType::int64),
                          given, n);
    }
    writer.line(fmt::format("const i64 {} = {};", place, value));
    further += fmt::format(" + {} * {}", place, writer.integer(x.step(k)));
  }
  const DType dtype = x.layout.dtype;
  nest.store(0, nest.load(1, dtype, further), dtype);
  if (!nest.add_to(step)) return std::nullopt;
  return step;
}

}  // namespace palimpsest::lower
