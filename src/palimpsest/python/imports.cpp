// SPDX-License-Identifier: Apache-2.0
// Arrays of other packages as tensors over their memory.
#include <array>
#include <bit>
#include <unordered_map>

#include "palimpsest/memory/copy_stats.hpp"
#include "palimpsest/python/arrays.hpp"
#include "palimpsest/python/exports.hpp"
#include "palimpsest/python/interop/array_struct.hpp"
#include "palimpsest/python/interop/ndarray.hpp"
#include "palimpsest/python/interop/torch_tensors.hpp"
#include "palimpsest/tensor/dlpack.hpp"

namespace palimpsest::python {
namespace {

// Way to the memory of the objects of a class.
enum class Road : std::uint8_t {
  none,
  tensor,
  ndarray,  ///< numpy.ndarray itself, without derived classes
  array_struct,
  dlpack,
  to_numpy,  ///< numpy.asarray() reads it, by the older interfaces
  variable,
  refused,
};
struct ClassFacts {
  Road road = Road::none;
  Kind kind = Kind::none;
  std::string advice = {};  // for a class that is refused
};

bool has(nb::handle type, const char* name) { return nb::hasattr(type, name); }

ClassFacts find_facts(nb::handle type) {
  const std::string name = nb::cast<std::string>(type.attr("__name__"));
  const std::string module = str_of(nb::object(type.attr("__module__")));
  const auto is_from = [&](std::string_view package) {
    const nb::object bases = type.attr("__mro__");
    for (nb::handle base : bases) {
      const std::string of = str_of(nb::object(base.attr("__module__")));
      if (of == package || of.rfind(std::string(package) + ".", 0) == 0) return true;
    }
    return false;
  };
  if (type.is(nb::type<TensorObject>())) return {Road::tensor, Kind::tensor};
  if (type.is(nb::type<VariableObject>()) || type.is(nb::type<SharedObject>()) ||
      type.is(nb::type<ParameterObject>())) {
    return {Road::variable};
  }
  if (PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(type.ptr()),
                       reinterpret_cast<PyTypeObject*>(nb::type<LinopObject>().ptr()))) {
    return {Road::refused, {}, "A @ x, or A.matrix()"};
  }
  if (has(type, "filled") && has(type, "mask")) return {Road::refused, {}, ".filled()"};
  if (has(type, "tocsr")) return {Road::refused, {}, "ps.Sparse"};
  if (has(type, "to_numpy") && has(type, "iloc")) return {Road::refused, {}, ".to_numpy()"};
  if (is_from("xarray") && has(type, "dims")) return {Road::to_numpy, Kind::xarray};
  if (name == "ndarray" && module == "numpy" && knows_ndarray()) {
    return {Road::ndarray, Kind::numpy};
  }
  if (has(type, "__array_struct__")) return {Road::array_struct, Kind::numpy};
  if (is_from("torch")) return {Road::dlpack, Kind::torch};
  if (is_from("cupy")) return {Road::dlpack, Kind::cupy};
  if (is_from("jaxlib") || is_from("jax")) return {Road::dlpack, Kind::jax};
  if (has(type, "__dlpack__")) return {Road::dlpack, Kind::numpy};
  if (has(type, "__array_interface__") || has(type, "__array__"))
    return {Road::to_numpy, Kind::numpy};
  if (name == "memoryview" || name == "bytearray" || module == "array") {
    return {Road::to_numpy, Kind::numpy};
  }
  return {};
}

// Facts found once per class. Each class lives on until the interpreter ends.
using KnownClasses = std::unordered_map<PyObject*, ClassFacts>;
constinit Global<KnownClasses> all_classes;
KnownClasses& known_classes() { return all_classes.get(); }
// The class that was asked for last: the next is mostly the same.
constinit const KnownClasses::value_type* latest = nullptr;

bool leads_to_an_array(Road road) {
  return road == Road::tensor || road == Road::ndarray || road == Road::array_struct ||
         road == Road::dlpack || road == Road::to_numpy;
}

const ClassFacts& facts_of(nb::handle object) {
  const nb::handle type = object.type();
  if (latest && latest->first == type.ptr()) return latest->second;
  wait_at_end();
  KnownClasses& known = known_classes();
  auto found = known.find(type.ptr());
  if (found == known.end()) {
    type.inc_ref();
    found = known.emplace(type.ptr(), find_facts(type)).first;
  }
  latest = &*found;
  return found->second;
}

nb::object numpy() { return nb::module_::import_("numpy"); }

constexpr std::string_view kItemKinds = "biufc";

[[noreturn]] void throw_dtype(const std::string& got) {
  const bool is_of_torch = got.starts_with("torch.");
  const std::string nearest = nearest_dtype(is_of_torch ? got.substr(6) : got);
  throw DTypeError("[array] got elements of " + got +
                   ", expected bool, integers of 8 to 64 bits, float32, float64, complex64 or "
                   "complex128. Try " +
                   (is_of_torch ? ".to(torch." + nearest + ")" : ".astype('" + nearest + "')") +
                   ".");
}

// Gives a reference up, on any thread, unless the interpreter has ended.
std::function<void()> releases(nb::handle owner) {
  owner.inc_ref();
  return [object = owner.ptr()] {
    if (!nb::is_alive()) return;
    const Locked locked;
    Py_DECREF(object);
  };
}

// A view of the storage that the memory was exported from, if there is one that shows it.
std::optional<Tensor> back_again(const void* data, DType dtype, const Extents& shape,
                                 const Strides& strides) {
  Storage storage = exported_storage(data);
  if (!storage.defined()) return std::nullopt;
  const auto item = static_cast<std::ptrdiff_t>(item_size(dtype));
  const std::ptrdiff_t bytes = static_cast<const std::byte*>(data) - storage.data();
  if (bytes % item != 0) return std::nullopt;
  return Tensor(std::move(storage), dtype, shape, strides, bytes / item);
}

// True if an array that is read-only shows memory of another array, or buffer, that is not.
bool is_written_by_others(nb::handle array) {
  nb::object base = nb::getattr(array, "base", nb::none());
  for (; nb::hasattr(base, "flags"); base = nb::getattr(base, "base", nb::none())) {
    if (nb::cast<bool>(nb::bool_(base.attr("flags").attr("writeable")))) return true;
  }
  if (base.is_none()) return false;
  const nb::object buffer = nb::steal(PyMemoryView_FromObject(base.ptr()));
  if (buffer.is_valid()) return !nb::cast<bool>(buffer.attr("readonly"));
  PyErr_Clear();
  return false;
}

// A tensor over the memory that a description of `object` shows, either kind of it; `owner` keeps
// that.
template <class Described>
Tensor shown(const Described& array, DType dtype, const Strides& strides, nb::handle object,
             nb::handle owner) {
  Extents shape(array.shape, array.shape + array.rank);
  if (auto own = back_again(array.data, dtype, shape, strides)) return *std::move(own);
  const bool writable = array.flags & ArrayStruct::kWritable;
  Tensor made =
      Tensor::from_blob(array.data, dtype, std::move(shape), strides, releases(owner), writable);
  if (!writable && is_written_by_others(object)) Storage(made.storage()).expect_writes_of_others();
  return made;
}

// In elements. Not a multiple of one: none.
template <class Described>
std::optional<Strides> strides_of(const Described& array, DType dtype) {
  const auto item = static_cast<std::size_t>(item_size(dtype));
  const int shift = std::countr_zero(item);
  Strides strides;
  for (int k = 0; k < array.rank; ++k) {
    if (array.strides[k] & static_cast<Py_ssize_t>(item - 1)) return std::nullopt;
    strides.push_back(array.strides[k] >> shift);
  }
  return strides;
}

constinit GlobalObject struct_name;

Tensor from_array_struct(nb::handle object, bool may_copy) {
  if (!struct_name.is_set())
    struct_name.set(nb::steal(PyUnicode_InternFromString("__array_struct__")));
  const nb::object capsule = nb::steal(PyObject_GetAttr(object.ptr(), struct_name.get().ptr()));
  if (!capsule.is_valid()) throw nb::python_error();
  const auto* const array =
      static_cast<const ArrayStruct*>(PyCapsule_GetPointer(capsule.ptr(), nullptr));
  if (!array) throw nb::python_error();
  const std::optional<DType> dtype = dtype_of_items(array->kind, array->itemsize);
  if (!dtype) throw_dtype(str_of(nb::object(object.attr("dtype"))));
  const char* reason = nullptr;
  if (!(array->flags & ArrayStruct::kNativeOrder)) reason = "its byte order is foreign";
  if (!(array->flags & ArrayStruct::kAligned)) reason = "its elements are not aligned";
  const std::optional<Strides> strides = strides_of(*array, *dtype);
  if (!strides) reason = "its strides are not multiples of the element";
  if (reason) {
    if (!may_copy) {
      throw ValueError("[array] cannot be used in place: " + std::string(reason) + ".");
    }
    CopyStats::add_import_copy();
    const nb::object native = object.attr("dtype").attr("newbyteorder")("=");
    return from_array_struct(numpy().attr("array")(object, native), false);
  }
  // The capsule owns the memory that it describes, also for the array of a scalar of NumPy.
  return shown(*array, *dtype, *strides, object, capsule);
}

// Reads an aligned array in native order where it lies. NumPy describes any other array.
Tensor from_ndarray(nb::handle object, bool may_copy) {
  const auto& array = *reinterpret_cast<const NdArray*>(object.ptr());
  const std::optional<DType> dtype = element_dtype(array);
  if (!dtype || !(array.flags & ArrayStruct::kAligned)) return from_array_struct(object, may_copy);
  const std::optional<Strides> strides = strides_of(array, *dtype);
  if (!strides) return from_array_struct(object, may_copy);
  return shown(array, *dtype, *strides, object, object);
}

template <class Managed>
Tensor take_capsule(nb::handle capsule, const char* name, const char* used) {
  auto* const managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule.ptr(), name));
  if (!managed) throw nb::python_error();
  Tensor tensor = from_dlpack(managed);
  PyCapsule_SetName(capsule.ptr(), used);
  return tensor;
}

