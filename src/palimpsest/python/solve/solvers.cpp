// SPDX-License-Identifier: Apache-2.0
// Solvers: functions of the names and the options of C++.
#include "palimpsest/python/arrays.hpp"
#include "palimpsest/python/families.hpp"
#include "palimpsest/python/options.hpp"
#include "palimpsest/python/solve/interrupt.hpp"
#include "palimpsest/python/solve/prox_object.hpp"
#include "palimpsest/python/solve/result_object.hpp"
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
PALIMPSEST_NAMES(SpectrumEnd, "which", "largest", "smallest")
PALIMPSEST_OPTIONS(CgOptions)
PALIMPSEST_OPTIONS(CglsOptions)
PALIMPSEST_OPTIONS(LeastSquaresOptions)
PALIMPSEST_OPTIONS(MinresOptions)
PALIMPSEST_OPTIONS(BicgstabOptions)
PALIMPSEST_OPTIONS(GmresOptions)
PALIMPSEST_OPTIONS(ChebyshevOptions)
PALIMPSEST_OPTIONS(IstaOptions)
PALIMPSEST_OPTIONS(FistaOptions)
PALIMPSEST_OPTIONS(PogmOptions)
PALIMPSEST_OPTIONS(MinimizeOptions)
PALIMPSEST_OPTIONS(AdmmOptions)
PALIMPSEST_OPTIONS(PdhgOptions)
PALIMPSEST_OPTIONS(PowerOptions)
PALIMPSEST_OPTIONS(SvdOptions)
PALIMPSEST_OPTIONS(LanczosOptions)
PALIMPSEST_OPTIONS(PolynomialOptions)

