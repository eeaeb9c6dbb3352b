// SPDX-License-Identifier: Apache-2.0
// Steps that run side by side.
#include "palimpsest/plan/lanes.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <numeric>
#include <random>
#include <set>
#include <thread>

#include "compile/hook_op.hpp"
#include "palimpsest/base/config.hpp"
#include "palimpsest/compile/function.hpp"
#include "palimpsest/inspect/debug/debug_mode.hpp"
#include "palimpsest/inspect/debug/monitor_mode.hpp"
#include "palimpsest/memory/allocator.hpp"
#include "palimpsest/ops/ops.hpp"
#include "palimpsest/plan/part_places.hpp"
#include "support/expect_error.hpp"

namespace palimpsest {
namespace {

using Waits = std::vector<std::vector<int>>;

std::size_t at(int i) { return static_cast<std::size_t>(i); }

LaneSchedule scheduled(const Waits& before, const std::vector<index_t>& work, int n_lanes,
                       index_t grain = 0) {
  std::vector<int> order(before.size());
  std::iota(order.begin(), order.end(), 0);
  return in_lanes({order, before, work, grain}, n_lanes);
}

TEST(Lanes, IndependentStepsGoSideBySide) {
  const LaneSchedule s = scheduled({{}, {}, {0, 1}}, {10, 10, 1}, 2);
  EXPECT_EQ(s.n_lanes, 2);
  EXPECT_EQ(s.length, 11);
  EXPECT_NE(s.lane[0], s.lane[1]);
}

TEST(Lanes, ChainStaysInOneLane) {
  const LaneSchedule s = scheduled({{}, {0}, {1}}, {10, 10, 10}, 4);
  EXPECT_EQ(s.n_lanes, 1);
  EXPECT_EQ(s.length, 30);
  EXPECT_EQ(s.order, (std::vector<int>{0, 1, 2}));
}

TEST(Lanes, SmallStepBeginsNoLane) {
  const LaneSchedule s = scheduled({{}, {}, {}}, {10, 9, 9}, 4, 10);
  EXPECT_EQ(s.n_lanes, 1);
}

TEST(Lanes, GroupsTakeNoMoreLanesThanTheirLimits) {
  const auto outer = std::make_shared<const LaneLimit>(LaneLimit{3, nullptr});
  const LaneLimit inner{2, outer}, alone{1, nullptr};
  const std::vector<const LaneLimit*> limits{&inner,      &inner, &inner, outer.get(),
                                             outer.get(), &alone, &alone, nullptr};
  const Waits before(8);
  const std::vector<index_t> work(8, 10);
  std::vector<int> order(8);
  std::iota(order.begin(), order.end(), 0);
  const LaneSchedule s = in_lanes({order, before, work, 0, limits}, 6);
  const auto lanes = [&](std::initializer_list<int> steps) {
    std::set<int> found;
    for (const int i : steps) found.insert(s.lane[at(i)]);
    return found.size();
  };
  EXPECT_EQ(lanes({0, 1, 2}), 2u);
  EXPECT_EQ(lanes({0, 1, 2, 3, 4}), 3u);
  EXPECT_EQ(lanes({5, 6}), 1u);
  EXPECT_EQ(s.n_lanes, 5);
}

// A sum of terms of two steps each, which take one to ten times as long as an addition.
TEST(Lanes, OfASumAtMostOneTermMoreThanLanesIsThere) {
  std::mt19937 random(5);
  for (int trial = 0; trial < 300; ++trial) {
    const int n_terms = 2 + static_cast<int>(random() % 20),
              n_lanes = 1 + static_cast<int>(random() % 6);
    Waits before;
    std::vector<index_t> work;
    std::vector<int> begins, ends, sums;  // by term: its steps, and the addition that reads it
    const auto step = [&](std::vector<int> waits, index_t length) {
      before.push_back(std::move(waits));
      work.push_back(length);
      return static_cast<int>(before.size()) - 1;
    };
    for (int i = 0; i < n_terms; ++i) {
      begins.push_back(step({}, 10 + static_cast<index_t>(random() % 90)));
      ends.push_back(step({begins.back()}, 10 + static_cast<index_t>(random() % 90)));
      if (i > 0) sums.push_back(step({i == 1 ? ends[0] : sums.back(), ends.back()}, 10));
    }
    const LaneSchedule s = scheduled(before, work, n_lanes);
    for (int i = 0; i < n_terms; ++i) {
      const index_t now = s.start[at(begins[at(i)])];
      int there = 0;
      for (int j = 0; j < n_terms; ++j) {
        // The first term becomes the sum, which stays live.
        const bool is_gone = j > 0 && s.finish[at(sums[at(j - 1)])] <= now;
        there += s.start[at(begins[at(j)])] <= now && !is_gone ? 1 : 0;
      }
      EXPECT_LE(there, n_lanes + 1) << "trial " << trial;
    }
  }
}

// -- laws of schedules ---------------------------------------------------------------------------

struct RandomSteps {
  Waits before;
  std::vector<index_t> work;
};
RandomSteps random_steps(std::mt19937& random, int n) {
  RandomSteps steps;
  for (int i = 0; i < n; ++i) {
    std::set<int> waits;
    for (auto k = random() % 4; k > 0 && i > 0; --k) {
      waits.insert(static_cast<int>(random() % static_cast<unsigned>(i)));
    }
    steps.before.emplace_back(waits.begin(), waits.end());
    steps.work.push_back(static_cast<index_t>(random() % 12));  // 0 counts as 1
  }
  return steps;
}

TEST(Lanes, SchedulesAreLegal) {
  std::mt19937 random(8);
  for (int trial = 0; trial < 300; ++trial) {
    const int n = 1 + static_cast<int>(random() % 25), n_lanes = 1 + static_cast<int>(random() % 5);
    const auto grain = static_cast<index_t>(random() % 14);
    const RandomSteps steps = random_steps(random, n);
    const LaneSchedule s = scheduled(steps.before, steps.work, n_lanes, grain);
    index_t length = 0, work = 0;
    std::set<int> lanes;
    for (int i = 0; i < n; ++i) {
      const index_t mine = std::max<index_t>(steps.work[at(i)], 1);
      work += mine;
      EXPECT_EQ(s.finish[at(i)] - s.start[at(i)], mine);
      length = std::max(length, s.finish[at(i)]);
      lanes.insert(s.lane[at(i)]);
      for (const int earlier : steps.before[at(i)]) {
        EXPECT_GE(s.start[at(i)], s.finish[at(earlier)]);
      }
      for (int j = 0; j < i; ++j) {
        EXPECT_TRUE(s.lane[at(i)] != s.lane[at(j)] || s.start[at(i)] >= s.finish[at(j)]) << trial;
      }
    }
    EXPECT_EQ(s.length, length);
    EXPECT_LE(s.length, work) << "one lane would do";
    EXPECT_EQ(s.n_lanes, *lanes.rbegin() + 1);
    EXPECT_LE(s.n_lanes, n_lanes);
    std::vector<int> sorted(at(n));
    std::iota(sorted.begin(), sorted.end(), 0);
    std::stable_sort(sorted.begin(), sorted.end(),
                     [&](int a, int b) { return s.start[at(a)] < s.start[at(b)]; });
    EXPECT_EQ(s.order, sorted);
  }
}

TEST(Lanes, OneLaneIsTheOrderItself) {
  const std::vector<int> order{2, 0, 1};
  const LaneSchedule s = in_one_lane(order);
  EXPECT_EQ(s.order, order);
  EXPECT_EQ(s.lane, (std::vector<int>{0, 0, 0}));
  EXPECT_EQ(s.start, (std::vector<index_t>{1, 2, 0}));
  EXPECT_EQ(s.finish, (std::vector<index_t>{2, 3, 1}));
  EXPECT_EQ(s.length, 3);
  EXPECT_EQ(s.n_lanes, 1);
}

// All earlier steps that each step waits for, directly or indirectly.
std::vector<std::set<int>> closure(const Waits& waits) {
  std::vector<std::set<int>> all(waits.size());
  for (std::size_t i = 0; i < waits.size(); ++i) {
    for (const int earlier : waits[i]) {
      all[i].insert(earlier);
      all[i].insert(all[at(earlier)].begin(), all[at(earlier)].end());
    }
  }
  return all;
}

TEST(Lanes, LeastWaitsImplyAllAndNoneOfThemAnother) {
  std::mt19937 random(9);
  for (int trial = 0; trial < 300; ++trial) {
    const int n = 1 + static_cast<int>(random() % 20), n_lanes = 1 + static_cast<int>(random() % 4);
    Waits needs = random_steps(random, n).before;
    std::vector<int> lane, last(at(n_lanes), -1);
    for (int i = 0; i < n; ++i) {
      lane.push_back(static_cast<int>(random() % static_cast<unsigned>(n_lanes)));
      int& before = last[at(lane.back())];
      if (before >= 0) needs[at(i)].push_back(before);
      before = i;
    }
    const Waits least = least_waits(needs, lane, n_lanes);
    const auto all = closure(needs);
    EXPECT_EQ(closure(least), all) << trial;
    for (int i = 0; i < n; ++i) {
      EXPECT_TRUE(std::is_sorted(least[at(i)].begin(), least[at(i)].end()));
      for (const int a : least[at(i)]) {
        for (const int b : least[at(i)]) EXPECT_FALSE(all[at(b)].contains(a)) << trial;
      }
    }
  }
}

TEST(Lanes, OrderIsThatOfTheStarts) {
  // Two chains, written one after the other.
  const LaneSchedule s = scheduled({{}, {0}, {}, {2}}, {5, 5, 4, 4}, 2);
  EXPECT_EQ(s.order, (std::vector<int>{0, 2, 3, 1}));
  for (std::size_t i = 1; i < s.order.size(); ++i) {
    EXPECT_LE(s.start[at(s.order[i - 1])], s.start[at(s.order[i])]);
  }
}

TEST(Lanes, WaitsThatFollowFromOthersAreLeftOut) {
  const Waits needs{{}, {}, {0, 1}, {0, 1, 2}, {0, 2}};
  const std::vector<int> lane{0, 1, 0, 1, 0};
  EXPECT_EQ(least_waits(needs, lane, 2), (Waits{{}, {}, {0, 1}, {2}, {2}}));
}

// -- plans ---------------------------------------------------------------------------------------

struct LanePlans : ::testing::Test {
  Variable x = make_input({DType::float64, {kUnknown, kUnknown}, {}}, "x");
  Tensor value = Tensor::random_normal({8, 64}, DType::float64, {1, 2});
  index_t bytes = value.nbytes();

