// SPDX-License-Identifier: Apache-2.0
// Proximal functions, compared with values computed by hand.
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <limits>

#include "palimpsest/linop/operators/dense.hpp"
#include "palimpsest/solve/prox/composed.hpp"
#include "palimpsest/solve/prox/constraints.hpp"
#include "palimpsest/solve/prox/low_rank.hpp"
#include "palimpsest/solve/prox/norms.hpp"
#include "support/expect_error.hpp"

namespace palimpsest {
namespace {

using testing::expect_error;
using Complex = std::complex<double>;
using Numbers = std::vector<double>;

Tensor real(const Numbers& values) { return Tensor::from<double>(values); }
Tensor complex(const std::vector<Complex>& values) { return Tensor::from<Complex>(values); }

// Compares elements to within 1e-6.
void expect_near(const Tensor& got, const Tensor& expected) {
  ASSERT_EQ(got.shape(), expected.shape());
  ASSERT_EQ(got.dtype(), expected.dtype());
  const auto a = got.to(DType::complex128).to_vector<Complex>();
  const auto b = expected.to(DType::complex128).to_vector<Complex>();
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(std::abs(a[i] - b[i]), 0, 1e-6) << i;
}

TEST(Prox, L1KeepsThePhase) {
  const Prox g = L1(1.0);
  const Tensor v = complex({{3, 4}, {0.3, 0}, {0, -2}});
  expect_near(g.prox(v, 1), complex({{2.4, 3.2}, {0, 0}, {0, -1}}));
  EXPECT_NEAR(g.value(v), 7.3, 1e-12);
  expect_near(g.conjugate_prox(v, 1), complex({{0.6, 0.8}, {0.3, 0}, {0, -1}}));
  expect_near(g.prox(real({3, -0.5, -2}), 1), real({2, 0, -1}));
  expect_near(g.prox(real({3, 0}), 1e-300), real({3, 0}));
  expect_near(L1(0.0).prox(complex({{0, 0}, {1, 1}}), 1), complex({{0, 0}, {1, 1}}));
  const Prox weighted = L1(2.0, {.weights = real({1, 0, 0.5})});
  expect_near(weighted.prox(real({3, 3, 3}), 1), real({1, 3, 2}));
  EXPECT_NEAR(weighted.value(real({3, 3, 3})), 9, 1e-12);
}

TEST(Prox, L2) {
  const Tensor v = real({3, 4});
  expect_near(L2(1.0).prox(v, 1), real({2.4, 3.2}));
  expect_near(L2(1.0).prox(v, 6), real({0, 0}));
  EXPECT_NEAR(L2(2.0).value(v), 10, 1e-12);
  expect_near(SquaredL2(1.0).prox(v, 1), real({1.5, 2}));
  expect_near(SquaredL2(2.0).conjugate_prox(real({3}), 1), real({2}));
  const Prox off = SquaredL2(2.0, {.center = real({1, 1})});
  expect_near(off.prox(v, 0.5), real({2, 2.5}));
  EXPECT_NEAR(off.value(v), 13, 1e-12);
  expect_near(off.gradient(v), real({4, 6}));
  EXPECT_EQ(off.lipschitz(), 2);
}

TEST(Prox, L21JoinsADimension) {
  const Tensor v = real({3, 1, 4, 0}).reshape({2, 2});
  const Prox g = L21(1.0, "D");
  expect_near(g.prox(v, 2), real({1.8, 0, 2.4, 0}).reshape({2, 2}));
  EXPECT_NEAR(g.value(v), 6, 1e-12);
  const Prox last = L21(1.0, "D", Dims("N D"));
  expect_near(last.prox(v.transpose(0, 1), 2), real({1.8, 2.4, 0, 0}).reshape({2, 2}));
  expect_error<ShapeError>([&] { L21(1.0, "Z", Dims("N D")).prox(v, 1); }, "over: got Z");
}

TEST(Prox, NuclearLowersSingularValues) {
  const Prox g = Nuclear(1.0, "Ny", "Nx");
  const Tensor v = real({3, 0, 4, 5}).reshape({2, 2});
  const Tensor expected = real({1.211146, 0.894427, 3.105573, 3.211146}).reshape({2, 2});
  EXPECT_TRUE(allclose(g.prox(v, 2.0), expected, 1e-6, 1e-6));
  EXPECT_NEAR(g.value(v), 8.944272, 1e-6);
  const Tensor nothing = g.prox(v, 100.0);
  EXPECT_TRUE(equal(nothing, Tensor::zeros({2, 2}, DType::float64)));
  testing::expect_error<ShapeError>([] { Nuclear(1.0, "", "Nx"); }, "rows");
  testing::expect_error<ShapeError>([] { Nuclear(1.0, "Nx", "Nx"); }, "rows");
}

TEST(Prox, LocallyLowRankTakesEachBlockForItself) {
  const Tensor v = Tensor::random_normal({5, 6, 3}, DType::complex128, {2, 2});
  const LocallyLowRankOptions options{.dims = Dims("Ny Nx T")};
  const Prox g = LocallyLowRank(0.8, {{"Ny", 2}, {"Nx", 4}}, "T", options);
  const Tensor x = g.prox(v, 0.5);
  double value = 0;
  for (const auto& [y, height] : {std::pair(0, 2), std::pair(2, 2), std::pair(4, 1)}) {
    for (const auto& [at, width] : {std::pair(0, 4), std::pair(4, 2)}) {
      const Tensor block = v.narrow(0, y, height).narrow(1, at, width);
      const Prox one = Nuclear(0.8, "Ny Nx", "T", Dims("Ny Nx T"));
      EXPECT_TRUE(allclose(x.narrow(0, y, height).narrow(1, at, width), one.prox(block, 0.5), 1e-12,
                           1e-12));
      value += one.value(block);
    }
  }
  EXPECT_NEAR(g.value(v), value, 1e-10);
  // The factor for 20 columns and 660 blocks of 64 elements.
  const Tensor zeros = Tensor::zeros({8 * 22, 8 * 30, 20});
  const Prox scaled = LocallyLowRank(1.0, {{"Ny", 8}, {"Nx", 8}}, "T",
                                     {.scale = LowRankScale::bart, .dims = Dims("Ny Nx T")});
  Tensor one = zeros;
  one.set<double>({0, 0, 0}, 1.0);
  EXPECT_NEAR(scaled.value(one), 15.552391, 1e-5);
  testing::expect_error<ValueError>([] { LocallyLowRank(1.0, {{"Ny", 0}}, "T"); }, "block");
}

TEST(Prox, LocallyLowRankOverlapIsTheMeanOfAllShifts) {
  const Tensor v = Tensor::random_normal({5, 3}, DType::float64, {2, 3});
  const Prox plain = LocallyLowRank(0.8, {{"Ny", 2}}, "T");
  const Tensor whole = plain.prox(v, 1.0);
  // Starting at element 1: rows 1, 2, then 3, 4, then 0.
  const auto part = [&](index_t from, index_t count) {
    return Nuclear(0.8, "Ny", "T").prox(v.narrow(0, from, count), 1.0);
  };
  const Prox mean = LocallyLowRank(0.8, {{"Ny", 2}}, "T", {.overlap = true});
  const Tensor x = mean.prox(v, 1.0);
  const Tensor shifted[] = {part(0, 1), part(1, 2), part(3, 2)};
  for (index_t row = 0; row < 5; ++row) {
    const index_t k = row == 0 ? 0 : row < 3 ? 1 : 2, at = row == 0 ? 0 : (row - 1) % 2;
    for (index_t t = 0; t < 3; ++t) {
      const double expected = (whole.at<double>({row, t}) + shifted[k].at<double>({at, t})) / 2;
      EXPECT_NEAR(x.at<double>({row, t}), expected, 1e-12);
    }
  }
}

TEST(Prox, PartsAlongADimension) {
  const Tensor v = real({3, -2, 1, 4});
  const Prox g = stacked({L1(1.0), SquaredL2(1.0)}, "N", {2, 2}, "N");
  EXPECT_TRUE(allclose(g.prox(v, 1.0), real({2, -1, 0.5, 2})));
  EXPECT_NEAR(g.value(v), 5 + 8.5, 1e-12);
  EXPECT_TRUE(allclose(on(L1(1.0), "N", 1, 3, "N").prox(v, 1.0), real({3, -1, 0, 4})));
  EXPECT_NEAR(on(L1(1.0), "N", 1, 3, "N").value(v), 3, 1e-12);
  testing::expect_error<ValueError>([] { on(L1(1.0), "N", 2, 2, "N"); }, "range");
  testing::expect_error<ValueError>([] { stacked({L1(1.0)}, "N", {1, 2}, "N"); }, "parts");
  testing::expect_error<ShapeError>([&] { stacked({L1(1.0)}, "N", {3}, "N").prox(v, 1.0); },
                                    "extent");
}

TEST(Prox, Huber) {
  const Prox g = Huber(1.0, 1.0);
  const Tensor v = real({0.5, 1.5, 3});
  expect_near(g.prox(v, 1), real({0.25, 0.75, 2}));
  EXPECT_NEAR(g.value(real({0.5})), 0.125, 1e-12);
  EXPECT_NEAR(g.value(real({1.5})), 1, 1e-12);
  EXPECT_NEAR(g.value(real({3})), 2.5, 1e-12);
  expect_near(g.gradient(v), real({0.5, 1, 1}));
}

TEST(Prox, Constraints) {
  expect_near(Ball(1.0).prox(real({3, 4}), 1), real({0.6, 0.8}));
  expect_near(Ball(1.0).prox(real({0.3, 0.4}), 1), real({0.3, 0.4}));
  expect_near(Box(-1, 2).prox(real({-3, 0.5, 7}), 1), real({-1, 0.5, 2}));
  expect_near(NonNegative().prox(complex({{-1, 2}, {3, 4}}), 1), complex({{0, 0}, {3, 0}}));
  expect_near(RealValued().prox(complex({{-1, 2}}), 1), complex({{-1, 0}}));
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(Box(-1, 2).value(real({0, 2})), 0);
  EXPECT_EQ(Box(-1, 2).value(real({0, 2 + 1e-7})), 0);
  EXPECT_EQ(Box(-1, 2).value(real({0, 2.1})), infinity);
  EXPECT_EQ(NonNegative().value(complex({{1, 0.5}})), infinity);
  EXPECT_EQ(RealValued().value(complex({{1, 0}})), 0);
  const NamedLinop sum = Dense(Tensor::ones({1, 3}), "MN,N->M");
  const Prox affine = Affine(sum, real({1}));
  expect_near(affine.prox(real({1, 2, 3}), 5), real({-2.0 / 3, 1.0 / 3, 4.0 / 3}));
  EXPECT_EQ(affine.value(real({-2.0 / 3, 1.0 / 3, 4.0 / 3})), 0);
  EXPECT_EQ(affine.value(real({1, 2, 3})), infinity);
}

TEST(Prox, RefusesNonsense) {
  expect_error<ValueError>([] { L1(-1.0); }, "[L1] lambda: got -1");
  expect_error<ValueError>([] { L1(std::nan("")); }, "[L1] lambda");
  expect_error<ValueError>([] { L1(1.0).prox(Tensor::ones({2}), 0); }, "[L1] t: got 0");
  expect_error<ValueError>([] { Huber(1.0, 0.0); }, "[Huber] delta");
  expect_error<ValueError>([] { Box(2, 1); }, "[Box] lo: got 2");
  expect_error<DTypeError>([] { Box(0, 1).prox(complex({{1, 1}}), 1); }, "real");
  expect_error<DTypeError>([] { L1(1.0).prox(Tensor::ones({2}, DType::int32), 1); }, "int32");
  expect_error<ValueError>([] { L1(1.0).gradient(Tensor::ones({2})); }, "smooth");
}

TEST(Prox, ALambdaMayBeAParameter) {
  const Parameter lambda(Tensor::full<double>({}, 1.0));
  const Prox g = L1(lambda);
  const Tensor v = Tensor::from<float>({3, -5});
  EXPECT_TRUE(equal(g.prox(v, 1), Tensor::from<float>({2, -4})));
  Parameter(lambda).set_value(Tensor::full<double>({}, 2.0));
  EXPECT_TRUE(equal(g.prox(v, 1), Tensor::from<float>({1, -3})));
  Parameter(lambda).set_value(Tensor::full<double>({}, -1.0));
  expect_error<ValueError>([&] { g.prox(v, 1); }, "[L1] lambda: got -1");
  expect_error<ValueError>([&] { weighted(g, 2).value(v); }, "[L1] lambda: got -1");
}

TEST(Prox, ParametersBroadcastToTheOperand) {
  const Tensor v = real({1, 2, 3}), matrix = Tensor::ones({2, 3});
  for (const Prox& g : {SquaredL2(1.0, {.center = matrix}), Ball(1.0, {.center = matrix}),
                        L1(1.0, {.weights = matrix}), translated(L1(1.0), matrix),
                        plus_quadratic(L1(1.0), 1, matrix)}) {
    expect_error<ShapeError>([&] { g.prox(v, 1); }, "(2, 3)");
    expect_error<ShapeError>([&] { g.value(v); }, "(2, 3)");
  }
  expect_error<DTypeError>(
      [&] {
        SquaredL2(1.0, {.center = complex({{0, 1}})}).prox(v, 1);
      },
      "[SquaredL2] center: got complex128");
  expect_error<ShapeError>([&] { on(L1(1.0), "N", 1, 4, "N").prox(v, 1); }, "[on] range");
}

TEST(Prox, NormsOfAnyUnit) {
  for (const double unit : {1e-31, 1e30}) {
    const Tensor v = Tensor::from<double>({3 * unit, 4 * unit}).to(DType::float32);
    const auto expect = [&](const Prox& g, double t, double a, double b) {
      const std::vector<double> got = g.prox(v, t).to(DType::float64).to_vector<double>();
      EXPECT_NEAR(got[0] / unit, a, 1e-5) << g.str();
      EXPECT_NEAR(got[1] / unit, b, 1e-5) << g.str();
    };
    expect(L2(unit), 1, 2.4, 3.2);
    expect(L21(unit, "N", Dims("N")), 1, 2.4, 3.2);
    expect(Ball(unit), 1, 0.6, 0.8);
    EXPECT_NEAR(L2(1.0).value(v) / unit, 5, 1e-5);
    EXPECT_EQ(Ball(5.1 * unit).value(v), 0);
    EXPECT_EQ(Ball(4.9 * unit).value(v), std::numeric_limits<double>::infinity());
  }
}

}  // namespace
}  // namespace palimpsest
