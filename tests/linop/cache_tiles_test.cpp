// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/linop/split/cache_tiles.hpp"

#include <cstring>

#include "linop_support.hpp"
#include "palimpsest/base/config.hpp"
#include "palimpsest/compile/function.hpp"
#include "palimpsest/compile/tensor_math.hpp"
#include "palimpsest/linop/operators/permute.hpp"
#include "palimpsest/linop/operators/simple.hpp"
#include "palimpsest/linop/split/batch.hpp"
#include "palimpsest/memory/allocator.hpp"
#include "palimpsest/ops/gradient.hpp"
#include "palimpsest/ops/ops.hpp"
#include "support/cache_size.hpp"

namespace palimpsest {
namespace {

using testing::difference;
using testing::random;

constexpr index_t kSide = 64;
const TensorType kImage{DType::complex64, {kSide, kSide}, {}};

// 0: those of the machine.
void set_tile_caches(index_t core_bytes, index_t last_bytes) {
  set_core_cache_bytes(core_bytes);
  set_streaming_bytes(last_bytes);
}

// Caches that hold two coils of 64 x 64, on every machine.
class CacheTiles : public ::testing::Test {
 protected:
  CacheTiles() { set_tile_caches(64 << 10, 256 << 10); }
  ~CacheTiles() override { set_tile_caches(0, 0); }
};

ConfigOverrides on_threads(index_t n) { return {.threads = n, .parallel_grain = 1}; }

Tensor maps(index_t coils, DType dtype = DType::complex64) {
  return random({coils, kSide, kSide}, dtype);
}
NamedLinop sense(const Tensor& maps, bool centered = false) {
  return Chain(Dense(maps, "CNyNx,NyNx->CNyNx"),
               Fft(2, {.batch = "C", .grid = Grid{"NyNx", "KyKx"}, .centered = centered}),
               Diagonal(random({maps.shape(1), maps.shape(2)}, DType::float32), "CKyKx"));
}

bool same_bits(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() && a.dtype() == b.dtype() &&
         std::memcmp(a.raw_data(), b.raw_data(), static_cast<std::size_t>(a.nbytes())) == 0;
}

TensorType type_of(const Tensor& t) { return {t.dtype(), t.shape(), t.device()}; }

// Applied with tiles on 1, 2 and 4 threads, and without tiles: the same bits, and a smaller peak,
// which equals the measured one.
void expect_smaller_and_same(const NamedLinop& A, const Tensor& x) {
  const auto whole = [&] {
    const ConfigScope scope(without_cache_tiles());
    const NamedLinop fresh = A.copy();
    return std::pair(fresh(x), fresh.plan(type_of(x)).peak_bytes);
  }();
  for (const index_t threads : {1, 2, 4}) {
    const ConfigScope scope(on_threads(threads));
    const NamedLinop fresh = A.copy();
    const index_t peak = fresh.plan(type_of(x)).peak_bytes;
    if (threads == 1) {
      EXPECT_LT(peak, whole.second);
    }
    const MemoryScope memory;
    const Tensor y = fresh(x);
    EXPECT_EQ(static_cast<index_t>(memory.peak_bytes()), peak);
    EXPECT_TRUE(same_bits(y, whole.first)) << threads << " threads: " << difference(y, whole.first);
  }
}

TEST_F(CacheTiles, SumsOverTilesHaveTheBitsOfOneSum) {
  const Tensor image = random({kSide, kSide}, DType::complex64);
  for (const index_t coils : {17, 31, 32, 37, 48, 63}) {
    SCOPED_TRACE(coils);
    expect_smaller_and_same(sense(maps(coils)).N(), image);
  }
}

TEST_F(CacheTiles, ChainsWithinChainsHaveThemToo) {
  const NamedLinop N = sense(maps(32)).N();
  ASSERT_FALSE(tiled_for_cache(Chain({N}), kImage));
  expect_smaller_and_same(Chain({N}), random({kSide, kSide}, DType::complex64));
}

TEST_F(CacheTiles, UpTo16CoilsAreOneStepWithTheBitsOfSingleCoils) {
  const Tensor image = random({kSide, kSide}, DType::complex64);
  for (const index_t coils : {2, 5, 8, 15, 16}) {
    SCOPED_TRACE(coils);
    const NamedLinop N = sense(maps(coils)).N();
    EXPECT_FALSE(tiled_for_cache(N, kImage));
    const Plan plan = N.plan(kImage);
    EXPECT_EQ(plan.steps.back().node.op().name(), "SenseNormal");
    const ConfigScope scope(without_cache_tiles());
    const NamedLinop singles = create_batched_linop(N, BatchSpec{{{"C", 1}}});
    EXPECT_TRUE(same_bits(singles(image), N(image)));
    EXPECT_LE(plan.peak_bytes, singles.plan(kImage).peak_bytes);
  }
}

TEST_F(CacheTiles, ForwardAdjointAndCenteredTransformsHaveTheSameBits) {
  constexpr index_t kWide = 128;
  for (const DType dtype : {DType::complex64, DType::complex128}) {
    SCOPED_TRACE(name_of(dtype));
    set_tile_caches(kWide * kWide * static_cast<index_t>(item_size(dtype)), 256 << 10);
    const NamedLinop A =
        Chain(Dense(random({18, kWide, kWide}, dtype), "CNyNx,NyNx->CNyNx"),
              Fft(2, {.batch = "C", .grid = Grid{"NyNx", "KyKx"}, .centered = true}),
              Diagonal(random({kWide, kWide}, real_of(dtype)), "CKyKx"));
    const Tensor x = random({kWide, kWide}, dtype), y = random({18, kWide, kWide}, dtype);
    expect_smaller_and_same(A.N(), x);
    expect_smaller_and_same(A.H(), y);
    ASSERT_TRUE(tiled_for_cache(A, type_of(x)));
    const Tensor tiled = A(x);
    const ConfigScope scope(without_cache_tiles());
    EXPECT_TRUE(same_bits(tiled, A.copy()(x)));
  }
}

TEST_F(CacheTiles, LeavesThatFitAreWhole) {
  set_tile_caches(16 * kSide * kSide * 8, 256 << 10);
  const NamedLinop N = sense(maps(40)).N();
  const auto tiled = tiled_for_cache(N, kImage);
  ASSERT_TRUE(tiled);
  // (0..16 + 16..32) + 32..40
  EXPECT_EQ(tiled->linop_count(), 2U);
  EXPECT_EQ((*tiled)[0].linop_count(), 2U);
  EXPECT_EQ((*tiled)[0][0].size("C"), 16);
  EXPECT_EQ((*tiled)[1].size("C"), 8);
  expect_smaller_and_same(N, random({kSide, kSide}, DType::complex64));
}

TEST_F(CacheTiles, SeparableDimensionsAreCutToo) {
  const Dims grid = "NyNx";
  const NamedLinop F = Fft(2, {.batch = "T", .grid = Grid{"NyNx", "KyKx"}});
  const NamedLinop A = Chain(F, Diagonal(random({kSide, kSide}, DType::float32), "TKyKx"), F.H());
  const Tensor x = random({24, kSide, kSide}, DType::complex64);
  ASSERT_TRUE(tiled_for_cache(A.with_sizes({{"T", 24}}), type_of(x)));
  const ConfigScope scope(without_cache_tiles());
  const Tensor expected = A.copy()(x);
  const ConfigScope cut({.rewrites_excluding = std::vector<std::string>{}});
  EXPECT_TRUE(same_bits(A.copy()(x), expected));
}

TEST_F(CacheTiles, TheRestOfASumKeepsItsOrder) {
  const NamedLinop N = sense(maps(24)).N() + 0.25 * Identity("NyNx");
  expect_smaller_and_same(N, random({kSide, kSide}, DType::complex64));
}

TEST_F(CacheTiles, OperatorsAroundTheRunAreAppliedOnce) {
  const NamedLinop P = Fft(2, {.grid = Grid{"NyNx", "NyNx"}});
  const NamedLinop A = Chain(P, sense(maps(24)).N(), P.H());
  const auto tiled = tiled_for_cache(A, kImage);
  ASSERT_TRUE(tiled);
  ASSERT_EQ(tiled->linop_count(), 3U);
  EXPECT_EQ((*tiled)[0].type().name, "Fft");
  EXPECT_EQ((*tiled)[1].type().name, "Add");
  expect_smaller_and_same(A, random({kSide, kSide}, DType::complex64));
}

// No tile fits a cache; one coil in place of 32 is 260 MB less.
TEST_F(CacheTiles, TilesThatTakeAsLongSaveMemory) {
  set_tile_caches(1 << 10, 4 << 10);
  const auto is_tiled = [&](index_t coils, index_t side) {
    const NamedLinop N = sense(Tensor::zeros({coils, side, side}, DType::complex64)).N();
    return tiled_for_cache(N, {DType::complex64, {side, side}, {}}).has_value();
  };
  EXPECT_TRUE(is_tiled(32, 1024));
  EXPECT_FALSE(is_tiled(4, 256));
}

TEST_F(CacheTiles, WhatGainsNothingIsLeftAlone) {
  const NamedLinop small = sense(maps(2)).N();
  set_tile_caches(1 << 20, 256 << 10);
  EXPECT_FALSE(tiled_for_cache(small, kImage));
  set_tile_caches(64 << 10, 256 << 10);
  // Elementwise steps are fused to one, which stores no intermediate values.
  const Tensor weights = random({kSide, kSide}, DType::float32);
  const NamedLinop D = Chain(Dense(maps(8), "CNyNx,NyNx->CNyNx"), Diagonal(weights, "CNyNx"),
                             Dense(maps(8), "CNyNx,NyNx->CNyNx").H());
  EXPECT_FALSE(tiled_for_cache(D, kImage));
  // Along the last axis tiles would be columns.
  const NamedLinop F = Fft(2, {.grid = Grid{"NyNx", "KyKx"}});
  const NamedLinop last =
      Chain(Dense(random({kSide, kSide, 8}, DType::complex64), "NyNxC,NyNx->NyNxC"),
            Permute("NyNxC", "CNyNx"), F);
  EXPECT_FALSE(tiled_for_cache(last, kImage));
}

TEST_F(CacheTiles, OtherOperatorsAndOrdersOfSumsAreLeftAlone) {
  const auto twice = [](const Variable& x) { return x + x; };
  const NamedLinop own = SimpleLinop({.fn = twice, .adj_fn = twice, .ishape = "CKyKx"});
  const NamedLinop A = sense(maps(8));
  EXPECT_TRUE(tiled_for_cache(A, kImage));
  EXPECT_FALSE(tiled_for_cache(Chain(A, own), kImage));
  // A sum over coils and times at once.
  const Tensor both = random({3, 8, kSide, kSide}, DType::complex64);
  const NamedLinop F = Fft(2, {.batch = "TC", .grid = Grid{"NyNx", "KyKx"}});
  const NamedLinop B = Chain(Dense(both, "TCNyNx,NyNx->TCNyNx"), F);
  EXPECT_FALSE(tiled_for_cache(B.H().with_sizes({{"T", 3}, {"C", 8}}),
                               {DType::complex64, {3, 8, kSide, kSide}, {}}));
}

TEST_F(CacheTiles, ModesBudgetsAndTheTagTurnItOff) {
  const NamedLinop N = sense(maps(24)).N();
  EXPECT_TRUE(tiled_for_cache(N, kImage));
  const auto is_off = [&](const ConfigOverrides& overrides) {
    const ConfigScope scope(overrides);
    return !tiled_for_cache(N, kImage);
  };
  EXPECT_TRUE(is_off({.rewrites_excluding = std::vector<std::string>{"fusion", "cache_tiles"}}));
  EXPECT_TRUE(is_off({.mode = "NoRewrite"}));
  EXPECT_TRUE(is_off({.budget = index_t{1} << 30}));
  EXPECT_TRUE(is_off(without_cache_tiles()));
}

TEST_F(CacheTiles, ChangedParametersAreSeen) {
  const Tensor image = random({kSide, kSide}, DType::complex64);
  NamedLinop D = Dense(maps(8), "CNyNx,NyNx->CNyNx");
  const NamedLinop A = Chain(D, Fft(2, {.batch = "C", .grid = Grid{"NyNx", "KyKx"}}),
                             Diagonal(random({kSide, kSide}, DType::float32), "CKyKx"));
  const Tensor before = A.N()(image);
  Parameter weight = D.param("weight");
  weight.set_value(maps(8) * 0.5F);
  const Tensor after = A.N()(image);
  EXPECT_FALSE(same_bits(before, after));
  const ConfigScope scope(without_cache_tiles());
  EXPECT_TRUE(same_bits(after, A.copy().N()(image)));
}

TEST_F(CacheTiles, ResultsMayBeInputs) {
  const NamedLinop N = sense(maps(8)).N();
  Tensor x = random({kSide, kSide}, DType::complex64);
  const Tensor expected = N(N(x));
  Tensor y = N(x);
  N.apply(y, y);
  EXPECT_TRUE(same_bits(y, expected));
}

TEST_F(CacheTiles, FunctionsAndGradientsUseThem) {
  const NamedLinop A = sense(maps(8));
  const Variable x = make_input(kImage, "x");
  const Variable loss = ops::sum(ops::abs2(A(x)));
  // Together they share their transforms where nothing is cut, and a spectrum that two steps read
  // is rounded before it is weighed.
  const auto apart = [&] { return function({x}, A.N()(x)); };
  const auto both = [&] { return function({x}, {Out(grad(loss, x)), Out(A.N()(x))}); };
  const Tensor image = random({kSide, kSide}, DType::complex64);
  const Tensor tiled = apart()(image).tensor();
  const auto tiled_both = both()(image);
  const ConfigScope scope(without_cache_tiles());
  EXPECT_TRUE(same_bits(tiled, apart()(image).tensor()));
  const auto whole_both = both()(image);
  for (std::size_t i = 0; i < 2; ++i) EXPECT_LE(difference(tiled_both[i], whole_both[i]), 1e-5);
}

}  // namespace
}  // namespace palimpsest
