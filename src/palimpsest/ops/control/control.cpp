// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/ops/control/control.hpp"

#include "palimpsest/ops/control/control_op.hpp"
#include "palimpsest/ops/control/stop_gradient_op.hpp"
#include "palimpsest/ops/prelude.hpp"

namespace palimpsest::ops {
namespace {

Variable as_condition(const Variable& v, std::string_view who) {
  if (v.rank() != 0) {
    throw TypeError("[" + std::string(who) + "] condition: got " + v.type().str() +
                    ", expected one value. Try all_of, any or where");
  }
  return is_bool(v.dtype()) ? v : ne(v, 0);
}

// The types of the two branches as one.
TensorType agreed_type(const Variable& a, const Variable& b) {
  TensorType type = a.type();
  if (type.dtype != b.dtype() || type.rank() != b.rank()) {
    throw TypeError("[ifelse] types of the branches: got " + type.str() + " and " + b.type().str() +
                    ", expected equal dtypes and numbers of axes");
  }
  for (std::size_t k = 0; k < type.rank(); ++k) {
    const index_t other = b.type().shape[k];
    agreed_extent(type.shape, b.type().shape, k, "ifelse");
    // Known for one branch only: the other one may come out different.
    if (other == kUnknown) type.shape[k] = kUnknown;
  }
  return type;
}

}  // namespace

// -- ifelse ------------------------------------------------------------------------------------

Apply IfElse::make_node(std::span<const Variable> inputs) const {
  expect_inputs(inputs, 1 + 2 * n_, "ifelse");
  const TensorType& condition = inputs[0].type();
  if (!is_bool(condition.dtype) || condition.rank() != 0) {
    throw TypeError("[ifelse] condition: got " + condition.str() + ", expected bool ()");
  }
  const Device device = common_device(inputs, "ifelse");
  std::vector<TensorType> types;
  for (std::size_t k = 0; k < n_; ++k) {
    types.push_back(agreed_type(inputs[then_input(k)], inputs[else_input(k)]));
    types.back().device = device;
  }
  return node(inputs, std::move(types));
}

AliasMap IfElse::view_map(const Apply&) const {
  AliasMap map;
  for (std::size_t k = 0; k < n_; ++k) {
    map[static_cast<int>(k)] = {static_cast<int>(then_input(k)), static_cast<int>(else_input(k))};
  }
  return map;
}

std::vector<Extents> IfElse::infer_shapes(const Apply&, ExtentsSpan inputs) const {
  std::vector<Extents> result;
  for (std::size_t k = 0; k < n_; ++k) {
    // An extent that differs between the branches depends on the condition.
    Extents extents = inputs[then_input(k)];
    for (std::size_t i = 0; i < extents.size(); ++i) {
      if (extents[i] != inputs[else_input(k)][i]) extents[i] = kUnknown;
    }
    result.push_back(std::move(extents));
  }
  return result;
}

std::vector<Variable> IfElse::pullback(const Apply& apply, CotangentSpan cotangents) const {
  std::vector<Variable> result(apply.input_count());
  // Zeros have the extents of the branch that they are the cotangent of.
  std::vector<Variable> given, no_then, no_else;
  std::vector<std::size_t> which;
  for (std::size_t k = 0; k < n_; ++k) {
    if (!cotangents[k].defined() || !is_inexact(cotangents[k].dtype())) continue;
    which.push_back(k);
    given.push_back(cotangents[k]);
    no_then.push_back(zeros_like(apply.input(then_input(k))));
    no_else.push_back(zeros_like(apply.input(else_input(k))));
  }
  const std::vector<Variable> of_then = ifelse(apply.input(0), given, no_then);
  const std::vector<Variable> of_else = ifelse(apply.input(0), no_else, given);
  for (std::size_t i = 0; i < which.size(); ++i) {
    result[then_input(which[i])] = of_then[i];
    result[else_input(which[i])] = of_else[i];
  }
  return result;
}

void IfElse::run(RunContext& context) const {
  const bool holds = *static_cast<const bool*>(context.input(0).data);
  for (std::size_t k = 0; k < n_; ++k) {
    const ConstView& taken = context.input(holds ? then_input(k) : else_input(k));
    // A branch that was computed in the memory of the result needs no copy.
    if (taken.data != context.output(k).data) strided_copy(taken, context.output(k));
  }
}

std::vector<Variable> ifelse(const Variable& condition, const std::vector<Variable>& then,
                             const std::vector<Variable>& otherwise) {
  if (then.size() != otherwise.size()) {
    throw ValueError("[ifelse] numbers of values: got " + std::to_string(then.size()) + " and " +
                     std::to_string(otherwise.size()) + ", expected equal ones");
  }
  if (then.empty()) return {};
  std::vector<Variable> inputs{as_condition(condition, "ifelse")}, last;
  for (std::size_t k = 0; k < then.size(); ++k) {
    if (!then[k].defined() || !otherwise[k].defined()) {
      throw ValueError("[ifelse] value " + std::to_string(k) + ": got an undefined variable");
    }
    const DType dtype = promote(then[k].dtype(), otherwise[k].dtype());
    inputs.push_back(astype(then[k], dtype));
    last.push_back(astype(otherwise[k], dtype));
  }
  inputs.insert(inputs.end(), last.begin(), last.end());
  return std::make_shared<IfElse>(then.size())->make_node(inputs).outputs();
}

Variable ifelse(const Variable& condition, const Operand& then, const Operand& otherwise) {
  const std::vector<Variable> branches = resolved(std::vector<Operand>{then, otherwise});
  return ifelse(condition, std::vector<Variable>{branches[0]}, {branches[1]})[0];
}

// -- assert_that -------------------------------------------------------------------------------

void PassThrough::pass(RunContext& context) {
  const ConstView& x = context.input(0);
  if (x.data != context.output(0).data) strided_copy(x, context.output(0));
}

Apply AssertThat::make_node(std::span<const Variable> inputs) const {
  expect_inputs(inputs, std::max<std::size_t>(inputs.size(), 2), "assert_that");
  common_device(inputs, "assert_that");
  for (std::size_t i = 1; i < inputs.size(); ++i) {
    if (is_bool(inputs[i].dtype())) continue;
    throw DTypeError("[assert_that] condition: got " + inputs[i].type().str() +
                     ", expected bools. Try a comparison");
  }
  return node(inputs, {inputs[0].type()});
}

std::vector<Variable> AssertThat::pullback(const Apply& apply, CotangentSpan cotangents) const {
  std::vector<Variable> result(apply.input_count());
  if (is_inexact(apply.input(0).dtype())) result[0] = cotangents[0];
  return result;
}

namespace {

constexpr index_t kShownPlaces = 5;

std::string element_text(const ConstView& view, std::span<const index_t> at) {
  const std::byte* data = static_cast<const std::byte*>(view.data);
  for (std::size_t k = 0; k < at.size(); ++k) {
    data += at[k] * view.strides[k] * static_cast<index_t>(item_size(view.dtype));
  }
  Tensor element = Tensor::empty({}, view.dtype);
  strided_copy({data, view.dtype, {}, {}}, element.mutable_view());
  const std::string text = to_string(element);  // tensor(-2.5, dtype=...)
  const std::size_t begin = text.find('(') + 1;
  return text.substr(begin, text.find(", dtype") - begin);
}

// Calls visit(index) for every false element, in row-major order, until it returns false.
template <class Visit>
void for_each_false(const ConstView& condition, const Visit& visit) {
  const index_t n = element_count(condition.extents);
  Extents at(condition.extents.size(), 0);
  for (index_t i = 0; i < n; ++i) {
    index_t offset = 0;
    for (std::size_t k = 0; k < at.size(); ++k) offset += at[k] * condition.strides[k];
    if (!static_cast<const bool*>(condition.data)[offset] && !visit(at)) return;
    for (std::size_t k = at.size(); k-- > 0;) {
      if (++at[k] < condition.extents[k]) break;
      at[k] = 0;
    }
  }
}

[[noreturn]] void fail(const std::string& message, const ConstView& x, const ConstView& condition) {
  const bool same = std::equal(x.extents.begin(), x.extents.end(), condition.extents.begin(),
                               condition.extents.end());
  index_t count = 0;
  std::string places;
  for_each_false(condition, [&](const Extents& at) {
    if (count++ < kShownPlaces) {
      places += (count > 1 ? ", " : "") + to_string(at);
      if (same) places += " where it is " + element_text(x, at);
    }
    return true;
  });
  throw AssertionError("[assert_that] " + message + ": got " + std::to_string(count) + " of " +
                       std::to_string(element_count(condition.extents)) + " false, at " + places +
                       (count > kShownPlaces ? ", ..." : ""));
}

}  // namespace

void AssertThat::run(RunContext& context) const {
  const ConstView& x = context.input(0);
  for (std::size_t i = 1; i < context.inputs().size(); ++i) {
    bool holds = true;
    for_each_false(context.input(i), [&](const Extents&) { return holds = false; });
    if (!holds) fail(message_, x, context.input(i));
  }
  pass(context);
}

Variable assert_that(const Variable& x, const std::vector<Variable>& conditions,
                     std::string message) {
  if (conditions.empty()) return x;
  std::vector<Variable> inputs{x};
  inputs.insert(inputs.end(), conditions.begin(), conditions.end());
  return std::make_shared<AssertThat>(std::move(message))->make_node(inputs).output(0);
}

Variable assert_that(const Variable& x, const Variable& condition, std::string message) {
  return assert_that(x, std::vector<Variable>{condition}, std::move(message));
}

void register_ops_of_control() {
  register_type<AssertThat>();
  register_type<IfElse>();
  register_type<StopGradient>();
}

}  // namespace palimpsest::ops
