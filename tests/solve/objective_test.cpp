// SPDX-License-Identifier: Apache-2.0
// Problems of several terms: which method solves them, and the values it comes to.
#include "palimpsest/solve/objective.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "palimpsest/linop/containers/chain.hpp"
#include "palimpsest/linop/operators/dense.hpp"
#include "palimpsest/linop/operators/diagonal.hpp"
#include "palimpsest/linop/operators/identity.hpp"
#include "palimpsest/linop/operators/scalar.hpp"
#include "palimpsest/linop/transforms/fft.hpp"
#include "palimpsest/memory/allocator.hpp"
#include "palimpsest/solve/prox/constraints.hpp"
#include "palimpsest/solve/prox/total_variation.hpp"
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

// The solutions known by hand, and those of condat_vu.
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

// The coils are cut; the image, its gradient and the dual are state.
TEST(Objectives, KeepABudget) {
  const Tensor maps = Tensor::random_normal({8, 32, 32}, DType::complex64, {3, 0});
  const NamedLinop A = Chain(Dense(maps, "C Ny Nx,Ny Nx->C Ny Nx"),
                             Fft(2, {.batch = "C", .grid = Grid{"Ny Nx", "Ky Kx"}}));
  const Tensor b = Tensor::random_normal({8, 32, 32}, DType::complex64, {3, 1});
  const Objective f{.A = A, .terms = {tv_term(0.1, "Ny Nx")}};
  MinimizeOptions options{.tolerance = 0, .max_iterations = 5, .L = 40.0};
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

// Whatever the step, nothing moves.
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

// min |A x - b|_1 + |x - c|^2 / 2 with a diagonal A.
TEST(Pdhg, StepsForStronglyConvexFunctionsAreFaster) {
  const NamedLinop A = Diagonal(Tensor::linspace(0.1, 3, 40, DType::float64), "N");
  const Tensor b = Tensor::random_normal({40}, DType::float64, {5, 0});
  const Tensor c = Tensor::random_normal({40}, DType::float64, {5, 1});
  // Each element for itself: the prox of a |x - b / a| at c.
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
