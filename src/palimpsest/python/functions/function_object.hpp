// SPDX-License-Identifier: Apache-2.0
// Internal: compiled functions as objects, and their calls.
#pragma once

#include "palimpsest/compile/function.hpp"
#include "palimpsest/python/arrays.hpp"
#include "palimpsest/python/plan_object.hpp"

namespace palimpsest::python {

/// Form of the result of a call.
enum class Form : std::uint8_t { none, single, list, dict };

struct FunctionObject {
  Function f;
  Form form = Form::list;
  std::vector<std::string> keys = {};   // of a dict
  std::vector<char> borrowed = {};      // per output
  std::vector<Use> uses = {};           // per input
  std::vector<std::string> names = {};  // of the inputs that a call may give
  Kind returns = Kind::none;
  std::vector<Variable> inputs = {}, outputs = {};  // as they were given
  bool is_pure = false;  // computes these outputs of these inputs, and lends nothing
  Use use_of(std::size_t input) const { return input < uses.size() ? uses[input] : Use::read; }
  // Ops and callbacks of Python, which its graph refers to weakly.
  std::vector<nb::object> held = {};
};

/// The slot of calls, without the other work of a bound method, which takes as long as a short
/// call.
PyObject* call_function(PyObject* self, PyObject* positional, PyObject* named);
/// The plan of a call with these arguments, with the copies that arrays of its results take.
PlanObject plan_of_call(const FunctionObject& self, nb::args positional, nb::kwargs named);
/// The first argument holds the arrays to write into.
void call_into(const FunctionObject& self, nb::args positional, nb::kwargs named);
/// Members that show the graph, the state and the work of a function.
void bind_facts_of_functions(nb::module_& m, nb::class_<FunctionObject>& c);
/// The container of an input or a shared variable, by its variable or its name.
Container& container_of_key(const FunctionObject& self, nb::handle key);
/// Class RandomState.
void bind_random_states(nb::module_& m);
/// Results in a list, as a call gives them back.
nb::object formed(const FunctionObject& self, nb::list results);

}  // namespace palimpsest::python
