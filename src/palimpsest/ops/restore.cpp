// SPDX-License-Identifier: Apache-2.0
// Makes ops again out of their names and of what parameters() wrote. restore_op() compares the text
// of what comes out with the text that went in, so these readers need not be strict.
#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <memory>
#include <mutex>
#include <type_traits>

#include "palimpsest/base/fork.hpp"
#include "palimpsest/graph/op_registry.hpp"
#include "palimpsest/ops/control/control_op.hpp"
#include "palimpsest/ops/control/debugging_op.hpp"
#include "palimpsest/ops/control/device_op.hpp"
#include "palimpsest/ops/control/stop_gradient_op.hpp"
#include "palimpsest/ops/create/create_op.hpp"
#include "palimpsest/ops/create/random_op.hpp"
#include "palimpsest/ops/elementwise/elementwise_sums.hpp"
#include "palimpsest/ops/index/gather_op.hpp"
#include "palimpsest/ops/index/index_op.hpp"
#include "palimpsest/ops/loop/measured_op.hpp"
#include "palimpsest/ops/parameter_text.hpp"
#include "palimpsest/ops/products/block_matrices_op.hpp"
#include "palimpsest/ops/products/contract_op.hpp"
#include "palimpsest/ops/products/sparse_op.hpp"
#include "palimpsest/ops/products/svd_op.hpp"
#include "palimpsest/ops/reduce/reduce_op.hpp"
#include "palimpsest/ops/registry.hpp"
#include "palimpsest/ops/shape/blocks_op.hpp"
#include "palimpsest/ops/shape/contiguous_op.hpp"
#include "palimpsest/ops/shape/rearrange_op.hpp"
#include "palimpsest/ops/shape/shape_op.hpp"
#include "palimpsest/ops/shape/strided_op.hpp"
#include "palimpsest/ops/transforms/fft_op.hpp"
#include "palimpsest/ops/transforms/gridding_op.hpp"
#include "palimpsest/ops/transforms/stencil_op.hpp"

