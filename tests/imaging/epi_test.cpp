// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/imaging/corrections/epi.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "palimpsest/base/error.hpp"
#include "palimpsest/linop/transforms/fft.hpp"

namespace palimpsest {
namespace {

using Sample = std::complex<float>;

NamedLinop along_x() { return Fft(1, {.norm = FftNorm::ortho, .centered = true}); }

// k-space (C, .., x) whose image has this additional phase.
Tensor turned(const Tensor& kspace, const EchoPhase& phase) {
  Tensor image = along_x().H()(kspace).contiguous();
  auto* v = image.mutable_data<Sample>();
  const index_t n = image.shape(-1);
  for (index_t i = 0; i < image.numel(); ++i) {
    const auto x = static_cast<double>(i % n - n / 2);
    v[i] *= Sample(std::polar(1.0, phase.constant + phase.slope * x));
  }
  return along_x()(image).contiguous();
}

TEST(EchoPhase, IsThatBetweenTwoNavigators) {
  const Tensor line = Tensor::random_normal({3, 40}, DType::complex64, {1});
  for (const EchoPhase given : {EchoPhase{0.7, 0.05}, EchoPhase{-2.5, -0.11}, EchoPhase{0, 0}}) {
    const EchoPhase found = echo_phase(line, turned(line, given));
    EXPECT_NEAR(found.constant, given.constant, 1e-4);
    EXPECT_NEAR(found.slope, given.slope, 1e-4);
  }
}

TEST(AlignedEchoes, HaveTheirReversedLinesAsTheForwardOnes) {
  const Tensor kspace = Tensor::random_normal({2, 6, 24}, DType::complex64, {2});
  const EchoPhase phase{0.4, 0.08};
  Tensor measured = kspace.clone();
  Tensor is_reversed = Tensor::zeros({6}, DType::bool_);
  for (index_t y = 1; y < 6; y += 2) {
    is_reversed.set<bool>({y}, true);
    measured.select(1, y).copy_from(turned(kspace.select(1, y).contiguous(), phase));
  }
  const Tensor navigator = kspace.select(1, 3).contiguous();
  const Tensor aligned = aligned_echoes(measured, is_reversed, navigator, turned(navigator, phase));
  EXPECT_TRUE(allclose(aligned, kspace, 1e-4, 1e-4));
  EXPECT_FALSE(allclose(measured, kspace, 1e-1, 1e-1));
}

TEST(AlignedEchoes, NeedNavigatorsWithSignal) {
  const Tensor kspace = Tensor::random_normal({2, 4, 8}, DType::complex64, {3});
  const Tensor is_reversed = Tensor::zeros({4}, DType::bool_);
  const auto text_of = [&](const std::optional<Tensor>& forward, const Tensor& flags) {
    try {
      aligned_echoes(kspace, flags, forward, forward);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_NE(text_of({}, is_reversed).find("navigator"), std::string::npos);
  EXPECT_THROW(aligned_echoes(kspace, is_reversed, {}, {}), ValueError);
  const Tensor zero = Tensor::zeros({2, 8}, DType::complex64);
  EXPECT_NE(text_of(zero, is_reversed).find("navigator lines have no signal"), std::string::npos);
  EXPECT_NE(text_of(Tensor::zeros({8}, DType::complex64), is_reversed).find("expected complex64"),
            std::string::npos);
  EXPECT_NE(text_of(zero, Tensor::zeros({3}, DType::bool_)).find("bool (y)"), std::string::npos);
  EXPECT_THROW(echo_phase(zero, Tensor::zeros({2, 9}, DType::complex64)), ShapeError);
}

}  // namespace
}  // namespace palimpsest
