// SPDX-License-Identifier: Apache-2.0
// The laws of proximal operators, for every type and composition.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <ostream>
#include <set>

#include "palimpsest/linop/copies/saving.hpp"
#include "palimpsest/linop/operators/dense.hpp"
#include "palimpsest/linop/operators/identity.hpp"
#include "palimpsest/linop/operators/roll.hpp"
#include "palimpsest/linop/transforms/fft.hpp"
#include "palimpsest/ops/elementwise/elementwise.hpp"
#include "palimpsest/solve/frame/solver.hpp"
#include "palimpsest/solve/prox/composed.hpp"
#include "palimpsest/solve/prox/constraints.hpp"
#include "palimpsest/solve/prox/low_rank.hpp"
#include "palimpsest/solve/prox/saving.hpp"
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
  add("L1WaveletWeighted", L1Wavelet(0.4, "Ny Nx", {.levels = 2, .level_weights = {0, 2, 0.5}}));
  add("Nuclear", Nuclear(0.6, "Ny", "Nx"));
  add("LocallyLowRank", LocallyLowRank(0.5, {{"Ny", 3}}, "Nx"));
  add("LocallyLowRankScaled",
      LocallyLowRank(0.1, {{"Ny", 8}}, "Nx", {.scale = LowRankScale::bart}));
  add("Stacked", stacked({L1(0.5), SquaredL2(0.3)}, "Ny", {1, 3}, "Ny Nx"));
  add("On", on(L1(0.5), "Nx", 1, 4, "Ny Nx"));
  add("Weighted", weighted(L1(0.5), 1.7));
  add("Scaled", scaled(L1(0.5), -1.7));
  list.push_back({"Turned",
                  [](DType) { return scaled(NonNegative(), std::complex<double>(0.6, 0.8)); }, 1e-9,
                  true, false});
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

