// SPDX-License-Identifier: Apache-2.0
// Filters and scans along one axis, with the terms in the order of the host.
#include <fmt/format.h>

#include <cstdlib>

#include "palimpsest/lower/kernel_writer.hpp"
#include "palimpsest/ops/reduce/reduce_op.hpp"
#include "palimpsest/ops/transforms/stencil_op.hpp"

namespace palimpsest::lower {
namespace {

constexpr std::size_t kMostTaps = 32;

// The text for element j after applying the edge rule, given that it lies outside.
std::string_view outside(StencilEdge edge) {
  switch (edge) {
    case StencilEdge::periodic:
      return "j % wide < 0 ? j % wide + wide : j % wide";
    case StencilEdge::nearest:
      return "j < 0 ? 0 : wide - 1";
    case StencilEdge::zero:
      return "-1";
    case StencilEdge::nearest_then_zero:
      return "j < 0 ? 0 : -1";
    case StencilEdge::zero_then_nearest:
      return "j < 0 ? -1 : wide - 1";
  }
  throw InternalError("[lower] not an edge");
}

// True if the host adds row after row: it runs over lines that are neighbours.
bool runs_over_lines(const Layout& narrow, std::size_t axis) {
  std::size_t last = narrow.extents.size();
  for (std::size_t k = 0; k < narrow.extents.size(); ++k) last = k == axis ? last : k;
  if (last == narrow.extents.size()) return false;
  return std::abs(narrow.strides[axis]) > std::abs(narrow.strides[last]);
}

class StencilKernel {
 public:
  StencilKernel(const LowerRequest& request, const ops::StencilOp& op)
      : op_(op),
        sources_(input_pieces(request, step_)),
        out_(output_pieces(request)[0]),
        writer_("stencil", op.name()) {}

  std::optional<DeviceStep> made() {
    const std::size_t axis = op_.stencil().axis;
    const Extents& extents = out_.layout.extents;
    if (sources_[0].is_number || op_.stencil().taps.size() > kMostTaps) return std::nullopt;
    if (element_count(extents) == 0) return std::move(step_);
    // The kernel walks along the axis of the source by itself.
    Piece source = sources_[0];
    along_ = source.step(axis);
    source.layout.extents = extents;
    source.layout.strides[axis] = 0;
    std::vector<Piece> pieces{out_, source};
    if (sources_.size() > 1) pieces.push_back(with_rank(sources_[1], extents.size()));
    Nest nest(writer_, extents, pieces, std::array{axis});
    declare(nest);
    const DType dtype = out_.layout.dtype;
    writer_.line(fmt::format("{} sum = {};", type_of(dtype), zero_of(dtype)));
    op_.is_adjoint() ? write_adjoint(nest) : write_forward(nest);
    nest.store(0, "sum", dtype);
    if (!nest.add_to(step_)) return std::nullopt;
    return std::move(step_);
  }

 private:
  void declare(Nest& nest) {
    const Stencil& stencil = op_.stencil();
    const std::size_t axis = stencil.axis;
    const Layout& wide = op_.is_adjoint() ? out_.layout : sources_[0].layout;
    const std::string_view real = type_of(real_of(out_.layout.dtype));
    const std::size_t n = stencil.taps.size();
    writer_.line(fmt::format("{} taps[{}];", real, n));
    for (std::size_t m = 0; m < n; ++m) {
      writer_.line(fmt::format("taps[{}] = ({}){};", m, real, writer_.real(stencil.taps[m])));
    }
    writer_.line(fmt::format("const i32 wide = (i32){}, step = (i32){};",
                             writer_.integer(wide.extents[axis]), writer_.integer(stencil.step)));
    writer_.line(fmt::format("i32 offset = (i32){};", writer_.integer(stencil.offset)));
    if (sources_.size() < 2) return;
    // The equivalent offset with the fewest results that wrap around.
    writer_.line(fmt::format("const i64 start = {};", nest.load(2, DType::int64)));
    writer_.open("if (start != 0)");
    writer_.line(fmt::format("offset = (i32){}(offset + start, (i64)wide);",
                             writer_.numbers().function(ScalarOp::mod, DType::int64)));
    writer_.line("if (offset > wide / 2) offset -= wide;");
    writer_.close();
  }

  // Writes a loop over all taps of result i, which reads elements j.
  void open_taps() {
    writer_.open(fmt::format("for (i32 m = 0; m < {}; ++m)", op_.stencil().taps.size()));
    writer_.line("i32 j = step * i + offset + m;");
    writer_.line(fmt::format("if (j < 0 || j >= wide) j = {};", outside(op_.stencil().edge)));
  }
  void add(Nest& nest, std::string_view tap, std::string_view position) {
    const DType dtype = out_.layout.dtype;
    writer_.line(fmt::format(
        "const {} element = {};", type_of(dtype),
        nest.load(1, dtype, fmt::format(" + (i64){} * {}", position, writer_.integer(along_)))));
    if (is_complex(dtype)) {
      writer_.line(fmt::format("sum = {}_(sum.x + {} * element.x, sum.y + {} * element.y);",
                               type_of(dtype), tap, tap));
    } else {
      writer_.line(fmt::format("sum += {} * element;", tap));
    }
  }

