// SPDX-License-Identifier: Apache-2.0
// Pickles of tensors. Those of one Storage share one afterwards: the Storage is a Python object of
// its own, which a pickler writes once.
#include <cstring>

#include "palimpsest/python/arrays.hpp"
#include "palimpsest/python/families.hpp"

namespace palimpsest::python {
namespace {

// From the id of a Storage to its object, as long as that lives.
constinit GlobalObject storage_objects;

nb::object object_of(const Storage& storage) {
  const nb::object key = nb::cast(storage.id());
  nb::object found = storage_objects.get().attr("get")(key);
  if (!found.is_none()) return found;
  found = nb::cast(storage);
  storage_objects.get().attr("__setitem__")(key, found);
  return found;
}

Tensor bytes_of(const Storage& storage) {
  return Tensor(storage, DType::uint8, {static_cast<index_t>(storage.nbytes())}, {1});
}

nb::object reduced_storage(const Storage& storage, int protocol) {
  const nb::object rebuild = nb::module_::import_("palimpsest._pickles").attr("storage_of_bytes");
  const nb::object bytes = export_read_only(bytes_of(storage));
  if (protocol < 5) return nb::make_tuple(rebuild, nb::make_tuple(bytes.attr("tobytes")()));
  return nb::make_tuple(rebuild,
                        nb::make_tuple(nb::module_::import_("pickle").attr("PickleBuffer")(bytes)));
}

Storage storage_of_bytes(nb::handle bytes) {
  const nb::object array =
      nb::module_::import_("numpy").attr("frombuffer")(bytes, "dtype"_a = "uint8");
  const Tensor given = import_array(array);
  Storage storage = Storage::allocate(static_cast<std::size_t>(given.nbytes()));
  if (given.numel() > 0) std::memcpy(storage.mutable_data(), given.raw_data(), storage.nbytes());
  return storage;
}

// True if only this tensor views the Storage, and it does not need all of it.
bool is_lonely_part(const Tensor& t) {
  return t.storage().use_count() == 1 &&
         static_cast<std::size_t>(t.nbytes()) < t.storage().nbytes();
}

nb::object reduced_tensor(const TensorObject& self) {
  const Tensor t = is_lonely_part(self.value) ? self.value.clone() : self.value;
  if (t.device() != Device()) {
    throw NotSupported("[pickle] got a tensor on " + t.device().str() +
                       ", expected one on cpu. Try .to('cpu').");
  }
  const nb::object rebuild = nb::module_::import_("palimpsest._pickles").attr("tensor_of_storage");
  return nb::make_tuple(rebuild,
                        nb::make_tuple(object_of(t.storage()), std::string(name_of(t.dtype())),
                                       to_python(t.shape()), to_python(t.strides()), t.offset()));
}

}  // namespace

void bind_pickles(nb::module_& m) {
  storage_objects.set(nb::module_::import_("weakref").attr("WeakValueDictionary")());
  at_end([] { storage_objects.clear(); });
  m.def("_storage_of_bytes", storage_of_bytes);
  m.def("_tensor_of_storage",
        [](const Storage& storage, const std::string& dtype, Extents shape, Extents strides,
           index_t offset) { return Tensor(storage, parse_dtype(dtype), shape, strides, offset); });
  const nb::object tensor = m.attr("Tensor");
  nb::setattr(tensor, "__reduce__",
              nb::cpp_function(reduced_tensor, nb::is_method(), nb::scope(tensor)));
  const nb::object storage = m.attr("Storage");
  nb::setattr(storage, "__reduce_ex__",
              nb::cpp_function(reduced_storage, nb::is_method(), nb::scope(storage)));
}

}  // namespace palimpsest::python
