// SPDX-License-Identifier: Apache-2.0
// Passes of arrays through a slice in cache: the rule, its workspace, and equal bits.
#include <gtest/gtest.h>

#include "kernels/arrays.hpp"
#include "kernels/fft_reference.hpp"
#include "kernels/targets.hpp"
#include "support/cache_size.hpp"

namespace palimpsest::testing {
namespace {

// Results are streamed from twice the size of the core's cache on.
class CoreCache {
 public:
  explicit CoreCache(index_t bytes) {
    set_core_cache_bytes(bytes);
    set_streaming_bytes(16 * bytes);
  }
  CoreCache(const CoreCache&) = delete;
  CoreCache& operator=(const CoreCache&) = delete;
  ~CoreCache() {
    set_core_cache_bytes(0);
    set_streaming_bytes(0);
  }
};

FftSpec dense_spec(const Extents& extents, Axes axes, DType dtype = DType::complex64) {
  FftSpec spec;
  spec.dtype = dtype;
  spec.extents = extents;
  spec.in_strides = spec.out_strides = contiguous_strides(extents);
  spec.axes = std::move(axes);
  return spec;
}

// Rows of a room are an odd number of lines of 64 bytes apart.
TEST(FftRooms, AreSlicesOfResultsThatExceedTheCaches) {
  const std::size_t slice = 64 * (64 + 8) * 8;  // 36,864 bytes: more than half of 64 KiB
  {
    const CoreCache larger(1 << 17);
    EXPECT_EQ(fft_workspace_bytes(dense_spec({8, 64, 64}, {1, 2}), 1), slice);
    EXPECT_EQ(fft_workspace_bytes(dense_spec({8, 64, 64}, {1, 2}), 3), 3 * slice);
    EXPECT_EQ(fft_workspace_bytes(dense_spec({8, 64, 64}, {1, 2}), 9), 8 * slice);
    EXPECT_EQ(fft_workspace_bytes(dense_spec({7, 64, 64}, {1, 2}), 3), 0U);  // fits twice
    EXPECT_EQ(fft_workspace_bytes(dense_spec({8, 64, 64}, {2}), 3), 0U);     // one pass
    EXPECT_EQ(fft_workspace_bytes(dense_spec({9, 64, 63}, {1, 2}), 3), 0U);  // parts of lines
    FftSpec in_place = dense_spec({8, 64, 64}, {1, 2});
    in_place.in_place = true;
    EXPECT_EQ(fft_workspace_bytes(in_place, 3), 0U);
  }
  const CoreCache cache(1 << 16);
  EXPECT_EQ(fft_workspace_bytes(dense_spec({8, 64, 64}, {1, 2}), 2), 0U);
  // Slices of volumes, of one at a time.
  const std::size_t of_volume = 48 * 56 * 8;
  EXPECT_EQ(fft_workspace_bytes(dense_spec({2, 40, 48, 48}, {1, 2, 3}), 2), 2 * of_volume);
  EXPECT_EQ(fft_workspace_bytes(dense_spec({2, 40, 48, 48}, {1, 2, 3}), 50), 40 * of_volume);
  // Rows of another order in memory: none, although the announcement does not know strides.
  FftSpec turned = dense_spec({9, 40, 48}, {1, 2});
  const std::size_t announced = fft_workspace_bytes(turned, 1);
  EXPECT_GT(announced, 0U);
  turned.in_strides = turned.out_strides = {40 * 48, 1, 40};
  EXPECT_EQ(fft_workspace_bytes(turned, 1), announced);
}

TEST(FftRooms, ResultsHaveTheBitsOfPassesInPlace) {
  Random random(91);
  const std::vector<std::pair<Extents, Axes>> cases{
      {{9, 40, 64}, {1, 2}},    {{5, 3, 32, 48}, {2, 3}},     {{14, 45, 32}, {1, 2}},
      {{7, 30, 2, 40}, {1, 3}}, {{40, 48, 48}, {0, 1, 2}},    {{2, 30, 48, 48}, {1, 2, 3}},
      {{12, 64, 40}, {2, 1}},   {{60, 16, 20, 8}, {0, 1, 2}}, {{40, 16, 8, 16}, {1, 2, 3}}};
  for (const DType dtype : {DType::complex64, DType::complex128}) {
    const index_t cache_bytes = dtype == DType::complex64 ? 1 << 16 : 1 << 17;
    for (const auto& [extents, axes] : cases) {
      for (const bool centered : {false, true}) {
        Array x(dtype, extents), y(dtype, extents), z(dtype, extents);
        x.fill_normal(random);
        FftSpec spec = dense_spec(extents, axes, dtype);
        spec.centered = centered;
        spec.scale = 0.25;
        const CoreCache all(index_t{1} << 40);
        EXPECT_EQ(fft_workspace_bytes(spec, 2), 0U);
        execute(fft_plan(spec), x.address(0), y.address(0));
        const auto expected = elements(y);
        const CoreCache little(cache_bytes);
        const std::size_t bytes = fft_workspace_bytes(spec, 2);
        ASSERT_GT(bytes, 0U) << describe(spec);
        std::vector<std::byte> rooms(bytes + 64, std::byte{0x5a});
        const FftOperands operands{.workspace = std::span(rooms).first(bytes)};
        for (const std::int64_t target : vector_targets()) {
          const TargetScope scope(target);
          expect_same_on_threads([&] {
            execute(fft_plan(spec), x.address(0), z.address(0), operands);
            return elements(z);
          });
          EXPECT_EQ(elements(z), expected) << describe(spec);
        }
        const auto is_intact = [](std::byte b) { return b == std::byte{0x5a}; };
        EXPECT_TRUE(std::all_of(rooms.end() - 64, rooms.end(), is_intact)) << describe(spec);
      }
    }
  }
}

}  // namespace
}  // namespace palimpsest::testing
