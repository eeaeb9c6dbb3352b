// SPDX-License-Identifier: Apache-2.0
#include "linop/linop_support.hpp"
#include "palimpsest/base/config.hpp"
#include "palimpsest/linop/containers/stack.hpp"

namespace palimpsest {
namespace {

using testing::dense;
using testing::expect_close;
using testing::expect_error;
using testing::random;

NamedLinop first() { return Dense(random({4, 3}), "KN,N->K"); }
NamedLinop second() { return Dense(random({5, 4}), "MK,K->M"); }

TEST(Chain, RunsInOrder) {
  const NamedLinop A = Chain(first(), second());
  EXPECT_EQ(A.shape().str(), "(N) -> (M)");
  EXPECT_EQ(A.dims(), Dims("N M K"));
  EXPECT_EQ(A.size("K"), 4);
  EXPECT_EQ(A.size("M"), 5);
  expect_close(dense(A), dense(second()) * dense(first()));
  expect_close(dense(A.H()), testing::adjoint(dense(A)));
  expect_close(dense(A.N()), testing::adjoint(dense(A)) * dense(A), 1e-10);
  expect_error<ValueError>([] { Chain(std::vector<NamedLinop>{}); }, "at least one");
  expect_error<ValueError>([] { Chain(); }, "at least one");
}

TEST(Chain, KeepsTheGivenNodes) {
  const NamedLinop A = Dense(random({3, 3}), "MN,N->M", {.output = Dims("N")});
  const NamedLinop chain = Chain(A, A);
  EXPECT_TRUE(chain[0].is(A));
  EXPECT_TRUE(chain[1].is(A));
  expect_close(dense(chain), dense(A) * dense(A));
}

TEST(Chain, ResolvesWildcardsInCopies) {
  const NamedLinop wild = Diagonal(random({4}));
  const NamedLinop chain = Chain(first(), wild, second());
  EXPECT_EQ(chain[1].ishape(), Dims("K"));
  EXPECT_EQ(wild.ishape(), Dims("..."));
  const NamedLinop matrix = Dense(random({5, 3}));
  EXPECT_EQ((Diagonal(random({5}), "M") * matrix)[0].shape().str(), "((2)) -> (M)");
  const ConfigScope scope({.shape_inference = false});
  EXPECT_EQ(Chain(first(), wild)[1].ishape(), Dims("..."));
}

TEST(Chain, MismatchesAreRefusedAtConstruction) {
  expect_error<ShapeError>([] { Chain(second(), first()); }, "Mismatched shape");
  expect_error<ShapeError>(
      [] {
        Chain(first(), Dense(random({5, 6}), "MK,K->M"));
      },
      "Conflicting sizes of dim 'K'");
  expect_error<ShapeError>([] { first() * second(); }, "[Chain[1]/Dense]");
}

TEST(Containers, SizesOfWhatHasNoNameAreComparedByPlace) {
  const NamedLinop wide = Dense(random({2, 3})), square = Dense(random({3, 3}));
  expect_error<ShapeError>([&] { Chain(wide, wide); }, "[Chain[1]/Dense] Conflicting sizes");
  expect_error<ShapeError>([&] { pow(wide, 2); }, "Conflicting");
  expect_error<ShapeError>([&] { Add(wide, square); }, "[Add[1]/Dense] Conflicting sizes");
  expect_error<ShapeError>([&] { Chain(first(), wide); }, "Conflicting sizes of dim 'K'");
  expect_error<ShapeError>(
      [&] {
        Chain(wide, Sampling({Tensor::from<index_t>({0, 1})}, {5}));
      },
      "Conflicting sizes");
  expect_error<ShapeError>(
      [&] {
        Stack({wide, square}, {.in = {}, .out = {"S", 0}});
      },
      "Conflicting");
  EXPECT_EQ(Chain(square, wide).size("(1)"), 2);
}

TEST(Chain, RenamesCopiesOfItsChildren) {
  const NamedLinop A = first(), B = second();
  NamedLinop chain = Chain(A, B);
  const Tensor x = random({3});
  const Tensor y = chain(x);
  chain.rename({{"K", "P"}, {"N", "Q"}});
  EXPECT_EQ(chain.str(), "Chain(Q -> M)\n  Dense(Q -> P)\n  Dense(P -> M)");
  EXPECT_EQ(A.shape().str(), "(N) -> (K)");
  EXPECT_TRUE(equal(chain(x), y));
  chain.set_oshape("R");
  chain.set_ishape("S");
  EXPECT_EQ(chain.str(), "Chain(S -> R)\n  Dense(S -> P)\n  Dense(P -> R)");
  chain.set_shape({"R", "S"});
  EXPECT_EQ(chain.str(), "Chain(R -> S)\n  Dense(R -> P)\n  Dense(P -> S)");
  EXPECT_TRUE(equal(chain(x), y));
  const NamedLinop before = chain;
  expect_error<ShapeError>([&] { chain.set_ishape("P"); }, "collides");
  expect_error<ShapeError>([&] { chain.set_ishape("A B"); }, "not compatible");
  EXPECT_TRUE(chain.is(before));
}

TEST(Chain, WildcardsOfAContainerReachItsChildren) {
  NamedLinop chain = Chain(Scalar(2), Identity());
  chain.set_ishape("A B");
  EXPECT_EQ(chain.str(), "Chain(A, B -> A, B)\n  Scalar(A, B -> A, B)\n  Identity(A, B -> A, B)");
}

TEST(Chain, ChildrenCanBeReplaced) {
  NamedLinop chain = Chain(first(), second());
  const NamedLinop before = chain;
  chain.set_linops({first()});
  EXPECT_EQ(chain.shape().str(), "(N) -> (K)");
  EXPECT_EQ(before.linop_count(), 2u);
  expect_error<ShapeError>([&] { chain.set_linops({second(), first()}); }, "Mismatched");
  EXPECT_EQ(chain.linop_count(), 1u);
}

TEST(Chain, SizesOfItsInputReachHiddenChildren) {
  const NamedLinop A = Chain(SumReduce("A B", "A"), Repeat({{"C", 2}}, "A", "A C"));
  const Tensor x = random({2, 5});
  EXPECT_EQ(A.with_sizes({{"B", 5}}).H()(A(x)).shape(), x.shape());
  EXPECT_EQ(A.N()(x).shape(), x.shape());
  expect_error<ShapeError>([&] { A.H()(A(x)); }, "[Chain[1]/SumReduce.H] size of dim 'B'");
}

TEST(Chain, ItsOwnNameIsKeptByTheAdjoint) {
  const NamedLinop A = Chain(first(), second()).named("model");
  EXPECT_EQ(A.H().name(), "model.H");
  EXPECT_EQ(A.H().copy().H().name(), "model");
  EXPECT_EQ(Chain(first()).H().name(), "Chain");
}

TEST(Add, SumsOperators) {
  const NamedLinop A = first(), B = Dense(random({4, 3}, DType::complex128, 8), "KN,N->K");
  const NamedLinop sum = Add(A, B);
  const auto a = dense(A), b = dense(B);
  const auto expected = testing::matrix(4, 3, [&](auto i, auto j) { return a[i][j] + b[i][j]; });
  expect_close(dense(sum), expected);
  expect_close(dense(sum.H()), testing::adjoint(expected));
  expect_close(dense(sum.N()), testing::adjoint(expected) * expected, 1e-10);
  EXPECT_EQ(sum.size("K"), 4);
  expect_error<ValueError>([] { Add(); }, "at least one");
  expect_error<ShapeError>([&] { Add(A, second()); }, "Add");
  expect_error<ShapeError>([&] { Add(A, Dense(random({5, 3}), "KN,N->K")); }, "Conflicting");
}

TEST(Add, KeepsShallowCopies) {
  const NamedLinop A = first();
  const NamedLinop sum = Add(A, A);
  EXPECT_FALSE(sum[0].is(A));
  EXPECT_FALSE(sum[0].is(sum[1]));
  EXPECT_TRUE(sum[0].param("weight").is(A.param("weight")));
  EXPECT_TRUE(sum[1].param("weight").is(A.param("weight")));
}

TEST(Add, ResolvesWildcards) {
  const NamedLinop sum = Add(Scalar(2), Diagonal(random({3}), "N"));
  EXPECT_EQ(sum[0].ishape(), Dims("N"));
  NamedLinop wild = Add(Identity(), Scalar(2));
  wild.set_oshape("A B");
  EXPECT_EQ(wild[1].shape().str(), "(A, B) -> (A, B)");
}

TEST(Add, ANormalApplicationUsesEachChildTwice) {
  const NamedLinop A = Add(first(), Dense(random({4, 3}, DType::complex128, 8), "KN,N->K"),
                           Dense(random({4, 3}, DType::complex128, 9), "KN,N->K"));
  const Plan plan = A.N().plan({DType::complex128, {3}, {}});
  std::size_t products = 0;  // some are added to others in the same step
  for (const PlannedStep& step : plan.steps) {
    const std::string name = step.node.op().name();
    products += name == "Contract" || name.starts_with("Gemv") ? 1 : 0;
  }
  EXPECT_EQ(products, 6u);
}

TEST(Add, EqualChildrenAreComputedOnce) {
  const NamedLinop A = first();
  const Plan plan = Add(A, A).plan({DType::complex128, {3}, {}});
  std::size_t contractions = 0;
  for (const PlannedStep& step : plan.steps) {
    contractions += step.node.op().name() == "Contract";
  }
  EXPECT_EQ(contractions, 1u);
}

TEST(Add, DropsZeros) {
  const NamedLinop A = Add(Zero("N", "K"), first(), Zero("N", "K"));
  EXPECT_EQ(A.plan({DType::complex128, {3}, {}}).steps.size(), 1u);
  expect_close(dense(A), dense(first()));
  EXPECT_TRUE(equal(Add(Zero("N"), Zero("N"))(random({3})), Tensor::zeros({3}, DType::complex128)));
}

}  // namespace
}  // namespace palimpsest
