// SPDX-License-Identifier: Apache-2.0
// Numbers that follow from their positions: Arange, Eye, random numbers and their keys.
#include <fmt/format.h>

#include <array>

#include "palimpsest/lower/kernel_writer.hpp"
#include "palimpsest/ops/create/create_op.hpp"
#include "palimpsest/ops/create/random_op.hpp"

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

// Writes `seed` and `stream`, the words of a key.
void load_key(KernelWriter& writer, Nest& nest, std::size_t p, const Piece& key) {
  writer.line(fmt::format("const u64 seed = {};", nest.load(p, DType::uint64)));
  writer.line(
      fmt::format("const u64 stream = {};",
                  nest.load(p, DType::uint64, fmt::format(" + {}", writer.integer(key.step(0))))));
}

// The key as an operand of one element.
Piece first_word(const Piece& key) { return part_of(key, {DType::uint64, {}, {}, 0}); }

// A text for a number in [0, 1): the leading bits of a word.
std::string unit_interval(std::string_view word, DType real) {
  return real == DType::float32 ? fmt::format("(f32)({} >> 40) / 16777216.0f", word)
                                : fmt::format("(f64)({} >> 11) / 9007199254740992.0", word);
}

// A text for the number of two words.
std::string drawn(RandomKind kind, DType dtype) {
  const std::string_view type = type_of(dtype);
  const std::string_view part = type_of(real_of(dtype));
  if (kind == RandomKind::uniform) {
    const std::string first = unit_interval("low", real_of(dtype));
    if (!is_complex(dtype)) return first;
    return fmt::format("{}_({}, {})", type, first, unit_interval("high", real_of(dtype)));
  }
  if (!is_complex(dtype)) return fmt::format("({})(radius * cos(angle))", type);
  return fmt::format(
      "{}_(({})(radius / 1.41421356237309504880 * cos(angle)), ({})(radius / "
      "1.41421356237309504880 * sin(angle)))",
      type, part, part);
}

std::optional<DeviceStep> lower_random(const LowerRequest& request, const ops::Random& op) {
  DeviceStep step;
  const Piece key = input_pieces(request, step, 1)[0], out = output_pieces(request)[0];
  const DType dtype = out.layout.dtype;
  KernelWriter writer("random", op.name());
  const std::string word = writer.numbers().helper("random_word");
  Nest nest(writer, out.layout.extents,
            {out, with_rank(first_word(key), out.layout.extents.size())},
            std::array{Nest::kNumber});
  load_key(writer, nest, 1, key);
  const std::string number = "(u64)" + nest.wide_position(0);
  writer.line(fmt::format("const u64 low = {}(seed, stream, {}, 0);", word, number));
  if (op.kind() == RandomKind::bits) {
    nest.store(0, "low", DType::uint64);
  } else {
    writer.line(fmt::format("const u64 high = {}(seed, stream, {}, 1);", word, number));
    if (op.kind() == RandomKind::normal) {
      writer.line(fmt::format("const f64 radius = sqrt(-2.0 * log(1.0 - {}));",
                              unit_interval("low", DType::float64)));
      writer.line(fmt::format("const f64 angle = 6.28318530717958647692 * ({});",
                              unit_interval("high", DType::float64)));
    }
    writer.line(fmt::format("const {} value = {};", type_of(dtype), drawn(op.kind(), dtype)));
    nest.store(0, "value", dtype);
  }
  if (!nest.add_to(step)) return std::nullopt;
  return step;
}

std::optional<DeviceStep> lower_integers(const LowerRequest& request,
                                         const ops::RandomIntegers& op) {
  if (op.can_fail()) return std::nullopt;  // the host looks at the bounds
  DeviceStep step;
  const Piece key = input_pieces(request, step, 1)[0], out = output_pieces(request)[0];
  const auto bound = [&](std::size_t i) {
    return static_cast<std::uint64_t>(request.node.input(i).constant_value().item<index_t>());
  };
  const std::uint64_t first = bound(1), range = bound(2) - first;
  KernelWriter writer("integers", op.name());
  const std::string word = writer.numbers().helper("random_word");
  const std::string high = writer.numbers().helper("multiply_high");
  Nest nest(writer, out.layout.extents,
            {out, with_rank(first_word(key), out.layout.extents.size())},
            std::array{Nest::kNumber});
  load_key(writer, nest, 1, key);
  const std::string low = writer.integer(static_cast<std::int64_t>(first));
  const std::string n = writer.integer(static_cast<std::int64_t>(range));
  writer.line(
      fmt::format("const u64 bits = {}(seed, stream, (u64){}, 0);", word, nest.wide_position(0)));
  writer.line(fmt::format("const u64 value = (u64){} + ({} == 0 ? bits : {}(bits, (u64){}));", low,
                          n, high, n));
  nest.store(0, "value", DType::uint64);
  if (!nest.add_to(step)) return std::nullopt;
  return step;
}

// Keys number first, first + 1, .. that follow from one, a row each. An item reads the key before
// it writes, since the result may lie there.
std::optional<DeviceStep> lower_keys(const LowerRequest& request, RandomKey salt, index_t first) {
  DeviceStep step;
  const Piece key = input_pieces(request, step, 1)[0], out = output_pieces(request)[0];
  const std::size_t last = out.layout.extents.size() - 1;
  Piece rows = out;
  rows.layout.extents[last] = 1;
  KernelWriter writer("keys", request.node.op().name());
  const std::string word = writer.numbers().helper("random_word");
  Nest nest(writer, rows.layout.extents, {rows, with_rank(first_word(key), last + 1)},
            std::array{Nest::kNumber});
  load_key(writer, nest, 1, key);
  writer.line(fmt::format("const u64 number = (u64){} + (u64){};", writer.integer(first),
                          nest.wide_position(0)));
  for (const std::uint64_t bits : {salt.seed, salt.stream}) {
    const bool is_seed = bits == salt.seed;
    const std::string value = fmt::format("{}(seed ^ (u64){}, stream, number, 0)", word,
                                          writer.integer(static_cast<std::int64_t>(bits)));
    nest.store(0, value, DType::uint64,
               is_seed ? "" : fmt::format(" + {}", writer.integer(out.step(last))));
  }
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
  if (const auto* random = dynamic_cast<const ops::Random*>(&op)) {
    return lower_random(request, *random);
  }
  if (const auto* integers = dynamic_cast<const ops::RandomIntegers*>(&op)) {
    return lower_integers(request, *integers);
  }
  if (const auto* split = dynamic_cast<const ops::SplitKey*>(&op)) {
    return lower_keys(request, kChildSalt, split->first());
  }
  if (dynamic_cast<const ops::NextKey*>(&op) != nullptr) return lower_keys(request, kNextSalt, 0);
  return std::nullopt;
}

}  // namespace palimpsest::lower
