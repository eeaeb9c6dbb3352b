// SPDX-License-Identifier: Apache-2.0
// class NamedLinop, and the parameters of operators.
#include "palimpsest/base/edit_distance.hpp"
#include "palimpsest/linop/copies/copying.hpp"
#include "palimpsest/linop/copies/saving.hpp"
#include "palimpsest/linop/core/attribute.hpp"
#include "palimpsest/linop/core/linop_type.hpp"
#include "palimpsest/linop/core/named_linop.hpp"
#include "palimpsest/linop/core/parameter.hpp"
#include "palimpsest/linop/split/budget.hpp"
#include "palimpsest/linop/testing/testing.hpp"
#include "palimpsest/python/arrays.hpp"
#include "palimpsest/python/families.hpp"
#include "palimpsest/python/interop/torch_tensors.hpp"
#include "palimpsest/python/linop_conversions.hpp"
#include "palimpsest/python/plan_object.hpp"
#include "palimpsest/python/values.hpp"

namespace palimpsest::python {
namespace {

using Self = LinopObject&;

// -- one object per operator: the table does not keep it alive ----------------------------------

constinit GlobalObject operators_by_node;   // WeakValueDictionary
constinit GlobalObject parameters_by_cell;  // likewise

nb::object known_object(nb::handle table, const void* key) {
  wait_at_end();
  return table.attr("get")(reinterpret_cast<std::uintptr_t>(key));
}

template <class Object>
nb::object new_object(nb::handle table, const void* key, Object object) {
  nb::object made = nb::cast(std::move(object));
  table.attr("__setitem__")(reinterpret_cast<std::uintptr_t>(key), made);
  return made;
}

void set_object(const NamedLinop& A, nb::handle object) {
  operators_by_node.get().attr("__setitem__")(reinterpret_cast<std::uintptr_t>(A.node().get()),
                                              object);
}

// A setter gives the handle another node: this object stands for that now.
void change(nb::handle self, const std::function<void(NamedLinop&)>& change_handle) {
  NamedLinop& handle = nb::cast<LinopObject&>(self).value;
  NamedLinop changed = handle;
  change_handle(changed);
  operators_by_node.get().attr("pop")(reinterpret_cast<std::uintptr_t>(handle.node().get()),
                                      nb::none());
  handle = std::move(changed);
  set_object(handle, self);
}

// An object of the class of Python that the operator was made by, if there is one.
nb::object new_operator(const NamedLinop& A) {
  const nb::handle type = python_class_of(A);
  if (!type.is_valid()) return nb::cast(LinopObject{A});
  nb::object object = nb::inst_alloc(type);
  new (nb::inst_ptr<LinopObject>(object)) LinopObject{A};
  nb::inst_mark_ready(object);
  return object;
}

// -- application --------------------------------------------------------------------------------

nb::object apply(const NamedLinop& A, nb::handle x) {
  if (nb::isinstance<VariableObject>(x)) {
    return to_python(A(nb::cast<VariableObject&>(x).value));
  }
  if (!is_array(x) && !is_list(x)) {
    throw TypeError("[" + A.name() + "] got " + class_name(x) +
                    ", expected an array, a Variable or an operator.");
  }
  const Kind kind = is_array(x) ? kind_of(x) : Kind::numpy;
  if (kind == Kind::xarray || (kind == Kind::torch && is_recorded(A, x))) {
    const char* package =
        kind == Kind::xarray ? "palimpsest.interop.xarray" : "palimpsest.interop.torch";
    return nb::module_::import_(package).attr("apply")(to_python(A), x);
  }
  const Tensor given = data_for(A, x);
  Tensor y = released([&] { return A(given); });
  return export_array(std::move(y), kind_returned(kind));
}

nb::object matmul(Self self, nb::handle other) {
  if (nb::isinstance<LinopObject>(other)) {
    return to_python(self.value * nb::cast<LinopObject&>(other).value);
  }
  return apply(self.value, other);
}

std::optional<LinopScalar> scalar_of(nb::handle object) {
  if (PyComplex_Check(object.ptr())) return LinopScalar(nb::cast<std::complex<double>>(object));
  if (PyBool_Check(object.ptr())) return std::nullopt;
  if (PyFloat_Check(object.ptr())) return LinopScalar(PyFloat_AsDouble(object.ptr()));
  if (PyLong_Check(object.ptr())) return LinopScalar(integer_of(object, "a number"));
  if (!is_array(object)) return std::nullopt;
  const Tensor t = import_array(object);
  if (t.rank() != 0) return std::nullopt;
  return is_complex(t.dtype()) ? LinopScalar(t.item<std::complex<double>>())
                               : LinopScalar(t.item<double>());
}

[[noreturn]] void refuse_product(nb::handle other, const char* advice, const char* sign = "*") {
  throw TypeError("[" + std::string(sign) + "] got " + class_name(other) +
                  ", expected a number or an operator. Try " + advice + ".");
}

Shown<"NamedLinop"> multiplied(Self self, nb::handle other) {
  if (nb::isinstance<LinopObject>(other)) {
    return to_python(self.value * nb::cast<LinopObject&>(other).value);
  }
  if (nb::isinstance<ParameterObject>(other)) {
    return to_python(self.value * nb::cast<ParameterObject&>(other).parameter);
  }
  if (const auto s = scalar_of(other)) return to_python(self.value * *s);
  refuse_product(other, "A @ x");
}

Shown<"NamedLinop"> multiplied_from_left(Self self, nb::handle other) {
  if (nb::isinstance<ParameterObject>(other)) {
    return to_python(nb::cast<ParameterObject&>(other).parameter * self.value);
  }
  if (const auto s = scalar_of(other)) return to_python(*s * self.value);
  refuse_product(other, "A.H @ x");
}

Shown<"NamedLinop"> divided(Self self, nb::handle other) {
  if (nb::isinstance<ParameterObject>(other)) {
    return to_python(self.value / nb::cast<ParameterObject&>(other).parameter);
  }
  if (const auto s = scalar_of(other)) return to_python(self.value / *s);
  refuse_product(other, "lsqr(A, y), which solves A x = y", "/");
}

Shown<"NamedLinop"> chained(Self self, nb::handle other) {
  return to_python(from_python<NamedLinop>(other) * self.value);
}

// -- parts --------------------------------------------------------------------------------------

// Advice for members that operators of other packages have.
struct OtherWord {
  std::string_view name, advice;
};
constexpr OtherWord kOtherWords[] = {
    {"T", "A.H is the adjoint; A.H of a real operator is its transpose"},
    {"dtype", "an operator has that of its data: A.params; A.matrix().dtype is that of the matrix"},
    {"ndim", "A.ishape and A.oshape are named dimensions; A.as_scipy() has two axes"},
    {"todense", "A.matrix() is the dense matrix"},
    {"toarray", "A.matrix() is the dense matrix"},
    {"matvec", "A @ x, or A.as_scipy().matvec(x) for flat vectors"},
    {"rmatvec", "A.H @ x, or A.as_scipy().rmatvec(x) for flat vectors"},
    {"dot", "A @ x, and A @ B of two operators"},
    {"forward", "A(x)"},
    {"svd", "svd(A, k)"},
    {"eigs", "lanczos(A, x) finds the largest eigenvalues"},
    {"div", "lsqr(A, y) solves A x = y"},
};

// The nearest name to one that there is not.
std::string advice_for(const NamedLinop& A, const std::string& name) {
  for (const auto& [word, advice] : kOtherWords) {
    if (word == name) {
      return "'" + A.name() + "' has no '" + name + "': " + std::string(advice) + ".";
    }
  }
  std::string text, best;
  std::size_t least = name.size() / 2 + 1;
  for (const auto& [key, parameter] : A.params()) {
    text += (text.empty() ? "" : ", ") + key;
    const std::size_t distance = edit_distance(name, key);
    if (distance < least) best = key;
    least = std::min(least, distance);
  }
  std::string advice = "'" + A.name() + "' has no attribute or parameter '" + name + "'";
  if (!best.empty()) advice += "; did you mean " + best + "?";
  return advice + (text.empty() ? "" : " Parameters: " + text);
}

Shown<"Any"> member(Self self, const std::string& name) {
  if (self.value.has_param(name)) return to_python(self.value.param(name));
  if (self.value.has_attr(name)) return attribute_object(self.value.attr(name));
  PyErr_SetString(PyExc_AttributeError, advice_for(self.value, name).c_str());
  throw nb::python_error();
}

// Raises an error for an attribute that the class of Python has: other objects of the operator lack
// a value that this object alone has.
void check_no_constant(nb::handle type, const std::string& key) {
  const nb::object bases = type.attr("__mro__");
  for (nb::handle base : bases) {
    const nb::object found = base.attr("__dict__").attr("get")(key);
    if (found.is_none()) continue;
    if (nb::hasattr(found.type(), "__set__")) return;
    throw TypeError("[" + nb::cast<std::string>(type.attr("__name__")) + "] got '" + key +
                    "' for the operator, which its class has already. Try another name.");
  }
}

void set_member(nb::handle self, nb::handle name, nb::handle value) {
  const std::string key = text_of(name, "a name");
  if (!nb::inst_ready(self)) {
    throw StateError("[" + class_name(self) + "] got '" + key +
                     "' before the dimensions. Try super().__init__(ishape, oshape) first.");
  }
  Self object = nb::cast<LinopObject&>(self);
  if (!object.value.has_param(key)) {
    if (!nb::hasattr(self.type(), key.c_str())) {
      if (python_class_of(object.value).is_valid()) {
        return change(self, [&](NamedLinop& A) { set_value(A, key, value); });
      }
      PyErr_SetString(PyExc_AttributeError, advice_for(object.value, key).c_str());
      throw nb::python_error();
    }
    // ishape, oshape, name: properties of the class.
    if (python_class_of(object.value).is_valid()) check_no_constant(self.type(), key);
    if (PyObject_GenericSetAttr(self.ptr(), name.ptr(), value.ptr()) != 0) throw nb::python_error();
    return;
  }
  const Parameter present = object.value.param(key);
  const bool is_of_python = present.present() && !value.is_none() && !is_array(value) &&
                            !nb::isinstance<VariableObject>(value);
  const Parameter parameter =
      is_of_python ? Parameter(values_for(present, value)) : from_python<Parameter>(value);
  change(self, [&](NamedLinop& A) { A.set_param(key, parameter); });
}

Shown<"NamedLinop"> child(Self self, nb::handle key) {
  const auto n = static_cast<index_t>(self.value.linop_count());
  const auto inside = [n](index_t i) { return i < 0 ? i + n : i; };
  if (PySlice_Check(key.ptr())) {
    const Slice range = from_python<Slice>(key);
    if (range.step != 1) throw ValueError("[linops] got a slice with a step, expected none.");
    const index_t start = std::clamp<index_t>(inside(range.start.value_or(0)), 0, n);
    const index_t stop = std::clamp<index_t>(inside(range.stop.value_or(n)), 0, n);
    return to_python(self.value.slice(static_cast<std::size_t>(start),
                                      static_cast<std::size_t>(std::max(start, stop))));
  }
  const index_t i = inside(integer_of(key, "an index"));
  if (i < 0 || i >= n) throw nb::index_error("[linops] index out of range");
  return to_python(self.value[static_cast<std::size_t>(i)]);
}

// Names of members, for completion.
nb::list all_names(nb::handle self) {
  const nb::object object = nb::module_::import_("builtins").attr("object");
  nb::list names(nb::object(object.attr("__dir__")(self)));
  const NamedLinop& A = nb::cast<Self>(self).value;
  for (const auto& [key, value] : A.params()) names.append(key);
  for (const auto& [key, value] : A.attrs()) names.append(key);
  return names;
}

// NumPy would take an operator for a list of its parts.
[[noreturn]] void refuse_array(Self self, nb::args, nb::kwargs) {
  throw TypeError("[" + self.value.name() +
                  "] got a function of NumPy or a conversion to an array, expected a use as an "
                  "operator. Try A.matrix() or to_dense(A) for its matrix, A @ x for a product.");
}

Shown<"dict[str, Parameter | None]"> all_parameters(Self self) {
  nb::dict dict;
  for (const auto& [key, parameter] : self.value.params()) {
    dict[nb::cast(key)] = parameter.present() ? to_python(parameter) : nb::none();
  }
  return dict;
}

Shown<"dict[str, Any]"> all_attributes(Self self) {
  nb::dict dict;
  for (const auto& [key, value] : self.value.attrs()) dict[nb::cast(key)] = attribute_object(value);
  return dict;
}

nb::bytes bytes_of_operator(const NamedLinop& A) {
  modules_of(A);
  const std::vector<std::byte> bytes = released([&] { return to_bytes(A); });
  return nb::bytes(bytes.data(), bytes.size());
}

// Objects that are copied in one call share what their originals share.
NamedLinop deep_copy(const NamedLinop& A, nb::handle memo) {
  if (nb::len(memo) == 0) return released([&] { return A.deepcopy(); });
  const nb::object copies =
      nb::module_::import_("copy").attr("deepcopy")(objects_of(variables_of(A)), memo);
  const std::vector<std::shared_ptr<Container>> variables = containers_in(copies);
  return released([&] { return deepcopy(A, variables); });
}

nb::tuple reduced(const NamedLinop& A) {
  const nb::tuple modules = modules_of(A);
  std::vector<std::shared_ptr<Container>> variables;
  const std::vector<std::byte> bytes = released([&] { return to_bytes(A, variables); });
  return nb::make_tuple(
      nb::module_::import_("palimpsest._pickles").attr("linop_of_bytes"),
      nb::make_tuple(nb::bytes(bytes.data(), bytes.size()), modules, objects_of(variables)));
}

Shown<"NamedLinop"> on(Self self, nb::handle where) {
  if (is_device(where)) {
    const Device device = from_python<Device>(where);
    return to_python(released([&] { return self.value.to(device); }));
  }
  const DType dtype = from_python<DType>(where);
  return to_python(released([&] { return self.value.to(dtype); }));
}

void bind_shape(nb::class_<LinopObject>& c) {
  // Another library names it so in classes that are derived from its operators.
  for (const char* name : {"shape", "_shape"}) {
    c.def_prop_rw(
        name, [](Self self) { return to_python(self.value.shape()); },
        [](nb::handle self, nb::handle shape) {
          change(self, [&](NamedLinop& A) { A.set_shape(from_python<NamedShape>(shape)); });
        });
  }
  c.def_prop_rw(
       "ishape", [](Self self) { return self.value.ishape(); },
       [](nb::handle self, Dims d) { change(self, [&](auto& A) { A.set_ishape(d); }); })
      .def_prop_rw(
          "oshape", [](Self self) { return self.value.oshape(); },
          [](nb::handle self, Dims d) { change(self, [&](auto& A) { A.set_oshape(d); }); })
      .def_prop_rw(
          "name", [](Self self) { return self.value.name(); },
          [](nb::handle self, const std::string& name) {
            change(self, [&](NamedLinop& A) { A.set_name(name); });
          })
      .def_prop_ro(
          "type_name", [](Self self) { return self.value.type().name; },
          "The name of its type, such as Dense; independent of the operator's name.")
      .def_prop_ro("dims", [](Self self) { return self.value.dims(); })
      .def_prop_ro(
          "sizes",
          [](Self self) {
            nb::dict sizes;
            for (const ND& d : self.value.dims()) {
              if (const auto size = self.value.size(d)) sizes[nb::cast(d.str())] = nb::cast(*size);
            }
            return sizes;
          },
          "The known sizes of dimensions.")
      .def(
          "size", [](Self self, ND d) { return self.value.size(d); }, "dim"_a,
          "The size of a dimension, or None.")
      .def(
          "matrix_size",
          [](Self self, std::optional<Extents> shape) {
            const MatrixSize size =
                shape ? self.value.matrix_size(*shape) : self.value.matrix_size();
            return nb::make_tuple(size.rows, size.columns);
          },
          "input_shape"_a.none() = nb::none())
      .def(
          "output_shape", [](Self self, Extents shape) { return self.value.output_shape(shape); },
          "input_shape"_a)
      .def(
          "rename",
          [](nb::handle self, nb::dict names) {
            const Renaming renaming = renaming_of(names);
            change(self, [&](NamedLinop& A) { A.rename(renaming); });
          },
          "names"_a)
      .def(
          "renamed",
          [](Self self, nb::dict names) { return self.value.renamed(renaming_of(names)); },
          "names"_a)
      .def(
          "named", [](Self self, const std::string& name) { return self.value.named(name); },
          "name"_a)
      .def(
          "with_sizes", [](Self self, DimMap sizes) { return self.value.with_sizes(sizes); },
          "sizes"_a);
}

void bind_algebra(nb::class_<LinopObject>& c) {
  c.def(
       "__call__", [](Self self, nb::handle x) { return apply(self.value, x); }, "x"_a.none(),
       "A x, of the kind of x; of a Variable a Variable.")
      .def("__matmul__", matmul, "x"_a.none())
      .def("__rmatmul__", [](Self, nb::handle x) { refuse_product(x, "A.H @ x", "@"); })
      .def("__mul__", multiplied, "other"_a)
      .def("__rmul__", multiplied_from_left, "other"_a)
      .def("__truediv__", divided, "other"_a)
      .def("__or__", chained, "other"_a, "A | B: first A, then B.")
      .def(
          "compose", [](Self self, NamedLinop inner) { return self.value.compose(inner); },
          "inner"_a, "x -> A(inner(x)).")
      .def("__add__", [](Self self, NamedLinop other) { return self.value + other; })
      .def(
          "__radd__",
          [](nb::handle self, nb::handle other) {
            const auto s = scalar_of(other);  // sum([A, B]) begins with 0
            if (s && s->value == 0.0) return nb::borrow(self);
            throw TypeError("[+] got " + class_name(other) +
                            ", expected an operator. Try s * Identity(dims).");
          },
          "other"_a)
      .def("__sub__", [](Self self, NamedLinop other) { return self.value - other; })
      .def("__neg__", [](Self self) { return -self.value; })
      .def("__pow__",
           [](Self self, nb::handle n) {
             return PyLong_Check(n.ptr())
                        ? pow(self.value, static_cast<int>(integer_of(n, "a power")))
                        : pow(self.value, PyFloat_AsDouble(n.ptr()));
           })
      .def_prop_ro(
          "H", [](Self self) { return self.value.H(); }, "The adjoint.")
      .def("adjoint", [](Self self) { return self.value.H(); })
      .def_prop_ro(
          "N", [](Self self) { return self.value.N(); }, "The normal operator A^H A.")
      .def(
          "normal",
          [](Self self, std::optional<NamedLinop> inner) {
            return inner ? self.value.normal(*inner) : self.value.normal();
          },
          "inner"_a.none() = nb::none())
      .def("inverse", [](Self self) { return self.value.inverse(); });
  // Arrays on the left leave the operation to the operator.
  c.attr("__array_ufunc__") = nb::none();
}

void bind_runs(nb::class_<LinopObject>& c) {
  c.def(
       "apply",
       [](Self self, nb::handle x, nb::handle out) {
         const Tensor given = data_for(self.value, x);
         Tensor result = writable_array(out, "apply");
         released([&] { self.value.apply(given, result); });
         report_write(out);
       },
       "x"_a, "out"_a, "Writes A x into an array.")
      .def(
          "plan",
          [](Self self, nb::handle x) {
            if (is_type(x)) {
              const TensorType type = from_python<TensorType>(x);
              return PlanObject{
                  std::make_shared<const Plan>(released([&] { return self.value.plan(type); }))};
            }
            const Tensor given = data_for(self.value, x);
            auto plan =
                std::make_shared<Plan>(released([&] { return self.value.plan_of_call(given); }));
            const Kind kind = is_array(x) ? kind_of(x) : Kind::numpy;
            if (kind_returned(kind) != Kind::tensor) add_copies_of_arrays(*plan);
            if (!is_array(x)) plan->peak_bytes += given.nbytes();  // made of numbers
            return PlanObject{std::move(plan)};
          },
          "x"_a, "The plan of an application to an array, with all copies, or to (dtype, shape).")
      .def(
          "split",
          [](nb::handle self, nb::handle a, nb::handle b) {
            // A.split(A, tile) is how another library writes it.
            return nb::cast<LinopObject&>(self).value.split(tile_of(b.is_none() ? a : b));
          },
          "tile"_a, "tile_of_it"_a.none() = nb::none(), "The operator on a part of its dimensions.")
      .def(
          "matrix",
          [](Self self, nb::kwargs sizes) {
            const TestOptions options{.sizes = from_python<DimMap>(sizes)};
            const Dims dims = self.value.dims();
            for (const auto& [dim, size] : options.sizes) {
              if (dims.count(dim) > 0 || dims.count(ND::ellipsis()) > 0) continue;
              throw NameError("[matrix] got a size of '" + dim.str() + "', expected sizes of " +
                              dims.str() + ".");
            }
            return export_array(released([&] { return matrix_of(self.value, options); }),
                                kind_returned(Kind::numpy));
          },
          "The dense matrix; real if the operator gives real results for real inputs.")
      .def("to", on, "device_or_dtype"_a)
      .def("copy", [](Self self) { return self.value.copy(); })
      .def(
          "deepcopy",
          [](Self self, bool eager) {
            return released([&] { return self.value.deepcopy(eager ? Copy::eager : Copy::lazy); });
          },
          "eager"_a = false)
      .def("__copy__", [](Self self) { return self.value.copy(); })
      .def(
          "__deepcopy__", [](Self self, nb::handle memo) { return deep_copy(self.value, memo); },
          "memo"_a)
      .def("__reduce__", [](Self self) { return reduced(self.value); });
}

}  // namespace

nb::object object_of(const NamedLinop& A) {
  if (!A.defined()) return nb::none();
  nb::object found = known_object(operators_by_node.get(), A.node().get());
  if (!found.is_none()) return found;
  nb::object made = new_operator(A);
  set_object(A, made);
  return made;
}
nb::object to_python(const NamedLinop& A) { return object_of(A); }

nb::object object_of(const Parameter& p) {
  if (!p.present()) return nb::none();
  if (p.is_view()) return nb::cast(ParameterObject(p));
  const void* const cell = &p.variable().container();
  nb::object found = known_object(parameters_by_cell.get(), cell);
  const bool is_same =
      !found.is_none() &&
      nb::cast<ParameterObject&>(found).parameter.is_trainable() == p.is_trainable();
  return is_same ? found : new_object(parameters_by_cell.get(), cell, ParameterObject(p));
}
nb::object to_python(const Parameter& p) { return object_of(p); }

void begin_object(nb::handle self, const NamedLinop& A) {
  if (nb::inst_ready(self)) {
    throw StateError("[" + A.name() + "] got a second call of NamedLinop.__init__, expected one.");
  }
  new (nb::inst_ptr<LinopObject>(self)) LinopObject{A};
  nb::inst_mark_ready(self);
  set_object(A, self);
}

void change_object(nb::handle self, const std::function<void(NamedLinop&)>& change_handle) {
  change(self, change_handle);
}

NamedLinop From<NamedLinop>::from(nb::handle object) {
  if (nb::isinstance<LinopObject>(object)) return nb::cast<LinopObject&>(object).value;
  const std::string advice = is_array(object) ? " Try Dense(a) for the matrix a." : "";
  throw TypeError("[operator] got " + class_name(object) + ", expected a NamedLinop." + advice);
}

void bind_linops(nb::module_& m) {
  const nb::object weak = nb::module_::import_("weakref").attr("WeakValueDictionary");
  operators_by_node.set(weak());
  parameters_by_cell.set(weak());
  at_end([] {
    operators_by_node.clear();
    parameters_by_cell.clear();
  });
  nb::class_<LinopObject> c(m, "NamedLinop", nb::is_weak_referenceable(),
                            "A linear operator whose axes have names.");
  bind_shape(c);
  bind_algebra(c);
  bind_runs(c);
  c.def_prop_rw(
       "linops", [](Self self) { return self.value.linops(); },
       [](nb::handle self, std::vector<NamedLinop> children) {
         change(self, [&](NamedLinop& A) { A.set_linops(children); });
       },
       "Children of a container.")
      .def_prop_ro(
          "_node_id",
          [](Self self) { return reinterpret_cast<std::uintptr_t>(self.value.node().get()); })
      .def_prop_ro("_precision",
                   [](Self self) -> nb::object {
                     const std::optional<DType> precision = precision_of(self.value);
                     return precision ? to_python(*precision) : nb::object(nb::none());
                   })
      .def_prop_ro("params", all_parameters)
      .def_prop_ro("attrs", all_attributes)
      .def("__getattr__", member, "name"_a)
      .def("__setattr__", set_member, "name"_a, "value"_a.none())
      .def("__len__", [](Self self) { return self.value.linop_count(); })
      .def("__getitem__", child, "key"_a)
      .def("__bool__", [](Self) { return true; })
      .def("__dir__", all_names)
      .def("__array__", refuse_array)
      .def("__repr__", [](Self self) { return self.value.str(); });
  m.def(
      "save",
      [](NamedLinop A, const std::string& path) {
        modules_of(A);
        released([&] { save(A, path); });
      },
      "A"_a, "path"_a, "Writes an operator to a file.");
  m.def(
      "load", [](const std::string& path) { return released([&] { return load(path); }); },
      "path"_a, "The operator of a file, mapped.");
  m.def(
      "to_bytes", [](NamedLinop A) { return bytes_of_operator(A); }, "A"_a);
  m.def(
      "from_bytes",
      [](nb::bytes bytes) {
        const auto* const data = static_cast<const std::byte*>(bytes.data());
        const std::span<const std::byte> span(data, bytes.size());
        return released([&] { return from_bytes(span); });
      },
      "data"_a);
  m.def("_linop_of_bytes", [](nb::bytes bytes, nb::handle containers) {
    const auto* const data = static_cast<const std::byte*>(bytes.data());
    const std::span<const std::byte> span(data, bytes.size());
    const std::vector<std::shared_ptr<Container>> variables = containers_in(containers);
    return released([&] { return from_bytes(span, variables); });
  });
}

}  // namespace palimpsest::python
