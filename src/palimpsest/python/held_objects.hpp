// SPDX-License-Identifier: Apache-2.0
// Internal: objects of Python that a class keeps where the garbage collector sees them.
#pragma once

#include "palimpsest/python/convert.hpp"

namespace palimpsest::python {

/// The references of `T::held`, a list of objects.
template <class T>
int visit_held(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (!nb::inst_ready(self)) return 0;
  for (const nb::object& object : nb::inst_ptr<T>(self)->held) Py_VISIT(object.ptr());
  return 0;
}

template <class T>
int clear_held(PyObject* self) {
  std::vector<nb::object> dropped;  // outlives the list: the end of an object may run anything
  if (nb::inst_ready(self)) dropped.swap(nb::inst_ptr<T>(self)->held);
  return 0;
}

/// Slots of the type of T.
#define PALIMPSEST_SLOTS_OF_HELD(T)                           \
  {Py_tp_traverse, reinterpret_cast<void*>(visit_held<T>)}, { \
    Py_tp_clear, reinterpret_cast<void*>(clear_held<T>)       \
  }

}  // namespace palimpsest::python