// The producer's stream makes ours wait for the elements; None where no stream is needed.
nb::object stream_for(nb::handle object) {
  if (!nb::hasattr(object, "__dlpack_device__")) return nb::none();
  const auto [kind, index] =
      nb::cast<std::pair<int, int>>(nb::object(object.attr("__dlpack_device__")()));
  if (kind != dlpack::kCuda) return nb::none();
  const auto stream = stream_for_dlpack({DeviceType::cuda, static_cast<std::int16_t>(index)});
  return nb::int_(*stream);
}

Tensor from_capsule(nb::handle object) {
  nb::object capsule;
  const nb::object stream = stream_for(object);
  try {
    capsule =
        object.attr("__dlpack__")("stream"_a = stream, "max_version"_a = nb::make_tuple(1, 0));
  } catch (nb::python_error& error) {
    if (!error.matches(PyExc_TypeError)) throw;
    capsule = object.attr("__dlpack__")("stream"_a = stream);
  }
  if (PyCapsule_IsValid(capsule.ptr(), "dltensor_versioned")) {
    return take_capsule<dlpack::ManagedTensorVersioned>(capsule, "dltensor_versioned",
                                                        "used_dltensor_versioned");
  }
  return take_capsule<dlpack::ManagedTensor>(capsule, "dltensor", "used_dltensor");
}

