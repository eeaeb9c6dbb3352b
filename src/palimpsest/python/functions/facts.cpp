// SPDX-License-Identifier: Apache-2.0
// Facts that a function shows of itself: its graph, its containers, its measured times.
#include <nanobind/stl/map.h>

#include "palimpsest/inspect/print.hpp"
#include "palimpsest/python/arrays.hpp"
#include "palimpsest/python/errors.hpp"
#include "palimpsest/python/functions/function_object.hpp"

namespace palimpsest::python {
namespace {

using Self = const FunctionObject&;

SharedObject shared_of(const std::shared_ptr<Container>& container) {
  return {SharedVariable(container->type(), container), Kind::numpy};
}

struct GraphObject {
  Function of;
  const FunctionGraph& graph() const { return of.graph(); }
};

void bind_graph(nb::module_& m) {
  nb::class_<GraphObject>(m, "_FunctionGraph", "The optimized graph of a function, read-only.")
      .def_prop_ro("inputs", [](const GraphObject& g) { return g.graph().inputs(); })
      .def_prop_ro("outputs", [](const GraphObject& g) { return g.graph().outputs(); })
      .def("__len__", [](const GraphObject& g) { return g.graph().node_count(); })
      .def("toposort", [](const GraphObject& g) { return g.graph().toposort(); })
      .def("__repr__", [](const GraphObject& g) { return debugprint(g.graph()); });
}

void bind_profile(nb::module_& m) {
  nb::class_<Profile>(m, "_Profile", "Time and memory of compiling and calling a function.")
      .def_ro("function", &Profile::function)
      .def_ro("calls", &Profile::calls)
      .def_ro("call_seconds", &Profile::call_seconds)
      .def_ro("step_seconds", &Profile::step_seconds)
      .def_ro("check_seconds", &Profile::check_seconds)
      .def_ro("compile_seconds", &Profile::compile_seconds)
      .def("seconds_by_class", [](const Profile& p) { return p.seconds_by_class(); })
      .def("seconds_by_op", [](const Profile& p) { return p.seconds_by_op(); })
      .def("summary", &Profile::summary)
      .def("to_json", &Profile::to_json)
      .def("__repr__", &Profile::summary);
}

}  // namespace

Container& container_of_key(Self self, nb::handle key) {
  if (PyUnicode_Check(key.ptr())) return self.f.container(nb::cast<std::string>(key));
  return self.f.container(from_python<Variable>(key));
}

void bind_facts_of_functions(nb::module_& m, nb::class_<FunctionObject>& c) {
  bind_graph(m);
  bind_profile(m);
  c.def(
       "container",
       [](Self self, nb::handle key) {
         return shared_of(container_of_key(self, key).shared_from_this());
       },
       "key"_a,
       "The container of an input or of a shared variable, by its variable or its name, as a\n"
       "shared variable.")
      .def_prop_ro(
          "shared_variables",
          [](Self self) {
            nb::list list;
            for (const auto& container : self.f.shared_variables()) {
              list.append(nb::cast(shared_of(container)));
            }
            return list;
          },
          "The containers that the function reads or updates.")
      .def_prop_ro(
          "graph", [](Self self) { return GraphObject{self.f}; }, "The optimized graph.")
      .def_prop_ro(
          "steps", [](Self self) { return self.f.steps(); },
          "Applications of the optimized graph in their order, views included.")
      .def_prop_ro("mode",
                   [](Self self) {
                     return ModeObject{{self.f.mode(), self.held}};
                   })
      .def_prop_ro(
          "profile",
          [](Self self) {
            try {
              return self.f.profile();
            } catch (const ValueError& error) {  // hasattr() asks for it, too
              throw nb::attribute_error(in_python(error.what()).c_str());
            }
          },
          "Time and memory of compiling and of the calls so far. AttributeError: compiled without.")
      .def(
          "allow_gc", [](Self self, bool value) { released([&] { self.f.allow_gc(value); }); },
          "value"_a, "Sets whether each call releases its memory at its end.")
      .def(
          "dprint",
          [](nb::handle self, nb::kwargs options) {
            return nb::module_::import_("palimpsest._core").attr("debugprint")(self, **options);
          },
          "The optimized graph as a tree, with the options of debugprint().");
}

}  // namespace palimpsest::python
