// SPDX-License-Identifier: Apache-2.0
// Numbers that follow from their positions: Arange, Eye.
#include <fmt/format.h>

#include <array>

#include "palimpsest/lower/kernel_writer.hpp"
#include "palimpsest/ops/create/create_op.hpp"

namespace palimpsest::lower {
namespace {

std::optional<DeviceStep> lower_arange(const LowerRequest& request, const ops::Arange& op) {
  DeviceStep step;
  const Piece out = output_pieces(request)[0];
  const Extents& extents = out.layout.extents;
  const ops::Arange::Numbers& numbers = op.numbers();
  KernelWriter writer("arange", op.name());
  Nest nest(writer, extents, {out}, std::array{std::size_t{0}});
  if (is_inexact(op.dtype())) {
    const std::string i = nest.position(0);
    std::string value = fmt::format("{} + (f64)({}) * {}", writer.real(numbers.start), i,
                                    writer.real(numbers.step));
    if (numbers.last) {
      value = fmt::format("{} == (i32){} ? {} : {}", i, writer.integer(extents[0] - 1),
                          writer.real(*numbers.last), value);
    }
    writer.line(fmt::format("const f64 value = {};", value));
    nest.store(0, "value", DType::float64);
  } else {
    writer.line(fmt::format("const u64 value = (u64){} + (u64)({}) * (u64){};",
                            writer.integer(numbers.integer_start), nest.position(0),
                            writer.integer(numbers.integer_step)));
    nest.store(0, "value", DType::uint64);
  }
  if (!nest.add_to(step)) return std::nullopt;
  return step;
}

std::optional<DeviceStep> lower_eye(const LowerRequest& request, const ops::Eye& op) {
  DeviceStep step;
  const Piece out = output_pieces(request)[0];
  KernelWriter writer("eye", op.name());
  Nest nest(writer, out.layout.extents, {out}, std::array{std::size_t{0}, std::size_t{1}});
  writer.line(fmt::format("const u8 value = {} - {} == (i32){};", nest.position(1),
                          nest.position(0), writer.integer(op.diagonal())));
  nest.store(0, "value", DType::uint8);
  if (!nest.add_to(step)) return std::nullopt;
  return step;
}

}  // namespace

std::optional<DeviceStep> lower_generators(const LowerRequest& request) {
  const Op& op = request.node.op();
  if (const auto* arange = dynamic_cast<const ops::Arange*>(&op)) {
    return lower_arange(request, *arange);
  }
  if (const auto* eye = dynamic_cast<const ops::Eye*>(&op)) return lower_eye(request, *eye);
  return std::nullopt;
}

}  // namespace palimpsest::lower
