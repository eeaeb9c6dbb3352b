// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/compile/streaming.hpp"

#include <gtest/gtest.h>

#include "palimpsest/compile/function.hpp"
#include "palimpsest/ops/ops.hpp"

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

}  // namespace
}  // namespace palimpsest
