// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/plan/plan.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "palimpsest/base/config.hpp"
#include "palimpsest/compile/function.hpp"
#include "palimpsest/memory/allocator.hpp"
#include "palimpsest/ops/ops.hpp"
#include "palimpsest/plan/loop_plan.hpp"
#include "palimpsest/plan/part_places.hpp"

namespace palimpsest {
namespace {

struct PlanTest : ::testing::Test {
  Variable x = make_input({DType::complex64, {kUnknown, kUnknown}, {}}, "x");
  TensorType type{DType::complex64, {16, 32}, {}};
  Function f = function({x}, {ops::sum(ops::abs2(ops::fft(x, {0, 1})))});
};

TEST_F(PlanTest, IsMadeForATypeWithoutRunning) {
  const Plan& plan = f.plan(std::vector<TensorType>{type});
  EXPECT_EQ(plan.peak_bytes, plan.arena_bytes + plan.output_bytes + plan.update_bytes);
  EXPECT_EQ(plan.output_bytes, 4);
  EXPECT_GE(plan.arena_bytes, plan.lower_bound_bytes);
  EXPECT_LE(plan.peak_bytes, plan.no_reuse_bytes);
  EXPECT_EQ(&plan, &f.plan(std::vector<TensorType>{type}));
  EXPECT_THROW(f.plan(std::vector<TensorType>{x.type()}), ShapeError);
}

TEST_F(PlanTest, TakesTheGrainOfLanesFromTheConfig) {
  const ConfigScope scope({.parallel_grain = 77});
  EXPECT_EQ(function({x}, ops::exp(x)).plan(std::vector<TensorType>{type}).parallel_grain, 77);
}

TEST_F(PlanTest, ListsABufferOnceForAStepThatReadsItTwice) {
  const Variable turned = ops::roll(x, 1, 0);
  const Function twice = function({x}, {ops::add(x, x), ops::roll(turned * turned, 1, 0)});
  const Plan& plan = twice.plan(std::vector<TensorType>{type});
  for (const PlannedStep& step : plan.steps) {
    const std::vector<BufferUse> uses = uses_of(plan, step);
    for (std::size_t k = 1; k < uses.size(); ++k) {
      EXPECT_NE(uses[k - 1].buffer, uses[k].buffer);
    }
  }
}

TEST_F(PlanTest, PrintsBuffersAndSteps) {
  const std::string text = f.plan(std::vector<TensorType>{type}).to_string();
  EXPECT_NE(text.find("peak "), std::string::npos) << text;
  EXPECT_NE(text.find("Fft"), std::string::npos) << text;
  EXPECT_NE(text.find("argument"), std::string::npos) << text;
}

TEST_F(PlanTest, OfTheBodyOfALoopStandsIndentedBelowItsStep) {
  const Variable s = make_input({DType::float64, {1000}, {}}, "s");
  const ops::LoopResult r = ops::loop(
      [](const std::vector<Variable>& v) -> std::vector<Variable> {
        return {ops::roll(v[0], 1, 0), ops::exp(v[0])};
      },
      {.states = {s}, .n_steps = 50});
  const Function looped = function({s}, r.last(0).named("turned"));
  const Plan& plan = looped.plan(std::vector<TensorType>{s.type()});
  std::string inner, line;
  for (std::istringstream text(plan.to_string()); std::getline(text, line);) {
    if (line.rfind("  | ", 0) == 0) inner += line.substr(4) + "\n";
  }
  const auto step = std::find_if(plan.steps.begin(), plan.steps.end(),
                                 [](const PlannedStep& each) { return each.loop != nullptr; });
  ASSERT_NE(step, plan.steps.end());
  EXPECT_EQ(inner, step->loop->body.to_string());
  EXPECT_EQ(step->node.output(0).name(), "turned");
}

TEST_F(PlanTest, PeaksOfDevicesAddUpToThePeak) {
  const Device one = Device::parse("cpu:0"), two = Device::parse("cpu:1");
  const Variable v = make_input({DType::float64, {1000}, one}, "v");
  const Variable there = ops::to_device(ops::roll(v, 1, 0), two);
  const Function g = function({v}, ops::cumsum(ops::roll(there, 2, 0)));
  const Plan& plan = g.plan(std::vector<TensorType>{v.type()});
  EXPECT_EQ(plan.arenas.size(), 2u) << plan.to_string();
  EXPECT_EQ(plan.peak_bytes_on(one) + plan.peak_bytes_on(two), plan.peak_bytes);
  const Tensor values = Tensor::ones({1000}, DType::float64);
  const MemoryScope here(one), beyond(two);
  g(values);
  EXPECT_EQ(static_cast<index_t>(here.peak_bytes()), plan.peak_bytes_on(one));
  EXPECT_EQ(static_cast<index_t>(beyond.peak_bytes()), plan.peak_bytes_on(two));
}

// Equal offsets in two arenas are different memory.
TEST_F(PlanTest, ArenasOfTwoDevicesAreApart) {
  const Device two = Device::parse("cpu:1");
  const Variable v = make_input({DType::float64, {1000}, {}}, "v");
  const Variable here = ops::cumsum(ops::roll(v, 1, 0)), there = ops::roll(v, 2, 0);
  const Variable turned = ops::roll(ops::cumsum(ops::roll(ops::to_device(there, two), 3, 0)), 1, 0);
  const Variable y = here - ops::to_device(turned, Device{});
  const Tensor values = Tensor::random_normal({1000}, DType::float64, {1, 2});
  const Function fast = function({v}, y), plain = function({v}, y, {.mode = Mode::no_rewrite});
  EXPECT_EQ(fast.plan(std::vector<Tensor>{values}).arenas.size(), 2u);
  const Variable in_one =
      ops::cumsum(ops::roll(v, 1, 0)) - ops::roll(ops::cumsum(ops::roll(there, 3, 0)), 1, 0);
  const Tensor expected = function({v}, in_one)(values)[0];
  for (int call = 0; call < 2; ++call) {
    EXPECT_TRUE(equal(fast(values)[0], expected));
    EXPECT_TRUE(equal(plain(values)[0], expected));
  }
}

TEST_F(PlanTest, TheFirstBufferIsAmongThoseOfThePeak) {
  const Function g = function({}, ops::cumsum(ops::roll(ops::arange(100), 1, 0)));
  const Plan& plan = g.plan(std::vector<TensorType>{});
  ASSERT_EQ(plan.buffers[0].kind, BufferKind::arena) << plan.to_string();
  const auto json = nlohmann::json::parse(plan.to_json());
  const auto live = json.at("peak_buffers").get<std::vector<int>>();
  EXPECT_TRUE(std::find(live.begin(), live.end(), 0) != live.end()) << plan.to_string();
}

TEST(Layouts, OverlapThemselvesAlongAnyAxis) {
  const auto overlaps = [](Extents extents, Strides strides) {
    return may_overlap_itself(Layout{DType::float64, std::move(extents), std::move(strides), 0});
  };
  EXPECT_FALSE(overlaps({3, 4}, {4, 1}));
  EXPECT_FALSE(overlaps({3, 4}, {-4, 1}));
  EXPECT_TRUE(overlaps({3, 4}, {4, 0}));
  EXPECT_TRUE(overlaps({3, 4}, {3, 1}));
  EXPECT_FALSE(overlaps({3, 1}, {1, 0}));
  EXPECT_FALSE(overlaps({0, 4}, {0, 0}));
}

TEST_F(PlanTest, JsonHoldsTheSameNumbers) {
  const Plan& plan = f.plan(std::vector<TensorType>{type});
  const auto json = nlohmann::json::parse(plan.to_json());
  EXPECT_EQ(json["peak_bytes"], plan.peak_bytes);
  EXPECT_EQ(json["steps"].size(), plan.steps.size());
  EXPECT_EQ(json["buffers"].size(), plan.buffers.size());
}

TEST_F(PlanTest, BuffersThatAreLiveTogetherAreDisjoint) {
  const Variable k = ops::fft(x, {0, 1}), a = k * 2.0, b = ops::roll(k, 1, 0), c = a + b;
  const Function g = function({x}, {ops::sum(ops::abs2(c)), ops::sum(ops::abs2(b))});
  const Plan& plan = g.plan(std::vector<TensorType>{type});
  for (const PlannedBuffer& p : plan.buffers) {
    for (const PlannedBuffer& q : plan.buffers) {
      if (&p == &q || p.kind != BufferKind::arena || q.kind != BufferKind::arena) continue;
      const bool together = p.first_step <= q.last_step && q.first_step <= p.last_step;
      const bool disjoint = p.offset + p.bytes <= q.offset || q.offset + q.bytes <= p.offset;
      EXPECT_TRUE(!together || disjoint) << plan.to_string();
    }
  }
}

TEST_F(PlanTest, OrderOfStepsLowersThePeak) {
  // Written breadth first: all big values, then the values computed from them.
  const Variable v = dvector("v");
  std::vector<Variable> big, small;
  for (int i = 0; i < 5; ++i) big.push_back(ops::roll(v, i + 1, 0));
  for (const Variable& b : big) small.push_back(ops::max(b));
  Variable total = small[0];
  for (std::size_t i = 1; i < small.size(); ++i) total = total + small[i];
  const Function g = function({v}, {total});
  const Plan& plan = g.plan(std::vector<TensorType>{{DType::float64, {1000}, {}}});
  EXPECT_LT(plan.arena_bytes, 9000) << plan.to_string();
  const Tensor values = Tensor::ones({1000});
  const MemoryScope scope;
  g(values);
  EXPECT_EQ(static_cast<index_t>(scope.peak_bytes()), plan.peak_bytes);
}

TEST_F(PlanTest, PictureShowsEachBufferOfTheArena) {
  const Variable k = ops::fft(x, {0, 1});
  const Function g = function({x}, {ops::sum(ops::abs2(ops::roll(k, 1, 0) * k))});
  const Plan& plan = g.plan(std::vector<TensorType>{type});
  const std::string picture = plan.to_svg();
  std::size_t n_buffers = 0, n_boxes = 0;
  for (const PlannedBuffer& b : plan.buffers) n_buffers += b.kind == BufferKind::arena;
  for (std::size_t at = picture.find("<title>"); at != std::string::npos;
       at = picture.find("<title>", at + 1)) {
    ++n_boxes;
  }
  EXPECT_GT(n_buffers, 1u);
  EXPECT_EQ(n_boxes, n_buffers);
  EXPECT_EQ(picture.rfind("<svg", 0), 0u);
  EXPECT_NE(picture.find("</svg>"), std::string::npos);
  EXPECT_NE(picture.find("Fft"), std::string::npos);
  EXPECT_EQ(picture, plan.to_svg());
}

TEST_F(PlanTest, PictureShowsNamesThatLookLikeMarkup) {
  Plan plan = f.plan(std::vector<TensorType>{type});
  for (PlannedBuffer& b : plan.buffers) b.name = R"(a<b>&"c")";
  const std::string picture = plan.to_svg();
  EXPECT_NE(picture.find("<title>a&lt;b&gt;&amp;&quot;c&quot;"), std::string::npos) << picture;
}

TEST_F(PlanTest, PeakStepIsWhereMostBytesAreLive) {
  const Plan& plan = f.plan(std::vector<TensorType>{type});
  const int peak = plan.peak_step();
  ASSERT_GE(peak, 0);
  index_t live = 0;
  for (const PlannedBuffer& b : plan.buffers) {
    if (b.kind == BufferKind::arena && b.first_step <= peak && peak <= b.last_step) live += b.bytes;
  }
  EXPECT_GE(live + 64 * static_cast<index_t>(plan.buffers.size()), plan.lower_bound_bytes);
  EXPECT_NE(plan.to_string().find("most bytes of the arena"), std::string::npos);
  EXPECT_EQ(Plan().peak_step(), -1);
}

}  // namespace
}  // namespace palimpsest
