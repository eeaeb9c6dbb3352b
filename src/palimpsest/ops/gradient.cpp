// SPDX-License-Identifier: Apache-2.0
// Derivatives of graphs. Cotangents flow from the outputs to their roots, tangents the other way;
// each application between them contributes by the rule of its op.
#include "palimpsest/ops/gradient.hpp"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "palimpsest/ops/common.hpp"
#include "palimpsest/ops/control/control_op.hpp"
#include "palimpsest/ops/control/stop_gradient_op.hpp"
#include "palimpsest/ops/cotangents.hpp"
#include "palimpsest/ops/create/create.hpp"
#include "palimpsest/ops/elementwise/elementwise.hpp"
#include "palimpsest/ops/elementwise/elementwise_op.hpp"
#include "palimpsest/ops/shape/shape_ops.hpp"

namespace palimpsest {
namespace {

using Nodes = std::unordered_set<const VariableNode*>;
using Values = std::unordered_map<const VariableNode*, Variable>;

Nodes nodes_of(std::span<const Variable> variables) {
  Nodes result;
  for (const Variable& v : variables) result.insert(v.node());
  return result;
}

// w as a cotangent or tangent of v, which it must fit.
Variable checked(const Variable& v, const Variable& w, const std::string& what) {
  const TensorType &expected = v.type(), &got = w.type();
  const auto text = [&] {
    return "[" + what + " of " + v.str() + ": got " + got.str() + ", expected " + expected.str();
  };
  bool fits = got.rank() == expected.rank();
  for (std::size_t k = 0; fits && k < got.rank(); ++k) {
    fits = got.shape[k] == expected.shape[k] || got.shape[k] == kUnknown ||
           expected.shape[k] == kUnknown;
  }
  if (!fits) throw ShapeError(text());
  if (is_complex(got.dtype) && !is_complex(expected.dtype)) throw DTypeError(text());
  return ops::astype(w, expected.dtype);
}

void check_count(std::size_t got, std::size_t expected, const std::string& what) {
  if (got != expected) {
    throw ValueError("[" + what + ": got " + std::to_string(got) + ", expected " +
                     std::to_string(expected));
  }
}

bool uses(const Apply& node, std::size_t i) {
  return node.op().uses_elements(node, static_cast<int>(i));
}

// The graph between some variables and some outputs. Nothing behind the variables `ends` is looked
// at.
class Paths {
 public:
  Paths(std::span<const Variable> outs, std::span<const Variable> wrt, const Nodes& blocked,
        std::span<const Variable> ends = {})
      : order_(applications_of(outs, ends)), below_(nodes_of(wrt)), above_(nodes_of(outs)) {
    for (const Apply& node : order_) {
      bool reached = false;
      for (std::size_t i = 0; i < node.input_count(); ++i) {
        const VariableNode* input = node.input(i).node();
        reached = reached || (below_.contains(input) && !blocked.contains(input) && uses(node, i));
      }
      for (const Variable& v : node.outputs()) {
        if (reached) below_.insert(v.node());
      }
    }
    for (auto node = order_.rbegin(); node != order_.rend(); ++node) {
      bool needed = false;
      for (const Variable& v : node->outputs()) {
        needed = needed || (above_.contains(v.node()) && !blocked.contains(v.node()));
      }
      for (std::size_t i = 0; needed && i < node->input_count(); ++i) {
        if (uses(*node, i)) above_.insert(node->input(i).node());
      }
    }
    for (const VariableNode* v : blocked) above_.erase(v);
  }

  const std::vector<Apply>& order() const { return order_; }
  // True if an output depends on v.
  bool reaches_outs(const Variable& v) const { return above_.contains(v.node()); }
  // True if v depends on one of wrt.
  bool depends_on_wrt(const Variable& v) const { return below_.contains(v.node()); }

 private:
  std::vector<Apply> order_;
  Nodes below_, above_;
};

// w as a cotangent of v, with the extents that are known of v only.
Variable fitted(const Variable& v, const Variable& w) {
  Extents shape(w.rank(), kUnknown);
  bool knows_more = false;
  for (std::size_t k = 0; k < w.rank(); ++k) {
    if (w.type().shape[k] != kUnknown || v.type().shape[k] == kUnknown) continue;
    shape[k] = v.type().shape[k];
    knows_more = true;
  }
  return knows_more ? ops::specify_shape(w, shape) : w;
}

// The cotangents of one application on their way down.
class FlowDown {
 public:
  FlowDown(const Paths& paths, ops::Cotangents& sums, const Apply& node)
      : paths_(paths), sums_(sums), node_(node) {}

  void run() {
    bool any = false, needed = false;
    for (const Variable& v : node_.outputs()) any = any || lies_on_path(v);
    for (std::size_t i = 0; i < node_.input_count(); ++i) needed = needed || is_needed(i);
    if (!any || !needed) return;
    if (const auto* choice = dynamic_cast<const ops::IfElse*>(&node_.op())) {
      through_choice(*choice);
    } else {
      through_op();
    }
  }

