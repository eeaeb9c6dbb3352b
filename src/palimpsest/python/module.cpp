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

namespace {

// The module of the first import. Its classes exist once in a process.
constinit palimpsest::python::GlobalObject first_module;
constinit bool has_begun = false;

// An import after the modules of the package were dropped gets the first module again: Python looks
// for the module in sys.modules when this one has been executed.
void show_first_module_again() {
  if (!first_module.is_set()) {
    throw std::runtime_error(
        "palimpsest cannot be imported: an earlier import in this process failed, or has ended. "
        "Try another process.");
  }
  const nanobind::object modules = nanobind::module_::import_("sys").attr("modules");
  const std::string name = nanobind::cast<std::string>(first_module.get().attr("__name__"));
  std::vector<nanobind::object> all{nanobind::borrow(first_module.get())};
  for (std::size_t i = 0; i < all.size(); ++i) {
    modules[all[i].attr("__name__")] = all[i];
    const nanobind::object members = all[i].attr("__dict__").attr("values")();
    for (nanobind::handle member : members) {
      if (!PyModule_Check(member.ptr())) continue;
      const auto of = nanobind::cast<std::string>(nanobind::object(member.attr("__name__")));
      if (of.starts_with(name + ".")) all.push_back(nanobind::borrow(member));
    }
  }
}

}  // namespace

NB_MODULE(_core, m) {
  if (PyInterpreterState_GetID(PyInterpreterState_Get()) != 0) {  // becomes an ImportError
    throw std::runtime_error(
        "palimpsest works in the main interpreter only, not in subinterpreters.");
  }
  if (std::exchange(has_begun, true)) return show_first_module_again();
  nanobind::set_leak_warnings(kLeakWarnings);
  m.doc() = "Bindings of the C++ library palimpsest; use the package palimpsest.";
  m.attr("__version__") = PALIMPSEST_VERSION;
  palimpsest::python::begin_and_end_with(m);
#define PALIMPSEST_BIND_FAMILY(name) palimpsest::python::bind_##name(m);
  PALIMPSEST_FOR_EACH_FAMILY(PALIMPSEST_BIND_FAMILY)
#undef PALIMPSEST_BIND_FAMILY
  first_module.set(nanobind::borrow(m));
  palimpsest::python::at_end([] { first_module.clear(); });
}
