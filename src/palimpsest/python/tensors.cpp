// SPDX-License-Identifier: Apache-2.0
// class Tensor: a view of memory with copy-on-write.
#include <nanobind/stl/shared_ptr.h>

#include "palimpsest/python/arrays.hpp"
#include "palimpsest/python/exports.hpp"
#include "palimpsest/python/families.hpp"
#include "palimpsest/python/interop/array_struct.hpp"
#include "palimpsest/tensor/dlpack.hpp"

namespace palimpsest::python {
namespace {

using Self = TensorObject&;
using ConstSelf = const TensorObject&;

// -- indices ---------------------------------------------------------------------------------

Index index_entry(nb::handle entry) {
  if (entry.is_none()) return newaxis;
  if (entry.ptr() == Py_Ellipsis) return ellipsis;
  if (PySlice_Check(entry.ptr())) return from_python<Slice>(entry);
  if (is_integer(entry) && !PyBool_Check(entry.ptr())) return integer_of(entry, "an index");
  throw TypeError(
      "[Tensor] got an index of " + class_name(entry) +
      ", expected integers, slices, None and ... . Try numpy.asarray(t)[..], or index a "
      "Variable.");
}

std::vector<Index> index_of(nb::handle key) {
  if (!PyTuple_Check(key.ptr())) return {index_entry(key)};
  std::vector<Index> index;
  for (nb::handle entry : key) index.push_back(index_entry(entry));
  return index;
}

nb::object element(const Tensor& t) {
  if (t.numel() != 1) {
    throw ShapeError("[item] got " + std::to_string(t.numel()) + " elements, expected one.");
  }
  return visit_dtype(t.dtype(), [&](auto tag) -> nb::object {
    return nb::cast(t.item<typename decltype(tag)::type>());
  });
}

nb::object nested_list(const Tensor& t) {
  if (t.rank() == 0) return element(t);
  nb::list list;
  for (index_t i = 0; i < t.shape(0); ++i) list.append(nested_list(t.select(0, i)));
  return list;
}

// An array, or numbers in the dtype of the tensor. What is on the host goes to an accelerator.
Tensor source_for(const Tensor& t, nb::handle value) {
  Tensor source;
  if (is_array(value)) {
    source = import_array(value);
  } else {
    const Value given = given_value(value);
    source = given.is_weak() ? converted_to(given, t.dtype(), "Tensor") : given.tensor();
  }
  return !t.device().is_host() && source.device().is_host() ? source.to(t.device()) : source;
}

// A tensor made of another one. Over the same memory, it tells the same container of writes.
Shown<"Tensor"> made_of(ConstSelf self, Tensor made) {
  if (self.lender.expired() || made.storage().id() != self.value.storage().id()) {
    return to_python(std::move(made));
  }
  return made_in_place<TensorObject>(std::move(made), self.lender);
}

Self fill(Self self, nb::handle value) {
  self.value.copy_from(source_for(self.value, value));
  self.report_write();
  return self;
}

void set_item(Self self, nb::handle key, nb::handle value) {
  const Tensor source = source_for(self.value, value);
  // Views that are made of a handle write through it: it is to stay the only one on a dense copy.
  if (self.value.numel() > 0) self.value.raw_mutable_data();
  Tensor part = self.value.index_with(index_of(key));
  part.copy_from(source);
  self.report_write();
}

// -- numbers and memory ----------------------------------------------------------------------

nb::tuple byte_strides(const Tensor& t) {
  Extents bytes;
  for (index_t stride : t.strides()) {
    bytes.push_back(stride * static_cast<index_t>(item_size(t.dtype())));
  }
  return nb::borrow<nb::tuple>(to_python(bytes));
}

Shown<"NDArray[Any]"> as_numpy(Self self, bool writable) {
  return writable ? export_in_place(Tensor(self.value), Kind::numpy) : export_read_only(self.value);
}

nb::object dlpack_capsule(dlpack::ManagedTensorVersioned* managed) {
  constexpr const char* name = "dltensor_versioned";
  return nb::steal(PyCapsule_New(managed, name, [](PyObject* capsule) {
    if (!PyCapsule_IsValid(capsule, "dltensor_versioned")) return;  // another library took it
    auto* const m = static_cast<dlpack::ManagedTensorVersioned*>(
        PyCapsule_GetPointer(capsule, "dltensor_versioned"));
    m->deleter(m);
  }));
}

nb::object old_dlpack_capsule(dlpack::ManagedTensor* managed) {
  return nb::steal(PyCapsule_New(managed, "dltensor", [](PyObject* capsule) {
    if (!PyCapsule_IsValid(capsule, "dltensor")) return;
    auto* const m = static_cast<dlpack::ManagedTensor*>(PyCapsule_GetPointer(capsule, "dltensor"));
    m->deleter(m);
  }));
}

[[noreturn]] void throw_buffer_error(const char* text) {
  PyErr_SetString(PyExc_BufferError, text);
  throw nb::python_error();
}

std::pair<index_t, index_t> dlpack_device(Device device) {
  if (device.is_host()) return {dlpack::kCpu, 0};
  return {device.type == DeviceType::cuda ? dlpack::kCuda : dlpack::kOpenCl, device.index};
}

nb::object to_capsule(Self self, nb::handle stream, nb::handle max_version, nb::handle dl_device,
                      nb::handle copy) {
  const DlpackStream on =
      stream.is_none() ? DlpackStream() : DlpackStream(nb::cast<std::int64_t>(stream));
  const auto [kind, index] = dlpack_device(self.value.device());
  if (!dl_device.is_none() && from_python<Extents>(dl_device) != Extents{kind, index}) {
    throw_buffer_error(
        "[__dlpack__] dl_device: got another one than the tensor's. Try .to(device).");
  }
  Tensor t = copy.ptr() == Py_True ? self.value.clone() : self.value;
  const bool is_versioned = !max_version.is_none() && from_python<Extents>(max_version)[0] >= 1;
  if (is_versioned) return dlpack_capsule(to_dlpack(t, DlpackAccess::automatic, on));
  if (t.is_shared()) {
    throw_buffer_error(
        "[__dlpack__] the data are shared with a lazy clone, and DLPack before 1.0 cannot say that "
        "they are not to be written. Try clone() first.");
  }
  return old_dlpack_capsule(to_unversioned_dlpack(t, on));
}

Shown<"NDArray[Any]"> array_protocol(Self self, nb::handle dtype, nb::handle copy) {
  const bool is_away = !self.value.device().is_host();
  if (is_away && copy.ptr() == Py_False) {
    throw ValueError("[__array__] cannot be used in place: the host cannot reach " +
                     self.value.device().str() + ".");
  }
  if (!dtype.is_none() && from_python<DType>(dtype) != self.value.dtype()) {
    if (copy.ptr() == Py_False) throw ValueError("[__array__] cannot convert without a copy.");
    return export_array(self.value.to(from_python<DType>(dtype)), Kind::numpy);
  }
  if (is_away || copy.ptr() == Py_True) return export_array(self.value.clone(), Kind::numpy);
  return export_in_place(Tensor(self.value), Kind::numpy);
}

// Memory that is not written any more, as the caller promises.
Tensor as_frozen(Tensor t) {
  const StorageState state = t.storage().state();
  const bool is_foreign =
      state == StorageState::foreign_writable || state == StorageState::foreign_read_only;
  if (!is_foreign || !t.storage().is_cloned_eagerly()) return t;
  void* const data = const_cast<void*>(t.raw_data());
  const DType dtype = t.dtype();
  const Extents shape = t.shape();
  const Strides strides = t.strides();
  return Tensor::from_blob(
      data, dtype, shape, strides, [kept = std::move(t)] {}, false);
}

Tensor as_tensor(nb::handle object, std::optional<DType> dtype, nb::handle copy,
                 std::optional<Device> device, bool frozen) {
  const bool must_copy = copy.ptr() == Py_True;
  const bool may_copy = copy.ptr() != Py_False;
  const Value value =
      is_array(object) ? Value(import_array(object, may_copy)) : given_value(object);
  Tensor t = value.tensor();
  const bool converts = dtype && *dtype != t.dtype();
  if (!may_copy && (converts || !is_array(object))) {
    throw ValueError("[asarray] cannot be used in place: it would be converted.");
  }
  if (converts) t = converted_to(value, *dtype, "asarray");
  if (device) t = t.to(*device);
  if (must_copy) return t.clone();
  return frozen ? as_frozen(std::move(t)) : t;
}

Tensor full_tensor(const Extents& shape, nb::handle value, std::optional<DType> dtype,
                   Device device) {
  const Tensor number = from_python<Tensor>(value);
  Tensor t = Tensor::empty(shape, dtype.value_or(number.dtype()), device);
  t.copy_from(source_for(t, value));
  return t;
}

// -- operators: none, but those of a Variable or an operator on the other side -------------------

nb::object refuse_arithmetic(nb::handle, nb::args others) {
  for (nb::handle other : others) {
    if (nb::isinstance<VariableObject>(other) || nb::isinstance<LinopObject>(other)) {
      return nb::borrow(Py_NotImplemented);
    }
  }
  throw TypeError("[Tensor] has no arithmetic: use np.asarray(t), or a Variable.");
}

// Elementwise functions of NumPy; its reductions and all other functions convert the tensor.
nb::object universal(nb::handle, nb::handle ufunc, nb::handle method, nb::args inputs,
                     nb::kwargs options) {
  if (str_of(method) == "__call__" || options.contains("out")) {
    return refuse_arithmetic(ufunc, inputs);
  }
  const nb::object as_array = nb::module_::import_("numpy").attr("asarray");
  nb::list arrays;
  for (nb::handle input : inputs) {
    arrays.append(tensor_in(input) ? as_array(input) : nb::borrow(input));
  }
  return ufunc.attr(method)(*nb::tuple(arrays), **options);
}

void bind_refusals(nb::class_<TensorObject>& c) {
  for (const char* name :
       {"add",      "radd",      "sub",    "rsub",    "mul",    "rmul",    "truediv", "rtruediv",
        "floordiv", "rfloordiv", "mod",    "rmod",    "divmod", "rdivmod", "pow",     "rpow",
        "matmul",   "rmatmul",   "and",    "rand",    "or",     "ror",     "xor",     "rxor",
        "lshift",   "rlshift",   "rshift", "rrshift", "lt",     "le",      "gt",      "ge",
        "neg",      "pos",       "abs",    "invert"}) {
    c.def(("__" + std::string(name) + "__").c_str(), refuse_arithmetic);
  }
  c.def(
       "__eq__", [](nb::handle self, nb::handle other) { return self.is(other); },
       nb::arg("other").none(), "The same object? Elements are compared by equal().")
      .def("__hash__", [](nb::handle self) { return std::hash<const void*>{}(self.ptr()); })
      .def("__array_ufunc__", universal);
}

void bind_facts(nb::class_<TensorObject>& c) {
  c.def_prop_ro("shape", [](ConstSelf self) { return self.value.shape(); })
      .def_prop_ro("dtype", [](ConstSelf self) { return self.value.dtype(); })
      .def_prop_ro("ndim", [](ConstSelf self) { return self.value.rank(); })
      .def_prop_ro("size", [](ConstSelf self) { return self.value.numel(); })
      .def_prop_ro("itemsize", [](ConstSelf self) { return item_size(self.value.dtype()); })
      .def_prop_ro("nbytes", [](ConstSelf self) { return self.value.nbytes(); })
      .def_prop_ro(
          "strides", [](ConstSelf self) { return byte_strides(self.value); },
          "Distances of neighbours along each axis, in bytes.")
      .def_prop_ro("device", [](ConstSelf self) { return self.value.device(); })
      .def("is_contiguous", [](ConstSelf self) { return self.value.is_contiguous(); })
      .def(
          "data_ptr",
          [](ConstSelf self) { return reinterpret_cast<std::uintptr_t>(self.value.raw_data()); },
          "Address of the first element.")
      .def("__len__",
           [](ConstSelf self) {
             if (self.value.rank() == 0) throw TypeError("[len] got a tensor without axes.");
             return self.value.shape(0);
           })
      .def("__bool__",
           [](ConstSelf self) { return nb::cast<bool>(nb::bool_(element(self.value))); })
      .def("__int__", [](ConstSelf self) { return nb::int_(element(self.value)); })
      .def("__float__", [](ConstSelf self) { return nb::float_(element(self.value)); })
      .def("__complex__",
           [](ConstSelf self) { return nb::cast<std::complex<double>>(element(self.value)); })
      .def(
          "item", [](ConstSelf self) { return element(self.value); },
          "The only element as a number of Python.")
      .def("tolist", [](ConstSelf self) { return nested_list(self.value); })
      .def("__repr__", [](ConstSelf self) { return to_string(self.value); });
}

void bind_views(nb::class_<TensorObject>& c) {
  c.def(
       "__getitem__",
       [](Self self, nb::handle key) {
         return made_of(self, self.value.index_with(index_of(key)));
       },
       nb::arg("key").none())
      .def("__setitem__", set_item, nb::arg("key").none(), "value"_a.none())
      .def("__iter__",
           [](ConstSelf self) {
             nb::list parts;
             if (self.value.rank() == 0) throw TypeError("[iter] got a tensor without axes.");
             for (index_t i = 0; i < self.value.shape(0); ++i) {
               parts.append(made_of(self, self.value.select(0, i)));
             }
             return nb::iter(parts);
           })
      .def_prop_ro("T",
                   [](Self self) {
                     Axes axes;
                     for (auto i = static_cast<index_t>(self.value.rank()); i > 0;)
                       axes.push_back(--i);
                     return made_of(self, self.value.permute(axes));
                   })
      .def(
          "view", [](Self self, Extents shape) { return made_of(self, self.value.view(shape)); },
          "shape"_a, "The same elements in another shape, without a copy.")
      .def(
          "permute",
          [](Self self, Extents axes) { return made_of(self, self.value.permute(axes)); }, "axes"_a)
      .def(
          "transpose",
          [](Self self, index_t a, index_t b) { return made_of(self, self.value.transpose(a, b)); },
          "a"_a = -2, "b"_a = -1)
      .def(
          "expand",
          [](Self self, Extents shape) { return made_of(self, self.value.expand(shape)); },
          "shape"_a)
      .def(
          "squeeze",
          [](Self self, index_t axis) { return made_of(self, self.value.squeeze(axis)); }, "axis"_a)
      .def(
          "unsqueeze",
          [](Self self, index_t axis) { return made_of(self, self.value.unsqueeze(axis)); },
          "axis"_a)
      .def(
          "flip", [](Self self, Extents axes) { return made_of(self, self.value.flip(axes)); },
          "axes"_a)
      .def(
          "diagonal",
          [](Self self, index_t offset, index_t a, index_t b) {
            return made_of(self, self.value.diagonal(offset, a, b));
          },
          "offset"_a = 0, "a"_a = -2, "b"_a = -1)
      .def(
          "unfold",
          [](Self self, index_t axis, index_t size, index_t step) {
            return made_of(self, self.value.unfold(axis, size, step));
          },
          "axis"_a, "size"_a, "step"_a)
      .def("view_as_real", [](Self self) { return made_of(self, self.value.view_as_real()); })
      .def("view_as_complex", [](Self self) { return made_of(self, self.value.view_as_complex()); })
      .def(
          "bitcast",
          [](Self self, DType dtype) { return made_of(self, self.value.bitcast(dtype)); },
          "dtype"_a);
}

void bind_copies(nb::class_<TensorObject>& c) {
  c.def(
       "lazy_clone", [](Self self) { return self.value.lazy_clone(); },
       "An independent tensor that shares the data until either side is written.")
      .def("clone", [](Self self) { return self.value.clone(); })
      .def(
          "reshape", [](Self self, Extents shape) { return self.value.reshape(shape); }, "shape"_a)
      .def("contiguous", [](Self self) { return self.value.contiguous(); })
      .def(
          "astype", [](Self self, DType dtype) { return made_of(self, self.value.to(dtype)); },
          "dtype"_a)
      .def(
          "to",
          [](Self self, nb::handle where) {
            return made_of(self, is_device(where) ? self.value.to(from_python<Device>(where))
                                                  : self.value.to(from_python<DType>(where)));
          },
          "device_or_dtype"_a)
      .def("__copy__", [](Self self) { return made_of(self, self.value); })
      .def("fill_", fill, "value"_a.none(), nb::rv_policy::reference)
      .def(
          "zero_",
          [](Self self) -> Self {
            self.value.fill(false);
            self.report_write();
            return self;
          },
          nb::rv_policy::reference)
      .def("copy_", fill, "source"_a.none(), nb::rv_policy::reference);
}

void bind_sharing(nb::class_<TensorObject>& c) {
  c.def(
       "is_alias_of",
       [](ConstSelf self, ConstSelf other) { return may_share_memory(self.value, other.value); },
       "other"_a)
      .def(
          "may_share_memory",
          [](ConstSelf self, ConstSelf other) { return may_share_memory(self.value, other.value); },
          "other"_a)
      .def(
          "overlaps",
          [](ConstSelf self, ConstSelf other) { return overlaps(self.value, other.value); },
          "other"_a)
      .def(
          "is_shared", [](ConstSelf self) { return self.value.is_shared(); },
          "True while a lazy clone shares the data.")
      .def_prop_ro("storage_id", [](ConstSelf self) { return self.value.storage().id(); })
      .def_prop_ro("storage", [](ConstSelf self) { return self.value.storage(); });
  c.def("numpy", as_numpy, nb::kw_only(), "writable"_a = true,
        "An array over this memory. Read-only it never copies; writable, data that are shared with "
        "a\n"
        "lazy clone are copied first.")
      .def("__array__", array_protocol, "dtype"_a.none() = nb::none(), "copy"_a.none() = nb::none())
      .def("__dlpack__", to_capsule, nb::kw_only(), "stream"_a.none() = nb::none(),
           "max_version"_a.none() = nb::none(), "dl_device"_a.none() = nb::none(),
           "copy"_a.none() = nb::none())
      .def("__dlpack_device__", [](ConstSelf self) {
        const auto [kind, index] = dlpack_device(self.value.device());
        return nb::make_tuple(kind, index);
      });
}

}  // namespace

void bind_tensors(nb::module_& m) {
  nb::class_<ExportedMemory>(m, "_ExportedMemory")
      .def_prop_ro("__array_struct__", [](nb::handle self) {
        return nb::cast<ExportedMemory&>(self).array_struct(self);
      });
  nb::class_<Storage>(m, "Storage", nb::is_weak_referenceable(),
                      "The memory that tensors are views of.")
      .def_prop_ro("references", [](const Storage& s) { return s.references(); })
      .def_prop_ro("nbytes", [](const Storage& s) { return s.nbytes(); })
      .def_prop_ro("state", [](const Storage& s) { return std::string(name_of(s.state())); });
  nb::class_<TensorObject> c(m, "Tensor", nb::is_weak_referenceable(),
                             "A view of memory with copy-on-write. It has no arithmetic: use\n"
                             "numpy.asarray(t), or a Variable.");
  bind_facts(c);
  bind_views(c);
  bind_copies(c);
  bind_sharing(c);
  bind_refusals(c);
  at_end(forget_classes);
  m.def(
      "asarray",
      [](nb::handle x, std::optional<DType> dtype, nb::handle copy, std::optional<Device> device,
         bool frozen) { return as_tensor(x, dtype, copy, device, frozen); },
      "x"_a.none(), "dtype"_a.none() = nb::none(), nb::kw_only(), "copy"_a.none() = nb::none(),
      "device"_a.none() = nb::none(), "frozen"_a = false,
      "A tensor over the memory of x. `frozen` promises that the memory is not written any more, "
      "so\n"
      "that parameters and shared variables need no copy of it.\n\n"
      "Examples\n--------\n>>> a = np.ones(3)\n"
      ">>> ps.asarray(a).data_ptr() == a.ctypes.data\nTrue");
  m.def(
      "from_dlpack", [](nb::handle x) { return import_array(x); }, "x"_a);
  m.def(
      "empty", [](Extents s, DType d, Device v) { return Tensor::empty(s, d, v); }, "shape"_a,
      "dtype"_a = DTypeObject{DType::float64}, "device"_a = "cpu",
      "A new array whose elements have no particular value.");
  m.def(
      "zeros", [](Extents s, DType d, Device v) { return Tensor::zeros(s, d, v); }, "shape"_a,
      "dtype"_a = DTypeObject{DType::float64}, "device"_a = "cpu", "A new array of zeros.");
  m.def(
      "ones", [](Extents s, DType d, Device v) { return Tensor::ones(s, d, v); }, "shape"_a,
      "dtype"_a = DTypeObject{DType::float64}, "device"_a = "cpu", "A new array of ones.");
  m.def("full", full_tensor, "shape"_a, "value"_a.none(), "dtype"_a.none() = nb::none(),
        "device"_a = "cpu", "A new array of one value.");
  m.def(
      "arange", [](index_t n, DType d, Device v) { return Tensor::arange(n, d, v); }, "n"_a,
      "dtype"_a = DTypeObject{DType::int64}, "device"_a = "cpu", "The numbers 0, 1, .., n - 1.");
  m.def(
      "linspace",
      [](double first, double last, index_t n, DType d, Device v) {
        return Tensor::linspace(first, last, n, d, v);
      },
      "first"_a, "last"_a, "n"_a, "dtype"_a = DTypeObject{DType::float64}, "device"_a = "cpu",
      "n numbers from first to last, evenly spaced.");
  m.def(
      "eye", [](index_t n, DType d, Device v) { return Tensor::eye(n, d, v); }, "n"_a,
      "dtype"_a = DTypeObject{DType::float64}, "device"_a = "cpu",
      "The identity matrix of n rows.");
  m.def(
      "random_normal",
      [](Extents s, DType d, RandomKey key, Device v) {
        return Tensor::random_normal(s, d, key, v);
      },
      "shape"_a, "dtype"_a = DTypeObject{DType::float64}, nb::kw_only(), "key"_a = 0,
      "device"_a = "cpu");
  m.def(
      "random_uniform",
      [](Extents s, DType d, RandomKey key, Device v) {
        return Tensor::random_uniform(s, d, key, v);
      },
      "shape"_a, "dtype"_a = DTypeObject{DType::float64}, nb::kw_only(), "key"_a = 0,
      "device"_a = "cpu");
  m.def(
      "equal", [](Tensor a, Tensor b) { return equal(a, b); }, "a"_a, "b"_a,
      "Same shape, dtype and bits.");
  m.def(
      "allclose",
      [](Tensor a, Tensor b, double rtol, double atol) { return allclose(a, b, rtol, atol); },
      "a"_a, "b"_a, "rtol"_a = 1e-5, "atol"_a = 1e-8);
}

}  // namespace palimpsest::python
