// SPDX-License-Identifier: Apache-2.0
// The testing kit finds violations.
#include "palimpsest/linop/testing/testing.hpp"

#include "linop/linop_support.hpp"
#include "palimpsest/base/config.hpp"
#include "palimpsest/ops/elementwise/elementwise.hpp"

namespace palimpsest {
namespace {

using testing::expect_error;
using testing::random;

Variable twice(const NamedLinop&, const Variable& x) { return x * 2.0; }
Variable thrice(const NamedLinop&, const Variable& x) { return x * 3.0; }
Variable conjugate(const NamedLinop&, const Variable& x) { return ops::conj(x); }
Variable squared(const NamedLinop&, const Variable& x) { return x * x; }

const LinopType kWrongAdjoint{.name = "test.WrongAdjoint",
                              .functions = {.fn = twice, .adj_fn = thrice}};
const LinopType kWrongNormal{.name = "test.WrongNormal",
                             .functions = {.fn = twice, .adj_fn = twice, .normal_fn = twice}};
const LinopType kConjugate{.name = "test.Conjugate",
                           .functions = {.fn = conjugate, .adj_fn = conjugate},
                           .real_linear = true};
const LinopType kSquared{.name = "test.Squared", .functions = {.fn = squared, .adj_fn = squared}};
const LinopType kWrongSize{
    .name = "test.WrongSize",
    .functions = {.fn = twice, .adj_fn = twice, .size = [](const NamedLinop&, const ND& d) {
                    return d == "B" ? std::optional<index_t>(7) : std::nullopt;
                  }}};

bool has(const ContractReport& report, const std::string& text) {
  return report.str().find(text) != std::string::npos;
}

TEST(TestingKit, DotTestFindsWrongAdjoints) {
  EXPECT_TRUE(dot_test(Scalar(2, "N"), {.sizes = {{"N", 9}}}).ok);
  const DotTest wrong = dot_test(make_linop(kWrongAdjoint, "N"), {.sizes = {{"N", 9}}});
  EXPECT_FALSE(wrong.ok);
  EXPECT_GT(wrong.error, 1e-3);
  EXPECT_GT(std::abs(wrong.lhs - wrong.rhs), 1e-3);
}

TEST(TestingKit, DotTestTakesTheRealPartWhereThatIsTheLaw) {
  EXPECT_TRUE(dot_test(make_linop(kConjugate, "N"), {.sizes = {{"N", 9}}}).ok);
}

TEST(TestingKit, CheckNormalFindsWrongNormals) {
  EXPECT_TRUE(check_normal(Scalar(2, "N"), {.sizes = {{"N", 9}}}).ok);
  const NormalTest wrong = check_normal(make_linop(kWrongNormal, "N"), {.sizes = {{"N", 9}}});
  EXPECT_FALSE(wrong.ok);
  EXPECT_NEAR(wrong.error, 0.5, 1e-12);
}

TEST(TestingKit, TheContractListsWhatFails) {
  const TestOptions options{.sizes = {{"N", 5}}};
  EXPECT_TRUE(check_contract(Scalar(2, "N"), options).ok());
  EXPECT_TRUE(has(check_contract(make_linop(kWrongAdjoint, "N"), options), "A: dot_test"));
  const ContractReport normal = check_contract(make_linop(kWrongNormal, "N"), options);
  EXPECT_TRUE(has(normal, "A: check_normal"));
  EXPECT_TRUE(has(check_contract(make_linop(kSquared, "N"), options), "not linear"));
  const ContractReport size =
      check_contract(make_linop(kWrongSize, NamedShape("A", "B")), {.sizes = {{"A", 5}}});
  EXPECT_FALSE(size.ok());
  EXPECT_TRUE(has(size, "size of dim 'B'"));
}

TEST(TestingKit, GradientsAreCheckedAtEveryScale) {
  for (const double scale : {1e-30, 1e-3, 1e30}) {
    const Tensor W = Tensor::from([&] {
      std::vector<double> values;
      for (int i = 1; i <= 6; ++i) values.push_back(scale * i);
      return values;
    }());
    const ContractReport report = check_contract(Dense(W.view({3, 2}), "MN,N->M"));
    EXPECT_TRUE(report.ok()) << scale << "\n" << report.str();
  }
}

TEST(TestingKit, TheContractThrowsNothing) {
  const ContractReport report = check_contract(Fft(1));
  EXPECT_FALSE(report.ok());
  EXPECT_TRUE(has(report, "is unknown"));
}

TEST(TestingKit, SizesComeFromTheOperatorOrTheOptions) {
  const NamedLinop A = Dense(random({4, 3}), "MN,TN->TM");
  EXPECT_TRUE(dot_test(A, {.sizes = {{"T", 2}}}).ok);
  EXPECT_TRUE(dot_test(A, {.extents = Extents{2, 3}}).ok);
  EXPECT_TRUE(dot_test(Fft(1), {.sizes = {{"Nx", 4}}, .ellipsis = {2, 3}}).ok);
  EXPECT_TRUE(dot_test(Fft(1), {.sizes = {{"Nx", 4}}, .dtype = DType::float32}).ok);
}

TEST(TestingKit, DenseMatricesAreRowMajor) {
  const Tensor W = Tensor::from<double>({1, 2, 3, 4, 5, 6}, Extents{2, 3});
  const NamedLinop A = Dense(W, "MN,N->M");
  EXPECT_TRUE(equal(to_dense(A, {.dtype = DType::float64}), W));
  EXPECT_EQ(to_dense(A).dtype(), DType::complex128);
  EXPECT_TRUE(equal(to_dense(A.H(), {.dtype = DType::float64}), W.transpose().clone()));
}

TEST(TestingKit, DenseMatricesHaveALimit) {
  const ConfigScope scope({.to_dense_limit = 100});
  expect_error<ValueError>([] { to_dense(Dense(random({4, 3}), "MN,N->M")); }, "too large");
  EXPECT_EQ(to_dense(Dense(random({2, 3}), "MN,N->M")).numel(), 6);
}

}  // namespace
}  // namespace palimpsest
