// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/ops/elementwise.hpp"

#include <algorithm>
#include <cctype>

#include "palimpsest/ops/common.hpp"
#include "palimpsest/ops/elementwise_op.hpp"

namespace palimpsest::ops {
namespace {

std::optional<ScalarOp> only_operation(const ElementwiseProgram& program) {
  if (program.outputs().size() != 1) return {};
  ScalarOp found = ScalarOp::identity;
  for (const auto& instruction : program.instructions()) {
    if (instruction.op == ScalarOp::identity) continue;
    if (found != ScalarOp::identity) return {};
    found = instruction.op;
  }
  return found;
}

// `float64, float32 -> float64` where that says it all, else the whole program.
std::string describe_briefly(const ElementwiseProgram& program, std::optional<ScalarOp> op) {
  std::vector<DType> dtypes;
  for (int r : program.inputs()) dtypes.push_back(program.dtype_of_register(r));
  if (!op) return describe(program);
  if (*op == ScalarOp::identity) {
    if (program.instructions().size() != 1) return describe(program);
  } else if (static_cast<int>(dtypes.size()) != arity(*op) ||
             program != ElementwiseProgram(*op, dtypes)) {
    return describe(program);
  }
  std::string text;
  for (DType dtype : dtypes) text += (text.empty() ? "" : ", ") + std::string(name_of(dtype));
  return text + " -> " + std::string(name_of(program.dtype_of_register(program.outputs()[0])));
}

// Along every axis: 1 where all inputs are known to be 1, else what is known of the others.
Extents broadcast_shape(std::span<const Variable> inputs, const std::string& who) {
  Extents result = inputs[0].type().shape;
  for (std::size_t i = 1; i < inputs.size(); ++i) {
    const Extents& shape = inputs[i].type().shape;
    if (shape.size() != result.size()) {
      throw ShapeError("[" + who + "] numbers of axes differ: got " + inputs[0].type().str() +
                       " and " + inputs[i].type().str() + ". Try expand_dims");
    }
    for (std::size_t k = 0; k < shape.size(); ++k) {
      if (shape[k] == 1) continue;
      result[k] = result[k] == 1 ? shape[k] : agreed_extent(result, shape, k, who);
    }
  }
  return result;
}

}  // namespace

std::string camel_case(std::string_view name) {
  std::string result;
  bool capital = true;
  for (char c : name) {
    if (c == '_') {
      capital = true;
    } else {
      result += capital ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
      capital = false;
    }
  }
  return result;
}

std::string describe(const ElementwiseProgram& program) {
  const auto reg = [](int r) { return "r" + std::to_string(r); };
  std::string text;
  for (int r : program.inputs()) {
    if (!text.empty()) text += ", ";
    text += reg(r) + ":" + std::string(name_of(program.dtype_of_register(r)));
  }
  text += ";";
  for (const auto& i : program.instructions()) {
    text += " " + reg(i.destination) + "=" + std::string(name_of(i.op)) + "(";
    for (std::size_t k = 0; k < i.sources.size() && i.sources[k] >= 0; ++k) {
      if (k > 0) text += ", ";
      text += reg(i.sources[k]);
    }
    text += "):" + std::string(name_of(i.dtype)) + ";";
  }
  text += " ->";
  for (int r : program.outputs()) text += " " + reg(r);
  return text;
}

Elementwise::Shared::Shared(ElementwiseProgram given)
    : program(std::move(given)), scalar_op(only_operation(program)), name("Fused") {
  if (scalar_op) name = *scalar_op == ScalarOp::identity ? "Cast" : camel_case(name_of(*scalar_op));
}

const std::string& Elementwise::Shared::parameters() const {
  std::call_once(is_described_, [&] { parameters_ = describe_briefly(program, scalar_op); });
  return parameters_;
}

Elementwise::Elementwise(ScalarOp op, std::span<const DType> operands)
    : Elementwise(ElementwiseProgram(op, operands)) {}

Elementwise::Elementwise(ElementwiseProgram program, int overwrites)
    : shared_(std::make_shared<Shared>(std::move(program))), overwrites_(overwrites) {
  check_overwrites();
}

Elementwise::Elementwise(const Elementwise& other, int overwrites)
    : shared_(other.shared_), overwrites_(overwrites) {
  check_overwrites();
}

void Elementwise::check_overwrites() const {
  if (overwrites_ >= kNone && overwrites_ < program().n_inputs()) return;
  throw ValueError("[Elementwise] input to overwrite: got " + std::to_string(overwrites_) +
                   ", expected one of " + std::to_string(program().n_inputs()));
}

std::shared_ptr<const Elementwise> Elementwise::cast(DType from, DType to) {
  if (is_complex(from) && !is_complex(to)) {
    throw DTypeError("[astype] complex numbers to real ones: got " + std::string(name_of(from)) +
                     " to " + std::string(name_of(to)) + ". Try real, imag or abs");
  }
  ElementwiseProgram program;
  program.output(program.cast(program.input(from), to));
  return std::make_shared<Elementwise>(std::move(program));
}

std::string Elementwise::name() const {
  return overwrites_ == kNone ? shared_->name : shared_->name + "InPlace";
}

std::string Elementwise::parameters() const {
  if (overwrites_ == kNone) return shared_->parameters();
  return shared_->parameters() + ", " + parameter("overwrites", overwrites_);
}

Apply Elementwise::make_node(std::span<const Variable> inputs) const {
  const auto n = static_cast<std::size_t>(program().n_inputs());
  const std::string who = name();
  expect_inputs(inputs, n, who);
  const Device device = common_device(inputs, who);
  for (std::size_t i = 0; i < n; ++i) {
    const DType expected = program().dtype_of_register(program().inputs()[i]);
    if (inputs[i].dtype() != expected) {
      throw DTypeError("[" + who + "] input " + std::to_string(i) + ": got " +
                       std::string(name_of(inputs[i].dtype())) + ", expected " +
                       std::string(name_of(expected)));
    }
  }
  const Extents shape = n > 0 ? broadcast_shape(inputs, who) : Extents();
  std::vector<TensorType> types;
  types.reserve(program().outputs().size());
  for (int r : program().outputs()) {
    types.push_back({program().dtype_of_register(r), shape, device});
  }
  Apply result = node(inputs, std::move(types));
  if (overwrites_ != kNone && !can_overwrite(result, overwrites_)) {
    throw ValueError("[" + who + "] input " + std::to_string(overwrites_) +
                     " cannot hold the result: got " +
                     inputs[static_cast<std::size_t>(overwrites_)].type().str() + ", expected " +
                     result.output(0).type().str() + ", not broadcast");
  }
  return result;
}

AliasMap Elementwise::destroy_map(const Apply&) const {
  if (overwrites_ == kNone) return {};
  return {{0, {overwrites_}}};
}

IndexPairs Elementwise::tolerate_same(const Apply&) const {
  IndexPairs result;
  for (int j = 0; overwrites_ != kNone && j < program().n_inputs(); ++j) {
    if (j != overwrites_) result.insert({overwrites_, j});
  }
  return result;
}

// An axis that is unknown cannot broadcast, so it has the output's extent when the graph runs: only
// a 1 that meets something else makes an input smaller than the output.
bool Elementwise::can_overwrite(const Apply& apply, int i) const {
  if (i < 0 || i >= program().n_inputs()) return false;
  const TensorType& out = apply.output(0).type();
  const Variable& input = apply.input(static_cast<std::size_t>(i));
  if (item_size(input.dtype()) != item_size(out.dtype)) return false;
  for (std::size_t k = 0; k < out.rank(); ++k) {
    if (input.type().shape[k] == 1 && out.shape[k] != 1) return false;
  }
  return !may_overlap_itself(input);
}

OpPtr Elementwise::inplace_on_inputs(const Apply& apply, const std::set<int>& allowed) const {
  for (int i : allowed) {
    if (can_overwrite(apply, i)) return std::make_shared<Elementwise>(*this, i);
  }
  return nullptr;
}

OpPtr Elementwise::pure() const {
  if (overwrites_ == kNone) return shared_from_this();
  return std::make_shared<Elementwise>(*this, kNone);
}

std::vector<Extents> Elementwise::infer_shapes(const Apply& apply,
                                               std::span<const Extents> inputs) const {
  const auto n = static_cast<std::size_t>(program().n_inputs());
  Extents result = n > 0 ? inputs[0] : Extents();
  for (std::size_t k = 0; k < result.size(); ++k) {
    // The first input that may not broadcast here says what the extent is.
    std::size_t first = n;
    for (std::size_t i = 0; i < n; ++i) {
      if (apply.input(i).type().shape[k] == 1) continue;
      if (first == n) first = i;
      if (inputs[i][k] == inputs[first][k]) continue;
      throw ShapeError("[" + name() + "] axis " + std::to_string(k) + ": extents differ: got " +
                       to_string(inputs[first]) + " and " + to_string(inputs[i]) +
                       "; an axis broadcasts only if it is known to be 1 when the graph is built. "
                       "Try specify_shape");
    }
    result[k] = first == n ? 1 : inputs[first][k];
  }
  return std::vector<Extents>(program().outputs().size(), result);
}

void Elementwise::run(RunContext& context) const {
  const MutableView& out = context.output(0);
  const std::size_t n = context.inputs().size(), rank = out.rank();
  SmallVector<ConstView, 8> views(n);
  SmallVector<index_t, 32> strides(n * rank);
  for (std::size_t i = 0; i < n; ++i) {
    views[i] = stretched(context.input(i), out.extents, {strides.data() + i * rank, rank});
  }
  run_elementwise(program(), views, context.outputs());
}

// -- derivatives -------------------------------------------------------------------------------

Linearity Elementwise::linear_in(const Apply& apply, int in) const {
  const DType from = apply.input(static_cast<std::size_t>(in)).dtype();
  // Integers that enter as numbers count: a sum with some is affine in the others.
  if (!shared_->scalar_op || !is_inexact(apply.output(0).dtype())) return Linearity::no;
  switch (*shared_->scalar_op) {
    case ScalarOp::add:
    case ScalarOp::sub:
    case ScalarOp::mul:
    case ScalarOp::neg:
    case ScalarOp::identity:
      return Linearity::complex;
    case ScalarOp::div:
      return in == 0 ? Linearity::complex : Linearity::no;
    case ScalarOp::where:
      return in > 0 ? Linearity::complex : Linearity::no;
    case ScalarOp::conj:
      return is_complex(from) ? Linearity::conjugate : Linearity::complex;
    case ScalarOp::real:
    case ScalarOp::imag:
    case ScalarOp::make_complex:
      return Linearity::real;
    default:
      return Linearity::no;
  }
}

bool Elementwise::is_linear_sum(const Apply&) const {
  return shared_->scalar_op == ScalarOp::add || shared_->scalar_op == ScalarOp::sub ||
         shared_->scalar_op == ScalarOp::where || shared_->scalar_op == ScalarOp::make_complex;
}

std::vector<Variable> Elementwise::pullback(const Apply& apply,
                                            std::span<const Variable> cotangents) const {
  if (!shared_->scalar_op) {
    return pullback_of_steps(apply, cotangents, [&](std::span<const Variable> inputs) {
      return unrolled(program(), inputs);
    });
  }
  const auto is_fixed = [](const Variable& v) { return !is_inexact(v.dtype()); };
  if (std::all_of(apply.inputs().begin(), apply.inputs().end(), is_fixed)) {
    return std::vector<Variable>(apply.input_count());
  }
  std::vector<Variable> result = scalar_pullback(*shared_->scalar_op, apply, cotangents[0]);
  for (std::size_t i = 0; i < result.size(); ++i) {
    if (result[i].defined()) result[i] = as_cotangent_of(apply.input(i), result[i]);
  }
  return result;
}

}  // namespace palimpsest::ops
