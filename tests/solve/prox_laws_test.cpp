// SPDX-License-Identifier: Apache-2.0
// The laws of proximal operators, for every type and every composition.
#include <gtest/gtest.h>

#include <ostream>
#include <set>

#include "palimpsest/linop/operators/dense.hpp"
#include "palimpsest/linop/transforms/fft.hpp"
#include "palimpsest/ops/elementwise/elementwise.hpp"
#include "palimpsest/solve/prox/composed.hpp"
#include "palimpsest/solve/prox/constraints.hpp"
#include "palimpsest/solve/prox/low_rank.hpp"
#include "palimpsest/solve/prox/total_variation.hpp"
#include "palimpsest/solve/prox/wavelets.hpp"
#include "palimpsest/solve/testing/check_prox.hpp"
#include "support/expect_error.hpp"

namespace palimpsest {
namespace {

using testing::expect_error;

struct Sample {
  std::string name;
  std::function<Prox(DType)> make;
  double tolerance = 1e-9;
  bool takes_complex = true, takes_real = true;
  friend std::ostream& operator<<(std::ostream& stream, const Sample& s) {
    return stream << s.name;
  }
};

constexpr index_t kRows = 4, kColumns = 6;

Tensor random(DType dtype, std::uint64_t stream) {
  return Tensor::random_normal({kRows, kColumns}, dtype, {17, stream});
}
Prox total_variation(bool is_isotropic, DifferenceBoundary boundary) {
  return TotalVariation(
      0.4, "Ny Nx",
      {.isotropic = is_isotropic, .boundary = boundary, .inner = 3000, .inner_tolerance = 1e-13});
}

std::vector<Sample> samples() {
  std::vector<Sample> list;
  const auto add = [&](const std::string& name, Prox g) {
    list.push_back({name, [g](DType) { return g; }});
  };
  add("L1", L1(0.5));
  add("L1Weighted",
      L1(0.5, {.weights = Tensor::linspace(0, 2, kRows * kColumns).reshape({kRows, kColumns})}));
  add("L2", L2(0.8));
  add("L2Rows", L2(0.8, {.over = "Nx", .dims = Dims("Ny Nx")}));
  add("L21", L21(0.8, "D"));
  add("SquaredL2", SquaredL2(0.6));
  list.push_back(
      {"SquaredL2Centered", [](DType d) { return SquaredL2(0.6, {.center = random(d, 5)}); }});
  add("Huber", Huber(0.7, 0.4));
  add("Zero", ZeroProx());
  list.push_back({"Box", [](DType) { return Box(-0.3, 0.9); }, 1e-9, false});
  add("NonNegative", NonNegative());
  add("RealValued", RealValued());
  add("Ball", Ball(1.2));
  add("BallRows", Ball(0.7, {.over = "Nx", .dims = Dims("Ny Nx")}));
  list.push_back({"Affine",
                  [](DType d) {
                    const Tensor B = Tensor::random_normal({2, kColumns}, d, {17, 8});
                    const Tensor c = Tensor::random_normal({kRows, 2}, d, {17, 9});
                    return Affine(Dense(B, "M Nx,Ny Nx->Ny M"), c);
                  },
                  1e-5});
  for (const bool is_isotropic : {true, false}) {
    const std::string name = is_isotropic ? "TotalVariation" : "TotalVariationAnisotropic";
    list.push_back(
        {name, [=](DType) { return total_variation(is_isotropic, DifferenceBoundary::neumann); },
         1e-5});
  }
  list.push_back({"TotalVariationPeriodic",
                  [](DType) { return total_variation(true, DifferenceBoundary::periodic); }, 1e-5});
  add("L1Wavelet", L1Wavelet(0.4, "Ny Nx", {.levels = 2}));
  add("L1WaveletJoint",
      L1Wavelet(0.4, "Nx", {.family = "haar", .levels = 2, .joint = "Ny", .dims = Dims("Ny Nx")}));
  add("Nuclear", Nuclear(0.6, "Ny", "Nx"));
  add("LocallyLowRank", LocallyLowRank(0.5, {{"Ny", 3}}, "Nx"));
  add("LocallyLowRankScaled",
      LocallyLowRank(0.1, {{"Ny", 8}}, "Nx", {.scale = LowRankScale::bart}));
  add("Stacked", stacked({L1(0.5), SquaredL2(0.3)}, "Ny", {1, 3}, "Ny Nx"));
  add("On", on(L1(0.5), "Nx", 1, 4, "Ny Nx"));
  add("Weighted", weighted(L1(0.5), 1.7));
  add("Scaled", scaled(L1(0.5), -1.7));
  list.push_back({"Translated", [](DType d) { return translated(L1(0.5), random(d, 6)); }});
  list.push_back(
      {"PlusQuadratic", [](DType d) { return plus_quadratic(L1(0.5), 0.8, random(d, 6)); }});
  list.push_back(
      {"WithUnitary", [](DType) { return with_unitary(L1(0.5), Fft(2)); }, 1e-9, true, false});
  add("Conjugate", conjugate(L2(0.8)));
  add("Envelope", moreau_envelope(L1(0.5), 0.6));
  list.push_back({"Custom", [](DType) {
                    return CustomProx(
                        {.prox = [](const Variable& v, const Variable& t) { return v / (1.0 + t); },
                         .value = [](const Variable& x) { return SquaredL2(1.0).value(x); }});
                  }});
  return list;
}

class ProxLaws : public ::testing::TestWithParam<Sample> {};

TEST_P(ProxLaws, Hold) {
  for (const DType dtype : {DType::float32, DType::float64, DType::complex64, DType::complex128}) {
    if (is_complex(dtype) ? !GetParam().takes_complex : !GetParam().takes_real) continue;
    const Prox g = GetParam().make(dtype);
    for (const double t : {0.1, 0.7, 3.0}) {
      ProxCheckOptions options{.shape = {kRows, kColumns}, .dtype = dtype, .t = t};
      options.tolerance = GetParam().tolerance;
      for (const std::string& broken : check_prox(g, options)) {
        ADD_FAILURE() << name_of(dtype) << " t = " << t << ": " << broken;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, ProxLaws, ::testing::ValuesIn(samples()),
                         [](const auto& c) { return c.param.name; });

// A check that cannot fail would say nothing.
TEST(ProxLaws, TellAWrongProx) {
  const Prox wrong =
      CustomProx({.prox = [](const Variable& v, const Variable& t) { return v / (1.0 + 0.5 * t); },
                  .value = [](const Variable& x) { return SquaredL2(1.0).value(x); }});
  EXPECT_FALSE(check_prox(wrong).empty());
  const Prox growing =
      CustomProx({.prox = [](const Variable& v, const Variable&) { return v * 2.0; },
                  .value = [](const Variable& x) { return SquaredL2(1.0).value(x); }});
  EXPECT_FALSE(check_prox(growing).empty());
}

TEST(ProxCompositions, ByHand) {
  const Tensor v = Tensor::from<double>({3, 0.5});
  const auto near = [](const Tensor& got, const std::vector<double>& expected) {
    const auto values = got.to_vector<double>();
    for (std::size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(values[i], expected[i], 1e-6);
  };
  near(translated(L1(1.0), Tensor::ones({2})).prox(v, 1), {2, 1});
  const NamedLinop haar = Wavelet("N", "N", {.family = "haar", .levels = 1});
  near(with_unitary(L1(1.0), haar).prox(Tensor::from<double>({3, 1}), 1), {1.585786, 1});
  near(conjugate(SquaredL2(2.0)).prox(Tensor::from<double>({3}), 1), {2});
  EXPECT_NEAR(moreau_envelope(L1(1.0), 1.0).value(v), 2.5 + 0.125, 1e-12);
  near(moreau_envelope(L1(1.0), 1.0).gradient(v), {1, 0.5});
  expect_error<ValueError>([] { scaled(L1(1.0), 0); }, "[scaled] scale: got 0");
  expect_error<ValueError>(
      [] {
        with_unitary(L1(1.0), Dense(Tensor::ones({2, 3}), "MN,N->M"));
      },
      "unitary");
}

TEST(L1Wavelets, ShiftsAreDrawnFromTheState) {
  const Prox g = L1Wavelet(0.4, "Nx", {.levels = 2, .shift = Shift::random, .dims = Dims("Nx")});
  EXPECT_TRUE(g.has_state());
  const Tensor v = Tensor::random_normal({32}, DType::float64, {3, 0});
  // The same key, the same shift; and with no threshold the shift is undone exactly.
  EXPECT_TRUE(equal(g.prox(v, 1), g.prox(v, 1)));
  EXPECT_TRUE(allclose(
      L1Wavelet(0.0, "Nx", {.levels = 2, .shift = Shift::random, .dims = Dims("Nx")}).prox(v, 1), v,
      1e-13, 1e-13));
  EXPECT_FALSE(equal(g.prox(v, 1), L1Wavelet(0.4, "Nx", {.levels = 2}).prox(v, 1)));
}

}  // namespace
}  // namespace palimpsest
