// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/ops/elementwise/elementwise.hpp"

#include <cctype>

#include "palimpsest/base/fork.hpp"
#include "palimpsest/ops/elementwise/elementwise_op.hpp"
#include "palimpsest/ops/prelude.hpp"

namespace palimpsest::ops {
namespace {

// True for the program of this op on inputs of these dtypes.
bool is_program_of(const ElementwiseProgram& program, ScalarOp op, std::span<const DType> dtypes) {
  if (static_cast<int>(dtypes.size()) != arity(op)) return false;
  try {
    return program == ElementwiseProgram(op, dtypes);
  } catch (const DTypeError&) {  // the program converts what the op does not take
    return false;
  }
}

std::vector<DType> dtypes_of_inputs(const ElementwiseProgram& program) {
  std::vector<DType> dtypes;
  for (int r : program.inputs()) dtypes.push_back(program.dtype_of_register(r));
  return dtypes;
}

std::optional<ScalarOp> only_operation(const ElementwiseProgram& program) {
  if (program.outputs().size() != 1) return {};
  ScalarOp found = ScalarOp::identity;
  for (const auto& instruction : program.instructions()) {
    if (instruction.op == ScalarOp::identity) continue;
    if (found == ScalarOp::bitwise_xor) {  // a comparison of int64 with uint64 begins with it
      if (!is_program_of(program, instruction.op, dtypes_of_inputs(program))) return {};
      return instruction.op;
    }
    if (found != ScalarOp::identity) return {};
    found = instruction.op;
  }
  return found;
}

// `float64, float32 -> float64` where that says it all, else the whole program.
std::string describe_briefly(const ElementwiseProgram& program, std::optional<ScalarOp> op) {
  const std::vector<DType> dtypes = dtypes_of_inputs(program);
  if (!op) return describe(program);
  if (*op == ScalarOp::identity) {
    if (program.instructions().size() != 1) return describe(program);
  } else if (!is_program_of(program, *op, dtypes)) {
    return describe(program);
  }
  std::string text;
  for (DType dtype : dtypes) text += (text.empty() ? "" : ", ") + std::string(name_of(dtype));
  return text + " -> " + std::string(name_of(program.dtype_of_register(program.outputs()[0])));
}

// Extents of the result. Along every axis: 1 if all inputs are known to be 1, else the known extent
// of the others.
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
  const ForkSection whole;
  std::call_once(is_described_, [&] { parameters_ = describe_briefly(program, scalar_op); });
  return parameters_;
}

std::vector<int> Elementwise::Shared::inputs_of(std::size_t output) const {
  std::vector<int> makers(static_cast<std::size_t>(program.n_registers()), -1);
  const auto steps = program.instructions();
  for (std::size_t i = 0; i < steps.size(); ++i) {
    makers[static_cast<std::size_t>(steps[i].destination)] = static_cast<int>(i);
  }
  std::vector<bool> is_seen(makers.size(), false);
  std::vector<int> result, pending{program.outputs()[output]};
  while (!pending.empty()) {
    const int r = pending.back();
    pending.pop_back();
    if (is_seen[static_cast<std::size_t>(r)]) continue;
    is_seen[static_cast<std::size_t>(r)] = true;
    const int maker = makers[static_cast<std::size_t>(r)];
    if (maker < 0) {
      const auto inputs = program.inputs();
      result.push_back(
          static_cast<int>(std::find(inputs.begin(), inputs.end(), r) - inputs.begin()));
      continue;
    }
    const auto& sources = steps[static_cast<std::size_t>(maker)].sources;
    for (std::size_t k = sources.size(); k-- > 0;) {
      if (sources[k] >= 0) pending.push_back(sources[k]);
    }
  }
  return result;
}

Elementwise::Elementwise(ScalarOp op, std::span<const DType> operands)
    : Elementwise(ElementwiseProgram(op, operands)) {}

Elementwise::Elementwise(ElementwiseProgram program, Overwrites overwrites)
    : shared_(std::make_shared<Shared>(std::move(program))), overwrites_(std::move(overwrites)) {
  check_overwrites();
}

Elementwise::Elementwise(const Elementwise& other, Overwrites overwrites)
    : shared_(other.shared_), overwrites_(std::move(overwrites)) {
  check_overwrites();
}

void Elementwise::check_overwrites() const {
  if (!is_in_place()) return;
  const std::size_t n = program().outputs().size();
  std::set<index_t> taken;
  bool is_right = overwrites_.size() == n;
  for (const index_t i : overwrites_) {
    if (i == kNone) continue;
    is_right = is_right && i >= 0 && i < program().n_inputs() && taken.insert(i).second;
  }
  if (is_right && !taken.empty()) return;
  throw ValueError("[Elementwise] inputs to overwrite: got " + to_string(overwrites_) +
                   ", expected for each of " + std::to_string(n) + " outputs another of " +
                   std::to_string(program().n_inputs()) + " inputs, or -1");
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
  return is_in_place() ? shared_->name + "InPlace" : shared_->name;
}

std::string Elementwise::parameters() const {
  if (!is_in_place()) return shared_->parameters();
  const bool is_one = overwrites_.size() == 1;
  return shared_->parameters() + ", " +
         (is_one ? parameter("overwrites", overwrites_[0]) : parameter("overwrites", overwrites_));
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
  for (std::size_t k = 0; k < overwrites_.size(); ++k) {
    const auto i = static_cast<int>(overwrites_[k]);
    if (i == kNone || can_overwrite(result, k, i)) continue;
    throw ValueError("[" + who + "] input " + std::to_string(i) + " cannot hold the result: got " +
                     inputs[static_cast<std::size_t>(i)].type().str() + ", expected " +
                     result.output(k).type().str() + ", not broadcast");
  }
  return result;
}

AliasMap Elementwise::destroy_map(const Apply&) const {
  AliasMap result;
  for (std::size_t k = 0; k < overwrites_.size(); ++k) {
    if (overwrites_[k] != kNone) result[static_cast<int>(k)] = {static_cast<int>(overwrites_[k])};
  }
  return result;
}

// An input may be read and overwritten at once, but two results need two memories.
IndexPairs Elementwise::tolerate_same(const Apply&) const {
  IndexPairs result;
  for (const index_t i : overwrites_) {
    for (int j = 0; i != kNone && j < program().n_inputs(); ++j) {
      const bool is_read_only =
          std::find(overwrites_.begin(), overwrites_.end(), j) == overwrites_.end();
      if (is_read_only) result.insert({static_cast<int>(i), j});
    }
  }
  return result;
}

// An axis that is unknown cannot broadcast, so it has the output's extent when the graph runs: only
// a 1 that meets something else makes an input smaller than the output.
bool Elementwise::can_overwrite(const Apply& apply, std::size_t output, int i) const {
  if (i < 0 || i >= program().n_inputs()) return false;
  const TensorType& out = apply.output(output).type();
  const Variable& input = apply.input(static_cast<std::size_t>(i));
  if (item_size(input.dtype()) != item_size(out.dtype)) return false;
  for (std::size_t k = 0; k < out.rank(); ++k) {
    if (input.type().shape[k] == 1 && out.shape[k] != 1) return false;
  }
  return !may_overlap_itself(input);
}

// Each output gets the preferred input, or the first one that it is computed from, as `x` of x + s
// y. An input that is chosen as if all were allowed, but is not allowed, is dropped. The outputs
// without an input then choose among the allowed rest.
Elementwise::Overwrites Elementwise::choose_inputs(const Apply& apply, const std::set<int>& allowed,
                                                   const Overwrites& preferred) const {
  const std::size_t n = program().outputs().size();
  Overwrites chosen(n, kNone);
  const auto is_free = [&](int i) {
    const Variable& v = apply.input(static_cast<std::size_t>(i));
    return std::none_of(chosen.begin(), chosen.end(), [&](index_t j) {
      return j != kNone && apply.input(static_cast<std::size_t>(j)) == v;
    });
  };
  const auto choose = [&](auto&& is_allowed) {
    for (std::size_t k = 0; k < n; ++k) {
      if (chosen[k] != kNone) continue;
      std::vector<int> inputs = shared_->inputs_of(k);
      for (int i = 0; i < program().n_inputs(); ++i) inputs.push_back(i);
      const auto found = std::find_if(inputs.begin(), inputs.end(), [&](int i) {
        return is_allowed(i) && can_overwrite(apply, k, i) && is_free(i);
      });
      if (found != inputs.end()) chosen[k] = *found;
    }
  };
  for (std::size_t k = 0; k < preferred.size(); ++k) {
    const auto i = static_cast<int>(preferred[k]);
    if (allowed.contains(i) && can_overwrite(apply, k, i) && is_free(i)) chosen[k] = i;
  }
  choose([](int) { return true; });
  for (index_t& i : chosen) {
    if (!allowed.contains(static_cast<int>(i))) i = kNone;
  }
  choose([&](int i) { return allowed.contains(i); });
  return chosen;
}

OpPtr Elementwise::inplace_on_inputs(const Apply& apply, const std::set<int>& allowed,
                                     const Overwrites& preferred) const {
  Overwrites chosen{kNone};
  if (program().outputs().size() == 1) {
    const auto found = std::find_if(allowed.begin(), allowed.end(),
                                    [&](int i) { return can_overwrite(apply, 0, i); });
    if (found != allowed.end()) chosen[0] = *found;
  } else if (!allowed.empty()) {
    chosen = choose_inputs(apply, allowed, preferred);
  }
  const bool is_any =
      std::any_of(chosen.begin(), chosen.end(), [](index_t i) { return i != kNone; });
  return is_any ? std::make_shared<Elementwise>(*this, std::move(chosen)) : nullptr;
}

OpPtr Elementwise::pure() const {
  if (!is_in_place()) return shared_from_this();
  return std::make_shared<Elementwise>(*this, Overwrites());
}

std::vector<Extents> Elementwise::infer_shapes(const Apply& apply, ExtentsSpan inputs) const {
  const auto n = static_cast<std::size_t>(program().n_inputs());
  Extents result = n > 0 ? inputs[0] : Extents();
  for (std::size_t k = 0; k < result.size(); ++k) {
    // The first input that may not broadcast here has the extent of the result.
    std::size_t first = n;
    for (std::size_t i = 0; i < n; ++i) {
      if (apply.input(i).type().shape[k] == 1) continue;
      if (first == n) first = i;
      if (inputs[i][k] == inputs[first][k]) continue;
      std::string text = "[" + name() + "] axis " + std::to_string(k) + ": extents differ: got " +
                         to_string(inputs[first]) + " and " + to_string(inputs[i]);
      if (inputs[first][k] == 1 || inputs[i][k] == 1) {
        text += "; an axis broadcasts only if it is known to be 1 when the graph is built. ";
        text += kBroadcastAdvice;
      }
      throw ShapeError(text);
    }
    result[k] = first == n ? 1 : inputs[first][k];
  }
  return std::vector<Extents>(program().outputs().size(), result);
}

namespace {

// Up to N inputs of up to 4 axes without an allocation.
template <std::size_t N>
void run_stretched(const ElementwiseProgram& program, RunContext& context) {
  const MutableView& out = context.output(0);
  const std::size_t n = context.inputs().size(), rank = out.rank();
  SmallVector<ConstView, N> views(n);
  SmallVector<index_t, 4 * N> strides(n * rank);
  for (std::size_t i = 0; i < n; ++i) {
    views[i] = stretched(context.input(i), out.extents, {strides.data() + i * rank, rank});
  }
  run_elementwise(program, views, context.outputs());
}

}  // namespace

void Elementwise::run(RunContext& context) const {
  if (context.inputs().size() <= 8) {
    run_stretched<8>(program(), context);
  } else {
    run_stretched<ElementwiseProgram::kMaxInputs>(program(), context);
  }
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

std::vector<Variable> Elementwise::pullback(const Apply& apply, CotangentSpan cotangents) const {
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

void register_ops_of_elementwise() { register_type<Elementwise>(); }

}  // namespace palimpsest::ops
