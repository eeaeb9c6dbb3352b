// SPDX-License-Identifier: Apache-2.0
// Functions as users see them: with a signature that inspect understands, the docstring that the
// comment in the header gives, and a name by which pickles find them.
#include <algorithm>
#include <array>

#include "palimpsest/python/families.hpp"

namespace palimpsest::python {
namespace {

struct Document {
  std::string_view name, text;
};
// Sorted by name. `f`: the docstring of a function without its parameters and examples; `f.x`: that
// of its parameter x; `f#`: its examples.
constexpr Document kDocuments[] = {
#include "documentation.inc"  // made by headers.py
};

std::string_view document(const std::string& name) {
  const auto* const found = std::lower_bound(
      std::begin(kDocuments), std::end(kDocuments), name,
      [](const Document& d, const std::string& wanted) { return d.name < wanted; });
  return found != std::end(kDocuments) && found->name == name ? found->text : std::string_view();
}

// The document of a name. A name of the top level that `ops` shows has its document there.
std::string_view document_of(const std::string& key, const std::string& suffix = "") {
  const std::string_view found = document(key + suffix);
  return found.empty() && key.starts_with("ops.") ? document(key.substr(4) + suffix) : found;
}

// -- signatures: `def f(a: T, *, b: T = \1) -> R` with the values of the defaults beside it -------

struct Parameter {
  std::string name, type, value;  // an empty value: no default
};

// The text up to one of these characters outside of brackets and quotes.
std::string_view upto(std::string_view& text, std::string_view ends) {
  int depth = 0;
  char quote = 0;
  std::size_t i = 0;
  for (; i < text.size(); ++i) {
    const char c = text[i];
    if (quote) {
      if (c == quote) quote = 0;
    } else if (c == '\'' || c == '"') {
      quote = c;
    } else if (depth == 0 && ends.find(c) != std::string_view::npos) {
      break;
    } else if (std::string_view("([{").find(c) != std::string_view::npos) {
      ++depth;
    } else if (std::string_view(")]}").find(c) != std::string_view::npos) {
      --depth;
    }
  }
  std::string_view part = text.substr(0, i);
  text.remove_prefix(i);
  while (part.starts_with(' ')) part.remove_prefix(1);
  while (part.ends_with(' ')) part.remove_suffix(1);
  return part;
}

// A type as a user of the package names it.
std::string plain_type(std::string_view text) {
  std::string type(text);
  for (const std::string_view module : {"palimpsest._core.", "collections.abc."}) {
    for (std::size_t at = type.find(module); at != std::string::npos; at = type.find(module)) {
      type.erase(at, module.size());
    }
  }
  return type;
}

// A default that nanobind wrote as `\1` is the second one of its list.
std::string written_default(std::string_view text, nb::handle values) {
  if (!text.starts_with('\\')) return std::string(text);
  const auto i = static_cast<std::size_t>(std::stoi(std::string(text.substr(1))));
  const std::string repr = nb::cast<std::string>(nb::repr(nb::object(values[i])));
  // inspect understands literals: a dtype is shown as its name.
  if (repr == "Ellipsis") return "...";
  constexpr std::string_view own = "palimpsest.";
  return repr.starts_with(own) ? "'" + repr.substr(own.size()) + "'" : repr;
}

std::vector<Parameter> parameters_of(std::string_view signature, nb::handle defaults) {
  signature.remove_prefix(signature.find('(') + 1);
  std::vector<Parameter> list;
  while (!signature.empty() && signature.front() != ')') {
    Parameter p;
    p.name = upto(signature, ":=,)");
    if (signature.starts_with(':')) {
      signature.remove_prefix(1);
      p.type = plain_type(upto(signature, "=,)"));
    }
    if (signature.starts_with('=')) {
      signature.remove_prefix(1);
      p.value = written_default(upto(signature, ",)"), defaults);
    }
    if (signature.starts_with(',')) signature.remove_prefix(1);
    list.push_back(std::move(p));
  }
  return list;
}

std::string text_signature(const std::string& name, const std::vector<Parameter>& list) {
  std::string text = name + "(";
  for (const Parameter& p : list) {
    if (&p != list.data()) text += ", ";
    text += p.name;
    if (!p.value.empty()) text += "=" + p.value;
  }
  return text + ")\n--\n\n";
}

// -- docstrings -----------------------------------------------------------------------------------

void add_section(std::string& text, const std::string& title, const std::string& lines) {
  if (lines.empty()) return;
  text += "\n\n" + title + "\n" + std::string(title.size(), '-') + "\n" + lines;
}

std::string parameter_lines(const std::string& key, const std::vector<Parameter>& list) {
  std::string lines;
  for (const Parameter& p : list) {
    if (p.name == "*" || p.name == "/") continue;
    lines += (lines.empty() ? "" : "\n") + p.name;
    if (!p.type.empty()) lines += " : " + p.type;
    if (!p.value.empty()) lines += ", default " + p.value;
    const std::string_view about = document_of(key, "." + p.name);
    if (!about.empty()) lines += "\n    " + std::string(about);
  }
  return lines;
}

// The comment of the header, or the text of the binding without one, in the order of numpydoc.
std::string docstring(const std::string& key, std::string_view fallback,
                      const std::string& parameters, const std::string& result) {
  std::string_view all = document_of(key);
  if (all.empty()) all = fallback;
  const std::size_t sections =
      std::min({all.find("\n\nRaises\n------"), all.find("\n\nNotes\n-----"),
                all.find("\n\nReferences\n----------"), all.size()});
  std::string text(all.substr(0, sections));
  add_section(text, "Parameters", parameters);
  if (result != "None") add_section(text, "Returns", result);
  text += all.substr(sections);
  add_section(text, "Examples", std::string(document_of(key, "#")));
  return text;
}

// -- functions ------------------------------------------------------------------------------------

// One C function each, so that none of them is a method of something.
constexpr std::size_t kMost = 1024;
constinit std::array<PyObject*, kMost> functions{};
constinit std::array<PyMethodDef, kMost> definitions{};
constinit Global<std::array<std::vector<Parameter>, kMost>> parameters;
constinit std::size_t count = 0;

// Names the argument that is None where an array or another object belongs, before the signature
// that the message has.
void name_none(std::size_t function, nb::handle arguments, nb::handle keywords) {
  nb::python_error error;
  const std::string text = str_of(error.value());
  const auto is_refused = [](const Parameter& p, nb::handle given) {
    return given.is_none() && p.type.find("None") == std::string::npos;
  };
  std::string wrong;
  std::size_t i = 0;
  for (const Parameter& p : parameters.get()[function]) {
    nb::handle given;
    if (p.name == "*") i = nb::len(arguments);
    if (i < nb::len(arguments)) given = nb::handle(PyTuple_GetItem(arguments.ptr(), i++));
    if (!given.is_valid() && keywords.is_valid()) {
      given = PyDict_GetItemString(keywords.ptr(), p.name.c_str());
    }
    if (given.is_valid() && is_refused(p, given)) {
      wrong = "[" + std::string(definitions[function].ml_name) + "] " + p.name +
              ": got None, expected " + (p.type == "object" ? "a value" : p.type) + ".\n";
      break;
    }
  }
  const bool is_of_call = text.find("incompatible function arguments") != std::string::npos;
  if (!is_of_call || wrong.empty()) return error.restore();
  PyErr_SetString(PyExc_TypeError, (wrong + text).c_str());
}

template <std::size_t I>
PyObject* forward(PyObject*, PyObject* arguments, PyObject* keywords) {
  if (!functions[I]) {
    PyErr_SetString(PyExc_RuntimeError, kIsGone);
    return nullptr;
  }
  PyObject* const result = PyObject_Call(functions[I], arguments, keywords);
  if (!result && PyErr_ExceptionMatches(PyExc_TypeError)) name_none(I, arguments, keywords);
  return result;
}
template <std::size_t... I>
constexpr std::array<PyCFunctionWithKeywords, kMost> all_forwards(std::index_sequence<I...>) {
  return {forward<I>...};
}
constexpr auto kForwards = all_forwards(std::make_index_sequence<kMost>());

const char* kept(const std::string& text) {
  char* const copy = new char[text.size() + 1];
  std::copy(text.begin(), text.end(), copy);
  copy[text.size()] = 0;
  return copy;
}

nb::object shown_function(nb::handle f, const std::string& key, nb::handle module) {
  if (count == kMost) throw InternalError("[python] got too many functions; make kMost larger.");
  const nb::object overload = f.attr("__nb_signature__")[0];
  const std::string signature = nb::cast<std::string>(nb::object(overload[0]));
  const nb::object said = overload[1];
  const std::string name = nb::cast<std::string>(f.attr("__name__"));
  const std::vector<Parameter> list = parameters_of(signature, nb::object(overload[2]));
  const std::size_t arrow = signature.rfind(" -> ");
  const std::string doc =
      docstring(key, said.is_none() ? "" : str_of(said), parameter_lines(key, list),
                arrow == std::string::npos ? "None" : plain_type(signature.substr(arrow + 4)));
  functions[count] = nb::borrow(f).release().ptr();
  parameters.get()[count] = list;
  const auto any_function = reinterpret_cast<void (*)()>(kForwards[count]);
  definitions[count] = {kept(name), reinterpret_cast<PyCFunction>(any_function),
                        METH_VARARGS | METH_KEYWORDS, kept(text_signature(name, list) + doc)};
  nb::object made = nb::steal(PyCFunction_NewEx(&definitions[count], nullptr, module.ptr()));
  ++count;
  return made;
}

void document_class(nb::handle type, const std::string& key) {
  const nb::object present = type.attr("__doc__");
  const std::string doc = docstring(key, present.is_none() ? "" : str_of(present), "", "None");
  if (!doc.empty()) type.attr("__doc__") = doc;
}

// Replaces the functions of this module in a namespace, and documents its classes.
void show(nb::dict scope, const std::string& module, const std::string& prefix) {
  const nb::object name_of_module = nb::cast(module);
  const nb::object kind =
      nb::borrow(nb::module_::import_("palimpsest._core").attr("function").type());
  std::vector<std::pair<nb::object, nb::object>> changed;
  for (const auto& [name, value] : scope) {
    const std::string text = nb::cast<std::string>(name);
    if (text.starts_with('_')) continue;
    if (value.type().is(kind)) {
      changed.emplace_back(nb::borrow(name), shown_function(value, prefix + text, name_of_module));
    } else if (PyType_Check(value.ptr())) {
      const std::string from = str_of(nb::object(value.attr("__module__")));
      if (from.starts_with("palimpsest._core") || from == "palimpsest.errors") {
        document_class(value, prefix + text);
      }
    }
  }
  for (const auto& [name, value] : changed) scope[name] = value;
}

}  // namespace

void bind_visible(nb::module_& m) {
  m.def("_show", show, "scope"_a, "module"_a, "prefix"_a);
  at_end([] {
    for (PyObject*& f : functions) Py_CLEAR(f);
  });
}

}  // namespace palimpsest::python
