// SPDX-License-Identifier: Apache-2.0
// Internal: common parts of all bindings. The signature of a bound function has C++ types of the
// library. From<T> makes them from Python objects when the function is called, so that errors have
// the texts of the library.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/complex.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "palimpsest/linop/core/named_linop.hpp"
#include "palimpsest/run/container.hpp"
#include "palimpsest/run/inputs.hpp"
#include "palimpsest/run/mode.hpp"
#include "palimpsest/tensor/tensor.hpp"

namespace palimpsest::python {

namespace nb = nanobind;
using namespace nb::literals;

/// A variable at namespace scope that no start of the module makes and no end of the process
/// destroys. Guarded by the lock of the interpreter.
template <class T>
class Global {
 public:
  /// Made at the first use.
  T& get() {
    if (!made_) made_ = new T();
    return *made_;
  }

 private:
  T* made_ = nullptr;
};
/// Calls `drop` when Python takes the module apart, after the exit handlers: no other thread runs
/// code of Python then. Holders of types or functions of this module release them there.
void at_end(void (*drop)());
/// The text of errors about a use after that, by the end of some object.
inline constexpr const char* kIsGone = "[palimpsest] got a call after the end of the module.";

/// An object of Python as one. See at_end().
class GlobalObject {
 public:
  /// StateError if it is not set.
  nb::handle get() const {
    if (!object_) throw StateError(kIsGone);
    return object_;
  }
  bool is_set() const { return object_ != nullptr; }
  void set(nb::object object) { object_ = object.release().ptr(); }
  void clear() { Py_CLEAR(object_); }

 private:
  PyObject* object_ = nullptr;
};

/// Conversion of a Python object to a T: `static T from(nb::handle)`. Throws errors of the library.
template <class T>
struct From;

template <class T>
T from_python(nb::handle object) {
  return From<T>::from(object);
}

/// `numpy.ndarray`, as it is called in errors.
std::string class_name(nb::handle object);
/// Python's str() of an object.
std::string str_of(nb::handle object);
/// The text of a Python string; TypeError naming the expected object.
std::string text_of(nb::handle object, const char* expected);
/// The value of a key of config that Python alone has; None: nothing was chosen.
nb::handle chosen(std::string_view key);
/// A whole number, of any type that has __index__.
bool is_integer(nb::handle object);
index_t integer_of(nb::handle object, const char* expected);
/// True for what stands for a type: a TensorType or (dtype, shape).
bool is_type(nb::handle object);
/// A text that names a device, known or not, where a dtype may stand too.
bool is_device(nb::handle object);
/// A sequence other than a string.
bool is_list(nb::handle object);

/// Lets the calling thread wait for the end of the process where the interpreter, which has begun
/// to end, would end the thread. Called before C++ calls code of Python. See ending.cpp.
void wait_at_end();

// Writes of torch to memory that parameters borrow are announced before.
class Unlocked {
 public:
  /// True if the calling thread has given up the lock that it called with.
  static bool is_here() { return is_unlocked; }
  Unlocked();
  ~Unlocked();
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

 private:
  friend class Locked;
  static thread_local bool is_unlocked;
  PyThreadState* state_;
};
class Locked {
 public:
  Locked();
  ~Locked() {
    Unlocked::is_unlocked = was_unlocked_;
    PyGILState_Release(state_);
  }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

