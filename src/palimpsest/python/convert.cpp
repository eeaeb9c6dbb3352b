// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/python/convert.hpp"

#include "palimpsest/inspect/mode_named.hpp"
#include "palimpsest/python/arrays.hpp"
#include "palimpsest/python/interop/torch_tensors.hpp"

namespace palimpsest::python {
namespace {

// A number of Python itself, not of NumPy.
bool is_number(nb::handle object) {
  return PyBool_Check(object.ptr()) || PyLong_CheckExact(object.ptr()) ||
         PyFloat_CheckExact(object.ptr()) || PyComplex_CheckExact(object.ptr());
}

WeakNumber weak_number(nb::handle object) {
  if (PyComplex_CheckExact(object.ptr())) return nb::cast<std::complex<double>>(object);
  if (PyFloat_CheckExact(object.ptr())) return PyFloat_AsDouble(object.ptr());
  return integer_of(object, "number");
}

}  // namespace

constinit thread_local bool Unlocked::is_unlocked = false;

Unlocked::Unlocked() {
  wait_at_end();
  if (has_torch_containers) announce_torch_writes();
  state_ = PyEval_SaveThread();
  is_unlocked = true;
}
Unlocked::~Unlocked() {
  is_unlocked = false;
  PyEval_RestoreThread(state_);
}

Locked::Locked() : was_unlocked_(Unlocked::is_unlocked) {
  wait_at_end();
  state_ = PyGILState_Ensure();
  Unlocked::is_unlocked = false;
}

std::string class_name(nb::handle object) {
  const nb::handle type = object.type();
  const std::string module = str_of(nb::object(type.attr("__module__")));
  const std::string name = str_of(nb::object(type.attr("__qualname__")));
  return module == "builtins" ? name : module + "." + name;
}

std::string str_of(nb::handle object) {
  const nb::object text = nb::steal(PyObject_Str(object.ptr()));
  if (!text.is_valid()) throw nb::python_error();
  return nb::cast<std::string>(text);
}

std::string text_of(nb::handle object, const char* expected) {
  if (!PyUnicode_Check(object.ptr())) {
    throw TypeError("got " + class_name(object) + ", expected " + expected + ".");
  }
  return nb::cast<std::string>(object);
}

bool is_integer(nb::handle object) {
  return PyIndex_Check(object.ptr()) && !nb::isinstance<VariableObject>(object);
}

index_t integer_of(nb::handle object, const char* expected) {
  if (!PyIndex_Check(object.ptr())) {
    throw TypeError("got " + class_name(object) + ", expected " + expected + ".");
  }
  const nb::object number = nb::steal(PyNumber_Index(object.ptr()));
  if (!number.is_valid()) throw nb::python_error();
  const long long value = PyLong_AsLongLong(number.ptr());
  if (value == -1 && PyErr_Occurred()) {
    PyErr_Clear();
    throw OverflowError("got " + str_of(number) + ", expected a number of 64 bits for " + expected +
                        ".");
  }
  return value;
}

bool is_list(nb::handle object) {
  return PySequence_Check(object.ptr()) && nb::hasattr(object, "__len__") &&
         !PyUnicode_Check(object.ptr()) && !PyBytes_Check(object.ptr()) &&
         !nb::isinstance<VariableObject>(object) && !nb::isinstance<LinopObject>(object);
}

Device From<Device>::from(nb::handle object) {
  return Device::parse(text_of(object, "a device such as 'cpu:1'"));
}

Extents From<Extents>::from(nb::handle object) {
  if (is_integer(object)) return {integer_of(object, "an integer")};
  if (!is_list(object)) {
    throw TypeError("got " + class_name(object) + ", expected an integer or a list of integers.");
  }
  Extents extents;
  for (nb::handle item : object) extents.push_back(integer_of(item, "an integer"));
  return extents;
}

AxesArgument From<AxesArgument>::from(nb::handle object) {
  if (object.is_none()) return {};
  return From<Extents>::from(object);
}

ShapeArgument From<ShapeArgument>::from(nb::handle object) {
  if (!is_list(object) || nb::isinstance<VariableObject>(object)) {
    return std::vector<Operand>{From<Operand>::from(object)};
  }
  return From<std::vector<Operand>>::from(object);
}

Tensor From<Tensor>::from(nb::handle object) {
  if (is_array(object)) return import_array(object);
  if (nb::isinstance<ParameterObject>(object)) {
    return nb::cast<ParameterObject&>(object).parameter.value();
  }
  const Value value = value_of(object);
  if (value.is_variable()) {
    throw TypeError("got a Variable, expected values. Try function() or .get_value().");
  }
  return value.tensor();
}

Value From<Value>::from(nb::handle object) { return value_of(object); }

Variable From<Variable>::from(nb::handle object) {
  if (nb::isinstance<VariableObject>(object)) return nb::cast<VariableObject&>(object).value;
  const Value value = value_of(object);
  return value.is_variable() ? value.variable() : constant(value.tensor());
}

Operand From<Operand>::from(nb::handle object) {
  if (is_number(object)) return weak_number(object);
  return From<Variable>::from(object);
}

Slice From<Slice>::from(nb::handle object) {
  if (!PySlice_Check(object.ptr())) {
    throw TypeError("got " + class_name(object) + ", expected a slice.");
  }
  const auto end = [&](const char* name) -> std::optional<index_t> {
    const nb::object value = object.attr(name);
    if (value.is_none()) return std::nullopt;
    return integer_of(value, "an end of a slice");
  };
  return slice(end("start"), end("stop"), end("step").value_or(1));
}

RandomKey From<RandomKey>::from(nb::handle object) {
  if (is_list(object)) {
    const Extents words = From<Extents>::from(object);
    if (words.size() != 2) throw ValueError("[key] expected a seed, or a seed and a stream.");
    return {static_cast<std::uint64_t>(words[0]), static_cast<std::uint64_t>(words[1])};
  }
  return {static_cast<std::uint64_t>(integer_of(object, "a seed"))};
}

TensorType From<TensorType>::from(nb::handle object) {
  if (nb::isinstance<TypeObject>(object)) return nb::cast<TypeObject&>(object).value;
  if (PyTuple_Check(object.ptr()) && nb::len(object) == 2 && !is_array(object)) {
    const nb::object first = object[0];
    if (!is_integer(first) && !PyFloat_Check(first.ptr())) {
      return {from_python<DType>(first), from_python<Extents>(object[1]), {}};
    }
  }
  const Tensor tensor = from_python<Tensor>(object);
  return {tensor.dtype(), tensor.shape(), tensor.device()};
}

nb::object to_python(const Extents& extents) {
  nb::object tuple = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(extents.size())));
  for (std::size_t i = 0; i < extents.size(); ++i) {
    PyTuple_SetItem(tuple.ptr(), static_cast<Py_ssize_t>(i), PyLong_FromLongLong(extents[i]));
  }
  return tuple;
}

nb::object to_python(const Device& device) { return nb::cast(device.str()); }
nb::object to_python(const Tensor& tensor) { return made_in_place<TensorObject>(tensor); }
nb::object to_python(Tensor&& tensor) { return made_in_place<TensorObject>(std::move(tensor)); }
nb::object to_python(const Variable& variable) {
  if (!variable.defined()) return nb::none();
  return nb::cast(VariableObject{variable});
}

}  // namespace palimpsest::python
