// SPDX-License-Identifier: Apache-2.0
// The lines of Python at which nodes of graphs are built, for notes of errors.
#include "palimpsest/base/stack_trace.hpp"
#include "palimpsest/python/families.hpp"

namespace palimpsest::python {
namespace {

constinit GlobalObject package;  // the folder of this package, as a text that ends in '/'

std::string_view text_view(nb::handle text) {
  Py_ssize_t n = 0;
  const char* const data = PyUnicode_AsUTF8AndSize(text.ptr(), &n);
  return data ? std::string_view(data, static_cast<std::size_t>(n)) : std::string_view();
}

// `scan.py:42 in sense`; empty for a frame of this package, and for the method of an op that its
// application calls.
std::string line_of(nb::handle frame, std::string_view own) {
  const nb::object code = nb::steal(
      reinterpret_cast<PyObject*>(PyFrame_GetCode(reinterpret_cast<PyFrameObject*>(frame.ptr()))));
  const nb::object file = code.attr("co_filename"), function = code.attr("co_name");
  std::string_view path = text_view(file);
  const std::string_view name = text_view(function);
  if (path.starts_with(own) || name == "make_node") return {};
  path.remove_prefix(path.rfind('/') + 1);  // npos + 1 is 0
  std::string line(path);
  line +=
      ":" + std::to_string(PyFrame_GetLineNumber(reinterpret_cast<PyFrameObject*>(frame.ptr())));
  if (name != "<module>") line.append(" in ").append(name);
  return line;
}

// The lines of Python that build a node. None in rewrites, which run without the lock of the
// interpreter: their nodes keep the origin of the nodes that they replace.
std::shared_ptr<const StackTrace> lines_of_python(std::size_t limit) {
  if (Unlocked::is_here() || !nb::is_alive() || !PyGILState_GetThisThreadState()) return nullptr;
  if (PyErr_Occurred() || !package.is_set()) return nullptr;
  try {
    std::vector<std::string> lines;
    nb::object frame = nb::borrow(reinterpret_cast<PyObject*>(PyEval_GetFrame()));
    while (frame.is_valid() && !frame.is_none() && lines.size() < limit) {
      // Frames of this package may lie between frames of the user.
      std::string line = line_of(frame, text_view(package.get()));
      if (!line.empty()) lines.push_back(std::move(line));
      if (lines.size() < limit) frame = frame.attr("f_back");
    }
    if (lines.empty()) return nullptr;
    return std::make_shared<const StackTrace>(StackTrace::of_lines(std::move(lines)));
  } catch (nb::python_error& error) {
    error.discard_as_unraisable("palimpsest");
  } catch (...) {
    // No memory for a note.
  }
  return nullptr;
}

}  // namespace

void bind_origins(nb::module_& m) {
  m.def("_note_origins", [](const std::string& file) {
    package.set(nb::str((file.substr(0, file.rfind('/') + 1)).c_str()));
    set_origin_source(lines_of_python);
  });
  at_end([] {
    set_origin_source(nullptr);
    package.clear();
  });
}

}  // namespace palimpsest::python
