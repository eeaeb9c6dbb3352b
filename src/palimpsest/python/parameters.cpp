// SPDX-License-Identifier: Apache-2.0
// class Parameter, attributes, tiles.
#include "palimpsest/linop/core/parameter.hpp"
#include "palimpsest/python/arrays.hpp"
#include "palimpsest/python/families.hpp"
#include "palimpsest/python/interop/torch_tensors.hpp"
#include "palimpsest/python/linop_conversions.hpp"
#include "palimpsest/python/values.hpp"

namespace palimpsest::python {

nb::object attribute_object(const Attribute& a) {
  switch (a.kind()) {
    case Attribute::Kind::absent:
      return nb::none();
    case Attribute::Kind::boolean:
      return nb::cast(a.as_bool());
    case Attribute::Kind::integer:
      return nb::cast(a.as_integer());
    case Attribute::Kind::real:
      return nb::cast(a.as_real());
    case Attribute::Kind::complex:
      return nb::cast(a.as_complex());
    case Attribute::Kind::string:
      return nb::cast(a.as_string());
    case Attribute::Kind::dims:
      return to_python(a.as_dims());
    case Attribute::Kind::device:
      return to_python(a.as_device());
    case Attribute::Kind::tensor:
      return to_python(a.as_tensor().lazy_clone());
    default: {
      nb::list list;
      for (const Attribute& item : a.as_list()) list.append(attribute_object(item));
      return nb::tuple(list);
    }
  }
}

Tile tile_of(nb::handle object) {
  if (!PyDict_Check(object.ptr())) {
    throw TypeError("[split] got " + class_name(object) +
                    ", expected a dict such as {'C': slice(0, 2)}.");
  }
  Tile tile;
  const nb::object items = object.attr("items")();
  for (nb::handle item : items) {
    tile[from_python<ND>(nb::object(item[0]))] = from_python<Slice>(nb::object(item[1]));
  }
  return tile;
}

nb::dict tile_object(const Tile& tile) {
  nb::dict dict;
  for (const auto& [dim, range] : tile) {
    const auto end = [](const std::optional<index_t>& i) {
      return i ? nb::cast(*i) : nb::object(nb::none());
    };
    const nb::object step = range.step == 1 ? nb::object(nb::none()) : nb::cast(range.step);
    dict[nb::cast(dim.str())] = nb::slice(end(range.start), end(range.stop), step);
  }
  return dict;
}

Renaming renaming_of(nb::handle object) {
  Renaming names;
  const nb::object items = object.attr("items")();
  for (nb::handle item : items) {
    names[from_python<ND>(nb::object(item[0]))] = from_python<ND>(nb::object(item[1]));
  }
  return names;
}

std::vector<std::pair<nb::object, nb::object>> pairs_in(nb::handle object, const char* expected) {
  std::vector<std::pair<nb::object, nb::object>> pairs;
  const bool is_dict = PyDict_Check(object.ptr());
  const nb::object items = is_dict ? nb::object(object.attr("items")()) : nb::borrow(object);
  const auto refuse = [&](nb::handle got) {
    throw TypeError("got " + class_name(got) + ", expected " + expected + ".");
  };
  if (!is_dict && !is_list(items)) refuse(object);
  for (nb::handle item : items) {
    if (!is_list(item) || nb::len(item) != 2) refuse(item);
    pairs.emplace_back(nb::object(item[0]), nb::object(item[1]));
  }
  return pairs;
}

std::vector<std::pair<ND, index_t>> ordered_sizes(nb::handle object) {
  std::vector<std::pair<ND, index_t>> sizes;
  for (const auto& [dim, size] : pairs_in(object, "a dict or pairs of sizes such as {'N': 2}")) {
    sizes.emplace_back(from_python<ND>(dim), integer_of(size, "a size"));
  }
  return sizes;
}

namespace {

// `kept_as_it_is`: without the conversion of integers of Python to floating numbers.
Parameter parameter_of(nb::handle object, bool kept_as_it_is) {
  if (object.is_none()) return {};
  if (nb::isinstance<ParameterObject>(object)) return nb::cast<ParameterObject&>(object).parameter;
  if (nb::isinstance<SharedObject>(object)) return nb::cast<SharedObject&>(object).shared;
  if (kind_of(object) == Kind::torch && is_learned(object)) return learned_parameter(object);
  return kept_as_it_is ? from_python<Tensor>(object) : data_of(object);
}

}  // namespace

Parameter From<Parameter>::from(nb::handle object) { return parameter_of(object, false); }

namespace {

using Self = ParameterObject&;

nb::object shown(Self self) {
  check_not_building();
  return export_in_place(released([&] { return self.parameter.borrowed(); }), Kind::numpy);
}

// A Variable while the graph of an operator is built, else a number or an array. A tensor of torch
// that learns the parameter computes it, with gradients.
void def_reduction(nb::class_<ParameterObject, VariableObject>& c, const char* name) {
  c.def(name, [name](nb::handle self, nb::args args, nb::kwargs named) -> nb::object {
    const Parameter& parameter = nb::cast<Self>(self).parameter;
    const nb::object tensor = is_building() ? nb::none() : torch_tensor_of(parameter);
    const bool is_for_numpy = named.contains("out");  // numpy.sum(A.weight) gives it
    const nb::object of = is_building() && !is_for_numpy     ? to_python(parameter.var())
                          : is_for_numpy || tensor.is_none() ? shown(nb::cast<Self>(self))
                                                             : tensor;
    return of.attr(name)(*args, **named);
  });
}

// Functions of NumPy take the value.
nb::object universal(nb::handle, nb::handle ufunc, nb::handle method, nb::args inputs,
                     nb::kwargs named) {
  nb::list values;
  for (nb::handle input : inputs) {
    values.append(nb::isinstance<ParameterObject>(input) ? shown(nb::cast<Self>(input))
                                                         : nb::borrow(input));
  }
  return ufunc.attr(nb::str(nb::borrow<nb::str>(method)))(*nb::tuple(values), **named);
}

// Its container, and the elements of that which a view shows.
nb::tuple reduced_parameter(const Parameter& p) {
  p.type();  // it is present
  nb::object view = nb::none();
  if (p.is_view()) {
    const ElementLayout layout = p.layout();
    view = nb::make_tuple(std::string(name_of(layout.dtype)), layout.shape, layout.strides,
                          layout.offset);
  }
  return nb::make_tuple(
      nb::module_::import_("palimpsest._pickles").attr("parameter_of_container"),
      nb::make_tuple(object_of(p.variable().container_ptr()), p.is_trainable(), view));
}

Parameter parameter_on(nb::handle object, bool trainable, nb::handle view) {
  const std::shared_ptr<Container> container = container_in(object);
  const Parameter whole =
      Parameter(SharedVariable(container->type(), container)).as_trainable(trainable);
  if (view.is_none()) return whole;
  const Extents strides = from_python<Extents>(nb::object(view[2]));
  return whole.view(ElementLayout{.dtype = parse_dtype(nb::cast<std::string>(nb::object(view[0]))),
                                  .shape = from_python<Extents>(nb::object(view[1])),
                                  .strides = Strides(strides.begin(), strides.end()),
                                  .offset = nb::cast<index_t>(nb::object(view[3]))});
}

// A learned tensor of torch is borrowed anyway.
Parameter borrowed(nb::handle array) {
  const bool is_of_torch = kind_of(array) == Kind::torch && is_learned(array);
  return is_of_torch ? from_python<Parameter>(array)
                     : Parameter::borrow(writable_array(array, "borrow"));
}

}  // namespace

void bind_parameters(nb::module_& m) {
  m.def("_parameter_on", parameter_on, "container"_a, "trainable"_a, "view"_a.none());
  m.def(
      "borrow", [](ArrayGiven x) { return ParameterObject(borrowed(x)); }, "x"_a,
      "A parameter over the memory of an array: operators see writes to it.\n\n"
      "Examples\n--------\n>>> w = np.ones(2)\n>>> A = ps.Diagonal(ps.borrow(w), 'N')\n"
      ">>> w[0] = 5\n>>> A([1.0, 1.0])\narray([5., 1.])");
  nb::class_<ParameterObject, VariableObject> c(m, "Parameter", nb::is_weak_referenceable(),
                                                "Data of an operator: in graphs a Variable, for "
                                                "NumPy its value.");
  for (const char* name : {"sum", "prod", "mean", "max", "min", "any", "all"})
    def_reduction(c, name);
  c.def("__array_ufunc__", universal)
      .def("__array_function__",
           [](nb::handle, nb::handle f, nb::handle, nb::handle arguments, nb::handle named) {
             // Computes as NumPy without this method: the parameter is an array there.
             return nb::object(f.attr("_implementation")(*nb::borrow<nb::tuple>(arguments),
                                                         **nb::borrow<nb::dict>(named)));
           })
      .def(
          "__init__",
          [](ParameterObject* self, nb::handle value, bool trainable, bool borrow) {
            const Parameter made = borrow ? borrowed(value) : parameter_of(value, true);
            new (self) ParameterObject(trainable ? made.as_trainable() : made);
          },
          "value"_a, nb::kw_only(), "trainable"_a = false, "borrow"_a = false)
      .def_prop_ro(
          "data", [](Self self) -> Shown<"Tensor"> {
            check_not_building();
            return borrowed_from(self.parameter.variable().container(), self.parameter.borrowed());
          },
          "A Tensor over the very memory. Call touch() after writing another way.")
      .def_prop_ro(
          "value",
          [](Self self) {
            check_not_building();
            return export_read_only(released([&] { return self.parameter.value(); }));
          },
          "The value, read-only.")
      .def(
          "set_value",
          [](Self self, nb::handle value) {
            const Tensor given = values_for(self.parameter, value);
            if (write_torch_tensor(self.parameter, given)) return;
            released([&] { self.parameter.set_value(given); });
          },
          "value"_a.none())
      .def_prop_ro(
          "grad",
          [](Self self) -> nb::object {
            const nb::object tensor = torch_tensor_of(self.parameter);
            return tensor.is_none() ? tensor : nb::object(tensor.attr("grad"));
          },
          "Of a parameter over a tensor of torch: the gradient of that.")
      .def(
          "modify",
          [](Self self, nb::handle change) {
            change_in_place([&](const auto& f) { self.parameter.modify(f); },
                            self.parameter.variable().container(), change);
          },
          "change"_a)
      .def(
          "__setitem__",
          [](Self, nb::handle, nb::handle) {
            throw TypeError(
                "[Parameter] got a write to its elements, expected one to its data. Try to write "
                "to "
                "p.data[i], or p.set_value(v).");
          },
          nb::arg("key").none(), nb::arg("value").none())
      .def("touch", [](Self self) { self.parameter.touch(); })
      .def_prop_ro("shape", [](Self self) { return self.parameter.shape(); })
      .def_prop_ro("dtype", [](Self self) { return self.parameter.dtype(); })
      .def_prop_ro("device", [](Self self) { return self.parameter.type().device; })
      .def_prop_ro("trainable", [](Self self) { return self.parameter.is_trainable(); })
      .def_prop_ro("version", [](Self self) { return self.parameter.version(); })
      .def("data_ptr",
           [](Self self) {
             return reinterpret_cast<std::uintptr_t>(self.parameter.borrowed().raw_data());
           })
      .def("view",
           [](Self self, nb::args slices) {
             std::vector<Slice> list;
             for (nb::handle range : slices) list.push_back(from_python<Slice>(range));
             return self.parameter.view(list);
           })
      .def(
          "__array__",
          [](Self self, nb::handle dtype, nb::handle copy) {
            const nb::object value =
                nb::module_::import_("numpy").attr("array")(shown(self), dtype);
            if (copy.ptr() == Py_True || !dtype.is_none()) return value;
            return export_read_only(released([&] { return self.parameter.value(); }));
          },
          "dtype"_a.none() = nb::none(), "copy"_a.none() = nb::none())
      .def("__len__",
           [](Self self) {
             if (self.parameter.shape().empty()) throw TypeError("[len] got no axes.");
             return self.parameter.shape()[0];
           })
      .def("__bool__", [](Self) { return true; })
      .def("__copy__", [](nb::handle self) { return nb::borrow(self); })
      .def("__reduce__",
           [](Self self) {
             if (!self.parameter.is_derived()) return reduced_parameter(self.parameter);
             const Tensor value = released([&] { return self.parameter.value(); });
             return nb::make_tuple(
                 nb::module_::import_("palimpsest._pickles").attr("parameter_of_value"),
                 nb::make_tuple(to_python(value), self.parameter.is_trainable()));
           })
      .def("__repr__", [](Self self) { return to_string(self.parameter.value()); });
}

}  // namespace palimpsest::python
