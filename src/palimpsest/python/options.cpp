// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/python/options.hpp"

#include <charconv>
#include <cmath>
#include <cstring>
#include <set>

namespace palimpsest::python {
namespace {

// The argument of a callback, valid while it runs.
struct InfoObject {
  const SolveInfo* info;
  const SolveInfo& get() const {
    if (!info) throw StateError("[SolveInfo] got a callback that is over. Keep what you need.");
    return *info;
  }
};

bool call_with_info(nb::handle f, const SolveInfo& info) {
  nb::object seen = nb::cast(InfoObject{&info});
  const nb::object goes_on = f(seen);
  nb::cast<InfoObject&>(seen).info = nullptr;
  if (goes_on.is_none()) return true;
  const int is_true = PyObject_IsTrue(goes_on.ptr());
  if (is_true < 0) throw nb::python_error();
  return is_true != 0;
}

}  // namespace

std::shared_ptr<GlobalObject> shared_object(nb::object object) {
  static constinit Global<std::set<GlobalObject*>> all;
  static bool ends = false;
  if (!ends) {
    ends = true;
    at_end([] {
      const std::set<GlobalObject*> last = all.get();  // the end of one may end others
      for (GlobalObject* kept : last) {
        if (all.get().contains(kept)) kept->clear();
      }
    });
  }
  auto* const made = new GlobalObject();
  made->set(std::move(object));
  all.get().insert(made);
  return {made, [](GlobalObject* last) {
            if (!nb::is_alive()) return;
            const Locked locked;
            all.get().erase(last);
            last->clear();
            delete last;
          }};
}

const char* keyword_of(const char* field) {
  static constexpr std::pair<std::string_view, const char*> words[] = {
      {"budget_bytes", "budget"},       {"is_mutable", "mutable"}, {"in", "in_"}, {"as", "as_"},
      {"iterations", "max_iterations"}, {"lambda", "lam"}};
  for (const auto& [name, word] : words) {
    if (name == field) return word;
  }
  return field;
}

std::function<bool(const SolveInfo&)> as_callback(nb::handle f) {
  if (!PyCallable_Check(f.ptr())) {
    throw TypeError("[callback] got " + class_name(f) + ", expected a function.");
  }
  return [f](const SolveInfo& info) {
    const Locked locked;
    return call_with_info(f, info);
  };
}

std::function<bool(const SolveInfo&)> with_progress(
    nb::handle progress, int iterations, std::function<bool(const SolveInfo&)> callback) {
  if (!progress.is_valid() || progress.is_none()) progress = chosen("progress");
  if (progress.is_none() || progress.ptr() == Py_False) return callback;
  const nb::object report =
      nb::module_::import_("palimpsest._progress").attr("reporter")(progress, iterations);
  return [report = shared_object(report), callback = std::move(callback)](const SolveInfo& info) {
    {
      const Locked locked;
      call_with_info(report->get(), info);
    }
    return !callback || callback(info);
  };
}

std::string literal_of(double value) {
  if (std::isinf(value)) return value > 0 ? "float('inf')" : "-float('inf')";
  if (std::isnan(value)) return "float('nan')";
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, value);
  std::string written(text, end.ptr);
  if (written.find_first_of(".e") == std::string::npos) written += ".0";
  return written;
}

void refuse_keyword(nb::handle object, const char* name, const char* expected) {
  const bool is_integer = PyLong_Check(object.ptr()) && !PyBool_Check(object.ptr());
  if (is_integer && std::string_view(expected) == "an integer") {
    throw ValueError("[" + std::string(name) + "] got " + nb::cast<std::string>(nb::str(object)) +
                     ", expected an integer " +
                     (std::string_view(name) == "seed" ? "from 0 to 2^64 - 1." : "that fits."));
  }
  throw TypeError("[" + std::string(name) + "] got " + class_name(object) + ", expected " +
                  expected + ".");
}

nb::object KeywordReader::find(const char* name) {
  known_.push_back(name);
  if (!given_.contains(name)) return {};
  ++taken_;
  return given_[name];
}

nb::object KeywordReader::find_renamed(std::string_view old, const char* name) {
  const nb::object found = find(name);
  if (old != "iterations" || !given_.contains("iterations")) return found;
  if (found.is_valid()) {
    throw TypeError("[" + std::string(name) + "] got iterations, too, expected one of the two.");
  }
  ++taken_;
  if (PyErr_WarnEx(PyExc_DeprecationWarning, "iterations is now called max_iterations", 1) < 0) {
    throw nb::python_error();
  }
  return given_["iterations"];
}

void KeywordReader::expect_none_left(const char* who) const {
  if (taken_ == given_.size()) return;
  for (const auto& [key, value] : given_) {
    const std::string name = nb::cast<std::string>(key);
    std::string all;
    bool is_known = false;
    for (const char* known : known_) {
      all += (all.empty() ? "" : ", ") + std::string(known);
      is_known |= name == known;
    }
    if (!is_known) {
      throw TypeError("[" + std::string(who) + "] got an unknown option '" + name +
                      "', expected one of: " + all + ".");
    }
  }
}

void KeywordReader::take_checkpoint(nb::handle path, std::optional<CheckpointOptions>& option) {
  const nb::object seconds = find("checkpoint_every_s");
  const nb::object iterations = find("checkpoint_every_iterations");
  if (!path.is_valid() || path.is_none()) return;
  option.emplace();
  option->path = text_of(path, "the path of a checkpoint");
  if (seconds.is_valid()) {
    option->every_s = value_of_keyword<double>(seconds, "checkpoint_every_s");
  }
  if (iterations.is_valid()) {
    option->every_iterations = value_of_keyword<int>(iterations, "checkpoint_every_iterations");
  }
}

void bind_options(nb::module_& m) {
  nb::class_<InfoObject>(m, "SolveInfo", "State of an iteration, during a callback.")
      .def_prop_ro(
          "iteration", [](const InfoObject& i) { return i.get().iteration(); },
          "Number of the iteration, from 1 on.")
      .def_prop_ro(
          "residual", [](const InfoObject& i) { return i.get().residual(); },
          "The number compared with the tolerance.")
      .def_prop_ro(
          "objective", [](const InfoObject& i) { return i.get().objective(); },
          "The minimized function; NaN if unknown.")
      .def_prop_ro(
          "seconds", [](const InfoObject& i) { return i.get().seconds(); },
          "Seconds since the start.")
      .def_prop_ro(
          "seconds_left", [](const InfoObject& i) { return i.get().seconds_left(); },
          "Seconds until the time limit; infinite without one.")
      .def_prop_ro(
          "numbers", [](const InfoObject& i) -> Shown<"tuple[float, float, float, float]"> {
            const auto& n = i.get().numbers();
            return nb::make_tuple(n[0], n[1], n[2], n[3]);
          },
          "Numbers of the solver itself.")
      .def_prop_ro(
          "x", [](const InfoObject& i) { return to_python(i.get().x()); },
          "The present iterate, a Tensor that stays as it is.")
      .def(
          "__array__",
          [](const InfoObject& i, nb::handle dtype, nb::handle copy) -> Shown<"NDArray[Any]"> {
            return to_python(i.get().x()).attr("__array__")(dtype, copy);
          },
          "dtype"_a.none() = nb::none(), "copy"_a.none() = nb::none(),
          "x, so that callbacks of SciPy, which take the iterate, can be used.");
}

}  // namespace palimpsest::python
