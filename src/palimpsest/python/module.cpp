// SPDX-License-Identifier: Apache-2.0
#include <stdexcept>

#include "palimpsest/python/families.hpp"

// Leaks are reported when the interpreter ends, in builds for tests only: a program that ends by
// os._exit() or with a running thread has some.
#ifdef PALIMPSEST_LEAK_WARNINGS
constexpr bool kLeakWarnings = true;
#else
constexpr bool kLeakWarnings = false;
#endif

NB_MODULE(_core, m) {
  if (PyInterpreterState_GetID(PyInterpreterState_Get()) != 0) {  // becomes an ImportError
    throw std::runtime_error(
        "palimpsest works in the main interpreter only, not in subinterpreters.");
  }
  nanobind::set_leak_warnings(kLeakWarnings);
  m.doc() = "Bindings of the C++ library palimpsest; use the package palimpsest.";
  m.attr("__version__") = PALIMPSEST_VERSION;
  palimpsest::python::begin_and_end_with(m);
#define PALIMPSEST_BIND_FAMILY(name) palimpsest::python::bind_##name(m);
  PALIMPSEST_FOR_EACH_FAMILY(PALIMPSEST_BIND_FAMILY)
#undef PALIMPSEST_BIND_FAMILY
}
