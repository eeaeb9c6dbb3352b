// SPDX-License-Identifier: Apache-2.0
// function() and class Function.
#include "palimpsest/compile/function.hpp"
#include "palimpsest/compile/function_file.hpp"
#include "palimpsest/python/arrays.hpp"
#include "palimpsest/python/errors.hpp"
#include "palimpsest/python/families.hpp"
#include "palimpsest/python/functions/function_object.hpp"
#include "palimpsest/python/held_objects.hpp"
#include "palimpsest/python/plan_object.hpp"
#include "palimpsest/python/user/held_ops.hpp"
#include "palimpsest/python/values.hpp"

namespace palimpsest::python {
namespace {

using Self = const FunctionObject&;

struct InObject {
  In in;
};
struct OutObject {
  Out out;
};
// -- definitions -------------------------------------------------------------------------------

In input_of(nb::handle object) {
  if (nb::isinstance<InObject>(object)) return nb::cast<InObject&>(object).in;
  if (nb::isinstance<SharedObject>(object)) return In(nb::cast<SharedObject&>(object).shared);
  if (nb::isinstance<VariableObject>(object)) return In(nb::cast<VariableObject&>(object).value);
  throw TypeError("[function] got " + class_name(object) +
                  " among the inputs, expected a Variable or In.");
}

Out output_of(nb::handle object) {
  if (nb::isinstance<OutObject>(object)) return nb::cast<OutObject&>(object).out;
  return Out(from_python<Variable>(object));
}

// A dict, or pairs.
std::vector<std::pair<Variable, Value>> pairs_of(nb::handle object, const char* what) {
  std::vector<std::pair<Variable, Value>> pairs;
  if (object.is_none()) return pairs;
  nb::object items =
      PyDict_Check(object.ptr()) ? nb::object(object.attr("items")()) : nb::borrow(object);
  const auto refuse = [&](nb::handle got) {
    throw TypeError("[function] " + std::string(what) + ": got " + class_name(got) +
                    ", expected a dict or pairs.");
  };
  if (!PyDict_Check(object.ptr()) && !is_list(object)) refuse(object);
  for (nb::handle item : items) {
    if (!is_list(item) || nb::len(item) != 2) refuse(item);
    const nb::object key = item[0], value = item[1];
    if (!nb::isinstance<VariableObject>(key)) {
      throw TypeError("[function] got " + class_name(key) + " as a key of " + what +
                      ", expected a Variable.");
    }
    pairs.emplace_back(nb::cast<VariableObject&>(key).value, value_of(value));
  }
  return pairs;
}

Outputs outputs_of(nb::handle object, FunctionObject& made) {
  if (object.is_none()) {
    made.form = Form::none;
    return std::vector<Out>{};
  }
  if (PyDict_Check(object.ptr())) {
    made.form = Form::dict;
    std::vector<Out> list;
    const nb::object items = object.attr("items")();
    for (nb::handle item : items) {
      made.keys.push_back(text_of(nb::object(item[0]), "a text as the key of an output"));
      list.push_back(output_of(nb::object(item[1])));
    }
    return list;
  }
  if (PyList_Check(object.ptr()) || PyTuple_Check(object.ptr())) {
    made.form = Form::list;
    std::vector<Out> list;
    for (nb::handle item : object) list.push_back(output_of(item));
    return list;
  }
  made.form = Form::single;
  return output_of(object);
}

// The variables that a definition computes, replaced by f(variable).
template <class F>
void for_each_graph(std::vector<In>& ins, Outputs& outs, FunctionOptions& options, F f) {
  const auto change = [&](Value& value) {
    if (value.is_variable()) value = Value(f(value.variable()));
  };
  for (In& in : ins) change(in.options.update);
  for (Out& out : outs.list()) out.variable = f(out.variable);
  for (auto& [shared, update] : options.updates) change(update);
  for (auto& [variable, replacement] : options.givens) {
    variable = f(variable);
    change(replacement);
  }
}

// Moves the Python objects that the definition needs to the object of the function.
void hold_python(std::vector<In>& ins, Outputs& outs, FunctionOptions& options,
                 FunctionObject& made) {
  std::vector<Variable> inputs, graph;
  for (const In& in : ins) inputs.push_back(in.variable);
  for_each_graph(ins, outs, options, [&](const Variable& v) {
    graph.push_back(v);
    return v;
  });
  for (nb::object& op : hold_ops(graph, inputs, true)) made.held.push_back(std::move(op));
  std::size_t i = 0;
  for_each_graph(ins, outs, options, [&](const Variable&) { return graph[i++]; });
}

// Notes the facts about the compiled function that calls need.
void note_inputs(const std::vector<In>& inputs, FunctionObject& made) {
  for (const In& in : inputs) {
    const InOptions& o = in.options;
    const bool implicit = o.implicit.value_or(o.value.container() != nullptr);
    if (implicit) continue;
    const bool is_mutable = o.is_mutable.value_or(o.update.defined() || o.borrow.value_or(false));
    // An input with a value of its own has a container: its argument is not lent.
    const bool is_lent = !o.value.defined() && (is_mutable || o.borrow.value_or(false));
    made.uses.push_back(is_lent ? Use::lent : o.strict ? Use::read_in_place : Use::read);
    made.names.push_back(o.name.value_or(in.variable.name()));
  }
}

// True if a call reads and changes only its arguments and the values of shared variables.
bool is_pure(const std::vector<In>& inputs, const FunctionOptions& options,
             const FunctionObject& made) {
  if (!options.updates.empty() || !options.givens.empty() || options.trust_input) return false;
  for (const In& in : inputs) {
    if (in.options.value.defined() || in.options.update.defined()) return false;
  }
  for (const auto& cell : made.f.shared_variables()) {
    if (cell->default_update().defined()) return false;
  }
  return std::count(made.uses.begin(), made.uses.end(), Use::lent) == 0 &&
         std::none_of(made.borrowed.begin(), made.borrowed.end(), [](char lent) { return lent; });
}

// Turns C++ log messages about the user's program into warnings at the user's line.
Function made_with_warnings(const std::vector<In>& ins, const Outputs& outs,
                            FunctionOptions options) {
  const bool warns = options.on_unused_input.value_or(config().on_unused_input) == Reaction::warn;
  if (warns) options.on_unused_input = Reaction::raise;
  try {
    return released([&] { return function(ins, outs, options); });
  } catch (const UnusedInputError& error) {
    if (!warns) throw;
    const nb::object category =
        nb::module_::import_("palimpsest._core.errors").attr("PalimpsestWarning");
    if (PyErr_WarnEx(category.ptr(), in_python(error.what()).c_str(), 1) != 0)
      throw nb::python_error();
    options.on_unused_input = Reaction::ignore;
    return released([&] { return function(ins, outs, options); });
  }
}

FunctionObject make_function(
    Shown<"Sequence[Variable | In]"> inputs,
    Shown<"VariableLike | Out | Sequence[VariableLike | Out] | "
          "Mapping[str, VariableLike | Out]">
        outputs,
    std::optional<GivenMode> mode,
    Shown<"Mapping[SharedVariable, VariableLike] | "
          "Sequence[tuple[SharedVariable, VariableLike]]">
        updates,
    Shown<"Mapping[Any, VariableLike] | Sequence[tuple[Any, VariableLike]]"> givens,
    Shown<"bool | Sequence[SharedVariable]"> no_default_updates, bool accept_inplace,
    const std::optional<std::string>& name, bool rebuild_strict,
    std::optional<bool> allow_input_downcast, std::optional<bool> profile,
    const std::optional<std::string>& on_unused_input, bool trust_input, Shown<"int | str"> budget,
    Shown<"str"> returns) {
  FunctionObject made;
  if (!is_list(inputs)) {
    throw TypeError("[function] got " + class_name(inputs) + " as inputs, expected a list.");
  }
  std::vector<In> ins;
  for (nb::handle item : inputs) ins.push_back(input_of(item));
  Outputs outs = outputs_of(outputs, made);
  for (const Out& out : outs.list()) made.borrowed.push_back(out.options.borrow);
  note_inputs(ins, made);
  made.returns = kind_named(returns);
  FunctionOptions options;
  options.updates = pairs_of(updates, "updates");
  options.givens = pairs_of(givens, "givens");
  if (mode) {
    options.mode = mode->value;
    made.held = std::move(mode->held);
  }
  options.name = name.value_or("");
  if (!budget.is_none()) options.budget_bytes = bytes_of(budget);
  options.profile = profile;
  if (on_unused_input) options.on_unused_input = reaction_named(*on_unused_input);
  options.accept_inplace = accept_inplace;
  if (PyBool_Check(no_default_updates.ptr())) {
    options.no_default_updates = no_default_updates.ptr() == Py_True;
  } else {
    options.no_default_updates = from_python<std::vector<Variable>>(no_default_updates);
  }
  options.rebuild_strict = rebuild_strict;
  options.allow_input_downcast = allow_input_downcast;
  options.trust_input = trust_input;
  hold_python(ins, outs, options, made);
  made.f = made_with_warnings(ins, outs, options);
  made.is_pure = is_pure(ins, options, made);
  for (const In& in : ins) made.inputs.push_back(in.variable);
  for (const Out& out : outs.list()) made.outputs.push_back(out.variable);
  return made;
}

InValue in_value(nb::handle value, bool may_copy) {
  if (value.is_none()) return {};
  if (nb::isinstance<SharedObject>(value)) return nb::cast<SharedObject&>(value).shared.container();
  return value_of(value, may_copy);
}

InObject make_in(nb::handle variable, const std::optional<std::string>& name, nb::handle value,
                 nb::handle update, std::optional<bool> is_mutable, std::optional<bool> borrow,
                 bool strict, std::optional<bool> allow_downcast, std::optional<bool> implicit,
                 bool autoname) {
  In in = input_of(variable);
  in.options = {.name = name,
                .value = in_value(value, !strict),
                .update = update.is_none() ? Value() : value_of(update),
                .is_mutable = is_mutable,
                .borrow = borrow,
                .strict = strict,
                .allow_downcast = allow_downcast,
                .implicit = implicit,
                .autoname = autoname};
  return {std::move(in)};
}

// -- members -----------------------------------------------------------------------------------

PlanObject planned(Self self, nb::args positional, nb::kwargs named) {
  const bool has_types = std::any_of(positional.begin(), positional.end(), is_type);
  if (!has_types) return plan_of_call(self, positional, named);
  if (named.size() > 0) throw TypeError("[plan] got keywords beside types, expected types alone.");
  std::vector<TensorType> types;
  for (nb::handle argument : positional) types.push_back(from_python<TensorType>(argument));
  return {std::make_shared<const Plan>(released([&] { return self.f.plan(types); }))};
}

std::string call_signature(Self self) {
  std::string text = "Function(";
  const std::vector<Variable> inputs = self.f.inputs();
  for (std::size_t i = 0; i < self.names.size() && i < inputs.size(); ++i) {
    if (i > 0) text += ", ";
    text += (self.names[i].empty() ? "_" : self.names[i]) + ": " + inputs[i].type().str();
  }
  text += ") -> " + std::to_string(self.f.output_count()) + " output";
  if (self.f.output_count() != 1) text += "s";
  return self.f.name().empty() ? text : self.f.name() + " = " + text;
}

nb::dict dict_of(nb::handle object, const char* where) {
  if (PyDict_Check(object.ptr())) return nb::borrow<nb::dict>(object);
  throw TypeError(std::string(where) + ": got " + class_name(object) + ", expected a dict.");
}

FunctionObject copy_of(Self self, bool share_memory, nb::handle swap, bool delete_updates,
                       const std::optional<std::string>& name, std::optional<bool> profile) {
  CopyOptions options{.share_memory = share_memory,
                      .delete_updates = delete_updates,
                      .name = name,
                      .profile = profile};
  if (!swap.is_none()) {
    const auto shared = [](nb::handle object) {
      if (nb::isinstance<SharedObject>(object)) return nb::cast<SharedObject&>(object).shared;
      throw TypeError("[Function.copy] swap: got " + class_name(object) +
                      ", expected a SharedVariable.");
    };
    for (const auto& [from, to] : dict_of(swap, "[Function.copy] swap")) {
      options.swap.emplace_back(shared(from), shared(to));
    }
  }
  FunctionObject copied = self;
  copied.f = released([&] { return self.f.copy(options); });
  return copied;
}

FunctionObject loaded(const std::string& path) {
  FunctionObject made;
  made.f = released([&] { return Function::load(path); });
  made.form = made.f.is_single() ? Form::single : Form::list;
  for (const Variable& input : made.f.inputs()) made.names.push_back(input.name());
  return made;
}

// -- pickles -----------------------------------------------------------------------------------

// The function as it is called, without the graph that it was compiled from.
nb::object reduced(Self self) {
  std::vector<std::shared_ptr<Container>> containers;
  const std::vector<std::byte> data =
      released([&] { return functions_to_bytes(std::span(&self.f, 1), containers); });
  const nb::bytes bytes(data.data(), data.size());
  const nb::object modules = nb::module_::import_("palimpsest.user_ops").attr("_modules_in")(bytes);
  const std::vector<bool> borrowed(self.borrowed.begin(), self.borrowed.end());
  std::vector<int> uses;  // of old: true where an argument is lent
  for (const Use use : self.uses) uses.push_back(static_cast<int>(use));
  return nb::make_tuple(
      nb::module_::import_("palimpsest._pickles").attr("function_of_bytes"),
      nb::make_tuple(bytes, modules, static_cast<int>(self.form), self.keys, self.names, borrowed,
                     uses, static_cast<int>(self.returns), objects_of(containers)));
}

FunctionObject function_of_bytes(const nb::bytes& bytes, int form, std::vector<std::string> keys,
                                 std::vector<std::string> names, std::vector<bool> borrowed,
                                 nb::list uses, int returns, nb::handle given) {
  const auto* const data = static_cast<const std::byte*>(bytes.data());
  const std::vector<std::shared_ptr<Container>> containers = containers_in(given);
  FunctionObject made;
  made.f = released([&] { return functions_from_bytes({data, bytes.size()}, containers).at(0); });
  made.form = static_cast<Form>(form);
  made.keys = std::move(keys);
  made.names = std::move(names);
  made.borrowed.assign(borrowed.begin(), borrowed.end());
  for (nb::handle use : uses) {
    made.uses.push_back(use.ptr() == Py_True ? Use::lent
                                             : static_cast<Use>(PyLong_AsLong(use.ptr())));
  }
  made.returns = static_cast<Kind>(returns);
  return made;
}

nb::object definition_of(Self self) {
  if (!self.is_pure) return nb::none();
  std::vector<Variable> outputs = self.outputs;
  hold_ops(outputs, self.inputs, false);
  return nb::make_tuple(self.inputs, outputs);
}

void bind_ends(nb::module_& m) {
  nb::class_<InObject>(m, "In", "An input of a function, with options for its calls.")
      .def(
          "__init__",
          [](InObject* self, nb::handle variable, std::optional<std::string> name, nb::handle value,
             nb::handle update, std::optional<bool> is_mutable, std::optional<bool> borrow,
             bool strict, std::optional<bool> allow_downcast, std::optional<bool> implicit,
             bool autoname) {
            new (self) InObject(make_in(variable, name, value, update, is_mutable, borrow, strict,
                                        allow_downcast, implicit, autoname));
          },
          "variable"_a, nb::kw_only(), "name"_a.none() = nb::none(), "value"_a.none() = nb::none(),
          "update"_a.none() = nb::none(), "mutable"_a.none() = nb::none(),
          "borrow"_a.none() = nb::none(), "strict"_a = false,
          "allow_downcast"_a.none() = nb::none(), "implicit"_a.none() = nb::none(),
          "autoname"_a = true)
      .def_prop_ro("variable", [](const InObject& in) { return in.in.variable; });
  nb::class_<OutObject>(m, "Out", "An output of a function.")
      .def(
          "__init__",
          [](OutObject* self, Variable variable, bool borrow, bool internal) {
            new (self)
                OutObject{Out(variable, {.borrow = borrow, .return_internal_type = internal})};
          },
          "variable"_a, nb::kw_only(), "borrow"_a = false, "return_internal_type"_a = false)
      .def_prop_ro("variable", [](const OutObject& out) { return out.out.variable; });
}

}  // namespace

void bind_functions(nb::module_& m) {
  bind_ends(m);
  static PyType_Slot slots[] = {{Py_tp_call, reinterpret_cast<void*>(call_function)},
                                PALIMPSEST_SLOTS_OF_HELD(FunctionObject),
                                {0, nullptr}};
  nb::class_<FunctionObject> c(m, "Function", nb::is_weak_referenceable(), nb::type_slots(slots),
                               "A compiled graph.");
  bind_facts_of_functions(m, c);
  bind_random_states(m);
  c.def("call_into", call_into,
        "call_into(out, *args, **kwargs): writes the results into given arrays.")
      .def("plan", planned,
           "The plan for arguments like these: TensorType or (dtype, shape); or, with all copies, "
           "that of a call with these arrays.")
      .def(
          "prepare",
          [](Self self, nb::args positional) {
            std::vector<Tensor> arguments;
            for (nb::handle given : positional) arguments.push_back(from_python<Tensor>(given));
            released([&] { self.f.prepare(arguments); });
          },
          "Allocates now what a call with arrays like these would allocate but for its results.")
      .def(
          "free", [](Self self) { released([&] { self.f.free(); }); },
          "Releases the memory that waits for a call.")
      .def("copy", copy_of, "share_memory"_a = false, "swap"_a.none() = nb::none(),
           "delete_updates"_a = false, "name"_a.none() = nb::none(),
           "profile"_a.none() = nb::none())
      .def(
          "__getitem__",
          [](Self self, nb::handle key) {
            return value_in_kind(container_of_key(self, key), Kind::numpy, false, false);
          },
          "key"_a.none())
      .def(
          "__setitem__",
          [](Self self, nb::handle key, nb::handle value) {
            Container& cell = container_of_key(self, key);
            const Value given = value_of(value, !cell.strict());
            released([&] { cell.set_value(given); });
          },
          "key"_a.none(), "value"_a.none())
      .def_prop_ro("name", [](Self self) { return self.f.name(); })
      .def_prop_ro("inputs", [](Self self) { return self.f.inputs(); })
      .def_prop_ro("n_outputs", [](Self self) { return self.f.output_count(); })
      .def(
          "save", [](Self self, const std::string& path) { released([&] { self.f.save(path); }); },
          "path"_a)
      .def_static("load", loaded, "path"_a)
      .def("__reduce__", reduced)
      .def_prop_ro("_definition", definition_of)
      .def("_formed", formed)
      .def_prop_ro("_names", [](Self self) { return self.names; })
      .def("__repr__", call_signature);
  m.def("_function_of_bytes", function_of_bytes);
  m.def("function", make_function, "inputs"_a, "outputs"_a.none() = nb::none(),
        "mode"_a.none() = nb::none(), "updates"_a.none() = nb::none(),
        "givens"_a.none() = nb::none(), "no_default_updates"_a = false, "accept_inplace"_a = false,
        "name"_a.none() = nb::none(), "rebuild_strict"_a = true,
        "allow_input_downcast"_a.none() = nb::none(), "profile"_a.none() = nb::none(),
        "on_unused_input"_a.none() = nb::none(), "trust_input"_a = false, nb::kw_only(),
        "budget"_a.none() = nb::none(), "returns"_a.none() = nb::none(), "Compiles a graph.");
}

}  // namespace palimpsest::python
