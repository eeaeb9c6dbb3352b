// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/ops/linear.hpp"

#include <algorithm>
#include <unordered_map>

#include "palimpsest/ops/loop/loop_op.hpp"

namespace palimpsest {
namespace {

// The known dependence of a value on x.
struct Dependence {
  enum Kind { zero, constant, linear, nonlinear } kind = constant;
  Linearity sense = Linearity::no;  // of a linear one
};

Linearity composed(Linearity outer, Linearity inner) {
  if (outer == Linearity::no || inner == Linearity::no) return Linearity::no;
  if (outer == Linearity::real || inner == Linearity::real) return Linearity::real;
  return outer == inner ? Linearity::complex : Linearity::conjugate;
}

bool all_zero(const Tensor& value) {
  const Tensor dense = value.contiguous();
  const index_t n = dense.numel();
  return visit_dtype(dense.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* data = n > 0 ? dense.data<T>() : nullptr;
    return std::all_of(data, data + n, [](const T& element) { return element == T{}; });
  });
}

// Dependence of a value that is either a or b, such as a state at the first and at later steps.
Dependence either(const Dependence& a, const Dependence& b) {
  if (a.kind == Dependence::zero) return b;
  if (b.kind == Dependence::zero) return a;
  if (a.kind != b.kind) return {Dependence::nonlinear, Linearity::no};
  return {a.kind, a.sense == b.sense ? a.sense : Linearity::real};
}

bool same(const Dependence& a, const Dependence& b) {
  return a.kind == b.kind && a.sense == b.sense;
}

// Follows a graph from its roots to an output and finds the sense in which it is linear in x.
class LinearityAnalysis {
 public:
  LinearityAnalysis(const Variable& y, const Variable& x) : x_(x) {
    for (const Apply& node : applications_of({&y, 1}, {&x, 1})) add(node);
    result_ = of(y);
    if (result_.kind == Dependence::constant) {
      fault_ = y.str() + " does not depend on " + x_.str() + " and is not known to be zero";
    }
  }

  Linearity sense() const {
    if (!is_inexact(x_.dtype())) return Linearity::no;
    if (result_.kind == Dependence::zero) return Linearity::complex;
    return result_.kind == Dependence::linear ? result_.sense : Linearity::no;
  }
  const std::string& fault() const { return fault_; }

 private:
  Dependence of(const Variable& v) {
    if (v == x_) return {Dependence::linear, Linearity::complex};
    const auto it = known_.find(v.node());
    if (it != known_.end()) return it->second;
    Dependence result;
    if (v.is_constant() && all_zero(v.constant_value())) result.kind = Dependence::zero;
    return known_[v.node()] = result;
  }

  Dependence offend(const Apply& node, const std::string& why) {
    if (fault_.empty()) fault_ = node.op().name() + " " + why;
    return {Dependence::nonlinear, Linearity::no};
  }

  void add(const Apply& node) {
    if (const auto* loop = dynamic_cast<const ops::Loop*>(&node.op())) {
      add_loop(node, *loop);
      return;
    }
    const Dependence result = through(node);
    for (const Variable& output : node.outputs()) known_[output.node()] = result;
  }