namespace {

// -- solvers ------------------------------------------------------------------------------------

// For an A x that b is compared with.
template <class Solve>
ResultObject solved(const NamedLinop& A, nb::handle b, Solve solve) {
  const Kind kind = is_array(b) ? kind_of(b) : Kind::numpy;
  SolveInterrupt interrupt;
  if (kind != Kind::xarray) {
    const Tensor data = data_for(A, b);
    ResultObject made{released([&] { return solve(data); }), kind_returned(kind)};
    interrupt.raise_with(made);
    return made;
  }
  const nb::object ordered =
      nb::module_::import_("palimpsest.interop.xarray").attr("ordered")(b, to_python(A.oshape()));
  const Tensor data = from_python<Tensor>(nb::object(ordered[0]));
  ResultObject made{released([&] { return solve(data); }), kind,
                    shared_object(nb::make_tuple(to_python(A), b))};
  interrupt.raise_with(made);
  return made;
}

template <class Options, SolveResult (*f)(const NamedLinop&, const Tensor&, const Options&)>
void def_linear(nb::module_& m, const char* name) {
  def_with_options(
      m, name,
      +[](NamedLinop A, ArrayGiven b, const Options& options) {
        return solved(A, b, [&](const Tensor& data) { return f(A, data, options); });
      },
      {"A", "b"}, "SolveResult");
}

template <class Options,
          SolveResult (*f)(const NamedLinop&, const Prox&, const Tensor&, const Options&)>
void def_proximal(nb::module_& m, const char* name) {
  def_with_options(
      m, name,
      +[](NamedLinop A, const ProxObject& h, ArrayGiven b, const Options& options) {
        return solved(A, b, [&](const Tensor& data) { return f(A, h.value, data, options); });
      },
      {"A", "h", "b"}, "SolveResult");
}

template <class Options, SolveResult (*f)(const Objective&, const Tensor&, const Options&)>
void def_objective(nb::module_& m, const char* name) {
  def_with_options(
      m, name,
      +[](const ObjectiveObject& objective, ArrayGiven b, const Options& options) {
        return solved(objective.value.A, b,
                      [&](const Tensor& data) { return f(objective.value, data, options); });
      },
      {"f", "b"}, "SolveResult");
}

void bind_linear(nb::module_& m) {
  def_linear<CgOptions, &conjugate_gradients>(m, "conjugate_gradients");
  def_linear<CgOptions, &cg_normal>(m, "cg_normal");
  def_linear<CglsOptions, &cgls>(m, "cgls");
  def_linear<LeastSquaresOptions, &lsqr>(m, "lsqr");
  def_linear<LeastSquaresOptions, &lsmr>(m, "lsmr");
  def_linear<MinresOptions, &minres>(m, "minres");
  def_linear<GmresOptions, &gmres>(m, "gmres");
  def_linear<BicgstabOptions, &bicgstab>(m, "bicgstab");
  def_linear<ChebyshevOptions, &chebyshev>(m, "chebyshev");
  def_linear<IstaOptions, &gradient_descent>(m, "gradient_descent");
  def_linear<FistaOptions, &nesterov>(m, "nesterov");
  def_proximal<IstaOptions, &ista>(m, "ista");
  def_proximal<FistaOptions, &fista>(m, "fista");
  def_proximal<PogmOptions, &pogm>(m, "pogm");
  def_objective<MinimizeOptions, &minimize>(m, "minimize");
  def_objective<MinimizeOptions, &condat_vu>(m, "condat_vu");
  def_objective<AdmmOptions, &admm>(m, "admm");
  def_with_options(
      m, "pdhg",
      +[](const ProxObject& f, const ObjectiveObject& rest, ArrayGiven b,
          const PdhgOptions& options) {
        return solved(rest.value.A, b,
                      [&](const Tensor& data) { return pdhg(f.value, rest.value, data, options); });
      },
      {"f", "rest", "b"}, "SolveResult");
}

void bind_plans(nb::module_& m) {
  def_with_options(
      m, "plan_conjugate_gradients",
      +[](NamedLinop A, TypeGiven b, const CgOptions& options) {
        const TensorType type = from_python<TensorType>(b);
        return released([&] { return plan_conjugate_gradients(A, type, options); });
      },
      {"A", "b"}, "SolvePlan");
  def_with_options(m, "smallest_cg_budget",
                   +[](NamedLinop A, TypeGiven b, const CgOptions& options) {
                     const TensorType type = from_python<TensorType>(b);
                     return released([&] { return smallest_cg_budget(A, type, options); });
                   },
                   {"A", "b"});
  def_with_options(
      m, "plan_fista",
      +[](NamedLinop A, const ProxObject& h, TypeGiven b, const FistaOptions& options) {
        const TensorType type = from_python<TensorType>(b);
        return released([&] { return plan_fista(A, h.value, type, options); });
      },
      {"A", "h", "b"}, "SolvePlan");
  def_with_options(
      m, "plan_minimize",
      +[](const ObjectiveObject& f, TypeGiven b, const MinimizeOptions& options) {
        const TensorType type = from_python<TensorType>(b);
        return released([&] { return plan_minimize(f.value, type, options); });
      },
      {"f", "b"}, "SolvePlan");
}

void bind_other_plans(nb::module_& m) {
  def_with_options(
      m, "smallest_minimize_budget",
      +[](const ObjectiveObject& f, TypeGiven b, const MinimizeOptions& options) {
        const TensorType type = from_python<TensorType>(b);
        return released([&] { return smallest_minimize_budget(f.value, type, options); });
      },
      {"f", "b"});
  def_with_options(
      m, "plan_svd",
      +[](NamedLinop A, index_t k, const SvdOptions& options) {
        return released([&] { return plan_svd(A, k, options); });
      },
      {"A", "k"}, "SolvePlan");
}

void refuse_divergence(Status status, const char* who, const NamedLinop& A) {
  if (status != Status::diverged) return;
  throw ValueError("[" + std::string(who) + "] A: " + A.str() +
                   " gave numbers that are not finite, or too large for the dtype");
}

void bind_spectrum(nb::module_& m) {
  def_with_options(
      m, "svd",
      +[](NamedLinop A, index_t k, const SvdOptions& options) {
        SvdResult r = released([&] { return svd(A, k, options); });
        refuse_divergence(r.status, "svd", A);
        return nb::make_tuple(export_array(std::move(r.U), kind_returned(Kind::numpy)),
                              export_array(std::move(r.S), kind_returned(Kind::numpy)),
                              export_array(std::move(r.Vh), kind_returned(Kind::numpy)));
      },
      {"A", "k"}, "tuple[NDArray, NDArray, NDArray]");
  def_with_options(
      m, "power_method",
      +[](NamedLinop A, std::optional<ArrayGiven> v0, const PowerOptions& options) {
        const Tensor start = v0 ? data_for(A, *v0) : Tensor();
        PowerResult r = released(
            [&] { return v0 ? power_method(A, start, options) : power_method(A, options); });
        refuse_divergence(r.status, "power_method", A);
        const nb::object found = options.batch.empty() ? nb::cast(r.eigenvalue)
                                                       : export_array(std::move(r.eigenvalues),
                                                                      kind_returned(Kind::numpy));
        return nb::make_tuple(found, array_like(v0 ? *v0 : ArrayGiven(Py_None), std::move(r.v)));
      },
      {"A", "v0"}, "tuple[float | NDArray[Any], Array]");
  def_with_options(
      m, "lanczos",
      +[](NamedLinop A, TypeGiven x, const LanczosOptions& options) -> nb::object {
        const TensorType type = from_python<TensorType>(x);
        LanczosResult found = released([&] { return lanczos(A, type, options); });
        if (!options.vectors) return nb::cast(found.values);
        return nb::make_tuple(found.values,
                              export_array(std::move(found.vectors), kind_returned(Kind::numpy)));
      },
      {"A", "x"}, "list[float] | tuple[list[float], NDArray]");
  m.def(
      "operator_norm2",
      [](NamedLinop A, TypeGiven x, std::uint64_t seed) {
        const TensorType type = from_python<TensorType>(x);
        return released([&] { return operator_norm2(A, type, seed); }).value;
      },
      "A"_a, "x"_a, nb::kw_only(), "seed"_a = 0);
  def_with_options(m, "polynomial_preconditioner", &polynomial_preconditioner, {"T", "degree"});
}

}  // namespace

void bind_solvers(nb::module_& m) {
  bind_linear(m);
  bind_plans(m);
  bind_other_plans(m);
  bind_spectrum(m);
}

}  // namespace palimpsest::python
