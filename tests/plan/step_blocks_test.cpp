// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/plan/step_blocks.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <nlohmann/json.hpp>
#include <random>
#include <set>

#include "palimpsest/base/config.hpp"
#include "palimpsest/compile/function.hpp"
#include "palimpsest/memory/allocator.hpp"
#include "palimpsest/ops/ops.hpp"
#include "palimpsest/plan/position.hpp"
#include "palimpsest/run/profile.hpp"
#include "support/window.hpp"

namespace palimpsest {
namespace {

constexpr index_t kSmallCache = 64 << 10, kLargeCache = index_t{1} << 40;

class StepBlocksTest : public ::testing::Test {
 protected:
  StepBlocksTest() { set_cache_of_blocks(kSmallCache); }
  ~StepBlocksTest() override { set_cache_of_blocks(0); }
};

Tensor random(const Extents& shape, DType dtype, unsigned seed) {
  return Tensor::random_normal(shape, dtype, RandomKey{seed});
}

bool same_bits(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() && a.dtype() == b.dtype() &&
         std::memcmp(a.raw_data(), b.raw_data(), static_cast<std::size_t>(a.nbytes())) == 0;
}

// Results of new functions with a cache of that size, on that many threads.
std::vector<Tensor> results(std::span<const Variable> inputs, std::span<const Variable> outputs,
                            std::span<const Tensor> values, index_t cache, index_t threads) {
  set_cache_of_blocks(cache);
  const ConfigScope scope({.threads = threads, .parallel_grain = index_t{1} << 40});
  std::vector<Out> outs(outputs.begin(), outputs.end());
  const Function f =
      function({inputs.begin(), inputs.end()}, outs, {.on_unused_input = Reaction::ignore});
  std::vector<Tensor> made(outputs.size());
  for (int call = 0; call < 2; ++call) f.call(values, made);
  set_cache_of_blocks(kSmallCache);
  return made;
}

TEST_F(StepBlocksTest, SoftmaxRunsInBlocksOfRows) {
  const Variable x = make_input({DType::float32, {kUnknown, kUnknown}, {}}, "x");
  const Tensor value = random({300, 257}, DType::float32, 1);
  const ConfigScope scope({.threads = 1});
  const Function f = function({x}, ops::softmax(x, 1));
  const Plan& plan = f.plan(std::vector<Tensor>{value});
  ASSERT_EQ(plan.blocks.size(), 1u);
  EXPECT_EQ(plan.blocks[0].first, 0);
  EXPECT_EQ(at(plan.blocks[0].last), plan.steps.size() - 1);
  EXPECT_EQ(plan.blocks[0].rows, 300);
  EXPECT_EQ(plan.blocks[0].blocks, 43);  // 7 rows of 2 x 257 numbers and 8 bytes
  EXPECT_NE(plan.to_string().find("steps 0 to 4 run together, for "), std::string::npos);
  const auto json = nlohmann::json::parse(plan.to_json());
  EXPECT_EQ(json["blocks"][0]["rows"], 300);
  const std::vector<Variable> in{x}, out{ops::softmax(x, 1)};
  const Tensor whole = results(in, out, std::array{value}, kLargeCache, 1)[0];
  for (const index_t threads : {1, 2, 4}) {
    EXPECT_TRUE(same_bits(results(in, out, std::array{value}, kSmallCache, threads)[0], whole));
  }
  testing::Window destination({300, 257}, DType::float32);
  f.call_into(destination, value);
  EXPECT_TRUE(same_bits(destination, whole));
  Tensor both = value.clone();
  f.call_into(both, both);
  EXPECT_TRUE(same_bits(both, whole));
}

TEST_F(StepBlocksTest, ArraysThatFitTheCacheRunWhole) {
  const Variable x = make_input({DType::float32, {kUnknown, kUnknown}, {}}, "x");
  const Function f = function({x}, ops::softmax(x, 1));
  EXPECT_TRUE(f.plan(std::vector<TensorType>{{DType::float32, {20, 50}, {}}}).blocks.empty());
  // Rows longer than the cache.
  EXPECT_TRUE(f.plan(std::vector<TensorType>{{DType::float32, {9, 9001}, {}}}).blocks.empty());
}

TEST_F(StepBlocksTest, LongChainsAreSeveralGroups) {
  const Variable x = make_input({DType::float32, {kUnknown, kUnknown}, {}}, "x");
  Variable y = x;
  for (int i = 0; i < 40; ++i) y = ops::softmax(y, 1);
  const Tensor value = random({300, 257}, DType::float32, 2);
  const std::vector<Variable> in{x}, out{y};
  const ConfigScope scope({.threads = 1});
  const Function f = function({x}, y);
  const Plan& plan = f.plan(std::vector<Tensor>{value});
  EXPECT_GT(plan.blocks.size(), 1u);
  for (std::size_t i = 1; i < plan.blocks.size(); ++i) {
    EXPECT_GT(plan.blocks[i].first, plan.blocks[i - 1].last);
  }
  EXPECT_TRUE(same_bits(results(in, out, std::array{value}, kSmallCache, 2)[0],
                        results(in, out, std::array{value}, kLargeCache, 1)[0]));
}

TEST_F(StepBlocksTest, PeakIsThePlannedOneAndCallsAllocateNothingElse) {
  const Variable x = make_input({DType::float32, {kUnknown, kUnknown}, {}}, "x");
  const ConfigScope scope({.threads = 2});
  const Function f = function({x}, Out(ops::softmax(x, 1), {.borrow = true}));
  const Tensor value = random({300, 257}, DType::float32, 1);
  {
    const MemoryScope memory;
    f(value);
    EXPECT_EQ(static_cast<index_t>(memory.peak_bytes()),
              f.plan(std::vector<Tensor>{value}).peak_bytes);
  }
  const MemoryScope memory;
  f(value);
  EXPECT_EQ(memory.peak_bytes(), 0u);
}

TEST_F(StepBlocksTest, TimesOfStepsAddUpToTheTimeOfTheCall) {
  const Variable x = make_input({DType::float32, {kUnknown, kUnknown}, {}}, "x");
  const ConfigScope scope({.threads = 2});
  const Function f = function({x}, ops::softmax(x, 1), {.profile = true});
  f(random({300, 257}, DType::float32, 1));
  const Profile profile = f.profile();
  ASSERT_EQ(profile.plans.at(0).steps.size(), 5u);
  for (const auto& step : profile.plans[0].steps) EXPECT_GT(step.seconds, 0);
  EXPECT_LE(profile.step_seconds, profile.call_seconds);
}

// Bytes of the arena that a step touches for one row.
struct Touched {
  index_t begin, end;
  bool writes;
};
void add_touched(const Plan& plan, int slot, index_t row, index_t rows, bool writes,
                 std::vector<Touched>& list) {
  const Slot& s = plan.slots[at(slot)];
  const PlannedBuffer& buffer = plan.buffers[at(s.buffer)];
  if (buffer.kind != BufferKind::arena) return;
  const Layout& layout = s.layout;
  const auto item = static_cast<index_t>(item_size(layout.dtype));
  index_t low = 0, high = 0;
  for (std::size_t k = 0; k < layout.extents.size(); ++k) {
    const bool is_cut = k == 0 && layout.extents[0] == rows;
    const index_t at_row = is_cut ? row * layout.strides[0] : 0;
    const index_t reach = is_cut ? 0 : (layout.extents[k] - 1) * layout.strides[k];
    low += at_row + std::min<index_t>(reach, 0);
    high += at_row + std::max<index_t>(reach, 0);
  }
  const index_t base = buffer.offset + layout.byte_offset;
  list.push_back({base + low * item, base + (high + 1) * item, writes});
}

bool writes_into(const std::vector<Touched>& from, const std::vector<Touched>& other) {
  for (const Touched& x : from) {
    for (const Touched& y : other) {
      if (x.writes && x.begin < y.end && y.begin < x.end) return true;
    }
  }
  return false;
}

// No step of a group writes, for one row, what another one touches for another row.
void expect_separate_rows(const Plan& plan) {
  for (const StepBlocks& group : plan.blocks) {
    std::vector<std::vector<Touched>> of_row(static_cast<std::size_t>(group.rows));
    for (int i = group.first; i <= group.last; ++i) {
      for (index_t row = 0; row < group.rows; ++row) {
        auto& list = of_row[static_cast<std::size_t>(row)];
        for (int s : plan.steps[at(i)].inputs) add_touched(plan, s, row, group.rows, false, list);
        for (int s : plan.steps[at(i)].outputs) add_touched(plan, s, row, group.rows, true, list);
      }
    }
    for (std::size_t a = 0; a < of_row.size(); ++a) {
      for (std::size_t b = 0; b < of_row.size(); ++b) {
        ASSERT_FALSE(a != b && writes_into(of_row[a], of_row[b])) << "rows " << a << ", " << b;
      }
    }
  }
}

// Expressions of elementwise functions and reductions over the last axes.
std::vector<Variable> random_graph(const std::vector<Variable>& inputs, std::mt19937& draw) {
  std::vector<Variable> made = inputs;
  const auto pick = [&] { return made[draw() % made.size()]; };
  const auto steps = 4 + static_cast<int>(draw() % 8);
  for (int i = 0; i < steps; ++i) {
    const Variable a = pick(), b = pick();
    const auto axes = draw() % 2 == 0 ? Axes{1, 2} : Axes{2};
    switch (draw() % 8) {
      case 0:
        made.push_back(ops::exp(ops::minimum(a, 1.0)));
        break;
      case 1:
        made.push_back(a * b);
        break;
      case 2:
        made.push_back((a - b).astype(draw() % 2 == 0 ? DType::float32 : DType::float64));
        break;
      case 3:
        made.push_back(ops::sum(a, {.axes = axes, .keepdims = true}) * b);
        break;
      case 4:
        made.push_back(a - ops::max(a, {.axes = axes, .keepdims = true}));
        break;
      case 5:
        made.push_back(ops::softmax(a, 2));
        break;
      case 6:
        made.push_back(a + ops::mean(b, {.axes = axes, .keepdims = true}));
        break;
      default:
        made.push_back(ops::sqrt(ops::abs(a)));
        break;
    }
  }
  std::vector<Variable> outputs{made.back()};
  outputs.push_back(ops::sum(pick(), {.axes = Axes{2}}));
  if (draw() % 2 == 0) outputs.push_back(made[made.size() - 2]);
  return outputs;
}

TEST_F(StepBlocksTest, RandomExpressionsHaveTheSameBits) {
  std::mt19937 draw(11);
  int with_blocks = 0;
  for (int round = 0; round < 400; ++round) {
    SCOPED_TRACE(round);
    const auto extent = [&](index_t most) { return 1 + static_cast<index_t>(draw()) % most; };
    const index_t n = 40 + extent(120), m = extent(4), k = extent(40);
    const DType dtype = draw() % 2 == 0 ? DType::float32 : DType::float64;
    const std::vector<Tensor> values{
        random({n, m, k}, dtype, draw()), random({n, m, k}, DType::float32, draw()),
        random({1, m, k}, dtype, draw()), random({n, 1, 1}, DType::float64, draw())};
    std::vector<Variable> inputs;
    for (const Tensor& t : values) {
      Extents known(3, kUnknown);
      for (std::size_t i = 0; i < 3; ++i) {
        if (t.shape()[i] == 1) known[i] = 1;
      }
      inputs.push_back(make_input({t.dtype(), known, {}}));
    }
    const std::vector<Variable> outputs = random_graph(inputs, draw);
    const std::vector<Tensor> whole = results(inputs, outputs, values, kLargeCache, 1);
    for (const index_t threads : {1, 2}) {
      const std::vector<Tensor> cut = results(inputs, outputs, values, kSmallCache, threads);
      for (std::size_t i = 0; i < whole.size(); ++i) EXPECT_TRUE(same_bits(cut[i], whole[i])) << i;
    }
    const ConfigScope scope({.threads = 1});
    const Function f =
        function({inputs.begin(), inputs.end()}, std::vector<Out>(outputs.begin(), outputs.end()),
                 {.on_unused_input = Reaction::ignore});
    const Plan& plan = f.plan(values);
    with_blocks += plan.blocks.empty() ? 0 : 1;
    expect_separate_rows(plan);
  }
  EXPECT_GT(with_blocks, 60);
}

}  // namespace
}  // namespace palimpsest
