// SPDX-License-Identifier: Apache-2.0
// Derivatives of graphs, their texts, and plans.
#include "palimpsest/compile/function.hpp"
#include "palimpsest/inspect/print.hpp"
#include "palimpsest/ops/gradient.hpp"
#include "palimpsest/ops/linear.hpp"
#include "palimpsest/python/families.hpp"
#include "palimpsest/python/functions/function_object.hpp"
#include "palimpsest/python/plan_object.hpp"

namespace palimpsest::python {

PALIMPSEST_NAMES(Disconnected, "disconnected", "raise", "zero", "none")
PALIMPSEST_NAMES(IdType, "id_type", "characters", "integers", "addresses", "none")

namespace {

nb::object gradient(Variable cost, nb::handle wrt, std::vector<Variable> consider_constant,
                    const std::string& disconnected, nb::handle known_grads) {
  GradOptions options{.consider_constant = std::move(consider_constant),
                      .disconnected = from_python<Disconnected>(nb::cast(disconnected))};
  if (!known_grads.is_none()) {
    const nb::object items = known_grads.attr("items")();
    for (nb::handle item : items) {
      options.known_grads.emplace_back(from_python<Variable>(nb::object(item[0])),
                                       from_python<Variable>(nb::object(item[1])));
    }
  }
  if (is_list(wrt) && !nb::isinstance<VariableObject>(wrt)) {
    return nb::cast(grad(cost, from_python<std::vector<Variable>>(wrt), options));
  }
  return to_python(grad(cost, from_python<Variable>(wrt), options));
}

// None is a cotangent or a tangent of zeros.
std::vector<Variable> open_list(nb::handle list) {
  std::vector<Variable> variables;
  for (nb::handle item : list) {
    variables.push_back(item.is_none() ? Variable() : from_python<Variable>(item));
  }
  return variables;
}

const char* name_of(Linearity linearity) {
  constexpr const char* names[] = {"no", "real", "complex", "conjugate"};
  return names[static_cast<int>(linearity)];
}

const Plan& plan_of(const PlanObject& p) { return *p.plan; }

void bind_plan(nb::module_& m) {
  nb::class_<PlanObject> c(m, "Plan", "Order, placement and peak of a call, before it runs.");
#define PALIMPSEST_BYTES(name, doc) \
  c.def_prop_ro(                    \
      #name, [](const PlanObject& p) { return plan_of(p).name; }, doc);
  PALIMPSEST_BYTES(peak_bytes, "All that a call holds above arguments, containers and constants.")
  PALIMPSEST_BYTES(arena_bytes, "Of this, the memory of intermediate values.")
  PALIMPSEST_BYTES(output_bytes, "Of this, results.")
  PALIMPSEST_BYTES(update_bytes, "Of this, new values of shared variables.")
  PALIMPSEST_BYTES(
      entry_copy_bytes,
      "The most that the state of a call can force to be copied. Of a plan for arrays: "
      "what the call copies, which is part of the peak.")
  PALIMPSEST_BYTES(lower_bound_bytes, "No placement in this order takes less.")
  PALIMPSEST_BYTES(serial_peak_bytes, "The peak with one lane.")
  PALIMPSEST_BYTES(external_bytes, "Bytes that libraries hold besides.")
  PALIMPSEST_BYTES(repeated_bytes, "Results that are computed twice to keep to the budget.")
  PALIMPSEST_BYTES(no_reuse_bytes, "Bytes that a call would hold without freeing any.")
  PALIMPSEST_BYTES(saved_by_view_bytes, "Results that show other values.")
  PALIMPSEST_BYTES(saved_by_inplace_bytes, "Results that overwrite other values.")
  PALIMPSEST_BYTES(saved_by_join_bytes, "Parts that are computed where a join would copy them to.")
  PALIMPSEST_BYTES(lanes, "How many steps may run side by side.")
#undef PALIMPSEST_BYTES
  c.def_prop_ro("n_steps", [](const PlanObject& p) { return plan_of(p).steps.size(); })
      .def("to_json", [](const PlanObject& p) { return plan_of(p).to_json(); })
      .def("to_svg", [](const PlanObject& p) { return plan_of(p).to_svg(); })
      .def(
          "explain", [](const PlanObject& p) { nb::print(plan_of(p).to_string().c_str()); },
          "Prints the report.")
      .def(
          "plot",
          [](nb::handle self, nb::handle ax) {
            return nb::module_::import_("palimpsest.plotting").attr("plot_plan")(self, ax);
          },
          "ax"_a.none() = nb::none(),
          "Draws buffers over steps with matplotlib; returns the axes.\n\n"
          "Examples\n--------\n"
          ">>> import matplotlib; matplotlib.use('Agg')\n"
          ">>> plan = ps.Scalar(2.0, 'N').plan(np.ones(4))\n"
          ">>> plan.plot().get_xlabel()\n"
          "'step'")
      .def("_repr_html_", [](const PlanObject& p) { return plan_of(p).to_svg(); })
      .def("__str__", [](const PlanObject& p) { return plan_of(p).to_string(); })
      .def("__repr__", [](const PlanObject& p) {
        return "Plan(" + std::to_string(plan_of(p).steps.size()) + " steps, peak " +
               std::to_string(plan_of(p).peak_bytes) + " bytes)";
      });
}

// -- texts ---------------------------------------------------------------------------------------

[[noreturn]] void refuse(const char* who, nb::handle object, const char* expected) {
  throw TypeError("[" + std::string(who) + "] got " + class_name(object) + ", expected " +
                  expected + ".");
}

std::string tree_of(nb::handle x, const DebugPrintOptions& options) {
  constexpr const char* expected = "a Variable, a list of Variables or a Function";
  if (nb::isinstance<FunctionObject>(x)) {
    return debugprint(nb::cast<FunctionObject&>(x).f, options);
  }
  if (nb::isinstance<VariableObject>(x)) {
    return debugprint(nb::cast<VariableObject&>(x).value, options);
  }
  if (!is_list(x)) refuse("debugprint", x, expected);
  std::vector<Variable> list;
  for (nb::handle item : x) {
    if (!nb::isinstance<VariableObject>(item)) refuse("debugprint", item, expected);
    list.push_back(nb::cast<VariableObject&>(item).value);
  }
  return debugprint(list, options);
}

// `text(x, options)` with the options as keywords.
template <class F>
void def_text(nb::module_& m, const char* name, F text, const char* doc) {
  m.def(
      name,
      [text](nb::handle x, int depth, bool print_type, nb::handle id_type, bool stop_on_name,
             bool print_destroy_map, bool print_view_map, bool print_order, bool print_regions,
             bool print_inner_graphs, bool print_memory) {
        return text(x, DebugPrintOptions{.depth = depth,
                                         .print_type = print_type,
                                         .id_type = from_python<IdType>(id_type),
                                         .stop_on_name = stop_on_name,
                                         .print_destroy_map = print_destroy_map,
                                         .print_view_map = print_view_map,
                                         .print_order = print_order,
                                         .print_regions = print_regions,
                                         .print_inner_graphs = print_inner_graphs,
                                         .print_memory = print_memory});
      },
      "x"_a, nb::kw_only(), "depth"_a = -1, "print_type"_a = false, "id_type"_a = "characters",
      "stop_on_name"_a = false, "print_destroy_map"_a = true, "print_view_map"_a = true,
      "print_order"_a = true, "print_regions"_a = false, "print_inner_graphs"_a = true,
      "print_memory"_a = false, doc);
}

void bind_texts(nb::module_& m) {
  def_text(m, "debugprint", tree_of,
           "The graph of a Variable, of several or of a Function as a tree.");
  def_text(
      m, "dprint",
      [](nb::handle x, const DebugPrintOptions& options) {
        nb::print(tree_of(x, options).c_str());
      },
      "Prints the graph of a Variable, of several or of a Function as a tree.");
  m.def(
      "pprint",
      [](nb::handle x) {
        if (!nb::isinstance<VariableObject>(x)) refuse("pprint", x, "a Variable");
        return pprint(nb::cast<VariableObject&>(x).value);
      },
      "x"_a, "The graph as a formula.");
  m.def(
      "to_dot",
      [](nb::handle x, bool print_memory) {
        const DebugPrintOptions options{.print_memory = print_memory};
        if (nb::isinstance<FunctionObject>(x)) {
          return to_dot(nb::cast<FunctionObject&>(x).f, options);
        }
        if (!nb::isinstance<VariableObject>(x)) refuse("to_dot", x, "a Variable or a Function");
        return to_dot(nb::cast<VariableObject&>(x).value, options);
      },
      "x"_a, nb::kw_only(), "print_memory"_a = false,
      "The graph of a Variable or of a Function for Graphviz.");
}

}  // namespace

void add_copies_of_arrays(Plan& plan, std::span<const char> lent) {
  const auto slot_of = [&](std::size_t i) -> const Slot& {
    return plan.slots[static_cast<std::size_t>(plan.outputs[i].slot)];
  };
  const auto shares = [&](std::size_t i) {
    const Handover how = plan.outputs[i].how;
    return (how == Handover::clone || how == Handover::own) && (i >= lent.size() || !lent[i]);
  };
  for (std::size_t i = 0; i < plan.outputs.size(); ++i) {
    if (!shares(i)) continue;
    const int buffer = slot_of(i).buffer;
    const BufferKind kind = plan.buffers[static_cast<std::size_t>(buffer)].kind;
    const bool is_of_call = kind == BufferKind::output || kind == BufferKind::update;
    bool copies = !is_of_call && plan.outputs[i].how == Handover::clone;
    // Copies if a later output shows the same memory of the call: only the last may own it.
    for (std::size_t j = i + 1; is_of_call && j < plan.outputs.size(); ++j) {
      copies |= shares(j) && slot_of(j).buffer == buffer;
    }
    if (!copies) continue;
    const Layout& layout = slot_of(i).layout;
    const auto item = static_cast<index_t>(item_size(layout.dtype));
    const index_t bytes = element_count(layout.extents) * item;
    plan.entry_copy_bytes += bytes;
    plan.peak_bytes += bytes;
  }
}

void bind_graphs(nb::module_& m) {
  m.def("grad", gradient, "cost"_a, "wrt"_a, nb::kw_only(),
        "consider_constant"_a = nb::make_tuple(), "disconnected"_a = "raise",
        "known_grads"_a.none() = nb::none(),
        "The gradients of a real scalar: a Variable for a Variable, a list for a list.\n\n"
        "Of a complex z = a + ib it is dC/da + i dC/db.");
  m.def(
      "pullback",
      [](std::vector<Variable> outs, std::vector<Variable> wrt,
         Shown<"Sequence[VariableLike | None]"> cotangents) {
        return pullback(outs, wrt, open_list(cotangents));
      },
      "outs"_a, "wrt"_a, "cotangents"_a, "Cotangents of wrt, given those of outs.");
  m.def(
      "pushforward",
      [](std::vector<Variable> outs, std::vector<Variable> wrt,
         Shown<"Sequence[VariableLike]"> tangents) {
        return pushforward(outs, wrt, open_list(tangents));
      },
      "outs"_a, "wrt"_a, "tangents"_a, "Tangents of outs, given those of wrt.");
  m.def("linear_adjoint", &linear_adjoint, "y"_a, "x"_a, "w"_a, "A^H w for a graph y = A x.");
  m.def(
      "is_linear", [](Variable y, Variable x) { return name_of(is_linear(y, x)); }, "y"_a, "x"_a,
      "'no', 'real', 'complex' or 'conjugate': the sense in which y is linear in x.");
  bind_texts(m);
  bind_plan(m);
}

}  // namespace palimpsest::python