  static ConfigOverrides threads(index_t n, index_t grain = 1) {
    return {.threads = n, .parallel_grain = grain};
  }
  Plan plan_of(const Function& f) const { return f.plan(std::vector<Tensor>{value}); }
  // Independent branches that are summed.
  Variable fork_and_join(int n, int length = 3) const {
    Variable sum;
    for (int k = 0; k < n; ++k) {
      Variable v = x;
      for (int i = 0; i < length; ++i) v = ops::cumsum(ops::roll(v, k + i + 1, 1), 1);
      sum = sum.defined() ? ops::roll(sum + v, 1, 0) : v;  // not a sum of all at once
    }
    return sum;
  }
  Variable random_graph(std::mt19937& random) const {
    std::vector<Variable> pool{x};
    const auto any = [&] { return pool[random() % pool.size()]; };
    for (int i = 0; i < 18; ++i) {
      switch (random() % 5) {
        case 0:
          pool.push_back(ops::roll(any(), 1, 1));
          break;
        case 1:
          pool.push_back(ops::cumsum(any(), 1) * 0.5);
          break;
        case 2:
          pool.push_back(any() - any());
          break;
        case 3:
          pool.push_back(ops::index(ops::join(0, {ops::roll(any(), 1, 0), ops::cumsum(any(), 0)}),
                                    {slice(4, 12)}));
          break;
        default:
          pool.push_back(any() * ops::max(any(), {.axes = Axes{1}, .keepdims = true}));
      }
    }
    return pool[pool.size() - 1] + pool[pool.size() - 2] + pool[pool.size() - 3];
  }
};

// Does each step that writes bytes wait, directly or indirectly, for all steps that used these
// bytes for another buffer?
void expect_safe(const Plan& plan) {
  if (plan.lanes == 1) return;  // steps run in order
  const std::size_t n = plan.steps.size();
  std::vector<std::vector<bool>> before(n, std::vector<bool>(n, false));
  for (std::size_t i = 0; i < n; ++i) {
    for (int w : plan.steps[i].waits_for) {
      ASSERT_LT(w, static_cast<int>(i));
      before[i][at(w)] = true;
      for (std::size_t j = 0; j < n; ++j) before[i][j] = before[i][j] || before[at(w)][j];
    }
  }
  std::vector<std::vector<BufferUse>> uses;
  for (const PlannedStep& step : plan.steps) uses.push_back(uses_of(plan, step));
  const auto meet = [&](const BufferUse& a, const BufferUse& b) {
    const PlannedBuffer &p = plan.buffers[at(a.buffer)], &q = plan.buffers[at(b.buffer)];
    if (a.buffer == b.buffer)
      return (a.writes || b.writes) && (a.part == b.part || a.part < 0 || b.part < 0);
    return p.kind == BufferKind::arena && q.kind == BufferKind::arena &&
           p.offset < q.offset + q.bytes && q.offset < p.offset + p.bytes;
  };
  for (std::size_t j = 0; j < n; ++j) {
    for (std::size_t i = 0; i < j; ++i) {
      for (const BufferUse& a : uses[i]) {
        for (const BufferUse& b : uses[j]) {
          EXPECT_TRUE(!meet(a, b) || before[j][i]) << i << " and " << j << "\n" << plan.to_string();
        }
      }
    }
  }
}

TEST_F(LanePlans, OneThreadOrSmallStepsMakeOneLane) {
  const Variable y = fork_and_join(3);
  {
    const ConfigScope scope(threads(1));
    EXPECT_EQ(plan_of(function({x}, y)).lanes, 1);
  }
  const ConfigScope scope(threads(4, 8 * 64 + 1));
  EXPECT_EQ(plan_of(function({x}, y)).lanes, 1);
}

TEST_F(LanePlans, TwoStepsAreEnough) {
  const ConfigScope scope(threads(2));
  const Plan plan = plan_of(function({x}, {ops::roll(x, 1, 0), ops::roll(x, 2, 0)}));
  ASSERT_EQ(plan.steps.size(), 2u);
  EXPECT_EQ(plan.lanes, 2);
}

TEST_F(LanePlans, BranchesHaveWorkspacesOfTheirOwn) {
  const Variable y = fork_and_join(2);
  Plan serial, wide;
  {
    const ConfigScope scope(threads(1));
    serial = plan_of(function({x}, y));
  }
  const ConfigScope scope(threads(4));
  wide = plan_of(function({x}, y));
  EXPECT_EQ(wide.lanes, 2);
  EXPECT_EQ(wide.serial_peak_bytes, serial.peak_bytes);
  EXPECT_GE(wide.peak_bytes, serial.peak_bytes);
  EXPECT_LE(wide.peak_bytes, 2 * serial.peak_bytes);
  expect_safe(wide);
}

TEST_F(LanePlans, MemoryIsUsedAgainInLanesToo) {
  const ConfigScope scope(threads(2));
  const Plan plan = plan_of(function({x}, fork_and_join(10)));
  EXPECT_EQ(plan.lanes, 2);
  EXPECT_LE(plan.peak_bytes, 6 * bytes) << plan.to_string();
  EXPECT_GT(plan.no_reuse_bytes, 30 * bytes);
  expect_safe(plan);
}

TEST_F(LanePlans, StepsThatUseBytesAgainWaitForThoseThatUsedThem) {
  std::mt19937 random(5);
  int n_wide = 0;
  for (int run = 0; run < 40; ++run) {
    const Variable y = random_graph(random);
    for (index_t n : {2, 4}) {
      const ConfigScope scope(threads(n));
      const Plan plan = plan_of(function({x}, y));
      n_wide += plan.lanes > 1;
      EXPECT_LE(plan.lanes, n);
      expect_safe(plan);
    }
  }
  EXPECT_GT(n_wide, 20);
}

TEST_F(LanePlans, ResultsHaveTheSameBitsForAnyNumberOfThreads) {
  std::mt19937 random(6);
  for (int run = 0; run < 40; ++run) {
    const Variable y = random_graph(random);
    Tensor expected;
    for (index_t n : {1, 2, 4}) {
      const ConfigScope scope(threads(n));
      const Function f = function({x}, y);
      const index_t peak = plan_of(f).peak_bytes;
      for (int call = 0; call < 3; ++call) {
        const MemoryScope memory;
        const Tensor got = f(value)[0];
        if (call == 0) {
          EXPECT_EQ(static_cast<index_t>(memory.peak_bytes()), peak);
        }
        if (!expected.defined()) expected = got;
        ASSERT_TRUE(equal(got, expected)) << plan_of(f).to_string();
      }
    }
    const ConfigScope scope(threads(4));
    if (run >= 5) continue;
    EXPECT_TRUE(equal(function({x}, y, {.mode = DebugMode()})(value)[0], expected));
  }
}

TEST_F(LanePlans, CallsAllocateNothingWhenTheFrameIsWarm) {
  const ConfigScope scope(threads(2));
  const Function f = function({x}, {Out(fork_and_join(4), {.borrow = true})});
  EXPECT_GT(plan_of(f).lanes, 1);
  f(value);
  const MemoryScope memory;
  for (int i = 0; i < 10; ++i) f(value);
  EXPECT_EQ(memory.calls(), 0u);
}

TEST_F(LanePlans, SeveralCallersAtOnceGetTheirOwnResults) {
  const ConfigScope scope(threads(2));
  const Function f = function({x}, fork_and_join(3));
  const Tensor expected = f(value)[0];
  std::atomic<int> wrong{0};
  std::vector<std::thread> callers;
  for (int t = 0; t < 4; ++t) {
    callers.emplace_back([&] {
      for (int i = 0; i < 20; ++i) wrong += equal(f(value)[0], expected) ? 0 : 1;
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(wrong, 0);
}

// -- budget --------------------------------------------------------------------------------------

TEST_F(LanePlans, BudgetTakesLanesAway) {
  const Variable y = fork_and_join(4, 2);
  const ConfigScope scope(threads(4));
  const Plan free = plan_of(function({x}, y));
  ASSERT_GT(free.lanes, 1);
  int lanes = free.lanes;
  for (index_t budget = free.peak_bytes; budget >= free.serial_peak_bytes; budget -= bytes / 2) {
    const Function f = function({x}, y, {.budget_bytes = budget});
    const Plan plan = plan_of(f);
    EXPECT_LE(plan.peak_bytes, budget);
    EXPECT_LE(plan.lanes, lanes);
    lanes = plan.lanes;
    f(value);
    expect_safe(plan);
  }
  EXPECT_EQ(plan_of(function({x}, y, {.budget_bytes = free.serial_peak_bytes})).lanes, 1);
  int runs = 0;
  const Function f = function({x}, testing::hooked(y, [&] { ++runs; }),
                              {.budget_bytes = free.serial_peak_bytes / 2});
  testing::expect_error<BudgetError>([&] { f(value); }, "the smallest found");
  EXPECT_EQ(runs, 0);
}

// -- running -------------------------------------------------------------------------------------

struct RunningLanes : LanePlans {
  // Waits until `other` has begun as well.
  static std::function<void()> meeting(std::atomic<int>& mine, std::atomic<int>& other,
                                       std::atomic<int>& met) {
    return [&] {
      mine = 1;
      const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(3);  // a guard
      while (other == 0 && std::chrono::steady_clock::now() < end) std::this_thread::yield();
      met += other;
    };
  }
};

TEST_F(RunningLanes, BranchesReallyRunAtOnce) {
  if (std::thread::hardware_concurrency() < 2) GTEST_SKIP() << "there is one processor";
  std::atomic<int> a{0}, b{0}, met{0};
  const Variable y = testing::hooked(x, meeting(a, b, met), false, 1) +
                     testing::hooked(x, meeting(b, a, met), false, 2);
  const ConfigScope scope(threads(2));
  function({x}, y)(value);
  EXPECT_EQ(met, 2);
}

TEST_F(RunningLanes, ErrorIsThatOfTheStepThatComesFirstInTheGraph) {
  for (int run = 0; run < 20; ++run) {
    const ConfigScope scope(threads(run % 4 + 1));
    Variable sum = x;
    for (int k = 0; k < 5; ++k) {
      const auto hook = [k] {
        if (k > 0) throw ValueError("branch " + std::to_string(k));
      };
      // The first step to fail in order is the last in time.
      const Variable late = k == 1 ? ops::cumsum(ops::roll(ops::cumsum(x, 1), 1, 1), 1) : x;
      sum = sum + testing::hooked(late, hook, true, k);
    }
    const Function f = function({x}, sum);
    const Plan plan = plan_of(f);
    ASSERT_TRUE(plan.lanes > 1 || run % 4 == 0);
    testing::expect_error<ValueError>([&] { f(value); }, "branch 1");
  }
}

TEST_F(RunningLanes, FailedCallLeavesContainersAsTheyWere) {
  const ConfigScope scope(threads(4));
  SharedVariable s = shared(value.clone());
  bool fails = true;
  const Variable risky = testing::hooked(
      ops::roll(x, 1, 1),
      [&] {
        if (fails) throw ValueError("no");
      },
      true, 1);
  const Function f =
      function({x}, {ops::sum(risky)}, {.updates = {{s, s.var() + ops::cumsum(x, 1)}}});
  for (int run = 0; run < 10; ++run) {
    EXPECT_THROW(f(value), ValueError);
    EXPECT_TRUE(equal(s.get_value(), value));
  }
  fails = false;
  f(value);
  EXPECT_FALSE(equal(s.get_value(), value));
}

TEST_F(RunningLanes, OneBranchOfAChoiceRuns) {
  const ConfigScope scope(threads(4));
  int yes_runs = 0, no_runs = 0;
  const Variable c = ops::gt(ops::sum(x), 0.0);
  const Variable yes = testing::hooked(
      ops::roll(x, 1, 1), [&] { ++yes_runs; }, false, 1);
  const Variable no = testing::hooked(
      ops::roll(x, 2, 1), [&] { ++no_runs; }, false, 2);
  const Function f = function({x}, ops::ifelse(c, yes * 2.0, no) + fork_and_join(2));
  EXPECT_GT(plan_of(f).lanes, 1);
  for (const double v : {1.0, -1.0, 1.0}) f(Tensor::full({8, 64}, v));
  EXPECT_EQ(yes_runs, 2);
  EXPECT_EQ(no_runs, 1);
}

TEST_F(RunningLanes, WhoLooksSeesOneStepAfterTheOther) {
  const ConfigScope scope(threads(4));
  std::vector<int> seen;
  const auto note = [&](const FunctionGraph&, int step, const Apply&, const StepView&) {
    seen.push_back(step);
  };
  const Function f = function({x}, fork_and_join(3), {.mode = MonitorMode({.pre = note})});
  const Plan plan = plan_of(f);
  EXPECT_GT(plan.lanes, 1);
  f(value);
  std::vector<int> all_steps(plan.steps.size());
  std::iota(all_steps.begin(), all_steps.end(), 0);
  EXPECT_EQ(seen, all_steps);
}

TEST_F(RunningLanes, ProfileHasTheTimeOfEachStep) {
  const ConfigScope scope(threads(4));
  const Function f = function({x}, fork_and_join(3), {.profile = true});
  f(value);
  const Profile profile = f.profile();
  ASSERT_EQ(profile.plans.size(), 1U);
  for (const StepProfile& step : profile.plans[0].steps) EXPECT_GT(step.seconds, 0.0) << step.op;
}

TEST_F(RunningLanes, ConfigOfTheCallerHoldsInEveryLane) {
  const ConfigScope scope({.traceback_limit = 77, .threads = 4, .parallel_grain = 1});
  std::atomic<int> right{0};
  Variable sum = x;
  for (int k = 0; k < 6; ++k) {
    sum = sum + testing::hooked(
                    x, [&] { right += config().traceback_limit == 77; }, false, k);
  }
  function({x}, sum)(value);
  EXPECT_EQ(right, 6);
}

}  // namespace
}  // namespace palimpsest
