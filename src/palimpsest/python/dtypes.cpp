// SPDX-License-Identifier: Apache-2.0
// Dtypes, by any name that they have in Python.
#include "palimpsest/base/dtype.hpp"
#include "palimpsest/python/arrays.hpp"
#include "palimpsest/python/families.hpp"

namespace palimpsest::python {
namespace {

std::optional<DType> dtype_named(const std::string& name) {
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    if (name == name_of(dtype)) return dtype;
  }
  if (name == "bool") return DType::bool_;
  return std::nullopt;
}

std::string numpy_name(DType dtype) {
  return dtype == DType::bool_ ? "bool" : std::string(name_of(dtype));
}

nb::object numpy_dtype(nb::handle object) {
  return nb::module_::import_("numpy").attr("dtype")(object);
}

// The name that NumPy has for it, or an empty text.
std::string name_in_numpy(nb::handle object) {
  try {
    return nb::cast<std::string>(numpy_dtype(object).attr("name"));
  } catch (const nb::python_error&) {
    return {};
  }
}

// An object per dtype, until the interpreter ends.
PyObject* objects[kDTypeCount] = {};

void forget_objects() {
  for (PyObject*& object : objects) Py_CLEAR(object);
}

}  // namespace

const char* nearest_dtype(const std::string& name) {
  if (name.ends_with("float16")) return "float32";
  if (name.find("complex") != name.npos || name == "clongdouble") return "complex128";
  return "float64";
}

DType From<DType>::from(nb::handle object) {
  if (nb::isinstance<DTypeObject>(object)) return nb::cast<DTypeObject&>(object).value;
  const auto is = [&](PyTypeObject& type) { return object.is(reinterpret_cast<PyObject*>(&type)); };
  if (is(PyFloat_Type)) return DType::float64;
  if (is(PyLong_Type)) return DType::int64;
  if (is(PyComplex_Type)) return DType::complex128;
  if (is(PyBool_Type)) return DType::bool_;
  std::string name;
  if (PyUnicode_Check(object.ptr())) {
    name = nb::cast<std::string>(object);
    if (const auto dtype = dtype_named(name)) return *dtype;
  }
  const std::string text = str_of(object);
  if (text.rfind("torch.", 0) == 0) {
    name = text.substr(6);
  } else {
    name = name_in_numpy(object);
  }
  if (const auto dtype = dtype_named(name)) return *dtype;
  throw DTypeError("[dtype] got " + text + ", expected a dtype such as 'float32'. Try '" +
                   nearest_dtype(name.empty() ? text : name) + "'.");
}

nb::object to_python(DType dtype) {
  PyObject*& object = objects[static_cast<int>(dtype)];
  if (!object) object = nb::cast(DTypeObject{dtype}).release().ptr();
  return nb::borrow(object);
}

void bind_dtypes(nb::module_& m) {
  nb::class_<DTypeObject>(m, "DType", "The type of the elements of an array.")
      .def_prop_ro("name", [](const DTypeObject& d) { return numpy_name(d.value); })
      .def_prop_ro("itemsize", [](const DTypeObject& d) { return item_size(d.value); })
      .def_prop_ro(
          "dtype", [](const DTypeObject& d) { return numpy_dtype(nb::cast(numpy_name(d.value))); },
          "The dtype of NumPy.")
      .def("__repr__", [](const DTypeObject& d) { return "palimpsest." + numpy_name(d.value); })
      .def("__str__", [](const DTypeObject& d) { return numpy_name(d.value); })
      // The name in the module: there is one object of each.
      .def("__reduce__",
           [](const DTypeObject& d) {
             const std::string name = numpy_name(d.value);
             return name == "bool" ? name + "_" : name;
           })
      .def("__hash__", [](const DTypeObject& d) { return nb::hash(nb::cast(numpy_name(d.value))); })
      .def(
          "__eq__",
          [](const DTypeObject& d, nb::handle other) {
            if (other.is_none()) return false;  // float64 for NumPy
            try {
              return from_python<DType>(other) == d.value;
            } catch (const DTypeError&) {
              return false;
            }
          },
          nb::arg("other").none());
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    // A name of Python gets the underscore that NumPy gives it.
    const std::string name(name_of(dtype));
    m.attr((name == "bool" ? "bool_" : name).c_str()) = to_python(dtype);
  }
  at_end(forget_objects);
}

}  // namespace palimpsest::python
