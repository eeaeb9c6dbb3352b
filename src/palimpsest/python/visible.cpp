// SPDX-License-Identifier: Apache-2.0
// Functions as users see them: with a signature that inspect understands, the docstring that the
// comment in the header gives, and a name by which pickles find them.
#include <algorithm>
#include <array>
#include <climits>
#include <cstdlib>
#include <map>
#include <set>

#include "palimpsest/python/families.hpp"

namespace palimpsest::python {
namespace {

struct Document {
  std::string_view name, text;
};
// Sorted by name. `f`: the docstring of a function without its parameters and examples; `f.x`: that
// of its parameter x; `*.x`: that of parameters x of all other functions; `f#`: its examples.
// The compiler counts no characters: some stop at so many steps.
using namespace std::string_view_literals;
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
    text += (p.name == "self" ? "$" : "") + p.name;
    if (!p.value.empty()) text += "=" + p.value;
  }
  return text + ")\n--\n\n";
}

// -- docstrings -----------------------------------------------------------------------------------

void add_section(std::string& text, const std::string& title, const std::string& lines) {
  if (lines.empty()) return;
  text += "\n\n" + title + "\n" + std::string(title.size(), '-') + "\n" + lines;
}

// Without the stars of `*args`.
std::string plain_name(const std::string& name) { return name.substr(name.find_first_not_of('*')); }

