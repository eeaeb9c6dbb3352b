// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/inspect/debug/isolated_pass.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>

#include "palimpsest/graph/collective.hpp"
#include "palimpsest/inspect/debug/byte_sets.hpp"
#include "palimpsest/inspect/debug/scan_values.hpp"
#include "palimpsest/ops/control/control_op.hpp"
#include "palimpsest/ops/shape/contiguous_op.hpp"
#include "palimpsest/plan/guards.hpp"
#include "palimpsest/plan/part_places.hpp"

namespace palimpsest {
namespace {

// The layout that the planner gives a result that is a view, counted from the input's first
// element.
std::optional<Layout> view_layout(const Apply& node, int output, const AliasMap& views,
                                  std::span<const Layout> inputs, int* input) {
  const auto it = views.find(output);
  if (it == views.end() || it->second.size() != 1) return std::nullopt;
  *input = *it->second.begin();
  return node.op().view_layout(node, output, inputs[static_cast<std::size_t>(*input)]);
}

}  // namespace

void IsolatedPass::bind(const Variable& v, const ConstView& view, const std::string& role) {
  const DebugValue value = DebugValue::read(view);
  const auto fail = [&](const std::string& what) {
    throw InvalidValueError(fmt::format("[DebugMode: InvalidValueError] {} {}: {}\n  type: {}\n  "
                                        "value: {}\n  Hint: look at where the value comes from.",
                                        role, v.str(), what, v.type().str(), value.str()),
                            {{}, {}, v, -1, -1});
  };
  if (value.dtype() != v.dtype() || !v.type().admits(value.extents())) {
    fail("the value does not fit the type");
  }
  if (is_bool(value.dtype()) && std::any_of(value.data(), value.data() + value.bytes(),
                                            [](std::byte b) { return b > std::byte{1}; })) {
    fail("a bool is neither 0 nor 1");
  }
  if (options_.check_finite) {
    if (const NumberScan scan = scan_numbers(view, {})) {
      fail(fmt::format("{} at {}: {} of {} elements are not finite", scan.value,
                       to_string(scan.index), scan.bad, scan.elements));
    }
  }
  values_[v.node()] = {value, layout_of(view)};
}

const IsolatedPass::Known& IsolatedPass::known(const Variable& v) {
  const auto it = values_.find(v.node());
  if (it != values_.end()) return it->second;
  if (!v.is_constant()) {
    throw InternalError("[DebugMode] " + v.str() + " is used before it is computed");
  }
  bind(v, v.node()->value.view_of(), "constant");
  return values_.at(v.node());
}

// True if every needed input has a value. For an ifelse one of two values is enough.
bool IsolatedPass::is_available(const Apply& node) const {
  for (std::size_t i = 0; i < node.input_count(); ++i) {
    const Variable& v = input_for(node, i);
    if (!v.is_constant() && !has(v)) return false;
  }
  return true;
}

// The variable used for an input. If a branch that is not taken has failed, the other branch's
// value.
const Variable& IsolatedPass::input_for(const Apply& node, std::size_t i) const {
  const Variable& v = node.input(i);
  const auto* const choice = dynamic_cast<const ops::IfElse*>(&node.op());
  if (!choice || i == 0 || v.is_constant() || has(v)) return v;
  return node.input(i <= choice->count() ? i + choice->count() : i - choice->count());
}

bool IsolatedPass::is_taken(const Branches& branches, int branch) const {
  if (branch < 0) return true;
  const Branch& b = branches[branch];
  if (!is_taken(branches, b.parent)) return false;
  const Variable& condition = b.condition;
  if (condition.is_constant()) return condition.node()->value.item<bool>() == b.when;
  return (*value(condition).data() != std::byte{}) == b.when;
}

// Runs a node of a branch that is not taken. Its values and its errors are not observable; but
// damage to memory is a fault of its op all the same.
void IsolatedPass::try_node(const Apply& node, const StepContext& context) {
  if (failed_.contains(node.node())) return;
  try {
    run_node(node, context, false);
    return;
  } catch (const InvalidValueError&) {
  } catch (const DebugModeError&) {
    throw;
  } catch (const std::exception&) {
  }
  failed_.insert(node.node());
}

Layout IsolatedPass::layout_for(const Apply& node, int input, const Known& known) {
  if (known.layout.is_dense()) return known.layout;
  const Layout dense = Layout::dense(known.layout.dtype, known.layout.extents);
  // A loop passes strides on to its body.
  if (ops::rounds_by_layout(node) || !node.op().inner_results().empty()) {
    has_met_strides_ = true;
    if (operands_ == Operands::dense) return dense;
  }
  // Only an attempt that was refused can be about to overwrite elements that share memory.
  const bool is_written = overwritten_inputs(node).contains(input);
  return is_written && may_overlap_itself(known.layout) ? dense : known.layout;
}

StepContext IsolatedPass::context_of(const Apply& node) {
  StepContext context;
  context.pass = name_;
  context.node = node;
  context.reason = reason_of_(node);
  for (std::size_t i = 0; i < node.input_count(); ++i) {
    const Known& input = known(input_for(node, i));
    context.inputs.push_back(input.value);
    context.layouts.push_back(layout_for(node, static_cast<int>(i), input));
  }
  context.is_read_later.assign(node.output_count(), true);
  return context;
}

void IsolatedPass::run(const FunctionGraph& graph,
                       const std::function<int(const Apply&)>& step_of) {
  try {
    run_nodes(graph, step_of);
  } catch (const std::exception& error) {
    // Other processes wait for this one.
    for (const Apply& node : graph.toposort()) {
      const Collective* const op = as_collective(node.op());
      if (!op) continue;
      op->abandon(error.what());
      break;
    }
    throw;
  }
}

void IsolatedPass::run_nodes(const FunctionGraph& graph,
                             const std::function<int(const Apply&)>& step_of) {
  int number = 0;
  std::vector<Apply> order = graph.toposort();
  const Branches branches(graph, order);
  for (const Apply& node : order) {
    const bool taken = is_taken(branches, branches.of(node));
    has_untaken_ = has_untaken_ || !taken;
    if (!taken && (options_.check_branches != "both" || !is_available(node))) continue;
    StepContext context = context_of(node);
    context.step = step_of(node);
    context.number = number++;
    for (std::size_t k = 0; k < node.output_count(); ++k) {
      const auto uses = graph.uses(node.output(k));
      context.is_read_later[k] =
          std::any_of(uses.begin(), uses.end(), [](const Use& use) { return use.node.defined(); });
    }
    if (taken) {
      run_node(node, context, true);
    } else {
      try_node(node, context);
    }
  }
}

void IsolatedPass::run_node(const Apply& node, const StepContext& context, bool with_patterns) {
  const AliasMap views = node.op().view_map(node), destroys = node.op().destroy_map(node);
  const std::vector<DebugValue> results = IsolatedStep(options_, context).check(with_patterns);
  for (std::size_t k = 0; k < results.size(); ++k) {
    const int output = static_cast<int>(k);
    Known result{results[k], Layout::dense(results[k].dtype(), results[k].extents())};
    int input = -1;
    if (const auto layout = view_layout(node, output, views, context.layouts, &input)) {
      const DebugValue seen = check_view(options_, context, output, input, *layout);
      const Difference difference = compare(seen, results[k], {});
      if (!difference.is_within) {
        throw BadThunkOutput(
            DebugMessage("BadThunkOutput", context)
                .line(fmt::format("output {}: as a view and as a copy it is not the same", k))
                .value("view of input " + std::to_string(input), seen)
                .value("copy by run()", results[k])
                .line(difference.str())
                .finish(nullptr, "view_layout() and run() must show the same elements."),
            {context.reason, node, node.output(k), input, output});
      }
      result.layout = *layout;
      result.layout.byte_offset = 0;
    } else if (const auto it = destroys.find(output); it != destroys.end()) {
      result.layout = context.layouts[static_cast<std::size_t>(*it->second.begin())];
      result.layout.dtype = results[k].dtype();
    }
    values_[node.output(k).node()] = std::move(result);
  }
}

double IsolatedPass::largest() const {
  double largest = 0;
  for (const auto& [node, known] : values_) {
    if (is_inexact(known.value.dtype())) largest = std::max(largest, scale_of(known.value));
  }
  return largest;
}

DebugValue IsolatedPass::evaluate(const Variable& v) {
  for (const Apply& node : applications_of({&v, 1})) {
    if (has(node.output(0)) || !is_available(node)) continue;
    const StepContext context = context_of(node);
    if (has_untaken_) {
      try_node(node, context);
    } else {
      run_node(node, context, false);
    }
  }
  return v.is_constant() || has(v) ? known(v).value : DebugValue();
}

DebugValue check_view(const DebugOptions&, const StepContext& context, int output, int input,
                      const Layout& layout) {
  const auto i = static_cast<std::size_t>(input);
  const Layout& in = context.layouts[i];
  const Span whole = span_of(in), part = span_of(layout);
  const auto fail = [&](const std::string& what, const std::string& hint) {
    throw BadViewMap(DebugMessage("BadViewMap", context)
                         .line(what)
                         .line("view region: " +
                               context.node.op().view_region(context.node, output, input).str())
                         .finish(nullptr, hint),
                     {context.reason, context.node,
                      context.node.output(static_cast<std::size_t>(output)), input, output});
  };
  const index_t begin = whole.first + layout.byte_offset - part.first;
  if (part.bytes > 0 &&
      (begin < 0 || begin + static_cast<index_t>(part.bytes) > static_cast<index_t>(whole.bytes))) {
    fail(fmt::format("output {} shows bytes {}..{} of input {}, which has {}", output, begin,
                     begin + static_cast<index_t>(part.bytes) - 1, input, whole.bytes),
         "view_layout() must stay inside of the input.");
  }
  std::vector<std::byte> image(whole.bytes + item_size(in.dtype));
  context.inputs[i].write(view_at(image.data() + whole.first, in));
  const DebugValue value =
      DebugValue::read(view_at(image.data() + (part.bytes > 0 ? begin + part.first : 0), layout));

  const Region region = context.node.op().view_region(context.node, output, input);
  const auto dense =
      context.node.op().view_layout(context.node, output, Layout::dense(in.dtype, in.extents));
  if (region.is_whole() || region.is_unknown() || !dense || span_of(*dense).bytes == 0) {
    return value;
  }
  const TensorType type{in.dtype, in.extents, {}};
  const auto item = static_cast<index_t>(item_size(layout.dtype));
  Extents index(dense->extents.size(), 0);
  for (;;) {
    const index_t byte =
        dense->byte_offset +
        item * std::inner_product(index.begin(), index.end(), dense->strides.begin(), index_t{0});
    if (!holds(region, type, byte, item)) {
      fail(fmt::format("output {} shows bytes {}..{} of the row-major input {}, outside of the "
                       "declared region",
                       output, byte, byte + item - 1, input),
           "view_region must hold every byte that the view shows.");
    }
    std::size_t axis = index.size();
    while (axis > 0 && ++index[axis - 1] == dense->extents[axis - 1]) index[--axis] = 0;
    if (axis == 0) return value;
  }
}

}  // namespace palimpsest