 private:
  bool lies_on_path(const Variable& v) const {
    return paths_.depends_on_wrt(v) && paths_.reaches_outs(v);
  }
  bool is_needed(std::size_t i) const { return uses(node_, i) && lies_on_path(node_.input(i)); }

  void through_op() {
    std::vector<Variable> reached;
    for (const Variable& v : node_.outputs()) {
      if (lies_on_path(v)) reached.push_back(v);
    }
    const std::vector<ops::Cotangents::Part> sums = sums_.sums_of(reached);
    std::vector<Variable> above;
    std::size_t next = 0;
    bool any = false;
    for (const Variable& v : node_.outputs()) {
      above.push_back(lies_on_path(v) ? sums[next++].value : Variable());
      any = any || above.back().defined();
    }
    if (!any) return;
    const std::vector<Variable> below = node_.op().pullback(node_, above);
    for (std::size_t i = 0; i < below.size(); ++i) {
      if (!below[i].defined() || !is_needed(i)) continue;
      sums_.add(node_.input(i), {below[i], sums[0].branch});
    }
  }

  // The cotangent of the value that is taken is that of the result, and it is needed only if that
  // value is taken.
  void through_choice(const ops::IfElse& choice) {
    for (std::size_t k = 0; k < choice.count(); ++k) {
      const Variable v = node_.output(k);
      if (!lies_on_path(v)) continue;
      const ops::Cotangents::Part sum = sums_.sum_of(v);
      if (!sum.value.defined() || !is_inexact(sum.value.dtype())) continue;
      for (const bool when : {true, false}) {
        const std::size_t i = when ? choice.then_input(k) : choice.else_input(k);
        if (!is_needed(i)) continue;
        const int branch = sums_.branch_of(sum.branch, node_.input(0), when);
        sums_.add(node_.input(i), {fitted(node_.input(i), sum.value), branch});
      }
    }
  }

  const Paths& paths_;
  ops::Cotangents& sums_;
  const Apply& node_;
};

void flow_down(const Paths& paths, ops::Cotangents& sums) {
  for (auto node = paths.order().rbegin(); node != paths.order().rend(); ++node) {
    FlowDown(paths, sums, *node).run();
  }
}

void check_cost(const Variable& cost) {
  if (cost.rank() != 0 || !is_floating(cost.dtype())) {
    throw TypeError("[grad] cost " + cost.str() + ": got " + cost.type().str() +
                    ", expected a real scalar. Try sum, or abs2 of a complex number");
  }
}

Variable missing_gradient(const Variable& v, Disconnected disconnected) {
  if (disconnected == Disconnected::raise) {
    throw DisconnectedError("[grad] the cost does not depend on " + v.str() +
                            ". Try disconnected = zero or none");
  }
  return disconnected == Disconnected::zero ? ops::zeros_like(v) : Variable();
}

// Does as pullback(); no variable of wrt is behind `ends`.
std::vector<Variable> pulled_back(std::span<const Variable> outs, std::span<const Variable> wrt,
                                  std::span<const Variable> cotangents,
                                  std::span<const Variable> ends) {
  const Paths paths(outs, wrt, {}, ends);
  ops::Cotangents sums;
  for (std::size_t i = 0; i < outs.size(); ++i) {
    if (!cotangents[i].defined()) continue;
    sums.add(outs[i], {checked(outs[i], cotangents[i], "pullback] cotangent")});
  }
  flow_down(paths, sums);
  std::vector<Variable> result;
  for (const Variable& v : wrt) {
    const Variable sum = sums.of(v);
    result.push_back(sum.defined() ? sum : ops::zeros_like(v));
  }
  return result;
}

}  // namespace

std::vector<Variable> pullback(std::span<const Variable> outs, std::span<const Variable> wrt,
                               std::span<const Variable> cotangents) {
  check_count(cotangents.size(), outs.size(), "pullback] number of cotangents");
  return pulled_back(outs, wrt, cotangents, {});
}

std::vector<Variable> grad(const Variable& cost, std::span<const Variable> wrt,
                           const GradOptions& options) {
  std::vector<Variable> outs;
  ops::Cotangents sums;
  if (cost.defined()) {
    check_cost(cost);
    outs.push_back(cost);
    sums.add(cost, {constant(Tensor::ones({}, cost.dtype(), cost.type().device))});
  } else if (options.known_grads.empty()) {
    throw ValueError("[grad] got neither a cost nor known gradients");
  }
  for (const auto& [v, g] : options.known_grads) {
    outs.push_back(v);
    sums.fix(v, checked(v, g, "grad] known gradient"));
  }
  const Paths paths(outs, wrt, nodes_of(options.consider_constant));
  flow_down(paths, sums);
  std::vector<Variable> result;
  for (const Variable& v : wrt) {
    const Variable sum = sums.of(v);
    if (!paths.reaches_outs(v)) {
      result.push_back(missing_gradient(v, options.disconnected));
    } else {
      result.push_back(sum.defined() ? sum : ops::zeros_like(v));
    }
  }
  return result;
}

std::vector<Variable> grad(const Variable& cost, std::initializer_list<Variable> wrt,
                           const GradOptions& options) {
  return grad(cost, std::span<const Variable>(wrt.begin(), wrt.size()), options);
}

Variable grad(const Variable& cost, const Variable& wrt, const GradOptions& options) {
  return grad(cost, {&wrt, 1}, options)[0];
}

std::vector<Variable> pushforward(std::span<const Variable> outs, std::span<const Variable> wrt,
                                  std::span<const Variable> tangents) {
  check_count(tangents.size(), wrt.size(), "pushforward] number of tangents");
  Values values;
  for (std::size_t i = 0; i < wrt.size(); ++i) {
    if (!tangents[i].defined()) continue;
    values[wrt[i].node()] = checked(wrt[i], tangents[i], "pushforward] tangent");
  }
  const auto of = [&](const Variable& v) {
    const auto it = values.find(v.node());
    return it == values.end() ? Variable() : it->second;
  };
  for (const Apply& node : applications_of(outs, wrt)) {
    std::vector<Variable> given;
    bool any = false;
    for (std::size_t i = 0; i < node.input_count(); ++i) {
      given.push_back(uses(node, i) ? of(node.input(i)) : Variable());
      any = any || given.back().defined();
    }
    if (!any) continue;
    const std::vector<Variable> result = ops::pushforward_of(node, given);
    for (std::size_t k = 0; k < result.size(); ++k) {
      if (result[k].defined()) values[node.output(k).node()] = result[k];
    }
  }
  std::vector<Variable> result;
  for (const Variable& v : outs) {
    const Variable tangent = of(v);
    result.push_back(tangent.defined() ? tangent : ops::zeros_like(v));
  }
  return result;
}

// -- one application ---------------------------------------------------------------------------

namespace ops {
namespace {

// True if the op is linear in every input that has a tangent.
bool is_linear_in_all(const Apply& apply, std::span<const Variable> tangents) {
  for (std::size_t i = 0; i < tangents.size(); ++i) {
    if (tangents[i].defined() &&
        apply.op().linear_in(apply, static_cast<int>(i)) == Linearity::no) {
      return false;
    }
  }
  return true;
}

// The op applied to the tangents: all at once where it is a sum of linear parts, else to one after
// the other with the other inputs held fixed.
std::vector<Variable> by_linearity(const Apply& apply, std::span<const Variable> tangents) {
  const Op& op = apply.op();
  std::vector<Variable> inputs(apply.inputs().begin(), apply.inputs().end());
  if (op.is_linear_sum(apply)) {
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (op.linear_in(apply, static_cast<int>(i)) == Linearity::no) continue;
      inputs[i] = tangents[i].defined() ? tangents[i] : zeros_like(inputs[i]);
    }
    return op.make_node(inputs).outputs();
  }
  std::vector<Variable> result;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!tangents[i].defined()) continue;
    inputs[i] = tangents[i];
    const std::vector<Variable> part = op.make_node(inputs).outputs();
    inputs[i] = apply.input(i);
    for (std::size_t k = 0; k < part.size(); ++k) {
      if (result.size() <= k) {
        result.push_back(part[k]);
      } else {
        result[k] = add(result[k], part[k]);
      }
    }
  }
  return result;
}

