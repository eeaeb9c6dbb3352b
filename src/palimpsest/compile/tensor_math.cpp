// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/compile/tensor_math.hpp"

#include <list>
#include <mutex>
#include <string>
#include <unordered_map>

#include "palimpsest/base/fork.hpp"
#include "palimpsest/base/immortal.hpp"
#include "palimpsest/compile/function.hpp"
#include "palimpsest/ops/elementwise/elementwise.hpp"
#include "palimpsest/ops/products/products.hpp"
#include "palimpsest/ops/reduce/reduce.hpp"
#include "palimpsest/tensor/content_hash.hpp"

namespace palimpsest {
namespace {

using tensor_detail::Build;

// Functions by their operation and operands, the last used one in front.
class FunctionCache {
 public:
  static FunctionCache& instance() {
    return immortal([] { return FunctionCache(); });
  }
  // The kept function; undefined if the cache has none.
  Function find(const std::string& key) {
    const std::lock_guard guard(mutex_);
    const auto it = places_.find(key);
    if (it == places_.end()) return {};
    entries_.splice(entries_.begin(), entries_, it->second);
    return entries_.front().second;
  }
  void add(const std::string& key, const Function& function) {
    Function dropped;  // released without the lock
    const std::lock_guard guard(mutex_);
    if (places_.contains(key)) return;
    entries_.emplace_front(key, function);
    places_[key] = entries_.begin();
    if (entries_.size() <= tensor_detail::kMostFunctions) return;
    dropped = std::move(entries_.back().second);
    places_.erase(entries_.back().first);
    entries_.pop_back();
  }
  std::size_t size() {
    const std::lock_guard guard(mutex_);
    return entries_.size();
  }

