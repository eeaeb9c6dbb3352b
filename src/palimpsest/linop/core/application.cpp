// SPDX-License-Identifier: Apache-2.0
// Applying an operator: checks, the graphs of the table entries, compiled functions.
#include <algorithm>
#include <limits>
#include <typeinfo>

#include "palimpsest/base/config.hpp"
#include "palimpsest/graph/origin.hpp"
#include "palimpsest/linop/core/node.hpp"
#include "palimpsest/linop/split/budget.hpp"
#include "palimpsest/ops/elementwise/elementwise.hpp"
#include "palimpsest/ops/linear.hpp"

namespace palimpsest {
namespace {

std::string dtype_text(DType dtype) { return std::string(name_of(dtype)); }

// Sizes that the operator knows of these dimensions.
void add_known_sizes(const NamedLinop& A, const Dims& dims, DimSizes& sizes) {
  for (const ND& d : dims) {
    if (!d.is_concrete() && !d.is_ordinal()) continue;
    if (const auto n = A.size(d)) sizes.set(d, *n);
  }
}

// Checks x against the input side and returns the sizes that are then known.
DimSizes check_input(const NamedLinop& A, const Variable& x) {
  const TensorType& type = x.type();
  if (!is_inexact(type.dtype)) {
    throw DTypeError(who(A) + "got " + type.str() + ", expected floating or complex data");
  }
  if (!type.is_fully_known()) {
    throw ShapeError(
        who(A) + "expects an input of known extents: got " + type.str() +
        ". Try an input with a shape, tensor(dtype, {64, 64}, name), or specify_shape; "
        "for a shared variable leave out .shape");
  }
  DimSizes known;
  add_known_sizes(A, A.ishape(), known);
  add_known_sizes(A, A.oshape(), known);
  return bind_of(A, A.ishape(), type.shape, known);
}

// True if the parameters take the precision of x.
bool adapts_to(const NamedLinop& A) { return A.has_attr("adapts") && A.attr("adapts").as_bool(); }

void check_parameters(const NamedLinop& A, const TensorType& x) {
  for (const auto& [name, p] : A.params()) {
    if (!p.present()) continue;
    if (p.type().device != x.device) {
      throw DeviceError(who(A) + "device: parameter '" + name + "' is on " + p.type().device.str() +
                        ", x on " + x.device.str());
    }
    if (adapts_to(A) || !is_inexact(p.dtype()) || real_of(p.dtype()) == real_of(x.dtype)) continue;
    const DType wanted = is_complex(x.dtype) ? complex_of(p.dtype()) : real_of(p.dtype());
    throw DTypeError(who(A) + "precision: parameter '" + name + "' is " + dtype_text(p.dtype()) +
                     ", x is " + dtype_text(x.dtype) + ". Try A.to(DType::" + dtype_text(x.dtype) +
                     ") or x.to(DType::" + dtype_text(wanted) + ")");
  }
}

// Errors of ops say which op; the reader wants to know which operator.
template <class E>
[[noreturn]] void rethrow(const E& error, const NamedLinop& A) {
  const std::string_view text = error.what();
  if (typeid(error) != typeid(E) || text.starts_with("[" + path_of(A))) throw;
  throw E(who(A) + std::string(text));
}

template <class F>
auto guarded(const NamedLinop& A, F&& action) -> decltype(action()) {
  try {
    return action();
  } catch (const ShapeError& error) {
    rethrow(error, A);
  } catch (const DTypeError& error) {
    rethrow(error, A);
  } catch (const DeviceError& error) {
    rethrow(error, A);
  } catch (const NotLinearError& error) {
    rethrow(error, A);
  } catch (const NotSupported& error) {
    rethrow(error, A);
  } catch (const ValueError& error) {
    rethrow(error, A);
  }
}

// The transpose of the graph of `forward`, which maps arrays of `from` to arrays of `to`.
Variable transposed(const NamedLinop& A, GraphFn forward, const Dims& from, const Dims& to,
                    const Variable& y) {
  if (!forward) throw ValueError(who(A) + "neither fn nor adj_fn is given");
  Extents extents = y.type().shape;
  if (from != to) {
    DimSizes sizes = bind_of(A, to, y.type().shape);
    add_known_sizes(A, from, sizes);
    extents = extents_of(from, sizes, path_of(A));
  }
  const auto input = [&](DType dtype) {
    return make_input({dtype, extents, y.type().device}, "x");
  };
  Variable x = input(y.dtype()), w = y;
  Variable result = forward(A, x);
  if (result.dtype() != w.dtype()) {
    // A complex operator: real y counts as complex.
    x = input(complex_of(y.dtype()));
    w = ops::astype(y, x.dtype());
    result = forward(A, x);
  }
  return linear_adjoint(result, x, w);
}

}  // namespace

Variable forward_graph(const NamedLinop& A, const Variable& x) {
  const LinopFunctions& f = A.functions();
  return f.fn ? f.fn(A, x) : transposed(A, f.adj_fn, A.oshape(), A.ishape(), x);
}

Variable adjoint_graph(const NamedLinop& A, const Variable& y) {
  const LinopFunctions& f = A.functions();
  return f.adj_fn ? f.adj_fn(A, y) : transposed(A, f.fn, A.ishape(), A.oshape(), y);
}

Variable normal_graph(const NamedLinop& A, const Variable& x) {
  check_parameters(A, x.type());
  if (A.functions().normal_fn) return A.functions().normal_fn(A, x);
  return adjoint_graph(sized_for(A, x.type()), forward_graph(A, x));
}

Variable NamedLinop::operator()(const Variable& x) const {
  data();
  check_stack(*this);
  const DimSizes sizes = check_input(*this, x);
  check_parameters(*this, x.type());
  const OriginScope origin(name(), way_here());
  const Variable y = guarded(*this, [&] { return forward_graph(*this, x); });
  if (!y.type().is_fully_known()) {
    throw ShapeError(who(*this) + "fn gives a result of open extents: got " + y.type().str());
  }
  bind_of(*this, oshape(), y.type().shape, sizes);
  return y;
}

namespace {

Function application(const NamedLinop& A, const TensorType& type, std::optional<index_t> budget) {
  const Variable x = make_input(type, "x");
  return function({x}, {Out(A(x), {.return_internal_type = true})},
                  {.name = A.name(), .budget_bytes = budget, .on_unused_input = Reaction::ignore});
}

// The application of tiles that fit. The function may use the rest of the budget beside their data.
Function within_budget(const NamedLinop& A, const TensorType& type, index_t budget) {
  const BudgetSplit split = split_to_budget(A, type, budget);
  return application(split.op, type, budget - split.operator_bytes);
}

// The largest budget: no limit, but a function that reads mapped files a step at a time. Functions
// compiled for it also serve calls without a budget.
constexpr index_t kEverything = std::numeric_limits<index_t>::max();

}  // namespace

Function compiled_function(const NamedLinop& A, const TensorType& type) {
  const LinopNode& node = *A.node();
  const std::optional<index_t> budget = config().budget;
  const auto cached = [&]() -> Function {  // the caller holds the mutex
    const auto found =
        std::find_if(node.compiled.begin(), node.compiled.end(), [&](const auto& entry) {
          return entry.type == type &&
                 (entry.budget == budget || (!budget && entry.budget == kEverything));
        });
    if (found == node.compiled.end()) return {};
    std::rotate(found, found + 1, node.compiled.end());
    return node.compiled.back().function;
  };
  {
    const std::lock_guard guard(node.mutex);
    if (auto found = cached(); found.defined()) return found;
  }
  Function made = budget && *budget != kEverything ? within_budget(A, type, *budget)
                                                   : application(A, type, budget);
  const auto limit = static_cast<std::size_t>(std::max<index_t>(config().function_cache, 0));
  std::vector<LinopNode::Compiled> evicted;  // freed after the lock
  const std::lock_guard guard(node.mutex);
  if (auto found = cached(); found.defined()) return found;  // another thread was first
  node.compiled.push_back({type, budget, made});
  while (node.compiled.size() > limit) {
    evicted.push_back(std::move(node.compiled.front()));
    node.compiled.erase(node.compiled.begin());
  }
  return made;
}

Tensor NamedLinop::operator()(const Tensor& x) const {
  const Function f = compiled_function((data(), *this), {x.dtype(), x.shape(), x.device()});
  Tensor result;
  guarded(*this, [&] { f.call({&x, 1}, {&result, 1}); });
  return result;
}

void NamedLinop::apply(const Tensor& x, Tensor& out) const {
  const Function f = compiled_function((data(), *this), {x.dtype(), x.shape(), x.device()});
  const auto check_parameters_apart = [&](const auto& self, const NamedLinop& A) -> void {
    for (const auto& [name, p] : A.params()) {
      if (p.present() && overlaps(out, p.borrowed())) {
        throw AliasError(who(A) + "apply: the destination overlaps parameter '" + name + "'");
      }
    }
    for (std::size_t i = 0; i < A.linop_count(); ++i) {
      const PathScope path(A, i);
      self(self, A[i]);
    }
  };
  check_parameters_apart(check_parameters_apart, *this);
  guarded(*this, [&] { f.call_into(out, x); });
}

namespace {

// Derived data are computed now, so that the next application takes what the plan says.
Function renewed_function(const NamedLinop& A, const TensorType& x) {
  Function f = compiled_function(A, x);
  for (const auto& cell : f.shared_variables()) cell->renew();
  return f;
}

}  // namespace

Plan NamedLinop::plan(const TensorType& x) const {
  return renewed_function((data(), *this), x).plan(std::span<const TensorType>(&x, 1));
}

Plan NamedLinop::plan_of_call(const Tensor& x) const {
  const Argument argument(x);
  return renewed_function((data(), *this), {x.dtype(), x.shape(), x.device()})
      .plan_of_call({&argument, 1});
}

DType natural_dtype(const NamedLinop& A) {
  for (const auto& [name, p] : A.params()) {
    const bool counts = p.present() && is_inexact(p.dtype()) && !adapts_to(A);
    if (counts) return complex_of(p.dtype());
  }
  for (const NamedLinop& child : A.linops()) {
    const DType dtype = natural_dtype(child);
    if (dtype != DType::complex128) return dtype;
  }
  return DType::complex128;
}

Extents NamedLinop::output_shape(const Extents& input_extents) const {
  const Variable x = make_input({natural_dtype(*this), input_extents, {}}, "x");
  return (*this)(x).type().shape;
}

namespace {

index_t matrix_side(const NamedLinop& A, const Extents& extents) {
  try {
    return element_count(extents);
  } catch (const OverflowError&) {
    throw OverflowError(who(A) + "matrix_size: overflow: got the extents " + to_string(extents) +
                        ", expected a product below 2^63");
  }
}

}  // namespace

MatrixSize NamedLinop::matrix_size() const {
  const auto known = [&](const Dims& dims) {
    DimSizes sizes;
    add_known_sizes(*this, dims, sizes);
    return sizes;
  };
  const Extents input = extents_of(ishape(), known(ishape()), path_of(*this));
  const DimSizes outputs = known(oshape());
  const bool is_known = std::all_of(oshape().begin(), oshape().end(), [&](const ND& d) {
    return d.is_ellipsis() || outputs.contains(d);
  });
  if (!is_known) return matrix_size(input);
  const Extents output = extents_of(oshape(), outputs, path_of(*this));
  return {matrix_side(*this, output), matrix_side(*this, input)};
}

MatrixSize NamedLinop::matrix_size(const Extents& input_extents) const {
  return {matrix_side(*this, output_shape(input_extents)), matrix_side(*this, input_extents)};
}

}  // namespace palimpsest
