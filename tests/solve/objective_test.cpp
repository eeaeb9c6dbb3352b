// SPDX-License-Identifier: Apache-2.0
// Problems of several terms: the chosen method, and the values of its solution.
#include "palimpsest/solve/objective.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "palimpsest/compile/tensor_math.hpp"
#include "palimpsest/linop/containers/chain.hpp"
#include "palimpsest/linop/operators/dense.hpp"
#include "palimpsest/linop/operators/diagonal.hpp"
#include "palimpsest/linop/operators/identity.hpp"
#include "palimpsest/linop/operators/scalar.hpp"
#include "palimpsest/linop/split/budget.hpp"
#include "palimpsest/linop/transforms/fft.hpp"
#include "palimpsest/memory/allocator.hpp"
#include "palimpsest/ops/ops.hpp"
#include "palimpsest/solve/conjugate_gradients.hpp"
#include "palimpsest/solve/prox/composed.hpp"
#include "palimpsest/solve/prox/constraints.hpp"
#include "palimpsest/solve/prox/total_variation.hpp"
#include "palimpsest/solve/prox/wavelets.hpp"
#include "support/expect_error.hpp"

namespace palimpsest {
namespace {

using testing::expect_error;
using Complex = std::complex<double>;
using Values = std::vector<double>;

Tensor real(const Values& values) { return Tensor::from<double>(values); }

void expect_near(const Tensor& got, const Values& expected, double bound = 1e-6) {
  const auto a = got.to(DType::complex128).to_vector<Complex>();
  ASSERT_EQ(a.size(), expected.size());
  for (std::size_t i = 0; i < a.size(); ++i)
    EXPECT_NEAR(std::abs(a[i] - expected[i]), 0, bound) << i;
}

class Minimize : public ::testing::TestWithParam<DType> {
 protected:
  Tensor of(const Values& values) const { return real(values).to(GetParam()); }
  double bound() const { return real_of(GetParam()) == DType::float32 ? 2e-5 : 1e-6; }
};

TEST_P(Minimize, TotalVariationByCondatVu) {
  const Objective f{.A = Identity("N"), .terms = {tv_term(1.0, "N")}};
  const Tensor b = of({0, 4, 1});
  const auto at = [&](int k) { return minimize(f, b, {.tolerance = 0, .max_iterations = k}).x; };
  expect_near(at(1), {0, 1.365517, 0.341379}, bound());
  expect_near(at(2), {0.341379, 1.582117, 0.907598}, bound());
  expect_near(at(50), {1, 2, 2}, bound());
  EXPECT_EQ(at(3).dtype(), GetParam());
}

TEST_P(Minimize, AScaledNorm) {
  const Objective f{.A = Identity("N"), .terms = {{.g = L1(1.0), .K = Scalar(2.0, "N")}}};
  const SolveResult result = minimize(f, of({3}), {.max_iterations = 500});
  EXPECT_EQ(result.status, Status::converged);
  expect_near(result.x, {1}, 1e-4);
  for (const bool adapts : {false, true}) {
    const SolveResult by_pdhg =
        pdhg(SquaredL2(1.0), f, of({3}), {.max_iterations = 500, .adapt = adapts});
    EXPECT_EQ(by_pdhg.status, Status::converged) << adapts;
    expect_near(by_pdhg.x, {1}, 1e-4);
    MinimizeOptions options{.max_iterations = 500};
    options.adapt = adapts;
    expect_near(minimize(f, of({3}), options).x, {1}, 1e-4);
  }
}

TEST_P(Minimize, AConstraintOnTheData) {
  const Objective rest{.A = Identity("N"), .h = L1(1.0)};
  const SolveResult result = pdhg(Ball(1.0), rest, of({3, 0.5}), {.max_iterations = 1000});
  EXPECT_EQ(result.status, Status::converged);
  expect_near(result.x, {2.133975, 0}, 1e-5);
  EXPECT_EQ(result.applications.at("A"), result.iterations);
  EXPECT_EQ(result.applications.at("A^H"), result.iterations);
}

INSTANTIATE_TEST_SUITE_P(EveryDtype, Minimize,
                         ::testing::Values(DType::float32, DType::float64, DType::complex64,
                                           DType::complex128),
                         [](const auto& c) { return std::string(name_of(c.param)); });

TEST(Objectives, TheMethodFollowsFromTheTerms) {
  const NamedLinop A = Diagonal(real({1, 2, 3}), "N");
  const Tensor b = real({1, 2, 3});
  const SolveResult cg = minimize({.A = A}, b);
  EXPECT_EQ(cg.applications.count("A"), 1u);
  expect_near(cg.x, {1, 1, 1});
  const SolveResult fista = minimize({.A = A, .h = L1(0.1)}, b);
  EXPECT_EQ(fista.applications.at("N"), fista.iterations);
  EXPECT_FALSE(fista.applications.contains("K0"));
  const SolveResult same = minimize({.A = A, .terms = {{.g = L1(0.1)}}}, b);
  EXPECT_TRUE(equal(same.x, fista.x));
  const SolveResult two =
      minimize({.A = A, .terms = {{.g = L1(0.1)}, tv_term(0.1, "N")}}, b, {.max_iterations = 40});
  EXPECT_EQ(two.applications.at("K0"), 40);
  EXPECT_EQ(two.applications.at("K1^H"), 40);
  EXPECT_EQ(two.applications.at("N"), 40);
  EXPECT_EQ(two.applications.at("A^H"), 1);
}

// (A^H W A + lambda I) x = A^H W b + lambda c, solved by hand.
TEST(Objectives, WeightsAndQuadraticsAreInTheSolution) {
  const NamedLinop A = Diagonal(real({1, 2}), "N"), W = Diagonal(real({4, 1}), "N");
  const Tensor b = real({3, 1}), c = real({1, -1});
  const Objective f{.A = A, .W = W, .quadratics = {{.lambda = 2, .c = c}}};
  const Values expected{(4.0 * 3 + 2) / 6, (2.0 - 2) / 6};
  expect_near(minimize(f, b).x, expected);
  Objective with_h = f;
  with_h.h = ZeroProx();
  expect_near(minimize(with_h, b, {.tolerance = 1e-12, .max_iterations = 1000}).x, expected);
  expect_near(condat_vu(f, b, {.tolerance = 1e-12, .max_iterations = 1000}).x, expected);
  Objective negative = f;
  negative.quadratics[0].lambda = -1;
  expect_error<ValueError>([&] { minimize(negative, b); }, "[minimize] lambda: got -1");
}

TEST(Objectives, ShiftedTerms) {
  const Objective f{.A = Identity("N"),
                    .terms = {{.g = L1(10.0), .K = Scalar(2.0, "N"), .d = real({4, -2})}}};
  expect_near(minimize(f, real({7, 7}), {.max_iterations = 2000}).x, {2, -1}, 1e-5);
}

// Equal steps for all directions give the plain method.
TEST(CondatVu, TakesAStepForEachDirection) {
  const Tensor b = real({0, 4, 1});
  const Term tv = tv_term(1.0, "N");
  const auto solved = [&](const char* step, int iterations) {
    Problem p(TensorType{DType::float64, b.shape(), {}});
    p.set("A", Identity("N")).set("K0", *tv.K).set("g0", tv.g).set("L", 1.0);
    p.set("terms", index_t{1});
    // 1 / (L / 2 + 2.4 L), as long as the plain step, or twice as long for one of three.
    if (std::string(step) == "even") p.set("P", (0.99 / 2.9) * Identity("N"));
    if (std::string(step) == "odd") {
      p.set("P", Diagonal(real({0.3, 0.33, 0.2}), "N"));
    }
    return solve(*find_solver("condat_vu"), p, b, {.max_iterations = iterations}).x;
  };
  for (const int iterations : {1, 2, 7}) {
    expect_near(solved("even", iterations), solved("plain", iterations).to_vector<double>());
  }
  expect_near(solved("odd", 400), {1, 2, 2}, 1e-5);
  Problem p(TensorType{DType::float64, b.shape(), {}});
  p.set("A", Identity("N")).set("P", Identity("N")).set("L", 1.0).set("terms", index_t{0});
  p.set("h", NonNegative());
  expect_error<ValueError>([&] { solve(*find_solver("condat_vu"), p, b, {}); }, "P: got h");
}

// The solutions computed by hand, and those of condat_vu.
TEST(Objectives, AdmmFindsTheSameSolutions) {
  AdmmOptions tight{.tolerance = 1e-7, .max_iterations = 2000};
  for (const bool adapts : {false, true}) {
    tight.adapt = adapts;
    const Objective line{.A = Identity("N"), .terms = {tv_term(1.0, "N")}};
    expect_near(admm(line, real({0, 4, 1}), tight).x, {1, 2, 2}, 1e-5);
    const Objective shifted{.A = Identity("N"),
                            .terms = {{.g = L1(10.0), .K = Scalar(2.0, "N"), .d = real({4, -2})}}};
    expect_near(admm(shifted, real({7, 7}), tight).x, {2, -1}, 1e-5);
    const NamedLinop A = Dense(Tensor::random_normal({30, 12}, DType::float64, {3, 0}), "MN,N->M");
    const Tensor b = Tensor::random_normal({30}, DType::float64, {3, 1});
    const Objective two{.A = A, .terms = {tv_term(1.0, "N"), {.g = L1(0.5)}}, .h = NonNegative()};
    const SolveResult by_admm = admm(two, b, tight);
    EXPECT_EQ(by_admm.status, Status::converged);
    const SolveResult by_condat_vu =
        condat_vu(two, b, {.tolerance = 1e-9, .max_iterations = 20000});
    EXPECT_TRUE(allclose(by_admm.x, by_condat_vu.x, 1e-4, 1e-4)) << adapts;
    EXPECT_EQ(by_admm.applications.at("K0"), by_admm.iterations);
    EXPECT_EQ(by_admm.applications.at("K0^H"), 2 * by_admm.iterations);
    EXPECT_EQ(by_admm.applications.at("N"), by_admm.applications.at("K1.N"));
  }
  expect_error<ValueError>([&] { admm({.A = Identity("N")}, real({1})); }, "[admm] terms");
  expect_error<ValueError>(
      [&] { admm({.A = Identity("N"), .h = L1(1.0)}, real({1}), {.rho = -1.0}); }, "[admm] rho");
}

// With an inner tolerance that allows no step the iterates would stand still.
TEST(Admm, ConvergesToTheSolutionOnly) {
  const NamedLinop A = Dense(real({1, 0.5, 0, 1}).reshape({2, 2}), "MN,N->M");
  const Objective f{.A = A, .terms = {{.g = L1(0.1), .K = Identity("N")}}};
  const SolveResult result = admm(f, real({1, 2}), {.max_iterations = 500, .relaxation = 1});
  EXPECT_EQ(result.status, Status::converged);
  expect_near(result.x, {0, 1.92}, 1e-2);
}

TEST(Objectives, AProxOfNaNLeavesTheLastFiniteIterate) {
  const NamedLinop A = Diagonal(real({1, 2, 3}), "N");
  const Tensor b = real({1, 2, 3});
  for (const char* name : {"condat_vu", "admm", "pdhg"}) {
    Parameter scale(Tensor::full<double>({}, 0.5));
    const Prox half = CustomProx(
        {.prox = [&](const Variable& v, const Variable&) { return v * scale.var(); }}, "half");
    const Objective f{.A = A, .terms = {{.g = half}}};
    Tensor last;
    const auto callback = [&](const SolveInfo& info) {
      last = info.x();
      if (info.iteration() == 3) scale.set_value(Tensor::full<double>({}, std::nan("")));
      return true;
    };
    const std::string solver = name;
    const SolveResult result =
        solver == "admm"   ? admm(f, b, {.tolerance = 0, .max_iterations = 9, .callback = callback})
        : solver == "pdhg" ? pdhg(SquaredL2(1.0), f, b, {.tolerance = 0, .callback = callback})
                           : condat_vu(f, b, {.tolerance = 0, .callback = callback});
    EXPECT_EQ(result.status, Status::diverged) << name;
    EXPECT_EQ(result.iterations, 3) << name;
    EXPECT_TRUE(equal(result.x, last)) << name;
  }
}

TEST(Objectives, FunctionsFindTheirDimensionsByName) {
  const Tensor b = Tensor::random_normal({4, 5}, DType::float64, {7, 0});
  const NamedLinop I = Identity("Y X");
  const MinimizeOptions options{.tolerance = 0, .max_iterations = 20};
  const auto by_term = [&](const TotalVariationOptions& o) {
    return minimize({.A = I, .terms = {tv_term(0.5, "Y", o)}}, b, options).x;
  };
  EXPECT_TRUE(equal(by_term({}), by_term({.dims = Dims("Y X")})));
  const auto by_prox = [&](const Prox& g) { return minimize({.A = I, .h = g}, b, options).x; };
  const Dims dims("Y X");
  EXPECT_TRUE(
      equal(by_prox(TotalVariation(0.5, "Y")), by_prox(TotalVariation(0.5, "Y", {.dims = dims}))));
  EXPECT_TRUE(equal(by_prox(weighted(TotalVariation(0.5, "Y"), 2)),
                    by_prox(weighted(TotalVariation(0.5, "Y", {.dims = dims}), 2))));
  EXPECT_TRUE(equal(by_prox(L1Wavelet(0.5, "Y", {.levels = 1})),
                    by_prox(L1Wavelet(0.5, "Y", {.levels = 1, .dims = dims}))));
  for (const Prox& g : {TotalVariation(0.5, "Q"), L1Wavelet(0.5, "Q", {.levels = 1})}) {
    expect_error<ShapeError>([&] { by_prox(g); }, "over: got Q");
  }
  expect_error<ShapeError>([&] { minimize({.A = I, .terms = {tv_term(0.5, "Q")}}, b); },
                           "over: got Q");
  const Term other{.g = L1(1.0), .K = Diagonal(Tensor::ones({4, 5}), "Z X")};
  expect_error<ShapeError>([&] { minimize({.A = I, .terms = {other}}, b); },
                           "[condat_vu] Mismatched shape of K0");
}

TEST(Objectives, ShiftsHaveTheShapeOfTheirTerms) {
  const NamedLinop I = Identity("N");
  const Tensor b = real({1, 2, 3}), imaginary = b.to(DType::complex128);
  const auto with = [&](const Tensor& d) {
    return [=] { condat_vu({.A = I, .terms = {{.g = L1(1.0), .d = d}}}, b); };
  };
  expect_error<ShapeError>(with(real({1, 2})), "[condat_vu] d0: got shape");
  expect_error<DTypeError>(with(imaginary), "[condat_vu] d0: got complex128");
  const Objective pulled{.A = I, .quadratics = {{.lambda = 1, .c = real({1, 2})}}};
  expect_error<ShapeError>([&] { minimize(pulled, b); }, "[minimize] c: got shape");
}

TEST(Pdhg, RefusesWhatItDoesNotMinimize) {
  const NamedLinop I = Identity("N");
  const Tensor b = real({1, 2, 3});
  expect_error<ValueError>([&] { pdhg(SquaredL2(1.0), {.A = I, .W = I}, b); }, "[pdhg] W: got one");
  expect_error<ValueError>(
      [&] { pdhg(SquaredL2(1.0), {.A = I, .quadratics = {{.lambda = 1}}}, b); },
      "[pdhg] quadratics: got 1");
}

TEST(Objectives, TakeWhatThePlanSays) {
  const NamedLinop A =
      Dense(Tensor::random_normal({3, 20, 20}, DType::complex64, {3, 0}), "C Ny Nx,Ny Nx->C Ny Nx");
  const Tensor b = Tensor::random_normal({3, 20, 20}, DType::complex64, {3, 1});
  const Objective f{.A = A, .terms = {tv_term(0.1, "Ny Nx"), {.g = L1(0.1)}}, .h = NonNegative()};
  for (const bool has_L : {true, false}) {
    MinimizeOptions options{.tolerance = 0, .max_iterations = 4};
    if (has_L) options.L = 30.0;
    const SolvePlan plan = plan_minimize(f, {b.dtype(), b.shape(), {}}, options);
    const MemoryScope scope;
    minimize(f, b, options);
    EXPECT_EQ(static_cast<index_t>(scope.peak_bytes()), plan.peak_bytes) << has_L;
  }
}

// A point has no neighbours, none has no values.
TEST(Objectives, OfExtentsZeroAndOneAreSolved) {
  for (const index_t n : {0, 1}) {
    for (const auto boundary :
         {DifferenceBoundary::neumann, DifferenceBoundary::periodic, DifferenceBoundary::zero}) {
      const Objective f{.A = 2.0 * Identity("N"),
                        .terms = {tv_term(0.1, "N", {.boundary = boundary}), {.g = L1(0.1)}}};
      const Tensor b = Tensor::full<float>({n}, 1.0F);
      const double expected = boundary == DifferenceBoundary::zero ? 0.45 : 0.475;
      const auto expect_solved = [&](const SolveResult& result) {
        EXPECT_EQ(result.status, Status::converged) << n;
        EXPECT_TRUE(allclose(result.x, b * expected, 1e-3, 0)) << n;
      };
      expect_solved(condat_vu(f, b, {.max_iterations = 2000}));
      expect_solved(admm(f, b, {.max_iterations = 2000}));
      expect_solved(pdhg(SquaredL2(1.0), f, b, {.max_iterations = 2000}));
    }
  }
}

TEST(Objectives, TakeWhatThePlanSaysByEveryMethod) {
  const Term tv = tv_term(0.1, "Ny Nx"), sparse{.g = L1(0.1), .K = Scalar(2.0, "Ny Nx")};
  for (const DType dtype : {DType::float32, DType::complex128}) {
    const auto normal = [&](Extents shape, std::uint64_t stream) {
      return Tensor::random_normal(std::move(shape), dtype, {3, stream});
    };
    const NamedLinop A = Dense(normal({3, 20, 20}, 0), "C Ny Nx,Ny Nx->C Ny Nx");
    const NamedLinop W = Diagonal(Tensor::full<double>({20, 20}, 0.5).to(real_of(dtype)), "C Ny Nx",
                                  {.weight_shape = Dims("Ny Nx")});
    const Tensor b = normal({3, 20, 20}, 1);
    const std::vector<Quadratic> quadratics{{.lambda = 0.1, .c = normal({20, 20}, 2)}};
    for (const bool has_x0 : {false, true}) {
      for (const Objective& f :
           {Objective{.A = A}, Objective{.A = A, .W = W, .quadratics = quadratics},
            Objective{.A = A, .W = W, .quadratics = quadratics, .h = L1(0.1)},
            Objective{.A = A, .terms = {tv, sparse}, .h = L1(0.1)}}) {
        for (const Method method : {Method::automatic, Method::admm}) {
          if (method == Method::admm && f.terms.empty()) continue;
          MinimizeOptions options{.method = method, .tolerance = 0, .max_iterations = 3, .L = 30.0};
          if (has_x0) options.x0 = normal({20, 20}, 4);
          const SolvePlan plan = plan_minimize(f, TensorType{dtype, b.shape(), {}}, options);
          const MemoryScope scope;
          const SolveResult result = minimize(f, b, options);
          EXPECT_EQ(static_cast<index_t>(scope.peak_bytes()), plan.peak_bytes) << has_x0;
          EXPECT_EQ(result.peak_bytes, plan.peak_bytes);
        }
      }
    }
  }
}

TEST(Objectives, CountNothingThatIsTheCallers) {
  const NamedLinop A = Diagonal(Tensor::linspace(1, 2, 400, DType::float64), "N");
  const Tensor b = Tensor::random_normal({400}, DType::float64, {3, 1});
  const Objective f{
      .A = A,
      .quadratics = {{.lambda = 0.5, .c = Tensor::random_normal({400}, DType::float64, {3, 2})}},
      .terms = {{.g = L1(0.1),
                 .K = Scalar(2.0, "N"),
                 .d = Tensor::random_normal({400}, DType::float64, {3, 3})}}};
  const MinimizeOptions options{.tolerance = 0, .max_iterations = 3};
  const SolvePlan plan = plan_minimize(f, {b.dtype(), b.shape(), {}}, options);
  const MemoryScope scope;
  minimize(f, b, options);
  EXPECT_EQ(static_cast<index_t>(scope.peak_bytes()), plan.peak_bytes);
}

// Budgets down to the smallest are kept and give the same image; a smaller one is refused with the
// smallest.
void expect_budgets_kept(const Objective& f, const Tensor& b, MinimizeOptions options) {
  const TensorType type{b.dtype(), b.shape(), {}};
  const SolvePlan whole = plan_minimize(f, type, options);
  const Tensor x = minimize(f, b, options).x;
  const index_t least = smallest_minimize_budget(f, type, options);
  EXPECT_LT(least, whole.total_bytes());
  for (const index_t budget : {whole.total_bytes(), (whole.total_bytes() + least) / 2, least}) {
    options.budget_bytes = budget;
    const SolvePlan plan = plan_minimize(f, type, options);
    EXPECT_LE(plan.total_bytes(), budget);
    const MemoryScope scope;
    const SolveResult result = minimize(f, b, options);
    EXPECT_EQ(static_cast<index_t>(scope.peak_bytes()), plan.peak_bytes);
    EXPECT_TRUE(allclose(result.x, x, 1e-4, 1e-4));
  }
  options.budget_bytes = least * 99 / 100;
  expect_error<BudgetError>([&] { minimize(f, b, options); }, std::to_string(least));
}

// cg keeps the right-hand side that it computes from the data.
TEST(Objectives, WithoutTermsCountTheRightHandSide) {
  const NamedLinop A =
      Dense(Tensor::random_normal({3, 20, 20}, DType::complex64, {3, 0}), "C Ny Nx,Ny Nx->C Ny Nx");
  const Tensor b = Tensor::random_normal({3, 20, 20}, DType::complex64, {3, 1});
  const Tensor c = Tensor::random_normal({20, 20}, DType::complex64, {3, 2});
  const NamedLinop W =
      Diagonal(Tensor::full<float>({20, 20}, 0.5f), "C Ny Nx", {.weight_shape = Dims("Ny Nx")});
  for (const bool has_target : {false, true}) {
    for (const bool is_weighted : {false, true}) {
      Objective f{.A = A, .quadratics = {{.lambda = 0.1}}};
      if (has_target) f.quadratics[0].c = c;
      if (is_weighted) f.W = W;
      const MinimizeOptions options{.tolerance = 0, .max_iterations = 4};
      const SolvePlan plan = plan_minimize(f, TensorType{b.dtype(), b.shape(), {}}, options);
      const MemoryScope scope;
      minimize(f, b, options);
      EXPECT_EQ(static_cast<index_t>(scope.peak_bytes()), plan.peak_bytes)
          << has_target << is_weighted;
    }
  }
}

TEST(Objectives, WithoutTermsKeepABudget) {
  const Tensor maps = Tensor::random_normal({8, 32, 32}, DType::complex64, {3, 0});
  const NamedLinop A = Chain(Dense(maps, "C Ny Nx,Ny Nx->C Ny Nx"),
                             Fft(2, {.batch = "C", .grid = Grid{"Ny Nx", "Ky Kx"}}));
  const Tensor b = Tensor::random_normal({8, 32, 32}, DType::complex64, {3, 1});
  const Objective f{.A = A, .quadratics = {{.lambda = 1.0}}};
  const MinimizeOptions options{.tolerance = 0, .max_iterations = 5};
  expect_budgets_kept(f, b, options);
}

// Its own right-hand side counts too.
TEST(CgNormal, KeepsABudget) {
  const Tensor maps = Tensor::random_normal({8, 32, 32}, DType::complex64, {3, 0});
  const NamedLinop A = Chain(Dense(maps, "C Ny Nx,Ny Nx->C Ny Nx"),
                             Fft(2, {.batch = "C", .grid = Grid{"Ny Nx", "Ky Kx"}}));
  const Tensor b = Tensor::random_normal({8, 32, 32}, DType::complex64, {3, 1});
  const TensorType image{DType::complex64, {32, 32}, {}};
  CgOptions options{.tolerance = 0, .max_iterations = 5};
  const Tensor x = cg_normal(A, b, options).x;
  const index_t least = 8 * 32 * 32 + smallest_cg_budget(A.N(), image, options);
  for (const index_t budget : {least, 2 * least}) {
    options.budget_bytes = budget;
    const MemoryScope scope;
    const Tensor within = cg_normal(A, b, options).x;
    EXPECT_LE(static_cast<index_t>(scope.peak_bytes()) + operator_bytes(A.N()), budget);
    EXPECT_TRUE(allclose(within, x, 1e-4, 1e-4));
  }
  options.budget_bytes = least * 99 / 100;
  expect_error<BudgetError>([&] { cg_normal(A, b, options); }, std::to_string(least));
}

// 1/2 |A x - b|_W^2 + lambda/2 |x - c|^2 + |2 x - d|_1 / 2 + h(x), by every applicable method.
TEST(Objectives, AreRecordedWhenAskedFor) {
  const NamedLinop A = Dense(Tensor::random_normal({9, 5}, DType::complex128, {3, 0}), "MN,N->M");
  const NamedLinop W = Diagonal(Tensor::linspace(0.5, 2, 9), "M"), K = Scalar(2.0, "N");
  const Tensor b = Tensor::random_normal({9}, DType::complex128, {3, 1});
  const Tensor c = Tensor::random_normal({5}, DType::complex128, {3, 2});
  const Tensor d = Tensor::random_normal({5}, DType::complex128, {3, 3});
  const Prox g = L1(0.5), h = L2(0.7);
  const auto square = [](const Tensor& t) { return std::pow(norm(t).item<double>(), 2) / 2; };
  const Objective f{.A = A, .W = W, .quadratics = {{.lambda = 0.3, .c = c}}, .h = h};
  const auto smooth = [&](const Tensor& x) {
    const Tensor miss = A(x) - b;
    return vdot(miss, W(miss)).to(DType::complex128).item<Complex>().real() / 2 +
           0.3 * square(x - c);
  };
  MinimizeOptions options{.tolerance = 0, .max_iterations = 7};
  options.objective = RecordObjective::always;
  const SolveResult fista = minimize(f, b, options);
  EXPECT_NEAR(fista.history.back().objective, smooth(fista.x) + h.value(fista.x), 1e-10);
  Objective more = f;
  more.terms = {{.g = g, .K = K, .d = d}};
  const auto whole = [&](const Tensor& x) { return smooth(x) + h.value(x) + g.value(K(x) - d); };
  for (const Method method : {Method::condat_vu, Method::admm}) {
    options.method = method;
    const SolveResult result = minimize(more, b, options);
    EXPECT_NEAR(result.history.back().objective, whole(result.x), 1e-10);
    EXPECT_TRUE(std::isnan(minimize(more, b, {.method = method}).history.back().objective));
  }
  // f of pdhg may be any function, and a violated constraint is infinite.
  const Objective rest{.A = A, .terms = more.terms, .h = h};
  PdhgOptions by{.tolerance = 0, .max_iterations = 7};
  by.objective = RecordObjective::always;
  const SolveResult huber = pdhg(Huber(1.0, 0.4), rest, b, by);
  EXPECT_NEAR(huber.history.back().objective,
              Huber(1.0, 0.4).value(A(huber.x) - b) + h.value(huber.x) + g.value(K(huber.x) - d),
              1e-10);
  const SolveResult ball = pdhg(Ball(0.01), rest, b, by);
  EXPECT_EQ(ball.status, Status::max_iterations);
  EXPECT_TRUE(std::isinf(ball.history.back().objective));
}

// With badly balanced steps: adaptive ones reach the solution in fewer iterations.
TEST(Objectives, StepsThatAdaptMendABadBalance) {
  const NamedLinop A = Dense(Tensor::random_normal({30, 12}, DType::float64, {3, 0}), "MN,N->M");
  const Tensor b = Tensor::random_normal({30}, DType::float64, {3, 1});
  const Objective f{.A = A, .terms = {tv_term(1.0, "N"), {.g = L1(0.5)}}};
  const Tensor best = condat_vu(f, b, {.tolerance = 1e-12, .max_iterations = 50000}).x;
  for (const double balance : {1e-3, 2.4, 300.0}) {
    MinimizeOptions options{.tolerance = 1e-8, .max_iterations = 20000, .balance = balance};
    const SolveResult fixed = condat_vu(f, b, options);
    options.adapt = true;
    const SolveResult adapted = condat_vu(f, b, options);
    EXPECT_EQ(adapted.status, Status::converged) << balance;
    EXPECT_TRUE(allclose(adapted.x, best, 1e-5, 1e-6)) << balance;
    EXPECT_EQ(adapted.applications.at("K0"), adapted.iterations);
    if (balance != 2.4) {
      EXPECT_LT(adapted.iterations, fixed.iterations / 2) << balance;
    }
  }
  for (const double ratio : {1e-3, 1.0, 1e3}) {
    PdhgOptions options{.tolerance = 1e-7, .max_iterations = 40000, .ratio = ratio};
    const SolveResult fixed = pdhg(SquaredL2(1.0), f, b, options);
    options.adapt = true;
    const SolveResult adapted = pdhg(SquaredL2(1.0), f, b, options);
    EXPECT_EQ(adapted.status, Status::converged) << ratio;
    EXPECT_TRUE(allclose(adapted.x, best, 1e-4, 1e-5)) << ratio;
    EXPECT_EQ(adapted.applications.at("A"), adapted.iterations);
    if (ratio != 1) {
      EXPECT_LT(adapted.iterations, fixed.iterations) << ratio;
    }
  }
  expect_error<ValueError>([&] { pdhg(SquaredL2(1.0), f, b, {.strong = 1, .adapt = true}); },
                           "[pdhg] adapt");
  MinimizeOptions none;
  none.adapt = true;
  expect_error<ValueError>([&] { condat_vu({.A = A, .h = L1(1.0)}, b, none); }, "adapt: got no");
  none.balance = 0;
  expect_error<ValueError>([&] { condat_vu(f, b, none); }, "[condat_vu] balance: got 0");
}

// The coils are cut; the image, its gradient and the dual variable are state.
TEST(Objectives, KeepABudget) {
  const Tensor maps = Tensor::random_normal({8, 32, 32}, DType::complex64, {3, 0});
  const NamedLinop A = Chain(Dense(maps, "C Ny Nx,Ny Nx->C Ny Nx"),
                             Fft(2, {.batch = "C", .grid = Grid{"Ny Nx", "Ky Kx"}}));
  const Tensor b = Tensor::random_normal({8, 32, 32}, DType::complex64, {3, 1});
  const Objective f{.A = A, .terms = {tv_term(0.1, "Ny Nx")}};
  const MinimizeOptions options{.tolerance = 0, .max_iterations = 5, .L = 40.0};
  expect_budgets_kept(f, b, options);
}

// Denoising, and an image from some of its Fourier coefficients: no conjugate gradients.
TEST(Admm, TakesNoInnerStepsWhereOneBasisServesAll) {
  const TotalVariationOptions periodic{.boundary = DifferenceBoundary::periodic};
  const Tensor mask = Tensor::random_uniform({6, 8}, DType::float64, {5, 1}) < 0.7;
  const NamedLinop F = Fft(2, {.grid = Grid{"Ny Nx", "Ky Kx"}, .centered = true});
  const NamedLinop I = Identity("Ny Nx");
  const Term tv = tv_term(0.2, "Ny Nx", periodic);
  const Term sparse{.g = L1(0.1),
                    .K = Diagonal(Tensor::linspace(1, 2, 48).reshape({6, 8}), "Ny Nx")};
  const Tensor weights = Tensor::linspace(0.5, 2, 48).reshape({6, 8});
  const std::vector<Objective> closed{
      {.A = I, .terms = {tv}},
      {.A = I, .terms = {tv, {.g = L1(0.1)}}},
      {.A = I, .terms = {sparse}},
      {.A = Diagonal(weights, "Ny Nx"), .terms = {sparse}, .h = NonNegative()},
      {.A = Diagonal(mask.to(DType::float64), "Ky Kx") * F, .terms = {tv}},
      {.A = Diagonal(mask.to(DType::float64), "Ky Kx") * F, .quadratics = {{0.3}}, .terms = {tv}}};
  for (const DType dtype : {DType::float64, DType::complex128}) {
    for (const Objective& f : closed) {
      const bool is_fourier = f.A.oshape().contains("Kx");
      if (is_fourier && !is_complex(dtype)) continue;
      const Tensor b = Tensor::random_normal({6, 8}, dtype, {5, 2});
      const SolveResult result = admm(f, b, {.tolerance = 1e-9, .max_iterations = 3000});
      EXPECT_EQ(result.status, Status::converged) << f.A.str();
      EXPECT_EQ(result.applications.at("N"), 1) << f.A.str();
      EXPECT_FALSE(result.applications.contains("K0.N"));
      const Tensor expected = condat_vu(f, b, {.tolerance = 1e-9, .max_iterations = 30000}).x;
      EXPECT_TRUE(allclose(result.x, expected, 1e-5, 1e-5)) << f.A.str();
    }
  }
  // Differences are 0 at the ends, so a Fourier transform does not diagonalize them.
  const SolveResult inner = admm({.A = I, .terms = {tv_term(0.2, "Ny Nx")}},
                                 Tensor::random_normal({6, 8}, DType::float64, {5, 2}), {});
  EXPECT_GT(inner.applications.at("N"), inner.iterations);
}

// With any step, nothing moves.
TEST(Objectives, AnOperatorThatIsZero) {
  const Objective f{.A = Diagonal(Tensor::zeros({4}), "N"), .terms = {tv_term(0.1, "N")}};
  EXPECT_TRUE(equal(minimize(f, Tensor::ones({4})).x, Tensor::zeros({4})));
  EXPECT_TRUE(equal(minimize({.A = f.A, .h = L1(0.1)}, Tensor::ones({4})).x, Tensor::zeros({4})));
}

TEST(TotalVariation, OfALine) {
  const TotalVariationOptions neumann{.inner = 2000, .inner_tolerance = 1e-14};
  TotalVariationOptions periodic = neumann;
  periodic.boundary = DifferenceBoundary::periodic;
  const Tensor v = real({0, 4, 1});
  expect_near(TotalVariation(1.0, "N", neumann).prox(v, 1), {1, 2, 2});
  EXPECT_NEAR(TotalVariation(1.0, "N", neumann).value(v), 7, 1e-12);
  expect_near(TotalVariation(1.0, "N", periodic).prox(v, 1), {1.5, 2, 1.5});
  EXPECT_NEAR(TotalVariation(1.0, "N", periodic).value(v), 8, 1e-12);
  expect_near(TotalVariation(1.0, "N", neumann).prox(real({1, 2, 10, 11}), 1.5),
              {2.25, 2.25, 9.75, 9.75});
}

TEST(TotalVariation, OfAnImage) {
  TotalVariationOptions options{.inner = 5000, .inner_tolerance = 1e-14};
  const Tensor v = real({0, 0, 0, 0, 4, 0, 0, 0, 0}).reshape({3, 3});
  const Prox isotropic = TotalVariation(1.0, "Ny Nx", options);
  EXPECT_NEAR(isotropic.value(v), 13.656854, 1e-6);
  expect_near(isotropic.prox(v, 0.5), {0.307197, 0.307197, 0.156531, 0.307197, 2.295751, 0.156531,
                                       0.156531, 0.156531, 0.156531});
  options.isotropic = false;
  const Prox anisotropic = TotalVariation(1.0, "Ny Nx", options);
  EXPECT_NEAR(anisotropic.value(v), 16, 1e-12);
  expect_near(anisotropic.prox(v, 0.5), {0.25, 0.25, 0.25, 0.25, 2, 0.25, 0.25, 0.25, 0.25});
}

// For a given x, the minimum over the field w of the terms of the objective.
double tgv_of(const Values& values, TgvOptions options) {
  options.boundary = DifferenceBoundary::periodic;
  const Objective f = tgv_objective(Identity("N"), 1.0, "N", options);
  const Tensor u = pdhg(Ball(0.0), f, real(values), {.tolerance = 1e-9, .max_iterations = 20000}).x;
  double sum = 0;
  for (const Term& term : f.terms) sum += term.g.value((*term.K)(u));
  expect_near(u(0), values, 1e-6);
  return sum;
}

TEST(Tgv, OfALine) {
  const Values ramp{0, 1, 2, 3, 4, 5, 6, 7}, step{0, 0, 0, 1, 1, 1, 0, 0};
  for (const auto direction : {DifferenceDirection::forward, DifferenceDirection::backward}) {
    EXPECT_NEAR(tgv_of(ramp, {.direction = direction}), 8, 1e-4);
    EXPECT_NEAR(tgv_of(step, {.direction = direction}), 2, 1e-4);
  }
  const TotalVariationOptions periodic{.boundary = DifferenceBoundary::periodic};
  EXPECT_NEAR(TotalVariation(1.0, "N", periodic).value(real(ramp)), 14, 1e-12);
  EXPECT_NEAR(TotalVariation(1.0, "N", periodic).value(real(step)), 2, 1e-12);
}

// All D^2 entries of the symmetrized gradient are used; any dimension may be cut.
TEST(Tgv, OfAnImage) {
  const NamedLinop A = Identity("S Ny Nx");
  const Objective f = tgv_objective(A, 0.7, "Ny Nx", {.alpha1 = 2, .alpha0 = 3});
  const Tensor u = Tensor::random_normal({3, 2, 5, 4}, DType::complex128, {3, 0});
  const auto d = [&](const Tensor& x, const char* along, DifferenceDirection direction) {
    return FiniteDifference("S Ny Nx", along,
                            {.boundary = DifferenceBoundary::neumann, .direction = direction})(x);
  };
  const auto forward = DifferenceDirection::forward, backward = DifferenceDirection::backward;
  const auto size2 = [](const Tensor& t) { return abs(t) * abs(t); };
  const Tensor first = size2(d(u(0), "Ny", forward) - u(1)) + size2(d(u(0), "Nx", forward) - u(2));
  const Tensor mixed = (d(u(1), "Nx", backward) + d(u(2), "Ny", backward)) * 0.5;
  const Tensor second =
      size2(d(u(1), "Ny", backward)) + size2(d(u(2), "Nx", backward)) + size2(mixed) * 2.0;
  const auto sum_of_roots = [](const Tensor& t) {
    double sum = 0;
    for (const double value : t.to(DType::float64).to_vector<double>()) sum += std::sqrt(value);
    return sum;
  };
  EXPECT_NEAR(f.terms[0].g.value((*f.terms[0].K)(u)), 1.4 * sum_of_roots(first), 1e-10);
  EXPECT_NEAR(f.terms[1].g.value((*f.terms[1].K)(u)), 2.1 * sum_of_roots(second), 1e-10);
  EXPECT_TRUE(equal(f.A(u), u(0)));
}

// Total variation flattens the ends of a ramp; generalized variation does not.
TEST(Tgv, KeepsSlopes) {
  const Tensor image = Tensor::linspace(0, 6, 24, DType::float64);
  const Tensor b = image + Tensor::random_normal({24}, DType::float64, {3, 5}) * 0.02;
  const MinimizeOptions options{.tolerance = 1e-6, .max_iterations = 5000};
  const Objective tv{.A = Identity("N"), .terms = {tv_term(1.0, "N")}};
  const auto error = [&](const Tensor& x) { return norm(x - image).item<double>(); };
  const SolveResult slopes = minimize(tgv_objective(Identity("N"), 1.0, "N"), b, options);
  EXPECT_EQ(slopes.x.shape(), (Extents{2, 24}));
  EXPECT_LT(error(slopes.x(0)), 0.7 * error(minimize(tv, b, options).x));
  // lambda may be a parameter.
  const Parameter lambda(Tensor::full<double>({}, 1.0));
  const Objective same = tgv_objective(Identity("N"), lambda, "N");
  EXPECT_TRUE(allclose(minimize(same, b, options).x, slopes.x, 1e-6, 1e-6));
  expect_error<ValueError>([] { tgv_objective(Identity("N"), 1.0, "N", {.alpha0 = -1}); },
                           "alpha0: got -1");
  expect_error<ValueError>([] { tgv_objective(Identity("N"), -1.0, "N"); }, "lambda: got -1");
  expect_error<ShapeError>([] { tgv_objective(Identity("N"), 1.0, "Z"); }, "Z");
  expect_error<ShapeError>([] { tgv_objective(Identity("N"), 1.0, ""); }, "over: got none");
}

// min |A x - b|_1 + |x - c|^2 / 2 with a diagonal A.
TEST(Pdhg, StepsForStronglyConvexFunctionsAreFaster) {
  const NamedLinop A = Diagonal(Tensor::linspace(0.1, 3, 40, DType::float64), "N");
  const Tensor b = Tensor::random_normal({40}, DType::float64, {5, 0});
  const Tensor c = Tensor::random_normal({40}, DType::float64, {5, 1});
  // Each element separately: the prox of a |x - b / a| at c.
  std::vector<double> expected;
  for (index_t i = 0; i < 40; ++i) {
    const double a = 0.1 + 2.9 * static_cast<double>(i) / 39, at = b.at<double>({i}) / a;
    const double off = c.at<double>({i}) - at;
    expected.push_back(at + std::copysign(std::max(std::abs(off) - a, 0.0), off));
  }
  const Objective rest{.A = A, .h = SquaredL2(1.0, {.center = c})};
  const auto error = [&](double strong, int iterations) {
    const PdhgOptions options{
        .tolerance = 0, .max_iterations = iterations, .ratio = 0.01, .strong = strong};
    const auto x = pdhg(L1(1.0), rest, b, options).x.to_vector<double>();
    double sum = 0;
    for (std::size_t i = 0; i < x.size(); ++i) sum += (x[i] - expected[i]) * (x[i] - expected[i]);
    return std::sqrt(sum);
  };
  EXPECT_LT(error(1, 100), 0.5 * error(0, 100));
  // The error falls as 1 / iterations, at least.
  EXPECT_LT(error(1, 400), error(1, 100) / 3);
  EXPECT_LT(error(1, 1600), error(1, 400) / 3);
  expect_error<ValueError>([&] { error(-1, 1); }, "strong: got -1");
}

}  // namespace
}  // namespace palimpsest