// The pullback is linear in the cotangents, and the pushforward is its adjoint.
std::vector<Variable> by_transposition(const Apply& apply, std::span<const Variable> tangents) {
  std::vector<Variable> cotangents, outs, above;
  for (const Variable& v : apply.outputs()) {
    cotangents.push_back(is_inexact(v.dtype()) ? make_input(v.type()) : Variable());
  }
  const std::vector<Variable> below = apply.op().pullback(apply, cotangents);
  for (std::size_t i = 0; i < below.size(); ++i) {
    if (!below[i].defined() || !tangents[i].defined()) continue;
    outs.push_back(below[i]);
    above.push_back(tangents[i]);
  }
  std::vector<Variable> result(cotangents.size()), ends = apply.outputs();
  ends.insert(ends.end(), apply.inputs().begin(), apply.inputs().end());
  for (std::size_t k = 0; k < result.size(); ++k) {
    if (!cotangents[k].defined() || outs.empty()) continue;
    result[k] = pulled_back(outs, {&cotangents[k], 1}, above, ends)[0];
  }
  return result;
}

}  // namespace

std::vector<Variable> pushforward_of(const Apply& apply, std::span<const Variable> tangents) {
  std::vector<Variable> result = apply.op().pushforward(apply, tangents);
  if (!result.empty()) return result;
  const bool all_given =
      std::all_of(tangents.begin(), tangents.end(), [](const Variable& t) { return t.defined(); });
  // A missing summand of an elementwise op is left out rather than added as zeros.
  const bool spare = !all_given && dynamic_cast<const Elementwise*>(&apply.op()) &&
                     apply.op().is_linear_sum(apply);
  return is_linear_in_all(apply, tangents) && !spare ? by_linearity(apply, tangents)
                                                     : by_transposition(apply, tangents);
}

Variable stop_gradient(const Variable& x) {
  return std::make_shared<StopGradient>()->make_node({&x, 1}).output(0);
}

}  // namespace ops
}  // namespace palimpsest