 private:
  using Entry = std::pair<std::string, Function>;
  Mutex mutex_;
  std::list<Entry> entries_;
  std::unordered_map<std::string, std::list<Entry>::iterator> places_;
};

void append(std::string& key, std::span<const index_t> numbers) {
  for (const index_t n : numbers) (key += std::to_string(n)) += ',';
  key += ';';
}

// Every stride is part of the key, so that a function has one plan.
std::string call_key(std::string_view what, std::span<const Tensor> operands) {
  std::string key(what);
  for (const Tensor& x : operands) {
    ((key += '|') += name_of(x.dtype())) += x.device().str();
    append(key, x.shape());
    append(key, x.strides());
  }
  return (key += '#') += std::to_string(config().threads.value_or(0));
}

// The config of the thread, without keys that would change the run of a single operation.
Config plain_config() {
  Config result = config();
  const Config fresh;
  result.mode = fresh.mode;
  result.rewrites_including = fresh.rewrites_including;
  result.rewrites_excluding = fresh.rewrites_excluding;
  result.rewrite_trace = fresh.rewrite_trace;
  result.budget = fresh.budget;
  result.profile = fresh.profile;
  result.profile_memory = fresh.profile_memory;
  result.allow_gc = true;
  return result;
}

void check_defined(std::string_view what, std::span<const Tensor> operands) {
  for (const Tensor& x : operands) {
    if (!x.defined()) throw ValueError("[" + std::string(what) + "] got an undefined tensor");
  }
}

std::vector<Variable> inputs_like(std::span<const Tensor> operands) {
  std::vector<Variable> inputs;
  for (const Tensor& x : operands) inputs.push_back(make_input({x.dtype(), x.shape(), x.device()}));
  return inputs;
}

// The steps of a graph with all their parameters and constants: equal graphs have equal texts.
std::string text_of_graph(const Variable& result, const std::vector<Variable>& inputs) {
  std::string text;
  std::unordered_map<const VariableNode*, std::size_t> numbers;
  const auto add = [&](const Variable& v) {
    const auto [at, is_new] = numbers.try_emplace(v.node(), numbers.size());
    (text += ' ') += std::to_string(at->second);
    if (!is_new || !v.is_constant()) return;
    ContentHasher hasher;
    hasher.add(v.constant_value());
    (text += v.type().str()) += hasher.digits();
  };
  for (const Variable& v : inputs) add(v);
  for (const Apply& step : applications_of({&result, 1}, inputs)) {
    text += step.op().str();
    for (const Variable& v : step.inputs()) add(v);
    for (std::size_t i = 0; i < step.output_count(); ++i) add(step.output(i));
  }
  add(result);
  return text;
}

Function function_for(std::string_view what, std::span<const Tensor> operands, const Build& build,
                      std::string_view options = {}) {
  check_defined(what, operands);
  const std::string key = call_key(std::string(what).append(options), operands);
  FunctionCache& cache = FunctionCache::instance();
  Function f = cache.find(key);
  if (f.defined()) return f;
  const ConfigScope scope(std::make_shared<const Config>(plain_config()));
  const std::vector<Variable> inputs = inputs_like(operands);
  f = function({inputs.begin(), inputs.end()}, Out(build(inputs)), {.name = std::string(what)});
  cache.add(key, f);
  return f;
}

Tensor run_compiled(std::string_view what, std::span<const Tensor> operands, const Build& build,
                    std::string_view options = {}) {
  Tensor result;
  function_for(what, operands, build, options).call(operands, {&result, 1});
  return result;
}

// Numbers beside tensors have their dtype, numbers alone are values of their own.
std::vector<Tensor> tensors_of(std::initializer_list<TensorOperand> operands) {
  std::optional<DType> dtype;
  Device device;
  for (const TensorOperand& x : operands) {
    if (x.is_number() || !x.tensor().defined()) continue;
    dtype = dtype ? promote(*dtype, x.tensor().dtype()) : x.tensor().dtype();
    device = x.tensor().device();
  }
  std::vector<Tensor> result;
  for (const TensorOperand& x : operands) {
    result.push_back(x.is_number() ? x.beside(dtype.value_or(DType::bool_), device) : x.tensor());
  }
  return result;
}

Tensor run_elementwise(ScalarOp op, std::span<const Tensor> operands) {
  return run_compiled(name_of(op), operands,
                      [op](std::span<const Variable> x) { return ops::elementwise(op, x); });
}

template <class F>
Tensor reduced(const char* what, const Tensor& x, const AxesArgument& axes, bool keepdims, F f) {
  std::string name(what);
  if (axes.value()) {
    name += '(';
    append(name, *axes.value());
    name += ')';
  }
  if (keepdims) name += "keepdims";
  return run_compiled(name, {&x, 1},
                      [&](std::span<const Variable> v) { return f(v[0], axes, keepdims); });
}

}  // namespace

Tensor TensorOperand::beside(DType dtype, Device device) const {
  return number_->as_variable(dtype, device).constant_value();
}

namespace tensor_detail {

std::size_t function_count() { return FunctionCache::instance().size(); }

Tensor apply(ScalarOp op, const TensorOperand& a, const TensorOperand& b) {
  return run_elementwise(op, tensors_of({a, b}));
}

Tensor& assign(ScalarOp op, Tensor& a, const TensorOperand& b) {
  const std::vector<Tensor> operands = tensors_of({a, b});
  const Function f = function_for(
      name_of(op), operands, [op](std::span<const Variable> x) { return ops::elementwise(op, x); });
  f.call_into(a, operands[0], operands[1]);
  return a;
}

Tensor computed(std::string_view what, std::span<const Tensor> operands, const Build& build) {
  check_defined(what, operands);
  const std::vector<Variable> inputs = inputs_like(operands);
  return run_compiled(what, operands, build, text_of_graph(build(inputs), inputs));
}

Tensor dot(const TensorOperand& a, const TensorOperand& b) {
  return run_compiled("dot", tensors_of({a, b}),
                      [](std::span<const Variable> v) { return ops::dot(v[0], v[1]); });
}

}  // namespace tensor_detail

#define PALIMPSEST_UNARY(name)                                                        \
  Tensor name(const Tensor& x) {                                                      \
    return run_compiled(#name, {&x, 1},                                               \
                        [](std::span<const Variable> v) { return ops::name(v[0]); }); \
  }
PALIMPSEST_UNARY(neg)
PALIMPSEST_UNARY(bitwise_not)
PALIMPSEST_UNARY(abs)
PALIMPSEST_UNARY(sign)
PALIMPSEST_UNARY(square)
PALIMPSEST_UNARY(sqrt)
PALIMPSEST_UNARY(round)
PALIMPSEST_UNARY(exp)
PALIMPSEST_UNARY(log)
PALIMPSEST_UNARY(sin)
PALIMPSEST_UNARY(cos)
PALIMPSEST_UNARY(isnan)
PALIMPSEST_UNARY(isfinite)
PALIMPSEST_UNARY(conj)
PALIMPSEST_UNARY(real)
PALIMPSEST_UNARY(imag)
PALIMPSEST_UNARY(angle)
PALIMPSEST_UNARY(abs2)
#undef PALIMPSEST_UNARY

Tensor where(const Tensor& condition, const TensorOperand& a, const TensorOperand& b) {
  std::vector<Tensor> operands = tensors_of({a, b});
  operands.insert(operands.begin(), condition);
  return run_elementwise(ScalarOp::where, operands);
}

#define PALIMPSEST_REDUCTION(name)                                              \
  Tensor name(const Tensor& x, const AxesArgument& axes, bool keepdims) {       \
    return reduced(#name, x, axes, keepdims,                                    \
                   [](const Variable& v, const AxesArgument& over, bool keep) { \
                     return ops::name(v, {over, keep});                         \
                   });                                                          \
  }
PALIMPSEST_REDUCTION(sum)
PALIMPSEST_REDUCTION(prod)
PALIMPSEST_REDUCTION(mean)
PALIMPSEST_REDUCTION(max)
PALIMPSEST_REDUCTION(min)
PALIMPSEST_REDUCTION(any)
PALIMPSEST_REDUCTION(all_of)
PALIMPSEST_REDUCTION(argmax)
PALIMPSEST_REDUCTION(argmin)
PALIMPSEST_REDUCTION(norm)
#undef PALIMPSEST_REDUCTION

#define PALIMPSEST_PRODUCT(name)                                                            \
  Tensor name(const Tensor& a, const Tensor& b) {                                           \
    const Tensor operands[] = {a, b};                                                       \
    return run_compiled(#name, operands,                                                    \
                        [](std::span<const Variable> v) { return ops::name(v[0], v[1]); }); \
  }
PALIMPSEST_PRODUCT(matmul)
PALIMPSEST_PRODUCT(outer)
PALIMPSEST_PRODUCT(vdot)
#undef PALIMPSEST_PRODUCT

}  // namespace palimpsest
