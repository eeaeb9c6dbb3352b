// SPDX-License-Identifier: Apache-2.0
// Small problems with known results for every solver and proximal function, in all four dtypes, and
// with the same bits on 1, 2 and 4 threads.
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <functional>
#include <limits>
#include <ostream>

#include "palimpsest/base/config.hpp"
#include "palimpsest/linop/operators/dense.hpp"
#include "palimpsest/linop/operators/diagonal.hpp"
#include "palimpsest/linop/operators/identity.hpp"
#include "palimpsest/linop/operators/scalar.hpp"
#include "palimpsest/linop/operators/shape_spec.hpp"
#include "palimpsest/solve/conjugate_gradients.hpp"
#include "palimpsest/solve/gradient_methods.hpp"
#include "palimpsest/solve/least_squares.hpp"
#include "palimpsest/solve/objective.hpp"
#include "palimpsest/solve/preconditioner.hpp"
#include "palimpsest/solve/prox/composed.hpp"
#include "palimpsest/solve/prox/constraints.hpp"
#include "palimpsest/solve/prox/low_rank.hpp"
#include "palimpsest/solve/prox/total_variation.hpp"
#include "palimpsest/solve/prox/wavelets.hpp"
#include "palimpsest/solve/square_systems.hpp"

namespace palimpsest {
namespace {

using Complex = std::complex<double>;
using Values = std::vector<double>;

// The result of an example: a vector, and numbers such as residuals, counts and values.
struct Outcome {
  Tensor x;
  Values numbers = {};
};

struct Example {
  std::string name;
  std::function<Outcome(DType)> run;
  std::vector<Complex> x = {};
  Values numbers = {};
  bool takes_real = true, takes_complex = true;
  double relative = 2e-6;  // tolerance for values known to six digits; for 3 digits: 6e-3
  friend std::ostream& operator<<(std::ostream& stream, const Example& e) {
    return stream << e.name;
  }
};

Tensor of(const Values& values, DType dtype) { return Tensor::from<double>(values).to(dtype); }
Tensor of_complex(const std::vector<Complex>& values, DType dtype) {
  return Tensor::from<Complex>(values).to(dtype);
}
std::vector<Complex> reals(const Values& values) { return {values.begin(), values.end()}; }
NamedLinop diagonal(const Values& values, DType dtype) { return Diagonal(of(values, dtype), "N"); }
NamedLinop matrix(const Values& values, index_t columns, DType dtype) {
  const auto rows = static_cast<index_t>(values.size()) / columns;
  return Dense(of(values, dtype).reshape({rows, columns}), "MN,N->M");
}
bool is_single(DType dtype) { return real_of(dtype) == DType::float32; }

Values residuals(const SolveResult& result) {
  Values numbers;
  for (const Record& record : result.history) numbers.push_back(record.residual);
  return numbers;
}
Outcome with_residuals(const SolveResult& result) { return {result.x, residuals(result)}; }
double number_of(Status status) { return static_cast<double>(status); }

// -- solvers -------------------------------------------------------------------------------------

Outcome one_iteration(DType d) {
  const SolveResult r = conjugate_gradients(Scalar(2.0, "N"), of({1}, d));
  const SolveResult none = conjugate_gradients(Scalar(2.0, "N"), of({1}, d), {.max_iterations = 0});
  const SolveResult stopped = conjugate_gradients(
      Scalar(2.0, "N"), of({1}, d), {.callback = [](const SolveInfo&) { return false; }});
  return {r.x,
          {number_of(r.status), static_cast<double>(r.iterations),
           static_cast<double>(r.applications.at("A")), number_of(none.status),
           std::abs(none.x.to(DType::complex128).item<Complex>()), number_of(stopped.status)}};
}

// An operator that gives NaN from its fourth application on.
Outcome turning_to_nan(DType d) {
  Parameter weights(of({1, 2, 3, 4, 5}, d));
  const NamedLinop A = Diagonal(weights, "N");
  const Tensor b = of({1, 1, 1, 1, 1}, d);
  const Tensor expected = conjugate_gradients(A, b, {.max_iterations = 3}).x;
  CgOptions options;
  options.callback = [&](const SolveInfo& info) {
    if (info.iteration() < 3) return true;
    weights.modify([](Tensor& t) { t.fill(std::numeric_limits<double>::quiet_NaN()); });
    return true;
  };
  const SolveResult r = conjugate_gradients(A, b, options);
  return {r.x,
          {number_of(r.status), static_cast<double>(r.iterations), equal(r.x, expected) ? 1. : 0.}};
}

Outcome batch_of_two(DType d) {
  const Tensor weights = of({1, 2, 3, 4, 5, 2, 2, 2, 2, 2}, d).reshape({2, 5});
  CgOptions options;
  options.batch = "S";
  const SolveResult r =
      conjugate_gradients(Diagonal(weights, "S N"), Tensor::ones({2, 5}, d), options);
  return {
      r.x,
      {number_of(r.status), static_cast<double>(r.batch_iterations[0]),
       static_cast<double>(r.batch_iterations[1]), static_cast<double>(r.applications.at("A"))}};
}

Outcome eigenvalue(DType d) {
  const PowerResult r = power_method(diagonal({1, 2, 3, 4, 5}, d), of({1, 1, 1, 1, 1}, d));
  const PowerResult none = power_method(diagonal({0, 0}, d), of({1, 1}, d));
  return {{}, {r.eigenvalue, none.eigenvalue}};
}

using LeastSquares = SolveResult (*)(const NamedLinop&, const Tensor&, const LeastSquaresOptions&);
Outcome least_squares(LeastSquares solver, const Values& b, DType d) {
  const SolveResult r = solver(matrix({1, 0, 1, 1, 0, 1}, 2, d), of(b, d), {});
  double size = 0;
  for (const double value : b) size += value * value;
  const Record& last = r.history.back();
  return {r.x, {number_of(r.status), last.numbers[0], last.residual * std::sqrt(size)}};
}

void add_krylov(std::vector<Example>& list) {
  const auto converged = number_of(Status::converged);
  const Values ones{1, 1, 1, 1, 1}, steps{1, 2, 3, 4, 5};
  const std::vector<Complex> inverse = reals({1, 1.0 / 2, 1.0 / 3, 1.0 / 4, 1.0 / 5});
  list.push_back({"TwoTimesIdentity",
                  one_iteration,
                  {0.5},
                  {converged, 1, 1, number_of(Status::max_iterations), 0, converged}});
  list.push_back(
      {"NanFromTheFourthApplication", turning_to_nan, {}, {number_of(Status::diverged), 3, 1}});
  list.push_back({"ABatchOfTwo",
                  batch_of_two,
                  reals({1, 1.0 / 2, 1.0 / 3, 1.0 / 4, 1.0 / 5, 0.5, 0.5, 0.5, 0.5, 0.5}),
                  {converged, 5, 1, 5}});
  list.push_back({"ConjugateGradients",
                  [=](DType d) {
                    return with_residuals(conjugate_gradients(diagonal(steps, d), of(ones, d)));
                  },
                  inverse,
                  {0.471405, 0.239046, 0.101015, 0.029696, 0}});
  list.push_back({"Minres",
                  [=](DType d) {
                    return with_residuals(minres(diagonal({-2, -1, 1, 2, 3}, d), of(ones, d)));
                  },
                  reals({-0.5, -1, 1, 0.5, 1.0 / 3}),
                  {0.951453, 0.581775, 0.484234, 0.362738, 0}});
  list.push_back({"Gmres",
                  [](DType d) {
                    const Tensor turn = of({0, 1, -1, 0}, d).reshape({2, 2});
                    const NamedLinop A = ShapeSpec("M", "N") * Dense(turn, "MN,N->M");
                    return with_residuals(gmres(A, of({1, 0}, d)));
                  },
                  reals({0, 1}),
                  {1, 0}});
  list.push_back({"Chebyshev",
                  [=](DType d) {
                    return Outcome{
                        {},
                        residuals(chebyshev(diagonal(steps, d), of(ones, d),
                                            {.lower = 1, .upper = 5, .max_iterations = 6}))};
                  },
                  {},
                  {0.471405, 0.239046, 0.099381, 0.035603, 0.011498, 0.006211}});
  list.push_back({"PowerMethod", eigenvalue, {}, {4.99992, 0}});
  for (const auto& [name, solver] : {std::pair{"Lsqr", LeastSquares(lsqr)}, {"Lsmr", lsmr}}) {
    list.push_back({std::string(name) + "Exact",
                    [s = solver](DType d) {
                      return least_squares(s, {1, 0, -1}, d);
                    },
                    reals({1, -1}),
                    {converged, 1, 0}});
    list.push_back({std::string(name) + "Inexact",
                    [s = solver](DType d) {
                      return least_squares(s, {1, 0.01, -1}, d);
                    },
                    reals({1 + 1.0 / 300, -1 + 1.0 / 300}),
                    {converged, 2, 0.00577350}});
  }
}

// -- problems with proximal functions -------------------------------------------------------------

// A = ((2, 1), (0, 1)), b = (1, 2), h = |x|_1 / 2: at the solution (0, 1.25) F is 0.9375.
template <class Options>
using Proximal = SolveResult (*)(const NamedLinop&, const Prox&, const Tensor&, const Options&);
template <class Options>
Tensor small(Proximal<Options> solver, int iterations, bool restarts, DType d) {
  Options options{.tolerance = 0, .max_iterations = iterations, .L = 5.236068};
  if constexpr (requires { options.restart; }) options.restart = restarts;
  return solver(matrix({2, 1, 0, 1}, 2, d), L1(0.5), of({1, 2}, d), options).x;
}
double gap(const Tensor& x) {
  const auto v = x.to(DType::complex128).to_vector<Complex>();
  const Complex r0 = 2.0 * v[0] + v[1] - 1.0, r1 = v[1] - 2.0;
  return (std::norm(r0) + std::norm(r1)) / 2 + (std::abs(v[0]) + std::abs(v[1])) / 2 - 0.9375;
}

void add_proximal(std::vector<Example>& list) {
  const auto iterate = [&](const std::string& name, auto solver, int k, const Values& x) {
    list.push_back({name + std::to_string(k),
                    [=](DType d) { return Outcome{small(solver, k, false, d)}; }, reals(x)});
  };
  const auto gaps = [&](const std::string& name, auto solver, bool restarts, Values expected) {
    list.push_back(
        {name,
         [=](DType d) {
           return Outcome{
               {}, {gap(small(solver, 10, restarts, d)), gap(small(solver, 20, restarts, d))}};
         },
         {},
         std::move(expected)});
    list.back().relative = 6e-3;
  };
  iterate("Ista", ista, 1, {0.286475, 0.477458});
  iterate("Ista", ista, 2, {0.171729, 0.663119});
  iterate("Fista", fista, 2, {0.171729, 0.663119});
  iterate("Fista", fista, 3, {0.046112, 0.866372});
  iterate("Pogm", pogm, 1, {0.429712, 0.716186});
  iterate("Pogm", pogm, 2, {0, 0.846216});
  gaps("GapsOfIsta", ista, false, {2.66e-4, 1.76e-8});
  gaps("GapsOfFista", fista, false, {1.27e-3, 3.36e-6});
  gaps("GapsOfFistaWithRestart", fista, true, {8.10e-5, 1.71e-11});
  gaps("GapsOfPogm", pogm, false, {1.04e-4, 3.47e-7});
}

Tensor line_by_condat_vu(int iterations, DType d) {
  const Objective f{.A = Identity("N"), .terms = {tv_term(1.0, "N")}};
  return minimize(f, of({0, 4, 1}, d), {.tolerance = 0, .max_iterations = iterations}).x;
}

void add_terms(std::vector<Example>& list) {
  const auto line = [&](int k, const Values& x) {
    list.push_back({"CondatVu" + std::to_string(k),
                    [=](DType d) { return Outcome{line_by_condat_vu(k, d)}; }, reals(x)});
  };
  line(1, {0, 1.365517, 0.341379});
  line(2, {0.341379, 1.582117, 0.907598});
  line(50, {1, 2, 2});
  const auto scaled_norm = [] {
    return Objective{.A = Identity("N"), .terms = {{.g = L1(1.0), .K = Scalar(2.0, "N")}}};
  };
  list.push_back({"ScaledNormByCondatVu",
                  [=](DType d) {
                    return Outcome{minimize(scaled_norm(), of({3}, d), {.max_iterations = 2000}).x};
                  },
                  {1}});
  list.back().relative = 1e-4;
  list.push_back({"ScaledNormByPdhg",
                  [=](DType d) {
                    const PdhgOptions options{.max_iterations = 2000};
                    return Outcome{pdhg(SquaredL2(1.0), scaled_norm(), of({3}, d), options).x};
                  },
                  {1}});
  list.back().relative = 1e-4;
  list.push_back({"BallByPdhg",
                  [](DType d) {
                    const Objective rest{.A = Identity("N"), .h = L1(1.0)};
                    const PdhgOptions options{.max_iterations = 2000};
                    return Outcome{pdhg(Ball(1.0), rest, of({3, 0.5}, d), options).x};
                  },
                  reals({2.133975, 0})});
  list.back().relative = 1e-4;
  const auto tgv = [](const Values& values) {
    return [values](DType d) {
      const Objective f =
          tgv_objective(Identity("N"), 1.0, "N", {.boundary = DifferenceBoundary::periodic});
      const PdhgOptions options{.tolerance = is_single(d) ? 1e-5 : 1e-9, .max_iterations = 20000};
      const Tensor u = pdhg(Ball(0.0), f, of(values, d), options).x;
      double sum = 0;
      for (const Term& term : f.terms) sum += term.g.value((*term.K)(u));
      const Prox tv = TotalVariation(1.0, "N", {.boundary = DifferenceBoundary::periodic});
      return Outcome{{}, {sum, tv.value(of(values, d))}};
    };
  };
  list.push_back({"TgvOfARamp", tgv({0, 1, 2, 3, 4, 5, 6, 7}), {}, {8, 14}});
  list.back().relative = 1e-3;
  list.push_back({"TgvOfASquare", tgv({0, 0, 0, 1, 1, 1, 0, 0}), {}, {2, 2}});
  list.back().relative = 1e-3;
}

// -- proximal functions ---------------------------------------------------------------------------

Example prox_of(const std::string& name, std::function<Prox(DType)> g, const Values& v, double t,
                const Values& x, std::optional<double> value = {}) {
  return {name,
          [=](DType d) {
            const Prox f = g(d);
            const Tensor at = of(v, d);
            Outcome made{f.prox(at, t)};
            if (value) made.numbers = {f.value(at)};
            return made;
          },
          reals(x), value ? Values{*value} : Values{}};
}

// A prox of a matrix, row by row.
Example prox_of_matrix(const std::string& name, std::function<Prox(DType)> g, const Values& v,
                       index_t columns, double t, const Values& x, double value) {
  return {name,
          [=](DType d) {
            const Prox f = g(d);
            const auto rows = static_cast<index_t>(v.size()) / columns;
            const Tensor at = of(v, d).reshape({rows, columns});
            return Outcome{f.prox(at, t), {f.value(at)}};
          },
          reals(x),
          {value}};
}

void add_norms(std::vector<Example>& list) {
  const auto g = [](Prox f) { return [f](DType) { return f; }; };
  list.push_back({"L1Complex",
                  [](DType d) {
                    const Tensor v = of_complex({{3, 4}, {0.3, 0}, {0, -2}}, d);
                    return Outcome{L1(1.0).prox(v, 1), {L1(1.0).value(v)}};
                  },
                  {{2.4, 3.2}, 0, {0, -1}},
                  {7.3},
                  false});
  list.push_back({"L1Conjugate",
                  [](DType d) {
                    const Tensor v = of_complex({{3, 4}, {0.3, 0}, {0, -2}}, d);
                    return Outcome{L1(1.0).conjugate_prox(v, 1)};
                  },
                  {{0.6, 0.8}, 0.3, {0, -1}},
                  {},
                  false});
  list.push_back(prox_of("L2", g(L2(1.0)), {3, 4}, 1, {2.4, 3.2}));
  list.push_back(prox_of("L2ToZero", g(L2(1.0)), {3, 4}, 6, {0, 0}));
  list.push_back(prox_of("SquaredL2", g(SquaredL2(1.0)), {3, 4}, 1, {1.5, 2}));
  list.push_back(prox_of_matrix("L21", g(L21(1.0, "D")), {3, 1, 4, 0}, 2, 2, {1.8, 0, 2.4, 0}, 6));
  list.push_back(
      prox_of("Huber", g(Huber(1.0, 1.0)), {0.5, 1.5, 3}, 1, {0.25, 0.75, 2}, 0.125 + 1 + 2.5));
  list.push_back(prox_of_matrix("Nuclear", g(Nuclear(1.0, "Ny", "Nx")), {3, 0, 4, 5}, 2, 2,
                                {1.211146, 0.894427, 3.105573, 3.211146}, 8.944272));
  list.push_back(prox_of("Ball", g(Ball(1.0)), {3, 4}, 1, {0.6, 0.8}));
  list.push_back(prox_of("Affine",
                         [](DType d) {
                           return Affine(matrix({1, 1, 1}, 3, d), of({1}, d));
                         },
                         {1, 2, 3}, 1, {-2.0 / 3, 1.0 / 3, 4.0 / 3}));
  list.push_back(prox_of("Translated",
                         [](DType d) {
                           return translated(L1(1.0), of({1, 1}, d));
                         },
                         {3, 0.5}, 1, {2, 1}));
  const NamedLinop haar = Wavelet("N", "N", {.family = "haar", .levels = 1});
  list.push_back(prox_of("WithUnitary", g(with_unitary(L1(1.0), haar)), {3, 1}, 1, {1.585786, 1}));
  list.push_back(prox_of("Conjugate", g(conjugate(SquaredL2(2.0))), {3}, 1, {2}));
  list.push_back({"LowRankScale",
                  [](DType d) {
                    Tensor one = Tensor::zeros({8 * 22, 8 * 30, 20}, d);
                    one.narrow(0, 0, 1).narrow(1, 0, 1).narrow(2, 0, 1).fill(1.0);
                    return Outcome{
                        {},
                        {LocallyLowRank(1.0, {{"Ny", 8}, {"Nx", 8}}, "T",
                                        {.scale = LowRankScale::bart, .dims = Dims("Ny Nx T")})
                             .value(one)}};
                  },
                  {},
                  {15.552391}});
  list.push_back({"HaarOfAnOddLine",
                  [=](DType d) {
                    return Outcome{haar(of({1, 2, 3}, d))};
                  },
                  reals({2.121320, 3, -0.707107})});
}

void add_total_variation(std::vector<Example>& list) {
  const auto tv = [](const Dims& over, bool is_isotropic, DifferenceBoundary boundary) {
    return [=](DType d) {
      return TotalVariation(1.0, over,
                            {.isotropic = is_isotropic,
                             .boundary = boundary,
                             .inner = 3000,
                             .inner_tolerance = is_single(d) ? 1e-7 : 1e-14});
    };
  };
  const auto neumann = DifferenceBoundary::neumann, periodic = DifferenceBoundary::periodic;
  const auto add = [&](Example example) {
    example.relative = 5e-6;
    list.push_back(std::move(example));
  };
  add(prox_of("TvNeumann", tv("N", true, neumann), {0, 4, 1}, 1, {1, 2, 2}, 7));
  add(prox_of("TvPeriodic", tv("N", true, periodic), {0, 4, 1}, 1, {1.5, 2, 1.5}, 8));
  add(prox_of("TvOfTwoSteps", tv("N", true, neumann), {1, 2, 10, 11}, 1.5,
              {2.25, 2.25, 9.75, 9.75}));
  const Values point{0, 0, 0, 0, 4, 0, 0, 0, 0};
  add(prox_of_matrix(
      "TvIsotropic", tv("Ny Nx", true, neumann), point, 3, 0.5,
      {0.307197, 0.307197, 0.156531, 0.307197, 2.295751, 0.156531, 0.156531, 0.156531, 0.156531},
      13.656854));
  add(prox_of_matrix("TvAnisotropic", tv("Ny Nx", false, neumann), point, 3, 0.5,
                     {0.25, 0.25, 0.25, 0.25, 2, 0.25, 0.25, 0.25, 0.25}, 16));
}

std::vector<Example> examples() {
  std::vector<Example> list;
  add_krylov(list);
  add_proximal(list);
  add_terms(list);
  add_norms(list);
  add_total_variation(list);
  return list;
}

class Examples : public ::testing::TestWithParam<Example> {
 protected:
  static void expect_known(const Outcome& got, DType dtype) {
    const Example& known = GetParam();
    const double rounding = is_single(dtype) ? 2e-5 : 1e-9;
    if (!known.x.empty()) {
      ASSERT_EQ(got.x.dtype(), dtype);
      const auto x = got.x.to(DType::complex128).to_vector<Complex>();
      ASSERT_EQ(x.size(), known.x.size());
      for (std::size_t i = 0; i < x.size(); ++i) {
        const double bound = std::max(known.relative, 1e-6) * (1 + std::abs(known.x[i])) + rounding;
        EXPECT_LE(std::abs(x[i] - known.x[i]), bound) << i << ": " << x[i];
      }
    }
    ASSERT_EQ(got.numbers.size(), known.numbers.size());
    for (std::size_t i = 0; i < got.numbers.size(); ++i) {
      const double bound = known.relative * std::abs(known.numbers[i]) +
                           (known.relative > 1e-3 && !is_single(dtype) ? 1e-14 : rounding);
      EXPECT_NEAR(got.numbers[i], known.numbers[i], bound + (known.relative < 1e-5 ? 5e-7 : 0))
          << i;
    }
  }
};

TEST_P(Examples, InEveryDtypeAndWithTheSameBitsOnAnyNumberOfThreads) {
  for (const DType dtype : {DType::float32, DType::float64, DType::complex64, DType::complex128}) {
    if (is_complex(dtype) ? !GetParam().takes_complex : !GetParam().takes_real) continue;
    SCOPED_TRACE(name_of(dtype));
    Outcome first;
    for (const int threads : {1, 2, 4}) {
      ConfigOverrides overrides;
      overrides.threads = threads;
      overrides.parallel_grain = 1;
      const ConfigScope scope(overrides);
      const Outcome got = GetParam().run(dtype);
      if (threads == 1) {
        first = got;
        expect_known(got, dtype);
        continue;
      }
      EXPECT_TRUE(!got.x.defined() || equal(got.x, first.x)) << threads;
      EXPECT_EQ(got.numbers, first.numbers) << threads;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Known, Examples, ::testing::ValuesIn(examples()),
                         [](const auto& c) { return c.param.name; });

}  // namespace
}  // namespace palimpsest
