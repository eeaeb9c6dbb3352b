// SPDX-License-Identifier: Apache-2.0
// The normal operator of a Nufft as a convolution, against matrices.
#include "linop/linop_support.hpp"
#include "linop/nufft_support.hpp"
#include "palimpsest/linop/containers/kronecker.hpp"
#include "palimpsest/linop/copies/saving.hpp"
#include "palimpsest/linop/transforms/nufft.hpp"

namespace palimpsest {
namespace {

using testing::adjoint;
using testing::Complex;
using testing::dense;
using testing::exact_nufft;
using testing::expect_close;
using testing::expect_error;
using testing::Matrix;
using testing::random;
using testing::trajectory;
using testing::values;

Matrix weighted(const Matrix& m, const std::vector<Complex>& w) {
  return testing::matrix(m.size(), m[0].size(),
                         [&](std::size_t i, std::size_t j) { return w[i] * m[i][j]; });
}

// Relative to the largest entry.
void expect_within(const Matrix& got, const Matrix& expected, double eps) {
  double largest = 0;
  for (const auto& row : expected) {
    for (const Complex& z : row) largest = std::max(largest, std::abs(z));
  }
  expect_close(got, expected, eps * largest);
}

const Extents kImages[] = {{9}, {8}, {6, 7}, {4, 5, 3}, {1}};

TEST(Toeplitz, IsTheNormalOperatorOfTheExactTransform) {
  for (const Extents& image : kImages) {
    for (const int sign : {-1, 1}) {
      const Tensor k = trajectory(image, 25);
      // The result is accurate even if the Nufft is not.
      const NamedLinop A =
          Nufft(k, image, "K", {.sign = sign, .width = PerAxis(3.0), .toeplitz = Toeplitz::yes});
      const Matrix E = exact_nufft(k, image, sign);
      expect_within(dense(A.N()), adjoint(E) * E, 1e-12);
      EXPECT_EQ(A.N().name(), "Chain");
      EXPECT_TRUE(A.N().H().is(A.N()));
      EXPECT_TRUE(dot_test(A.N()).ok);
    }
  }
}

TEST(Toeplitz, EqualsTheComposedNormalWithinItsAccuracy) {
  const Extents image{12, 10};
  for (const DType dtype : {DType::float32, DType::float64}) {
    const double eps = dtype == DType::float32 ? 1e-6 : 1e-12;
    const Tensor k = trajectory(image, 60, dtype), x = random(image, complex_of(dtype));
    const NufftLinopOptions options{.eps = eps, .toeplitz = Toeplitz::yes};
    const NamedLinop A = Nufft(k, image, "K", options);
    const auto folded = values(A.N()(x)), composed = values(A.H()(A(x)));
    double difference = 0, norm = 0;
    for (std::size_t i = 0; i < folded.size(); ++i) {
      difference += std::norm(folded[i] - composed[i]);
      norm += std::norm(composed[i]);
    }
    EXPECT_LE(std::sqrt(difference / norm), 4 * eps);
    EXPECT_EQ(A.N()(x).dtype(), complex_of(dtype));
  }
  // Less accurate on request.
  const Tensor k = trajectory(image, 60);
  const Matrix E = exact_nufft(k, image);
  const NamedLinop coarse = Nufft(k, image, "K", {.toeplitz = Toeplitz::yes, .toeplitz_eps = 1e-3});
  expect_within(dense(coarse.N()), adjoint(E) * E, 1e-3);
}

// Names inside are never names that a user chose, nor those of another such operator.
TEST(Toeplitz, ItsInnerNamesAreItsOwn) {
  const Tensor k = trajectory({8}, 3);
  const NufftLinopOptions yes{.input = Dims("Nx"), .eps = 1e-9, .toeplitz = Toeplitz::yes};
  for (const char* const name : {"Nx1", "Kx", "Nx16", "K1", "C"}) {
    for (const char* const batch : {"...", "B"}) {
      NufftLinopOptions options = yes;
      options.batch = batch;
      const NamedLinop F = Nufft(k, {8}, "K", options);
      const NamedLinop basis =
          Dense(random({8, 4}), Dims{"Nx", name}, Dims{"B", name}, Dims{"B", "Nx"});
      const NamedLinop A = F * basis;
      const Tensor x = random({2, 4});
      EXPECT_TRUE(allclose(A.N()(x), A.H()(A(x)), 1e-7, 1e-7)) << name;
      EXPECT_EQ(A.N().size(name), 4);
      EXPECT_TRUE(allclose((F.N() * basis)(x), F.N()(basis(x)), 1e-12, 1e-12));
      // A batch dimension of the name, which the ellipsis stands for.
      if (F.ishape().has_ellipsis()) {
        const NamedLinop maps = Dense(random({3, 8}), Dims{name, "Nx"}, "Nx", Dims{name, "Nx"});
        const NamedLinop S = F * maps;
        const Tensor image = random({8});
        EXPECT_TRUE(allclose(S.N()(image), S.H()(S(image)), 1e-7, 1e-7)) << name;
        EXPECT_EQ(F.N().renamed({{"Nx", name}}).ishape(), (Dims{"...", name}));
      }
    }
  }
  // Two grids in one chain, and side by side.
  const NamedLinop a = Nufft(k, {8}, "K", yes).N();
  const NamedLinop b = Nufft(k, {4}, "K", {.input = Dims("Ny"), .toeplitz = Toeplitz::yes}).N();
  const NamedLinop crop = Crop({8}, {4}, {.in = Dims("Nx"), .out = Dims("Ny")});
  const Tensor x = random({8});
  EXPECT_TRUE(allclose((b * crop * a)(x), b(crop(a(x))), 1e-12, 1e-12));
  EXPECT_TRUE(dot_test(Kronecker(a, b)).ok);
  // A user cannot choose them.
  const std::string inner = a[0].oshape().back().str();
  EXPECT_EQ(inner, "Nx~16p");
  EXPECT_EQ(from_bytes(to_bytes(a))(x).shape(), x.shape());
  expect_error<ValueError>([] { Dims("Nx~17p"); }, "derived");
  expect_error<ValueError>([] { ND("Qq1~3w"); }, "derived");
}

TEST(Toeplitz, UnitsScalesAndPreparedLocations) {
  const Extents image{8, 6};
  const Tensor k = trajectory(image, 25);
  const Matrix E = exact_nufft(k, image), N = adjoint(E) * E;
  Tensor normalized = k.clone(), prepared = k.clone();
  for (index_t i = 0; i < 25; ++i) {
    for (index_t d = 0; d < 2; ++d) {
      const double n = d == 0 ? 8 : 6, padded = d == 0 ? 10 : 8, c = k.at<double>({i, d});
      normalized.set<double>({i, d}, c / n);
      prepared.set<double>({i, d}, c * padded / n + padded / 2);
    }
  }
  expect_within(dense(Nufft(normalized, image, "K",
                            {.units = LocsUnit::normalized, .toeplitz = Toeplitz::yes})
                          .N()),
                N, 1e-12);
  expect_within(
      dense(Nufft(prepared, image, "K", {.prepared = true, .toeplitz = Toeplitz::yes}).N()), N,
      1e-12);
  const NamedLinop unscaled =
      Nufft(k, image, "K", {.scale = NufftScale::none, .toeplitz = Toeplitz::yes});
  expect_within(
      dense(unscaled.N()),
      testing::matrix(48, 48, [&](std::size_t i, std::size_t j) { return 48.0 * N[i][j]; }), 1e-12);
}

TEST(Toeplitz, WeightsOverThePointsAreInItsKernel) {
  const Extents image{6, 7};
  const Tensor k = trajectory(image, 25);
  const Matrix E = exact_nufft(k, image);
  const NamedLinop A = Nufft(k, image, "K", {.toeplitz = Toeplitz::yes});
  for (const DType dtype : {DType::float64, DType::complex128}) {
    const Tensor w = random({25}, dtype);
    const NamedLinop N = A.normal(Diagonal(w, "... K"));
    EXPECT_EQ(N.linop_count(), 5U) << N;
    EXPECT_EQ(N[2].param("weight").dtype(), dtype);
    expect_within(dense(N), adjoint(E) * weighted(E, values(w)), 1e-12);
    EXPECT_TRUE(equal(toeplitz_kernel(A, Diagonal(w, "... K")), N[2].param("weight").value()));
  }
  EXPECT_EQ(toeplitz_kernel(A).dtype(), DType::float64);
  EXPECT_EQ(toeplitz_kernel(A).shape(), (Extents{12, 14}));
  // Numbers and identities.
  expect_within(dense(A.normal(Scalar(Complex(2, 1), "... K"))),
                testing::matrix(42, 42,
                                [&, N = adjoint(E) * E](std::size_t i, std::size_t j) {
                                  return Complex(2, 1) * N[i][j];
                                }),
                1e-12);
  EXPECT_TRUE(A.normal(Identity("... K")).is(A.N()));
}

TEST(Toeplitz, WeightsWithBatchDimensionsGiveAKernelEach) {
  const Extents image{5, 4};
  const Tensor k = trajectory(image, 24).view({4, 6, 2});
  const NamedLinop A = Nufft(k, image, "S R", {.batch = "C", .toeplitz = Toeplitz::yes});
  const NamedLinop composed = Nufft(k, image, "S R", {.batch = "C", .eps = 1e-13});
  const TestOptions options{.sizes = {{"C", 2}}};
  for (const NamedLinop& D :
       {Diagonal(random({2, 4, 6}, DType::float64), "C S R"), Diagonal(random({6}), "C S R"),
        Diagonal(random({2, 4}), "C S R", {.weight_shape = Dims("C S")}),
        Diagonal(random({2}), "C S R", {.weight_shape = Dims("C")})}) {
    const NamedLinop N = A.normal(D);
    EXPECT_EQ(N.linop_count(), 5U) << N;
    expect_within(dense(N, options), dense(composed.normal(D), options), 1e-11);
  }
}

// Coils mixed sample by sample, with weights that differ from point to point.
TEST(Toeplitz, ADenseOverBatchDimensionsIsADenseOverTheSpectrum) {
  const Extents image{5, 4};
  const Tensor k = trajectory(image, 24).view({4, 6, 2});
  const NamedLinop A = Nufft(k, image, "S R", {.batch = "C", .toeplitz = Toeplitz::yes});
  const NamedLinop composed = Nufft(k, image, "S R", {.batch = "C", .eps = 1e-13});
  const TestOptions options{.sizes = {{"C", 2}}};
  const auto inner = [](Extents shape, const char* einsum, DType dtype, DenseOptions o = {}) {
    return Dense(random(std::move(shape), dtype), einsum, std::move(o));
  };
  for (const DType dtype : {DType::complex128, DType::float64}) {
    for (const NamedLinop& W :
         {inner({3, 2, 4, 6}, "PCSR,CSR->PSR", dtype),
          inner({2, 2, 4, 6}, "PCSR,CSR->PSR", dtype, {.output = Dims("C S R")}),
          inner({4, 2, 3}, "SCP,CSR->PSR", dtype), inner({3, 2}, "PC,CSR->PSR", dtype),
          inner({3, 2, 1, 6}, "PCSR,CSR->PSR", dtype, {.broadcast = "S"}),
          inner({2, 3, 4}, "CPS,PSR->CSR", dtype).H()}) {
      const NamedLinop N = A.normal(W);
      EXPECT_EQ(N.linop_count(), 5U) << N;
      EXPECT_EQ(N[2].name(), "Dense") << N;
      EXPECT_EQ(N[2].param("weight").dtype(), dtype) << "a real weight has a real kernel";
      EXPECT_EQ(N.shape().str(), composed.normal(W).shape().str());
      expect_within(dense(N, options), dense(composed.normal(W), options), 1e-11);
      EXPECT_TRUE(equal(toeplitz_kernel(A, W), N[2].param("weight").value()));
    }
  }
  // In mode sampling, and as part of a chain.
  const NamedLinop W = inner({3, 2, 4, 6}, "PCSR,CSR->PSR", DType::complex128);
  const NamedLinop nearest = Nufft(
      k, image, "S R", {.batch = "C", .mode = NufftMode::sampling, .toeplitz = Toeplitz::yes});
  const NamedLinop plain = Nufft(k, image, "S R", {.batch = "C", .mode = NufftMode::sampling});
  expect_within(dense(nearest.normal(W), options), dense(plain.normal(W), options), 1e-12);
  const NamedLinop whitened = Chain(A, W);
  EXPECT_EQ(whitened.N()[2].name(), "Dense");
  expect_within(dense(whitened.N(), options), dense(Chain(composed, W).N(), options), 1e-11);
}

TEST(Toeplitz, ADenseThatMixesPointsIsNone) {
  const Extents image{6};
  const NamedLinop A =
      Nufft(trajectory(image, 9), image, "K", {.batch = "C", .toeplitz = Toeplitz::yes});
  const NamedLinop mixing = Dense(random({9, 9}), "LK,CK->CL"),
                   swapped = Dense(random({9, 2}), "KC,CK->KC", {.output = Dims("C1 K1")});
  expect_error<ValueError>([&] { A.normal(mixing); }, "Toeplitz: got the inner operator Dense");
  expect_error<ValueError>([&] { toeplitz_kernel(A, swapped); }, "Toeplitz");
}

TEST(Toeplitz, FollowsWritesToLocationsAndWeights) {
  const Extents image{8};
  const NamedLinop A = Nufft(trajectory(image, 25), image, "K", {.toeplitz = Toeplitz::yes});
  Parameter w(random({25}, DType::float64));
  const NamedLinop N = A.normal(Diagonal(w, "... K"));
  dense(N);
  Tensor moved = trajectory(image, 25).flip(Axes{0}).clone();
  for (index_t i = 0; i < 25; ++i) moved.set<double>({i, 0}, moved.at<double>({i, 0}) * 0.9);
  Parameter locs = A.param("locs");
  locs.set_value(moved);
  w.set_value(random({25}, DType::float64, 8));
  const Matrix E = exact_nufft(moved, image);
  expect_within(dense(N), adjoint(E) * weighted(E, values(w.value())), 1e-12);
}

TEST(Toeplitz, InModeSamplingIsTheDiagonalOfMultiplicities) {
  const Extents image{6, 5};
  const Tensor k = trajectory(image, 40);
  const NamedLinop A =
      Nufft(k, image, "K", {.mode = NufftMode::sampling, .toeplitz = Toeplitz::yes});
  const NamedLinop composed = Nufft(k, image, "K", {.mode = NufftMode::sampling});
  EXPECT_EQ(A.N().linop_count(), 5U);
  expect_within(dense(A.N()), dense(composed.N()), 1e-13);
  const NamedLinop D = Diagonal(random({40}), "... K");
  expect_within(dense(A.normal(D)), dense(composed.normal(D)), 1e-13);
}

TEST(Toeplitz, OtherInnerOperatorsAreRefusedOrComposed) {
  const Extents image{6, 7};
  const Tensor k = trajectory(image, 25);
  const NamedLinop mix = Dense(random({3, 25}), "MK,K->M");
  const NamedLinop yes = Nufft(k, image, "K", {.batch = Dims(), .toeplitz = Toeplitz::yes});
  expect_error<ValueError>([&] { yes.normal(mix); }, "Toeplitz: got the inner operator Dense");
  const NamedLinop any = Nufft(k, image, "K", {.batch = Dims(), .toeplitz = Toeplitz::automatic});
  const NamedLinop square = Dense(random({25, 25}), "MK,K->M", {.output = Dims("K")});
  EXPECT_EQ(any.normal(square).name(), "Chain");
  expect_close(dense(any.normal(square)), dense(Chain(any, square, any.H())), 1e-12);
  // A A^H never is.
  EXPECT_EQ(yes.H().N().name(), "Normal");
  expect_error<ValueError>([&] { toeplitz_kernel(yes, mix); }, "Toeplitz");
  expect_error<ValueError>([&] { toeplitz_kernel(Fft(1)); }, "Toeplitz");
}

TEST(Toeplitz, AutomaticWhereItIsLessWork) {
  const auto normal_of = [&](index_t n) {
    const Extents image{16, 16};
    return Nufft(trajectory(image, n), image, "K", {.toeplitz = Toeplitz::automatic}).N().name();
  };
  EXPECT_EQ(normal_of(20), "Normal");
  EXPECT_EQ(normal_of(5000), "Chain");
}

TEST(Toeplitz, FoldsThroughChains) {
  const Extents image{6, 7};
  const Tensor k = trajectory(image, 25);
  const NamedLinop maps = Dense(random({3, 6, 7}), "CNxNy,NxNy->CNxNy");
  const NamedLinop A = Nufft(k, image, "K", {.batch = "C", .toeplitz = Toeplitz::yes}) * maps;
  const NamedLinop composed = Nufft(k, image, "K", {.batch = "C", .eps = 1e-13}) * maps;
  EXPECT_EQ(A.N().linop_count(), 7U) << A.N();
  expect_within(dense(A.N()), dense(composed.N()), 1e-11);
}

}  // namespace
}  // namespace palimpsest
