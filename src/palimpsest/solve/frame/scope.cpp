// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/solve/frame/scope.hpp"

#include "palimpsest/base/error.hpp"
#include "palimpsest/ops/ops.hpp"
#include "palimpsest/solve/prox/node.hpp"

namespace palimpsest {

struct Scope::Graph {
  const Problem& problem;
  Inputs inputs;
  bool is_linear;
  bool uses_b = false, uses_iteration = false, is_guarded = false;
  Variable condition = {};  // of the guards so far; undefined: none
  std::vector<std::pair<std::string, Variable>> numbers = {}, run_time_counts = {};
  std::map<std::string, std::int64_t> counts = {};
};

Scope::Scope(const Problem& p, const StateList& state, std::vector<Variable> values, Inputs inputs,
             bool is_linear)
    : StateScope(state, std::move(values)),
      graph_(std::make_shared<Graph>(Graph{p, std::move(inputs), is_linear})) {
  graph_->condition = graph_->inputs.active;
}

Variable Scope::b() {
  graph_->uses_b = true;
  const Variable& b = graph_->inputs.b;
  return graph_->is_linear ? b * graph_->inputs.scale : b;
}

const Variable& Scope::iteration() {
  graph_->uses_iteration = true;
  return graph_->inputs.iteration;
}

Variable Scope::apply(std::string_view op, const Variable& v) {
  ++graph_->counts[std::string(op)];
  return graph_->problem.op(op)(v);
}

Variable Scope::adjoint(std::string_view op, const Variable& v) {
  ++graph_->counts[std::string(op) + "^H"];
  return graph_->problem.op(op).H()(v);
}

Variable Scope::prox_step(std::string_view name, const Variable& v, const Variable& t,
                          bool is_conjugate) {
  StateScope state = within(name);
  const Problem& p = graph_->problem;
  const Space space = p.argument_of(name);
  return prox_in_tiles(p.prox(name), space, p.tiles(), is_conjugate, v, space.spread(t), state);
}

Variable Scope::prox(std::string_view name, const Variable& v, const Variable& t) {
  return prox_step(name, v, t, /*is_conjugate=*/false);
}

Variable Scope::conjugate_prox(std::string_view name, const Variable& u, const Variable& s) {
  return prox_step(name, u, s, /*is_conjugate=*/true);
}

Variable Scope::value(std::string_view name, const Variable& x) {
  const Problem& p = graph_->problem;
  const Space space = p.argument_of(name);
  return space.total(p.prox(name).value(x, space.batch_axes()));
}

void Scope::count(std::string_view name, const Variable& times) {
  graph_->run_time_counts.emplace_back(name, times);
}

void Scope::number(std::string_view name, const Variable& v) {
  const TensorType expected = graph_->problem.x().number_type();
  if (v.type().shape != expected.shape || is_complex(v.dtype())) {
    throw ShapeError("number '" + std::string(name) + "': got " + v.type().str() + ", expected " +
                     expected.str());
  }
  graph_->numbers.emplace_back(name, v.astype(expected.dtype));
}

void Scope::guard(const Variable& v) {
  const Variable is_finite = ops::isfinite(v);
  graph_->condition =
      graph_->condition.defined() ? ops::logical_and(graph_->condition, is_finite) : is_finite;
  graph_->is_guarded = true;
}

Variable Scope::guarded(const Space& space, const Variable& value,
                        const Variable& otherwise) const {
  const Variable& condition = graph_->condition;
  const bool fits = condition.defined() && condition.rank() == space.batch_axes().size();
  return fits ? ops::where(space.spread(condition), value, otherwise) : value;
}

void Scope::set(std::string_view name, const Variable& value) {
  StateScope::set(name, guarded(space_of(name), value, (*this)[name]));
}

const std::vector<std::pair<std::string, Variable>>& Scope::numbers() const {
  return graph_->numbers;
}
const std::map<std::string, std::int64_t>& Scope::counts() const { return graph_->counts; }
const std::vector<std::pair<std::string, Variable>>& Scope::run_time_counts() const {
  return graph_->run_time_counts;
}
bool Scope::uses_b() const { return graph_->uses_b; }
bool Scope::uses_iteration() const { return graph_->uses_iteration; }
bool Scope::is_guarded() const { return graph_->is_guarded; }

}  // namespace palimpsest
