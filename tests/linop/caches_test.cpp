// SPDX-License-Identifier: Apache-2.0
#include <thread>

#include "linop/linop_support.hpp"
#include "palimpsest/base/config.hpp"
#include "palimpsest/linop/core/node.hpp"

namespace palimpsest {
namespace {

using testing::expect_error;
using testing::random;

NamedLinop matrix_operator() { return Dense(random({4, 3}), "MN,N->M"); }

std::vector<NamedLinop> some_operators() {
  const NamedLinop A = matrix_operator();
  return {A,
          Identity("A"),
          Zero("A", "B"),
          Scalar(2, "A"),
          Diagonal(Tensor::ones({3}), "A"),
          Fft(2),
          Pad({3}, {5}),
          Crop({5}, {3}),
          SumReduce("A B", "A"),
          Repeat({{"B", 2}}, "A", "A B"),
          Chain(A, Identity("M")),
          Add(A, A),
          A.N()};
}

TEST(Caches, TheAdjointOfTheAdjointIsTheOperator) {
  for (const NamedLinop& A : some_operators()) {
    EXPECT_TRUE(A.H().is(A.H())) << A;
    EXPECT_TRUE(A.H().H().is(A)) << A;
    EXPECT_TRUE(A.N().is(A.N())) << A;
    EXPECT_TRUE(A.N().H().is(A.N())) << A;
    EXPECT_TRUE(identical(A.H().shape(), A.shape().H())) << A;
    EXPECT_EQ(A.N().oshape(), A.N().ishape()) << A;
    EXPECT_EQ(A.N().ishape(), A.ishape()) << A;
  }
}

TEST(Caches, IdentityIsItsOwnAdjointAndNormal) {
  const NamedLinop A = Identity("A");
  EXPECT_TRUE(A.H().is(A));
  EXPECT_TRUE(A.N().is(A));
  EXPECT_TRUE(pow(A, 3).is(A));
  EXPECT_TRUE(A.inverse().is(A));
}

TEST(Caches, AnAdjointOutlivesItsOperator) {
  NamedLinop A = matrix_operator();
  const NamedLinop original = A.copy();
  const NamedLinop adjoint = A.H();
  const std::weak_ptr<const LinopNode> node = A.node();
  A = NamedLinop();
  EXPECT_TRUE(node.expired());
  const NamedLinop again = adjoint.H();
  EXPECT_TRUE(identical(again, original));
  EXPECT_TRUE(again.is(adjoint.H()));
  EXPECT_TRUE(again.H().is(adjoint));
}

TEST(Caches, DroppingTheLastHandleFreesEverything) {
  for (NamedLinop A : some_operators()) {
    const std::weak_ptr<const LinopNode> node = A.node();
    std::weak_ptr<const LinopNode> adjoint, normal, both;
    adjoint = A.H().node();
    normal = A.N().node();
    both = A.H().N().node();
    A.N().H();
    A.N().N();
    A.H().H().N();
    const std::string text = A.str();
    A = NamedLinop();
    // The vector above holds one more handle until the loop ends.
    EXPECT_FALSE(node.expired()) << text;
  }
  std::weak_ptr<const LinopNode> node, adjoint, normal;
  {
    const NamedLinop A = Chain(matrix_operator(), Add(Identity("M"), Scalar(2, "M")));
    node = A.node();
    adjoint = A.H().node();
    normal = A.N().node();
    A.H().N().H().N();
    A.N().N().H();
    EXPECT_FALSE(adjoint.expired() || normal.expired());
  }
  EXPECT_TRUE(node.expired());
  EXPECT_TRUE(adjoint.expired());
  EXPECT_TRUE(normal.expired());
}

// A type whose normal operator holds the operator itself.
NamedLinop normal_with_itself(const NamedLinop& A, const NamedLinop*) { return Chain(A, A.H()); }
const LinopType kSelfish{
    .name = "test.Selfish",
    .functions = {.fn = [](const NamedLinop&, const Variable& x) { return x; }},
    .normal = normal_with_itself};

TEST(Caches, AreNeverCyclic) {
  std::weak_ptr<const LinopNode> node, adjoint, normal;
  {
    const NamedLinop A = make_linop(kSelfish, "A");
    node = A.node();
    adjoint = A.H().node();
    normal = A.N().node();
    A.H().N();
    EXPECT_TRUE(A.N().is(A.N()));
    EXPECT_TRUE(A.H().N().is(A.H().N()));
  }
  EXPECT_TRUE(node.expired());
  EXPECT_TRUE(adjoint.expired());
  EXPECT_TRUE(normal.expired());
}

TEST(Caches, CanBeSwitchedOff) {
  const ConfigScope scope({.cache_adjoint_normal = false});
  const NamedLinop A = matrix_operator();
  EXPECT_FALSE(A.H().is(A.H()));
  EXPECT_TRUE(identical(A.H(), A.H()));
  EXPECT_TRUE(identical(A.H().H(), A));
  EXPECT_FALSE(A.N().is(A.N()));
}

TEST(Caches, AdjointsShareParameters) {
  const NamedLinop A = matrix_operator();
  EXPECT_TRUE(A.H().param("weight").is(A.param("weight")));
  EXPECT_TRUE(A.H().is_flipped());
  EXPECT_FALSE(A.H().H().is_flipped());
}

TEST(Caches, NormalWithFreshOutputNames) {
  const NamedLinop A = matrix_operator();
  const NamedLinop N = A.N(Output::fresh);
  EXPECT_EQ(N.shape().str(), "(N) -> (N1)");
  const Tensor x = random({3});
  EXPECT_TRUE(allclose(N(x), A.N()(x)));
}

TEST(Caches, ConcurrentUseIsSafe) {
  const NamedLinop A = Chain(Dense(random({4, 6, 6}), "C Ny Nx,Ny Nx->C Ny Nx"),
                             Fft(2, {.batch = "C", .grid = Grid{"NyNx", "KyKx"}}));
  const Tensor x = random({6, 6});
  const Tensor expected = A(x);
  const NamedLinop B = A.copy();
  std::vector<std::thread> threads;
  std::vector<NamedLinop> adjoints(8), normals(8);
  std::vector<Tensor> results(8);
  for (std::size_t i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      adjoints[i] = B.H();
      normals[i] = B.N();
      results[i] = B(x);
      EXPECT_TRUE(B.H().H().is(B));
      const Tensor back = B.H()(results[i]);
      EXPECT_EQ(back.numel(), 36);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (std::size_t i = 0; i < 8; ++i) {
    EXPECT_TRUE(adjoints[i].is(adjoints[0]));
    EXPECT_TRUE(normals[i].is(normals[0]));
    EXPECT_TRUE(equal(results[i], expected));
  }
}

TEST(Caches, InverseIsForTypesThatHaveOne) {
  expect_error<NotSupported>([] { matrix_operator().inverse(); }, "[Dense] inverse");
  const Tensor x = random({3});
  const NamedLinop s = Scalar(std::complex<double>(1, 2), "A");
  EXPECT_TRUE(allclose(s.inverse()(s(x)), x));
  EXPECT_TRUE(allclose(s.H().inverse()(s.H()(x)), x));
  expect_error<ValueError>([] { Scalar(0, "A").inverse(); }, "division by zero");
  expect_error<NotSupported>([] { Scalar(Parameter(Tensor::ones({}))).inverse(); }, "parameter");
}

}  // namespace
}  // namespace palimpsest
