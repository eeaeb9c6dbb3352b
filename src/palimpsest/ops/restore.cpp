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
// -- shapes ---------------------------------------------------------------------------------------

// Axes come sorted, each once.
Axes axes(ParameterText& text, std::string_view key = "axes") {
  Axes result = text.integers(key);
  check_axes(result);
  return result;
}

template <class Op>
OpPtr plain(std::string_view, ParameterText&) {
  return std::make_shared<Op>();
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

OpPtr nonzero_op(std::string_view, ParameterText& text) {
  return std::make_shared<Nonzero>(axis_of(text.integer("axis")));
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

template <class... Declared>
void register_all() {
  (register_declared<Declared>(), ...);
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
      add("Fused" + name, fused_reduce);
    }
    for (const char* name : {"Gemm", "Gemv", "Ger"}) add_with_in_place(name, add_contract);
    for (const char* name : {"SetSubtensor", "IncSubtensor"}) {
      add_with_in_place(name, update_subtensor);
    }
    for (const char* name : {"AdvancedSet", "AdvancedInc"}) add_with_in_place(name, update_at);
    for (const char* name : {"Stencil", "StencilAdjoint"}) add(name, stencil);
    add_with_in_place("Fft", fft);
    add("Arange", arange);
    add("Contract", contract);
    add("Eye", eye);
    add("Gather", gather);
    add("Interpolate", interpolation);
    add("InterpolateAdjoint", interpolation);
    add("Nonzero", nonzero_op);
    add("PointOrder", point_order);
    add("RunTimeExtent", plain<RunTimeExtent>);
    add("SparseAdjoint", sparse_product_op);
    add("SparseProduct", sparse_product_op);
    add("Subtensor", subtensor);
    register_all<Alloc, ArgReduce, AssertThat, AxisCount, Blocks, Breakpoint, BroadcastLike,
                 BroadcastTo, Contiguous, Diagonal, DiagonalInto, ExpandDims, Flip, IfElse, Join,
                 NextKey, Norm2, NuclearNorms, Pad, PadAround, PartOf, Random, RandomIntegers,
                 Reduce, Reshape, ReshapeTo, Roll, Scan, ScatterAdd, ShapeOf, Sleep,
                 SoftenSingularValues, SpecifyShape, SplitKey, Squeeze, StopGradient, Strided,
                 StridedAdjoint, Svd, ToDevice, Transpose, ViewAsComplex, ViewAsReal>();
  });
}

}  // namespace palimpsest::ops
