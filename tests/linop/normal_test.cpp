// SPDX-License-Identifier: Apache-2.0
// The normal operator of chains: which parts fold.
#include "linop/linop_support.hpp"
#include "palimpsest/base/config.hpp"
#include "palimpsest/linop/containers/concat.hpp"

namespace palimpsest {
namespace {

using testing::count_transforms;
using testing::dense;
using testing::expect_close;
using testing::random;

std::vector<std::string> names(const NamedLinop& A) {
  std::vector<std::string> result;
  for (const NamedLinop& child : A.linops()) result.push_back(child.name());
  return result;
}

Tensor mask() {
  Tensor m = Tensor::zeros({4, 5}, DType::bool_);
  m(slice({}, {}, 2)).fill(true);
  return m;
}

NamedLinop sense() {
  return Chain(Dense(random({3, 4, 5}), "C Ny Nx,Ny Nx->C Ny Nx"),
               Fft(2, {.batch = "C", .grid = Grid{"NyNx", "KyKx"}, .centered = true}),
               SamplingFromMask(mask(), {.batch = "C"}));
}

TEST(Normal, OfSenseNeedsNoGather) {
  const NamedLinop N = sense().N();
  EXPECT_EQ(names(N), (std::vector<std::string>{"Dense", "Fft", "Diagonal", "Fft.H", "Dense.H"}));
  EXPECT_EQ(N.shape().str(), "(Ny, Nx) -> (Ny, Nx)");
  const Plan plan = N.plan({DType::complex128, {4, 5}, {}});
  for (const PlannedStep& step : plan.steps) {
    const std::string name = step.node.op().name();
    EXPECT_NE(name, "Gather");
    EXPECT_NE(name, "ScatterAdd");
  }
  EXPECT_EQ(count_transforms(plan), 2u);
  const auto a = dense(sense());
  expect_close(dense(N), testing::adjoint(a) * a);
}

// The names of the output avoid those inside as well.
TEST(Normal, FreshNamesAreNewInTheWholeTree) {
  const NamedLinop A =
      Chain(Dense(random({2, 3}), "Z2Z1,Z1->Z2"), Dense(random({4, 2}), "MZ2,Z2->M"));
  const NamedLinop N = A.N(Output::fresh);
  EXPECT_EQ(N.shape().str(), "(Z1) -> (Z3)");
  EXPECT_EQ((A + A).N(Output::fresh).shape().str(), "(Z1) -> (Z3)");
  const Tensor x = random({3});
  EXPECT_TRUE(allclose(N(x), A.N()(x), 1e-13, 1e-13));
}

TEST(Normal, OfSenseWithWeightsHasOneDiagonalToo) {
  const Tensor w = Tensor::random_uniform({10}, DType::float64, {1});
  const NamedLinop A = Diagonal(w, "C K") * sense();
  const NamedLinop N = A.N();
  EXPECT_EQ(names(N), (std::vector<std::string>{"Dense", "Fft", "Diagonal", "Fft.H", "Dense.H"}));
  expect_close(dense(N), testing::adjoint(dense(A)) * dense(A));
}

TEST(Normal, OfUnitaryChainsIsIdentity) {
  const NamedLinop A = Chain(Pad({4}, {8}), Fft(1, {.grid = Grid{"Nx1", "Kx"}}));
  EXPECT_EQ(A.N().name(), "Identity");
  const ConfigScope scope({.reduce_identity_in_normal = false});
  EXPECT_EQ(names(A.copy().N()), (std::vector<std::string>{"Pad", "Identity", "Pad.H"}));
}

TEST(Normal, NumbersMoveOut) {
  const NamedLinop A = std::complex<double>(1, 2) * Fft(1);
  EXPECT_EQ(A.N().name(), "Scalar");
  EXPECT_EQ(A.N().attr("alpha").as_real(), 5);
  const NamedLinop B = 3 * sense();
  EXPECT_THAT(names(B.N()), ::testing::Contains("Scalar").Times(1));
  expect_close(dense(B.N()), testing::adjoint(dense(B)) * dense(B), 1e-11);
}

TEST(Normal, InnerThatRenamesIsFollowed) {
  const NamedLinop A = Dense(random({4, 3}), "MN,TN->TM");
  NamedLinop inner = Dense(random({5, 4}), "PM,TM->TP");
  inner = Dense(random({4, 4}), "PM,TM->TP");
  const NamedLinop N = A.normal(inner);
  EXPECT_EQ(N.shape().str(), "(T, N) -> (T, N)");
  EXPECT_EQ(N[2].ishape(), Dims("T P"));
  const TestOptions options{.sizes = {{"T", 2}}};
  expect_close(dense(N, options), dense(A.H(), options) * dense(inner, options) * dense(A, options),
               1e-11);
}

TEST(Normal, ADimensionThatIsPassedThroughAndRenamedIsRenamedInTheOutput) {
  const NamedLinop A = Dense(random({4, 3}), "MN,TN->TM");
  const NamedLinop inner = Dense(random({2, 2}), "ST,TM->SM");
  EXPECT_EQ(A.normal(inner).shape().str(), "(T, N) -> (S, N)");
}

TEST(Normal, OfAnAdjointIsTheProductTheOtherWayRound) {
  const NamedLinop A = sense();
  const auto a = dense(A);
  expect_close(dense(A.H().N()), a * testing::adjoint(a));
}

TEST(Normal, PlusIdentityNeedsNoRenaming) {
  const NamedLinop B = sense().N() + 0.5 * Identity("Ny Nx");
  EXPECT_EQ(B.shape().str(), "(Ny, Nx) -> (Ny, Nx)");
  EXPECT_TRUE(dot_test(B).ok);
}

TEST(Normal, NamesThatNobodySeesAreFree) {
  const NamedLinop G = Dense(random({4, 3}), "MN,N->M").N();
  ASSERT_TRUE(G.shape().dims("weightshape").contains("N1"));
  EXPECT_EQ(G.size("N1"), std::nullopt);
  const NamedLinop renamed = G.renamed({{"N", "N1"}});
  EXPECT_EQ(renamed.shape().str(), "(N1) -> (N1)");
  EXPECT_EQ(renamed.size("N1"), 3);
  expect_close(dense(renamed), dense(G));
  NamedLinop set = G;
  set.set_ishape("N1");
  expect_close(dense(set), dense(G));
}

TEST(Normal, WhatLiesInsideOfPartsMayDifferInSize) {
  const NamedLinop A = Dense(random({4, 3}), "MN,N->M"), B = Dense(random({1, 3}), "MN,N->M");
  const NamedLinop sum = Chain(A, A.H()) + Chain(B, B.H());
  EXPECT_EQ(sum.size("N"), 3);
  EXPECT_EQ(sum.size("M"), std::nullopt);
  const NamedLinop joined = Concat({A, B}, {.out = "M"});
  expect_close(dense(sum), testing::adjoint(dense(joined)) * dense(joined));
}

TEST(Normal, BuildingChangesNothing) {
  const NamedLinop A = sense();
  const NamedLinop child = A[0], adjoint = A.H();
  const NamedLinop adjoint_of_child = child.H();
  A.N();
  A.H().N();
  EXPECT_TRUE(A[0].is(child));
  EXPECT_TRUE(A.H().is(adjoint));
  EXPECT_TRUE(child.H().is(adjoint_of_child));
}

}  // namespace
}  // namespace palimpsest
