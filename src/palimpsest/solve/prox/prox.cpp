// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/solve/prox/prox.hpp"

#include <array>

#include "palimpsest/base/immortal.hpp"
#include "palimpsest/graph/registry.hpp"
#include "palimpsest/kernels/reduce/reduce_all.hpp"
#include "palimpsest/linop/core/axes.hpp"
#include "palimpsest/named/sizes.hpp"
#include "palimpsest/solve/frame/prelude.hpp"
#include "palimpsest/solve/prox/node.hpp"
#include "palimpsest/solve/prox/parts.hpp"
#include "palimpsest/solve/scaling.hpp"

namespace palimpsest {
namespace {

Registry<const ProxType*>& prox_registry() {
  return immortal([] { return Registry<const ProxType*>(); });
}

template <class List>
auto find_named_in(const List& list, std::string_view name) {
  return std::find_if(list.begin(), list.end(),
                      [&](const auto& entry) { return entry.first == name; });
}

template <class List>
const auto& get_named(const List& list, std::string_view name, const Prox& g) {
  const auto found = find_named_in(list, name);
  if (found == list.end()) throw NameError(who(g) + "there is no '" + std::string(name) + "'");
  return found->second;
}

}  // namespace

bool register_prox(const ProxType& type) {
  if (!prox_registry().add(type.name, &type)) {
    throw ValueError("[register_prox] '" + std::string(type.name) + "' is already registered");
  }
  return true;
}

const ProxType* find_prox(std::string_view name) { return prox_registry().find(name); }
std::vector<std::string> prox_names() { return prox_registry().names(); }

Prox make_prox(const ProxType& type, ProxParts parts) {
  if (parts.name.empty()) parts.name = type.name;
  const auto expect = [&](std::size_t got, std::size_t least, const char* what) {
    if (got >= least) return;
    throw ValueError("[" + parts.name + "] " + what + ": got " + std::to_string(got) +
                     ", expected at least " + std::to_string(least));
  };
  expect(parts.parts.size(), type.parts, "parts");
  expect(parts.linops.size(), type.linops, "operators");
  const Prox g(std::make_shared<const ProxNode>(&type, std::move(parts)));
  if (type.check != nullptr) type.check(g);
  return g;
}

const ProxType& Prox::type() const {
  if (!node_) throw ValueError("[Prox] undefined: expected a function");
  return *node_->type;
}
const std::string& Prox::name() const { return node_->data.name; }
const std::optional<Dims>& Prox::dims() const { return node_->data.dims; }
const Parameters& Prox::params() const { return node_->data.params; }
const Attributes& Prox::attrs() const { return node_->data.attrs; }
const std::vector<Prox>& Prox::parts() const { return node_->data.parts; }
const std::vector<NamedLinop>& Prox::linops() const { return node_->data.linops; }
bool Prox::has_param(std::string_view name) const {
  return find_named_in(params(), name) != params().end();
}
const Parameter& Prox::param(std::string_view name) const {
  return get_named(params(), name, *this);
}
bool Prox::has_attr(std::string_view name) const {
  return find_named_in(attrs(), name) != attrs().end();
}
const Attribute& Prox::attr(std::string_view name) const { return get_named(attrs(), name, *this); }

Dims spelled_out(const Dims& dims, const Dims& operand) {
  const ND dots = ND::ellipsis();
  if (!dims.has_ellipsis() || operand.has_ellipsis()) return dims;
  const Partition parts = partition(dims, dots);
  const std::size_t front = parts.before.size(), back = parts.after.size();
  if (front + back > operand.size()) return dims;
  return dims.replaced(dots, operand.slice(front, operand.size() - back));
}

bool may_leave_range(const Prox& g) {
  return g.node().data.functions || !g.params().empty() || !g.parts().empty() ||
         !g.linops().empty();
}

void expect_names(std::string_view who, const Dims& over, const Dims& operand) {
  for (const ND& d : over) {
    if (operand.contains(d)) continue;
    throw ShapeError("[" + std::string(who) + "] over: got " + d.str() + ", expected some of " +
                     operand.str());
  }
}

bool lies_elsewhere(const Dims& dims, const Dims& operand) {
  return dims.has_ellipsis() && !operand.has_wildcard() && spelled_out(dims, operand) != operand;
}

Prox Prox::bound_to(const Dims& dims) const {
  ProxParts data = node_->data;
  const auto has = [&](const ND& d) { return d.is_wildcard() || dims.contains(d); };
  const bool is_elsewhere = data.dims && lies_elsewhere(*data.dims, dims);
  if (is_elsewhere) {
    for (NamedLinop& A : data.linops) A = bound_operator(A, dims);
  }
  const bool is_by_name =
      !data.dims || (is_elsewhere && std::all_of(data.dims->begin(), data.dims->end(), has));
  data.dims = is_by_name ? dims : spelled_out(*data.dims, dims);
  for (Prox& part : data.parts) part = part.bound_to(dims);
  return make_prox(type(), std::move(data));
}

Prox Prox::renamed(const Renaming& names) const {
  ProxParts data = node_->data;
  if (data.dims) data.dims = data.dims->renamed(names);
  for (auto& [name, a] : data.attrs) {
    if (a.kind() == Attribute::Kind::dims) a = a.as_dims().renamed(names);
  }
  for (Prox& part : data.parts) part = part.renamed(names);
  for (NamedLinop& A : data.linops) A = A.renamed(names);
  return make_prox(type(), std::move(data));
}

std::string Prox::str() const {
  std::string text = name() + "(";
  const auto add = [&](const std::string& entry) {
    text += (text.back() == '(' ? "" : ", ") + entry;
  };
  for (const auto& [key, a] : attrs()) add(key + " " + (a.is_tensor() ? "..." : a.str()));
  for (const auto& [key, p] : params()) add(key);
  for (const Prox& part : parts()) add(part.str());
  for (const NamedLinop& A : linops()) add(A.name());
  return text + ")";
}

StateList Prox::state(const Space& v) const {
  StateList list;
  if (has_state()) type().declare(*this, v, list);
  return list;
}

bool Prox::has_state() const {
  if (type().declare == nullptr) return false;
  return !type().is_state_of_parts ||
         std::any_of(parts().begin(), parts().end(), [](const Prox& g) { return g.has_state(); });
}

namespace {

// Parameters may broadcast against v, not v against them.
const Variable& checked_shape(const Prox& g, const Variable& result, const Variable& v) {
  if (result.type().shape == v.type().shape) return result;
  throw ShapeError(who(g) + "got " + v.type().str() + ", expected the shape of parameters, " +
                   to_string(result.type().shape));
}

}  // namespace

Variable Prox::prox(const Variable& v, const Variable& t, StateScope& s) const {
  return checked_shape(*this, type().prox(*this, v, t, s), v);
}

// u - s prox_{g / s}(u / s).
Variable Prox::conjugate_prox(const Variable& u, const Variable& s, StateScope& state) const {
  if (type().conjugate != nullptr) {
    return checked_shape(*this, type().conjugate(*this, u, s, state), u);
  }
  const Variable step = s.astype(real_of(u.dtype()));
  return u - step * prox(u / step, ops::reciprocal(step), state);
}

namespace {

StateScope no_state(const Prox& g) {
  if (g.has_state()) throw StateError(who(g) + "it has a state: expected a call with one");
  return StateScope(StateList(), {});
}

}  // namespace

Variable Prox::prox(const Variable& v, const Variable& t) const {
  StateScope none = no_state(*this);
  return prox(v, t, none);
}

Variable Prox::conjugate_prox(const Variable& u, const Variable& s) const {
  StateScope none = no_state(*this);
  return conjugate_prox(u, s, none);
}

Variable Prox::value(const Variable& x, const Axes& batch) const {
  if (type().value == nullptr) throw ValueError(who(*this) + "value: it was given none");
  return type().value(*this, x, batch);
}

bool Prox::is_smooth() const { return type().gradient != nullptr; }

Variable Prox::gradient(const Variable& x) const {
  if (!is_smooth()) throw ValueError(who(*this) + "gradient: expected a smooth function");
  return type().gradient(*this, x);
}

double Prox::lipschitz() const {
  if (!is_smooth()) throw ValueError(who(*this) + "lipschitz: expected a smooth function");
  return type().lipschitz(*this);
}

namespace {

// True while the graph of a call is made whose operand has squares beyond the range of its dtype.
thread_local bool has_far_squares = false;
class FarSquares {
 public:
  explicit FarSquares(bool are_far) : before_(std::exchange(has_far_squares, are_far)) {}
  FarSquares(const FarSquares&) = delete;
  FarSquares& operator=(const FarSquares&) = delete;
  ~FarSquares() { has_far_squares = before_; }