// Functions that are separable along a dimension S of extent 4; check_prox() checks this law.
std::vector<Sample> separable() {
  const Dims dims("S Nx");
  std::vector<Sample> list;
  const auto add = [&](const std::string& name, Prox g, double tolerance = 1e-9) {
    list.push_back({name, [g](DType) { return g; }, tolerance});
  };
  const Tensor weights = Tensor::linspace(0, 2, kRows * kColumns).reshape({kRows, kColumns});
  add("SplitL1", L1(0.5, {.weights = weights, .dims = dims}));
  add("SplitL1Broadcast", L1(0.5, {.weights = Tensor::linspace(0, 2, kColumns), .dims = dims}));
  add("SplitL1Rows", L1(0.5, {.weights = weights.narrow(1, 0, 1), .dims = dims}));
  add("SplitHuber", Huber(0.7, 0.4, dims));
  add("SplitBall", Ball(0.7, {.over = "Nx", .dims = dims}));
  add("SplitTotalVariation",
      TotalVariation(0.4, "Nx", {.dims = dims, .inner = 3000, .inner_tolerance = 1e-13}), 1e-5);
  add("SplitL1Wavelet", L1Wavelet(0.4, "Nx", {.levels = 2, .dims = dims}));
  add("SplitNuclear", Nuclear(0.6, "Nx", "", dims));
  add("SplitScaled", scaled(L2(0.5, {.over = "Nx", .dims = dims}), -1.7));
  add("SplitConjugate", conjugate(L2(0.5, {.over = "Nx", .dims = dims})));
  list.push_back({"SplitTranslated",
                  [dims](DType d) { return translated(L1(0.5, {.dims = dims}), random(d, 6)); }});
  add("SplitStacked", stacked({L1(0.5), SquaredL2(0.3)}, "Nx", {2, 4}, dims));
  add("SplitOn", on(L1(0.5), "Nx", 1, 4, dims));
  list.push_back({"SplitAffine",
                  [](DType d) {
                    const Tensor B = Tensor::random_normal({kRows, 2, kColumns}, d, {17, 8});
                    const Tensor c = Tensor::random_normal({2, kRows}, d, {17, 9});
                    return Affine(Dense(B, "S M Nx,S Nx->M S"), c);
                  },
                  1e-5});
  list.push_back({"SplitWithUnitary", [dims](DType) {
                    const Prox g = L2(0.5, {.over = "Nx", .dims = dims});
                    return with_unitary(g, Wavelet(dims, "Nx", {.family = "haar", .levels = 1}));
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

INSTANTIATE_TEST_SUITE_P(Splits, ProxLaws, ::testing::ValuesIn(separable()),
                         [](const auto& c) { return c.param.name; });

TEST(ProxSplitting, IsKnownForEachDimension) {
  for (const Sample& s : separable()) {
    const Prox g = s.make(DType::complex128);
    EXPECT_TRUE(g.is_separable("S")) << s.name;
    EXPECT_FALSE(g.is_separable("Z")) << s.name;
    const bool is_elementwise = g.type().is_elementwise || s.name == "SplitTranslated";
    EXPECT_EQ(g.is_separable("Nx"), is_elementwise) << s.name;
  }
  const Prox g = L2(0.5, {.over = "Nx", .dims = Dims("S Nx")});
  expect_error<SplitError>([&] { g.split({{"Nx", slice(0, 2)}}); }, "[L2] cannot split along 'Nx'");
  expect_error<SplitError>([&] { L2(0.5).split({{"Nx", slice(0, 2)}}); }, "got none");
  expect_error<ValueError>([&] { g.split({{"S", slice(2, {})}}); }, "[L2] split: dim 'S'");
  const auto identity = [](const Variable& v, const Variable&) { return v; };
  const Prox custom = CustomProx({.prox = identity}).bound_to("S Nx");
  expect_error<SplitError>([&] { custom.split({{"S", slice(0, 2)}}); }, "[Custom] cannot split");
  // The dimensions of an ellipsis are known once the operand is.
  const Prox tv = TotalVariation(0.4, "Nx");
  EXPECT_FALSE(tv.is_separable("S"));
  EXPECT_TRUE(tv.bound_to("S Nx").is_separable("S"));
  EXPECT_FALSE(TotalVariation(0.4, "Nx", {.joint = "S", .dims = Dims("S Nx")}).is_separable("S"));
}

INSTANTIATE_TEST_SUITE_P(Types, ProxLaws, ::testing::ValuesIn(samples()),
                         [](const auto& c) { return c.param.name; });

// For functions with random shifts, prox and value use different shifts: fewer laws hold.
std::vector<Prox> stateful() {
  const Prox shifted =
      L1Wavelet(0.4, "Nx", {.levels = 2, .shift = Shift::random, .dims = Dims("Ny Nx")});
  const Tensor c = random(DType::complex128, 6);
  return {shifted,
          LocallyLowRank(0.5, {{"Ny", 3}}, "Nx", {.shift = Shift::random}),
          weighted(shifted, 2.0),
          scaled(shifted, 2.0),
          translated(shifted, c),
          plus_quadratic(shifted, 0.5, c),
          with_unitary(shifted, Fft(2)),
          conjugate(shifted),
          moreau_envelope(shifted, 0.5),
          stacked({shifted, L1(0.5)}, "Ny", {2, 2}, "Ny Nx"),
          on(shifted, "Ny", 1, 3, "Ny Nx")};
}

TEST(ProxSaving, KeepsStates) {
  const Tensor v = random(DType::complex128, 7);
  for (const Prox& g : stateful()) {
    SCOPED_TRACE(g.str());
    ASSERT_TRUE(g.has_state());
    const Tensor x = g.prox(v, 0.7);
    const Prox loaded = prox_from_bytes(to_bytes(g));
    EXPECT_TRUE(loaded.has_state());
    EXPECT_TRUE(equal(loaded.prox(v, 0.7), x));
    EXPECT_TRUE(equal(g.deepcopy().prox(v, 0.7), x));
    EXPECT_EQ(to_bytes(loaded), to_bytes(g));
  }
}

// Files may name a composition with a state apart.
TEST(ProxSaving, LoadsCompositionsThatAreNamedByTheirState) {
  const Tensor v = random(DType::complex128, 7);
  const Prox g = stateful()[2];
  const NamedLinop holder = from_bytes(to_bytes(g));
  Attributes attrs = holder.attrs();
  for (auto& [name, a] : attrs) {
    if (name == "type") a = Attribute("weighted_with_state");
  }
  const Prox loaded =
      prox_from_bytes(to_bytes(make_container(holder.type(), holder.linops(), attrs)));
  EXPECT_EQ(&loaded.type(), &g.type());
  EXPECT_TRUE(loaded.has_state());
  EXPECT_TRUE(equal(loaded.prox(v, 0.7), g.prox(v, 0.7)));
}

TEST(ProxSaving, CoversEveryType) {
  std::set<std::string_view> seen;
  for (const Sample& s : samples()) seen.insert(s.make(DType::complex128).type().name);
  for (const Prox& g : stateful()) seen.insert(g.type().name);
  for (const std::string& name : prox_names()) EXPECT_TRUE(seen.contains(name)) << name;
}

TEST(ProxSaving, GoesThroughAFile) {
  const std::string path = (std::filesystem::temp_directory_path() /
                            ("palimpsest_prox_" + std::to_string(::getpid()) + ".pal"))
                               .string();
  const Parameter lambda(Tensor::full<double>({}, 0.5));
  const Prox g = stacked({L1(lambda), L1(lambda)}, "N", {1, 2}, "N");
  save(g, path);
  const Prox loaded = load_prox(path);
  std::filesystem::remove(path);
  const Tensor v = Tensor::from<double>({3, -2, 1});
  EXPECT_TRUE(equal(loaded.prox(v, 1), Tensor::from<double>({2.5, -1.5, 0.5})));
  // A shared parameter stays shared, separately from the original.
  Parameter(loaded.parts()[0].param("lambda")).set_value(Tensor::full<double>({}, 1.0));
  EXPECT_TRUE(equal(loaded.prox(v, 1), Tensor::from<double>({2, -1, 0})));
  EXPECT_TRUE(equal(g.prox(v, 1), Tensor::from<double>({2.5, -1.5, 0.5})));
  const Prox copy = g.deepcopy();
  Parameter(lambda).set_value(Tensor::full<double>({}, 0.0));
  EXPECT_TRUE(equal(g.prox(v, 1), v));
  EXPECT_TRUE(equal(copy.prox(v, 1), Tensor::from<double>({2.5, -1.5, 0.5})));
}

TEST(ProxSaving, RefusesWhatItCannotRead) {
  const auto identity = [](const Variable& v, const Variable&) { return v; };
  const Prox custom = CustomProx({.prox = identity});
  expect_error<FormatError>([&] { to_bytes(custom); }, "closure");
  expect_error<FormatError>([&] { to_bytes(weighted(custom, 2.0)); }, "closure");
  EXPECT_TRUE(equal(custom.deepcopy().prox(Tensor::ones({2}), 1), Tensor::ones({2})));
  expect_error<FormatError>([] { prox_from_bytes(to_bytes(Fft(2))); }, "not a proximal function");
  // A function cannot be loaded as an operator.
  const NamedLinop holder = from_bytes(to_bytes(L1(1.0)));
  expect_error<ValueError>([&] { holder(Tensor::ones({2})); }, "it holds a proximal function");
  static constexpr ProxType kUnknown{
      .name = "unregistered",
      .prox = [](const Prox&, const Variable& v, const Variable&, StateScope&) { return v; }};
  expect_error<FormatError>([] { to_bytes(make_prox(kUnknown)); }, "unknown type");
  std::vector<std::byte> bytes = to_bytes(L1(1.0));
  bytes.resize(bytes.size() / 2);
  expect_error<FormatError>([&] { prox_from_bytes(bytes); }, "");
}

// Files may contain anything: the required members of each type are checked.
TEST(ProxSaving, TypesRefuseMissingParts) {
  for (const std::string& name : prox_names()) {
    const ProxType& type = *find_prox(name);
    if (type.check == nullptr && type.parts == 0 && type.linops == 0) continue;
    EXPECT_THROW(make_prox(type), Error) << name;
  }
  const ProxType& on_type = on(L1(1.0), "N", 0, 1, "N").type();
  const Attributes attrs{{"along", Dims("N")}, {"range", Attribute(Extents{1})}};
  expect_error<ValueError>(
      [&] { make_prox(on_type, {.dims = Dims("N"), .attrs = attrs, .parts = {L1(1.0)}}); },
      "range: got");
}

TEST(LocallyLowRanks, ShiftsAreThoseOfBlocksMovedAlong) {
  const Tensor v = Tensor::random_normal({7, 3}, DType::float64, {2, 3});
  const LocallyLowRankOptions shifted{.shift = Shift::random};
  const Prox g = LocallyLowRank(0.8, {{"Ny", 3}}, "T", shifted);
  const Tensor x = g.prox(v, 1.0);
  EXPECT_TRUE(equal(g.prox(v, 1.0), x));  // the same key, the same shift
  // Any of the three shifts: the first block begins there, and the rows before it come last.
  int matches = 0;
  for (index_t shift = 0; shift < 3; ++shift) {
    const NamedLinop roll = Roll("Ny T", "Ny", {-shift});
    const Tensor expected = roll.H()(LocallyLowRank(0.8, {{"Ny", 3}}, "T").prox(roll(v), 1.0));
    if (allclose(x, expected, 1e-12, 1e-12)) ++matches;
  }
  EXPECT_EQ(matches, 1);
  EXPECT_TRUE(
      allclose(LocallyLowRank(0.0, {{"Ny", 3}}, "T", shifted).prox(v, 1.0), v, 1e-12, 1e-12));
  expect_error<ValueError>(
      [] {
        LocallyLowRank(1.0, {{"Ny", 3}}, "T", {.shift = Shift::random, .overlap = true});
      },
      "shift");
}

// Wrong functions must fail the check.
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
  const std::complex<double> turn(0.6, 0.8);
  expect_error<ValueError>([&] { scaled(L1(1.0), turn * 2.0); },
                           "[scaled] scale of modulus: got 2");
  expect_error<DTypeError>([&] { scaled(L1(1.0), turn).prox(v, 1); }, "[scaled] got real numbers");
  // NonNegative of (0.6 + 0.8i) x is 0 where it has no imaginary part.
  const Prox ray = scaled(NonNegative(), turn);
  const Tensor on_ray = Tensor::from<std::complex<double>>({std::conj(turn) * 2.0});
  EXPECT_EQ(ray.value(on_ray), 0);
  EXPECT_TRUE(allclose(ray.prox(on_ray, 1), on_ray, 1e-12, 1e-12));
  EXPECT_TRUE(std::isinf(ray.value(Tensor::from<std::complex<double>>({turn}))));
  expect_error<ValueError>(
      [] {
        with_unitary(L1(1.0), Dense(Tensor::ones({2, 3}), "MN,N->M"));
      },
      "unitary");
}

// 5 entries have approximations of 3, then 2 entries in 2 levels; level 1 is the coarser.
// In double precision, that of the approximation, too.
TEST(L1Wavelets, WeightsAreNotRounded) {
  const Prox g = L1Wavelet(
      1.0, "N", {.family = "haar", .levels = 1, .level_weights = {0.1, 0.1}, .dims = Dims("N")});
  const double expected = 0.1 * 4 * std::sqrt(2.0);
  EXPECT_NEAR(g.value(Tensor::ones({8})), expected, 1e-15);
  EXPECT_NEAR(g.value(Tensor::from<double>({1, -1, 1, -1, 1, -1, 1, -1})), expected, 1e-15);
}

TEST(L1Wavelets, WeightsAreThoseOfLevels) {
  const NamedLinop W = Wavelet("N", "N", {.family = "haar", .levels = 2});
  const Tensor v = Tensor::from<double>({3, -1, 4, 1, -5});
  const L1WaveletOptions options{.family = "haar", .levels = 2, .level_weights = {0, 2, 0.5}};
  const std::vector<double> weights{0, 0, 2, 0.5, 0.5};
  const Prox g = L1Wavelet(0.4, "N", options);
  const Prox expected = L1(0.4, {.weights = Tensor::from<double>(weights)});
  EXPECT_TRUE(allclose(W(g.prox(v, 1)), expected.prox(W(v), 1), 1e-12, 1e-12));
  EXPECT_NEAR(g.value(v), expected.value(W(v)), 1e-12);
  // Along two axes a coefficient belongs to the finer of its two levels.
  const NamedLinop W2 = Wavelet("Ny Nx", "Ny Nx", {.family = "haar", .levels = 1});
  const Tensor image = Tensor::random_normal({4, 3}, DType::complex128, {3, 0});
  const Tensor weights2 =
      Tensor::from<double>({3, 3, 7, 3, 3, 7, 7, 7, 7, 7, 7, 7}).reshape({4, 3});
  const Prox g2 = L1Wavelet(0.1, "Ny Nx", {.family = "haar", .levels = 1, .level_weights = {3, 7}});
  const Prox expected2 = L1(0.1, {.weights = weights2});
  EXPECT_TRUE(allclose(W2(g2.prox(image, 1)), expected2.prox(W2(image), 1), 1e-12, 1e-12));
  const auto weighted_by = [&](std::vector<double> of_levels) {
    return L1Wavelet(0.4, "N", {.levels = 2, .level_weights = std::move(of_levels)});
  };
  expect_error<ValueError>([&] { weighted_by({1, -1, 1}); }, "level_weights: got -1");
  expect_error<ValueError>([&] { weighted_by({1, 1}).prox(v, 1); }, "level_weights: got 2");
}

TEST(L1Wavelets, ShiftsAreDrawnFromTheState) {
  const Prox g = L1Wavelet(0.4, "Nx", {.levels = 2, .shift = Shift::random, .dims = Dims("Nx")});
  EXPECT_TRUE(g.has_state());
  const Tensor v = Tensor::random_normal({32}, DType::float64, {3, 0});
  // The same key gives the same shift; without a threshold the shift is undone exactly.
  EXPECT_TRUE(equal(g.prox(v, 1), g.prox(v, 1)));
  EXPECT_TRUE(allclose(
      L1Wavelet(0.0, "Nx", {.levels = 2, .shift = Shift::random, .dims = Dims("Nx")}).prox(v, 1), v,
      1e-13, 1e-13));
  EXPECT_FALSE(equal(g.prox(v, 1), L1Wavelet(0.4, "Nx", {.levels = 2}).prox(v, 1)));
}

TEST(L1Wavelets, AShiftIsThatOfARolledImage) {
  for (const Extents& shape : {Extents{16, 24}, Extents{15, 24}, Extents{9, 7}}) {
    const Tensor v = Tensor::random_normal(shape, DType::complex128, {4, 0});
    const L1WaveletOptions plain{.levels = 2, .dims = Dims("Ny Nx")};
    L1WaveletOptions with_shift = plain;
    with_shift.shift = Shift::random;
    const Tensor shifted = L1Wavelet(0.4, "Ny Nx", with_shift).prox(v, 1);
    int found = 0;
    for (index_t y = 0; y < 4; ++y) {
      for (index_t x = 0; x < 4; ++x) {
        const NamedLinop roll = Roll("Ny Nx", "Ny Nx", {y, x});
        const Tensor w = roll.H()(L1Wavelet(0.4, "Ny Nx", plain).prox(roll(v), 1));
        found += allclose(shifted, w, 1e-12, 1e-12) ? 1 : 0;
      }
    }
    EXPECT_EQ(found, 1) << to_string(shape);
  }
}

TEST(L1Wavelets, AShiftOfEvenExtentsTakesNoCopy) {
  const auto gathers = [](const Extents& shape) {
    const Prox h =
        L1Wavelet(0.4, "Ny Nx", {.levels = 2, .shift = Shift::random, .dims = Dims("Ny Nx")});
    Problem p({DType::complex64, shape, {}});
    p.set("A", Identity("Ny Nx")).set("N", Identity("Ny Nx")).set("h", h).set("L", 1.0);
    int count = 0;
    for (const PlannedStep& step : plan_solve(*find_solver("ista"), p).step.steps) {
      count += step.node.op().name().starts_with("Gather") ? 1 : 0;
    }
    return count;
  };
  EXPECT_EQ(gathers({32, 48}), 0);
  EXPECT_EQ(gathers({32, 47}), 2);  // one axis of odd extent, before and after
}

}  // namespace
}  // namespace palimpsest
