// SPDX-License-Identifier: Apache-2.0
// Concat, Stack, Kronecker, operators of functions.
#include "linop/linop_support.hpp"
#include "palimpsest/linop/containers/concat.hpp"
#include "palimpsest/linop/containers/kronecker.hpp"
#include "palimpsest/linop/containers/stack.hpp"
#include "palimpsest/linop/operators/simple.hpp"
#include "palimpsest/ops/elementwise/elementwise.hpp"
#include "palimpsest/ops/shape/shape_ops.hpp"

namespace palimpsest {
namespace {

using testing::adjoint;
using testing::Complex;
using testing::dense;
using testing::expect_close;
using testing::expect_error;
using testing::matrix;
using testing::Matrix;
using testing::random;
using testing::values;

NamedLinop of_size(index_t rows, index_t columns, std::uint64_t stream = 7) {
  return Dense(random({rows, columns}, DType::complex128, stream), "MN,N->M");
}

Matrix beside(const Matrix& a, const Matrix& b) {
  return matrix(a.size(), a[0].size() + b[0].size(), [&](std::size_t i, std::size_t j) {
    return j < a[0].size() ? a[i][j] : b[i][j - a[0].size()];
  });
}
Matrix above(const Matrix& a, const Matrix& b) { return adjoint(beside(adjoint(a), adjoint(b))); }
Matrix zeros(std::size_t rows, std::size_t columns) {
  return matrix(rows, columns, [](std::size_t, std::size_t) { return Complex(0); });
}

TEST(Concat, IsABlockMatrix) {
  const NamedLinop A = of_size(4, 3), B = of_size(4, 2, 8), C = of_size(2, 3, 9);
  const NamedLinop in = Concat({A, B}, {.in = "N"});
  EXPECT_EQ(in.shape().str(), "(N) -> (M)");
  EXPECT_EQ(in.size("N"), 5);
  expect_close(dense(in), beside(dense(A), dense(B)));
  const NamedLinop out = Concat({A, C}, {.out = "M"});
  EXPECT_EQ(out.size("M"), 6);
  expect_close(dense(out), above(dense(A), dense(C)));
  EXPECT_EQ(out.N().name(), "Add");
  const NamedLinop both = BlockDiagonal({A, of_size(1, 2)}, "N", "M");
  expect_close(dense(both),
               above(beside(dense(A), zeros(4, 2)), beside(zeros(1, 3), dense(of_size(1, 2)))));
  EXPECT_EQ(both.N().name(), "Concat");
  for (const NamedLinop& X : {in, out, both}) {
    expect_close(dense(X.H()), adjoint(dense(X)));
    expect_close(dense(X.N()), adjoint(dense(X)) * dense(X), 1e-11);
    EXPECT_TRUE(X.H().H().is(X));
  }
}

TEST(Concat, KeepsItsDimensionWhenRenamed) {
  const NamedLinop A = Concat({of_size(4, 3), of_size(4, 2, 8)}, {.in = "N"});
  NamedLinop renamed = A.renamed({{"N", "Q"}});
  EXPECT_EQ(renamed.shape().str(), "(Q) -> (M)");
  EXPECT_EQ(renamed.size("Q"), 5);
  EXPECT_EQ(renamed[1].shape().str(), "(Q) -> (M)");
  expect_close(dense(renamed.H()), adjoint(dense(A)));
  renamed.set_linops({of_size(4, 1).renamed({{"N", "Q"}})});
  EXPECT_EQ(renamed.size("Q"), 1);
  EXPECT_EQ(A.slice(0, 1).size("N"), 3);
  EXPECT_EQ(Concat({Diagonal(random({3}), "... A"), Diagonal(random({2}), "... A")},
                   {.in = "A", .out = "A"})(random({4, 5}))
                .shape(),
            (Extents{4, 5}));
}

TEST(Concat, ErrorsSayWhatIsWrong) {
  const NamedLinop A = of_size(4, 3), B = of_size(4, 2, 8);
  expect_error<ValueError>([&] { Concat({A, B}, {}); }, "At least one");
  expect_error<ValueError>([] { Concat({}, {.in = "N"}); }, "at least one");
  expect_error<ShapeError>([&] { Concat({A, B}, {.out = "M"}); }, "Conflicting");
  expect_error<ShapeError>([&] { Concat({A, B}, {.in = "X"}); }, "dim 'X'");
  expect_error<ShapeError>([] { Concat({Fft(1), Fft(1)}, {.in = "Nx"}); }, "undefined size");
  expect_error<ShapeError>(
      [&] {
        Concat({A, B.renamed({{"M", "P"}})}, {.in = "N"});
      },
      "equal shapes");
  const NamedLinop D = Diagonal(random({3}), "A");
  expect_error<ShapeError>([&] { Concat({D, D}, {.in = "A"}); }, "Try both");
  expect_error<ShapeError>([&] { Concat({A, B}, {.in = "N"})(random({4})); }, "expected");
}

TEST(Concat, PartitionsSlices) {
  const index_t boundaries[] = {0, 4, 6};
  const auto parts = partition_slices(boundaries, slice(1, 5));
  ASSERT_EQ(parts.size(), 2U);
  EXPECT_EQ(parts[0].first, 0U);
  EXPECT_EQ(parts[0].second.start, 1);
  EXPECT_EQ(parts[0].second.stop, 4);
  EXPECT_EQ(parts[1].first, 1U);
  EXPECT_EQ(parts[1].second.start, 0);
  EXPECT_EQ(parts[1].second.stop, 1);
  const index_t late[] = {1, 2}, falling[] = {0, 3, 2};
  expect_error<ValueError>([&] { partition_slices(late, slice(0, 1)); }, "first boundary");
  expect_error<ValueError>([&] { partition_slices(falling, slice(0, 1)); }, "non-decreasing");
  expect_error<ValueError>([&] { partition_slices(boundaries, slice(0, 7)); }, "out of range");
  expect_error<ValueError>([&] { partition_slices(boundaries, slice(0, 4, 2)); }, "step");
}

TEST(Stack, AddsADimension) {
  const NamedLinop A = of_size(4, 3), B = of_size(4, 3, 8);
  const NamedLinop out = Stack({A, B}, {.out = {"S", 0}});
  EXPECT_EQ(out.shape().str(), "(N) -> (S, M)");
  EXPECT_EQ(out.size("S"), 2);
  expect_close(dense(out), above(dense(A), dense(B)));
  EXPECT_EQ(out.N().name(), "Add");
  const NamedLinop in = Stack({A, B}, {.in = {"S", 0}});
  expect_close(dense(in), beside(dense(A), dense(B)));
  const NamedLinop both = Stack({A, B}, {.in = {"S", 0}, .out = {"T", 0}});
  expect_close(dense(both), above(beside(dense(A), zeros(4, 3)), beside(zeros(4, 3), dense(B))));
  EXPECT_EQ(both.N().name(), "Stack");
  EXPECT_EQ(both.N().shape().str(), "(S, N) -> (S, N)");
  for (const NamedLinop& X : {in, out, both}) {
    expect_close(dense(X.H()), adjoint(dense(X)));
    expect_close(dense(X.N()), adjoint(dense(X)) * dense(X), 1e-11);
    EXPECT_TRUE(X.H().H().is(X));
  }
  EXPECT_EQ(Stack({A, B}, {.out = {"S", -1}}).shape().str(), "(N) -> (M, S)");
  EXPECT_EQ(out.slice(1, 2).size("S"), 1);
}

TEST(Stack, StandsWhereItStoodWhenAnEllipsisIsSpelledOut) {
  const NamedLinop D = Diagonal(random({3}), "... A");
  NamedLinop A = Stack({D, D}, {.out = {"S", -1}});
  EXPECT_EQ(A.shape().str(), "(..., A) -> (..., A, S)");
  A.set_ishape("B A");
  EXPECT_EQ(A.shape().str(), "(B, A) -> (B, A, S)");
  EXPECT_EQ(A[0].shape().str(), "(B, A) -> (B, A)");
  NamedLinop renamed = A.renamed({{"S", "T"}});
  EXPECT_EQ(renamed.size("T"), 2);
  EXPECT_TRUE(equal(renamed(random({2, 3})), A(random({2, 3}))));
}

TEST(Stack, ErrorsSayWhatIsWrong) {
  const NamedLinop A = of_size(4, 3);
  expect_error<ValueError>([&] { Stack({A, A}, {}); }, "At least one");
  expect_error<ValueError>([] { Stack({}, {.in = {"S", 0}}); }, "at least one");
  expect_error<ValueError>([&] { Stack({A, A}, {.in = {"S", 2}}); }, "position");
  expect_error<ShapeError>([&] { Stack({A, A}, {.in = {"M", 0}}); }, "already contains");
  expect_error<ShapeError>([&] { Stack({A, of_size(4, 2)}, {.in = {"S", 0}}); }, "Conflicting");
  expect_error<ShapeError>([&] { Stack({A, A}, {.in = {"S", 0}})(random({3, 3})); }, "expected");
}

TEST(Kronecker, IsTheProductOfItsMatrices) {
  const NamedLinop A = of_size(4, 3), B = Dense(random({2, 5}), "PQ,Q->P");
  const NamedLinop K = Kronecker(A, B);
  EXPECT_EQ(K.shape().str(), "(N, Q) -> (M, P)");
  const Matrix a = dense(A), b = dense(B);
  const Matrix expected = matrix(
      8, 15, [&](std::size_t i, std::size_t j) { return a[i / 2][j / 5] * b[i % 2][j % 5]; });
  expect_close(dense(K), expected);
  expect_close(dense(K.H()), adjoint(expected));
  EXPECT_EQ(K.N().name(), "Kronecker");
  expect_close(dense(K.N()), adjoint(expected) * expected, 1e-10);
  const NamedLinop renamed = K.renamed({{"Q", "X"}});
  EXPECT_EQ(renamed[1].shape().str(), "(X) -> (P)");
  const NamedLinop with_batch = Kronecker(Diagonal(random({3}), "... A"), Fft(1));
  EXPECT_EQ(with_batch.shape().str(), "(A, Nx) -> (A, Kx)");
  EXPECT_EQ(with_batch.N()[1].name(), "Identity");
  expect_error<ShapeError>([&] { Kronecker(A, of_size(2, 2)); }, "collides");
  expect_error<ShapeError>([&] { Kronecker(A, Diagonal(random({2}), "Z ...")); }, "ellipsis");
}

TEST(SimpleLinop, AppliesItsFunctions) {
  const auto twice = [](const Variable& x) { return x * 2.0; };
  const auto thrice = [](const Variable& y) { return y * 3.0; };
  const NamedLinop A = SimpleLinop({.fn = twice, .adj_fn = thrice});
  const Tensor x = Tensor::ones({2});
  EXPECT_EQ(A(x).to_vector<double>()[0], 2);
  EXPECT_EQ(A.H()(x).to_vector<double>()[0], 3);
  EXPECT_EQ(A.N()(x).to_vector<double>()[0], 6);
  EXPECT_EQ((A + A)(x).to_vector<double>()[0], 4);
  EXPECT_EQ((A * A)(x).to_vector<double>()[0], 4);
  EXPECT_EQ(A.H().name(), "SimpleLinop.H");
  EXPECT_TRUE(A.H().H().is(A));
  const NamedLinop with_normal = SimpleLinop(
      {.fn = twice, .adj_fn = twice, .normal_fn = [](const Variable& v) { return v * 4.0; }});
  EXPECT_EQ(with_normal.N()(x).to_vector<double>()[0], 4);
  EXPECT_EQ(A.H().N()(x).to_vector<double>()[0], 6);
  const NamedLinop edge =
      SimpleLinop({.fn = [](const Variable& v) { return v - ops::roll(v, 1, -1); }, .ishape = "N"});
  expect_close(dense(edge.H(), {.sizes = {{"N", 4}}}), adjoint(dense(edge, {.sizes = {{"N", 4}}})));
  expect_error<ValueError>([] { SimpleLinop({}); }, "fn");
  const NamedLinop square = SimpleLinop({.fn = [](const Variable& v) { return v * v; }});
  expect_error<NotLinearError>([&] { square.H()(x); }, "SimpleLinop");
}

}  // namespace
}  // namespace palimpsest