std::string parameter_lines(const std::string& key, const std::vector<Parameter>& list) {
  std::string lines;
  for (const Parameter& p : list) {
    if (p.name == "*" || p.name == "/" || p.name == "self") continue;
    lines += (lines.empty() ? "" : "\n") + p.name;
    if (!p.type.empty()) lines += " : " + p.type;
    if (!p.value.empty()) lines += ", default " + p.value;
    const std::string name = plain_name(p.name);
    std::string_view about = document_of(key, "." + name);
    if (about.empty()) about = document("*." + name);
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

// A C function each, so that none of them is a method of something else.
constexpr std::size_t kMost = 1024;
struct Visible {
  std::string name;  // in errors: `Tensor.flip`
  std::vector<Parameter> parameters;
};
constinit std::array<PyObject*, kMost> functions{};
constinit std::array<PyMethodDef, kMost> definitions{};
constinit Global<std::array<Visible, kMost>> visible;
constinit std::size_t count = 0;
// Definitions by bound function and document, so that a package that is imported again has those of
// the first time.
using KnownDefinitions = std::map<std::pair<PyObject*, std::string>, std::size_t>;
constinit Global<KnownDefinitions> known_definitions;

// True if a value may be of the types that a signature shows. Others than these take anything.
bool fits(std::string_view types, nb::handle given) {
  if (types.empty()) return true;
  const nb::module_ core = nb::module_::import_("palimpsest._core");
  const auto fits_one = [&](const std::string& type) {
    PyObject* const value = given.ptr();
    if (type == "None" || given.is_none()) return type == "None" && given.is_none();
    if (type == "bool") return PyBool_Check(value) != 0;
    if (type == "str") return PyUnicode_Check(value) != 0;
    if (type == "int") return PyLong_Check(value) != 0;
    if (type == "float") return PyFloat_Check(value) || PyLong_Check(value);
    if (type == "complex")
      return PyFloat_Check(value) || PyLong_Check(value) || PyComplex_Check(value);
    if (type == "bytes") return PyBytes_Check(value) != 0;
    if (type.starts_with("dict")) return PyDict_Check(value) != 0;
    if (type.starts_with("tuple[")) return PyTuple_Check(value) != 0;
    if (type.starts_with("Sequence[")) return is_list(given);
    const nb::object known = nb::getattr(core, type.c_str(), nb::none());
    return !PyType_Check(known.ptr()) || nb::isinstance(given, known);
  };
  while (!types.empty()) {
    if (fits_one(std::string(upto(types, "|")))) return true;
    if (!types.empty()) types.remove_prefix(1);
  }
  return false;
}

// The argument that a call got wrong, as errors name it; empty: none is found.
std::string wrong_argument(const std::vector<Parameter>& list, nb::handle arguments,
                           nb::handle keywords) {
  const std::size_t n = nb::len(arguments);
  std::size_t i = 0;
  std::string names, large;
  bool takes_all = false, takes_any = false;
  std::size_t most = list.size();  // arguments without a name
  for (const Parameter& p : list) {
    takes_all |= p.name.starts_with('*') && p.name != "*" && !p.name.starts_with("**");
    takes_any |= p.name.starts_with("**");
    if (p.name == "/") continue;
    if (p.name.starts_with('*')) {
      most = std::min(most, i);
      i = n;
      continue;
    }
    if (p.name != "self") names += (names.empty() ? "" : ", ") + p.name;
    nb::handle given;
    if (i < n) {
      given = nb::handle(PyTuple_GetItem(arguments.ptr(), static_cast<Py_ssize_t>(i++)));
    } else if (keywords.is_valid()) {
      given = PyDict_GetItemString(keywords.ptr(), p.name.c_str());
    }
    const std::string expected = ", expected " + (p.type == "object" ? "a value" : p.type) + ".";
    if (!given.is_valid()) {
      if (p.value.empty()) return p.name + ": got nothing" + expected;
    } else if (!fits(p.type, given)) {
      return p.name + ": got " + (given.is_none() ? "None" : class_name(given)) + expected;
    } else if (PyLong_CheckExact(given.ptr()) && large.empty()) {
      const long value = PyLong_AsLong(given.ptr());
      PyErr_Clear();
      if (value < 0 || value > INT_MAX) {
        large = p.name + ": got " + str_of(given) + ", expected a number that fits.";
      }
    }
  }
  most = std::min(most, i);
  if (most < n && !takes_all) {
    const std::size_t own = !list.empty() && list[0].name == "self" ? 1 : 0;
    return "got " + std::to_string(n - own) + " arguments, expected at most " +
           std::to_string(most - own) + ".";
  }
  if (keywords.is_valid() && !takes_any) {
    for (const auto& [key, value] : nb::borrow<nb::dict>(keywords)) {
      const std::string name = str_of(key);
      const auto is_name = [&](const Parameter& p) { return p.name == name; };
      if (std::none_of(list.begin(), list.end(), is_name)) {
        return "got an unknown argument '" + name + "', expected " +
               (names.empty() ? "none" : names) + ".";
      }
    }
  }
  return large;
}

// True for the message about an object in place of one of several words, which begins with the name
// of the argument.
bool is_about_words(const std::string& text, const std::vector<Parameter>& parameters) {
  const std::size_t end = text.find("] got ");
  if (end == std::string::npos || text.find(", expected one of '") == std::string::npos)
    return false;
  return std::any_of(parameters.begin(), parameters.end(),
                     [&](const Parameter& p) { return "[" + p.name == text.substr(0, end); });
}

// Names the function, and the argument that does not fit, in messages that lack them: of nanobind,
// which show the signature, and of conversions of arguments, which know only their part.
void name_argument(const Visible& shown, nb::handle arguments, nb::handle keywords) {
  nb::python_error error;
  std::string text = str_of(error.value());
  const nb::object own = nb::module_::import_("palimpsest._core.errors").attr("Error");
  if (text.find("(): incompatible function arguments") != std::string::npos && text[0] != '[') {
    const std::string wrong = wrong_argument(shown.parameters, arguments, keywords);
    text = "[" + shown.name + "] " + wrong + (wrong.empty() ? "" : "\n") + text;
  } else if (text.starts_with("got ") && nb::isinstance(error.value(), own)) {
    text = "[" + shown.name + "] " + text;
  } else if (is_about_words(text, shown.parameters) &&
             PyErr_GivenExceptionMatches(error.value().ptr(), PyExc_TypeError)) {
    text = "[" + shown.name + "] " + text.substr(1).replace(text.find("] got ") - 1, 1, ":");
  } else {
    return error.restore();
  }
  error.value().attr("args") = nb::make_tuple(text);
  error.restore();
}

// A function has no self.
nb::object with_self(PyObject* self, PyObject* arguments) {
  if (!self) return nb::borrow(arguments);
  const Py_ssize_t n = PyTuple_Size(arguments);
  nb::object all = nb::steal(PyTuple_New(n + 1));
  if (!all.is_valid()) throw nb::python_error();
  PyTuple_SetItem(all.ptr(), 0, nb::handle(self).inc_ref().ptr());
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyTuple_SetItem(all.ptr(), i + 1, nb::handle(PyTuple_GetItem(arguments, i)).inc_ref().ptr());
  }
  return all;
}

// The result of a function; null after an error, which names the argument.
PyObject* call_named(std::size_t function, nb::handle arguments, nb::handle keywords) {
  PyObject* const result = PyObject_Call(functions[function], arguments.ptr(), keywords.ptr());
  const bool is_named = result || !(PyErr_ExceptionMatches(PyExc_TypeError) ||
                                    PyErr_ExceptionMatches(PyExc_ValueError));
  if (!is_named) name_argument(visible.get()[function], arguments, keywords);
  return result;
}

template <std::size_t I>
PyObject* forward(PyObject* self, PyObject* arguments, PyObject* keywords) {
  if (!functions[I]) {
    PyErr_SetString(PyExc_RuntimeError, kIsGone);
    return nullptr;
  }
  try {
    const nb::object all = with_self(self, arguments);
    return call_named(I, all, keywords);
  } catch (nb::python_error& error) {
    error.restore();
    return nullptr;
  }
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

// The definition of a bound function, with the docstring of a key.
PyMethodDef& defined(nb::handle f, const std::string& key, const std::string& name_in_errors) {
  const auto [found, is_new] = known_definitions.get().try_emplace({f.ptr(), key}, count);
  if (!is_new) return definitions[found->second];
  if (count == kMost) throw InternalError("[python] got too many functions; make kMost larger.");
  const nb::object overload = f.attr("__nb_signature__")[0];
  const std::string signature = nb::cast<std::string>(nb::object(overload[0]));
  const nb::object said = overload[1];
  const std::string name = nb::cast<std::string>(f.attr("__name__"));
  const std::vector<Parameter> list = parameters_of(signature, nb::object(overload[2]));
  const std::size_t arrow = signature.rfind(" -> ");
  // A second name has the document of the first one.
  const std::size_t scope = key.starts_with("ops.") ? 4 : 0;
  const bool is_function = key.find('.', scope) == std::string::npos;
  const std::string own(is_function ? document_of(key.substr(0, scope) + name) : "");
  const std::string doc =
      docstring(key, said.is_none() ? own : str_of(said), parameter_lines(key, list),
                arrow == std::string::npos ? "None" : plain_type(signature.substr(arrow + 4)));
  functions[count] = nb::borrow(f).release().ptr();
  visible.get()[count] = {name_in_errors, list};
  const auto any_function = reinterpret_cast<void (*)()>(kForwards[count]);
  definitions[count] = {kept(name), reinterpret_cast<PyCFunction>(any_function),
                        METH_VARARGS | METH_KEYWORDS, kept(text_signature(name, list) + doc)};
  return definitions[count++];
}

nb::object shown_function(nb::handle f, const std::string& key, nb::handle module) {
  PyMethodDef& definition = defined(f, key, nb::cast<std::string>(f.attr("__name__")));
  return nb::steal(PyCFunction_NewEx(&definition, nullptr, module.ptr()));
}

// Methods become visible as functions do, and what sets properties. Those that take any arguments,
// and those that Python calls for operators, have errors of their own.
void show_methods(nb::handle type) {
  const std::string name = nb::cast<std::string>(type.attr("__name__"));
  const nb::module_ core = nb::module_::import_("palimpsest._core");
  const nb::object method = nb::borrow(core.attr("Tensor").attr("__len__").type());
  const nb::object property = nb::module_::import_("builtins").attr("property");
  const nb::object members = nb::module_::import_("builtins").attr("dict")(type.attr("__dict__"));
  for (const auto& [key, value] : nb::borrow<nb::dict>(members)) {
    const std::string of = str_of(key);
    if (!of.starts_with('_') && value.type().is(property)) {
      const nb::object set = value.attr("fset");
      if (set.is_none()) continue;
      PyMethodDef& definition = defined(set, name + "." + of, name + "." + of);
      visible.get()[count - 1].parameters[1].name = "value";
      const nb::object made = nb::steal(PyCFunction_NewEx(&definition, nullptr, nullptr));
      type.attr(of.c_str()) = property(nb::object(value.attr("fget")), made, nb::none(),
                                       nb::object(value.attr("__doc__")));
      continue;
    }
    if (of.starts_with('_')) continue;
    if (value.type().is(core.attr("function").type())) {  // a static method
      PyMethodDef& definition = defined(value, name + "." + of, name + "." + of);
      type.attr(of.c_str()) = nb::steal(PyCFunction_NewEx(&definition, nullptr, nullptr));
      continue;
    }
    if (!value.type().is(method)) continue;
    const nb::object signatures = value.attr("__nb_signature__");
    const std::string signature = str_of(nb::object(signatures[0][0]));
    const std::vector<Parameter> list = parameters_of(signature, nb::object(signatures[0][2]));
    const bool takes_all = list.size() == 3 && list[1].name == "*args" && list[2].name[0] == '*';
    if (takes_all || nb::len(signatures) != 1) continue;
    PyMethodDef& definition = defined(value, name + "." + of, name + "." + of);
    PyObject* const made =
        PyDescr_NewMethod(reinterpret_cast<PyTypeObject*>(type.ptr()), &definition);
    if (!made) throw nb::python_error();
    type.attr(of.c_str()) = nb::steal(made);
  }
}

// -- constructors and calls ----------------------------------------------------------------------

// nanobind finds them without the attributes of the class.

// The parameters of a method that nanobind made for this very class.
std::vector<Parameter> parameters_in(nb::handle type, const char* method) {
  const nb::object found = type.attr("__dict__").attr("get")(method);
  if (found.is_none() || !nb::hasattr(found, "__nb_signature__")) return {};
  const nb::object overload = found.attr("__nb_signature__")[0];
  const std::string signature = nb::cast<std::string>(nb::object(overload[0]));
  return parameters_of(signature, nb::object(overload[2]));
}

constinit GlobalObject calls;  // a list of functions: nanobind refers to them without references

void keep(nb::handle type, const char* method) {
  calls.get().attr("append")(nb::object(type.attr("__dict__")[method]));
}

// An overload of a call for the arguments that no other one takes.
void refuse_other_arguments(nb::handle type, const char* advice) {
  const std::vector<Parameter> list = parameters_in(type, "__call__");
  if (list.empty()) return;
  const std::string name = nb::cast<std::string>(type.attr("__name__"));
  nb::cpp_function_def(
      [name, list, advice](nb::handle self, nb::args given, nb::kwargs named) {
        throw TypeError("[" + name + "] " +
                        wrong_argument(list, with_self(self.ptr(), given.ptr()), named) + advice);
      },
      nb::scope(type), nb::name("__call__"), nb::is_method());
}

// The text for a class that no call makes.
std::string refusal_of(const std::string& name) {
  return "[" + name + "] got a call of the class, expected one of the functions that make it." +
         (name == "NamedLinop"
              ? " Try one such as Dense(), or a class derived from NamedLinop that has fn."
              : "");
}

// Puts a function around a constructor that names the argument in errors, as for other functions.
void show_constructor(nb::handle type) {
  // An exception has its own one.
  if (!parameters_in(type, "__new__").empty() || nb::hasattr(type, "args")) return;
  const std::string name = nb::cast<std::string>(type.attr("__name__"));
  const auto define = [&](auto call) {
    nb::cpp_function_def(call, nb::scope(type), nb::name("__init__"), nb::is_method());
    keep(type, "__init__");
  };
  if (parameters_in(type, "__init__").empty()) {
    return define(
        [text = refusal_of(name)](nb::handle, nb::args, nb::kwargs) { throw TypeError(text); });
  }
  const nb::object bound = type.attr("__dict__")["__init__"];
  PyMethodDef& definition = defined(bound, name + ".__init__", name);
  const std::size_t function = static_cast<std::size_t>(&definition - definitions.data());
  nb::delattr(type, "__init__");
  define([function](nb::handle self, nb::args given, nb::kwargs named) {
    const nb::object all = with_self(self.ptr(), given.ptr());
    if (!nb::steal(call_named(function, all, named)).is_valid()) throw nb::python_error();
  });
  PyObject* const made =
      PyDescr_NewMethod(reinterpret_cast<PyTypeObject*>(type.ptr()), &definition);
  if (!made) throw nb::python_error();
  type.attr("__init__") = nb::steal(made);  // with its signature
}

void document_class(nb::handle type, const std::string& key) {
  const nb::object present = type.attr("__doc__");
  const std::string doc = docstring(key, present.is_none() ? "" : str_of(present),
                                    parameter_lines(key, parameters_in(type, "__init__")), "None");
  if (!doc.empty()) type.attr("__doc__") = doc;
}

// Classes exist once, and are shown once.
constinit Global<std::set<PyObject*>> shown_classes;

// Replaces the functions of this module in a namespace, and documents its classes.
void show(nb::dict scope, const std::string& module, const std::string& prefix) {
  const nb::object name_of_module = nb::cast(module);
  const nb::object kind =
      nb::borrow(nb::module_::import_("palimpsest._core").attr("function").type());
  std::vector<std::pair<nb::object, nb::object>> changed;
  std::vector<nb::object> classes;
  for (const auto& [name, value] : scope) {
    const std::string text = nb::cast<std::string>(name);
    if (text.starts_with('_')) continue;
    if (value.type().is(kind)) {
      changed.emplace_back(nb::borrow(name), shown_function(value, prefix + text, name_of_module));
    } else if (PyType_Check(value.ptr())) {
      const std::string from = str_of(nb::object(value.attr("__module__")));
      const bool is_own = from.starts_with("palimpsest._core") || from == "palimpsest.errors";
      if (is_own && shown_classes.get().insert(value.ptr()).second) {
        document_class(value, prefix + text);
        if (!std::getenv("PALIMPSEST_STUBS")) classes.push_back(nb::borrow(value));
      }
    }
  }
  for (const auto& [name, value] : changed) scope[name] = value;
  for (const nb::object& type : classes) {
    show_methods(type);
    refuse_other_arguments(type, type.is(nb::type<LinopObject>()) ? " Try A.apply(x, out)." : "");
    show_constructor(type);
  }
}

}  // namespace

void bind_visible(nb::module_& m) {
  m.def("_show", show, "scope"_a, "module"_a, "prefix"_a);
  calls.set(nb::list());
  at_end([] {
    calls.clear();
    for (PyObject*& f : functions) Py_CLEAR(f);
  });
}

}  // namespace palimpsest::python
