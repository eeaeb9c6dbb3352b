// SPDX-License-Identifier: Apache-2.0
#include "linop/linop_support.hpp"

namespace palimpsest {
namespace {

using testing::Complex;
using testing::dense;
using testing::expect_close;
using testing::expect_error;
using testing::random;
using testing::values;

TEST(Dense, OfAMatrixIsThatMatrix) {
  const Tensor W = random({5, 3});
  const auto w = values(W);
  const NamedLinop A = Dense(W);
  EXPECT_EQ(A.shape().shapes().str(), "ishape: ((2)), oshape: ((1)), weightshape: ((1), (2))");
  expect_close(dense(A), testing::matrix(5, 3, [&](auto i, auto j) { return w[i * 3 + j]; }));
  EXPECT_EQ(A.matrix_size(), (MatrixSize{5, 3}));
  expect_close(dense(A.N()), testing::adjoint(dense(A)) * dense(A));
}

TEST(Dense, LeadingAxesAreBatch) {
  const Tensor W = random({2, 5, 3}), x = random({2, 3});
  const NamedLinop A = Dense(W);
  EXPECT_EQ(A.shape().str(), "((1), (3)) -> ((1), (2))");
  const Tensor y = A(x);
  EXPECT_EQ(y.shape(), (Extents{2, 5}));
  EXPECT_TRUE(allclose(y.select(0, 1), Dense(W.select(0, 1))(x.select(0, 1))));
}

TEST(Dense, RolesFollowFromTheNames) {
  const Tensor W = random({10, 3, 7});
  const NamedLinop A = Dense(W, "BMN,BN->BM");
  const Tensor x = random({10, 7});
  const auto w = values(W), v = values(x), y = values(A(x));
  for (std::size_t b = 0; b < 10; ++b) {
    for (std::size_t m = 0; m < 3; ++m) {
      Complex sum = 0;
      for (std::size_t n = 0; n < 7; ++n) sum += w[(b * 3 + m) * 7 + n] * v[b * 7 + n];
      EXPECT_LE(std::abs(sum - y[b * 3 + m]), 1e-13);
    }
  }
  EXPECT_EQ(A.H().shape().dims("weightshape"), Dims("B M N"));
  EXPECT_EQ(A.size("B"), 10);
  EXPECT_EQ(A.H().size("M"), 3);
}

TEST(Dense, PassesDimensionsThrough) {
  const Tensor W = random({4, 3}), x = random({2, 3, 5});
  const Tensor y = Dense(W, "MN,TNS->TMS")(x);
  EXPECT_EQ(y.shape(), (Extents{2, 4, 5}));
  const Tensor column = x.select(2, 3).select(0, 1);
  EXPECT_TRUE(allclose(y.select(2, 3).select(0, 1), Dense(W)(column)));
  const NamedLinop run = Dense(W, "MN,...N->...M");
  EXPECT_TRUE(allclose(run(x.permute({0, 2, 1})).permute({0, 2, 1}), y));
  EXPECT_EQ(run.size("M"), 4);
  NamedLinop named = run;
  named.set_ishape("T S N");
  EXPECT_EQ(named.oshape(), Dims("T S M"));
  EXPECT_EQ(named.size("N"), 3);
  EXPECT_EQ(named.size("M"), 4);
  EXPECT_FALSE(named.size("S").has_value());
  EXPECT_TRUE(equal(named(x.permute({0, 2, 1})), run(x.permute({0, 2, 1}))));
}

TEST(Dense, SquareOperatorsNameTheirOutput) {
  const NamedLinop A = Dense(random({3, 3}), "MN,N->M", {.output = Dims("N")});
  EXPECT_EQ(A.shape().str(), "(N) -> (N)");
  EXPECT_EQ(A.size("N"), 3);
  expect_close(dense(A.H()), testing::adjoint(dense(A)));
  expect_error<ValueError>(
      [] {
        Dense(random({3, 3}), "MN,N->M", {.output = Dims("A B")});
      },
      "output");
}

TEST(Dense, WeightsStretch) {
  const NamedLinop A = Dense(random({1, 4, 3}), "AMN,AN->AM", {.broadcast = "A"});
  EXPECT_FALSE(A.size("A").has_value());
  EXPECT_EQ(A(random({2, 3})).shape(), (Extents{2, 4}));
  const NamedLinop produced = Dense(random({1, 3}), "MN,N->M", {.broadcast = "M"});
  expect_error<ShapeError>([&] { produced(random({3})); }, "size of dim 'M' is unknown");
  const NamedLinop sized = produced.with_sizes({{"M", 2}});
  const Tensor y = sized(random({3}));
  EXPECT_EQ(y.shape(), Extents{2});
  EXPECT_EQ(values(y)[0], values(y)[1]);
  EXPECT_TRUE(dot_test(sized).ok);
  expect_error<ValueError>(
      [] {
        Dense(random({1, 3}), "MN,N->M", {.broadcast = "K"});
      },
      "not in weightshape");
  expect_error<ShapeError>(
      [] {
        Dense(random({2, 3}), "MN,N->M", {.broadcast = "M"});
      },
      "broadcast");
}

TEST(Dense, ItsNormalIsTheGramOperatorWhereThatIsSmall) {
  const NamedLinop tall = Dense(random({5, 3}), "MN,N->M");
  EXPECT_EQ(tall.N().name(), "Dense");
  EXPECT_EQ(tall.N().shape().shapes().str(),
            "ishape: (N), oshape: (N), weightshape: (N1, N), summed: (M)");
  expect_close(dense(tall.N()), testing::adjoint(dense(tall)) * dense(tall));
  const NamedLinop wide = Dense(random({2, 5}), "MN,N->M");
  EXPECT_EQ(wide.N().name(), "Normal");
  EXPECT_EQ(wide.H().N().name(), "Dense");
  expect_close(dense(wide.H().N()), dense(wide) * testing::adjoint(dense(wide)));
}

TEST(Dense, OfMapsHasARealDiagonalNormal) {
  const Tensor maps = random({4, 2, 3});
  const NamedLinop A = Dense(maps, "CNxNy,NxNy->CNxNy");
  EXPECT_EQ(A(random({2, 3})).shape(), (Extents{4, 2, 3}));
  const NamedLinop N = A.N();
  EXPECT_EQ(N.name(), "Dense");
  EXPECT_EQ(N.param("weight").shape(), (Extents{2, 3}));
  EXPECT_EQ(N.param("weight").dtype(), DType::float64);
  expect_close(dense(N), testing::adjoint(dense(A)) * dense(A));
}

TEST(Dense, TheGramWeightFollowsTheWeight) {
  const NamedLinop A = Dense(random({5, 3}), "MN,N->M");
  const NamedLinop N = A.N();
  const Tensor x = random({3});
  N(x);
  Parameter w = A.param("weight");
  w.set_value(random({5, 3}, DType::complex128, 8));
  EXPECT_TRUE(allclose(N(x), A.H()(A(x))));
  EXPECT_TRUE(allclose(Chain(N, Identity("N"))(x), A.H()(A(x))));
}

TEST(Dense, WrongTextsAndNames) {
  const auto make = [](const char* text) { Dense(random({4, 3}), text); };
  expect_error<ValueError>([&] { make("MN"); }, "einsum");
  expect_error<ValueError>([&] { make("MN->M"); }, "einsum");
  expect_error<ValueError>([&] { make("MN,N,K->M"); }, "einsum");
  expect_error<ValueError>([&] { make("MN,N->M->K"); }, "einsum");
  expect_error<ValueError>([&] { make("MM,N->M"); }, "repeated");
  expect_error<ValueError>([&] { make("MN,NN->M"); }, "repeated");
  expect_error<ValueError>([&] { make("MN,NK->M"); }, "'K' appears only in ishape");
  expect_error<ValueError>([&] { make("MN,N->"); }, "'M' appears only in weightshape");
  expect_error<ValueError>([&] { make("MN,N->MK"); }, "'K' appears only in oshape");
  expect_error<ValueError>([&] { make("MN,...N->M"); }, "'...' appears only in ishape");
  expect_error<ValueError>([&] { make("...MN,...N->...M"); }, "ellipsis");
  expect_error<ValueError>([&] { make("MN,()N->()M"); }, "got ()");
  expect_error<ShapeError>([&] { make("BMN,BN->BM"); }, "expected 3 axes");
  expect_error<ValueError>([] { Dense(random({4})); }, "at least 2D");
  expect_error<DTypeError>([] { Dense(Tensor::ones({2, 2}, DType::int32)); }, "weight");
}

}  // namespace
}  // namespace palimpsest
