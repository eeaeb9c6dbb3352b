// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/linop/transforms/nufft.hpp"

#include <cmath>
#include <numbers>

#include "linop/linop_support.hpp"
#include "linop/nufft_support.hpp"
#include "palimpsest/compile/function.hpp"
#include "palimpsest/linop/transforms/interpolate.hpp"
#include "palimpsest/ops/gradient.hpp"
#include "palimpsest/ops/linear.hpp"

namespace palimpsest {
namespace {

using testing::dense;
using testing::exact_nufft;
using testing::expect_close;
using testing::expect_error;
using testing::Matrix;
using testing::random;
using testing::trajectory;
using testing::values;

TEST(Nufft, IsTheSumOfItsDefinition) {
  for (const Extents& image : {Extents{9}, Extents{6, 7}, Extents{4, 5, 6}}) {
    const Tensor k = trajectory(image, 20);
    const NamedLinop A = Nufft(k, image, "K", {.eps = 1e-12});
    expect_close(dense(A), exact_nufft(k, image), 1e-11);
    EXPECT_EQ(A.shape().str(), image.size() == 1   ? "(..., Nx) -> (..., K)"
                               : image.size() == 2 ? "(..., Nx, Ny) -> (..., K)"
                                                   : "(..., Nx, Ny, Nz) -> (..., K)");
    EXPECT_EQ(A.size("K"), 20);
    EXPECT_EQ(A.size("Nx"), image[0]);
    EXPECT_TRUE(dot_test(A).ok);
    EXPECT_EQ(A.N().name(), "Normal");
  }
}

TEST(Nufft, NamesAxesAndBatches) {
  const Tensor k = trajectory({6, 7}, 20).view({4, 5, 2});
  const NamedLinop A = Nufft(k, {6, 7}, "Spoke Read", {.input = Dims("Y X"), .batch = "C"});
  EXPECT_EQ(A.shape().str(), "(C, Y, X) -> (C, Spoke, Read)");
  EXPECT_EQ(A.size("Read"), 5);
  const Tensor x = random({2, 6, 7});
  const Tensor y = A(x);
  EXPECT_EQ(y.shape(), (Extents{2, 4, 5}));
  const NamedLinop B = Nufft(k, {6, 7}, "Spoke Read");
  EXPECT_TRUE(equal(B(x.select(0, 1)), y.select(0, 1)));
  const NamedLinop renamed = A.renamed({{"X", "Q"}, {"Read", "R"}});
  EXPECT_TRUE(equal(renamed(x), y));
  EXPECT_TRUE(renamed.param("order").is(A.param("order")));
}

TEST(Nufft, SortsAnewWhenLocationsAreWritten) {
  const Tensor k = trajectory({40, 90}, 300);
  const NamedLinop A = Nufft(k, {40, 90}, "K", {.eps = 1e-10});
  const Tensor x = random({40, 90});
  A(x);
  Tensor moved = k.flip(Axes{0}).clone();
  const NamedLinop B = Nufft(moved, {40, 90}, "K", {.eps = 1e-10});
  Parameter locs = A.param("locs");
  locs.set_value(moved);
  EXPECT_TRUE(equal(A(x), B(x)));
  EXPECT_TRUE(equal(A.H()(random({300})), B.H()(random({300}))));
  NamedLinop C = B;
  C.set_param("locs", Parameter(k));
  EXPECT_FALSE(C.param("order").is(B.param("order")));
  EXPECT_TRUE(equal(C(x), Nufft(k, {40, 90}, "K", {.eps = 1e-10})(x)));
  Tensor wrong = k.clone();
  wrong.set<double>({3, 1}, INFINITY);
  locs.set_value(wrong);
  expect_error<ValueError>([&] { A(x); }, "[Nufft] [");
}

TEST(Nufft, AnApodizationOfOnesOwn) {
  const Extents image{8};
  const Tensor k = trajectory(image, 12);
  const NufftLinopOptions plain{.oversamp = 2, .width = PerAxis(6.0)};
  // The factors of the kernel: q / sinh(q).
  const double padded = 16, beta = kaiser_bessel_beta(6, 2);
  std::vector<double> factors;
  for (int n = 0; n < 8; ++n) {
    const double phase = std::numbers::pi * 6 * (n - 4) / padded;
    const double q = std::sqrt(beta * beta - phase * phase);
    factors.push_back(q / std::sinh(q));
  }
  NufftLinopOptions given = plain;
  given.apodization = Parameter(Tensor::from(factors));
  const NamedLinop A = Nufft(k, image, "K", given);
  expect_close(dense(A), dense(Nufft(k, image, "K", plain)), 1e-13);
  EXPECT_TRUE(dot_test(A).ok);
  expect_error<ShapeError>(
      [&] { Nufft(k, image, "K", {.apodization = Parameter(Tensor::ones({7}))}); }, "apodization");
  Tensor wrong = Tensor::from(factors);
  wrong.set<double>({2}, NAN);
  expect_error<ValueError>([&] { Nufft(k, image, "K", {.apodization = Parameter(wrong)}); },
                           "Nan/Inf");
  expect_error<DTypeError>(
      [&] { Nufft(k, image, "K", {.apodization = Parameter(Tensor::ones({8}, DType::int32))}); },
      "apodization");
}

void expect_padded_spectrum(const Tensor& k) {
  const NamedLinop A = SamplingNufft(k, {6, 5}, "K", {.oversamp = 2.0});
  std::vector<index_t> rows, columns;
  for (index_t i = 0; i < k.shape()[0]; ++i) {
    rows.push_back(static_cast<index_t>(std::nearbyint(k.at<double>({i, 0}) * 2)) + 6);
    columns.push_back(static_cast<index_t>(std::nearbyint(k.at<double>({i, 1}) * 2)) + 5);
    rows.back() = (rows.back() % 12 + 12) % 12;
    columns.back() = (columns.back() % 10 + 10) % 10;
  }
  const NamedLinop expected =
      Chain(Pad({6, 5}, {12, 10}), Fft(2, {.grid = Grid{"Nx1 Ny1", "Kx Ky"}, .centered = true}),
            Sampling({Tensor::from(rows), Tensor::from(columns)}, {12, 10}));
  expect_close(dense(A), dense(expected), 1e-13);
  EXPECT_TRUE(dot_test(A).ok);
  EXPECT_TRUE(A.param("index0").is_derived());
}

TEST(SamplingNufft, ReadsThePaddedSpectrum) {
  const Tensor k = Tensor::from<double>({0, 0, 1, -2, 2.96, 1, -3, -2, 1, -2}, Extents{5, 2});
  expect_padded_spectrum(k);
  EXPECT_TRUE(SamplingNufft(k, {6, 5}, "K").has_param("phase"));
}

// With more points, the grid is centred instead.
TEST(SamplingNufft, OfMorePointsThanTheGridHas) {
  const Tensor k = trajectory({6, 5}, 300);
  expect_padded_spectrum(k);
  EXPECT_FALSE(SamplingNufft(k, {6, 5}, "K").has_param("phase"));
}

TEST(SamplingNufft, OfOddSizesAlongThreeAxes) {
  const Extents image{3, 4, 5};
  const NamedLinop A = SamplingNufft(trajectory(image, 40), image, "K");
  EXPECT_TRUE(dot_test(A).ok);
  const Tensor x = testing::random(image);
  const Tensor half = A.split({{"K", slice(5, 25)}})(x);
  EXPECT_LE(testing::difference(half, A(x).narrow(0, 5, 20)), 1e-14);
}

TEST(Nufft, ErrorsSayWhatIsWrong) {
  const Tensor k = trajectory({6, 7}, 20);
  const auto refused = [&](NufftLinopOptions options, const std::string& text) {
    expect_error<ValueError>([&] { Nufft(k, {6, 7}, "K", options); }, text);
  };
  refused({.eps = 1e-3, .width = PerAxis(4.0)}, "[Nufft] eps");
  refused({.width = PerAxis(1.0)}, "[Nufft] width: got 1 at");
  refused({.width = PerAxis(-4.0)}, "[Nufft] width: got -4");
  refused({.eps = 1e-20}, "got 1e-20");
  refused({.input = Dims("X")}, "[Nufft] names of the grid");
  refused({.toeplitz_eps = 1e-20}, "toeplitz_eps");
  expect_error<ValueError>([&] { Nufft(k, {6}, "K"); }, "[Nufft] locs");
  expect_error<ValueError>([&] { Nufft(k, {6, 7}, "A B"); }, "names of the points");
  expect_error<DTypeError>(
      [&] {
        Nufft(Tensor::zeros({3, 2}, DType::int32), {6, 7}, "K");
      },
      "locs");
  Tensor wrong = k.clone();
  wrong.set<double>({7, 0}, NAN);
  expect_error<ValueError>([&] { Nufft(wrong, {6, 7}, "K"); }, "point 7 is not finite");
  NamedLinop A = Nufft(k, {6, 7}, "K");
  expect_error<ValueError>([&] { A.set_attr("mode", "nearest"); }, "mode");
  expect_error<ValueError>([&] { A.set_attr("units", "turns"); }, "units");
  expect_error<ValueError>([&] { A.set_attr("scale", "half"); }, "scale");
  expect_error<DTypeError>([&] { A(random({6, 7}, DType::complex64)); }, "precision");
  expect_error<ShapeError>([&] { A(random({6, 8})); }, "[Nufft]");
  expect_error<NotSupported>(
      [&] {
        const Variable x = make_input({DType::complex128, {6, 7}, {}});
        const Variable y = A(x), w = make_input(y.type());
        const Variable locs = A.param("locs").var();
        const Variable gradient = pullback({&y, 1}, {&locs, 1}, {&w, 1})[0];
        function({x, w}, {Out(gradient)}, {.on_unused_input = Reaction::ignore})(random({6, 7}),
                                                                                 random({20}));
      },
      "locs");
}

TEST(Interpolate, ReadsAGridBetweenItsElements) {
  const Tensor k = Tensor::from<double>({1.25, 3, 4.5}, Extents{3, 1});
  const NamedLinop A = Interpolate(k, {5}, {.width = 2.0, .kernel = Spline{.order = 1}});
  EXPECT_EQ(A.shape().str(), "(..., ()) -> (..., K)");
  EXPECT_EQ(A(Tensor::from<double>({0, 10, 20, 30, 40})).to_vector<double>(),
            (std::vector<double>{12.5, 30, 20}));
  EXPECT_EQ(A.H()(Tensor::from<double>({4, 1, 2})).to_vector<double>(),
            (std::vector<double>{1, 3, 1, 1, 1}));
  const NamedLinop zero = Interpolate(
      k, {5},
      {.width = PerAxis{4.0}, .kernel = Spline{.order = 0}, .norm = 2, .pad_mode = PadMode::zero});
  EXPECT_EQ(zero(Tensor::from<double>({1, 2, 4, 8, 16})).to_vector<double>(),
            (std::vector<double>{15, 30, 24}));
}

TEST(Interpolate, NamesAndErrors) {
  const Tensor k = trajectory({6, 7}, 20).view({4, 5, 2});
  const NamedLinop A =
      Interpolate(k, {6, 7}, {.batch = "C", .locs_batch = Dims("S R"), .grid = Dims("Y X")});
  EXPECT_EQ(A.shape().str(), "(C, Y, X) -> (C, S, R)");
  EXPECT_EQ(A.size("Y"), 6);
  EXPECT_EQ(A.size("S"), 4);
  const auto refused = [&](InterpolateLinopOptions options, const std::string& text) {
    expect_error<ValueError>([&] { Interpolate(k, {6, 7}, options); }, text);
  };
  refused({.width = 0.0}, "[Interpolate] width");
  refused({.kernel = Spline{.order = 5}}, "kernel");
  refused({.norm = 3}, "norm");
  refused({.locs_batch = Dims("S")}, "[Interpolate] names of the points");
  refused({.grid = Dims("S")}, "[Interpolate] names of the grid");
  expect_error<ValueError>([&] { Interpolate(k, {6}); }, "[Interpolate] locs");
  NamedLinop B = A;
  expect_error<ValueError>([&] { B.set_attr("kernel", "box"); }, "kernel");
  expect_error<ValueError>([&] { B.set_attr("pad_mode", "mirror"); }, "pad_mode");
}

}  // namespace
}  // namespace palimpsest
