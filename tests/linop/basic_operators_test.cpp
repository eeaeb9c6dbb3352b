// SPDX-License-Identifier: Apache-2.0
// Identity, Zero, Scalar, Diagonal, Pad, Crop, SumReduce, Repeat.
#include "linop/linop_support.hpp"
#include "palimpsest/compile/function.hpp"
#include "palimpsest/ops/elementwise/elementwise.hpp"
#include "palimpsest/ops/gradient.hpp"
#include "palimpsest/ops/reduce/reduce.hpp"

namespace palimpsest {
namespace {

using testing::Complex;
using testing::dense;
using testing::expect_close;
using testing::expect_error;
using testing::matrix;
using testing::random;
using testing::values;

TEST(Identity, GivesBackItsInput) {
  const Tensor x = random({2, 3});
  EXPECT_TRUE(equal(Identity()(x), x));
  EXPECT_TRUE(equal(Identity("A B")(x), x));
  expect_error<ValueError>([] { Identity("A", "B"); }, "ShapeSpec");
  expect_error<ShapeError>([&] { Identity("A")(x); }, "expects");
}

TEST(Zero, HasTheGradientZero) {
  for (const Extents& shape : {Extents{4}, Extents{}, Extents{0}}) {
    const Dims dims = shape.empty() ? Dims() : Dims("N");
    const Variable x = make_input({DType::complex64, shape, {}}, "x");
    const Variable y = Zero(dims, dims)(x);
    EXPECT_EQ(y.type(), x.type());
    const Function gradient =
        function({x}, grad(ops::sum(ops::real(y)), x), {.on_unused_input = Reaction::ignore});
    // For every x, even infinite or NaN.
    const Tensor at = Tensor::full<std::complex<float>>(shape, {INFINITY, NAN});
    EXPECT_TRUE(equal(gradient(at).tensor(), Tensor::zeros(shape, DType::complex64)));
    EXPECT_TRUE(equal(Zero(dims, dims)(at), Tensor::zeros(shape, DType::complex64)));
  }
}

TEST(Zero, HasTheOutputShape) {
  const NamedLinop A = Zero("A B", "C A", {.sizes = {{"C", 2}}});
  const Tensor y = A(random({3, 4}, DType::complex64));
  EXPECT_TRUE(equal(y, Tensor::zeros({2, 3}, DType::complex64)));
  EXPECT_EQ(A.with_sizes({{"B", 4}}).H()(y).shape(), (Extents{3, 4}));
  EXPECT_EQ(A.N().shape().str(), "(A, B) -> (A, B)");
  EXPECT_TRUE(equal(Zero()(random({2})), Tensor::zeros({2}, DType::complex128)));
  expect_error<ShapeError>([] { Zero("A", "B")(random({3})); }, "is unknown");
}

TEST(Scalar, Multiplies) {
  EXPECT_EQ(Scalar(3)(Tensor::ones({5})).to_vector<double>(), std::vector<double>(5, 3));
  EXPECT_EQ(values(Scalar(Complex(0, 1))(Tensor::ones({2}))), std::vector<Complex>(2, {0, 1}));
  EXPECT_EQ(values(Scalar(Complex(2, 3)).H()(Tensor::ones({1}))), (std::vector<Complex>{{2, -3}}));
  EXPECT_EQ(Scalar(Complex(2, 3), "A").N().attr("alpha").as_real(), 13);
  EXPECT_EQ(Scalar(2, "A").N().name(), "Scalar");
}

TEST(Diagonal, MultipliesElementwise) {
  const Tensor w = random({3});
  const NamedLinop A = Diagonal(w, "A");
  const auto v = values(w);
  expect_close(dense(A), matrix(3, 3, [&](auto i, auto j) { return i == j ? v[i] : Complex(); }));
  expect_close(dense(A.H()), testing::adjoint(dense(A)));
  EXPECT_EQ(A.size("A"), 3);
}

TEST(Diagonal, WeightsStandOnTheLastDimensions) {
  const Tensor w = random({3}), x = random({2, 3});
  const Tensor y = Diagonal(w, "A B")(x);
  EXPECT_TRUE(allclose(y.select(0, 1), Diagonal(w, "B")(x.select(0, 1))));
  EXPECT_TRUE(equal(Diagonal(w)(x), y));
  EXPECT_TRUE(equal(Diagonal(w, "... B")(x), y));
}

TEST(Diagonal, OrOnTheDimensionsOfWeightShape) {
  const Tensor w = random({2, 3}), x = random({2, 4, 3, 5});
  const Tensor y = Diagonal(w, "A B C D", {.weight_shape = Dims("A C")})(x);
  const auto u = values(w), v = values(x), got = values(y);
  for (std::size_t i = 0; i < v.size(); ++i) {
    const std::size_t a = i / 60, c = i / 5 % 3;
    EXPECT_LE(std::abs(got[i] - u[a * 3 + c] * v[i]), 1e-14);
  }
  const NamedLinop B = Diagonal(random({2}), "A ... D", {.weight_shape = Dims("A")});
  EXPECT_EQ(B.size("A"), 2);
  EXPECT_EQ(B(x).shape(), x.shape());
}

TEST(Diagonal, AxesOfOneElementStretch) {
  const NamedLinop A = Diagonal(random({1, 3}), "A B", {.broadcast = "A"});
  EXPECT_FALSE(A.size("A").has_value());
  EXPECT_EQ(A(random({4, 3})).shape(), (Extents{4, 3}));
  EXPECT_EQ(Diagonal(random({1, 3}), "A B", {.sizes = {{"A", 4}}}).size("A"), 4);
  EXPECT_EQ(Diagonal(random({3}), "A B", {.broadcast = "A"})(random({2, 3})).numel(), 6);
}

TEST(Diagonal, ItsNormalIsOneRealDiagonal) {
  const NamedLinop A = Diagonal(random({3}), "A");
  const NamedLinop N = A.N();
  EXPECT_EQ(&N.type(), &A.type());
  EXPECT_TRUE(N.param("weight").is(A.param("weight")));
  EXPECT_EQ(N(Tensor::ones({3})).dtype(), DType::float64);
  expect_close(dense(N), testing::adjoint(dense(A)) * dense(A));
  expect_close(dense(N.N()), dense(N) * dense(N), 1e-11);
}

TEST(Diagonal, NormalFoldsIdentityScalarAndDiagonal) {
  const NamedLinop A = Diagonal(random({3}), "A");
  const NamedLinop D = Diagonal(random({3}, DType::complex128, 8), "A");
  EXPECT_TRUE(A.normal(Identity("A")).is(A.N()));
  const NamedLinop folded = A.normal(D);
  EXPECT_EQ(folded.name(), "Diagonal");
  expect_close(dense(folded), testing::adjoint(dense(A)) * dense(D) * dense(A));
  expect_close(dense(A.normal(Scalar(Complex(1, 1), "A"))),
               testing::adjoint(dense(A)) *
                   dense(Scalar(Complex(1, 1), "A").with_sizes({{"A", 3}})) * dense(A));
  expect_error<ShapeError>([&] { A.normal(Identity("B")); }, "Mismatched");
}

TEST(Diagonal, WrongArguments) {
  expect_error<ValueError>([] { Diagonal(random({2, 3}), "A"); }, "dimensions must be named");
  expect_error<ValueError>(
      [] {
        Diagonal(random({2, 3}), "A B C", {.weight_shape = Dims("A")});
      },
      "must be named");
  expect_error<ValueError>([] { Diagonal(random({2}), "A B", {.weight_shape = Dims("C")}); },
                           "weight_shape");
  expect_error<ValueError>(
      [] {
        Diagonal(random({2, 3}), "A B", {.weight_shape = Dims("B A")});
      },
      "in their order");
  expect_error<ValueError>([] { Diagonal(random({2}), "A", {.broadcast = "A"}); }, "broadcast");
  expect_error<ValueError>([] { Diagonal(random({2}), "A", {.broadcast = "B"}); }, "broadcast");
  expect_error<DTypeError>([] { Diagonal(Tensor::ones({2}, DType::int64), "A"); }, "weight");
  expect_error<ShapeError>([] { Diagonal(random({2, 3}))(random({3})); }, "expects");
  expect_error<ShapeError>([] { Diagonal(random({2, 3}))(random({4, 3})); }, "[Diagonal]");
  expect_error<ShapeError>([] { Diagonal(random({2, 3}))(random({1, 3})); }, "[Diagonal]");
}

TEST(Pad, PutsTheCentreAtTheCentre) {
  const auto padded = [](index_t from, index_t to) {
    return Pad({from}, {to})(Tensor::ones({from})).to_vector<double>();
  };
  std::vector<double> even(20), odd(21);
  for (std::size_t i = 5; i < 15; ++i) even[i] = odd[i] = 1;
  EXPECT_EQ(padded(10, 20), even);  // 5 zeros on both sides
  EXPECT_EQ(padded(10, 21), odd);   // 5 and 6
  EXPECT_EQ(padded(3, 4), (std::vector<double>{0, 1, 1, 1}));
  EXPECT_EQ(padded(3, 3), (std::vector<double>{1, 1, 1}));
}

TEST(Pad, NamesAndSizes) {
  const NamedLinop A = Pad({4, 5}, {6, 9}, {.batch = "C"});
  EXPECT_EQ(A.shape().str(), "(C, Nx, Ny) -> (C, Nx1, Ny1)");
  EXPECT_EQ(A.size("Nx"), 4);
  EXPECT_EQ(A.size("Ny1"), 9);
  EXPECT_EQ(A.H().size("Ny1"), 9);
  EXPECT_FALSE(A.size("C").has_value());
  EXPECT_EQ(Pad({4}, {6}, {.in = Dims("A"), .out = Dims("B")}).shape().str(),
            "(..., A) -> (..., B)");
  EXPECT_EQ(A.N().name(), "Identity");
  expect_error<ShapeError>([&] { A(random({1, 4, 6})); }, "expected 5, got 6");
  expect_error<ValueError>([] { Pad({4, 5}, {6}); }, "size");
  expect_error<ValueError>([] { Pad({4}, {3}); }, "size");
  expect_error<ValueError>([] { Pad({4}, {6}, {.in = Dims("AB")}); }, "size");
}

TEST(Crop, IsTheAdjointOfPad) {
  for (const index_t small : {3, 4}) {
    for (const index_t big : {7, 8}) {
      const NamedLinop crop = Crop({big}, {small}), pad = Pad({small}, {big});
      expect_close(dense(crop), dense(pad.H()));
      expect_close(dense(crop.H()), dense(pad));
      expect_close(dense(crop.N()), dense(pad) * dense(crop));
      EXPECT_EQ(crop.H().N().name(), "Identity");
      EXPECT_EQ(crop.size("Nx"), big);
      EXPECT_EQ(crop.size("Nx1"), small);
    }
  }
  expect_error<ValueError>([] { Crop({4}, {5}); }, "size");
}

TEST(SumReduce, SumsWhatTheOutputLacks) {
  const NamedLinop A = SumReduce("A B C", "A B", {.sizes = {{"C", 3}}});
  const Tensor x = random({2, 4, 3});
  const auto v = values(x), y = values(A(x));
  for (std::size_t i = 0; i < y.size(); ++i) {
    EXPECT_LE(std::abs(y[i] - v[3 * i] - v[3 * i + 1] - v[3 * i + 2]), 1e-14);
  }
  const Tensor back = A.H()(random({2, 4}));
  EXPECT_EQ(back.shape(), (Extents{2, 4, 3}));
  EXPECT_TRUE(equal(back.select(2, 0), back.select(2, 2)));
}

TEST(SumReduce, TheAdjointNeedsTheTrueSize) {
  const NamedLinop A = SumReduce("A B", "A");
  expect_error<ShapeError>([&] { A.H()(random({2})); }, "[SumReduce.H] size of dim 'B' is unknown");
  EXPECT_EQ(A.with_sizes({{"B", 5}}).H()(random({2})).shape(), (Extents{2, 5}));
  // The normal operator has it in its input.
  EXPECT_EQ(A.N()(random({2, 5})).shape(), (Extents{2, 5}));
  const NamedLinop chain = Chain(A, Diagonal(random({2}), "A"));
  EXPECT_EQ(chain.N()(random({2, 5})).shape(), (Extents{2, 5}));
  expect_error<ShapeError>([] { SumReduce("A", "A"); }, "shorter");
  expect_error<ShapeError>([] { SumReduce("A", "A B"); }, "shorter");
  expect_error<ShapeError>([] { SumReduce("A B C", "B A"); }, "shorter");
}

TEST(Repeat, RepeatsAlongNewDimensions) {
  const NamedLinop A = Repeat({{"C", 3}}, "A B", "A C B");
  const Tensor x = random({2, 4});
  const Tensor y = A(x);
  EXPECT_EQ(y.shape(), (Extents{2, 3, 4}));
  for (index_t c = 0; c < 3; ++c) EXPECT_TRUE(equal(y.select(1, c), x));
  EXPECT_EQ(A.size("C"), 3);
  EXPECT_EQ(A.H().size("C"), 3);
  EXPECT_EQ(A.N().name(), "Scalar");
  EXPECT_EQ(A.N().attr("alpha").as_real(), 3);
  EXPECT_EQ(Repeat({{"A", 2}, {"B", 5}}, "...", "A ... B").N().attr("alpha").as_real(), 10);
  expect_error<ShapeError>([] { Repeat({{"C", 3}}, "A C", "A"); }, "longer");
  expect_error<ShapeError>([] { Repeat({{"C", 3}}, "A", "A B"); }, "longer");
  expect_error<ShapeError>([] { Repeat({}, "A", "A"); }, "longer");
  expect_error<ValueError>([] { Repeat({{"C", 0}}, "A", "A C"); }, "size of dim 'C'");
}

}  // namespace
}  // namespace palimpsest
