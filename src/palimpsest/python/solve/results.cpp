// SPDX-License-Identifier: Apache-2.0
// Results, histories and plans of solvers.
#include <algorithm>
#include <array>

#include "palimpsest/python/arrays.hpp"
#include "palimpsest/python/families.hpp"
#include "palimpsest/python/plan_object.hpp"
#include "palimpsest/python/solve/result_object.hpp"

namespace palimpsest::python {
namespace {

struct HistoryObject {
  std::vector<Record> records;
};

template <class T>
Shown<"NDArray[Any]"> column(const HistoryObject& h, T Record::*field) {
  Tensor values =
      Tensor::empty({static_cast<index_t>(h.records.size())},
                    dtype_of<std::conditional_t<std::is_same_v<T, int>, std::int64_t, T>>);
  for (std::size_t i = 0; i < h.records.size(); ++i) {
    using Item = std::conditional_t<std::is_same_v<T, int>, std::int64_t, T>;
    values.set<Item>({static_cast<index_t>(i)}, static_cast<Item>(h.records[i].*field));
  }
  return export_array(std::move(values), Kind::numpy);
}

Shown<"NDArray[Any]"> numbers_of(const HistoryObject& h) {
  constexpr std::size_t n = std::tuple_size_v<decltype(Record::numbers)>;
  Tensor values = Tensor::empty({static_cast<index_t>(h.records.size()), n}, DType::float64);
  auto* out = values.mutable_data<double>();
  for (const Record& record : h.records) out = std::ranges::copy(record.numbers, out).out;
  return export_array(std::move(values), Kind::numpy);
}

// The lines of the memory that is held, then the plan of an iteration.
std::string report(const SolvePlan& p) {
  std::string text = "peak " + std::to_string(p.peak_bytes) + " bytes";
  const std::pair<const char*, index_t> parts[] = {{"state", p.state_bytes},
                                                   {"setup", p.setup_bytes},
                                                   {"step", p.step_bytes},
                                                   {"result", p.result_bytes},
                                                   {"tiles", p.tile_bytes},
                                                   {"operators, besides", p.operator_bytes},
                                                   {"files, besides", p.streamed_bytes}};
  for (const auto& [name, bytes] : parts) {
    if (bytes > 0) text += "\n  " + std::string(name) + ": " + std::to_string(bytes) + " bytes";
  }
  if (p.step.steps.empty()) return text;  // of a result
  return text + "\none iteration:\n" + p.step.to_string();
}

// The solution, as the kind of array that b was.
Shown<"Any"> solution(const ResultObject& r) {
  if (!r.result.x.defined()) return nb::none();
  if (!r.labels) return export_in_place(Tensor(r.result.x), r.kind);
  const nb::handle labels = r.labels->get();
  return nb::module_::import_("palimpsest.interop.xarray")
      .attr("solution")(labels[0], export_in_place(Tensor(r.result.x), Kind::numpy), labels[1]);
}

// -- pickles: all values of a result, and values set on it ----------------------------------------

std::vector<std::string> names_of(const std::vector<Status>& list) {
  std::vector<std::string> names;
  for (Status s : list) names.emplace_back(name_of(s));
  return names;
}

nb::dict counts_of(const SolveResult& result) {
  nb::dict counts;
  for (const auto& [name, n] : result.applications) counts[nb::cast(name)] = nb::cast(n);
  return counts;
}

nb::object reduced(nb::handle self) {
  const ResultObject& r = nb::cast<ResultObject&>(self);
  nb::list history;
  for (const Record& record : r.result.history) {
    history.append(nb::make_tuple(record.iteration, record.residual, record.objective,
                                  record.seconds, record.numbers[0], record.numbers[1],
                                  record.numbers[2], record.numbers[3]));
  }
  const nb::object labels =
      r.labels ? nb::borrow(r.labels->get()) : nb::object(nb::make_tuple(nb::none(), nb::none()));
  return nb::make_tuple(
      nb::module_::import_("palimpsest._pickles").attr("result_of_state"),
      nb::make_tuple(r.result.x.defined() ? to_python(r.result.x) : nb::none(),
                     static_cast<int>(r.kind), nb::object(labels[0]), nb::object(labels[1]),
                     std::string(name_of(r.result.status)), r.result.iterations, history,
                     counts_of(r.result), r.result.seconds, r.result.peak_bytes,
                     names_of(r.result.batch_status), r.result.batch_iterations, r.result.reason),
      self.attr("__dict__"));
}

Status status_named(std::string_view name) {
  int i = 0;
  while (name_of(static_cast<Status>(i)) != name) ++i;
  return static_cast<Status>(i);
}

ResultObject result_again(std::optional<Tensor> x, int kind, nb::handle A, nb::handle b,
                          const std::string& status, int iterations, nb::handle history,
                          nb::dict applications, double seconds, index_t peak_bytes,
                          const std::vector<std::string>& batch_status,
                          std::vector<int> batch_iterations, const std::string& reason) {
  ResultObject r{.result = {}, .kind = static_cast<Kind>(kind)};
  if (x) r.result.x = *x;
  if (!A.is_none()) r.labels = shared_object(nb::make_tuple(A, b));
  r.result.status = status_named(status);
  r.result.iterations = iterations;
  for (nb::handle item : history) {
    r.result.history.push_back({.iteration = nb::cast<int>(nb::object(item[0])),
                                .residual = nb::cast<double>(nb::object(item[1])),
                                .objective = nb::cast<double>(nb::object(item[2])),
                                .seconds = nb::cast<double>(nb::object(item[3]))});
    std::array<double, 4>& numbers = r.result.history.back().numbers;
    if (nb::len(item) < 4 + numbers.size()) continue;  // of earlier versions
    for (std::size_t k = 0; k < numbers.size(); ++k) {
      numbers[k] = nb::cast<double>(nb::object(item[4 + k]));
    }
  }
  for (const auto& [name, n] : applications) {
    r.result.applications[nb::cast<std::string>(name)] = nb::cast<std::int64_t>(n);
  }
  r.result.seconds = seconds;
  r.result.peak_bytes = peak_bytes;
  for (const std::string& name : batch_status) r.result.batch_status.push_back(status_named(name));
  r.result.batch_iterations = std::move(batch_iterations);
  r.result.reason = reason;
  return r;
}

}  // namespace

void bind_results(nb::module_& m) {
  nb::class_<HistoryObject>(m, "History", "One record per iteration, as arrays.")
      .def_prop_ro("iteration",
                   [](const HistoryObject& h) { return column(h, &Record::iteration); })
      .def_prop_ro("residual", [](const HistoryObject& h) { return column(h, &Record::residual); })
      .def_prop_ro("objective",
                   [](const HistoryObject& h) { return column(h, &Record::objective); })
      .def_prop_ro("seconds", [](const HistoryObject& h) { return column(h, &Record::seconds); })
      .def_prop_ro("numbers", numbers_of, "Numbers of the solver itself, four a row.")
      .def(
          "plot",
          [](nb::handle self, nb::handle ax) {
            return nb::module_::import_("palimpsest.plotting").attr("plot_history")(self, ax);
          },
          "ax"_a.none() = nb::none(),
          "Draws the residual over the iterations with matplotlib; returns the axes.")
      .def("__len__", [](const HistoryObject& h) { return h.records.size(); });
  nb::class_<ResultObject>(m, "SolveResult", nb::dynamic_attr(), "The result of a solver.")
      .def_prop_ro(
          "x", [](const ResultObject& r) { return solution(r); },
          "The solution, as the kind of array of b.")
      .def_prop_ro("status",
                   [](const ResultObject& r) { return std::string(name_of(r.result.status)); })
      .def_prop_ro(
          "reason", [](const ResultObject& r) { return r.result.reason; },
          "The test or limit that ended the solve, as a sentence.")
      .def_prop_ro("converged",
                   [](const ResultObject& r) { return r.result.status == Status::converged; })
      .def_prop_ro("iterations", [](const ResultObject& r) { return r.result.iterations; })
      .def_prop_ro("history", [](const ResultObject& r) { return HistoryObject{r.result.history}; })
      .def_prop_ro("seconds", [](const ResultObject& r) { return r.result.seconds; })
      .def_prop_ro("peak_bytes", [](const ResultObject& r) { return r.result.peak_bytes; })
      .def_prop_ro(
          "plan", [](const ResultObject& r) -> Shown<"SolvePlan | None"> {
            return r.result.plan ? nb::cast(*r.result.plan) : nb::object(nb::none());
          },
          "The memory that the solver planned, without the steps. None in a copy of a result.")
      .def_prop_ro(
          "applications", [](const ResultObject& r) { return counts_of(r.result); },
          "How often each operator was applied.")
      .def_prop_ro("batch_status",
                   [](const ResultObject& r) { return names_of(r.result.batch_status); })
      .def_prop_ro("batch_iterations",
                   [](const ResultObject& r) { return r.result.batch_iterations; })
      .def("__reduce__", reduced)
      .def("__copy__", [](nb::handle self) { return nb::borrow(self); })
      .def("__repr__", [](const ResultObject& r) {
        return "SolveResult(" + std::string(name_of(r.result.status)) + " after " +
               std::to_string(r.result.iterations) + " iterations)";
      });
  m.def("_result_again", result_again, "x"_a.none(), "kind"_a, "A"_a.none(), "b"_a.none(),
        "status"_a, "iterations"_a, "history"_a, "applications"_a, "seconds"_a, "peak_bytes"_a,
        "batch_status"_a, "batch_iterations"_a, "reason"_a = "");
  nb::class_<SolvePlan>(m, "SolvePlan", "Memory that a solve will take, in bytes.")
      .def_ro("peak_bytes", &SolvePlan::peak_bytes)
      .def_ro("state_bytes", &SolvePlan::state_bytes)
      .def_ro("setup_bytes", &SolvePlan::setup_bytes)
      .def_ro("step_bytes", &SolvePlan::step_bytes)
      .def_ro("result_bytes", &SolvePlan::result_bytes)
      .def_ro("tile_bytes", &SolvePlan::tile_bytes)
      .def_ro("operator_bytes", &SolvePlan::operator_bytes)
      .def_ro("streamed_bytes", &SolvePlan::streamed_bytes)
      .def_prop_ro("total_bytes", [](const SolvePlan& p) { return p.total_bytes(); })
      .def_ro("tiles", &SolvePlan::tiles)
      .def_prop_ro("sizes", [](const SolvePlan& p) { return p.sizes; })
      .def_prop_ro(
          "step",
          [](const SolvePlan& p) { return PlanObject{std::make_shared<const Plan>(p.step)}; })
      .def(
          "explain", [](const SolvePlan& p) { nb::print(report(p).c_str()); }, "Prints the report.")
      .def(
          "to_svg", [](const SolvePlan& p) { return p.step.to_svg(); },
          "The memory of one iteration.")
      .def("__str__", report)
      .def("__repr__", [](const SolvePlan& p) {
        return "SolvePlan(peak " + std::to_string(p.peak_bytes) + " bytes)";
      });
}

}  // namespace palimpsest::python
