// SPDX-License-Identifier: Apache-2.0
// Elementwise programs.
#include "palimpsest/lower/kernel_writer.hpp"
#include "palimpsest/ops/elementwise/elementwise_op.hpp"

namespace palimpsest::lower {

std::optional<DeviceStep> lower_program(const LowerRequest& request) {
  const auto* const op = dynamic_cast<const ops::Elementwise*>(&request.node.op());
  if (op == nullptr || !has_texts(op->program())) return std::nullopt;
  DeviceStep step;
  const std::vector<Piece> sources = input_pieces(request, step);
  if (!add_map(step, op->name(), op->program(), sources, output_pieces(request))) {
    return std::nullopt;
  }
  return step;
}

}  // namespace palimpsest::lower