  // A loop is linear if all its steps are, for any states that they find. Repeats the steps until
  // the dependence of the states no longer changes.
  void add_loop(const Apply& node, const ops::Loop& op) {
    const ops::LoopParts parts = op.parts(node);
    const auto set = [&](const Variable& inner, const Dependence& value) {
      known_[inner.node()] = value;
    };
    for (const auto& read : parts.reads) set(read.inner, of(read.array));
    for (const auto& value : parts.captured) set(value.inner, of(value.outer));
    std::vector<Dependence> states;
    for (const auto& state : parts.states) states.push_back(of(state.init));
    const std::vector<Variable> outputs = parts.inner_outputs();
    const std::vector<Apply> body = applications_of(outputs, parts.inner_inputs());
    for (bool changes = true; changes;) {
      for (std::size_t k = 0; k < states.size(); ++k) {
        for (const Variable& inner : parts.states[k].inner) set(inner, states[k]);
      }
      for (const Apply& inner : body) add(inner);
      changes = false;
      for (std::size_t k = 0; k < states.size(); ++k) {
        const Dependence next = of(parts.states[k].next), found = either(states[k], next);
        if (found.kind == Dependence::nonlinear && next.kind != Dependence::nonlinear) {
          offend(node, "makes it affine: state " + std::to_string(k) + " depends on " + x_.str() +
                           " in some steps only");
        }
        changes = changes || !same(found, states[k]);
        states[k] = found;
      }
    }
    Dependence ends;  // the dependence of the number of steps
    if (parts.count.defined()) ends = of(parts.count);
    if (parts.until.defined()) ends = either(ends, of(parts.until));
    const bool may_not = ends.kind == Dependence::linear || ends.kind == Dependence::nonlinear;
    if (may_not) ends = offend(node, "makes as many steps as " + x_.str() + " tells");
    const auto give = [&](std::size_t output, const Dependence& value) {
      known_[node.output(output).node()] = may_not ? ends : value;
    };
    for (std::size_t k = 0; k < states.size(); ++k) {
      if (const auto history = op.history_output(k)) give(*history, states[k]);
      if (const auto last = op.last_output(k)) give(*last, states[k]);
    }
    for (std::size_t m = 0; m < parts.mapped.size(); ++m) {
      give(op.mapped_output(m), of(parts.mapped[m]));
    }
    if (parts.until.defined()) give(op.count_output(), {});
  }

  Dependence through(const Apply& node) {
    const Op& op = node.op();
    const bool is_sum = op.is_linear_sum(node);
    int n_dependent = 0, n_constant = 0, n_zero = 0;  // of the inputs in which op is linear
    Linearity sense = Linearity::no;
    for (std::size_t i = 0; i < node.input_count(); ++i) {
      const int in = static_cast<int>(i);
      if (!op.uses_elements(node, in)) continue;
      const Dependence input = of(node.input(i));
      const Linearity here = op.linear_in(node, in);
      if (input.kind == Dependence::nonlinear) return input;
      if (here == Linearity::no) {
        if (input.kind == Dependence::linear) {
          return offend(node, "is not linear in its input " + std::to_string(in));
        }
        continue;
      }
      n_constant += input.kind == Dependence::constant ? 1 : 0;
      n_zero += input.kind == Dependence::zero ? 1 : 0;
      if (input.kind != Dependence::linear) continue;
      const Linearity part = composed(here, input.sense);
      sense = n_dependent == 0 || sense == part ? part : Linearity::real;
      ++n_dependent;
    }
    if (!is_sum && n_zero > 0) return {Dependence::zero, Linearity::no};
    if (n_dependent == 0) {
      const bool zero = n_zero > 0 && n_constant == 0;
      return {zero ? Dependence::zero : Dependence::constant, Linearity::no};
    }
    if (is_sum && n_constant > 0) {
      return offend(node, "makes it affine: an input does not depend on " + x_.str() +
                              " and is not known to be zero");
    }
    if (!is_sum && n_dependent > 1) {
      return offend(node, "multiplies values that both depend on " + x_.str());
    }
    return {Dependence::linear, sense};
  }

  Variable x_;
  std::unordered_map<const VariableNode*, Dependence> known_;
  Dependence result_;
  std::string fault_;
};

}  // namespace

Linearity is_linear(const Variable& y, const Variable& x) {
  return LinearityAnalysis(y, x).sense();
}

Variable linear_adjoint(const Variable& y, const Variable& x, const Variable& w) {
  const LinearityAnalysis analysis(y, x);
  if (analysis.sense() == Linearity::no) {
    throw NotLinearError("[linear_adjoint] " + y.str() + " is not linear in " + x.str() + ": " +
                         analysis.fault());
  }
  return ops::without_unused_of_loops(pullback({&y, 1}, {&x, 1}, {&w, 1})[0]);
}

}  // namespace palimpsest