// The same, with an error that names a dtype that the library lacks.
Tensor from_dlpack_of(nb::handle object) {
  try {
    return from_capsule(object);
  } catch (const NotSupported& error) {
    if (std::string_view(error.what()).find("element type") == std::string_view::npos) throw;
    throw_dtype(nb::hasattr(object, "dtype") ? str_of(nb::object(object.attr("dtype")))
                                             : "another dtype");
  }
}

// True for a tensor that carries a tangent.
bool has_tangent(nb::handle tensor) {
  if (!records_tangents()) return false;
  const nb::object mode = nb::module_::import_("torch.autograd.forward_ad");
  return !nb::object(mode.attr("unpack_dual")(tensor).attr("tangent")).is_none();
}

// torch does not export tensors that require a gradient or are conjugated lazily.
Tensor from_torch(nb::handle object, bool may_copy) {
  nb::object plain = nb::borrow(object);
  if (has_tangent(object)) {
    throw TypeError(
        "[array] got a tensor of torch with a tangent, expected one without here. Try "
        "palimpsest.torch.wrap(), or unpack_dual() first.");
  }
  if (nb::cast<bool>(plain.attr("requires_grad"))) {
    if (records_gradients()) {
      throw TypeError(
          "[array] got a tensor of torch that requires a gradient, expected one "
          "without gradients here. Try detach() first, or palimpsest.torch.wrap().");
    }
    plain = plain.attr("detach")();
  }
  const bool is_pending =
      nb::cast<bool>(plain.attr("is_conj")()) || nb::cast<bool>(plain.attr("is_neg")());
  if (is_pending) {
    if (!may_copy) {
      throw ValueError("[array] cannot be used in place: its conjugation or negation is pending.");
    }
    CopyStats::add_import_copy();
    plain = plain.attr("resolve_conj")().attr("resolve_neg")();
  }
  return from_dlpack_of(plain);
}

