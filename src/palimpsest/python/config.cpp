// SPDX-License-Identifier: Apache-2.0
// Configuration, modes, threads.
#include "palimpsest/base/config.hpp"

#include <thread>

#include "palimpsest/base/byte_size.hpp"
#include "palimpsest/inspect/debug/debug_mode.hpp"
#include "palimpsest/inspect/debug/monitor_mode.hpp"
#include "palimpsest/inspect/debug/nan_guard.hpp"
#include "palimpsest/inspect/mode_named.hpp"
#include "palimpsest/python/arrays.hpp"
#include "palimpsest/python/families.hpp"
#include "palimpsest/python/held_objects.hpp"
#include "palimpsest/python/options.hpp"
#include "palimpsest/python/plan_object.hpp"

namespace palimpsest::python {

PALIMPSEST_NAMES(Reaction, "reaction", "raise", "warn", "ignore")
PALIMPSEST_NAMES(Verbosity, "exception_verbosity", "low", "medium", "high")

Reaction reaction_named(const std::string& name) { return from_python<Reaction>(nb::cast(name)); }

index_t bytes_of(nb::handle object, const char* who) {
  if (PyUnicode_Check(object.ptr())) return parse_bytes(nb::cast<std::string>(object), who);
  const index_t bytes = integer_of(object, "a number of bytes");
  if (bytes < 0) {
    throw ValueError("[" + std::string(who) + "] got fewer than 0, expected a number of bytes.");
  }
  return bytes;
}

// FAST_RUN is another spelling of FastRun.
GivenMode From<GivenMode>::from(nb::handle object) {
  if (nb::isinstance<ModeObject>(object)) return nb::cast<ModeObject&>(object);
  const std::string text = text_of(object, "a Mode or the name of one");
  std::string name;
  bool starts_word = true;
  const bool is_shouted = text.find('_') != std::string::npos ||
                          text.find_first_of("abcdefghijklmnopqrstuvwxyz") == std::string::npos;
  for (char c : text) {
    if (c == '_') {
      starts_word = true;
    } else {
      name += is_shouted && !starts_word ? static_cast<char>(std::tolower(c)) : c;
      starts_word = false;
    }
  }
  return {mode_named(name)};
}

namespace {

// -- fields as objects of Python, and back -------------------------------------------------------

nb::object field(bool value) { return nb::cast(value); }
nb::object field(index_t value) { return nb::cast(value); }
nb::object field(double value) { return nb::cast(value); }
nb::object field(const std::string& value) { return nb::cast(value); }
nb::object field(DType value) { return to_python(value); }
nb::object field(Reaction value) {
  return nb::cast(Names<Reaction>::list[static_cast<int>(value)]);
}
nb::object field(Verbosity value) {
  return nb::cast(Names<Verbosity>::list[static_cast<int>(value)]);
}
nb::object field(const std::optional<index_t>& value) {
  return value ? nb::cast(*value) : nb::none();
}
nb::object field(const std::vector<std::string>& value) { return nb::cast(value); }

index_t not_negative(index_t n, const char* name) {
  if (n >= 0) return n;
  throw ValueError("[config] got " + std::to_string(n) + " for " + name +
                   ", expected no negative number.");
}

template <class T>
T field_of(nb::handle object, const char* name);
template <>
bool field_of(nb::handle object, const char* name) {
  if (!PyBool_Check(object.ptr())) {
    throw TypeError("[config] got " + class_name(object) + " for " + name + ", expected a bool.");
  }
  return object.ptr() == Py_True;
}
template <>
index_t field_of(nb::handle object, const char* name) {
  return not_negative(integer_of(object, name), name);
}
template <>
double field_of(nb::handle object, const char* name) {
  const double value = PyFloat_AsDouble(object.ptr());
  if (value == -1 && PyErr_Occurred()) {
    PyErr_Clear();
    throw TypeError("[config] got " + class_name(object) + " for " + name + ", expected a number.");
  }
  return value;
}
template <>
std::string field_of(nb::handle object, const char* name) {
  const std::string text = text_of(object, name);
  if (std::string_view(name) != "mode") return text;
  return std::string(from_python<GivenMode>(object).value.name());
}
template <>
DType field_of(nb::handle object, const char*) {
  return from_python<DType>(object);
}
template <>
Reaction field_of(nb::handle object, const char*) {
  return from_python<Reaction>(object);
}
template <>
Verbosity field_of(nb::handle object, const char*) {
  return from_python<Verbosity>(object);
}
// The only numbers that may be absent are counts and bytes.
template <>
std::optional<index_t> field_of(nb::handle object, const char* name) {
  if (object.is_none()) return std::nullopt;
  return std::string_view(name) == "budget" ? bytes_of(object) : field_of<index_t>(object, name);
}
template <>
std::vector<std::string> field_of(nb::handle object, const char* name) {
  if (!is_list(object))
    throw TypeError("[config] expected a list of texts for " + std::string(name));
  std::vector<std::string> list;
  for (nb::handle item : object) list.push_back(text_of(item, name));
  return list;
}

// -- keys of Python alone: `returns` and `progress` ---------------------------------------------

struct Choice {
  const void* scope;       // null: the process default, which comes first
  std::thread::id thread;  // of the scope
  std::string key;
  PyObject* value;
};
// Guarded by the lock of the interpreter; empty unless a user chose.
constinit Global<std::vector<Choice>> all_choices;

bool is_of_python(const std::string& key) { return key == "returns" || key == "progress"; }

void check_choice(const std::string& key, nb::handle value) {
  if (key == "returns") {
    kind_named(value);
  } else if (!value.is_none() && !PyBool_Check(value.ptr()) && !PyCallable_Check(value.ptr())) {
    throw TypeError("[config] got " + class_name(value) +
                    " for progress, expected True, False or a function.");
  }
}

void forget_choices(const void* scope, const std::string& key = {}) {
  std::vector<PyObject*> dropped;
  std::erase_if(all_choices.get(), [&](const Choice& choice) {
    if (choice.scope != scope || (!key.empty() && choice.key != key)) return false;
    dropped.push_back(choice.value);
    return true;
  });
  for (PyObject* value : dropped) Py_DECREF(value);
}

// At the end, with scopes that were never left.
void forget_all_choices() {
  for (const Choice& choice : std::exchange(all_choices.get(), {})) Py_DECREF(choice.value);
}

void choose(const void* scope, const std::string& key, nb::handle value) {
  std::vector<Choice>& all = all_choices.get();
  const Choice made{scope, std::this_thread::get_id(), key, value.inc_ref().ptr()};
  all.insert(scope ? all.end() : all.begin(), made);
}

struct ConfigObject {};

[[noreturn]] void throw_unknown(const std::string& key) {
  std::string text;
  try {
    config().get(key);
  } catch (const ValueError& error) {
    text = error.what();
  }
  PyErr_SetString(PyExc_AttributeError, text.c_str());
  throw nb::python_error();
}

nb::object get_field(const ConfigObject&, const std::string& key) {
#define PALIMPSEST_GET(Type, name, ...) \
  if (key == #name) return field(config().name);
  PALIMPSEST_CONFIG_FIELDS(PALIMPSEST_GET)
#undef PALIMPSEST_GET
  if (is_of_python(key)) return nb::borrow(chosen(key));
  throw_unknown(key);
}

void set_field(const ConfigObject&, const std::string& key, nb::handle value) {
  if (is_of_python(key)) {
    check_choice(key, value);
    forget_choices(nullptr, key);
    return choose(nullptr, key, value);
  }
  Config changed = config();
#define PALIMPSEST_SET(Type, name, ...)          \
  if (key == #name) {                            \
    changed.name = field_of<Type>(value, #name); \
    return set_default_config(changed);          \
  }
  PALIMPSEST_CONFIG_FIELDS(PALIMPSEST_SET)
#undef PALIMPSEST_SET
  throw_unknown(key);
}

// Overrides for the calling thread, between __enter__ and __exit__.
class Using {
 public:
  explicit Using(nb::kwargs fields) {
    for (const auto& [key, value] : fields) add(nb::cast<std::string>(key), value);
  }
  Using(const Using&) = delete;
  Using& operator=(const Using&) = delete;
  void enter() {
    scopes_.push_back(std::make_unique<ConfigScope>(overrides_));
    for (std::size_t i = 0; i < held.size(); ++i) {
      choose(scopes_.back().get(), keys_[i], held[i]);
    }
  }
  void leave() {
    if (scopes_.empty()) throw StateError("[config] got a scope that is not entered. Try `with`.");
    forget_choices(scopes_.back().get());
    scopes_.pop_back();
  }
  void set_threads(index_t n) { overrides_.threads = not_negative(n, "threads"); }

  std::vector<nb::object> held;  // the values of keys_

 private:
  void add(const std::string& key, nb::handle value) {
    if (is_of_python(key)) {
      check_choice(key, value);
      keys_.push_back(key);
      held.push_back(nb::borrow(value));
      return;
    }
#define PALIMPSEST_OVERRIDE(Type, name, ...)               \
  if (key == #name) {                                      \
    overrides_.name.emplace(field_of<Type>(value, #name)); \
    return;                                                \
  }
    PALIMPSEST_CONFIG_FIELDS(PALIMPSEST_OVERRIDE)
#undef PALIMPSEST_OVERRIDE
    throw_unknown(key);
  }

  ConfigOverrides overrides_;
  std::vector<std::string> keys_;  // of Python alone
  std::vector<std::unique_ptr<ConfigScope>> scopes_;
};

nb::list copies_of(std::size_t n, const std::function<const Tensor&(std::size_t)>& value) {
  nb::list list;
  for (std::size_t i = 0; i < n; ++i) list.append(export_array(value(i).clone(), Kind::numpy));
  return list;
}

// A function of Python gets copies: the values are gone when it returns. The mode keeps it, or the
// callback itself, if it cannot be referred to weakly.
StepCallback step_callback(nb::handle f, std::vector<nb::object>& held) {
  if (f.is_none()) return {};
  if (PyUnicode_Check(f.ptr()) && str_of(f) == "detect_nan") return detect_nan;
  if (!PyCallable_Check(f.ptr())) {
    throw TypeError("[MonitorMode] got " + class_name(f) +
                    ", expected a function f(step, node, inputs, outputs) or 'detect_nan'.");
  }
  nb::object reference = nb::steal(PyWeakref_NewRef(f.ptr(), nullptr));
  const bool is_weak = reference.is_valid();
  if (is_weak) {
    held.push_back(nb::borrow(f));
  } else {
    PyErr_Clear();
    reference = nb::borrow(f);
  }
  return [is_weak, kept = shared_object(std::move(reference))](
             const FunctionGraph&, int step, const Apply& node, const StepView& view) {
    const Locked locked;
    const nb::object call = is_weak ? kept->get()() : nb::borrow(kept->get());
    call(step, node,
         copies_of(
             view.input_count(), [&](std::size_t i) -> auto& { return view.input(i); }),
         copies_of(
             view.output_count(), [&](std::size_t i) -> auto& { return view.output(i); }));
  };
}

void bind_modes(nb::module_& m) {
  const auto tags = [](nb::args names) {
    Mode::Tags set;
    for (nb::handle name : names) set.insert(text_of(name, "a tag"));
    return set;
  };
  static PyType_Slot slots[] = {PALIMPSEST_SLOTS_OF_HELD(ModeObject), {0, nullptr}};
  nb::class_<ModeObject>(m, "Mode", nb::type_slots(slots),
                         "The rewrites of function(), and an observer of its calls.")
      .def("including",
           [tags](const ModeObject& s, nb::args t) {
             return ModeObject{{s.value.including(tags(t)), s.held}};
           })
      .def("excluding",
           [tags](const ModeObject& s, nb::args t) {
             return ModeObject{{s.value.excluding(tags(t)), s.held}};
           })
      .def("requiring",
           [tags](const ModeObject& s, nb::args t) {
             return ModeObject{{s.value.requiring(tags(t)), s.held}};
           })
      .def_prop_ro(
          "exact",
          [](const ModeObject& s) {
            return ModeObject{{s.value.exact(), s.held}};
          },
          "Without rewrites that reorder arithmetic.")
      .def_prop_ro("name", [](const ModeObject& s) { return std::string(s.value.name()); })
      .def(
          "__eq__",
          [](const ModeObject& a, nb::handle b) {
            return nb::isinstance<ModeObject>(b) && nb::cast<ModeObject&>(b).value == a.value;
          },
          nb::arg("other").none())
      .def("__hash__",
           [](const ModeObject& s) { return std::hash<std::string_view>{}(s.value.name()); })
      .def("__repr__", [](const ModeObject& s) { return std::string(s.value.name()); });
  m.attr("FAST_RUN") = ModeObject{{FastRun()}};
  m.attr("FAST_COMPILE") = ModeObject{{FastCompile()}};
  m.attr("NO_REWRITE") = ModeObject{{NoRewrite()}};
  m.def(
      "DebugMode",
      [](std::optional<GivenMode> base, std::optional<int> patience,
         std::optional<bool> check_finite) {
        DebugOptions options;
        if (base) options.base = base->value;
        if (patience) options.patience = *patience;
        if (check_finite) options.check_finite = *check_finite;
        return ModeObject{{DebugMode(options)}};
      },
      "base"_a.none() = nb::none(), nb::kw_only(), "patience"_a.none() = nb::none(),
      "check_finite"_a.none() = nb::none(), "Functions that check every step, and compare.");
  m.def(
      "NanGuardMode",
      [](std::optional<bool> nan, std::optional<bool> inf, std::optional<bool> big,
         std::optional<GivenMode> base) {
        NanGuardOptions options;
        if (nan) options.nan_is_error = *nan;
        if (inf) options.inf_is_error = *inf;
        if (big) options.big_is_error = *big;
        if (base) options.base = base->value;
        return ModeObject{{NanGuardMode(options)}};
      },
      "nan_is_error"_a.none() = nb::none(), "inf_is_error"_a.none() = nb::none(),
      "big_is_error"_a.none() = nb::none(), "base"_a.none() = nb::none(),
      "Functions that look for NaN, infinities and big numbers.");
  m.def(
      "MonitorMode",
      [](nb::handle pre, nb::handle post, std::optional<GivenMode> base) {
        std::vector<nb::object> held;
        MonitorOptions options{.pre = step_callback(pre, held), .post = step_callback(post, held)};
        if (base) options.base = base->value;
        return ModeObject{{MonitorMode(std::move(options)), std::move(held)}};
      },
      "pre"_a.none() = nb::none(), "post"_a.none() = nb::none(), "base"_a.none() = nb::none(),
      "Functions that call back before and after every step: f(step, node, inputs, outputs).");
}

}  // namespace

nb::handle chosen(std::string_view key) {
  const std::vector<Choice>& all = all_choices.get();
  for (auto choice = all.rbegin(); choice != all.rend(); ++choice) {
    const bool holds = !choice->scope || choice->thread == std::this_thread::get_id();
    if (holds && choice->key == key) return choice->value;
  }
  return nb::handle(Py_None);
}

void bind_config(nb::module_& m) {
  bind_modes(m);
  static PyType_Slot slots[] = {PALIMPSEST_SLOTS_OF_HELD(Using), {0, nullptr}};
  nb::class_<Using>(m, "_Using", nb::type_slots(slots))
      .def("__enter__", [](Using& self) { self.enter(); })
      .def("__exit__", [](Using& self, nb::args) { self.leave(); });
  nb::class_<ConfigObject>(m, "_Config",
                           "Choices of the calling thread; assigning sets the process default.")
      .def("__getattr__", get_field)
      .def("__setattr__", set_field, "key"_a, "value"_a.none())
      .def("__dir__",
           [](const ConfigObject&) {
             nb::list names;
#define PALIMPSEST_NAME(Type, name, ...) names.append(#name);
             PALIMPSEST_CONFIG_FIELDS(PALIMPSEST_NAME)
#undef PALIMPSEST_NAME
             for (const char* name : {"progress", "returns", "using"}) names.append(name);
             return names;
           })
      .def(
          "using", [](const ConfigObject&, nb::kwargs fields) { return new Using(fields); },
          nb::rv_policy::take_ownership, "Overrides fields within a `with` block.");
  m.attr("config") = nb::cast(ConfigObject{});
  at_end(forget_all_choices);
  m.def(
      "threads",
      [](index_t n) {
        auto scope = std::make_unique<Using>(nb::kwargs());
        scope->set_threads(n);
        return scope.release();
      },
      "n"_a, nb::rv_policy::take_ownership, "`with threads(n):` as config.using(threads=n).");
  m.def(
      "thread_count",
      [] {
        const auto all = static_cast<index_t>(std::max(1U, std::thread::hardware_concurrency()));
        return std::min(config().threads.value_or(all), all);
      },
      "Threads that work for one call: config.threads, or all of the machine.");
}

}  // namespace palimpsest::python