 private:
  PyGILState_STATE state_;
  bool was_unlocked_;
};

/// Calls `f` without the lock of the interpreter.
template <class F>
decltype(auto) released(F&& f) {
  const Unlocked unlocked;
  return f();
}

// -- objects of Python that hold one of the library ----------------------------------------------

struct DTypeObject {
  DType value;
};
struct TensorObject {
  Tensor value;
  /// The container that it was borrowed from: it is told of writes.
  std::weak_ptr<Container> lender = {};
  void report_write() const {
    if (const std::shared_ptr<Container> container = lender.lock()) container->touch();
  }
};
struct VariableObject {
  Variable value;
};
struct TypeObject {
  TensorType value;
};
enum class Kind : std::uint8_t;
/// A shared variable is a Variable. Its values come back as the kind of its first one.
struct SharedObject : VariableObject {
  SharedObject(SharedVariable variable, Kind of);
  SharedVariable shared;
  Kind kind;
};
/// A parameter that is present is one, too.
struct ParameterObject : VariableObject {
  explicit ParameterObject(const Parameter& of)
      : VariableObject{of.present() ? of.var() : Variable()}, parameter(of) {}
  Parameter parameter;
};
/// A mode of an argument, or the name of one. `held`: its callbacks of Python. The mode refers to
/// them weakly; `held` shows their owner to the garbage collector.
struct GivenMode {
  Mode value;
  std::vector<nb::object> held = {};
};
struct ModeObject : GivenMode {};
struct LinopObject {
  NamedLinop value;
};

/// The object of a handle. Two handles of one operator, or of one parameter, are one object.
nb::object object_of(const NamedLinop& A);
nb::object object_of(const Parameter& p);

/// An object of Python with a T in it. The class is looked up once.
template <class T, class... Arguments>
nb::object made_in_place(Arguments&&... arguments) {
  static constinit std::atomic<PyObject*> found{nullptr};  // lives as long as the module
  nb::handle type = found.load(std::memory_order_relaxed);
  if (!type.is_valid()) {
    type = nb::type<T>();
    found.store(type.ptr(), std::memory_order_relaxed);
  }
  nb::object object = nb::inst_alloc(type);
  new (nb::inst_ptr<T>(object)) T{std::forward<Arguments>(arguments)...};
  nb::inst_mark_ready(object);
  return object;
}

// -- enumerations, by their names ------------------------------------------------------------

/// Names of the values of an enumeration, in their order from 0 on.
template <class E>
struct Names;

template <class E>
E enumerator(nb::handle object, const char* what) {
  std::string all;
  const bool is_text = PyUnicode_Check(object.ptr());
  const std::string text = is_text ? str_of(object) : class_name(object);
  for (std::size_t i = 0; i < std::size(Names<E>::list); ++i) {
    if (is_text && text == Names<E>::list[i]) return static_cast<E>(i);
    all += (i ? ", '" : "'") + std::string(Names<E>::list[i]) + "'";
  }
  const std::string start = "[" + std::string(what) + "] got ";
  if (!is_text) throw TypeError(start + text + ", expected one of " + all + ".");
  throw ValueError(start + "'" + text + "', expected one of " + all + ".");
}

/// In place of `template <> struct From<E>`, with the words of Python for the values.
#define PALIMPSEST_NAMES(E, what, ...)                                       \
  template <>                                                                \
  struct Names<E> {                                                          \
    static constexpr const char* list[] = {__VA_ARGS__};                     \
  };                                                                         \
  template <>                                                                \
  struct From<E> {                                                           \
    static constexpr auto name = nb::detail::const_name("str");              \
    static E from(nb::handle object) { return enumerator<E>(object, what); } \
  };

// -- types of the library as arguments ---------------------------------------------------------

#define PALIMPSEST_FROM(T, text)                               \
  template <>                                                  \
  struct From<T> {                                             \
    static constexpr auto name = nb::detail::const_name(text); \
    static T from(nb::handle object);                          \
  };

PALIMPSEST_FROM(DType, "DTypeLike")
PALIMPSEST_FROM(Device, "str")
PALIMPSEST_FROM(Extents, "int | Sequence[int]")
PALIMPSEST_FROM(Tensor, "ArrayLike")
PALIMPSEST_FROM(Value, "ArrayLike")
PALIMPSEST_FROM(Variable, "VariableLike")
PALIMPSEST_FROM(Operand, "VariableLike")
PALIMPSEST_FROM(AxesArgument, "int | Sequence[int] | None")
PALIMPSEST_FROM(ShapeArgument, "ShapeLike")
PALIMPSEST_FROM(Slice, "slice")
PALIMPSEST_FROM(RandomKey, "int")
PALIMPSEST_FROM(GivenMode, "Mode | str")
PALIMPSEST_FROM(ND, "str")
PALIMPSEST_FROM(Dims, "DimsLike")
PALIMPSEST_FROM(DimMap, "Mapping[str, int]")
PALIMPSEST_FROM(NamedLinop, "NamedLinop")
PALIMPSEST_FROM(Parameter, "ArrayLike | Parameter")
PALIMPSEST_FROM(TensorType, "TensorType | ArrayLike")
#undef PALIMPSEST_FROM

template <class T>
struct From<std::optional<T>> {
  static constexpr auto name = From<T>::name + nb::detail::const_name(" | None");
  static std::optional<T> from(nb::handle object) {
    if (object.is_none()) return std::nullopt;
    return From<T>::from(object);
  }
};

template <class T>
requires requires { From<T>::name; }
struct From<std::vector<T>> {
  static constexpr auto name =
      nb::detail::const_name("Sequence[") + From<T>::name + nb::detail::const_name("]");
  static std::vector<T> from(nb::handle object) {
    if (!is_list(object)) throw TypeError("got " + class_name(object) + ", expected a list.");
    std::vector<T> list;
    for (nb::handle item : object) list.push_back(From<T>::from(item));
    return list;
  }
};

/// The type of a T that comes back, in signatures; otherwise that of an argument.
template <class T>
constexpr auto kResultName = From<T>::name;
template <>
inline constexpr auto kResultName<Variable> = nb::detail::const_name("Variable");
template <>
inline constexpr auto kResultName<Tensor> = nb::detail::const_name("Tensor");
template <>
inline constexpr auto kResultName<DType> = nb::detail::const_name("DType");
template <>
inline constexpr auto kResultName<Dims> = nb::detail::const_name("Dims");
template <>
inline constexpr auto kResultName<ND> = nb::detail::const_name("NamedDimension");
template <>
inline constexpr auto kResultName<DimMap> = nb::detail::const_name("dict[str, int]");
template <>
inline constexpr auto kResultName<Extents> = nb::detail::const_name("tuple[int, ...]");
template <>
inline constexpr auto kResultName<Parameter> = nb::detail::const_name("Parameter");
template <class T>
constexpr auto kResultName<std::vector<T>> =
    nb::detail::const_name("list[") + kResultName<T> + nb::detail::const_name("]");

/// An object of Python with its type in signatures: `Shown<"NamedLinop | Variable">`.
template <std::size_t N>
struct Text {
  consteval Text(const char (&given)[N]) { std::copy_n(given, N, text); }
  char text[N] = {};
};
template <Text type>
struct Shown : nb::object {
  static constexpr bool nb_typed = true;
  Shown() = default;
  Shown(nb::object object) : nb::object(std::move(object)) {}
};

/// Keeps the Python object until the function is called.
template <class T>
struct LazyCaster {
  NB_INLINE bool from_python(nb::handle object, std::uint8_t, nb::detail::cleanup_list*) noexcept {
    source = object;
    return true;
  }
  template <class>
  using Cast = T;
  template <class>
  static constexpr bool can_cast() {
    return true;
  }
  operator T() { return From<T>::from(source); }