// The memory that a tensor of DLPack shows may be ours.
Tensor known_memory(Tensor tensor) {
  if (tensor.numel() == 0) return tensor;
  Storage storage = exported_storage(tensor.raw_data());
  if (!storage.defined()) return tensor;
  const auto item = static_cast<std::ptrdiff_t>(item_size(tensor.dtype()));
  const std::ptrdiff_t bytes = static_cast<const std::byte*>(tensor.raw_data()) - storage.data();
  if (bytes % item != 0) return tensor;
  return Tensor(std::move(storage), tensor.dtype(), tensor.shape(), tensor.strides(), bytes / item);
}

// -- numbers of Python and lists of them -------------------------------------------------------

// The number of axes that an array of NumPy may have.
constexpr std::size_t kDeepest = 64;

enum class Rank : std::uint8_t { boolean, integer, real, complex };

struct Numbers {
  Extents shape;
  std::vector<nb::handle> leaves;
  Rank rank = Rank::boolean;
};

std::optional<Rank> rank_of(nb::handle object) {
  if (PyBool_Check(object.ptr())) return Rank::boolean;
  if (PyLong_CheckExact(object.ptr())) return Rank::integer;
  if (PyFloat_CheckExact(object.ptr())) return Rank::real;
  if (PyComplex_CheckExact(object.ptr())) return Rank::complex;
  return std::nullopt;
}

void collect(nb::handle object, std::size_t depth, Numbers& numbers) {
  if (const auto rank = rank_of(object)) {
    if (depth != numbers.shape.size()) {
      throw ShapeError("[list] its parts differ in length: got a number, expected a list of " +
                       std::to_string(numbers.shape[depth]) + ".");
    }
    numbers.rank = std::max(numbers.rank, *rank);
    numbers.leaves.push_back(object);
    return;
  }
  if (!is_list(object)) {
    throw TypeError("[array] got " + class_name(object) +
                    ", expected an array, a number or a list of numbers.");
  }
  if (depth > kDeepest) throw ShapeError("[list] is nested too deeply.");
  const auto n = static_cast<index_t>(nb::len(object));
  const bool is_first = numbers.leaves.empty() && depth == numbers.shape.size();
  if (is_first) numbers.shape.push_back(n);
  if (depth >= numbers.shape.size() || numbers.shape[depth] != n) {
    const bool is_deeper = depth >= numbers.shape.size();
    throw ShapeError(
        "[list] its parts differ in length: got a list of " + std::to_string(n) + ", expected " +
        (is_deeper ? "a number" : "one of " + std::to_string(numbers.shape[depth])) + ".");
  }
  for (Py_ssize_t i = 0; i < n; ++i) {
    const nb::object item = nb::steal(PySequence_GetItem(object.ptr(), i));
    if (!item.is_valid()) throw nb::python_error();
    collect(item, depth + 1, numbers);
  }
}

template <class T, class Convert>
Tensor filled(const Numbers& numbers, Convert convert) {
  Tensor tensor = Tensor::empty(numbers.shape, dtype_of<T>);
  T* out = tensor.mutable_data<T>();
  for (nb::handle leaf : numbers.leaves) *out++ = convert(leaf);
  return tensor;
}

