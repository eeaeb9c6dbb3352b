// SPDX-License-Identifier: Apache-2.0
// Tiles of operators: the dimensions that can be cut, sharing of tiles, and the reasons of
// refusals. The contract tests check that tiles add up to the whole.
#include "linop_support.hpp"
#include "palimpsest/linop/containers/blocks.hpp"
#include "palimpsest/linop/containers/concat.hpp"
#include "palimpsest/linop/containers/kronecker.hpp"
#include "palimpsest/linop/containers/stack.hpp"
#include "palimpsest/linop/core/splitting.hpp"
#include "palimpsest/linop/operators/complex_parts.hpp"
#include "palimpsest/linop/operators/pad_dim.hpp"
#include "palimpsest/linop/operators/permute.hpp"
#include "palimpsest/linop/operators/rearrange.hpp"
#include "palimpsest/linop/operators/restrict.hpp"
#include "palimpsest/linop/operators/shape_spec.hpp"
#include "palimpsest/linop/operators/simple.hpp"
#include "palimpsest/linop/operators/sparse.hpp"
#include "palimpsest/linop/transforms/convolution.hpp"
#include "palimpsest/linop/transforms/finite_difference.hpp"
#include "palimpsest/linop/transforms/interpolate.hpp"
#include "palimpsest/linop/transforms/nufft.hpp"
#include "palimpsest/linop/transforms/wavelet.hpp"
#include "palimpsest/memory/allocator.hpp"
#include "palimpsest/ops/elementwise/elementwise.hpp"
#include "palimpsest/ops/shape/shape_ops.hpp"

