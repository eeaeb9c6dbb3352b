// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/python/interop/ndarray.hpp"

#include <array>
#include <atomic>

#include "palimpsest/python/interop/array_struct.hpp"

namespace palimpsest::python {
namespace {

// The objects of NumPy that stand for dtypes, one for each. They live as long as NumPy.
struct Known {
  PyObject* descr;
  DType dtype;
};
constexpr std::size_t kMost = kDTypeCount + 2;
constinit std::array<Known, kMost> known{};
constinit std::size_t count = 0;

void note_dtypes(nb::handle numpy) {
  std::array<Known, kMost> found{};
  std::size_t n = 0;
  const auto note = [&](const char* name) {
    const nb::object descr = numpy.attr("dtype")(name);
    const auto dtype = dtype_of_items(nb::cast<std::string>(descr.attr("kind"))[0],
                                      nb::cast<int>(descr.attr("itemsize")));
    found[n++] = {descr.inc_ref().ptr(), *dtype};
  };
  // The most frequent dtypes come first. C has two names for integers of 64 bits.
  for (const char* name : {"float64", "complex64", "float32", "complex128"}) note(name);
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    if (!is_floating(dtype) && !is_complex(dtype)) note(std::string(name_of(dtype)).c_str());
  }
  for (const char* name : {"longlong", "ulonglong"}) note(name);
  if (count != 0) return;  // another thread has been here meanwhile
  known = found;
  count = n;
}

// True if the fields of an array agree with its interface.
bool agrees(nb::handle array) {
  const auto& fields = *reinterpret_cast<const NdArray*>(array.ptr());
  const nb::object capsule = array.attr("__array_struct__");
  const auto* const said =
      static_cast<const ArrayStruct*>(PyCapsule_GetPointer(capsule.ptr(), nullptr));
  if (!said) throw nb::python_error();
  constexpr int flags = ArrayStruct::kAligned | ArrayStruct::kWritable;
  return fields.data == said->data && fields.rank == said->rank &&
         (fields.flags & flags) == (said->flags & flags) &&
         std::equal(fields.shape, fields.shape + fields.rank, said->shape) &&
         std::equal(fields.strides, fields.strides + fields.rank, said->strides) &&
         nb::object(array.attr("dtype")).ptr() == fields.descr &&
         nb::object(array.attr("base")).ptr() == fields.base;
}

bool look() {
  const nb::module_ numpy = nb::module_::import_("numpy");
  const std::string version = nb::cast<std::string>(numpy.attr("__version__"));
  if (!version.starts_with("1.") && !version.starts_with("2.")) return false;
  // Two axes of different extents and strides, both read-only and writable, with a base.
  const nb::object all = numpy.attr("zeros")(nb::make_tuple(3, 5), "float32");
  const nb::object part = all[nb::make_tuple(nb::slice(1, 3), nb::slice(0, 5, 2))];
  if (!agrees(part)) return false;
  part.attr("setflags")("write"_a = false);
  if (!agrees(part)) return false;
  note_dtypes(numpy);
  return true;
}

}  // namespace

bool knows_ndarray() {
  // No guard of a static: a waiting thread would hold the interpreter's lock, which look() needs.
  static constinit std::atomic<int> answer{-1};
  int now = answer.load(std::memory_order_relaxed);
  if (now < 0) answer.store(now = look() ? 1 : 0, std::memory_order_relaxed);
  return now == 1;
}

std::optional<DType> element_dtype(const NdArray& array) {
  for (std::size_t i = 0; i < count; ++i) {
    if (known[i].descr == array.descr) return known[i].dtype;
  }
  return std::nullopt;
}

}  // namespace palimpsest::python
