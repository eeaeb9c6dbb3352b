// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/imaging/regularizers.hpp"

#include <gtest/gtest.h>

#include "palimpsest/base/error.hpp"
#include "palimpsest/linop/operators/identity.hpp"
#include "palimpsest/solve/prox/constraints.hpp"
#include "support/expect_error.hpp"

namespace palimpsest {
namespace {

using testing::expect_error;

TEST(Regularizer, TextBecomesWhatItSays) {
  const Regularizer plain = parse_regularizer("tv:0.01");
  EXPECT_EQ(plain.term, "tv");
  EXPECT_EQ(plain.lambda, 0.01);
  EXPECT_TRUE(plain.over.empty());
  EXPECT_EQ(plain.boundary, DifferenceBoundary::periodic);
  EXPECT_EQ(plain.direction, DifferenceDirection::backward);

  const Regularizer wavelet =
      parse_regularizer("l1wav(Ny,Nx):2e-3,wavelet=db4,levels=3,shift=none,joint=M");
  EXPECT_EQ(wavelet.over, Dims("Ny Nx"));
  EXPECT_EQ(wavelet.lambda, 2e-3);
  EXPECT_EQ(wavelet.wavelet, "db4");
  EXPECT_EQ(wavelet.levels, 3);
  EXPECT_EQ(wavelet.shift, Shift::none);
  EXPECT_EQ(wavelet.joint, Dims("M"));

  const Regularizer blocks = parse_regularizer("llr(Nx=8,Ny=4;T):0.02,scale=bart,shift=random");
  EXPECT_EQ(blocks.over, Dims("Nx Ny"));
  EXPECT_EQ(blocks.across, Dims("T"));
  EXPECT_EQ(blocks.block, (BlockExtents{{"Nx", 8}, {"Ny", 4}}));
  EXPECT_EQ(blocks.scale, LowRankScale::bart);

  EXPECT_EQ(parse_regularizer("lr(;T):1").across, Dims("T"));
  EXPECT_FALSE(parse_regularizer("tv:1,iso=0,boundary=zero,direction=forward").isotropic);
  const Regularizer generalized = parse_regularizer("tgv(Ny,Nx):0.01,ratio=1.5");
  EXPECT_EQ(generalized.term, "tgv");
  EXPECT_EQ(generalized.ratio, 1.5);
  EXPECT_EQ(parts_of_unknown({generalized}, "Nz Ny Nx"), 3);
  EXPECT_EQ(parts_of_unknown({parse_regularizer("tgv:1")}, "Nz Ny Nx"), 4);
  EXPECT_EQ(parts_of_unknown({plain}, "Ny Nx"), 1);
  EXPECT_EQ(parse_regularizer("nonneg").term, "nonneg");
  EXPECT_EQ(parse_regularizer("real").term, "real");
  EXPECT_EQ(parse_regularizer("ball:0.5").term, "ball");
  EXPECT_EQ(parse_regularizer("ball:0.5").lambda, 0.5);
}

TEST(Regularizer, MistakesAreShownWhereTheyAre) {
  const auto expect = [](const std::string& text, const char* message) {
    expect_error<ValueError>([&] { parse_regularizer(text); }, message);
  };
  expect("", "unknown regularizer");
  expect("wavelet:1",
         "'wavelet:1', character 1: unknown regularizer 'wavelet', expected one of l2");
  expect("tv", "character 3: tv needs a weight");
  expect("tv:", "character 4: expected a number >= 0");
  expect("tv:-1", "expected a number >= 0");
  expect("tv:nan", "expected a number >= 0");
  expect("tv:inf", "expected a number >= 0");
  expect("tv:0.01x", "expected a number >= 0");
  expect("tv(Nx:1", "character 6: expected ')'");
  expect("tv(Nx,):1", "character 7: expected the name of a dimension");
  expect("tv(Nx,Nx):1", "character 7: Nx stands there twice");
  expect("tv(Nx=8):1", "only blocks of llr have extents");
  expect("tv(;T):1", "expected");
  expect("llr(Nx=0;T):1", "character 8: expected a number of at least 1");
  expect("nonneg:1", "has no weight");
  expect("l2(Nx):1", "has no dimensions");
  expect("tv:1,wavelet=db2", "character 6: tv has no key 'wavelet'");
  expect("tv:1,iso", "expected '='");
  expect("tv:1,iso=1,iso=0", "character 12: iso stands there twice");
  expect("tv:1,iso=2", "expected 1 or 0, got '2'");
  expect("l1wav:1,wavelet=db99", "db99");
  expect("l1wav:1,levels=0", "auto");
  expect("tgv:1,ratio=0", "character 13: expected a number > 0");
  expect("tv:1,ratio=2", "tv has no key 'ratio'");
  expect("nonneg8", "unknown regularizer 'nonneg8'");
  expect("ball", "character 5: ball needs a weight");
  expect("ball:-1", "character 6: expected a number >= 0");
  expect("ball(Nx):1", "has no dimensions");
  expect("lr(;T)8", "character 7: lr needs a weight");
}

TEST(Regularizer, ATermThatIsNotKnownIsRefused) {
  expect_error<ValueError>([] { is_relative({.term = "none"}); },
                           "[Regularizer.term] got 'none', expected one of l2, l1, l1wav");
}

TEST(Regularizer, ConstraintsComeFirstAndOthersBecomeTerms) {
  const auto added = [](const std::vector<std::string>& texts) {
    std::vector<Regularizer> all;
    for (const std::string& text : texts) all.push_back(parse_regularizer(text));
    Objective f{.A = Identity("Ny Nx")};
    add_regularizers(f, all, "Ny Nx");
    return f;
  };
  expect_error<ValueError>([&] { added({"tgv:1", "tv:1"}); }, "tgv has an unknown of its own");
  expect_error<ValueError>([&] { added({"nonneg", "tgv:1"}); }, "no other term but l2");
  const Objective generalized = added({"l2:1", "tgv:1"});
  EXPECT_EQ(generalized.terms.size(), 2U);
  EXPECT_TRUE(generalized.quadratics[0].L);
  const Objective smooth = added({"l2:0.5", "l2:0.25", "l2:0"});
  EXPECT_EQ(smooth.quadratics.size(), 2U);
  EXPECT_FALSE(smooth.h);
  const Objective one = added({"l1wav:1"});
  EXPECT_TRUE(one.h && one.terms.empty());
  const Objective both = added({"l1wav:1", "nonneg"});
  EXPECT_EQ(both.terms.size(), 1U);
  EXPECT_EQ(both.h->name(), NonNegative().name());
  EXPECT_EQ(added({"tv:1", "l1wav:1"}).terms.size(), 1U);
  const Objective within = added({"ball:1", "l1wav:1"});
  EXPECT_TRUE(within.h && within.terms.empty() && !within.h->has_state());
  expect_error<ValueError>(
      [&] {
        added({"ball:1", "ball:2"});
      },
      "[reg] 'ball:2': got several balls");
  expect_error<ValueError>([&] { added({"tv(Nx,Qy):0.01"}); },
                           "[reg] 'tv(Nx,Qy):0.01': no dimension Qy in the image (Ny, Nx)");
  expect_error<ValueError>([&] { added({"l1wav:1,levels=99"}); },
                           "[reg] 'l1wav:1,levels=99': levels: got 99");
  expect_error<ValueError>([&] { added({"lr(Ny,Nx;Ny):1"}); }, "[reg] 'lr(Ny,Nx;Ny):1'");
  expect_error<ValueError>([&] { added({"tv:1e39"}); }, "[reg] 'tv:1e39': got the weight 1e+39");
  expect_error<ValueError>([&] { added({"lr(;T):0.01"}); }, "no dimension T");
}

}  // namespace
}  // namespace palimpsest
