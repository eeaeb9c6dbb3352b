// SPDX-License-Identifier: Apache-2.0
// Internal: arrays of NumPy, read without a copy.
#pragma once

#include "palimpsest/python/convert.hpp"

namespace palimpsest::python {

/// An object of numpy.ndarray, which every module that was compiled for NumPy 1 or 2 reads
/// by these fields. The flags are those of ArrayStruct.
struct NdArray {
  PyObject head;
  void* data;
  int rank;
  Py_ssize_t* shape;
  Py_ssize_t* strides;  ///< in bytes
  PyObject* base;
  PyObject* descr;
  int flags;
};

/// True if arrays have this layout. Asked once, with arrays that also have an interface to compare
/// with.
bool knows_ndarray();
/// The dtype of elements in the order of this machine; none where only NumPy can tell.
std::optional<DType> element_dtype(const NdArray& array);

}  // namespace palimpsest::python