Tensor integers_of(const Numbers& numbers) {
  bool is_unsigned = false;
  for (nb::handle leaf : numbers.leaves) {
    const long long value = PyLong_AsLongLong(leaf.ptr());
    if (value != -1 || !PyErr_Occurred()) continue;
    PyErr_Clear();
    is_unsigned = true;
  }
  if (!is_unsigned) {
    return filled<std::int64_t>(numbers, [](nb::handle h) { return PyLong_AsLongLong(h.ptr()); });
  }
  return filled<std::uint64_t>(numbers, [](nb::handle h) {
    const unsigned long long value = PyLong_AsUnsignedLongLong(h.ptr());
    if (PyErr_Occurred()) {
      PyErr_Clear();
      throw OverflowError("[array] got " + str_of(h) + ", expected integers of 64 bits.");
    }
    return value;
  });
}

Tensor tensor_of(const Numbers& numbers) {
  switch (numbers.leaves.empty() ? Rank::real : numbers.rank) {
    case Rank::boolean:
      return filled<bool>(numbers, [](nb::handle h) { return h.ptr() == Py_True; });
    case Rank::integer:
      return integers_of(numbers);
    case Rank::real:
      return filled<double>(numbers, [](nb::handle h) {
        const double value = PyFloat_AsDouble(h.ptr());
        if (value == -1 && PyErr_Occurred()) throw nb::python_error();
        return value;
      });
    default:
      return filled<std::complex<double>>(
          numbers, [](nb::handle h) { return nb::cast<std::complex<double>>(h); });
  }
}

// True if a list holds arrays: NumPy joins them.
bool holds_arrays(nb::handle object, std::size_t depth = 0) {
  if (depth > kDeepest) return false;
  if (!is_list(object)) return is_array(object);
  const Py_ssize_t n = PySequence_Size(object.ptr());
  for (Py_ssize_t i = 0; i < n; ++i) {
    const nb::object item = nb::steal(PySequence_GetItem(object.ptr(), i));
    if (!item.is_valid()) throw nb::python_error();
    if (rank_of(item)) continue;
    return holds_arrays(item, depth + 1);
  }
  return false;
}

}  // namespace

std::optional<DType> dtype_of_items(char kind, int itemsize) {
  const int log2 = std::countr_zero(static_cast<unsigned>(itemsize));
  if (itemsize != 1 << log2 || log2 > 4) return std::nullopt;
  static constexpr auto none = static_cast<DType>(-1);
  constexpr auto table = [] {  // by kind and logarithm of the size
    std::array<std::array<DType, 5>, kItemKinds.size()> all{};
    for (auto& row : all) row.fill(none);
    const auto put = [&](char of_kind, DType dtype) {
      const int size = std::countr_zero(static_cast<unsigned>(item_size(dtype)));
      all[kItemKinds.find(of_kind)][static_cast<std::size_t>(size)] = dtype;
    };
    put('b', DType::bool_);
    for (const DType d : {DType::int8, DType::int16, DType::int32, DType::int64}) put('i', d);
    for (const DType d : {DType::uint8, DType::uint16, DType::uint32, DType::uint64}) put('u', d);
    for (const DType d : {DType::float32, DType::float64}) put('f', d);
    for (const DType d : {DType::complex64, DType::complex128}) put('c', d);
    return all;
  }();
  const std::size_t row = kItemKinds.find(kind);
  if (row == kItemKinds.npos || table[row][static_cast<std::size_t>(log2)] == none) return {};
  return table[row][static_cast<std::size_t>(log2)];
}

char item_kind(DType dtype) {
  if (is_bool(dtype)) return 'b';
  if (is_integer(dtype)) return is_unsigned(dtype) ? 'u' : 'i';
  return is_complex(dtype) ? 'c' : 'f';
}

bool is_array(nb::handle object) { return leads_to_an_array(facts_of(object).road); }

Kind kind_of(nb::handle object) { return facts_of(object).kind; }