 private:
  bool before_;
};

// True if the sum of squares may overflow, or that of a thousandth of the largest part vanish.
bool is_far(const Tensor& x) {
  const double largest = largest_part(x);
  if (!(largest > 0) || !std::isfinite(largest)) return false;
  const bool is_single = real_of(x.dtype()) == DType::float32;
  const double least = is_single ? static_cast<double>(std::numeric_limits<float>::min())
                                 : std::numeric_limits<double>::min();
  return largest < 1000 * std::sqrt(least) ||
         largest * std::sqrt(2.0 * static_cast<double>(x.numel())) > 1 / (2 * std::sqrt(least));
}

// Parameters may have been written since they were checked.
void check_parameters(const Prox& g) {
  if (!g.params().empty() && g.type().check != nullptr) g.type().check(g);
  for (const Prox& part : g.parts()) check_parameters(part);
}

bool has_far_parameters(const Prox& g) {
  const auto is_far_one = [](const auto& named) {
    const Parameter& p = named.second;
    return p.present() && is_inexact(p.value().dtype()) && is_far(p.value());
  };
  return std::any_of(g.params().begin(), g.params().end(), is_far_one) ||
         std::any_of(g.parts().begin(), g.parts().end(), has_far_parameters);
}

Function compiled_call(const Prox& g, ProxNode::Call call, const Tensor& x) {
  const TensorType operand{x.dtype(), x.shape(), x.device()};
  if (!is_floating(x.dtype()) && !is_complex(x.dtype())) {
    throw DTypeError(who(g) + "got " + std::string(name_of(x.dtype())) +
                     ", expected a floating or complex dtype");
  }
  check_parameters(g);
  const bool are_far = is_far(x) || has_far_parameters(g);
  const ProxNode& node = g.node();
  const std::lock_guard lock(node.mutex);
  for (const auto& made : node.compiled) {
    if (made.call == call && made.operand == operand && made.has_far_squares == are_far) {
      return made.function;
    }
  }
  const FarSquares scope(are_far);
  const Variable v = make_input(operand, "v");
  const Variable t = make_input({real_of(x.dtype()), {}, x.device()}, "t");
  const bool takes_t = call == ProxNode::Call::prox || call == ProxNode::Call::conjugate;
  Variable result;
  if (takes_t) {
    const Dims dims = g.dims().value_or(Dims("..."));
    const StateList state = g.state(Space(operand, dims));
    StateScope s(state, first_values(state));
    result = call == ProxNode::Call::prox ? g.prox(v, t, s) : g.conjugate_prox(v, t, s);
  } else {
    result = call == ProxNode::Call::value ? g.value(v) : g.gradient(v);
  }
  FunctionOptions options;
  options.name = g.name();
  options.on_unused_input = Reaction::ignore;
  std::vector<In> inputs{In(v)};
  if (takes_t) inputs.emplace_back(t);
  const Function f = function(std::move(inputs), {Out(result)}, std::move(options));
  constexpr std::size_t kKept = 16;
  if (node.compiled.size() >= kKept) node.compiled.erase(node.compiled.begin());
  node.compiled.push_back({call, operand, are_far, f});
  return f;
}

Tensor called(const Prox& g, ProxNode::Call call, const Tensor& v, double t, const char* what) {
  if (!(t > 0) || !std::isfinite(t)) {
    throw ValueError(who(g) + what + ": got " + Attribute(t).str() +
                     ", expected a positive number");
  }
  const Function f = compiled_call(g, call, v);
  Tensor step = Tensor::empty({}, real_of(v.dtype()), v.device());
  step.fill(t);
  const std::array<Tensor, 2> arguments{v, step};
  std::array<Tensor, 1> results;
  f.call(arguments, results);
  return results[0];
}

Tensor called(const Prox& g, ProxNode::Call call, const Tensor& x) {
  std::array<Tensor, 1> results;
  compiled_call(g, call, x).call(std::span<const Tensor>(&x, 1), results);
  return results[0];
}

}  // namespace

Tensor Prox::prox(const Tensor& v, double t) const {
  return called(*this, ProxNode::Call::prox, v, t, "t");
}
Tensor Prox::conjugate_prox(const Tensor& u, double s) const {
  return called(*this, ProxNode::Call::conjugate, u, s, "s");
}
double Prox::value(const Tensor& x) const {
  const Tensor result = called(*this, ProxNode::Call::value, x);
  return result.to(DType::float64).item<double>();
}
Tensor Prox::gradient(const Tensor& x) const { return called(*this, ProxNode::Call::gradient, x); }

// -- for the types -------------------------------------------------------------------------------

std::vector<Variable> first_values(const StateList& state) {
  std::vector<Variable> values;
  for (std::size_t i = 0; i < state.entries().size(); ++i) {
    const StateList::Entry& entry = state.entries()[i];
    const TensorType& type = entry.space.type();
    if (entry.init.kind() == Init::Kind::key) {
      values.push_back(ops::random_key(0, i + 1));
    } else {
      values.push_back(constant(Tensor::zeros({}, type.dtype, type.device)) + entry.init.value());
      values.back() = ops::broadcast_to(values.back().astype(type.dtype), type.shape);
    }
  }
  return values;
}

std::string who(const Prox& g) { return "[" + g.name() + "] "; }

Variable weight_of(const Prox& g, std::string_view name, DType dtype) {
  if (g.has_param(name)) return g.param(name).var().astype(dtype);
  Tensor value = Tensor::empty({}, dtype);
  value.fill(g.attr(name).as_real());
  return constant(value);
}

void put_weight(ProxParts& parts, std::string_view name, const Weight& weight) {
  if (weight.number()) {
    parts.attrs.emplace_back(name, *weight.number());
  } else {
    parts.params.emplace_back(name, weight.parameter());
  }
}

void check_weight(const Prox& g, std::string_view name) {
  const auto check = [&](double value) {
    if (value >= 0 && std::isfinite(value)) return;
    throw ValueError(who(g) + std::string(name) + ": got " + Attribute(value).str() +
                     ", expected a number that is not negative");
  };
  if (g.has_attr(name)) return check(g.attr(name).as_real());
  const Tensor value = on_host(g.param(name).value());
  if (value.numel() == 0) return;
  if (value.dtype() != DType::float32 && value.dtype() != DType::float64) {
    for (const double v : value.to(DType::float64).to_vector<double>()) check(v);
    return;
  }
  for (const ReduceOp end : {ReduceOp::min, ReduceOp::max}) {  // NaN is both
    const auto found = [&]<class T>(T) {
      return reduce_all<T>(value.view_of(), end, ScalarOp::identity, value.dtype());
    };
    check(value.dtype() == DType::float32 ? static_cast<double>(found(0.0F)) : found(0.0));
  }
}

Axes axes_over(const Prox& g, std::size_t rank) {
  const bool is_all = !g.has_attr("over") || g.attr("over").as_dims().empty();
  Axes axes;
  if (is_all) {
    for (std::size_t k = 0; k < rank; ++k) axes.push_back(static_cast<index_t>(k));
    return axes;
  }
  const Dims& over = g.attr("over").as_dims();
  const Dims dims = g.dims().value_or(over + Dims("..."));
  for (const ND& d : over) {
    if (!dims.contains(d)) {
      throw ShapeError(who(g) + "over: got " + d.str() + ", expected some of " + dims.str());
    }
    axes.push_back(axis_of(dims, d));
  }
  return from_front(axes, rank);
}

Axes other_axes(const Axes& axes, std::size_t rank) {
  Axes others;
  for (index_t axis = 0; axis < static_cast<index_t>(rank); ++axis) {
    if (std::find(axes.begin(), axes.end(), axis) == axes.end()) others.push_back(axis);
  }
  return others;
}

Variable param_for(const Prox& g, std::string_view name, const Variable& v) {
  const Variable p = g.param(name).var();
  const Extents &own = p.type().shape, &of_v = v.type().shape;
  bool fits = own.size() <= of_v.size();
  for (std::size_t k = 0; fits && k < own.size(); ++k) {
    const index_t n = own[own.size() - 1 - k];
    fits = n == 1 || n == of_v[of_v.size() - 1 - k];
  }
  if (!fits) {
    throw ShapeError(who(g) + std::string(name) + ": got shape " + to_string(own) +
                     ", expected one that broadcasts to " + to_string(of_v));
  }
  return p;
}

Variable param_like(const Prox& g, std::string_view name, const Variable& v) {
  const Variable p = param_for(g, name, v);
  if (!is_complex(p.dtype()) || is_complex(v.dtype())) return p.astype(v.dtype());
  throw DTypeError(who(g) + std::string(name) + ": got " + std::string(name_of(p.dtype())) +
                   ", expected real numbers as those of the operand");
}

Variable norm_along(const Variable& x, const Axes& axes) {
  if (has_far_squares) {
    const Variable largest = ops::abs(x).max(axes, /*keepdims=*/true);
    const Variable is_scale = ops::logical_and(ops::gt(largest, 0.0), ops::isfinite(largest));
    const Variable scale = ops::where(is_scale, largest, ops::full_like(largest, 1.0));
    const Variable squares = ops::elementwise(ScalarOp::abs2, {x / scale});
    return scale * ops::sqrt(squares.sum(axes, /*keepdims=*/true));
  }
  return ops::sqrt(ops::elementwise(ScalarOp::abs2, {x}).sum(axes, /*keepdims=*/true));
}

namespace {

// In place of 0 as a divisor.
double tiny(DType dtype) {
  return real_of(dtype) == DType::float32 ? static_cast<double>(std::numeric_limits<float>::min())
                                          : std::numeric_limits<double>::min();
}

}  // namespace

Variable cut_back(const Variable& size, const Variable& bound) {
  return bound / ops::maximum(size, ops::maximum(bound, tiny(size.dtype())));
}

Variable shrunk(const Variable& v, const Variable& size, const Variable& threshold) {
  const Variable divisor = ops::maximum(size, tiny(size.dtype()));
  return v * ops::maximum(1.0 - threshold / divisor, 0.0);
}

Variable soft_threshold(const Variable& v, const Variable& threshold) {
  if (is_complex(v.dtype())) return shrunk(v, ops::abs(v), threshold);
  return v - ops::clip(v, -threshold, threshold);
}

bool is_separable_everywhere(const Prox&, const ND&) { return true; }

bool is_separable_besides_over(const Prox& g, const ND& d) {
  const Dims& over = g.attr("over").as_dims();
  return !over.empty() && !over.contains(d);
}

bool is_separable_as_parts(const Prox& g, const ND& d) {
  return std::all_of(g.parts().begin(), g.parts().end(),
                     [&](const Prox& part) { return part.is_separable(d); }) &&
         std::all_of(g.linops().begin(), g.linops().end(),
                     [&](const NamedLinop& A) { return can_split(A, d); });
}

Variable indicator(const Variable& is_outside, DType dtype, const Axes& batch) {
  const Variable count = sum_besides(is_outside.astype(DType::float64), batch);
  const Variable none = count * 0.0;
  return ops::where(ops::gt(count, 0.0), none + std::numeric_limits<double>::infinity(), none)
      .astype(dtype);
}

}  // namespace palimpsest
