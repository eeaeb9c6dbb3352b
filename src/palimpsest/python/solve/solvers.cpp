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
#include "palimpsest/solve/plan_solve.hpp"
#include "palimpsest/solve/preconditioner.hpp"
#include "palimpsest/solve/prox/norms.hpp"
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

/// Options, and the words of SciPy for some of them.
template <class Options>
struct InWordsOfSciPy : Options {
  std::optional<double> relative = {}, absolute = {};
  std::optional<int> most = {};

  void take_words() {
    if (most) this->max_iterations = *most;
    if constexpr (requires { this->tolerance; })
      this->tolerance = relative.value_or(this->tolerance);
  }
  // |r| <= max(rtol |b|, atol).
  Options for_data(const Tensor& b) const {
    Options made = *this;
    if constexpr (requires { made.tolerance; }) {
      if (!absolute) return made;
      if (!made.batch.empty()) {
        throw ValueError("[atol] got one together with batch, expected rtol alone.");
      }
      const double norm = L2().value(b);
      if (norm > 0) made.tolerance = std::max(made.tolerance, *absolute / norm);
    }
    return made;
  }
};
template <class Options>
struct Fields<InWordsOfSciPy<Options>> {
  template <class V, class O>
  static void visit(V& v, O& o) {
    Fields<Options>::visit(v, o);
    if constexpr (requires { o.tolerance; }) {
      v("rtol", o.relative);
      v("atol", o.absolute);
    }
    v("maxiter", o.most);
  }
};

namespace {

// -- solvers ------------------------------------------------------------------------------------

// While one lives, solvers of this thread take a type in place of data.
class PlansHere {
 public:
  PlansHere() { ++count; }
  ~PlansHere() { --count; }
  PlansHere(const PlansHere&) = delete;
  PlansHere& operator=(const PlansHere&) = delete;
  static bool is_here() { return count > 0; }

 private:
  static thread_local int count;
};
thread_local int PlansHere::count = 0;

// An array of a type that takes the memory of one element.
Tensor without_memory(const TensorType& type) {
  Extents ones = type.shape;
  for (index_t& n : ones) n = 1;
  return Tensor::zeros(ones, type.dtype, type.device).expand(type.shape);
}

// For an A x that b is compared with.
template <class Solve>
ResultObject solved(const NamedLinop& A, nb::handle b, Solve solve) {
  if (PlansHere::is_here() && is_type(b)) {
    return {solve(without_memory(from_python<TensorType>(b))), Kind::numpy};
  }
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

// A solver that SciPy has, too.
template <class Options, SolveResult (*f)(const NamedLinop&, const Tensor&, const Options&)>
void def_as_scipy(nb::module_& m, const char* name) {
  def_with_options(
      m, name,
      +[](NamedLinop A, ArrayGiven b, const InWordsOfSciPy<Options>& options) {
        return solved(A, b, [&](const Tensor& data) { return f(A, data, options.for_data(data)); });
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
  def_as_scipy<CgOptions, &conjugate_gradients>(m, "conjugate_gradients");
  def_linear<CgOptions, &cg_normal>(m, "cg_normal");
  def_linear<CglsOptions, &cgls>(m, "cgls");
  def_as_scipy<LeastSquaresOptions, &lsqr>(m, "lsqr");
  def_as_scipy<LeastSquaresOptions, &lsmr>(m, "lsmr");
  def_as_scipy<MinresOptions, &minres>(m, "minres");
  def_as_scipy<GmresOptions, &gmres>(m, "gmres");
  def_as_scipy<BicgstabOptions, &bicgstab>(m, "bicgstab");
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

// The plan of the solve that a call of `solver` would make.
SolvePlan plan_of_solve_in(nb::handle solver, nb::handle arguments, nb::handle keywords) {
  const PlansHere here;
  return plan_solve([&] {
    const nb::object result =
        nb::steal(PyObject_Call(solver.ptr(), arguments.ptr(), keywords.ptr()));
    if (!result.is_valid()) throw nb::python_error();
  });
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
        if (PlansHere::is_here()) return nb::make_tuple();
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
        if (PlansHere::is_here()) return nb::make_tuple();
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
  m.def("_plan", plan_of_solve_in, "solver"_a, "arguments"_a, "keywords"_a);
  bind_spectrum(m);
}

}  // namespace palimpsest::python
