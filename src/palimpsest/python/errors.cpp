// SPDX-License-Identifier: Apache-2.0
// Errors of the library as exceptions of Python.
#include "palimpsest/python/errors.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <exception>
#include <stdexcept>

#include "palimpsest/base/error.hpp"
#include "palimpsest/distributed/team.hpp"
#include "palimpsest/graph/inconsistency.hpp"
#include "palimpsest/inspect/debug/debug_errors.hpp"
#include "palimpsest/inspect/debug/nan_guard.hpp"
#include "palimpsest/python/families.hpp"

namespace palimpsest::python {
namespace {

// A class: its name, that of the class it is derived from, and the built-in class it is besides.
struct ErrorClass {
  const char* name;
  const char* base;
  PyObject* const* built_in;
  bool (*is)(const Error& error);
};

bool is_about_missing_file(const Error& error) {
  return dynamic_cast<const IoError*>(&error) &&
         std::string_view(error.what()).find("no such file or directory") != std::string_view::npos;
}

#define PALIMPSEST_ERROR(name, base, built_in)                                  \
  ErrorClass {                                                                  \
#name, #base, built_in,                                                     \
        [](const Error& e) { return dynamic_cast<const name*>(&e) != nullptr; } \
  }
// Bases first.
const ErrorClass kClasses[] = {
    {"Error", nullptr, &PyExc_Exception, [](const Error&) { return true; }},
    PALIMPSEST_ERROR(ValueError, Error, &PyExc_ValueError),
    PALIMPSEST_ERROR(ShapeError, ValueError, nullptr),
    PALIMPSEST_ERROR(NameError, ValueError, &PyExc_NameError),
    PALIMPSEST_ERROR(OverflowError, ValueError, &PyExc_OverflowError),
    PALIMPSEST_ERROR(UnusedInputError, ValueError, nullptr),
    PALIMPSEST_ERROR(DisconnectedError, ValueError, nullptr),
    PALIMPSEST_ERROR(TypeError, Error, &PyExc_TypeError),
    PALIMPSEST_ERROR(DTypeError, TypeError, nullptr),
    PALIMPSEST_ERROR(DeviceError, TypeError, nullptr),
    PALIMPSEST_ERROR(AssertionError, Error, &PyExc_AssertionError),
    PALIMPSEST_ERROR(NanGuardError, AssertionError, nullptr),
    PALIMPSEST_ERROR(AliasError, Error, &PyExc_ValueError),
    PALIMPSEST_ERROR(SplitError, Error, &PyExc_ValueError),
    PALIMPSEST_ERROR(NotLinearError, Error, &PyExc_ValueError),
    PALIMPSEST_ERROR(MissingInputError, Error, &PyExc_ValueError),
    PALIMPSEST_ERROR(IoError, Error, &PyExc_OSError),
    PALIMPSEST_ERROR(FormatError, IoError, nullptr),
    PALIMPSEST_ERROR(CommunicationError, IoError, nullptr),
    {"NotFoundError", "IoError", &PyExc_FileNotFoundError, is_about_missing_file},
    PALIMPSEST_ERROR(OutOfMemory, Error, &PyExc_MemoryError),
    PALIMPSEST_ERROR(BudgetError, OutOfMemory, nullptr),
    PALIMPSEST_ERROR(NotSupported, Error, &PyExc_NotImplementedError),
    PALIMPSEST_ERROR(StateError, Error, &PyExc_RuntimeError),
    PALIMPSEST_ERROR(OpError, Error, &PyExc_RuntimeError),
    PALIMPSEST_ERROR(CycleError, Error, &PyExc_RuntimeError),
    PALIMPSEST_ERROR(ReplaceError, Error, &PyExc_RuntimeError),
    PALIMPSEST_ERROR(InconsistencyError, Error, &PyExc_RuntimeError),
    PALIMPSEST_ERROR(InternalError, Error, &PyExc_RuntimeError),
    PALIMPSEST_ERROR(DebugModeError, Error, &PyExc_RuntimeError),
    PALIMPSEST_ERROR(InvalidValueError, DebugModeError, nullptr),
};
#undef PALIMPSEST_ERROR
constexpr std::size_t kCount = std::size(kClasses);

// The classes of Python, which live as long as the interpreter.
std::array<PyObject*, kCount> classes{};

std::size_t position_of(std::string_view name) {
  std::size_t i = 0;
  while (name != kClasses[i].name) ++i;
  return i;
}

// Lines behind the first one of a message, as Python 3.11 and later show notes.
void add_notes(nb::python_error& error, const std::string& message) {
  const std::size_t end = message.find('\n');
  if (end == std::string::npos) return;
  const nb::object dedent = nb::module_::import_("textwrap").attr("dedent");
  add_note(error, nb::object(dedent(message.substr(end + 1))));
}

// Raises an exception of Python again that `error` was thrown from, with the notes added on its
// way. Returns false if there is none.
bool raise_nested(const std::exception& error) {
  const auto* const nested = dynamic_cast<const std::nested_exception*>(&error);
  if (!nested || !nested->nested_ptr()) return false;
  try {
    nested->rethrow_nested();
  } catch (nb::python_error& inner) {
    add_notes(inner, error.what());
    inner.restore();
    return true;
  } catch (const std::exception& inner) {
    return raise_nested(inner);
  } catch (...) {
    return false;
  }
}

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t at = text.find(from); at != std::string::npos;
       at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

// `Reaction::ignore` is the text 'ignore', `Options::profile` a keyword, `Storage::make()` a
// method.
void replace_scopes(std::string& text) {
  for (std::size_t at = text.find("::"); at != std::string::npos; at = text.find("::", at)) {
    std::size_t first = at, last = at + 2;
    while (first > 0 && is_word(text[first - 1])) --first;
    while (last < text.size() && is_word(text[last])) ++last;
    const std::string scope = text.substr(first, at - first);
    const std::string name = text.substr(at + 2, last - at - 2);
    const bool is_call = last < text.size() && text[last] == '(';
    const std::string word = is_call                      ? scope + "." + name
                             : scope.ends_with("Options") ? name
                                                          : "'" + name + "'";
    text.replace(first, last - first, word);
    at = first + word.size();
  }
}

// Translates the text between braces: `{.shape = x}` is the keyword shape=x, {{"N", 4}} the dict
// {"N": 4}, and {2, 3} a tuple. A dict of Python stays a dict.
std::string braces_in_python(std::string_view inner) {
  if (inner.starts_with('.')) return std::string(inner);
  if (inner.find(':') != std::string_view::npos) return "{" + std::string(inner) + "}";
  if (!inner.starts_with('{')) return "(" + std::string(inner) + ")";
  std::string dict = "{";
  for (std::size_t i = 0; i < inner.size(); ++i) {
    if (inner[i] != '{' && inner[i] != '}') dict += inner[i];
    if (inner[i] != '{') continue;
    const std::size_t comma = std::min(inner.find(',', i), inner.size());
    dict += std::string(inner.substr(i + 1, comma - i - 1)) + ":";
    i = comma;
  }
  return dict + "}";
}

void replace_braces(std::string& text) {
  for (std::size_t at = text.find('{'); at != std::string::npos; at = text.find('{', at)) {
    std::size_t end = at;
    for (int depth = 0; end < text.size(); ++end) {
      depth += (text[end] == '{') - (text[end] == '}');
      if (depth == 0) break;
    }
    if (end == text.size()) return;
    const std::string inner = braces_in_python(std::string_view(text).substr(at + 1, end - at - 1));
    text.replace(at, end - at + 1, inner);
    at += inner.size();
  }
  for (std::size_t at = text.find('.'); at != std::string::npos; at = text.find('.', at + 1)) {
    // The dot of a designator, ` .value` or `(.value`; not of a method or a number.
    const bool begins = at > 0 && (text[at - 1] == ' ' || text[at - 1] == '(');
    std::size_t end = at + 1;
    while (end < text.size() && is_word(text[end])) ++end;
    const bool is_name = end > at + 1 && !std::isdigit(static_cast<unsigned char>(text[at + 1])) &&
                         (end == text.size() || text[end] != '(');
    if (begins && is_name) text.erase(at, 1);
  }
}

}  // namespace

// The advice at the end of a message is written in C++; users of Python are told theirs.
void add_note(nb::python_error& error, nb::handle note) {
  const nb::object value = nb::borrow(error.value());
  if (!nb::hasattr(value, "__notes__")) nb::setattr(value, "__notes__", nb::list());
  const nb::object notes = value.attr("__notes__");
  if (PyList_Check(notes.ptr())) notes.attr("append")(note);
}

std::string in_python(const std::string& message) {
  const std::size_t start = message.rfind("Try ");
  if (start == std::string::npos) return message;
  const std::size_t end = std::min(message.find('\n', start), message.size());
  std::string advice = message.substr(start, end - start);
  replace_all(advice, "std::nullopt", "None");
  replace_all(advice, "Device{}", "'cpu'");
  replace_all(advice, "ConfigScope(", "config.using(");
  replace_all(advice, " x.to(", " x.astype(");
  replace_all(advice, "at({...})", "t[i, j].item()");
  replace_all(advice, " = true", "=True");
  replace_all(advice, " = false", "=False");
  replace_all(advice, " = ", "=");
  replace_all(advice, "budget_bytes", "budget");
  replace_all(advice, "is_mutable", "mutable");
  replace_scopes(advice);
  replace_braces(advice);
  return message.substr(0, start) + advice + message.substr(end);
}

namespace {

void raise(const Error& error) {
  std::size_t i = kCount - 1;
  while (!kClasses[i].is(error)) --i;
  PyErr_SetString(classes[i], in_python(error.what()).c_str());
}

void translate(const std::exception_ptr& error, void*) {
  try {
    std::rethrow_exception(error);
  } catch (const Error& e) {
    if (!raise_nested(e)) raise(e);
  } catch (const std::length_error&) {
    raise(OverflowError("[array] got a size that no memory has, expected a smaller one."));
  }
}

}  // namespace

void bind_errors(nb::module_& m) {
  nb::module_ errors = m.def_submodule("errors", "Exceptions of the library.");
  for (std::size_t i = 0; i < kCount; ++i) {
    const ErrorClass& c = kClasses[i];
    nb::object bases;
    if (!c.base) {
      bases = nb::make_tuple(nb::handle(*c.built_in));
    } else {
      const nb::handle base = classes[position_of(c.base)];
      bases = c.built_in ? nb::make_tuple(base, nb::handle(*c.built_in)) : nb::make_tuple(base);
    }
    const std::string name = std::string("palimpsest.errors.") + c.name;
    classes[i] = PyErr_NewException(name.c_str(), bases.ptr(), nullptr);
    if (!classes[i]) throw nb::python_error();
    errors.attr(c.name) = nb::handle(classes[i]);
  }
  PyObject* const warning = PyErr_NewExceptionWithDoc(
      "palimpsest.errors.PalimpsestWarning",
      "Something in the user's program that is likely wrong.", PyExc_UserWarning, nullptr);
  if (!warning) throw nb::python_error();
  errors.attr("PalimpsestWarning") = nb::steal(warning);
  nb::register_exception_translator(translate);
}

}  // namespace palimpsest::python
