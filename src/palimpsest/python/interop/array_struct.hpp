// SPDX-License-Identifier: Apache-2.0
// Internal: the array interface of NumPy, version 3, laid out as its documentation says: a
// description of an array that both sides read without calling each other.
#pragma once

#include <cstddef>

#include "palimpsest/python/convert.hpp"

namespace palimpsest::python {

struct ArrayStruct {
  enum Flags : int { kAligned = 0x100, kNativeOrder = 0x200, kWritable = 0x400 };

  int two = 2;
  int rank;
  char kind;  ///< b, i, u, f or c
  int itemsize;
  int flags;
  Py_ssize_t* shape;
  Py_ssize_t* strides;  ///< in bytes
  void* data;
  PyObject* descr = nullptr;
};

/// The kind and the size of the items, as the structure says them; none if no dtype has these.
std::optional<DType> dtype_of_items(char kind, int itemsize);
char item_kind(DType dtype);

}  // namespace palimpsest::python
