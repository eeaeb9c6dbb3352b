// SPDX-License-Identifier: Apache-2.0
// Named dimensions.
#include "palimpsest/named/named_shape.hpp"
#include "palimpsest/python/families.hpp"
#include "palimpsest/python/linop_conversions.hpp"

namespace palimpsest::python {

namespace {

struct DimensionObject {
  ND value;
};
struct DimsObject {
  Dims value;
};
struct ShapeObject {
  NamedShape value;
};

bool is_names(nb::handle object) {
  return PyUnicode_Check(object.ptr()) || nb::isinstance<DimensionObject>(object) ||
         nb::isinstance<DimsObject>(object) || PyTuple_Check(object.ptr()) ||
         PyList_Check(object.ptr());
}

template <class T>
nb::object compared(const T& a, nb::handle other) {
  if (!is_names(other)) return nb::bool_(false);
  try {
    return nb::bool_(a == from_python<T>(other));
  } catch (const Error&) {
    return nb::bool_(false);
  }
}

nb::object item_of(const DimsObject& self, nb::handle key) {
  if (PySlice_Check(key.ptr())) {
    const Slice range = from_python<Slice>(key);
    const auto n = static_cast<index_t>(self.value.size());
    std::vector<ND> kept;
    const auto inside = [n](index_t i) { return std::clamp<index_t>(i < 0 ? i + n : i, 0, n); };
    const index_t start = range.start ? inside(*range.start) : 0;
    const index_t stop = range.stop ? inside(*range.stop) : n;
    if (range.step != 1) throw ValueError("[Dims] got a slice with a step, expected none.");
    for (index_t i = start; i < stop; ++i) kept.push_back(self.value[static_cast<std::size_t>(i)]);
    return to_python(Dims(kept));
  }
  index_t i = integer_of(key, "an index");
  const auto n = static_cast<index_t>(self.value.size());
  if (i < 0) i += n;
  if (i < 0 || i >= n) throw nb::index_error("[Dims] index out of range");
  return to_python(self.value[static_cast<std::size_t>(i)]);
}

void bind_dimension(nb::module_& m) {
  nb::class_<DimensionObject>(m, "NamedDimension", "One dimension of a named shape.")
      .def(
          "__init__",
          [](DimensionObject* self, ND text, int index) {
            new (self) DimensionObject{index == 0 ? text : text + index};
          },
          "text"_a, "index"_a = 0)
      .def_prop_ro("base", [](const DimensionObject& d) { return std::string(d.value.base()); })
      .def_prop_ro("name", [](const DimensionObject& d) { return std::string(d.value.base()); })
      .def_prop_ro("index", [](const DimensionObject& d) { return d.value.index(); })
      .def("is_wildcard", [](const DimensionObject& d) { return d.value.is_wildcard(); })
      .def(
          "__add__", [](const DimensionObject& d, int k) { return d.value + k; }, "k"_a)
      .def(
          "__eq__",
          [](const DimensionObject& d, nb::handle other) { return compared(d.value, other); },
          nb::arg("other").none())
      .def(
          "__lt__", [](const DimensionObject& d, ND other) { return d.value < other; }, "other"_a)
      .def("__hash__", [](const DimensionObject& d) { return nb::hash(nb::cast(d.value.str())); })
      .def("__str__", [](const DimensionObject& d) { return d.value.str(); })
      .def("__repr__", [](const DimensionObject& d) { return d.value.str(); })
      .def("__reduce__", [](const DimensionObject& d) {
        return nb::make_tuple(nb::type<DimensionObject>(), nb::make_tuple(d.value.str()));
      });
  m.attr("ND") = m.attr("NamedDimension");
}

void bind_dims(nb::module_& m) {
  nb::class_<DimsObject>(m, "Dims", "Names of the axes of an array; equals a tuple of names.")
      .def(
          "__init__", [](DimsObject* self, Dims dims) { new (self) DimsObject{dims}; }, "dims"_a)
      .def("__len__", [](const DimsObject& d) { return d.value.size(); })
      .def("__getitem__", item_of, "key"_a)
      .def("__iter__",
           [](const DimsObject& d) {
             nb::list list;
             for (const ND& dim : d.value) list.append(to_python(dim));
             return nb::iter(list);
           })
      .def("__contains__", [](const DimsObject& d, ND dim) { return d.value.contains(dim); })
      .def("__add__", [](const DimsObject& d, Dims other) { return d.value + other; })
      .def(
          "index",
          [](const DimsObject& d, ND dim) {
            const auto found = d.value.index_of(dim);
            if (!found) throw ValueError("[Dims] " + d.value.str() + " has no " + dim.str());
            return *found;
          },
          "dim"_a)
      .def(
          "__eq__", [](const DimsObject& d, nb::handle other) { return compared(d.value, other); },
          nb::arg("other").none())
      .def("__hash__",
           [](const DimsObject& d) {
             nb::list names;
             for (const ND& dim : d.value) names.append(dim.str());
             return nb::hash(nb::tuple(names));
           })
      .def("__repr__", [](const DimsObject& d) { return d.value.str(); })
      .def("__reduce__", [](const DimsObject& d) {
        nb::list names;
        for (const ND& dim : d.value) names.append(dim.str());
        return nb::make_tuple(nb::type<DimsObject>(), nb::make_tuple(nb::tuple(names)));
      });
  m.def(
      "Dim", [](const std::string& text) { return Dim(text); }, "text"_a,
      "The dimensions that a text spells: Dim('NxNy') is Nx Ny.");
}

}  // namespace

bool is_dims(nb::handle object) {
  return nb::isinstance<DimensionObject>(object) || nb::isinstance<DimsObject>(object);
}

ND From<ND>::from(nb::handle object) {
  if (nb::isinstance<DimensionObject>(object)) return nb::cast<DimensionObject&>(object).value;
  if (object.ptr() == Py_Ellipsis) return ND::ellipsis();
  return ND(text_of(object, "the name of a dimension"));
}

Dims From<Dims>::from(nb::handle object) {
  if (nb::isinstance<DimsObject>(object)) return nb::cast<DimsObject&>(object).value;
  if (PyUnicode_Check(object.ptr())) return Dims(nb::cast<std::string>(object));
  if (nb::isinstance<DimensionObject>(object) || object.ptr() == Py_Ellipsis) {
    return Dims(from_python<ND>(object));
  }
  if (!is_list(object)) {
    throw TypeError("got " + class_name(object) + ", expected names of dimensions such as 'NxNy'.");
  }
  std::vector<ND> dims;
  for (nb::handle item : object) dims.push_back(from_python<ND>(item));
  return Dims(dims);
}

DimMap From<DimMap>::from(nb::handle object) {
  DimMap sizes;
  if (object.is_none()) return sizes;
  if (!PyDict_Check(object.ptr())) {
    throw TypeError("got " + class_name(object) + ", expected a dict of sizes such as {'Nx': 64}.");
  }
  const nb::object items = object.attr("items")();
  for (nb::handle item : items) {
    sizes[from_python<ND>(nb::object(item[0]))] = integer_of(nb::object(item[1]), "a size");
  }
  return sizes;
}

nb::object to_python(const ND& dim) { return nb::cast(DimensionObject{dim}); }
nb::object to_python(const Dims& dims) { return nb::cast(DimsObject{dims}); }
nb::object to_python(const DimMap& sizes) {
  nb::dict dict;
  for (const auto& [dim, size] : sizes) dict[nb::cast(dim.str())] = nb::cast(size);
  return dict;
}
nb::object to_python(const NamedShape& shape) { return nb::cast(ShapeObject{shape}); }

NamedShape From<NamedShape>::from(nb::handle object) {
  if (nb::isinstance<ShapeObject>(object)) return nb::cast<ShapeObject&>(object).value;
  return NamedShape(from_python<Dims>(object));
}

void bind_names(nb::module_& m) {
  bind_dimension(m);
  bind_dims(m);
  nb::class_<ShapeObject>(m, "NamedShape", "Input and output dimensions of an operator.")
      .def(
          "__init__",
          [](ShapeObject* self, Dims ishape, std::optional<Dims> oshape) {
            new (self) ShapeObject{oshape ? NamedShape(ishape, *oshape) : NamedShape(ishape)};
          },
          "ishape"_a, "oshape"_a.none() = nb::none())
      .def_prop_ro("ishape", [](const ShapeObject& s) { return s.value.ishape(); })
      .def_prop_ro("oshape", [](const ShapeObject& s) { return s.value.oshape(); })
      .def("__reduce__",
           [](const ShapeObject& s) {
             return nb::make_tuple(
                 nb::type<ShapeObject>(),
                 nb::make_tuple(to_python(s.value.ishape()), to_python(s.value.oshape())));
           })
      .def_prop_ro("H", [](const ShapeObject& s) { return ShapeObject{s.value.H()}; })
      .def_prop_ro("N", [](const ShapeObject& s) { return ShapeObject{s.value.N()}; })
      .def("__add__", [](const ShapeObject& a,
                         const ShapeObject& b) { return ShapeObject{a.value + b.value}; })
      .def(
          "__eq__",
          [](const ShapeObject& a, nb::handle b) {
            return nb::isinstance<ShapeObject>(b) && nb::cast<ShapeObject&>(b).value == a.value;
          },
          nb::arg("other").none())
      .def("__repr__", [](const ShapeObject& s) { return s.value.str(); });
  m.attr("NS") = m.attr("NamedShape");
}

}  // namespace palimpsest::python
