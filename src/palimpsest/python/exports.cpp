// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/python/exports.hpp"

#include <algorithm>
#include <map>

#include "palimpsest/python/arrays.hpp"
#include "palimpsest/python/interop/array_struct.hpp"

namespace palimpsest::python {
namespace {

// The exported ranges of bytes by their starts. Guarded by the lock of the interpreter.
struct Range {
  const std::byte* end;
  Storage storage;
  int exports;
};
using Ranges = std::map<const std::byte*, Range>;
constinit Global<Ranges> all_ranges;
Ranges& ranges() { return all_ranges.get(); }

// For as long as the capsule lives.
struct Description {
  ArrayStruct array;
  Py_ssize_t sizes[1];  // extents, then strides
};

void free_description(PyObject* capsule) {
  auto* const owner = static_cast<PyObject*>(PyCapsule_GetContext(capsule));
  ::operator delete(PyCapsule_GetPointer(capsule, nullptr));
  Py_XDECREF(owner);
}

// Imports a module on the first use of its function.
nb::object function_of(const char* module, const char* name) {
  return nb::module_::import_(module).attr(name);
}

constinit GlobalObject as_array;  // numpy.asarray

nb::object numpy_over(Tensor tensor, Access access) {
  return numpy_array(exported(std::move(tensor), access));
}

// torch shows no negative strides.
nb::object torch_tensor(Tensor&& tensor, Access access) {
  const bool is_flipped = std::any_of(tensor.strides().begin(), tensor.strides().end(),
                                      [](index_t stride) { return stride < 0; });
  return function_of(
      "torch", "from_numpy")(numpy_over(is_flipped ? tensor.clone() : std::move(tensor), access));
}

nb::object in_kind(Tensor&& tensor, Kind kind, Access access) {
  switch (kind) {
    case Kind::tensor:
      return to_python(std::move(tensor));
    case Kind::torch:
      return torch_tensor(std::move(tensor), access);
    case Kind::jax:
      return function_of("jax.numpy", "asarray")(numpy_over(std::move(tensor), Access::read));
    case Kind::xarray:  // xarray names an axis without a name
      return function_of("xarray", "DataArray")(numpy_over(std::move(tensor), access));
    case Kind::cupy:
      throw DeviceError("[cupy] this library was built without CUDA.");
    default:
      return numpy_over(std::move(tensor), access);
  }
}

bool is_lent(Access access) { return access == Access::read_lent || access == Access::write_lent; }

}  // namespace

nb::object exported(Tensor tensor, Access access) {
  if (!tensor.device().is_host()) {
    throw DeviceError("[array] the host cannot reach " + tensor.device().str() +
                      ". Try .to('cpu').");
  }
  return made_in_place<ExportedMemory>(std::move(tensor), access);
}

nb::object numpy_array(nb::handle exported) {
  if (!as_array.is_set()) as_array.set(function_of("numpy", "asarray"));
  return as_array.get()(exported);
}

ExportedMemory::ExportedMemory(Tensor tensor, Access access)
    : tensor_(std::move(tensor)), access_(access) {
  // Lent memory is not recognized when it comes back: it counts as memory that others write.
  if (is_lent(access)) return;
  if (access == Access::write) pin_ = tensor_.storage().pin();
  const std::byte* const start = tensor_.storage().data();
  if (!start) return;
  auto [found, is_new] =
      ranges().try_emplace(start, Range{start + tensor_.storage().nbytes(), tensor_.storage(), 0});
  // A lazy clone may show the same bytes: the one that is written is the one to be found.
  if (!is_new && access == Access::write) found->second.storage = tensor_.storage();
  ++found->second.exports;
}

ExportedMemory::~ExportedMemory() {
  if (is_lent(access_)) return;
  const auto found = ranges().find(tensor_.storage().data());
  if (found != ranges().end() && --found->second.exports == 0) ranges().erase(found);
}

nb::object ExportedMemory::array_struct(nb::handle self) const {
  const std::size_t rank = tensor_.rank();
  auto* const made = static_cast<Description*>(
      ::operator new(sizeof(Description) + 2 * rank * sizeof(Py_ssize_t)));
  Py_ssize_t* const sizes = made->sizes;
  const auto item = static_cast<Py_ssize_t>(item_size(tensor_.dtype()));
  for (std::size_t k = 0; k < rank; ++k) {
    sizes[k] = tensor_.shape()[k];
    sizes[rank + k] = tensor_.strides()[k] * item;
  }
  const bool writable = access_ == Access::write || access_ == Access::write_lent;
  made->array = ArrayStruct{.rank = static_cast<int>(rank),
                            .kind = item_kind(tensor_.dtype()),
                            .itemsize = static_cast<int>(item),
                            .flags = ArrayStruct::kAligned | ArrayStruct::kNativeOrder |
                                     (writable ? ArrayStruct::kWritable : 0),
                            .shape = sizes,
                            .strides = sizes + rank,
                            .data = const_cast<void*>(tensor_.raw_data())};
  nb::object capsule = nb::steal(PyCapsule_New(made, nullptr, free_description));
  PyCapsule_SetContext(capsule.ptr(), self.inc_ref().ptr());
  return capsule;
}

void ExportedMemory::outlive_step() {
  if (!outliving_) outliving_.emplace(tensor_.storage().data(), tensor_.storage().nbytes());
}

Storage exported_storage(const void* data) {
  const auto* const address = static_cast<const std::byte*>(data);
  auto after = ranges().upper_bound(address);
  if (after == ranges().begin()) return {};
  --after;
  return address < after->second.end ? after->second.storage : Storage();
}

nb::object export_array(Tensor&& result, Kind kind) {
  if (kind == Kind::tensor) return to_python(std::move(result));
  result = on_host(result);
  // An array that others may write shares no memory with another tensor, and its elements do not
  // overlap.
  const Storage& storage = result.storage();
  const bool would_copy_gaps = storage.use_count() == 1 &&
                               static_cast<std::size_t>(result.nbytes()) < storage.nbytes() &&
                               !Storage(storage).writable_data();
  if (would_copy_gaps || has_internal_overlap(result)) result = result.clone();
  if (result.numel() > 0) result.raw_mutable_data();
  return in_kind(std::move(result), kind, Access::write);
}

nb::object export_in_place(Tensor&& tensor, Kind kind) {
  return in_kind(std::move(tensor), kind, Access::write);
}

nb::object export_lent(Tensor&& result, Kind kind) {
  const bool is_fixed = result.storage().state() == StorageState::foreign_read_only;
  return in_kind(std::move(result), kind, is_fixed ? Access::read_lent : Access::write_lent);
}

ArrayObject array_like(nb::handle argument, Tensor&& result) {
  const Kind kind = is_array(argument) ? kind_of(argument) : Kind::numpy;
  return export_array(std::move(result), kind_returned(kind));
}

nb::object export_read_only(const Tensor& tensor) { return numpy_over(tensor, Access::read); }

}  // namespace palimpsest::python