Kind merged(Kind a, Kind b) {
  if (a == b || b == Kind::none) return a;
  if (a == Kind::none || a == Kind::numpy) return b;
  if (b == Kind::numpy) return a;
  if (a == Kind::tensor) return b;
  if (b == Kind::tensor) return a;
  constexpr const char* names[] = {"", "NumPy", "Tensor", "torch", "CuPy", "JAX", "xarray"};
  throw TypeError(std::string("[call] mixed kinds: got arrays of ") + names[static_cast<int>(a)] +
                  " and of " + names[static_cast<int>(b)] + ", expected one kind besides NumPy.");
}

Kind kind_named(nb::handle name) {
  if (name.is_none()) return Kind::none;
  if (!PyUnicode_Check(name.ptr())) {
    throw TypeError("[returns] got " + class_name(name) + ", expected the name of a kind.");
  }
  const std::string text = str_of(name);
  if (text == "numpy") return Kind::numpy;
  if (text == "tensor") return Kind::tensor;
  if (text == "torch") return Kind::torch;
  if (text == "jax") return Kind::jax;
  if (text == "cupy") return Kind::cupy;
  throw ValueError("[returns] got '" + text +
                   "', expected one of 'numpy', 'tensor', 'torch', 'jax', 'cupy'.");
}

Kind kind_returned(Kind of_arguments) {
  const nb::handle always = chosen("returns");
  return always.is_none() ? of_arguments : kind_named(always);
}

const Tensor* tensor_in(nb::handle object) {
  if (facts_of(object).road != Road::tensor) return nullptr;
  if (!nb::inst_ready(object)) throw TypeError("[array] got a Tensor without a value.");
  return &nb::inst_ptr<TensorObject>(object)->value;
}

namespace {

Tensor import_by(const ClassFacts& facts, nb::handle object, bool may_copy) {
  switch (facts.road) {
    case Road::tensor:
      return *tensor_in(object);
    case Road::ndarray:
      return from_ndarray(object, may_copy);
    case Road::array_struct:
      return from_array_struct(object, may_copy);
    case Road::dlpack:
      return known_memory(facts.kind == Kind::torch ? from_torch(object, may_copy)
                                                    : from_dlpack_of(object));
    case Road::to_numpy:
      return from_array_struct(numpy().attr("asarray")(object), may_copy);
    default:
      throw TypeError("[array] got " + class_name(object) + ", expected an array.");
  }
}

}  // namespace

Tensor import_array(nb::handle object, bool may_copy) {
  return import_by(facts_of(object), object, may_copy);
}

Value argument_of(nb::handle object, Use use, Kind& kind) {
  const ClassFacts& facts = facts_of(object);
  if (!leads_to_an_array(facts.road)) {
    const bool is_parameter = nb::isinstance<ParameterObject>(object);
    return is_parameter ? given_value(object) : value_of(object);
  }
  kind = merged(kind, facts.kind);
  return import_by(facts, object, use == Use::read);
}

Tensor writable_array(nb::handle object, const char* who) {
  if (!is_array(object)) {
    throw TypeError("[" + std::string(who) + "] got " + class_name(object) +
                    ", expected an array to write into.");
  }
  Tensor tensor = import_array(object, false);
  if (tensor.storage().state() == StorageState::foreign_read_only) {
    throw ValueError("[" + std::string(who) + "] cannot be used in place: it is read-only.");
  }
  return tensor;
}

Value value_of(nb::handle object, bool may_copy) {
  const ClassFacts& facts = facts_of(object);
  switch (facts.road) {
    case Road::variable:
      return nb::cast<VariableObject&>(object).value;
    case Road::refused:
      throw TypeError("[array] got " + class_name(object) + ", expected an array. Try " +
                      facts.advice + ".");
    case Road::none:
      break;
    default:
      return import_by(facts, object, may_copy);
  }
  if (is_list(object) && holds_arrays(object)) {
    return from_array_struct(numpy().attr("asarray")(object), false);
  }
  Numbers numbers;
  collect(object, 0, numbers);
  return Value::weak(tensor_of(numbers));
}

void forget_classes() {
  KnownClasses& known = known_classes();
  latest = nullptr;
  for (const auto& [type, facts] : std::exchange(known, {})) Py_DECREF(type);
}

}  // namespace palimpsest::python