namespace palimpsest {
namespace {

using testing::expect_close;
using testing::random;

Dims refused(const NamedLinop& A, const TestOptions& options = {}) {
  const SplitTest test = check_split(A, options);
  EXPECT_TRUE(test.ok) << A.str() << ": " << test.failure;
  return test.refused;
}

Tile tile(const ND& d, index_t start, index_t stop) { return {{d, slice(start, stop)}}; }

TEST(Split, WhatActsElementByElementIsCutEverywhere) {
  EXPECT_EQ(refused(Identity("A B"), {.sizes = {{"A", 3}, {"B", 4}}}), Dims());
  EXPECT_EQ(refused(Scalar(2.0, "A B"), {.sizes = {{"A", 3}, {"B", 4}}}), Dims());
  EXPECT_EQ(refused(Diagonal(random({3, 4}), "A B")), Dims());
  EXPECT_EQ(refused(Permute("A B", "B A"), {.sizes = {{"A", 3}, {"B", 4}}}), Dims());
  EXPECT_EQ(refused(RealPart("A"), {.sizes = {{"A", 3}}}), Dims());
}

TEST(Split, OfEveryOperatorOnlyTheStatedDimensionsAreRefused) {
  const DimMap sizes{{"B", 3}, {"Nx", 4}, {"Ny", 6}};
  EXPECT_EQ(refused(Fft(1, {.batch = "B"}), {.sizes = sizes}), Dims("Kx Nx"));
  EXPECT_EQ(refused(Pad({4}, {8}, {.batch = "B"}), {.sizes = sizes}), Dims("Nx Nx1"));
  EXPECT_EQ(refused(PadDim("Nx", 4, 5, "B Nx"), {.sizes = sizes}), Dims("Nx Nx1"));
  EXPECT_EQ(refused(Truncate("Nx", 4, 3, "B Nx"), {.sizes = sizes}), Dims("Nx Nx1"));
  EXPECT_EQ(
      refused(Restrict("B Nx", {{"Nx", slice(1, 3)}}, {.sizes = {{"Nx", 4}}}), {.sizes = sizes}),
      Dims());
  EXPECT_EQ(refused(Rearrange("(A C) B -> A B C", {.sizes = {{"A", 2}}}),
                    {.sizes = {{"Ac", 6}, {"B", 3}}}),
            Dims("A Ac C"));
  EXPECT_EQ(refused(SumReduce("B Nx", "B", {.sizes = {{"Nx", 4}}}), {.sizes = sizes}), Dims());
  EXPECT_EQ(refused(Repeat({{"R", 5}}, "B", "R B"), {.sizes = sizes}), Dims());
  const Tensor idx = Tensor::from<index_t>({3, 0, 2, 2, 1});
  EXPECT_EQ(refused(Sampling({idx}, {4}, {.input = Dims("Nx"), .batch = "B"}), {.sizes = sizes}),
            Dims("Nx"));
  EXPECT_EQ(
      refused(ArrayToBlocks({6}, {2}, {1}, {.batch = "B", .array = Dims("Ny")}), {.sizes = sizes}),
      Dims("Ny Px"));
  EXPECT_EQ(refused(Convolution(random({2}), {.batch = "B"}), {.sizes = sizes}), Dims("Nx"));
  EXPECT_EQ(refused(FiniteDifference("B Nx", "Nx"), {.sizes = sizes}), Dims("Nx"));
  EXPECT_EQ(refused(Gradient("Nx Ny", "Nx Ny"), {.sizes = sizes}), Dims("Nx Ny"));
  EXPECT_EQ(refused(Wavelet("B Nx", "Nx", {.levels = 1}), {.sizes = sizes}), Dims("Nx"));
  EXPECT_EQ(refused(AsReal("B", "R"), {.sizes = sizes}), Dims("R"));
  EXPECT_EQ(refused(Sparse(random({3}), Tensor::from<index_t>({0, 1, 3}),
                           Tensor::from<index_t>({0, 1, 1, 3}), 4,
                           {.in = "Nx", .out = "M", .batch = "B"}),
                    {.sizes = sizes}),
            Dims("Nx"));
  const Tensor locs = Tensor::random_uniform({5, 1}, DType::float64, {3, 0});
  EXPECT_EQ(refused(Interpolate(locs, {8}, {.batch = "B", .grid = Dims("Nx")}), {.sizes = sizes}),
            Dims("Nx"));
  EXPECT_EQ(refused(Nufft(locs, {8}, "K", {.batch = "B"}), {.sizes = sizes}), Dims("Nx"));
  EXPECT_EQ(refused(Kronecker(Dense(random({4, 3}), "MN,N->M"), Fft(1).with_sizes({{"Nx", 5}}))),
            Dims("Kx Nx"));
}

TEST(Split, OfADenseOperatorEveryRoleIsCut) {
  EXPECT_EQ(refused(Dense(random({5, 3, 7}), "BMN,BN->BM")), Dims());
  EXPECT_EQ(refused(Dense(random({4, 3}), "MN,T N->M T"), {.sizes = {{"T", 2}}}), Dims());
  EXPECT_EQ(refused(Dense(random({3, 3}), "MN,N->M", {.output = Dims("N")})), Dims("N"));
  EXPECT_EQ(
      refused(Dense(random({1, 4, 3}), "AMN,AN->AM", {.broadcast = "A"}), {.sizes = {{"A", 2}}}),
      Dims("A"));
}

TEST(Split, TilesOfADenseWeightAreItsParts) {
  const Tensor W = random({10, 3, 7});
  const NamedLinop A = Dense(W, "BMN,BN->BM");
  const NamedLinop part = A.split({{"N", slice(2, 4)}, {"M", slice(2, 3)}});
  const NamedLinop expected = Dense(W.narrow(1, 2, 1).narrow(2, 2, 2).contiguous(), "BMN,BN->BM");
  expect_close(testing::dense(part), testing::dense(expected));
  EXPECT_EQ(part.size("N"), 2);
  EXPECT_EQ(A.size("N"), 7);
}

TEST(Split, CopiesNothingAndSeesLaterWrites) {
  const NamedLinop A = Dense(random({64, 512}), "MN,N->M");
  const MemoryScope scope;
  NamedLinop part = A.split(tile("N", 8, 16));
  EXPECT_EQ(scope.allocated_bytes(), 0u);
  const Parameter& weight = part.param("weight");
  EXPECT_TRUE(weight.is_view());
  EXPECT_TRUE(weight.shares_storage(A.param("weight")));
  EXPECT_TRUE(weight.variable().is(A.param("weight").variable()));
  EXPECT_FALSE(weight.is(A.param("weight")));
  EXPECT_EQ(weight.shape(), (Extents{64, 8}));
  Parameter whole = A.param("weight");
  whole.modify([](Tensor& t) { t.fill(2.0); });
  EXPECT_EQ(part(Tensor::ones({8}, DType::complex128)).at<std::complex<double>>({5}), 16.0);
}

TEST(Split, WritingATileWritesThatPartOfTheWhole) {
  const NamedLinop A = Diagonal(Tensor::zeros({6}, DType::float64), "A");
  NamedLinop part = A.split(tile("A", 2, 5)).split(tile("A", 1, 2));
  Parameter weight = part.param("weight");
  EXPECT_EQ(weight.view_start(), Extents{3});
  weight.set_value(Tensor::from<double>({7}));
  EXPECT_EQ(A.param("weight").value().to_vector<double>(), (std::vector<double>{0, 0, 0, 7, 0, 0}));
  weight.modify([](Tensor& t) { t.fill(8.0); });
  EXPECT_EQ(A(Tensor::ones({6}, DType::float64)).to_vector<double>(),
            (std::vector<double>{0, 0, 0, 8, 0, 0}));
  testing::expect_error<ShapeError>(
      [&] {
        weight.set_value(Tensor::from<double>({7, 8}));
      },
      "expected");
  testing::expect_error<DTypeError>([&] { weight.set_value(Tensor::from<float>({7})); }, "float64");
  testing::expect_error<ShapeError>([&] { weight.view({0, 0}, {1, 1}); }, "one per axis");
  testing::expect_error<ValueError>([&] { weight.view({0}, {2}); }, "out of range");
  testing::expect_error<ShapeError>([&] { weight.narrow(1, 0, 1); }, "axis 1");
}

TEST(Split, OfTheAdjointIsTheAdjointOfTheTile) {
  const NamedLinop A = Dense(random({5, 3}), "MN,N->M");
  expect_close(testing::dense(A.H().split(tile("M", 1, 3))),
               testing::dense(A.split(tile("M", 1, 3)).H()));
  EXPECT_TRUE(A.H().split(tile("M", 0, 5)).is(A.H()));
}

TEST(Split, AFullRangeIsTheOperatorItself) {
  const NamedLinop A = Fft(1).with_sizes({{"Nx", 8}});
  EXPECT_TRUE(A.split(tile("Nx", 0, 8)).is(A));
  EXPECT_TRUE(A.split({{"Nx", slice({}, {})}}).is(A));
  EXPECT_TRUE(A.split({}).is(A));
  EXPECT_TRUE(A.split(tile("Q", 3, 5)).is(A));  // not its dimension
}

TEST(Split, OfTheIdentityIsTheIdentity) {
  for (const NamedLinop& A : {Identity("N"), Scalar(2, "N")}) {
    EXPECT_TRUE(A.split(tile("N", 0, 1)).is(A));
  }
}

TEST(Split, CutsRecordedSizes) {
  const NamedLinop A = Scalar(2.0, "A B").with_sizes({{"A", 6}, {"B", 3}});
  const NamedLinop part = A.split(tile("A", 1, 3));
  EXPECT_EQ(part.size("A"), 2);
  EXPECT_EQ(part.size("B"), 3);
  EXPECT_EQ(A.size("A"), 6);
}

// A user's rule that returns the operator itself keeps the sizes of the whole.
TEST(Split, CutsRecordedSizesThatARuleForgets) {
  static const LinopType type{
      .name = "ForgetsSizes",
      .functions = {.fn = [](const NamedLinop&, const Variable& x) { return x; },
                    .split = [](const NamedLinop& A, const Tile&) { return A; }}};
  const NamedLinop A =
      make_linop(type, NamedShape(Dims("A B"), Dims("A B"))).with_sizes({{"A", 6}, {"B", 3}});
  const NamedLinop part = A.split(tile("A", 1, 3));
  EXPECT_EQ(part.size("A"), 2);
  EXPECT_EQ(part.size("B"), 3);
  EXPECT_EQ(part(random({2, 3})).shape(), (Extents{2, 3}));
}

TEST(Split, RefusesSlicesThatMakeNoSense) {
  const NamedLinop A = Diagonal(random({6}), "A");
  testing::expect_error<ValueError>([&] { A.split(tile("A", 2, 2)); }, "empty");
  testing::expect_error<ValueError>([&] { A.split(tile("A", 4, 7)); }, "out of range");
  testing::expect_error<ValueError>([&] { A.split(tile("A", -1, 2)); }, "out of range");
  testing::expect_error<ValueError>([&] { A.split({{"A", slice(0, 4, 2)}}); }, "step");
  testing::expect_error<ValueError>([&] { A.split(tile("...", 0, 1)); }, "name");
  testing::expect_error<ShapeError>(
      [&] {
        Identity("B").split({{"B", slice(1, {})}});
      },
      "is unknown");
}

TEST(Split, RefusesWithOperatorDimensionAndReason) {
  const NamedLinop A =
      Chain(Diagonal(random({4, 3}), "B Nx"), Fft(1, {.batch = "B"}).named("Spectrum"));
  testing::expect_error<SplitError>([&] { A.split(tile("Nx", 0, 1)); }, "cannot split dim 'Nx'");
  testing::expect_error<SplitError>([&] { A.split(tile("Nx", 0, 1)); }, "[Chain[1]/Spectrum]");
  testing::expect_error<SplitError>([&] { A.split(tile("Nx", 0, 1)); }, "transformed");
  testing::expect_error<SplitError>([&] { ShapeSpec("A", "B").split(tile("A", 0, 1)); }, "alike");
  EXPECT_NO_THROW(ShapeSpec("A", "B").split({{"A", slice(0, 1)}, {"B", slice(0, 1)}}));
}

TEST(Split, RefusesWhatWildcardsMayHide) {
  const NamedLinop under = Diagonal(random({4, 3}));  // its axes are part of the ellipsis
  testing::expect_error<SplitError>([&] { under.split(tile("A", 0, 2)); }, "resolve");
  testing::expect_error<SplitError>(
      [&] {
        Dense(random({4, 3})).split(tile("A", 0, 2));
      },
      "resolve");
  const NamedLinop named = Dense(random({4, 3}));
  EXPECT_EQ(refused(named), Dims());  // by the names (1) and (2)
}

TEST(Split, OfAUserTypeOnlyItsBatchDimensionsAreCut) {
  static const LinopType type{.name = "test.Edge",
                              .functions = {.fn = [](const NamedLinop&, const Variable& x) {
                                return x - ops::roll(x, 1, -1);
                              }}};
  const NamedShape shape("B A", "B A", {{"batch_shape", Dims("B")}});
  EXPECT_EQ(refused(make_linop(type, shape), {.sizes = {{"A", 4}, {"B", 3}}}), Dims("A"));
  const NamedLinop simple =
      SimpleLinop({.fn = [](const Variable& x) { return x * 2.0; }, .ishape = "A"});
  testing::expect_error<SplitError>([&] { simple.split(tile("A", 0, 1)); }, "batch_shape");
}

TEST(Split, ALyingRuleIsFound) {
  static const LinopType type{
      .name = "test.Lying",
      .functions = {
          .fn = [](const NamedLinop&, const Variable& x) { return x - ops::roll(x, 1, -1); },
          .split = split_unchanged}};
  const SplitTest test = check_split(make_linop(type, "B A"), {.sizes = {{"A", 4}, {"B", 3}}});
  EXPECT_FALSE(test.ok);
  EXPECT_GT(test.error, 0.1);
  EXPECT_FALSE(check_contract(make_linop(type, "B A"), {.sizes = {{"A", 4}, {"B", 3}}}).ok());
}

// -- chains and sums ------------------------------------------------------------------------------

TEST(SplitChain, OneRunOfADimensionIsCutAllAlong) {
  const NamedLinop A = Chain(Dense(random({4, 3}), "KN,N->K"), Diagonal(random({4}), "K"),
                             Dense(random({5, 4}), "MK,K->M"));
  EXPECT_EQ(refused(A), Dims());
  const NamedLinop part = A.split(tile("K", 1, 3));
  EXPECT_EQ(part[0].size("K"), 2);
  EXPECT_EQ(part[1].size("K"), 2);
  EXPECT_EQ(part[2].size("K"), 2);
}

TEST(SplitChain, CrossTermsAreRefused) {
  const NamedLinop B = Dense(random({4, 3}), "MN,N->M");
  const NamedLinop twice = Chain(B, B.H(), B);  // N, M, N, M: both return
  testing::expect_error<SplitError>([&] { twice.split(tile("N", 0, 1)); }, "cross terms");
  testing::expect_error<SplitError>([&] { twice.split(tile("M", 0, 1)); }, "cross terms");
  const NamedLinop hidden = Chain(Chain(B, B.H()), Chain(B, B.H()));
  testing::expect_error<SplitError>([&] { hidden.split(tile("M", 0, 1)); }, "cross terms");
  const NamedLinop once = Chain(Chain(B, B.H()), Diagonal(random({3}), "N"));
  EXPECT_NO_THROW(once.split(tile("M", 0, 1)));
}

TEST(SplitNormal, CoilsOfANormalOperatorAreSummands) {
  const NamedLinop A = Chain(Dense(random({3, 4, 5}), "CNxNy,NxNy->CNxNy"), Fft(2, {.batch = "C"}),
                             Diagonal(random({4, 5}), "CKxKy"));
  EXPECT_TRUE(A.N().dims().contains("C"));
  const Dims no = refused(A.N());
  EXPECT_FALSE(no.contains("C"));
  EXPECT_TRUE(no.contains("Nx"));
  // A regularization belongs to the first coil.
  const NamedLinop regularized = A.N() + 0.5 * Identity("NxNy");
  EXPECT_FALSE(refused(regularized).contains("C"));
  EXPECT_EQ(&regularized.split(tile("C", 1, 3))[1].type(), &Zero("A").type());
}

TEST(SplitNormal, OfAnUnfoldedOneCutsOfTheInputAreRefused) {
  const NamedLinop N = Convolution(random({3}), {.batch = "B"}).N();
  EXPECT_EQ(refused(N, {.sizes = {{"B", 3}, {"Nx", 5}}}), Dims("Nx"));
  const NamedLinop wide = Dense(random({2, 9}), "MN,N->M").N();
  ASSERT_EQ(wide.type().name, "Normal");
  EXPECT_EQ(refused(wide), Dims("N"));
  testing::expect_error<SplitError>([&] { wide.split(tile("N", 0, 1)); }, "cross terms");
}

// -- joined ---------------------------------------------------------------------------------------

TEST(SplitConcat, GivesTheChildrenThatTheRangeMeets) {
  const NamedLinop a = Dense(random({4, 3}, DType::complex128, 1), "MN,N->M"),
                   b = Dense(random({4, 2}, DType::complex128, 2), "MN,N->M");
  const NamedLinop A = Concat({a, b}, {.in = "N"});
  EXPECT_EQ(refused(A), Dims());
  EXPECT_EQ(A.split(tile("N", 3, 5)).type().name, "Dense");
  EXPECT_EQ(A.split(tile("N", 2, 4)).linop_count(), 2u);
}

TEST(SplitConcat, OfBlocksPartsThatDoNotMeetAreZero) {
  const NamedLinop a = Dense(random({4, 3}, DType::complex128, 1), "MN,N->M"),
                   b = Dense(random({2, 5}, DType::complex128, 2), "MN,N->M");
  const NamedLinop A = BlockDiagonal({a, b}, "N", "M");
  EXPECT_EQ(refused(A), Dims());
  const NamedLinop none = A.split({{"N", slice(0, 2)}, {"M", slice(4, 6)}});
  EXPECT_EQ(none.type().name, "Zero");
  EXPECT_EQ(none(Tensor::ones({2}, DType::complex128)).shape(), Extents{2});
  const auto whole = testing::dense(A);
  const auto part = testing::dense(A.split({{"N", slice(1, 6)}, {"M", slice(3, 5)}}));
  ASSERT_EQ(part.size(), 2u);
  for (std::size_t i = 0; i < 2; ++i) {
    for (std::size_t j = 0; j < 5; ++j)
      EXPECT_LE(std::abs(part[i][j] - whole[3 + i][1 + j]), 1e-14);
  }
}

TEST(SplitStack, GivesAStackAlsoOfOne) {
  std::vector<NamedLinop> rows;
  for (std::uint64_t i = 0; i < 4; ++i) {
    rows.push_back(Dense(random({2, 3}, DType::complex128, i), "MN,N->M"));
  }
  const NamedLinop out = Stack(rows, {.out = {"S", 0}});
  EXPECT_EQ(refused(out), Dims());
  EXPECT_EQ(out.split(tile("S", 1, 2)).type().name, "Stack");
  EXPECT_EQ(out.split(tile("S", 1, 2)).linop_count(), 1u);
  EXPECT_EQ(refused(Stack(rows, {.in = {"S", 1}})), Dims());
  const NamedLinop both = Stack(rows, {.in = {"S", 0}, .out = {"T", -1}});
  EXPECT_EQ(refused(both), Dims());
  EXPECT_EQ(both.split({{"S", slice(0, 1)}, {"T", slice(2, 4)}}).type().name, "Zero");
}

TEST(SplitKronecker, DimensionsHiddenInBothFactorsAreRefused) {
  const auto one = [](const char* from, const char* to) {
    return Chain(Dense(random({4, 3}), Dims{"K", from}, Dims(from), "K"),
                 Dense(random({2, 4}), Dims{to, "K"}, "K", Dims(to)));
  };
  const NamedLinop A = Kronecker(one("A", "B"), one("P", "Q"));
  testing::expect_error<SplitError>([&] { A.split(tile("K", 0, 1)); }, "both factors");
  EXPECT_NO_THROW(A.split(tile("A", 0, 1)));
}

}  // namespace
}  // namespace palimpsest