namespace palimpsest::ops {
namespace {

constexpr std::string_view kInPlace = "InPlace";

bool is_in_place(std::string_view name) { return name.ends_with(kInPlace); }
std::string_view without_in_place(std::string_view name) {
  if (is_in_place(name)) name.remove_suffix(kInPlace.size());
  return name;
}

std::size_t axis_of(index_t value) {
  if (value < 0 || value >= static_cast<index_t>(kMaxRank)) {
    throw FormatError("axis " + std::to_string(value));
  }
  return static_cast<std::size_t>(value);
}

// -- elementwise ----------------------------------------------------------------------------------

ScalarOp scalar_op_of(std::string_view name) {
  for (int i = 0; i < kScalarOpCount; ++i) {
    const auto op = static_cast<ScalarOp>(i);
    if (name_of(op) == name || camel_case(name_of(op)) == name) return op;
  }
  throw FormatError("no scalar function '" + std::string(name) + "'");
}

int register_number(ParameterText& text) {
  text.expect("r");
  const index_t number = text.integer();
  if (number < 0 || number >= ElementwiseProgram::kMaxRegisters) {
    throw FormatError("register " + std::to_string(number));
  }
  return static_cast<int>(number);
}

// `r0:float64, r1:float32; r2=identity(r1):float64; r3=add(r0, r2):float64; -> r3`. Registers get
// their numbers in the order in which they are made, inputs among the results.
ElementwiseProgram program_of(ParameterText& text) {
  std::vector<std::pair<int, DType>> inputs;
  while (!text.take(";")) {
    if (!inputs.empty()) text.expect(", ");
    const int number = register_number(text);
    text.expect(":");
    inputs.emplace_back(number, text.dtype());
  }
  ElementwiseProgram program;
  auto next_input = inputs.begin();
  const auto add_inputs = [&] {
    while (next_input != inputs.end() && next_input->first == program.n_registers()) {
      program.input((next_input++)->second);
    }
  };
  const auto source = [&] {
    const int number = register_number(text);
    if (number >= program.n_registers()) throw FormatError("a register before it is made");
    return number;
  };
  add_inputs();
  text.expect(" ");
  while (!text.take("->")) {
    register_number(text);
    text.expect("=");
    const ScalarOp op = scalar_op_of(text.word());
    text.expect("(");
    std::vector<int> sources;
    while (!text.take(")")) {
      if (!sources.empty()) text.expect(", ");
      sources.push_back(source());
    }
    text.expect(":");
    const DType dtype = text.dtype();
    if (op == ScalarOp::identity) {
      if (sources.size() != 1) throw FormatError("a cast of several registers");
      program.cast(sources[0], dtype);
    } else {
      if (static_cast<int>(sources.size()) != arity(op)) throw FormatError("number of operands");
      program.apply(op, sources);
    }
    add_inputs();
    text.expect("; ");
  }
  while (text.take(" ")) program.output(source());
  return program;
}

// `float64, float32 -> float64`
ElementwiseProgram brief_program_of(ScalarOp op, ParameterText& text) {
  std::vector<DType> dtypes;
  do {
    dtypes.push_back(text.dtype());
  } while (text.take(", "));
  text.expect(" -> ");
  const DType result = text.dtype();
  if (op != ScalarOp::identity) {
    if (static_cast<int>(dtypes.size()) != arity(op)) throw FormatError("number of operands");
    return ElementwiseProgram(op, dtypes);
  }
  ElementwiseProgram program;
  program.output(program.cast(program.input(dtypes[0]), result));
  return program;
}

OpPtr elementwise(std::string_view name, ParameterText& text) {
  const std::string_view op = without_in_place(name);
  ElementwiseProgram program;
  if (text.rest().find(';') != std::string_view::npos) {
    program = program_of(text);
  } else {
    program = brief_program_of(op == "Cast" ? ScalarOp::identity : scalar_op_of(op), text);
  }
  if (program.outputs().empty()) throw FormatError("a program without outputs");
  Elementwise::Overwrites overwrites;
  if (is_in_place(name)) {
    text.expect(", ");
    if (program.outputs().size() == 1) {
      overwrites.push_back(text.integer("overwrites"));
    } else {
      for (const index_t i : text.integers("overwrites")) overwrites.push_back(i);
    }
  }
  return std::make_shared<Elementwise>(std::move(program), overwrites);
}

OpPtr elementwise_sums(std::string_view name, ParameterText& text) {
  ElementwiseProgram program = program_of(text);
  text.expect("; ");
  const index_t n_arrays = text.integer("arrays");
  text.expect(", sums=(");
  std::vector<SumOfOutputs> sums;
  do {
    SumOfOutputs sum;
    const std::string_view kind = text.word();
    while (name_of(sum.kind) != kind) {
      if (sum.kind == SumOfOutputs::Kind::conj_product) throw FormatError("no such sum");
      sum.kind = static_cast<SumOfOutputs::Kind>(static_cast<int>(sum.kind) + 1);
    }
    text.expect(" ");
    sum.a = static_cast<int>(text.integer());
    if (text.take(" ")) sum.b = static_cast<int>(text.integer());
    sums.push_back(sum);
  } while (text.take(", "));
  text.expect(")");
  Elementwise::Overwrites overwrites;
  if (is_in_place(name)) {
    for (const index_t i : text.integers("overwrites")) overwrites.push_back(i);
  }
  return std::make_shared<ElementwiseSums>(std::move(program), static_cast<std::size_t>(n_arrays),
                                           std::move(sums), std::move(overwrites));
}

// -- products -------------------------------------------------------------------------------------

SmallVector<int, 8> labels_of(ParameterText& text) {
  SmallVector<int, 8> labels;
  for (;;) {
    if (text.take("[")) {
      labels.push_back(static_cast<int>(text.integer()));
      text.expect("]");
      continue;
    }
    bool found = false;
    for (char c = 'a'; c <= 'z' && !found; ++c) {
      found = text.take(std::string_view(&c, 1));
      if (found) labels.push_back(c - 'a');
    }
    if (!found) return labels;
    if (labels.size() > 2 * kMaxRank) throw FormatError("too many labels");
  }
}

Contraction contraction_of(ParameterText& text) {
  Contraction result;
  result.a = labels_of(text);
  text.expect(",");
  result.b = labels_of(text);
  text.expect("->");
  result.out = labels_of(text);
  result.conj_a = text.take(", conj_a");
  result.conj_b = text.take(", conj_b");
  return result;
}

OpPtr contract(std::string_view, ParameterText& text) {
  return std::make_shared<Contract>(contraction_of(text));
}
OpPtr add_contract(std::string_view name, ParameterText& text) {
  Contraction contraction = contraction_of(text);
  text.expect(", ");
  const DType dtype = text.dtype();
  return std::make_shared<AddContract>(std::move(contraction), dtype, is_in_place(name));
}
template <class Op>
OpPtr diagonal(std::string_view, ParameterText& text) {
  const index_t offset = text.integer("offset");
  const std::size_t row = axis_of(text.integer("row"));
  return std::make_shared<Op>(offset, row, axis_of(text.integer("column")));
}

// -- shapes ---------------------------------------------------------------------------------------

// Axes come sorted, each once.
Axes axes(ParameterText& text, std::string_view key = "axes") {
  Axes result = text.integers(key);
  for (std::size_t k = 0; k < result.size(); ++k) {
    axis_of(result[k]);
    if (k > 0 && result[k] <= result[k - 1]) throw FormatError("axes that are not sorted");
  }
  return result;
}

template <class Op>
OpPtr plain(std::string_view, ParameterText&) {
  return std::make_shared<Op>();
}
template <class Op>
OpPtr of_axes(std::string_view, ParameterText& text) {
  return std::make_shared<Op>(axes(text));
}
template <class Op>
OpPtr of_programs(std::string_view, ParameterText& text) {
  return std::make_shared<Op>(text.programs());
}
OpPtr reshape(std::string_view, ParameterText& text) {
  text.expect("shape=");
  return std::make_shared<Reshape>(text.programs());
}
OpPtr transpose(std::string_view, ParameterText& text) {
  return std::make_shared<Transpose>(text.integers("order"));
}
template <class Op>
OpPtr of_shape(std::string_view, ParameterText& text) {
  return std::make_shared<Op>(text.integers("shape"));
}
// The view of a part of a complex array, or the elementwise function: that one has parameters.
OpPtr complex_part(std::string_view name, ParameterText& text) {
  if (!text.is_at_end()) return elementwise(name, text);
  return std::make_shared<ComplexPart>(name == "Imag");
}
// -- reductions, transforms -----------------------------------------------------------------------

ReduceOp reduce_op_of(std::string_view name) {
  static constexpr std::pair<std::string_view, ReduceOp> kNames[] = {
      {"Sum", ReduceOp::sum}, {"Prod", ReduceOp::prod}, {"Max", ReduceOp::max},
      {"Min", ReduceOp::min}, {"Any", ReduceOp::any},   {"All", ReduceOp::all}};
  const auto it = std::find_if(std::begin(kNames), std::end(kNames),
                               [&](const auto& entry) { return entry.first == name; });
  return it->second;
}
OpPtr reduce(std::string_view name, ParameterText& text) {
  Axes over = axes(text);
  const bool allows_none = text.take(", allows_none");
  return std::make_shared<Reduce>(reduce_op_of(name), std::move(over), allows_none);
}
OpPtr fused_reduce(std::string_view name, ParameterText& text) {
  const ReduceOp op = reduce_op_of(name.substr(std::string_view("Fused").size()));
  Axes over = axes(text);
  const bool allows_none = text.take(", allows_none");
  text.expect("; ");
  ElementwiseProgram program = program_of(text);
  if (program.outputs().size() != 1 || program.n_inputs() == 0)
    throw FormatError("no such program");
  return std::make_shared<FusedReduce>(std::move(program), op, std::move(over), allows_none);
}
OpPtr arg_reduce(std::string_view name, ParameterText& text) {
  return std::make_shared<ArgReduce>(name == "ArgMax" ? ReduceOp::max : ReduceOp::min, axes(text));
}
OpPtr scan(std::string_view name, ParameterText& text) {
  const bool is_sum = without_in_place(name) == "CumSum";
  return std::make_shared<Scan>(is_sum ? ReduceOp::sum : ReduceOp::prod,
                                axis_of(text.integer("axis")), is_in_place(name));
}
OpPtr fft(std::string_view name, ParameterText& text) {
  Fft::Parameters parameters;
  parameters.axes = axes(text);
  parameters.forward = text.integer("forward") != 0;
  text.expect(", scale=");
  parameters.scale = text.take("1/sqrt(n)") ? FftScale::root
                     : text.take("1/n")     ? FftScale::inverse
                                            : FftScale::one;
  if (parameters.scale == FftScale::one) text.expect("1");
  parameters.centered = text.integer("centered") != 0;
  return std::make_shared<Fft>(std::move(parameters), is_in_place(name));
}

// -- rearrangement and indices --------------------------------------------------------------------

OpPtr pad(std::string_view, ParameterText& text) {
  Extents before = text.integers("before"), after = text.integers("after");
  text.expect(", value=");
  const double value = text.number();
  return std::make_shared<Pad>(std::move(before), std::move(after), value);
}
OpPtr pad_around(std::string_view name, ParameterText& text) {
  Extents before = text.integers("before"), after = text.integers("after");
  text.expect(", ");
  const std::string_view rule = text.word();
  text.expect(", ");
  const DType dtype = text.dtype();
  return std::make_shared<PadAround>(std::move(before), std::move(after),
                                     rule == "edge"   ? PadRule::edge
                                     : rule == "wrap" ? PadRule::wrap
                                                      : PadRule::reflect,
                                     dtype, name == "Fold");
}
OpPtr roll(std::string_view, ParameterText& text) {
  const bool back = text.take("back by half, "), there = !back && text.take("by half, ");
  const index_t shift = text.integer("shift");
  const std::size_t axis = axis_of(text.integer("axis"));
  if (back || there) return Roll::by_half(back, axis);
  return std::make_shared<Roll>(shift, axis);
}
OpPtr join(std::string_view, ParameterText& text) {
  return std::make_shared<Join>(axis_of(text.integer("axis")));
}
OpPtr part_of(std::string_view, ParameterText& text) {
  const std::size_t axis = axis_of(text.integer("axis"));
  const index_t position = text.integer("position");
  if (position < 0) throw FormatError("position " + std::to_string(position));
  return std::make_shared<PartOf>(axis, static_cast<std::size_t>(position));
}

ArrayIndex array_index(ParameterText& text) {
  ArrayIndex index;
  index.axes = axes(text);
  index.position = static_cast<std::size_t>(std::max<index_t>(text.integer("position"), 0));
  index.constant = text.integer("constant_indices") != 0;
  index.wraps = text.take(", wraps");
  return index;
}
OpPtr gather(std::string_view, ParameterText& text) {
  return std::make_shared<Gather>(array_index(text));
}
OpPtr scatter_add(std::string_view, ParameterText& text) {
  Extents sizes = text.integers("sizes");
  return std::make_shared<ScatterAdd>(std::move(sizes), text.integer("constant_indices") != 0);
}
OpPtr sparse_product_op(std::string_view name, ParameterText& text) {
  return std::make_shared<SparseProduct>(text.integer("columns"), name == "SparseAdjoint");
}
OpPtr update_at(std::string_view name, ParameterText& text) {
  ArrayIndex index = array_index(text);
  text.expect(", ");
  const auto kind =
      without_in_place(name) == "AdvancedSet" ? UpdateAt::Kind::set : UpdateAt::Kind::increase;
  const DType dtype = text.dtype();
  const bool buffered = text.take(", buffered");
  return std::make_shared<UpdateAt>(kind, std::move(index), dtype, is_in_place(name), buffered);
}

// `1, :, 2:5, ::-1, None`
BasicIndex basic_index(ParameterText& text) {
  std::vector<Index> entries;
  std::size_t rank = 0;
  const auto is_number = [&] {
    return !text.is_at_end() && (text.rest()[0] == '-' || std::isdigit(text.rest()[0]) != 0);
  };
  while (!text.is_at_end() && !text.rest().starts_with(";")) {
    if (!entries.empty()) text.expect(", ");
    if (text.take("None")) {
      entries.emplace_back(newaxis);
      continue;
    }
    ++rank;
    Slice range;
    if (is_number()) range.start = text.integer();
    if (!text.take(":")) {
      if (!range.start) throw FormatError("an entry of an index");
      entries.emplace_back(*range.start);
      continue;
    }
    if (is_number()) range.stop = text.integer();
    if (text.take(":")) range.step = text.integer();
    entries.emplace_back(range);
  }
  return BasicIndex(std::move(entries), rank);
}
OpPtr subtensor(std::string_view, ParameterText& text) {
  return std::make_shared<Subtensor>(basic_index(text));
}
OpPtr update_subtensor(std::string_view name, ParameterText& text) {
  BasicIndex index = basic_index(text);
  text.expect("; ");
  const auto kind = without_in_place(name) == "SetSubtensor" ? UpdateSubtensor::Kind::set
                                                             : UpdateSubtensor::Kind::increase;
  const DType dtype = text.dtype();
  const bool buffered = text.take(", buffered");
  return std::make_shared<UpdateSubtensor>(kind, std::move(index), dtype, is_in_place(name),
                                           buffered);
}

// -- creation -------------------------------------------------------------------------------------

OpPtr axis_count(std::string_view, ParameterText& text) {
  Axes over = axes(text);
  text.expect(", dtype=");
  return std::make_shared<AxisCount>(std::move(over), text.dtype());
}

struct GeneratorText {
  ExtentPrograms extents;
  DType dtype;
  Device device;
};
GeneratorText generator(ParameterText& text) {
  GeneratorText result;
  result.extents = text.programs();
  text.expect(", ");
  result.dtype = text.dtype();
  text.expect(", ");
  std::string device(text.word());
  if (text.take(":")) device += ":" + std::to_string(text.integer());
  result.device = Device::parse(device);
  return result;
}
OpPtr arange(std::string_view, ParameterText& text) {
  GeneratorText common = generator(text);
  if (common.extents.size() != 1) throw FormatError("an array of one axis");
  Arange::Numbers numbers;
  text.expect(", start=");
  if (is_inexact(common.dtype)) {
    numbers.start = text.number();
    text.expect(", step=");
    numbers.step = text.number();
    if (text.take(", last=")) numbers.last = text.number();
  } else {
    numbers.integer_start = text.integer();
    text.expect(", step=");
    numbers.integer_step = text.integer();
    numbers.start = static_cast<double>(numbers.integer_start);
    numbers.step = static_cast<double>(numbers.integer_step);
  }
  return std::make_shared<Arange>(numbers, std::move(common.extents[0]), common.dtype,
                                  common.device);
}
OpPtr eye(std::string_view, ParameterText& text) {
  GeneratorText common = generator(text);
  text.expect(", k=");
  return std::make_shared<Eye>(text.integer(), std::move(common.extents), common.dtype,
                               common.device);
}

OpPtr random(std::string_view name, ParameterText& text) {
  ExtentPrograms extents = text.programs();
  text.expect(", ");
  const RandomKind kind = name == "RandomNormal"    ? RandomKind::normal
                          : name == "RandomUniform" ? RandomKind::uniform
                                                    : RandomKind::bits;
  return std::make_shared<Random>(kind, std::move(extents), text.dtype());
}
OpPtr random_integers(std::string_view, ParameterText& text) {
  ExtentPrograms extents = text.programs();
  text.expect(", ");
  const DType dtype = text.dtype();
  text.expect(", checked=");
  return std::make_shared<RandomIntegers>(std::move(extents), dtype, text.flag());
}
OpPtr nonzero_op(std::string_view, ParameterText& text) {
  return std::make_shared<Nonzero>(axis_of(text.integer("axis")));
}
OpPtr split_key(std::string_view, ParameterText& text) {
  const index_t n = text.integer("n");
  return std::make_shared<SplitKey>(n, text.integer("first"));
}
OpPtr next_key(std::string_view name, ParameterText&) {
  return std::make_shared<NextKey>(is_in_place(name));
}

// -- points off the grid --------------------------------------------------------------------------

template <class T>
int read_list(ParameterText& text, std::string_view key, std::array<T, 3>& values) {
  text.expect(key);
  text.expect("=(");
  int n = 0;
  do {
    if (n == 3) throw FormatError("more than three axes");
    if constexpr (std::is_same_v<T, double>) {
      values[static_cast<std::size_t>(n++)] = text.number();
    } else {
      values[static_cast<std::size_t>(n++)] = text.integer();
    }
  } while (text.take(", "));
  text.expect(")");
  return n;
}

GriddingPlan gridding_plan(ParameterText& text) {
  GriddingSpec spec;
  spec.ndim = read_list(text, "grid", spec.grid);
  read_list(text, ", width", spec.width);
  if (text.take(", spline=")) {
    spec.kernel = GriddingKernel::spline;
    spec.order = static_cast<int>(text.integer());
  } else {
    read_list(text, ", beta", spec.beta);
  }
  text.expect(", norm=");
  spec.norm = static_cast<int>(text.integer());
  text.expect(", circular=");
  spec.circular = text.flag();
  read_list(text, ", scale", spec.scale);
  read_list(text, ", shift", spec.shift);
  read_list(text, ", factor", spec.factor);
  return GriddingPlan(spec, "restore_op");
}
OpPtr point_order(std::string_view, ParameterText& text) {
  return std::make_shared<PointOrder>(gridding_plan(text));
}
OpPtr interpolation(std::string_view name, ParameterText& text) {
  return std::make_shared<Interpolation>(gridding_plan(text), name == "InterpolateAdjoint");
}

OpPtr blocks(std::string_view name, ParameterText& text) {
  Extents image = text.integers("image"), block = text.integers("block");
  Extents stride = text.integers("stride");
  const bool fits = image.size() == block.size() && image.size() == stride.size();
  for (std::size_t k = 0; fits && k < image.size(); ++k) {
    const bool is_legal = stride[k] > 0 && block[k] > 0 && block[k] <= image[k];
    if (!is_legal) throw FormatError("blocks that do not fit");
  }
  if (!fits) throw FormatError("numbers of axes that differ");
  return std::make_shared<Blocks>(std::move(image), std::move(block), std::move(stride),
                                  name == "BlocksToArray");
}

OpPtr soften_singular_values(std::string_view name, ParameterText& text) {
  return std::make_shared<SoftenSingularValues>(text.integers("axes"), is_in_place(name));
}
OpPtr nuclear_norms(std::string_view, ParameterText& text) {
  return std::make_shared<NuclearNorms>(text.integers("axes"));
}

OpPtr stencil(std::string_view name, ParameterText& text) {
  Stencil result;
  result.axis = axis_of(text.integer("axis"));
  text.expect(", taps=(");
  while (!text.take(")")) {
    result.taps.push_back(text.number());
    text.expect(",");
  }
  result.offset = text.integer("offset");
  result.step = text.integer("step");
  const index_t edge = text.integer("edge");
  if (result.taps.empty() || result.step < 1 || edge < 0 || edge > 4) {
    throw FormatError("no filter");
  }
  result.edge = static_cast<StencilEdge>(edge);
  return std::make_shared<StencilOp>(std::move(result), name == "StencilAdjoint");
}

OpPtr strided(std::string_view, ParameterText& text) {
  text.expect("dtype=");
  const DType dtype = text.dtype();
  text.expect(", ");
  Extents extents = text.integers("extents");
  Strides strides = text.integers("strides");
  if (extents.size() != strides.size()) throw FormatError("numbers of axes that differ");
  for (const index_t extent : extents) {
    if (extent < 0) throw FormatError("a negative extent");
  }
  return std::make_shared<Strided>(dtype, std::move(extents), std::move(strides),
                                   text.integer("offset"));
}
OpPtr strided_adjoint(std::string_view, ParameterText& text) {
  text.expect("dtype=");
  const DType dtype = text.dtype();
  text.expect(", ");
  const index_t n = text.integer("n");
  if (n < 0) throw FormatError("a negative extent");
  Strides strides = text.integers("strides");
  return std::make_shared<StridedAdjoint>(dtype, n, std::move(strides), text.integer("offset"));
}

OpPtr if_else(std::string_view, ParameterText& text) {
  const index_t n = text.integer("n");
  if (n < 0 || n > 1000) throw FormatError("number of outputs " + std::to_string(n));
  return std::make_shared<IfElse>(static_cast<std::size_t>(n));
}
OpPtr assert_that(std::string_view, ParameterText& text) {
  text.expect("message=");
  const std::string_view message = text.rest();
  text.expect(message);
  return std::make_shared<AssertThat>(std::string(message));
}

OpPtr breakpoint(std::string_view, ParameterText& text) {
  const index_t is_adjoint = text.integer("adjoint");
  if (is_adjoint != 0 && is_adjoint != 1) throw FormatError("no direction");
  text.expect(", hook=");
  const std::string_view hook = text.rest();
  text.expect(hook);
  return std::make_shared<Breakpoint>(
      std::string(hook), is_adjoint == 1 ? PassDirection::adjoint : PassDirection::forward);
}
OpPtr sleep(std::string_view, ParameterText& text) {
  text.expect("seconds=");
  const double seconds = text.number();
  if (!std::isfinite(seconds) || seconds < 0) throw FormatError("no time to wait");
  return std::make_shared<Sleep>(seconds);
}

OpPtr to_device(std::string_view, ParameterText& text) {
  const std::string_view name = text.rest();
  text.expect(name);
  try {
    return std::make_shared<ToDevice>(Device::parse(name));
  } catch (const ValueError& error) {
    throw FormatError(error.what());
  }
}

using Reader = OpPtr (*)(std::string_view name, ParameterText& text);

void add(std::string name, Reader reader) {
  register_op(std::move(name), [reader](std::string_view called, std::string_view parameters) {
    ParameterText text(parameters);
    OpPtr op = reader(called, text);
    text.end();
    return op;
  });
}

void add_with_in_place(const std::string& name, Reader reader) {
  add(name, reader);
  add(name + std::string(kInPlace), reader);
}

}  // namespace

void register_library_ops() {
  const ForkSection whole;
  static constinit std::once_flag once;
  std::call_once(once, [] {
    for (int i = 0; i < kScalarOpCount; ++i) {
      const auto op = static_cast<ScalarOp>(i);
      const bool is_part = op == ScalarOp::real || op == ScalarOp::imag;
      if (op == ScalarOp::identity) continue;
      add(camel_case(name_of(op)), is_part ? complex_part : elementwise);
      add(camel_case(name_of(op)) + std::string(kInPlace), elementwise);
    }
    for (const char* name : {"Cast", "Fused"}) add_with_in_place(name, elementwise);
    add_with_in_place("ElementwiseSums", elementwise_sums);
    for (const std::string name : {"Sum", "Prod", "Max", "Min", "Any", "All"}) {
      add(name, reduce);
      add("Fused" + name, fused_reduce);
    }
    for (const char* name : {"ArgMax", "ArgMin"}) add(name, arg_reduce);
    for (const char* name : {"CumSum", "CumProd"}) add_with_in_place(name, scan);
    for (const char* name : {"Gemm", "Gemv", "Ger"}) add_with_in_place(name, add_contract);
    for (const char* name : {"SetSubtensor", "IncSubtensor"}) {
      add_with_in_place(name, update_subtensor);
    }
    for (const char* name : {"AdvancedSet", "AdvancedInc"}) add_with_in_place(name, update_at);
    for (const char* name : {"RandomNormal", "RandomUniform", "RandomBits"}) add(name, random);
    for (const char* name : {"PadAround", "Fold"}) add(name, pad_around);
    for (const char* name : {"ArrayToBlocks", "BlocksToArray"}) add(name, blocks);
    for (const char* name : {"Stencil", "StencilAdjoint"}) add(name, stencil);
    add_with_in_place("Fft", fft);
    add_with_in_place("SoftenSingularValues", soften_singular_values);
    add("NuclearNorms", nuclear_norms);
    add_with_in_place("NextKey", next_key);
    add("Alloc", of_programs<Alloc>);
    add("Arange", arange);
    add("AssertThat", assert_that);
    add("AxisCount", axis_count);
    add("Breakpoint", breakpoint);
    add("BroadcastLike", plain<BroadcastLike>);
    add("BroadcastTo", of_shape<BroadcastTo>);
    add("Contiguous", plain<Contiguous>);
    add("Contract", contract);
    add("Diagonal", diagonal<Diagonal>);
    add("DiagonalInto", diagonal<DiagonalInto>);
    add("ExpandDims", of_axes<ExpandDims>);
    add("Eye", eye);
    add("Flip", of_axes<Flip>);
    add("Gather", gather);
    add("IfElse", if_else);
    add("Interpolate", interpolation);
    add("InterpolateAdjoint", interpolation);
    add("Join", join);
    add("Nonzero", nonzero_op);
    add("Norm2", plain<Norm2>);
    add("Pad", pad);
    add("PartOf", part_of);
    add("PointOrder", point_order);
    add("RandomIntegers", random_integers);
    add("Reshape", reshape);
    add("ReshapeTo", of_programs<ReshapeTo>);
    add("Roll", roll);
    add("RunTimeExtent", plain<RunTimeExtent>);
    add("ScatterAdd", scatter_add);
    add("Shape", plain<ShapeOf>);
    add("Sleep", sleep);
    add("SparseAdjoint", sparse_product_op);
    add("SparseProduct", sparse_product_op);
    add("SpecifyShape", of_shape<SpecifyShape>);
    add("SplitKey", split_key);
    add("Squeeze", of_axes<Squeeze>);
    add("StopGradient", plain<StopGradient>);
    add("Strided", strided);
    add("StridedAdjoint", strided_adjoint);
    add("Subtensor", subtensor);
    add("Svd", plain<Svd>);
    add("ToDevice", to_device);
    add("Transpose", transpose);
    add("ViewAsComplex", plain<ViewAsComplex>);
    add("ViewAsReal", plain<ViewAsReal>);
  });
}

}  // namespace palimpsest::ops
