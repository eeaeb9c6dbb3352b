// SPDX-License-Identifier: Apache-2.0
// class Variable: a value of a graph, and the roots of graphs.
#include <unordered_map>

#include "palimpsest/graph/inputs.hpp"
#include "palimpsest/graph/op.hpp"
#include "palimpsest/inspect/print.hpp"
#include "palimpsest/ops/ops.hpp"
#include "palimpsest/python/arrays.hpp"
#include "palimpsest/python/families.hpp"

namespace palimpsest::python {
namespace {

using Self = const VariableObject&;

// The marks of a variable, as an object of their own: x.tag.indestructible = True.
struct Tag {
  Variable of;
};

// Attributes that users set beside the marks, as long as the variable lives. Guarded by the lock of
// the interpreter.
struct Notes {
  std::weak_ptr<VariableNode> of;
  PyObject* values;  // a dict
};
using AllNotes = std::unordered_map<const VariableNode*, Notes>;
constinit Global<AllNotes> all_notes;

void drop_notes(bool all) {
  std::vector<PyObject*> dropped;  // released last: destructors find the table whole
  std::erase_if(all_notes.get(), [&](const auto& entry) {
    if (!all && !entry.second.of.expired()) return false;
    dropped.push_back(entry.second.values);
    return true;
  });
  for (PyObject* values : dropped) Py_DECREF(values);
}

// The dict of a variable; not valid where it has none.
nb::object notes_of(const Variable& variable) {
  const auto found = all_notes.get().find(variable.node());
  if (found == all_notes.get().end() || found->second.of.expired()) return {};
  return nb::borrow(found->second.values);
}

nb::object note(const Tag& tag, const std::string& key) {
  const nb::object values = notes_of(tag.of);
  const nb::object found =
      values.is_valid() ? nb::object(values.attr("get")(key)) : nb::object(nb::none());
  if (!found.is_none()) return found;
  PyErr_SetString(PyExc_AttributeError, ("[tag] has no '" + key + "'.").c_str());
  throw nb::python_error();
}

void set_note(Tag& tag, const std::string& key, nb::handle value) {
  const auto mark = [&] {
    if (!PyBool_Check(value.ptr())) {
      throw TypeError("[tag] got " + class_name(value) + " for " + key + ", expected a bool.");
    }
    return value.ptr() == Py_True;
  };
  if (key == "indestructible") {
    tag.of.tags().indestructible = mark();
  } else if (key == "nan_guard") {
    tag.of.tags().nan_guard = mark();
  } else {
    nb::object values = notes_of(tag.of);
    if (!values.is_valid()) {
      drop_notes(false);
      values = nb::dict();
      all_notes.get()[tag.of.node()] = {tag.of.handle(), nb::object(values).release().ptr()};
    }
    values.attr("__setitem__")(key, value);
  }
}

IndexEntry index_entry(nb::handle entry) {
  if (entry.is_none()) return newaxis;
  if (entry.ptr() == Py_Ellipsis) return ellipsis;
  if (PySlice_Check(entry.ptr())) return from_python<Slice>(entry);
  if (PyIndex_Check(entry.ptr()) && !PyBool_Check(entry.ptr()) && !is_array(entry)) {
    return integer_of(entry, "an index");
  }
  return from_python<Variable>(entry);
}

std::vector<IndexEntry> index_of(nb::handle key) {
  if (!PyTuple_Check(key.ptr())) return {index_entry(key)};
  std::vector<IndexEntry> index;
  for (nb::handle entry : key) index.push_back(index_entry(entry));
  return index;
}

[[noreturn]] void refuse(const char* text) { throw TypeError(text); }

// True for an object that Python may combine with a Variable; others are left to the other operand.
bool is_operand(nb::handle object) {
  return is_array(object) || nb::isinstance<VariableObject>(object) || PyBool_Check(object.ptr()) ||
         PyLong_Check(object.ptr()) || PyFloat_Check(object.ptr()) ||
         PyComplex_Check(object.ptr()) || is_list(object);
}

template <Variable (*f)(const Operand&, const Operand&)>
Shown<"Variable"> binary(Self self, nb::handle other) {
  if (!is_operand(other)) return nb::object(nb::borrow(Py_NotImplemented));
  return to_python(f(self.value, from_python<Operand>(other)));
}

template <Variable (*f)(const Operand&, const Operand&)>
Shown<"Variable"> reflected(Self self, nb::handle other) {
  if (!is_operand(other)) return nb::object(nb::borrow(Py_NotImplemented));
  return to_python(f(from_python<Operand>(other), self.value));
}

Variable product(const Operand& a, const Operand& b) {
  const auto variable = [](const Operand& x) {
    if (x.is_number()) refuse("[@] got a number, expected an array. Try *.");
    return x.variable();
  };
  return ops::dot(variable(a), variable(b));
}

void bind_operators(nb::class_<VariableObject>& c) {
#define PALIMPSEST_BINARY(name, f)                                 \
  c.def("__" #name "__", binary<f>, "other"_a, nb::is_operator()); \
  c.def("__r" #name "__", reflected<f>, "other"_a, nb::is_operator());
  PALIMPSEST_BINARY(add, ops::add)
  PALIMPSEST_BINARY(sub, ops::sub)
  PALIMPSEST_BINARY(mul, ops::mul)
  PALIMPSEST_BINARY(truediv, ops::div)
  PALIMPSEST_BINARY(floordiv, ops::floor_div)
  PALIMPSEST_BINARY(mod, ops::mod)
  PALIMPSEST_BINARY(pow, ops::pow)
  PALIMPSEST_BINARY(and, ops::bitwise_and)
  PALIMPSEST_BINARY(or, ops::bitwise_or)
  PALIMPSEST_BINARY(xor, ops::bitwise_xor)
  PALIMPSEST_BINARY(matmul, product)
#undef PALIMPSEST_BINARY
#define PALIMPSEST_COMPARISON(name, f) \
  c.def("__" #name "__", binary<f>, "other"_a, nb::is_operator());
  PALIMPSEST_COMPARISON(lt, ops::lt)
  PALIMPSEST_COMPARISON(le, ops::le)
  PALIMPSEST_COMPARISON(gt, ops::gt)
  PALIMPSEST_COMPARISON(ge, ops::ge)
#undef PALIMPSEST_COMPARISON
  c.def("__neg__", [](Self self) { return ops::neg(self.value); })
      .def("__pos__", [](Self self) { return self.value; })
      .def("__abs__", [](Self self) { return ops::abs(self.value); })
      .def("__invert__", [](Self self) { return ops::bitwise_not(self.value); })
      .def(
          "__eq__",
          [](Self self, nb::handle other) {
            return nb::isinstance<VariableObject>(other) &&
                   nb::cast<VariableObject&>(other).value == self.value;
          },
          nb::arg("other").none(), "The same variable? Elements are compared by ops.eq.")
      .def("__hash__", [](Self self) { return std::hash<Variable>{}(self.value); });
}

[[noreturn]] void refuse_numpy(const std::string& name) {
  throw TypeError("[numpy." + name +
                  "] got a Variable, expected arrays. Try palimpsest.ops, compile it first with "
                  "function(), or make an operator of functions of NumPy with from_functions().");
}

// NumPy asks when an array of it is on the left of an operator, and for functions like numpy.sin.
nb::object universal(nb::handle, nb::handle ufunc, nb::handle method, nb::args inputs) {
  struct Named {
    const char* name;
    Variable (*f)(const Operand&, const Operand&);
  };
  static constexpr Named named[] = {{"add", ops::add},
                                    {"subtract", ops::sub},
                                    {"multiply", ops::mul},
                                    {"divide", ops::div},
                                    {"floor_divide", ops::floor_div},
                                    {"remainder", ops::mod},
                                    {"power", ops::pow},
                                    {"matmul", product},
                                    {"less", ops::lt},
                                    {"less_equal", ops::le},
                                    {"greater", ops::gt},
                                    {"greater_equal", ops::ge},
                                    {"bitwise_and", ops::bitwise_and},
                                    {"bitwise_or", ops::bitwise_or},
                                    {"bitwise_xor", ops::bitwise_xor}};
  const std::string name = str_of(nb::object(ufunc.attr("__name__")));
  for (const Named& known : named) {
    if (name == known.name && str_of(method) == "__call__" && inputs.size() == 2) {
      return to_python(known.f(from_python<Operand>(inputs[0]), from_python<Operand>(inputs[1])));
    }
  }
  refuse_numpy(name);
}

// Other functions of NumPy: numpy.sum(x).
nb::object array_function(nb::handle, nb::handle f, nb::args, nb::kwargs) {
  refuse_numpy(str_of(nb::object(f.attr("__name__"))));
}

void bind_refusals(nb::class_<VariableObject>& c) {
  c.def("__bool__",
        [](Self) -> bool {
          refuse(
              "[Variable] has no truth value before it is computed. Try ops.where or ops.ifelse.");
        })
      .def(
          "__setitem__",
          [](Self, nb::handle, nb::handle) {
            refuse("[Variable] cannot be changed. Try x[i].set(v), which gives another Variable.");
          },
          nb::arg("key").none(), nb::arg("value").none())
      .def("__array__",
           [](Self, nb::args, nb::kwargs) -> nb::object {
             refuse(
                 "[Variable] has no value before it is computed. Try palimpsest.ops, or compile "
                 "it first with function().");
           })
      .def("__len__",
           [](Self self) {
             const Extents& shape = self.value.type().shape;
             if (shape.empty() || shape[0] == kUnknown) {
               refuse(
                   "[Variable] the length of the first axis is not known in the graph. Try "
                   "x.shape[0], or specify_shape().");
             }
             return shape[0];
           })
      .def("__iter__", [](Self self) {
        const Extents& shape = self.value.type().shape;
        if (shape.empty() || shape[0] == kUnknown) {
          refuse(
              "[Variable] the length of the first axis is not known in the graph. Try "
              "specify_shape().");
        }
        nb::list parts;
        for (index_t i = 0; i < shape[0]; ++i) parts.append(to_python(self.value[i]));
        return nb::iter(parts);
      });
  c.def("__array_ufunc__", universal, "ufunc"_a, "method"_a, "inputs"_a);
  c.def("__array_function__", array_function);
}

void bind_facts(nb::class_<VariableObject>& c) {
  c.def_prop_ro("type", [](Self self) { return TypeObject{self.value.type()}; })
      .def_prop_ro("dtype", [](Self self) { return self.value.dtype(); })
      .def_prop_ro("ndim", [](Self self) { return self.value.rank(); })
      .def_prop_ro(
          "shape", [](Self self) { return self.value.shape(); },
          "The extents as a Variable, int64 (ndim,).")
      .def_prop_ro("T", [](Self self) { return self.value.T(); })
      .def_prop_ro("H", [](Self self) { return self.value.H(); })
      .def_prop_rw(
          "name", [](Self self) -> Shown<"str | None"> {
            if (self.value.name().empty()) return nb::none();
            return nb::cast(self.value.name());
          },
          [](Self self, const std::optional<std::string>& name) {
            self.value.named(name.value_or(""));
          },
          nb::for_setter("name"_a.none()))
      .def_prop_ro(
          "owner",
          [](Self self) -> nb::object {
            const Apply owner = self.value.owner();
            return owner.defined() ? nb::cast(owner) : nb::none();
          },
          "The application that computes it; None for a root.")
      .def_prop_ro("index", [](Self self) { return self.value.index(); })
      .def_prop_ro(
          "data",
          [](Self self) {
            if (self.value.is_constant()) return export_read_only(self.value.constant_value());
            throw nb::attribute_error(
                ("[data] " + self.value.str() +
                 " has no value before it is computed: it is not a constant. Try function().")
                    .c_str());
          },
          "The value of a constant, read-only.")
      .def_prop_ro("tag", [](Self self) { return Tag{self.value}; })
      .def("copy", [](Self self) { return self.value.copy(); })
      .def("__repr__", [](Self self) { return self.value.str(); });
}

void bind_methods(nb::class_<VariableObject>& c) {
  c.def(
       "__getitem__",
       [](Self self, nb::handle key) { return self.value.index_with(index_of(key)); },
       nb::arg("key").none())
      .def(
          "set", [](Self self, Operand value) { return self.value.set(value); }, "value"_a,
          "Of x[..]: x with these elements replaced.")
      .def(
          "inc", [](Self self, Operand value) { return self.value.inc(value); }, "value"_a,
          "Of x[..]: x with these elements increased.")
      .def(
          "reshape", [](Self self, ShapeArgument shape) { return self.value.reshape(shape); },
          "shape"_a)
      .def("ravel", [](Self self) { return self.value.ravel(); })
      .def("flatten", [](Self self) { return self.value.ravel(); })
      .def(
          "astype", [](Self self, DType dtype) { return self.value.astype(dtype); }, "dtype"_a)
      .def(
          "transpose",
          [](Self self, std::optional<Extents> axes) {
            return axes ? ops::transpose(self.value, *axes) : self.value.T();
          },
          "axes"_a.none() = nb::none())
      .def(
          "dot", [](Self self, Operand other) { return ops::dot(self.value, other); }, "other"_a)
      .def("conj", [](Self self) { return ops::conj(self.value); });
#define PALIMPSEST_REDUCTION(name)                                                                 \
  c.def(                                                                                           \
      #name,                                                                                       \
      [](Self self, AxesArgument axis, bool keepdims) { return self.value.name(axis, keepdims); }, \
      "axis"_a.none() = nb::none(), "keepdims"_a = false);
  PALIMPSEST_REDUCTION(sum)
  PALIMPSEST_REDUCTION(prod)
  PALIMPSEST_REDUCTION(mean)
  PALIMPSEST_REDUCTION(max)
  PALIMPSEST_REDUCTION(min)
  PALIMPSEST_REDUCTION(any)
  PALIMPSEST_REDUCTION(all)
#undef PALIMPSEST_REDUCTION
}

// None is an extent that is not known.
Extents open_extents(nb::handle shape) {
  if (!is_list(shape)) return open_extents(nb::make_tuple(shape));
  Extents extents;
  for (nb::handle item : shape) {
    extents.push_back(item.is_none() ? kUnknown : integer_of(item, "an extent or None"));
    if (extents.back() < kUnknown) {
      throw ShapeError("[shape] got " + str_of(item) + ", expected an extent or None.");
    }
  }
  return extents;
}

nb::tuple shape_with_none(const Extents& shape) {
  nb::list list;
  for (index_t n : shape) {
    if (n == kUnknown) {
      list.append(nb::none());
    } else {
      list.append(n);
    }
  }
  return nb::tuple(list);
}

void bind_types(nb::module_& m) {
  nb::class_<TypeObject>(m, "TensorType", "Dtype, extents (None where unknown) and device.")
      .def(
          "__init__",
          [](TypeObject* self, DType dtype, nb::handle shape, Device device) {
            new (self) TypeObject{{dtype, open_extents(shape), device}};
          },
          "dtype"_a, "shape"_a, "device"_a = "cpu")
      .def_prop_ro("dtype", [](const TypeObject& t) { return t.value.dtype; })
      .def_prop_ro("shape", [](const TypeObject& t) { return shape_with_none(t.value.shape); })
      .def_prop_ro("ndim", [](const TypeObject& t) { return t.value.rank(); })
      .def_prop_ro("device", [](const TypeObject& t) { return t.value.device; })
      .def("__reduce__",
           [](const TypeObject& t) {
             return nb::make_tuple(
                 nb::type<TypeObject>(),
                 nb::make_tuple(to_python(t.value.dtype), shape_with_none(t.value.shape),
                                to_python(t.value.device)));
           })
      .def(
          "__call__",
          [](const TypeObject& t, const std::string& name) { return make_input(t.value, name); },
          "name"_a = "", "An input of this type.")
      .def(
          "__eq__",
          [](const TypeObject& t, nb::handle other) {
            return nb::isinstance<TypeObject>(other) &&
                   nb::cast<TypeObject&>(other).value == t.value;
          },
          nb::arg("other").none())
      .def("__hash__", [](const TypeObject& t) { return std::hash<std::string>{}(t.value.str()); })
      .def("__repr__", [](const TypeObject& t) { return t.value.str(); });
  nb::class_<Tag>(m, "_Tag", "Marks of a Variable for rewrites and checks.")
      .def_prop_ro("indestructible", [](const Tag& t) { return t.of.tags().indestructible; })
      .def_prop_ro("nan_guard", [](const Tag& t) { return t.of.tags().nan_guard; })
      .def("__getattr__", note, "key"_a)
      .def("__setattr__", set_note, "key"_a, "value"_a.none());
  at_end([] { drop_notes(true); });
}

// Letters as in graph/inputs.hpp.
void bind_inputs(nb::module_& m) {
  // Functions that make inputs of graphs belong to `ops`, too: pt.dmatrix("x").
  nb::module_ ops = m.def_submodule("ops", "Builders of graphs.");
  static constexpr std::pair<const char*, int> kinds[] = {
      {"scalar", 0},  {"vector", 1},  {"matrix", 2}, {"tensor3", 3},
      {"tensor4", 4}, {"tensor5", 5}, {"row", -1},   {"col", -2}};
  for (const auto& [kind, n_axes] : kinds) {
    for (const char* letter = " bwilfdcz"; *letter; ++letter) {
      const char which = *letter == ' ' ? '\0' : *letter;
      const std::string name = which ? std::string(1, which) + kind : std::string(kind);
      const int axes = n_axes;
      const int rank = axes < 0 ? 2 : axes;
      const std::string doc = "An input of a graph, of " + std::to_string(rank) +
                              " axes.\n\nExamples\n--------\n>>> ps." + name + "('x').ndim\n" +
                              std::to_string(rank);
      if (which) {
        m.def(
            name.c_str(),
            [which, axes](const std::string& of) {
              return detail::input_of_kind(which, axes, {}, of);
            },
            "name"_a = "", doc.c_str());
      } else {
        m.def(
            name.c_str(),
            [axes](const std::string& of, std::optional<DType> dtype) {
              return detail::input_of_kind(0, axes, dtype, of);
            },
            "name"_a = "", "dtype"_a.none() = nb::none(), doc.c_str());
      }
      const bool is_matrix = std::string_view(kind) == "matrix";
      const std::string plural = is_matrix ? name.substr(0, name.size() - 1) + "ces" : name + "s";
      const std::string docs = "Several inputs of a graph, as " + name +
                               "() makes one.\n\nExamples\n--------\n>>> [v.name for v in ps." +
                               plural + "('x', 'y')]\n['x', 'y']";
      m.def(
          plural.c_str(),
          [which, axes](nb::args names) {
            std::vector<Variable> inputs;
            for (nb::handle of : names) {
              inputs.push_back(
                  detail::input_of_kind(which, axes, {}, text_of(of, "the name of an input")));
            }
            return inputs;
          },
          docs.c_str());
      for (const std::string& made : {name, plural}) ops.attr(made.c_str()) = m.attr(made.c_str());
    }
  }
  m.def(
      "tensor",
      [](DType dtype, nb::handle shape, const std::string& name) {
        return make_input({dtype, open_extents(shape), {}}, name);
      },
      "dtype"_a, "shape"_a, "name"_a = "", "An input of a graph; None is an unknown extent.");
  m.def(
      "constant",
      [](nb::handle value, const std::string& name, std::optional<DType> dtype) {
        const Value given = given_value(value);
        return constant(dtype ? converted_to(given, *dtype, "constant") : given.tensor(), name);
      },
      "value"_a, "name"_a = "", "dtype"_a.none() = nb::none());
  m.def(
      "as_variable", [](Variable x) { return x; }, "x"_a);
}

}  // namespace

void bind_variables(nb::module_& m) {
  bind_types(m);
  nb::class_<VariableObject> c(m, "Variable", nb::is_weak_referenceable(),
                               "One value of a graph: an input, a constant, a shared variable, or "
                               "the result of an op.");
  bind_operators(c);
  bind_refusals(c);
  bind_facts(c);
  bind_methods(c);
  nb::class_<Apply>(m, "_Apply", "An op applied to inputs.")
      .def_prop_ro("op_name", [](const Apply& a) { return std::string(a.op().name()); })
      .def_prop_ro("inputs",
                   [](const Apply& a) {
                     return std::vector<Variable>(a.inputs().begin(), a.inputs().end());
                   })
      .def_prop_ro("outputs", [](const Apply& a) { return a.outputs(); })
      .def(
          "__eq__",
          [](const Apply& a, nb::handle b) {
            return nb::isinstance<Apply>(b) && nb::cast<Apply&>(b) == a;
          },
          nb::arg("other").none())
      .def("__hash__", [](const Apply& a) { return std::hash<Apply>{}(a); });
  bind_inputs(m);
}

}  // namespace palimpsest::python
