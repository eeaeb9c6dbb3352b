// SPDX-License-Identifier: Apache-2.0
// Pickles and deep copies of tensors and containers. Tensors of one Storage share one afterwards:
// the Storage is a Python object of its own, which a pickler writes once and copy.deepcopy() copies
// once. The same holds for containers.
#include <cstring>

#include "palimpsest/python/arrays.hpp"
#include "palimpsest/python/families.hpp"
#include "palimpsest/python/values.hpp"

namespace palimpsest::python {
namespace {

struct ContainerObject {
  std::shared_ptr<Container> container;
};

// From the id of a Storage, or the address of a container, to its object, as long as that lives.
constinit GlobalObject storage_objects, container_objects;

template <class T>
nb::object known_object(nb::handle table, std::uint64_t id, const T& of) {
  const nb::object key = nb::cast(id);
  nb::object found = table.attr("get")(key);
  if (!found.is_none()) return found;
  found = nb::cast(of);
  table.attr("__setitem__")(key, found);
  return found;
}

nb::object object_of(const Storage& storage) {
  return known_object(storage_objects.get(), storage.id(), storage);
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

// A Storage without other views is cloned with no more bytes than the tensor has.
Tensor copied_tensor(const TensorObject& self, nb::handle memo) {
  const Tensor& t = self.value;
  if (t.storage().use_count() == 1) return t.lazy_clone();
  const nb::object copied =
      nb::module_::import_("copy").attr("deepcopy")(object_of(t.storage()), memo);
  return {nb::cast<Storage&>(copied), t.dtype(), t.shape(), t.strides(), t.offset()};
}

nb::object reduced_container(const ContainerObject& self) {
  const Container& container = *self.container;
  // A Storage that a tensor of the user shows stays common to both; other values are as they are
  // now.
  Tensor value = released([&] { return container.value(); });
  if (value.storage().use_count() <= 2) {
    value = Tensor();
    value = released([&] { return container.get_value({.return_internal_type = true}); });
  }
  nb::list shape;
  for (index_t n : container.type().shape) {
    shape.append(n == kUnknown ? nb::none() : nb::object(nb::cast(n)));
  }
  return nb::make_tuple(nb::module_::import_("palimpsest._pickles").attr("container_of_value"),
                        nb::make_tuple(to_python(std::move(value)), container.name(),
                                       container.strict(), container.allow_downcast(), shape));
}

ContainerObject container_of_value(const Tensor& value, const std::string& name, bool strict,
                                   std::optional<bool> allow_downcast, nb::handle shape) {
  TensorType type{value.dtype(), {}, value.device()};
  for (nb::handle n : shape) {
    type.shape.push_back(n.is_none() ? kUnknown : integer_of(n, "an extent or None"));
  }
  const ContainerOptions options{
      .name = name, .borrow = true, .strict = strict, .allow_downcast = allow_downcast};
  return {released([&] { return std::make_shared<Container>(type, value, options); })};
}

}  // namespace

nb::object object_of(const std::shared_ptr<Container>& container) {
  return known_object(container_objects.get(), reinterpret_cast<std::uintptr_t>(container.get()),
                      ContainerObject{container});
}

nb::list objects_of(std::span<const std::shared_ptr<Container>> containers) {
  nb::list list;
  for (const auto& container : containers) list.append(object_of(container));
  return list;
}

std::shared_ptr<Container> container_in(nb::handle object) {
  return nb::cast<ContainerObject&>(object).container;
}

std::vector<std::shared_ptr<Container>> containers_in(nb::handle list) {
  std::vector<std::shared_ptr<Container>> containers;
  for (nb::handle object : list) containers.push_back(container_in(object));
  return containers;
}

void bind_pickles(nb::module_& m) {
  const nb::object weak = nb::module_::import_("weakref").attr("WeakValueDictionary");
  storage_objects.set(weak());
  container_objects.set(weak());
  at_end([] {
    storage_objects.clear();
    container_objects.clear();
  });
  nb::class_<ContainerObject>(m, "_Container", nb::is_weak_referenceable())
      .def("__reduce__", reduced_container);
  m.def("_container_of_value", container_of_value, "value"_a, "name"_a, "strict"_a,
        "allow_downcast"_a.none(), "shape"_a);
  m.def("_storage_of_bytes", storage_of_bytes);
  m.def("_tensor_of_storage",
        [](const Storage& storage, const std::string& dtype, Extents shape, Extents strides,
           index_t offset) { return Tensor(storage, parse_dtype(dtype), shape, strides, offset); });
  const nb::object tensor = m.attr("Tensor");
  nb::setattr(tensor, "__reduce__",
              nb::cpp_function(reduced_tensor, nb::is_method(), nb::scope(tensor)));
  nb::setattr(tensor, "__deepcopy__",
              nb::cpp_function(copied_tensor, nb::is_method(), nb::scope(tensor), "memo"_a));
  const nb::object storage = m.attr("Storage");
  const auto copied_storage = [](const Storage& of, nb::handle) { return of.lazy_clone(); };
  nb::setattr(storage, "__deepcopy__",
              nb::cpp_function(copied_storage, nb::is_method(), nb::scope(storage), "memo"_a));
  nb::setattr(storage, "__reduce_ex__",
              nb::cpp_function(reduced_storage, nb::is_method(), nb::scope(storage)));
}

}  // namespace palimpsest::python
