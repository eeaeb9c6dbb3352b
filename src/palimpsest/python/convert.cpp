// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/python/convert.hpp"

#include "palimpsest/inspect/mode_named.hpp"
#include "palimpsest/linop/core/attribute.hpp"
#include "palimpsest/memory/allocator.hpp"
#include "palimpsest/python/arrays.hpp"
#include "palimpsest/python/interop/torch_tensors.hpp"
#include "palimpsest/python/values.hpp"

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

// The numbers in a dtype that they survive in.
Tensor surviving(const Value& numbers, DType dtype, std::string_view who) {
  const TensorType type{dtype, numbers.tensor().shape(), numbers.tensor().device()};
  // The advice of filter() is for inputs of functions.
  const auto without_advice = [](const Error& error) {
    const std::string text = error.what();
    return text.substr(0, text.rfind(". Try")) + ".";
  };
  try {
    return filter(type, numbers, {}, who);
  } catch (const OverflowError& error) {
    throw OverflowError(without_advice(error));
  } catch (const DTypeError& error) {
    throw DTypeError(without_advice(error));
  }
}

}  // namespace

// A tree may be very deep.
std::optional<DType> precision_of(const NamedLinop& A) {
  std::vector<const NamedLinop*> open{&A};
  while (!open.empty()) {
    const NamedLinop& next = *open.back();
    open.pop_back();
    const bool adapts = next.has_attr("adapts") && next.attr("adapts") == Attribute(true);
    for (const auto& [name, p] : next.params()) {
      if (!adapts && p.present() && is_inexact(p.dtype())) return real_of(p.dtype());
    }
    const auto& children = next.linops();
    for (auto child = children.rbegin(); child != children.rend(); ++child) open.push_back(&*child);
  }
  return std::nullopt;
}

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

// Arrays have __index__ whatever their rank and dtype are: whether it works counts.
bool is_integer(nb::handle object) {
  if (PyLong_Check(object.ptr())) return true;
  if (!PyIndex_Check(object.ptr()) || nb::isinstance<VariableObject>(object)) return false;
  if (nb::steal(PyNumber_Index(object.ptr())).is_valid()) return true;
  if (!PyErr_ExceptionMatches(PyExc_TypeError)) throw nb::python_error();
  PyErr_Clear();
  return false;
}

index_t integer_of(nb::handle object, const char* expected) {
  if (!is_integer(object)) {
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
  if (!PySequence_Check(object.ptr()) || PyUnicode_Check(object.ptr()) ||
      PyBytes_Check(object.ptr()) || nb::isinstance<VariableObject>(object) ||
      nb::isinstance<LinopObject>(object)) {
    return false;
  }
  if (PySequence_Size(object.ptr()) >= 0) return true;
  PyErr_Clear();  // an array without axes
  return false;
}

bool is_device(nb::handle object) {
  if (!PyUnicode_Check(object.ptr())) return false;
  const std::string text = str_of(object);
  return text.starts_with("cpu") || text.starts_with("cuda") || text.starts_with("opencl") ||
         text.find(':') != std::string::npos;
}

Device From<Device>::from(nb::handle object) {
  const std::string text = text_of(object, "a device such as 'cpu:1'");
  const std::string name = text.substr(0, text.find(':'));
  if (!name.empty() && name != "cpu" && name != "cuda" && name != "opencl") {
    throw DeviceError("[device] got '" + text + "', expected one that exists: cpu:0 .. cpu:" +
                      std::to_string(kMaxHostSpaces - 1) + ".");
  }
  return Device::parse(text);
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

Value given_value(nb::handle object) {
  if (nb::isinstance<ParameterObject>(object)) {
    check_not_building();
    return nb::cast<ParameterObject&>(object).parameter.value();
  }
  Value value = value_of(object);
  if (value.is_variable()) {
    throw TypeError("got a Variable, expected values. Try function() or .get_value().");
  }
  return value;
}

Tensor converted_to(const Value& value, DType dtype, std::string_view who) {
  const Tensor& t = value.tensor();
  if (!value.is_weak()) return t.to(dtype);
  try {
    return surviving(value, dtype, who);
  } catch (const DTypeError&) {
    const bool keeps_parts = is_complex(dtype) || !is_complex(t.dtype());
    if (is_inexact(dtype) && keeps_parts) return t.to(dtype);
    throw;
  }
}

Tensor data_of(nb::handle object, std::optional<DType> like, std::string_view who) {
  const Value value = is_array(object) ? Value(import_array(object)) : given_value(object);
  const DType dtype = value.tensor().dtype();
  if (!value.is_weak() || (!like && !is_integer(dtype))) return value.tensor();
  const DType real = real_of(like.value_or(DType::float64));
  return surviving(value, is_complex(dtype) ? complex_of(real) : real, who);
}

Tensor values_for(const Parameter& p, nb::handle object) {
  const Value value = is_array(object) ? Value(import_array(object)) : given_value(object);
  return value.is_weak() ? surviving(value, p.dtype(), "Parameter") : value.tensor();
}

Tensor data_for(const NamedLinop& A, nb::handle object) {
  return data_of(object, precision_of(A).value_or(DType::float64), A.name());
}

Tensor From<Tensor>::from(nb::handle object) {
  return is_array(object) ? import_array(object) : given_value(object).tensor();
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
  const auto word = [](nb::handle part) {
    if (!is_integer(part)) {
      throw TypeError("[key] got " + class_name(part) +
                      ", expected a seed, or a seed and a stream.");
    }
    const nb::object number = nb::steal(PyNumber_Index(part.ptr()));
    const std::uint64_t value = PyLong_AsUnsignedLongLong(number.ptr());
    if (PyErr_Occurred()) {
      PyErr_Clear();
      throw OverflowError("[key] got " + str_of(number) + ", expected 0 to 2**64 - 1.");
    }
    return value;
  };
  if (is_integer(object) || !is_list(object)) return {word(object)};
  if (nb::len(object) != 2) throw ValueError("[key] expected a seed, or a seed and a stream.");
  return {word(nb::object(object[0])), word(nb::object(object[1]))};
}

bool is_type(nb::handle object) {
  if (nb::isinstance<TypeObject>(object)) return true;
  if (!PyTuple_Check(object.ptr()) || nb::len(object) != 2) return false;
  const nb::object first = object[0];
  return !is_number(first) && !is_integer(first) && !PyList_Check(first.ptr()) &&
         !PyTuple_Check(first.ptr()) && !is_array(first);
}

TensorType From<TensorType>::from(nb::handle object) {
  if (nb::isinstance<TypeObject>(object)) return nb::cast<TypeObject&>(object).value;
  if (is_type(object)) {
    return {from_python<DType>(nb::object(object[0])), from_python<Extents>(object[1]), {}};
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
nb::object borrowed_from(Container& container, Tensor tensor) {
  return made_in_place<TensorObject>(std::move(tensor), container.weak_from_this());
}
void report_write(nb::handle array) {
  if (nb::isinstance<TensorObject>(array)) nb::cast<TensorObject&>(array).report_write();
}
nb::object to_python(const Variable& variable) {
  if (!variable.defined()) return nb::none();
  return nb::cast(VariableObject{variable});
}

}  // namespace palimpsest::python
