// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/linop/split/batch.hpp"

#include "linop_support.hpp"
#include "palimpsest/linop/containers/concat.hpp"
#include "palimpsest/linop/operators/to_device.hpp"
#include "palimpsest/memory/allocator.hpp"
#include "palimpsest/plan/plan.hpp"

namespace palimpsest {
namespace {

using testing::difference;
using testing::random;

NamedLinop sense(index_t coils = 5) {
  return Chain(Dense(random({coils, 6, 8}), "CNyNx,NyNx->CNyNx"),
               Fft(2, {.batch = "C", .grid = Grid{"NyNx", "KyKx"}}),
               Diagonal(random({6, 8}, DType::float64), "CKyKx"));
}

TEST(SplitLinop, GivesAGridOfTilesInTheOrderOfTheSizes) {
  const NamedLinop A = Dense(random({5, 7}), "MN,N->M");
  const SplitGrid grid = split_linop(A, {{"N", 3}, {"M", 2}});
  EXPECT_EQ(grid.shape, (Extents{3, 3}));
  ASSERT_EQ(grid.tiles.size(), 9u);
  EXPECT_EQ(grid.tiles[8].size("N"), 1);
  EXPECT_EQ(grid.tiles[8].size("M"), 1);
  EXPECT_EQ(*grid.input_slices[4].at("N").start, 3);
  EXPECT_FALSE(grid.input_slices[4].contains("M"));
  EXPECT_EQ(*grid.output_slices[4].at("M").start, 2);
  EXPECT_EQ(*grid.output_slices[2].at("M").stop, 5);
}

TEST(SplitLinop, RefusesWhatItCannotDo) {
  const NamedLinop A = Dense(random({5, 7}), "MN,T N->M T");
  testing::expect_error<ValueError>([&] { split_linop(A, {{"Q", 2}}); }, "no such dimension");
  testing::expect_error<ValueError>([&] { split_linop(A, {{"N", 2}, {"N", 3}}); }, "twice");
  testing::expect_error<ValueError>([&] { split_linop(A, {{"N", 0}}); }, "at least 1");
  testing::expect_error<ShapeError>([&] { split_linop(A, {{"T", 1}}); }, "is unknown");
  testing::expect_error<SplitError>(
      [&] {
        split_linop(Fft(1).with_sizes({{"Nx", 4}}), {{"Nx", 2}});
      },
      "cannot split");
}

TEST(CreateBatchedLinop, EqualsTheOperatorWhateverIsCut) {
  const NamedLinop A = Dense(random({4, 5, 7}), "BMN,BN->BM");
  const Tensor x = random({4, 7}), y = random({4, 5});
  for (const TileSizes& sizes : {TileSizes{{"N", 2}}, TileSizes{{"M", 3}}, TileSizes{{"B", 1}},
                                 TileSizes{{"M", 2}, {"N", 3}}, TileSizes{{"N", 3}, {"B", 3}}}) {
    const NamedLinop batched = create_batched_linop(A, BatchSpec{sizes});
    EXPECT_LE(difference(batched(x), A(x)), 1e-14) << batched.str();
    EXPECT_LE(difference(batched.H()(y), A.H()(y)), 1e-14);
    EXPECT_LE(difference(batched.N()(x), A.N()(x)), 1e-14);
    EXPECT_EQ(batched.size("N"), 7);
  }
}

TEST(CreateBatchedLinop, DimensionsWithoutNamesAreCutByTheirNumbers) {
  const NamedLinop A = Dense(random({4, 6}));
  const Tensor x = random({6});
  for (const NamedLinop& B : {A, 2.0 * A, A + A}) {
    EXPECT_EQ(B.size("(1)"), 4);
    EXPECT_EQ(B.size("(2)"), 6);
    const NamedLinop batched = create_batched_linop(B, BatchSpec{{{"(1)", 1}, {"(2)", 4}}});
    EXPECT_LE(difference(batched(x), B(x)), 1e-14) << batched.str();
    EXPECT_LE(difference(batched.H()(B(x)), B.H()(B(x))), 1e-14);
  }
  // The dimension between two operators is another one than the output.
  const NamedLinop twice = Chain(Dense(random({5, 6})), Dense(random({4, 5})));
  EXPECT_EQ(twice.size("(1)"), 4);
  EXPECT_EQ(twice.size("(2)"), 6);
  testing::expect_error<SplitError>([&] { twice.split({{"(2)", slice(0, 2)}}); }, "cannot split");
}

TEST(CreateBatchedLinop, SeveralLevelsEqualTheOperator) {
  const NamedLinop A = sense();
  const NamedLinop batched =
      create_batched_linop(A, {BatchSpec{{{"C", 3}}}, BatchSpec{{{"C", 1}}}});
  const Tensor x = random({6, 8});
  EXPECT_LE(difference(batched(x), A(x)), 1e-14);
  const NamedLinop normal =
      create_batched_linop(A.N(), {BatchSpec{{{"C", 2}}}, BatchSpec{{{"C", 1}}}});
  EXPECT_EQ(normal.type().name, "Add");
  EXPECT_LE(difference(normal(x), A.N()(x)), 1e-14);
}

// -- several memory spaces ------------------------------------------------------------------------

Device cpu(int i) { return {DeviceType::cpu, static_cast<std::int16_t>(i)}; }

TEST(TilingStrategy, CutsAtTheGivenEdges) {
  const NamedLinop A = Dense(random({10, 7}), "MN,N->M");
  const Tensor x = random({7});
  const NamedLinop tiled =
      create_batched_linop(A, TilingStrategy{.bounds = {{"M", {0, 2, 9, 10}}, {"N", {0, 7}}}});
  EXPECT_LE(difference(tiled(x), A(x)), 1e-14);
  const SplitGrid grid = split_linop_at(A, {{"M", {0, 2, 9, 10}}});
  EXPECT_EQ(grid.shape, Extents{3});
  EXPECT_EQ(grid.tiles[1].size("M"), 7);
  for (const Extents& wrong : {Extents{1, 10}, Extents{0, 9}, Extents{0, 5, 5, 10}, Extents{0},
                               Extents{}, Extents{0, 11}}) {
    testing::expect_error<ValueError>([&] { split_linop_at(A, {{"M", wrong}}); }, "bounds");
  }
  testing::expect_error<ValueError>([&] { split_linop_at(A, {{"Q", {0, 1}}}); }, "Q");
}

TEST(TilingStrategy, GivesEachTileThreeDevices) {
  const Device host, one = Device::parse("cpu:1"), two = Device::parse("cpu:2");
  const NamedLinop A = Dense(random({10, 7}), "MN,N->M");
  TilingStrategy strategy{.bounds = {{"M", {0, 2, 9, 10}}}, .devices = {one, two}};
  testing::expect_error<ValueError>([&] { strategy.distribute("N"); }, "bounds");
  strategy.place_all(host).distribute("M");
  EXPECT_EQ(strategy.roles[1].compute, two);
  EXPECT_EQ(strategy.roles[2].compute, one);
  EXPECT_EQ(strategy.roles[2].input, host);
  const Tensor x = random({7});
  const NamedLinop tiled = create_batched_linop(A, strategy);
  EXPECT_LE(difference(tiled(x), A(x)), 1e-14);
  const Plan plan = tiled.plan({x.dtype(), x.shape(), {}});
  EXPECT_GT(plan.peak_bytes_on(one), 0);
  EXPECT_GT(plan.peak_bytes_on(two), 0);

  // All on one device, input and result included.
  strategy.devices = {one};
  strategy.distribute("M").copy_role(TileRole::compute, TileRole::input);
  strategy.copy_role(TileRole::compute, TileRole::output);
  const Tensor there = create_batched_linop(A, strategy)(x.to(one));
  EXPECT_EQ(there.device(), one);
  EXPECT_LE(difference(there.to(host), A(x)), 1e-14);

  strategy.roles.pop_back();
  testing::expect_error<ValueError>([&] { create_batched_linop(A, strategy); }, "roles");
  strategy.devices.clear();
  testing::expect_error<ValueError>([&] { strategy.distribute("M"); }, "devices");
}

TEST(DeviceGrid, IsRepeatedAlongTheLastAxes) {
  const DeviceGrid two{cpu(0), cpu(1)};
  const std::vector<int> expected{0, 1, 0, 1, 0};
  for (index_t row = 0; row < 3; ++row) {
    for (index_t column = 0; column < 5; ++column) {
      EXPECT_EQ(two.at({row, column}), cpu(expected[static_cast<std::size_t>(column)]));
    }
  }
  const DeviceGrid square({2, 2}, {cpu(0), cpu(1), cpu(2), cpu(3)});
  EXPECT_EQ(square.at({3, 4}), cpu(2));
  testing::expect_error<ValueError>([&] { square.at({1}); }, "at least 2");
  testing::expect_error<ValueError>([&] { DeviceGrid({2}, {cpu(0)}); }, "devices");
}

TEST(CreateBatchedLinop, OnThreeMemorySpacesEqualsTheOperator) {
  const NamedLinop A = sense(7);
  const Tensor x = random({6, 8});
  const BatchSpec outer{{{"C", 4}}, {cpu(1), cpu(2)}}, inner{{{"C", 1}}, {cpu(2), cpu(0)}};
  for (const auto& specs : {std::vector{outer}, std::vector{outer, inner}}) {
    const NamedLinop batched = create_batched_linop(A, specs);
    EXPECT_LE(difference(batched(x), A(x)), 1e-14) << batched.str();
    EXPECT_EQ(batched(x).device(), cpu(0));
    const Tensor y = random({7, 6, 8});
    EXPECT_LE(difference(batched.H()(y), A.H()(y)), 1e-14);
    EXPECT_LE(difference(batched.N()(x), A.N()(x)), 1e-14);
  }
}

TEST(CreateBatchedLinop, ATileOnADeviceHasTheBytesThatItUsesThere) {
  const Tensor W = random({8, 64});
  const NamedLinop A = Dense(W, "MN,N->M");
  const MemoryScope there(cpu(3));
  const NamedLinop batched = create_batched_linop(A, BatchSpec{{{"M", 4}}, {cpu(0), cpu(3)}});
  EXPECT_EQ(there.live_bytes(), 4 * 64 * 16);  // one tile of four rows
  const Tensor x = random({64});
  EXPECT_LE(difference(batched(x), A(x)), 1e-14);
}

TEST(CreateBatchedLinop, WhatTilesShareIsCopiedOnce) {
  const NamedLinop A = Chain(Dense(random({6, 32}), "CN,N->C N"), Diagonal(random({32}), "C N"));
  const MemoryScope there(cpu(4));
  const NamedLinop batched = create_batched_linop(A, BatchSpec{{{"C", 2}}, {cpu(4)}});
  EXPECT_EQ(there.live_bytes(), (6 * 32 + 32) * 16);
}

TEST(CreateBatchedLinop, ThePlanKnowsThePeakOfEverySpace) {
  const NamedLinop A = create_batched_linop(sense(6).N(), BatchSpec{{{"C", 1}}, {cpu(1), cpu(2)}});
  const Plan plan = A.plan({DType::complex128, {6, 8}, {}});
  ASSERT_EQ(plan.arenas.size(), 3u);
  index_t sum = 0;
  const Tensor x = random({6, 8});
  for (const int i : {0, 1, 2}) {
    const NamedLinop fresh = A.copy();
    const MemoryScope scope(cpu(i));
    const Tensor y = fresh(x);
    EXPECT_EQ(static_cast<index_t>(scope.peak_bytes()), plan.peak_bytes_on(cpu(i))) << i;
    sum += plan.peak_bytes_on(cpu(i));
  }
  EXPECT_EQ(plan.peak_bytes, sum);
}

TEST(ToDevice, PrintsTheDevices) {
  const NamedLinop A = ToDevice(cpu(0), cpu(1), "A");
  EXPECT_EQ(A.str(), "ToDevice(A -> A) cpu -> cpu:1");
  EXPECT_EQ(A.H().str(), "ToDevice.H(A -> A) cpu:1 -> cpu");
}

TEST(ToDevice, RefusesWhatIsElsewhere) {
  const NamedLinop A = ToDevice(cpu(1), cpu(2), "A");
  testing::expect_error<DeviceError>([&] { A(random({3})); }, "expected cpu:1");
  EXPECT_EQ(A.N().type().name, "Identity");
  const Tensor x = random({3}).to(cpu(1));
  EXPECT_EQ(A.H()(A(x).to(cpu(2))).shape(), Extents{3});
  const NamedLinop none = ToDevice(cpu(0), cpu(0), "A");
  const Plan plan = none.plan({DType::complex128, {3}, {}});
  EXPECT_TRUE(plan.steps.empty());
}

TEST(CreateBatchedLinop, SizesThatTheOperatorLacksAreGiven) {
  const NamedLinop A = Dense(random({5, 7}), "MN,T N->M T");
  const NamedLinop batched = create_batched_linop(A, BatchSpec{{{"T", 2}}}, {.sizes = {{"T", 3}}});
  const Tensor x = random({3, 7});
  EXPECT_LE(difference(batched(x), A(x)), 1e-14);
  EXPECT_EQ(batched.type().name, "Concat");
}

TEST(CreateBatchedLinop, ASumOfCoilsHoldsOneCoilAtATime) {
  const NamedLinop N = sense(32).N();
  const TensorType x{DType::complex128, {6, 8}, {}};
  const index_t image = 6 * 8 * 16;
  const index_t whole = N.plan(x).peak_bytes;
  const index_t one = create_batched_linop(N, BatchSpec{{{"C", 1}}}).plan(x).peak_bytes;
  EXPECT_GE(whole, 32 * image);
  // The sum, a coil, and the workspace of its transform.
  EXPECT_LE(one, 4 * image);
}

}  // namespace
}  // namespace palimpsest
