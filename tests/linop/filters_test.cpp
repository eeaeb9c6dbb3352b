// SPDX-License-Identifier: Apache-2.0
// Blocks, sparse matrices, convolutions, differences, wavelets.
#include <cmath>

#include "linop/linop_support.hpp"
#include "palimpsest/linop/containers/blocks.hpp"
#include "palimpsest/linop/containers/kronecker.hpp"
#include "palimpsest/linop/operators/sparse.hpp"
#include "palimpsest/linop/split/budget.hpp"
#include "palimpsest/linop/transforms/convolution.hpp"
#include "palimpsest/linop/transforms/finite_difference.hpp"
#include "palimpsest/linop/transforms/wavelet.hpp"
#include "palimpsest/ops/shape/blocks.hpp"

namespace palimpsest {
namespace {

using testing::Complex;
using testing::dense;
using testing::difference;
using testing::expect_close;
using testing::expect_error;
using testing::matrix;
using testing::Matrix;
using testing::random;
using testing::values;

std::vector<double> reals(const Tensor& t) { return t.to_vector<double>(); }
Tensor numbers(std::vector<double> v) { return Tensor::from(v); }

TEST(ArrayToBlocks, TakesBlocksAndAddsThemUp) {
  const NamedLinop A = ArrayToBlocks({5}, {3}, {2});
  EXPECT_EQ(A.shape().str(), "(..., Nx) -> (..., Bx, Px)");
  EXPECT_EQ(A.size("Bx"), 2);
  EXPECT_EQ(A.size("Px"), 3);
  EXPECT_EQ(reals(A(numbers({1, 2, 3, 4, 5}))), (std::vector<double>{1, 2, 3, 3, 4, 5}));
  EXPECT_EQ(reals(A.H()(Tensor::ones({2, 3}))), (std::vector<double>{1, 1, 2, 1, 1}));
  EXPECT_EQ(A.N().name(), "Diagonal");
  EXPECT_EQ(reals(A.N()(numbers({1, 1, 1, 1, 1}))), (std::vector<double>{1, 1, 2, 1, 1}));
  EXPECT_EQ(BlocksToArray({5}, {3}, {2}).shape().str(), "(..., Bx, Px) -> (..., Nx)");
}

TEST(ArrayToBlocks, KeepsWhatItsMaskSays) {
  Tensor mask = Tensor::zeros({3}, DType::bool_);
  mask.set<bool>({0}, true);
  mask.set<bool>({2}, true);
  const NamedLinop A = ArrayToBlocks({5}, {3}, {1}, {.mask = mask});
  EXPECT_EQ(A.shape().str(), "(..., Nx) -> (..., Bx, P)");
  EXPECT_EQ(A.size("P"), 2);
  EXPECT_EQ(reals(A(numbers({1, 2, 3, 4, 5}))), (std::vector<double>{1, 3, 2, 4, 3, 5}));
  EXPECT_EQ(reals(A.N()(numbers({1, 1, 1, 1, 1}))), (std::vector<double>{1, 1, 2, 1, 1}));
}

TEST(ArrayToBlocks, ItsMaskIsAParameter) {
  Tensor mask = Tensor::zeros({3}, DType::bool_), other = Tensor::zeros({3}, DType::bool_);
  for (index_t i : {0, 2}) mask.set<bool>({i}, true);
  for (index_t i : {1, 2}) other.set<bool>({i}, true);
  Parameter p(mask);
  const NamedLinop A = ArrayToBlocks({5}, {3}, {1}, {.mask = p});
  EXPECT_TRUE(A.param("mask").is(p));
  EXPECT_TRUE(A.H().param("mask").is(p));
  const NamedLinop N = A.N();
  const Tensor x = numbers({1, 2, 3, 4, 5}), ones = numbers({1, 1, 1, 1, 1});
  A(x);
  N(ones);
  p.set_value(other);
  EXPECT_EQ(reals(A(x)), (std::vector<double>{2, 3, 3, 4, 4, 5}));
  EXPECT_EQ(reals(A.H()(Tensor::ones({3, 2}))), (std::vector<double>{0, 1, 2, 2, 1}));
  EXPECT_EQ(reals(N(ones)), (std::vector<double>{0, 1, 2, 2, 1}));
  // A new mask with as many entries: P keeps its size.
  p.set_value(Tensor::ones({3}, DType::bool_));
  expect_error<AssertionError>([&] { A(x); }, "expected 2 true entries");
  NamedLinop B = A;
  B.set_param("mask", Parameter(Tensor::ones({3}, DType::bool_)));
  EXPECT_EQ(B.size("P"), 3);
  EXPECT_EQ(B(x).shape(), (Extents{3, 3}));
  p.set_value(mask);
  EXPECT_EQ(reals(A(x)), (std::vector<double>{1, 3, 2, 4, 3, 5}));
  const NamedLinop tile = A.split({{"Bx", slice(1, 3)}});
  EXPECT_EQ(reals(tile(x)), (std::vector<double>{2, 4, 3, 5}));
}

TEST(ArrayToBlocks, ErrorsSayWhatIsWrong) {
  EXPECT_EQ(nblocks(5, 3, 2), 2);
  EXPECT_EQ(nblocks(10, 8, 4), 1);
  expect_error<ValueError>([] { nblocks(3, 4, 1); }, "block");
  expect_error<ValueError>([] { nblocks({3}, {2, 2}, {1}); }, "one length");
  expect_error<ValueError>([] { ArrayToBlocks({3}, {4}); }, "[ArrayToBlocks] block");
  expect_error<ValueError>([] { ArrayToBlocks({5, 5}, {3}); }, "one length");
  expect_error<ValueError>([] { ArrayToBlocks({5}, {3}, {0}); }, "block");
  expect_error<ValueError>(
      [] { ArrayToBlocks({5}, {3}, {1}, {.mask = Tensor::zeros({2}, DType::bool_)}); }, "mask");
  expect_error<ValueError>([] { ArrayToBlocks({5}, {3}, {1}, {.array = Dims("A B")}); }, "array");
}

TEST(Sparse, IsItsMatrix) {
  const NamedLinop A = Sparse(numbers({1, 2, 3, 4}), Tensor::from<index_t>({0, 2, 1, 1}),
                              Tensor::from<index_t>({0, 2, 2, 4}), 3);
  expect_close(dense(A), Matrix{{1, 0, 2}, {0, 0, 0}, {0, 7, 0}});
  EXPECT_EQ(A.size("N"), 3);
  EXPECT_EQ(A.size("M"), 3);
  EXPECT_EQ(A.shape().str(), "(..., N) -> (..., M)");
  const auto make = [](std::vector<index_t> column, std::vector<index_t> start) {
    Sparse(numbers({1, 2}), Tensor::from(column), Tensor::from(start), 3);
  };
  expect_error<ValueError>([&] { make({0, 3}, {0, 2}); }, "range");
  expect_error<ValueError>([&] { make({0, 1}, {0, 1}); }, "row_start");
  expect_error<ValueError>([&] { make({0, 1}, {0, 2, 1, 2}); }, "row_start");
  expect_error<ShapeError>([&] { make({0}, {0, 2}); }, "column_index");
  expect_error<DTypeError>(
      [] {
        Sparse(numbers({1}), numbers({0}), numbers({0, 1}), 1);
      },
      "integers");
}

TEST(Sparse, FollowsWritesToItsArrays) {
  Parameter v(numbers({1, 2, 3, 4}));
  const NamedLinop A =
      Sparse(v, Tensor::from<index_t>({0, 2, 1, 1}), Tensor::from<index_t>({0, 2, 2, 4}), 3);
  dense(A);
  Parameter start = A.param("row_start"), column = A.param("column_index");
  start.set_value(Tensor::from<index_t>({0, 0, 3, 4}));
  expect_close(dense(A), Matrix{{0, 0, 0}, {1, 3, 2}, {0, 4, 0}});
  column.set_value(Tensor::from<index_t>({1, 1, 1, 0}));
  v.set_value(numbers({1, 1, 1, 5}));
  const Matrix expected{{0, 0, 0}, {0, 3, 0}, {5, 0, 0}};
  expect_close(dense(A), expected);
  expect_close(dense(A.H()), testing::adjoint(expected));
  column.set_value(Tensor::from<index_t>({0, 0, 7, 0}));
  expect_error<ValueError>([&] { A(Tensor::ones({3})); }, "range");
  const NamedLinop empty = Sparse(Tensor::zeros({0}), Tensor::zeros({0}, DType::int64),
                                  Tensor::from<index_t>({0, 0, 0}), 3);
  EXPECT_EQ(reals(empty(Tensor::ones({3}))), (std::vector<double>{0, 0}));
}

TEST(Convolution, FollowsItsDefinition) {
  const Tensor h = numbers({1, 2, 3}), x = numbers({1, 0, 0, 0});
  EXPECT_EQ(reals(Convolution(h)(x)), (std::vector<double>{2, 3, 0, 0}));
  EXPECT_EQ(reals(Convolution(h, {.boundary = Boundary::circular})(x)),
            (std::vector<double>{2, 3, 0, 1}));
  EXPECT_EQ(Convolution(h).shape().str(), "(..., Nx) -> (..., Nx)");
}

// y[n] = sum_m h[m] x[n + c - m] in one dimension.
Matrix expected_matrix(const std::vector<Complex>& h, index_t n, bool circular) {
  const auto size = static_cast<std::size_t>(n);
  Matrix result = matrix(size, size, [](std::size_t, std::size_t) { return Complex(0); });
  const auto k = static_cast<index_t>(h.size());
  for (index_t i = 0; i < n; ++i) {
    for (index_t m = 0; m < k; ++m) {
      index_t j = i + k / 2 - m;
      if (circular) j = (j % n + n) % n;
      if (j < 0 || j >= n) continue;
      result[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)] +=
          h[static_cast<std::size_t>(m)];
    }
  }
  return result;
}

TEST(Convolution, DirectAndFftAreTheSameMatrix) {
  for (const index_t k : {1, 2, 3, 6, 7, 11}) {
    const Tensor h = random({k});
    for (const bool circular : {false, true}) {
      const Matrix expected = expected_matrix(values(h), 7, circular);
      for (const ConvolutionMethod method : {ConvolutionMethod::direct, ConvolutionMethod::fft}) {
        const NamedLinop A =
            Convolution(h, {.batch = Dims(),
                            .boundary = circular ? Boundary::circular : Boundary::zeros,
                            .method = method});
        expect_close(dense(A, {.sizes = {{"Nx", 7}}}), expected, 1e-13);
        expect_close(dense(A.H(), {.sizes = {{"Nx", 7}}}), testing::adjoint(expected), 1e-13);
      }
    }
  }
}

// Most of the kernel lies outside the grid.
TEST(Convolution, KernelsLargerThanTheGridAreTheSameMatrixToo) {
  const std::vector<std::pair<Extents, Extents>> cases{{{9, 9}, {2, 50}}, {{31, 31}, {8, 64}},
                                                       {{7}, {3}},        {{3}, {1}},
                                                       {{8}, {2}},        {{1, 10}, {5, 2}}};
  for (const auto& [kernel, grid] : cases) {
    const Tensor h = random(kernel);
    std::vector<Matrix> made;
    for (const auto method :
         {ConvolutionMethod::direct, ConvolutionMethod::fft, ConvolutionMethod::automatic}) {
      const NamedLinop A = Convolution(h, {.batch = Dims(), .method = method});
      made.push_back(dense(A, {.extents = grid}));
      EXPECT_TRUE(dot_test(A, {.extents = grid}).ok);
      EXPECT_TRUE(check_normal(A, {.extents = grid}).ok);
    }
    expect_close(made[1], made[0], 1e-10);
    expect_close(made[2], made[0], 1e-10);
  }
}

TEST(Convolution, NormalsAreTheSameMatrix) {
  const Tensor h = random({3});
  const TestOptions options{.sizes = {{"Nx", 8}}};
  const auto make = [&](ConvolutionNormal normal) {
    return Convolution(h, {.batch = Dims(), .boundary = Boundary::circular, .normal = normal});
  };
  const Matrix A = dense(make(ConvolutionNormal::composed), options);
  for (const ConvolutionNormal normal : {ConvolutionNormal::automatic, ConvolutionNormal::fft,
                                         ConvolutionNormal::kernel, ConvolutionNormal::composed}) {
    expect_close(dense(make(normal).N(), options), testing::adjoint(A) * A, 1e-12);
  }
  EXPECT_EQ(make(ConvolutionNormal::kernel).N().name(), "Convolution");
  Parameter kernel(h);
  const NamedLinop B = Convolution(
      kernel,
      {.batch = Dims(), .boundary = Boundary::circular, .normal = ConvolutionNormal::kernel});
  const NamedLinop N = B.N();
  kernel.set_value(random({3}, DType::complex128, 9));
  const Matrix changed = dense(B, options);
  expect_close(dense(N, options), testing::adjoint(changed) * changed, 1e-12);
}

std::size_t transforms_in(const NamedLinop& A, const Extents& extents) {
  return testing::count_transforms(A.plan({DType::complex128, extents, {}}));
}

TEST(Convolution, KeepsTheTransformOfItsKernel) {
  Parameter h(random({5, 6}));
  for (const Boundary boundary : {Boundary::zeros, Boundary::circular}) {
    const NamedLinop A = Convolution(h, {.boundary = boundary, .method = ConvolutionMethod::fft});
    EXPECT_EQ(transforms_in(A, {12, 16}), 2U);
    EXPECT_EQ(transforms_in(A.H(), {12, 16}), 2U);
    // A trainable kernel is transformed in every call, so that gradients reach it.
    const NamedLinop learned =
        Convolution(h.as_trainable(), {.boundary = boundary, .method = ConvolutionMethod::fft});
    EXPECT_EQ(transforms_in(learned, {12, 16}), 3U);
    // The spectrum follows the kernel, for every size of the grid.
    const Tensor x = random({12, 16}), wide = random({3, 20, 9});
    A(x);
    A(wide);
    A.H()(x);
    h.set_value(random({5, 6}, DType::complex128, 31));
    const NamedLinop direct =
        Convolution(h, {.boundary = boundary, .method = ConvolutionMethod::direct});
    EXPECT_LE(difference(A(x), direct(x)), 1e-13);
    EXPECT_LE(difference(A(wide), direct(wide)), 1e-13);
    EXPECT_LE(difference(A.H()(x), direct.H()(x)), 1e-13);
    EXPECT_LE(difference(A.N()(x), direct.H()(direct(x))), 1e-13);
    EXPECT_LE(difference(learned(x), direct(x)), 1e-13);
  }
}

TEST(Convolution, OperatorsOnOneKernelShareItsTransform) {
  const Parameter h(random({9, 9}));
  const auto make = [&] { return FftConvolution(h, {.batch = Dims()}); };
  const Tensor x = random({64, 64});
  const NamedLinop A = make(), B = make();
  const index_t without = operator_bytes(A);
  A(x);
  const index_t with = operator_bytes(A);
  EXPECT_EQ(with - without, x.nbytes()) << "the transform is data of the operator";
  A.H()(x);
  B(x);
  EXPECT_EQ(operator_bytes(A), with);
  A(random({32, 64}));
  EXPECT_EQ(operator_bytes(A), with + x.nbytes() / 2) << "one per grid";
}

TEST(Convolution, IsDirectWhereThatIsLessWork) {
  const auto steps = [](const Extents& kernel, const Extents& grid, DType dtype) {
    return testing::count_transforms(Convolution(random(kernel, dtype)).plan({dtype, grid, {}}));
  };
  EXPECT_EQ(steps({3, 3}, {64, 64}, DType::complex128), 0U);
  EXPECT_EQ(steps({9, 9}, {64, 64}, DType::complex128), 2U);
  // A real product costs a fourth; a transform does not.
  EXPECT_EQ(steps({6, 6}, {256, 256}, DType::complex128), 2U);
  EXPECT_EQ(steps({6, 6}, {256, 256}, DType::float64), 0U);
}

TEST(Convolution, ItsNormalIsTheCheaperOfTwo) {
  const auto circular = [](const Tensor& h, index_t n) {
    return Convolution(h, {.batch = Dims(), .boundary = Boundary::circular})
        .with_sizes({{"Nx", n}});
  };
  const NamedLinop small = circular(random({3}), 64), large = circular(random({40}), 64);
  EXPECT_EQ(small.N().name(), "Convolution") << "with the autocorrelation";
  EXPECT_EQ(small.H().N().name(), "Convolution");
  EXPECT_EQ(large.N().name(), "Normal") << "with |DFT h|^2";
  EXPECT_EQ(transforms_in(large.N(), {64}), 2U);
  for (const NamedLinop& A : {small, large}) {
    EXPECT_TRUE(check_normal(A).ok);
    EXPECT_TRUE(check_normal(A.H()).ok);
  }
}

TEST(Convolution, RealStaysRealAndErrorsSayWhatIsWrong) {
  const Tensor h = random({3, 3}, DType::float64), x = random({4, 5}, DType::float64);
  for (const ConvolutionMethod method : {ConvolutionMethod::direct, ConvolutionMethod::fft}) {
    EXPECT_EQ(Convolution(h, {.method = method})(x).dtype(), DType::float64);
    EXPECT_EQ(Convolution(h, {.method = method})(random({4, 5})).dtype(), DType::complex128);
  }
  expect_error<ValueError>([] { Convolution(random({1, 1, 1, 1})); }, "kernel");
  expect_error<ValueError>([&] { Convolution(h, {.grid = Dims("A")}); }, "grid");
  expect_error<ValueError>([&] { Convolution(h, {.normal = ConvolutionNormal::fft}); }, "circular");
  expect_error<DTypeError>([] { Convolution(Tensor::ones({3}, DType::int32)); }, "kernel");
  expect_error<ValueError>(
      [&] {
        FftConvolution(h)(random({2, 5}, DType::float64));
      },
      "grid_sizes");
  NamedLinop A = Convolution(h);
  expect_error<ValueError>([&] { A.set_attr("method", "magic"); }, "method");
}

TEST(Convolution, OfNothingIsNothing) {
  for (const ConvolutionMethod method :
       {ConvolutionMethod::automatic, ConvolutionMethod::direct, ConvolutionMethod::fft}) {
    for (const Boundary boundary : {Boundary::circular, Boundary::zeros}) {
      const NamedLinop A = Convolution(random({3, 2}), {.boundary = boundary, .method = method});
      for (const NamedLinop& B : {A, A.H(), A.N()}) {
        for (const Extents& shape : {Extents{4, 0}, Extents{0, 4}, Extents{2, 0, 0}}) {
          const Tensor y = B(random(shape, DType::float64));
          EXPECT_EQ(y.shape(), shape);
          EXPECT_EQ(y.dtype(), DType::complex128);
        }
      }
    }
  }
}

TEST(FiniteDifference, HasThreeBoundaries) {
  const Tensor x = numbers({1, 4, 2});
  const auto with = [&](DifferenceBoundary boundary) {
    return reals(FiniteDifference("A", "A", {.boundary = boundary, .spacing = 0.5})(x));
  };
  EXPECT_EQ(with(DifferenceBoundary::periodic), (std::vector<double>{6, -4, -2}));
  EXPECT_EQ(with(DifferenceBoundary::neumann), (std::vector<double>{6, -4, 0}));
  EXPECT_EQ(with(DifferenceBoundary::zero), (std::vector<double>{6, -4, -4}));
  expect_error<ValueError>([] { FiniteDifference("A", "A", {.spacing = 0}); }, "spacing");
  expect_error<ShapeError>([] { FiniteDifference("A", "B"); }, "FiniteDifference");
  NamedLinop A = FiniteDifference("A", "A");
  expect_error<ValueError>([&] { A.set_attr("boundary", "mirror"); }, "boundary");
  expect_error<ValueError>([&] { A.set_attr("direction", "up"); }, "direction");
}

TEST(FiniteDifference, HasTwoDirections) {
  const Tensor x = numbers({1, 4, 2});
  const auto backward = [&](DifferenceBoundary boundary) {
    return reals(FiniteDifference(
        "A", "A",
        {.boundary = boundary, .spacing = 0.5, .direction = DifferenceDirection::backward})(x));
  };
  EXPECT_EQ(backward(DifferenceBoundary::periodic), (std::vector<double>{-2, 6, -4}));
  EXPECT_EQ(backward(DifferenceBoundary::neumann), (std::vector<double>{0, 6, -4}));
  EXPECT_EQ(backward(DifferenceBoundary::zero), (std::vector<double>{2, 6, -4}));
}

// A grid has one size by both of its names.
TEST(Convolution, NormalOperatorsOfBothSidesKnowTheGrid) {
  const Tensor y = Tensor::ones({4});
  for (const Boundary boundary : {Boundary::circular, Boundary::zeros}) {
    const NamedLinop C =
        Convolution(numbers({1, 2, 3}),
                    {.batch = "", .grid = Dims("A"), .out = Dims("B"), .boundary = boundary});
    const Tensor expected = C(C.H()(y));
    for (const DimMap& sizes : {DimMap{}, {{"A", 4}}, {{"B", 4}}, {{"A", 4}, {"B", 4}}}) {
      const NamedLinop S = sizes.empty() ? C : C.with_sizes(sizes);
      EXPECT_EQ(S.size("A"), sizes.empty() ? std::nullopt : std::optional<index_t>(4));
      EXPECT_EQ(S.size("B"), S.size("A"));
      EXPECT_TRUE(allclose(S.H().N()(y), expected, 1e-13, 1e-13));
      EXPECT_TRUE(allclose(Kronecker(S, Identity("M")).H().N()(y.view({4, 1})).view({4}), expected,
                           1e-13, 1e-13));
    }
    expect_error<ShapeError>(
        [&] {
          C.with_sizes({{"A", 4}}).with_sizes({{"B", 5}});
        },
        "Conflicting");
  }
}

TEST(FiniteDifference, ItsNormalIsTheSecondDifferenceInOnePass) {
  for (const DifferenceBoundary boundary :
       {DifferenceBoundary::periodic, DifferenceBoundary::neumann, DifferenceBoundary::zero}) {
    for (const index_t n : {1, 2, 3, 8}) {
      for (const auto direction : {DifferenceDirection::forward, DifferenceDirection::backward}) {
        const NamedLinop A = FiniteDifference(
            "B A", "A", {.boundary = boundary, .spacing = 0.5, .direction = direction});
        const TestOptions options{.sizes = {{"B", 2}, {"A", n}}};
        const Matrix D = dense(A, options);
        expect_close(dense(A.N(), options), testing::adjoint(D) * D, 1e-13);
        expect_close(dense(A.H().N(), options), D * testing::adjoint(D), 1e-13);
      }
    }
    const NamedLinop A = FiniteDifference("A", "A", {.boundary = boundary});
    EXPECT_EQ(A.N().plan({DType::float64, {9}, {}}).steps.size(), 1U);
    EXPECT_EQ(reals(A.N()(numbers({0, 0, 1, 0, 0}))), (std::vector<double>{0, -1, 2, -1, 0}));
  }
}

TEST(Gradient, StacksDifferences) {
  const NamedLinop G = Gradient("Ny Nx", "Ny Nx");
  EXPECT_EQ(G.shape().str(), "(Ny, Nx) -> (D, Ny, Nx)");
  const Tensor x = random({3, 4});
  const Tensor y = G(x);
  EXPECT_TRUE(equal(y.select(0, 0), FiniteDifference("Ny Nx", "Ny")(x)));
  EXPECT_TRUE(equal(y.select(0, 1), FiniteDifference("Ny Nx", "Nx")(x)));
  // Minus the Laplacian.
  const Tensor n = G.N()(x);
  const Complex laplacian =
      values(x)[1] + values(x)[3] + values(x)[4] + values(x)[8] - 4.0 * values(x)[0];
  EXPECT_LE(std::abs(values(n)[0] + laplacian), 1e-13);
  expect_error<ValueError>([] { Gradient("A", Dims()); }, "over");
  expect_error<ValueError>([] { Gradient("A B", "A A"); }, "twice");
}

TEST(Wavelet, FiltersAreOrthonormalWithVanishingMoments) {
  EXPECT_NEAR(wavelet_filter("haar")[0], std::sqrt(0.5), 1e-16);
  const std::vector<double> db2 = wavelet_filter("db2");
  const double root = std::sqrt(3.0), scale = 4 * std::sqrt(2.0);
  const double expected[] = {(1 + root) / scale, (3 + root) / scale, (3 - root) / scale,
                             (1 - root) / scale};
  for (std::size_t m = 0; m < 4; ++m) EXPECT_NEAR(db2[m], expected[m], 1e-15);
  for (int p = 1; p <= 10; ++p) {
    const std::vector<double> h = wavelet_filter("db" + std::to_string(p));
    ASSERT_EQ(h.size(), static_cast<std::size_t>(2 * p));
    for (std::size_t shift = 0; shift < h.size(); shift += 2) {
      double sum = 0;
      for (std::size_t m = shift; m < h.size(); ++m) sum += h[m] * h[m - shift];
      EXPECT_NEAR(sum, shift == 0 ? 1 : 0, 3e-15) << p << " " << shift;
    }
    double moment = 0;
    for (std::size_t m = 0; m < h.size(); ++m) {
      moment +=
          (m % 2 == 0 ? 1 : -1) * h[h.size() - 1 - m] * std::pow(m, p - 1) / std::pow(2 * p, p - 1);
    }
    EXPECT_NEAR(moment, 0, 1e-14) << p;
  }
}

TEST(Wavelet, StoresAveragesBeforeDifferences) {
  const double s = std::sqrt(0.5);
  const NamedLinop W = Wavelet("A", "A", {.family = "haar", .levels = 1});
  const auto y = reals(W(numbers({1, 3, 2, 6})));
  const double expected[] = {4 * s, 8 * s, -2 * s, -4 * s};
  for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(y[i], expected[i], 1e-15);
  const auto deep =
      reals(Wavelet("A", "A", {.family = "haar", .levels = 2})(numbers({1, 3, 2, 6})));
  EXPECT_NEAR(deep[0], 6, 1e-14);
  EXPECT_NEAR(deep[1], -2, 1e-14);
  EXPECT_EQ(W.N().name(), "Identity");
  const Tensor x = random({2, 16, 8});
  const NamedLinop V = Wavelet("C Y X", "Y X", {.family = "db10", .levels = 3});
  EXPECT_LE(difference(V.inverse()(V(x)), x), 1e-14);
  expect_error<ValueError>([] { Wavelet("A", "A", {.family = "db11"}); }, "family");
  expect_error<ValueError>([] { Wavelet("A", "A", {.family = "coif1"}); }, "family");
  expect_error<ValueError>([] { Wavelet("A", "A", {.levels = -2}); }, "levels");
}

// In a line of odd length the last entry goes to the end of the averages.
TEST(Wavelet, IsOrthogonalForEverySize) {
  const auto y = reals(Wavelet("A", "A", {.family = "haar", .levels = 1})(numbers({1, 2, 3})));
  const double expected[] = {2.121320, 3, -0.707107};
  for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR(y[i], expected[i], 1e-6);
  for (const char* family : {"haar", "db2", "db4"}) {
    for (index_t n = 1; n <= 21; ++n) {
      for (const int levels : {1, 3, kAutomaticLevels}) {
        const NamedLinop W = Wavelet("A B", "A B", {.family = family, .levels = levels});
        const Tensor x = random({n, 22 - n});
        EXPECT_LE(difference(W.H()(W(x)), x), 1e-13) << family << n << levels;
        EXPECT_LE(difference(W(W.H()(x)), x), 1e-13) << family << n << levels;
      }
    }
  }
}

TEST(Wavelet, AutomaticLevelsKeepSixteen) {
  EXPECT_EQ(wavelet_levels({31}), 1);
  EXPECT_EQ(wavelet_levels({30}), 0);
  EXPECT_EQ(wavelet_levels({230, 180}), 3);
  EXPECT_EQ(wavelet_levels({256, 256}), 4);
  EXPECT_EQ(wavelet_levels({256, 8}), 0);
  const NamedLinop automatic = Wavelet("A", "A", {.family = "haar", .levels = kAutomaticLevels});
  const NamedLinop two = Wavelet("A", "A", {.family = "haar", .levels = 2});
  const Tensor x = random({64});
  EXPECT_TRUE(equal(automatic(x), two(x)));
}

}  // namespace
}  // namespace palimpsest