  static constexpr auto Name = nb::detail::const_name('@') + From<T>::name +
                               nb::detail::const_name('@') + kResultName<T> +
                               nb::detail::const_name('@');
  nb::handle source;
};

/// Results of the library as objects of Python.
nb::object to_python(DType dtype);
nb::object to_python(const Tensor& tensor);
nb::object to_python(Tensor&& tensor);
/// A tensor in the Storage of a container, which it tells of writes.
nb::object borrowed_from(Container& container, Tensor tensor);
/// After a write into an array of the user: tells the container of a borrowed Tensor.
void report_write(nb::handle array);
nb::object to_python(const Variable& variable);
nb::object to_python(const NamedLinop& A);
nb::object to_python(const Parameter& p);
nb::object to_python(const Extents& extents);
nb::object to_python(const Dims& dims);
nb::object to_python(const ND& dim);
nb::object to_python(const DimMap& sizes);
nb::object to_python(const Device& device);

}  // namespace palimpsest::python

namespace nanobind::detail {

template <palimpsest::python::Text type>
struct type_caster<palimpsest::python::Shown<type>> {
  using Value = palimpsest::python::Shown<type>;
  static constexpr auto Name = const_name(type.text);
  template <class>
  using Cast = Value;
  template <class>
  static constexpr bool can_cast() {
    return true;
  }
  bool from_python(handle source, std::uint8_t, cleanup_list*) noexcept {
    value = Value(borrow(source));
    return true;
  }
  static handle from_cpp(const Value& value, rv_policy, cleanup_list*) noexcept {
    return value.inc_ref();
  }
  explicit operator Value() { return value; }
  Value value;
};

#define PALIMPSEST_LAZY(T)                                                              \
  template <>                                                                           \
  struct type_caster<palimpsest::T> : palimpsest::python::LazyCaster<palimpsest::T> {}; \
  template <>                                                                           \
  struct type_caster<std::optional<palimpsest::T>>                                      \
      : palimpsest::python::LazyCaster<std::optional<palimpsest::T>> {};
#define PALIMPSEST_LAZY_BOTH(T)                                                             \
  template <>                                                                               \
  struct type_caster<palimpsest::T> : palimpsest::python::LazyCaster<palimpsest::T> {       \
    static handle from_cpp(const palimpsest::T& value, rv_policy, cleanup_list*) noexcept { \
      try {                                                                                 \
        return palimpsest::python::to_python(value).release();                              \
      } catch (python_error & error) {                                                      \
        error.restore();                                                                    \
      } catch (const std::exception& error) {                                               \
        PyErr_SetString(PyExc_RuntimeError, error.what());                                  \
      }                                                                                     \
      return {};                                                                            \
    }                                                                                       \
  };                                                                                        \
  template <>                                                                               \
  struct type_caster<std::optional<palimpsest::T>>                                          \
      : palimpsest::python::LazyCaster<std::optional<palimpsest::T>> {};
#define PALIMPSEST_LAZY_LIST(T)                                                               \
  template <>                                                                                 \
  struct type_caster<std::vector<palimpsest::T>>                                              \
      : palimpsest::python::LazyCaster<std::vector<palimpsest::T>> {                          \
    static handle from_cpp(const std::vector<palimpsest::T>& values, rv_policy policy,        \
                           cleanup_list* cleanup) noexcept {                                  \
      object list = steal(PyList_New(static_cast<Py_ssize_t>(values.size())));                \
      if (!list.is_valid()) return {};                                                        \
      for (std::size_t i = 0; i < values.size(); ++i) {                                       \
        const handle item = type_caster<palimpsest::T>::from_cpp(values[i], policy, cleanup); \
        if (!item.is_valid()) return {};                                                      \
        PyList_SetItem(list.ptr(), static_cast<Py_ssize_t>(i), item.ptr());                   \
      }                                                                                       \
      return list.release();                                                                  \
    }                                                                                         \
  };

PALIMPSEST_LAZY_BOTH(DType)
PALIMPSEST_LAZY_BOTH(Device)
PALIMPSEST_LAZY_BOTH(Extents)
PALIMPSEST_LAZY_BOTH(Tensor)
PALIMPSEST_LAZY_BOTH(Variable)
PALIMPSEST_LAZY_BOTH(NamedLinop)
PALIMPSEST_LAZY_BOTH(Parameter)
PALIMPSEST_LAZY_BOTH(Dims)
PALIMPSEST_LAZY_BOTH(ND)
PALIMPSEST_LAZY_BOTH(DimMap)
PALIMPSEST_LAZY(Value)
PALIMPSEST_LAZY(Operand)
PALIMPSEST_LAZY(AxesArgument)
PALIMPSEST_LAZY(ShapeArgument)
PALIMPSEST_LAZY(Slice)
PALIMPSEST_LAZY(RandomKey)
PALIMPSEST_LAZY(python::GivenMode)
PALIMPSEST_LAZY(TensorType)
PALIMPSEST_LAZY_LIST(Variable)
PALIMPSEST_LAZY_LIST(Tensor)
PALIMPSEST_LAZY_LIST(NamedLinop)
PALIMPSEST_LAZY_LIST(Parameter)
#undef PALIMPSEST_LAZY
#undef PALIMPSEST_LAZY_BOTH
#undef PALIMPSEST_LAZY_LIST

}  // namespace nanobind::detail

/// Enumerations and structures that few bindings take: `PALIMPSEST_ARGUMENT(FftNorm)`, at global
/// scope.
#define PALIMPSEST_ARGUMENT(T)                                       \
  template <>                                                        \
  struct nanobind::detail::type_caster<palimpsest::T>                \
      : palimpsest::python::LazyCaster<palimpsest::T> {};            \
  template <>                                                        \
  struct nanobind::detail::type_caster<std::optional<palimpsest::T>> \
      : palimpsest::python::LazyCaster<std::optional<palimpsest::T>> {};
