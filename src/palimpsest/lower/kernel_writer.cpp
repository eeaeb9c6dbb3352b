// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/lower/kernel_writer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <limits>

#include "palimpsest/base/hash/content_hash.hpp"

namespace palimpsest::lower {
namespace {

// Parameters of 8 bytes: OpenCL promises 1,024 bytes of them.
constexpr std::size_t kMostParameters = 120;
constexpr index_t kMostGroups = 65'535;
constexpr index_t kAlignment = 64;
constexpr std::string_view kName = "@name";

index_t aligned(index_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

LaunchArgument argument(LaunchArgument::Kind kind, int operand) {
  LaunchArgument made;
  made.kind = kind;
  made.operand = operand;
  return made;
}

}  // namespace

index_t Piece::step(std::size_t axis) const {
  if (layout.extents[axis] == 1) return 0;
  return layout.strides[axis] * static_cast<index_t>(item_size(layout.dtype));
}

std::vector<Piece> input_pieces(const LowerRequest& request, DeviceStep& step) {
  return input_pieces(request, step, request.inputs.size());
}

std::vector<Piece> input_pieces(const LowerRequest& request, DeviceStep& step, std::size_t n) {
  std::vector<Piece> pieces;
  for (std::size_t i = 0; i < n; ++i) {
    Layout layout = request.inputs[i];
    layout.byte_offset = 0;
    const auto operand = static_cast<int>(i);
    if (!request.on_host[i]) {
      pieces.push_back({argument(LaunchArgument::Kind::input, operand), std::move(layout)});
    } else if (element_count(layout.extents) == 1) {
      pieces.push_back({argument(LaunchArgument::Kind::number, operand), std::move(layout), true});
    } else {
      LaunchArgument where = argument(LaunchArgument::Kind::constant, 0);
      where.byte_offset = step.constant_bytes;
      step.constants.push_back({operand, step.constant_bytes});
      step.constant_bytes += aligned(byte_count(layout.extents, layout.dtype));
      pieces.push_back({where, Layout::dense(layout.dtype, layout.extents)});
    }
  }
  return pieces;
}

std::vector<Piece> output_pieces(const LowerRequest& request) {
  std::vector<Piece> pieces;
  for (std::size_t k = 0; k < request.outputs.size(); ++k) {
    Layout layout = request.outputs[k];
    layout.byte_offset = 0;
    pieces.push_back(
        {argument(LaunchArgument::Kind::output, static_cast<int>(k)), std::move(layout)});
  }
  return pieces;
}

Piece scratch_piece(DeviceStep& step, DType dtype, Extents extents) {
  LaunchArgument where = argument(LaunchArgument::Kind::scratch, 0);
  where.byte_offset = step.scratch_bytes;
  Layout layout = Layout::dense(dtype, std::move(extents));
  step.scratch_bytes += aligned(byte_count(layout.extents, dtype));
  return {where, std::move(layout)};
}

Piece table_piece(DeviceStep& step, std::vector<index_t> numbers) {
  LaunchArgument where = argument(LaunchArgument::Kind::constant, 0);
  where.byte_offset = step.constant_bytes;
  Layout layout = Layout::dense(DType::int64, {static_cast<index_t>(numbers.size())});
  step.tables.push_back({std::move(numbers), step.constant_bytes});
  step.constant_bytes += aligned(byte_count(layout.extents, layout.dtype));
  return {where, std::move(layout)};
}

Piece literal(DType dtype, double value) {
  Piece made{{}, Layout{dtype, {}, {}, 0}, true};
  made.where.kind = is_inexact(dtype) ? LaunchArgument::Kind::real : LaunchArgument::Kind::integer;
  made.where.real = value;
  made.where.integer = is_inexact(dtype) ? 0 : static_cast<std::int64_t>(value);
  return made;
}

Piece part_of(const Piece& piece, Layout layout) {
  Piece part{piece.where, std::move(layout), piece.is_number};
  part.where.byte_offset += part.layout.byte_offset;
  part.layout.byte_offset = 0;
  return part;
}

Piece with_rank(const Piece& piece, std::size_t rank) {
  if (piece.is_number) return piece;
  Piece wide = piece;
  const std::size_t n_new = rank - piece.layout.extents.size();
  wide.layout.extents = Extents(rank, 1);
  wide.layout.strides = Strides(rank);
  for (std::size_t k = n_new; k < rank; ++k) {
    wide.layout.extents[k] = piece.layout.extents[k - n_new];
    wide.layout.strides[k] = piece.layout.strides[k - n_new];
  }
  return wide;
}

KernelWriter::KernelWriter(std::string_view family, std::string_view what, int items)
    : family_(family), what_(what), items_(items) {}

std::string KernelWriter::piece(const Piece& piece) {
  if (piece.is_number) {
    const std::string name = fmt::format("x{}", n_numbers_++);
    const bool is_real = is_inexact(piece.layout.dtype);
    LaunchArgument value = piece.where;
    for (const std::string_view part : {"", "_im"}) {
      if (!part.empty() && !is_complex(piece.layout.dtype)) break;
      if (!part.empty()) {
        value.real = 0;
        if (value.kind == LaunchArgument::Kind::number)
          value.kind = LaunchArgument::Kind::imaginary;
      }
      parameters_ += fmt::format("{}{} {}{}", parameters_.empty() ? "" : ", ",
                                 is_real ? "f64" : "i64", name, part);
      arguments_.push_back(value);
      ++n_parameters_;
    }
    return name;
  }
  const std::string name = fmt::format("a{}", n_pieces_++);
  parameters_ +=
      fmt::format("{}GLOBAL u8* {}, i64 {}_at", parameters_.empty() ? "" : ", ", name, name);
  arguments_.push_back(piece.where);
  n_parameters_ += 2;
  return name;
}

std::string KernelWriter::integer(std::int64_t value) {
  const std::string name = fmt::format("n{}", n_integers_++);
  parameters_ += fmt::format("{}i64 {}", parameters_.empty() ? "" : ", ", name);
  LaunchArgument made;
  made.integer = value;
  arguments_.push_back(made);
  ++n_parameters_;
  return name;
}

std::string KernelWriter::real(double value) { return piece(literal(DType::float64, value)); }

std::string KernelWriter::offset(std::string_view index, index_t step, index_t item) {
  if (step == 0) return {};
  if (step == item) return fmt::format(" + (i64){} * {}", index, item);
  return fmt::format(" + (i64){} * {}", index, integer(step));
}

std::vector<std::string> KernelWriter::positions(std::string_view index,
                                                 std::span<const index_t> extents,
                                                 std::string_view stem) {
  std::vector<std::string> names(extents.size());
  std::string rest(index);
  for (std::size_t a = extents.size(); a-- > 0;) {
    names[a] = fmt::format("{}{}", stem, a);
    if (a == 0) {
      line(fmt::format("const i32 {} = {};", names[a], rest));
      break;
    }
    const std::string n = integer(extents[a]), next = fmt::format("{}_above{}", stem, a);
    line(fmt::format("const i32 {} = {} % (i32){}, {} = {} / (i32){};", names[a], rest, n, next,
                     rest, n));
    rest = next;
  }
  return names;
}

std::string KernelWriter::load(const std::string& name, const Piece& piece,
                               const std::string& offsets, DType dtype) {
  const DType from = piece.layout.dtype;
  const std::string_view type = type_of(from);
  std::string value;
  if (!piece.is_number) {
    value = fmt::format("*AT({}, {}, {}_at{})", type, name, name, offsets);
  } else if (is_complex(from)) {
    const std::string_view part = type_of(real_of(from));
    value = fmt::format("{}_(({}){}, ({}){}_im)", type, part, name, part, name);
  } else {
    value = fmt::format("({}){}", type, name);
  }
  return numbers_.converted(value, from, dtype);
}

void KernelWriter::store(const std::string& name, const Piece& piece, const std::string& offsets,
                         std::string_view value, DType dtype) {
  const DType to = piece.layout.dtype;
  line(fmt::format("*AT({}, {}, {}_at{}) = {};", type_of(to), name, name, offsets,
                   numbers_.converted(value, dtype, to)));
}

std::vector<std::string> KernelWriter::program(
    const ElementwiseProgram& program, const std::function<std::string(std::size_t)>& input) {
  const auto name = [](int r) { return fmt::format("r{}", r); };
  for (std::size_t i = 0; i < program.inputs().size(); ++i) {
    const int r = program.inputs()[i];
    line(
        fmt::format("const {} {} = {};", type_of(program.dtype_of_register(r)), name(r), input(i)));
  }
  for (const ElementwiseProgram::Instruction& step : program.instructions()) {
    const int first = step.sources[0];
    std::string value;
    if (step.op == ScalarOp::identity) {
      value = numbers_.converted(name(first), program.dtype_of_register(first), step.dtype);
    } else {
      const int typical = step.op == ScalarOp::where ? step.sources[1] : first;
      value = numbers_.function(step.op, program.dtype_of_register(typical)) + "(";
      for (int k = 0; k < arity(step.op); ++k) {
        value += (k == 0 ? "" : ", ") + name(step.sources[static_cast<std::size_t>(k)]);
      }
      value += ")";
    }
    line(fmt::format("const {} {} = {};", type_of(step.dtype), name(step.destination), value));
  }
  std::vector<std::string> outputs;
  for (const int r : program.outputs()) outputs.push_back(name(r));
  return outputs;
}

void KernelWriter::line(std::string_view text) {
  body_.append(static_cast<std::size_t>(2 * depth_), ' ').append(text).append("\n");
}
void KernelWriter::open(std::string_view text) {
  line(fmt::format("{} {{", text));
  ++depth_;
}
void KernelWriter::close() {
  --depth_;
  line("}");
}

bool KernelWriter::add_to(DeviceStep& step, std::array<index_t, 3> groups) {
  if (n_parameters_ > kMostParameters) return false;
  std::string text = fmt::format("// {}\n{}KERNEL({}, {})({}) {{\n{}}}\n", what_, numbers_.text(),
                                 kName, items_, parameters_, body_);
  const std::string kernel =
      fmt::format("{}_{:016x}", family_, content_hash(text.data(), text.size()));
  text.replace(text.find(kName), kName.size(), kernel);
  auto made = std::make_shared<KernelText>();
  *made = {kernel, std::move(text), {kernel}};
  for (index_t& n : groups) n = std::clamp<index_t>(n, 1, kMostGroups);
  step.launches.push_back({std::move(made), groups, items_, std::move(arguments_)});
  return true;
}

bool has_texts(const ElementwiseProgram& program) {
  return std::ranges::all_of(program.instructions(), [&](const auto& step) {
    const int typical = step.sources[step.op == ScalarOp::where ? 1 : 0];
    return step.op == ScalarOp::identity ||
           Numbers::has(step.op, program.dtype_of_register(typical));
  });
}

namespace {

std::vector<NestAxis> axes_of(std::span<const index_t> extents, std::span<const Piece> pieces) {
  std::vector<NestAxis> axes;
  for (std::size_t k = extents.size(); k-- > 0;) {
    if (extents[k] == 1) continue;
    NestAxis axis{extents[k], {}};
    for (const Piece& piece : pieces) axis.steps.push_back(piece.is_number ? 0 : piece.step(k));
    axes.push_back(std::move(axis));
  }
  return axes;
}

std::vector<NestAxis> merged(std::vector<NestAxis> axes) {
  std::vector<NestAxis> made;
  for (NestAxis& axis : axes) {
    bool goes_on = !made.empty();
    for (std::size_t p = 0; goes_on && p < axis.steps.size(); ++p) {
      goes_on = axis.steps[p] == made.back().steps[p] * made.back().extent;
    }
    if (goes_on) {
      made.back().extent *= axis.extent;
    } else {
      made.push_back(std::move(axis));
    }
  }
  return made;
}

}  // namespace

std::vector<NestAxis> nest_of(std::span<const index_t> extents, std::span<const Piece> pieces) {
  std::vector<NestAxis> axes = axes_of(extents, pieces);
  std::ranges::stable_sort(axes, {}, [](const NestAxis& a) { return std::abs(a.steps[0]); });
  return merged(std::move(axes));
}

std::vector<NestAxis> merged_axes(std::span<const index_t> extents, std::span<const Piece> pieces) {
  return merged(axes_of(extents, pieces));
}

Nest::Nest(KernelWriter& writer, std::span<const index_t> extents, std::vector<Piece> pieces,
           std::span<const std::size_t> positions)
    : writer_(writer), pieces_(std::move(pieces)) {
  for (const Piece& piece : pieces_) names_.push_back(writer.piece(piece));
  for (const std::size_t axis : positions) {  // as bytes in a row along the axis
    Layout layout{DType::uint8, Extents(extents), Strides(extents.size()), 0};
    if (axis == kNumber) {
      layout.strides = contiguous_strides(extents);
    } else {
      layout.strides[axis] = 1;
    }
    pieces_.push_back({{}, std::move(layout)});
  }
  offsets_.resize(pieces_.size());
  std::vector<NestAxis> axes = nest_of(extents, pieces_);
  if (axes.empty()) axes.push_back({1, std::vector<index_t>(pieces_.size())});
  for (std::size_t a = axes.size(); a-- > 0;) open(axes[a], a);
  depth_ = axes.size();
}

void Nest::open(const NestAxis& axis, std::size_t a) {
  fits_ = fits_ && axis.extent <= std::numeric_limits<std::int32_t>::max() / 2;
  const std::string i = fmt::format("i{}", a), n = writer_.integer(axis.extent);
  if (a == 0) {
    groups_[0] = (axis.extent + kItems - 1) / kItems;
    writer_.open(
        fmt::format("for (i32 {} = (i32)GROUP(0) * {} + ITEM; {} < (i32){}; {} += "
                    "(i32)GROUPS(0) * {})",
                    i, kItems, i, n, i, kItems));
  } else if (a < 3) {
    groups_[a] = axis.extent;
    writer_.open(fmt::format("for (i32 {} = (i32)GROUP({}); {} < (i32){}; {} += (i32)GROUPS({}))",
                             i, a, i, n, i, a));
  } else {
    writer_.open(fmt::format("for (i32 {} = 0; {} < (i32){}; ++{})", i, i, n, i));
  }
  for (std::size_t p = 0; p < pieces_.size(); ++p) {
    const auto item = static_cast<index_t>(item_size(pieces_[p].layout.dtype));
    offsets_[p] += writer_.offset(i, axis.steps[p], item);
  }
}

std::string Nest::load(std::size_t p, DType dtype, const std::string& further) {
  return writer_.load(names_[p], pieces_[p], offsets_[p] + further, dtype);
}
void Nest::store(std::size_t p, std::string_view value, DType dtype, const std::string& further) {
  writer_.store(names_[p], pieces_[p], offsets_[p] + further, value, dtype);
}
std::string Nest::wide_position(std::size_t q) const {
  return fmt::format("(0{})", offsets_[names_.size() + q]);
}

bool Nest::add_to(DeviceStep& step) {
  for (; depth_ > 0; --depth_) writer_.close();
  return fits_ && writer_.add_to(step, groups_);
}

bool add_map(DeviceStep& step, std::string_view what, const ElementwiseProgram& program,
             std::span<const Piece> sources, std::span<const Piece> targets) {
  const Extents& extents = targets[0].layout.extents;
  if (element_count(extents) == 0) return true;
  std::vector<Piece> pieces(targets.begin(), targets.end());
  pieces.insert(pieces.end(), sources.begin(), sources.end());
  KernelWriter writer("map", what);
  Nest nest(writer, extents, std::move(pieces));
  const std::vector<std::string> values = writer.program(program, [&](std::size_t i) {
    return nest.load(targets.size() + i, program.dtype_of_register(program.inputs()[i]));
  });
  for (std::size_t k = 0; k < targets.size(); ++k) {
    nest.store(k, values[k], program.dtype_of_register(program.outputs()[k]));
  }
  return nest.add_to(step);
}

bool add_copy(DeviceStep& step, std::string_view what, const Piece& source, const Piece& target) {
  ElementwiseProgram program;
  program.output(program.cast(program.input(source.layout.dtype), target.layout.dtype));
  return add_map(step, what, program, {&source, 1}, {&target, 1});
}

}  // namespace palimpsest::lower
