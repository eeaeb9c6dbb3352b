// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/compile/streaming.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "palimpsest/compile/function.hpp"
#include "palimpsest/ops/ops.hpp"
#include "support/resident_file.hpp"

namespace palimpsest {
namespace {

TEST(StreamedBytes, AreThoseThatOneStepReadsOfArguments) {
  const Variable x = make_input({DType::float64, {kUnknown, kUnknown}, {}}, "x");
  const Tensor value = Tensor::ones({16, 32});
  const auto streamed = [&](const Variable& y, bool arguments = true) {
    const Function f = function({x}, y);
    return streamed_bytes(f, f.plan(std::vector<Tensor>{value}), arguments);
  };
  EXPECT_EQ(streamed(ops::roll(x, 1, 0)), 4096);
  EXPECT_EQ(streamed(ops::roll(ops::flip(x, {0, 1}), 1, 0)), 4096);
  EXPECT_EQ(streamed(ops::roll(x(slice(8, 16), all), 1, 0)), 2048);
  EXPECT_EQ(streamed(ops::roll(x, 1, 0), false), 0);
}

TEST(Streaming, WithABudgetWhatAStepReadOfAFileLeavesMemory) {
  const std::string path =
      ::testing::TempDir() + "palimpsest_streaming_" + std::to_string(getpid()) + ".bin";
  constexpr index_t kCount = index_t{1} << 20, kBytes = 8 * kCount;
  {
    std::ofstream file(path, std::ios::binary);
    const std::string row(8192, '\0');
    for (index_t k = 0; k < kBytes / 8192; ++k) file << row;
  }
  const auto mapped = [&] {
    return Tensor(Storage::from_file(path, 0, static_cast<std::size_t>(kBytes)), DType::float64,
                  {kCount}, {1});
  };
  const Variable x = dvector("x");
  for (const bool is_limited : {true, false}) {
    FunctionOptions options;
    if (is_limited) options.budget_bytes = kBytes / 2;
    const SharedVariable s = shared(mapped(), {.borrow = true});
    const Function of_argument = function({x}, ops::sum(x), options),
                   of_container = function({}, ops::sum(s.var()), options);
    const Tensor argument = mapped();
    const auto kept_by = [&](auto&& call) {
      const auto resident = [&] { return static_cast<index_t>(testing::resident_bytes_of(path)); };
      const index_t before = resident();
      call();
      return resident() - before;
    };
    const index_t argument_bytes =
        kept_by([&] { EXPECT_EQ(of_argument(argument)[0].item<double>(), 0.0); });
    const index_t container_bytes =
        kept_by([&] { EXPECT_EQ(of_container()[0].item<double>(), 0.0); });
    for (const index_t bytes : {argument_bytes, container_bytes}) {
      if (is_limited) {
        EXPECT_LT(bytes, kBytes / 4);
      } else {
        EXPECT_GT(bytes, kBytes * 3 / 4);
      }
    }
  }
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace palimpsest
