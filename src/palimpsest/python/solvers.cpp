// SPDX-License-Identifier: Apache-2.0
// Solvers: functions of the names and the options of C++.
#include "palimpsest/python/arrays.hpp"
#include "palimpsest/python/families.hpp"
#include "palimpsest/python/keywords.hpp"
#include "palimpsest/python/prox_object.hpp"
#include "palimpsest/solve/conjugate_gradients.hpp"
#include "palimpsest/solve/gradient_methods.hpp"
#include "palimpsest/solve/least_squares.hpp"
#include "palimpsest/solve/objective.hpp"
#include "palimpsest/solve/preconditioner.hpp"
#include "palimpsest/solve/spectrum.hpp"
#include "palimpsest/solve/square_systems.hpp"

namespace palimpsest::python {

PALIMPSEST_NAMES(RecordObjective, "objective", "never", "automatic", "always")
PALIMPSEST_NAMES(Method, "method", "automatic", "cg", "fista", "condat_vu", "admm")
PALIMPSEST_NAMES(PolynomialNorm, "norm", "l2", "linf", "ifista")

}  // namespace palimpsest::python

PALIMPSEST_ARGUMENT(PolynomialNorm)

namespace palimpsest::python {

namespace {

// -- results ------------------------------------------------------------------------------------

struct ResultObject {
  SolveResult result;
  Kind kind;
  nb::object A = {}, b = {};  // of a DataArray b: what x has its labels from
};
struct HistoryObject {
  std::vector<Record> records;
};

template <class T>
nb::object column(const HistoryObject& h, T Record::*field) {
  Tensor values =
      Tensor::empty({static_cast<index_t>(h.records.size())},
                    dtype_of<std::conditional_t<std::is_same_v<T, int>, std::int64_t, T>>);
  for (std::size_t i = 0; i < h.records.size(); ++i) {
    using Item = std::conditional_t<std::is_same_v<T, int>, std::int64_t, T>;
    values.set<Item>({static_cast<index_t>(i)}, static_cast<Item>(h.records[i].*field));
  }
  return export_array(std::move(values), Kind::numpy);
}

// What a callback sees, while it runs.
struct InfoObject {
  const SolveInfo* info;
  const SolveInfo& get() const {
    if (!info) throw StateError("[SolveInfo] got a callback that is over. Keep what you need.");
    return *info;
  }
};

// -- options ------------------------------------------------------------------------------------

// Exceptions of the callback end the solve and arrive as they are.
std::function<bool(const SolveInfo&)> as_callback(nb::handle f) {
  return [f](const SolveInfo& info) {
    const Locked locked;
    nb::object seen = nb::cast(InfoObject{&info});
    const nb::object goes_on = f(seen);
    nb::cast<InfoObject&>(seen).info = nullptr;
    return goes_on.ptr() != Py_False;
  };
}

template <class Options>
void take_common(Keywords& k, Options& o) {
  if constexpr (requires { o.tolerance; }) k.take("tolerance", o.tolerance);
  k.take("max_iterations", o.max_iterations);
  k.take("x0", o.x0);
  if (const nb::object f = k.take("callback"); f.is_valid()) o.callback = as_callback(f);
  k.take("history", o.history);
  if (const nb::object b = k.take("budget"); b.is_valid()) o.budget_bytes = bytes_of(b);
  k.take("callback_every", o.callback_every);
  k.take("time_limit_s", o.time_limit_s);
  k.take("batch", o.batch);
  if (const nb::object c = k.take("checkpoint"); c.is_valid()) {
    CheckpointOptions checkpoint{.path = text_of(c, "the path of a checkpoint")};
    k.take("checkpoint_every_s", checkpoint.every_s);
    k.take("checkpoint_every_iterations", checkpoint.every_iterations);
    o.checkpoint = checkpoint;
  }
  k.take("resume", o.resume);
  k.take("seed", o.seed);
  k.take("objective", o.objective);
}

void take_own(Keywords& k, CgOptions& o) {
  k.take("M", o.M);
  k.take("refresh", o.refresh);
}
void take_own(Keywords& k, CglsOptions& o) { k.take("damp", o.damp); }
void take_own(Keywords& k, LeastSquaresOptions& o) {
  k.take("damp", o.damp);
  k.take("atol", o.atol);
  k.take("btol", o.btol);
  k.take("conlim", o.conlim);
  k.take("M", o.M);
}
void take_own(Keywords& k, MinresOptions& o) { k.take("M", o.M); }
void take_own(Keywords& k, BicgstabOptions& o) { k.take("M", o.M); }
void take_own(Keywords& k, GmresOptions& o) {
  k.take("M", o.M);
  k.take("restart", o.restart);
}
void take_own(Keywords& k, ChebyshevOptions& o) {
  k.take("lower", o.lower);
  k.take("upper", o.upper);
  k.take("residual", o.residual);
}
void take_own(Keywords& k, ProximalOptions& o) {
  k.take("L", o.L);
  k.take("restart", o.restart);
  k.take("average", o.average);
}
void take_own(Keywords& k, MinimizeOptions& o) {
  k.take("method", o.method);
  k.take("L", o.L);
  k.take("balance", o.balance);
  k.take("restart", o.restart);
  k.take("rho", o.rho);
  k.take("relaxation", o.relaxation);
  k.take("inner", o.inner);
  k.take("inner_tolerance", o.inner_tolerance);
}
void take_own(Keywords& k, AdmmOptions& o) {
  k.take("L", o.L);
  k.take("rho", o.rho);
  k.take("relaxation", o.relaxation);
  k.take("inner", o.inner);
  k.take("inner_tolerance", o.inner_tolerance);
  k.take("adapt", o.adapt);
}
void take_own(Keywords& k, PdhgOptions& o) {
  k.take("ratio", o.ratio);
  k.take("strong", o.strong);
}
void take_own(Keywords&, PowerOptions&) {}
void take_own(Keywords& k, SvdOptions& o) {
  k.take("vectors", o.vectors);
  k.take("dense_side", o.dense_side);
  k.take("dtype", o.dtype);
}

template <class Options>
Options options_of(const char* who, nb::kwargs given) {
  Keywords k(who, std::move(given));
  Options options;
  take_common(k, options);
  take_own(k, options);
  k.expect_none_left();
  return options;
}

// -- solvers ------------------------------------------------------------------------------------

nb::object xarrays() { return nb::module_::import_("palimpsest.interop.xarray"); }

// For an A x that b is compared with.
template <class Solve>
ResultObject solved(const NamedLinop& A, nb::handle b, Solve solve) {
  const Kind kind = is_array(b) ? kind_of(b) : Kind::numpy;
  if (kind != Kind::xarray) {
    const Tensor data = from_python<Tensor>(b);
    return {released([&] { return solve(data); }), kind};
  }
  const nb::object ordered = xarrays().attr("ordered")(b, to_python(A.oshape()));
  const Tensor data = from_python<Tensor>(nb::object(ordered[0]));
  return {released([&] { return solve(data); }), kind, to_python(A), nb::borrow(b)};
}

// The solution, as what b was.
nb::object solution(const ResultObject& r) {
  if (r.kind != Kind::xarray) return export_in_place(Tensor(r.result.x), r.kind);
  return xarrays().attr("solution")(r.A, export_in_place(Tensor(r.result.x), Kind::numpy), r.b);
}

template <class Options, SolveResult (*f)(const NamedLinop&, const Tensor&, const Options&)>
void def_linear(nb::module_& m, const char* name, const char* doc) {
  m.def(
      name,
      [name](NamedLinop A, nb::handle b, nb::kwargs given) {
        const Options options = options_of<Options>(name, given);
        return solved(A, b, [&](const Tensor& data) { return f(A, data, options); });
      },
      "A"_a, "b"_a, "options"_a, doc);
}

template <SolveResult (*f)(const NamedLinop&, const Prox&, const Tensor&, const ProximalOptions&)>
void def_proximal(nb::module_& m, const char* name, const char* doc) {
  m.def(
      name,
      [name](NamedLinop A, const ProxObject& h, nb::handle b, nb::kwargs given) {
        const auto options = options_of<ProximalOptions>(name, given);
        return solved(A, b, [&](const Tensor& data) { return f(A, h.value, data, options); });
      },
      "A"_a, "h"_a, "b"_a, "options"_a, doc);
}

template <class Options, SolveResult (*f)(const Objective&, const Tensor&, const Options&)>
void def_objective(nb::module_& m, const char* name, const char* doc) {
  m.def(
      name,
      [name](const ObjectiveObject& objective, nb::handle b, nb::kwargs given) {
        const Options options = options_of<Options>(name, given);
        return solved(objective.value.A, b,
                      [&](const Tensor& data) { return f(objective.value, data, options); });
      },
      "objective"_a, "b"_a, "options"_a, doc);
}

void bind_results(nb::module_& m) {
  nb::class_<HistoryObject>(m, "History", "One record per iteration, as arrays.")
      .def_prop_ro("iteration",
                   [](const HistoryObject& h) { return column(h, &Record::iteration); })
      .def_prop_ro("residual", [](const HistoryObject& h) { return column(h, &Record::residual); })
      .def_prop_ro("objective",
                   [](const HistoryObject& h) { return column(h, &Record::objective); })
      .def_prop_ro("seconds", [](const HistoryObject& h) { return column(h, &Record::seconds); })
      .def("__len__", [](const HistoryObject& h) { return h.records.size(); });
  nb::class_<ResultObject>(m, "SolveResult", nb::dynamic_attr(), "What a solver found.")
      .def_prop_ro(
          "x", [](const ResultObject& r) { return solution(r); }, "The solution, as what b was.")
      .def_prop_ro("status",
                   [](const ResultObject& r) { return std::string(name_of(r.result.status)); })
      .def_prop_ro("converged",
                   [](const ResultObject& r) { return r.result.status == Status::converged; })
      .def_prop_ro("iterations", [](const ResultObject& r) { return r.result.iterations; })
      .def_prop_ro("history", [](const ResultObject& r) { return HistoryObject{r.result.history}; })
      .def_prop_ro("seconds", [](const ResultObject& r) { return r.result.seconds; })
      .def_prop_ro("peak_bytes", [](const ResultObject& r) { return r.result.peak_bytes; })
      .def_prop_ro(
          "applications",
          [](const ResultObject& r) {
            nb::dict counts;
            for (const auto& [name, n] : r.result.applications)
              counts[nb::cast(name)] = nb::cast(n);
            return counts;
          },
          "How often each operator was applied.")
      .def_prop_ro("batch_status",
                   [](const ResultObject& r) {
                     std::vector<std::string> names;
                     for (Status s : r.result.batch_status) names.emplace_back(name_of(s));
                     return names;
                   })
      .def_prop_ro("batch_iterations",
                   [](const ResultObject& r) { return r.result.batch_iterations; })
      .def("__repr__", [](const ResultObject& r) {
        return "SolveResult(" + std::string(name_of(r.result.status)) + " after " +
               std::to_string(r.result.iterations) + " iterations)";
      });
  nb::class_<InfoObject>(m, "SolveInfo", "State of an iteration, during a callback.")
      .def_prop_ro("iteration", [](const InfoObject& i) { return i.get().iteration(); })
      .def_prop_ro("residual", [](const InfoObject& i) { return i.get().residual(); })
      .def_prop_ro("objective", [](const InfoObject& i) { return i.get().objective(); })
      .def_prop_ro("seconds", [](const InfoObject& i) { return i.get().seconds(); })
      .def_prop_ro(
          "x", [](const InfoObject& i) { return to_python(i.get().x()); },
          "The present iterate, a Tensor that stays as it is.");
  nb::class_<SolvePlan>(m, "SolvePlan", "Memory that a solve will take, in bytes.")
      .def_ro("peak_bytes", &SolvePlan::peak_bytes)
      .def_ro("state_bytes", &SolvePlan::state_bytes)
      .def_ro("step_bytes", &SolvePlan::step_bytes)
      .def_ro("result_bytes", &SolvePlan::result_bytes)
      .def_ro("operator_bytes", &SolvePlan::operator_bytes)
      .def_prop_ro("total_bytes", [](const SolvePlan& p) { return p.total_bytes(); })
      .def_ro("tiles", &SolvePlan::tiles)
      .def_prop_ro("sizes", [](const SolvePlan& p) { return p.sizes; })
      .def_prop_ro("step", [](const SolvePlan& p) {
        return PlanObject{std::make_shared<const Plan>(p.step)};
      });
}

void bind_linear(nb::module_& m) {
  def_linear<CgOptions, &conjugate_gradients>(m, "conjugate_gradients",
                                              "Solves A x = b for a Hermitian positive A.");
  def_linear<CgOptions, &cg_normal>(m, "cg_normal", "Minimizes |A x - b| through A.N.");
  def_linear<CglsOptions, &cgls>(m, "cgls", "Minimizes |A x - b|^2 + damp^2 |x|^2.");
  def_linear<LeastSquaresOptions, &lsqr>(m, "lsqr", "Minimizes |A x - b|^2 + damp^2 |x|^2.");
  def_linear<LeastSquaresOptions, &lsmr>(m, "lsmr", "Minimizes |A x - b|^2 + damp^2 |x|^2.");
  def_linear<MinresOptions, &minres>(m, "minres", "Solves A x = b for a Hermitian A.");
  def_linear<GmresOptions, &gmres>(m, "gmres", "Solves A x = b for any square A.");
  def_linear<BicgstabOptions, &bicgstab>(m, "bicgstab", "Solves A x = b for any square A.");
  def_linear<ChebyshevOptions, &chebyshev>(m, "chebyshev", "Solves A x = b between known bounds.");
  def_linear<ProximalOptions, &gradient_descent>(m, "gradient_descent",
                                                 "Minimizes |A x - b|^2 / 2.");
  def_linear<ProximalOptions, &nesterov>(m, "nesterov", "Minimizes |A x - b|^2 / 2.");
  def_proximal<&ista>(m, "ista", "Minimizes |A x - b|^2 / 2 + h(x) by proximal gradient steps.");
  def_proximal<&fista>(m, "fista", "The same with Nesterov's momentum.");
  def_proximal<&pogm>(m, "pogm", "The proximal optimized gradient method.");
  def_objective<MinimizeOptions, &minimize>(m, "minimize", "Minimizes an Objective.");
  def_objective<MinimizeOptions, &condat_vu>(m, "condat_vu", "The method of Condat and of Vu.");
  def_objective<AdmmOptions, &admm>(m, "admm", "The alternating direction method of multipliers.");
  m.def(
      "pdhg",
      [](const ProxObject& f, const ObjectiveObject& rest, nb::handle b, nb::kwargs given) {
        const auto options = options_of<PdhgOptions>("pdhg", given);
        return solved(rest.value.A, b,
                      [&](const Tensor& data) { return pdhg(f.value, rest.value, data, options); });
      },
      "f"_a, "rest"_a, "b"_a, "options"_a, "The primal-dual hybrid gradient method.");
}

void bind_plans(nb::module_& m) {
  m.def(
      "plan_conjugate_gradients",
      [](NamedLinop A, nb::handle b, nb::kwargs given) {
        const auto options = options_of<CgOptions>("plan_conjugate_gradients", given);
        const TensorType type = from_python<TensorType>(b);
        return released([&] { return plan_conjugate_gradients(A, type, options); });
      },
      "A"_a, "b"_a, "options"_a, "The memory of conjugate_gradients(A, b).");
  m.def(
      "smallest_cg_budget",
      [](NamedLinop A, nb::handle b) {
        const TensorType type = from_python<TensorType>(b);
        return released([&] { return smallest_cg_budget(A, type); });
      },
      "A"_a, "b"_a, "The smallest budget for which conjugate_gradients() finds tiles.");
  m.def(
      "plan_fista",
      [](NamedLinop A, const ProxObject& h, nb::handle b, nb::kwargs given) {
        const auto options = options_of<ProximalOptions>("plan_fista", given);
        const TensorType type = from_python<TensorType>(b);
        return released([&] { return plan_fista(A, h.value, type, options); });
      },
      "A"_a, "h"_a, "b"_a, "options"_a, "The memory of fista(A, h, b).");
  m.def(
      "plan_minimize",
      [](const ObjectiveObject& f, nb::handle b, nb::kwargs given) {
        const auto options = options_of<MinimizeOptions>("plan_minimize", given);
        const TensorType type = from_python<TensorType>(b);
        return released([&] { return plan_minimize(f.value, type, options); });
      },
      "objective"_a, "b"_a, "options"_a, "The memory of minimize(objective, b).");
}

void bind_spectrum(nb::module_& m) {
  m.def(
      "svd",
      [](NamedLinop A, index_t k, nb::kwargs given) {
        const auto options = options_of<SvdOptions>("svd", given);
        SvdResult r = released([&] { return svd(A, k, options); });
        return nb::make_tuple(export_array(std::move(r.U), Kind::numpy),
                              export_array(std::move(r.S), Kind::numpy),
                              export_array(std::move(r.Vh), Kind::numpy));
      },
      "A"_a, "k"_a, "options"_a, "U, S, Vh of the k largest singular values.");
  m.def(
      "power_method",
      [](NamedLinop A, nb::handle v0, nb::kwargs given) {
        const auto options = options_of<PowerOptions>("power_method", given);
        const Tensor start = from_python<Tensor>(v0);
        PowerResult r = released([&] { return power_method(A, start, options); });
        return nb::make_tuple(r.eigenvalue, export_array(std::move(r.v), Kind::numpy));
      },
      "A"_a, "v0"_a, "options"_a, "The largest eigenvalue and its vector.");
  m.def(
      "lanczos",
      [](NamedLinop A, nb::handle x, int steps, double tolerance, std::uint64_t seed) {
        const TensorType type = from_python<TensorType>(x);
        const LanczosOptions options{.steps = steps, .tolerance = tolerance, .seed = seed};
        return released([&] { return lanczos(A, type, options); }).values;
      },
      "A"_a, "x"_a, nb::kw_only(), "steps"_a = 20, "tolerance"_a = 1e-3, "seed"_a = 0,
      "Ritz values of a Hermitian A, ascending.");
  m.def(
      "operator_norm2",
      [](NamedLinop A, nb::handle x, std::uint64_t seed) {
        const TensorType type = from_python<TensorType>(x);
        return released([&] { return operator_norm2(A, type, seed); }).value;
      },
      "A"_a, "x"_a, nb::kw_only(), "seed"_a = 0, "A bound of the largest eigenvalue of A.N.");
  m.def(
      "polynomial_preconditioner",
      [](NamedLinop T, int degree, PolynomialNorm norm, double lower, double upper) {
        return polynomial_preconditioner(T, degree, {.norm = norm, .lower = lower, .upper = upper});
      },
      "T"_a, "degree"_a, nb::kw_only(), "norm"_a = "l2", "lower"_a = 0.0, "upper"_a = 1.0,
      "A polynomial in T that approximates its inverse.");
}

}  // namespace

void bind_solvers(nb::module_& m) {
  bind_results(m);
  bind_linear(m);
  bind_plans(m);
  bind_spectrum(m);
}

}  // namespace palimpsest::python