  void write_forward(Nest& nest) {
    writer_.line(fmt::format("const i32 i = {};", nest.position(0)));
    open_taps();
    writer_.open("if (j >= 0)");
    add(nest, "taps[m]", "j");
    writer_.close();
    writer_.close();
  }

  // Results with taps outside one after the other, and in between those with all taps inside.
  void write_adjoint(Nest& nest) {
    const Layout& narrow = sources_[0].layout;
    const std::size_t axis = op_.stencil().axis;
    const std::size_t n = op_.stencil().taps.size();
    writer_.line(fmt::format("const i32 at = {};", nest.position(0)));
    writer_.line(fmt::format("const i32 count = (i32){}, reach = offset + {};",
                             writer_.integer(narrow.extents[axis]), n - 1));
    writer_.line("i32 begin = offset < 0 ? (-offset + step - 1) / step : 0;");
    writer_.line("i32 end = reach < wide ? (wide - 1 - reach) / step + 1 : 0;");
    writer_.line("begin = begin < count ? begin : count;");
    writer_.line("end = end < begin ? begin : end < count ? end : count;");
    const auto write_outer = [&](std::string_view from, std::string_view to) {
      writer_.open(fmt::format("for (i32 i = {}; i < {}; ++i)", from, to));
      open_taps();
      writer_.open("if (j == at)");
      add(nest, "taps[m]", "i");
      writer_.close();
      writer_.close();
      writer_.close();
    };
    write_outer("0", "begin");
    const bool in_order = runs_over_lines(narrow, axis);
    // Tap m of result i reads the element if step i + m is its distance from the offset.
    writer_.open(fmt::format("for (i32 k = 0; k < {}; ++k)", n));
    writer_.line(fmt::format("const i32 m = {};", in_order ? fmt::format("{} - k", n - 1) : "k"));
    writer_.line("const i32 way = at - offset - m, i = way / step;");
    writer_.open("if (way % step == 0 && i >= begin && i < end)");
    add(nest, "taps[m]", "i");
    writer_.close();
    writer_.close();
    write_outer("end", "count");
  }

  const ops::StencilOp& op_;
  DeviceStep step_;
  std::vector<Piece> sources_;
  Piece out_;
  KernelWriter writer_;
  index_t along_ = 0;  // bytes between neighbours of the source along the axis
};

// Few long lines are scanned on the host: an item of a kernel takes a line.
constexpr index_t kMostInLine = 4096, kFewLines = 64;

std::optional<DeviceStep> lower_scan(const LowerRequest& request, const ops::Scan& op) {
  DeviceStep step;
  const Piece source = input_pieces(request, step)[0], out = output_pieces(request)[0];
  Extents extents = out.layout.extents;
  const index_t n = extents[op.axis()], count = element_count(extents);
  if (source.is_number) return std::nullopt;
  if (count == 0) return step;
  if (n > kMostInLine && count / n < kFewLines) return std::nullopt;
  extents[op.axis()] = 1;
  const DType dtype = out.layout.dtype;
  KernelWriter writer("scan", op.name());
  const auto lines = [&](Piece piece) {
    piece.layout.extents[op.axis()] = 1;
    return piece;
  };
  const auto element = [&](const Piece& piece) {
    return fmt::format(" + (i64)i * {}", writer.integer(piece.step(op.axis())));
  };
  Nest nest(writer, extents, {lines(out), lines(source)});
  writer.line(fmt::format("{} sum = {};", type_of(dtype), nest.load(1, dtype)));
  nest.store(0, "sum", dtype);
  writer.open(fmt::format("for (i32 i = 1; i < (i32){}; ++i)", writer.integer(n)));
  const bool adds = op.reduce_op() == ReduceOp::sum;
  writer.line(fmt::format("sum = {}(sum, {});",
                          writer.numbers().function(adds ? ScalarOp::add : ScalarOp::mul, dtype),
                          nest.load(1, dtype, element(source))));
  nest.store(0, "sum", dtype, element(out));
  writer.close();
  if (!nest.add_to(step)) return std::nullopt;
  return step;
}

}  // namespace

std::optional<DeviceStep> lower_filters(const LowerRequest& request) {
  if (const auto* scan = dynamic_cast<const ops::Scan*>(&request.node.op())) {
    return lower_scan(request, *scan);
  }
  const auto* const op = dynamic_cast<const ops::StencilOp*>(&request.node.op());
  if (op == nullptr) return std::nullopt;
  return StencilKernel(request, *op).made();
}

}  // namespace palimpsest::lower
