// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/ops/transforms/fft.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <numbers>

#include "ops/op_runner.hpp"
#include "palimpsest/ops/shape/shape_ops.hpp"
#include "palimpsest/ops/transforms/fft_op.hpp"
#include "samples/op_samples.hpp"
#include "support/expect_error.hpp"

namespace palimpsest {
namespace {

using ops::Fft;
using ops::FftScale;
using testing::evaluate;
using testing::expect_error;
using C = std::complex<double>;

Variable input(Extents shape, DType dtype = DType::complex128) {
  return make_input({dtype, std::move(shape), {}});
}

// The definition, over one axis.
std::vector<C> dft(const std::vector<C>& x, double sign, double scale, bool centered) {
  const auto n = static_cast<int>(x.size());
  const int c = centered ? n / 2 : 0;
  std::vector<C> y(x.size());
  for (int k = 0; k < n; ++k) {
    for (int j = 0; j < n; ++j) {
      const double phase = sign * 2 * std::numbers::pi * (k - c) * (j - c) / n;
      y[static_cast<std::size_t>(k)] +=
          scale * x[static_cast<std::size_t>(j)] * std::polar(1.0, phase);
    }
  }
  return y;
}

TEST(Fft, IsItsDefinitionForEveryNormAndCentering) {
  for (int n : {1, 4, 5, 6}) {
    const Tensor x = ops::sample_values({n}, DType::complex128);
    const std::vector<C> values = x.to_vector<C>();
    for (bool centered : {false, true}) {
      for (FftNorm norm : {FftNorm::backward, FftNorm::ortho, FftNorm::forward}) {
        const double s = norm == FftNorm::backward ? 1.0
                         : norm == FftNorm::ortho  ? 1 / std::sqrt(n)
                                                   : 1.0 / n;
        const FftOptions options{norm, centered};
        const Variable v = input({n});
        const auto expect = [&](const Variable& y, double sign, double scale) {
          const Tensor expected = Tensor::from(dft(values, sign, scale, centered));
          EXPECT_LE(testing::distance(evaluate(y, {{v, x}}), expected), 1e-14);
        };
        expect(ops::fft(v, {0}, options), -1, s);
        expect(ops::ifft(v, {0}, options), 1, 1 / (n * s));
        expect(ops::fft_adjoint(v, {0}, options), 1, s);
      }
    }
  }
}

TEST(Fft, RealInputBecomesComplex) {
  EXPECT_EQ(ops::fft(input({4}, DType::float32), {0}).dtype(), DType::complex64);
  EXPECT_EQ(ops::fft(input({4}, DType::int8), {0}).dtype(), DType::complex128);
  const Variable x = input({4});
  EXPECT_EQ(ops::fft(x, {}), x);
}

TEST(Fft, InverseAndAdjointAreFoundByTheirParameters) {
  const Variable x = input({4, 6});
  const auto op = [](const Variable& v) { return dynamic_cast<const Fft*>(&v.owner().op()); };
  for (FftNorm norm : {FftNorm::backward, FftNorm::ortho, FftNorm::forward}) {
    const FftOptions options{norm, true};
    const Variable f = ops::fft(x, {-1, 0}, options);
    ASSERT_NE(op(f), nullptr);
    EXPECT_EQ(op(f)->axes(), (Axes{0, 1}));
    EXPECT_EQ(op(f)->inverse(), op(ops::ifft(x, {0, 1}, options))->values());
    EXPECT_EQ(op(f)->adjoint(), op(ops::fft_adjoint(x, {0, 1}, options))->values());
    EXPECT_EQ(op(ops::ifft(x, {0, 1}, options))->inverse(), op(f)->values());
    const bool unitary = norm == FftNorm::ortho;
    EXPECT_EQ(op(f)->inverse() == op(f)->adjoint(), unitary);
  }
}

TEST(Fft, ParametersAreTold) {
  const Variable x = input({4, 6});
  EXPECT_EQ(ops::fft(x, {1}).owner().op().str(), "Fft{axes=(1,), forward=1, scale=1, centered=0}");
  EXPECT_EQ(ops::ifft(x, {1}, {FftNorm::backward, true}).owner().op().str(),
            "Fft{axes=(1,), forward=0, scale=1/n, centered=1}");
}

TEST(Fft, OfNoElementsIsEmpty) {
  const Variable x = input({0, 4});
  EXPECT_EQ(evaluate(ops::fft(x, {0, 1}), {{x, Tensor::zeros({0, 4}, DType::complex128)}}).shape(),
            (Extents{0, 4}));
}

TEST(Fft, RefusesAxesTypesAndMemoryThatDoNotFit) {
  expect_error<ShapeError>([] { ops::fft(input({4}), {1}); }, "[fft] axis out of range: got 1");
  expect_error<ShapeError>([] { ops::fft(input({4, 4}), {0, 0}); }, "[fft] repeated axis");
  const Variable real = input({4}, DType::float64);
  const auto op = std::make_shared<Fft>(Fft::Parameters{{0}, true, FftScale::one, false}, true);
  expect_error<DTypeError>([&] { op->make_node({&real, 1}); }, "[Fft] got float64 (4,)");
  const Variable wide = ops::broadcast_to(input({1}), {4});
  expect_error<ValueError>([&] { op->make_node({&wide, 1}); }, "a broadcast view");
  const Variable y = ops::fft(wide, {0});
  EXPECT_EQ(y.owner().op().inplace_on_inputs(y.owner(), {0}), nullptr);
}

}  // namespace
}  // namespace palimpsest
