// SPDX-License-Identifier: Apache-2.0
// Children of Add, Concat and Stack in parallel: their number and memory, the order of sums, and
// the error that is thrown.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <optional>
#include <thread>

#include "compile/hook_op.hpp"
#include "linop_support.hpp"
#include "palimpsest/base/config.hpp"
#include "palimpsest/linop/containers/concat.hpp"
#include "palimpsest/linop/containers/stack.hpp"
#include "palimpsest/linop/copies/saving.hpp"
#include "palimpsest/linop/core/workers.hpp"
#include "palimpsest/linop/operators/simple.hpp"
#include "palimpsest/memory/allocator.hpp"

namespace palimpsest {
namespace {

using testing::expect_error;
using testing::random;

const TensorType kType{DType::complex128, {32, 32}, {}};
constexpr index_t kImage = 32 * 32 * 16;

// The number of lanes of a plan does not depend on the number of processors. Without a budget they
// may take up to twice the memory of one.
ConfigOverrides threads(index_t n, std::optional<index_t> budget = index_t{1} << 30) {
  return {.budget = budget, .threads = n, .parallel_grain = 1};
}

// Different children, each with a step that is not fused with the sum.
std::vector<NamedLinop> coils(int n) {
  std::vector<NamedLinop> result;
  for (int i = 0; i < n; ++i) {
    result.push_back(
        Chain(Diagonal(random({32, 32}, DType::complex128, static_cast<std::uint64_t>(i)), "NyNx"),
              Fft(2, {.batch = Dims(), .grid = Grid{"NyNx", "KyKx"}})));
  }
  return result;
}

NamedLinop hook(int number, std::function<void()> call) {
  return SimpleLinop(
      {.fn = [=](const Variable& x) { return testing::hooked(x, call, true, number); },
       .ishape = "NyNx"});
}

int lanes_of(const NamedLinop& A, index_t n_threads) {
  const ConfigScope scope(threads(n_threads));
  return A.copy().plan(kType).lanes;
}

TEST(Threadable, WorkersBoundWhatRunsSideBySide) {
  EXPECT_EQ(lanes_of(Add(coils(8)), 4), 4);
  EXPECT_EQ(lanes_of(Add(coils(8), {.num_workers = 2}), 4), 2);
  EXPECT_EQ(lanes_of(Add(coils(8), {.num_workers = 9}), 4), 4);
  EXPECT_EQ(lanes_of(Add(coils(8), {.threaded = false}), 4), 1);
  EXPECT_EQ(lanes_of(Add(coils(8), {.threaded = false, .num_workers = 3}), 4), 1);
  const StackDims along{.in = {}, .out = {"S", 0}};
  StackDims one = along, two = along;
  one.threaded = false;
  two.num_workers = 2;
  EXPECT_EQ(lanes_of(Stack(coils(6), along), 3), 3);
  EXPECT_EQ(lanes_of(Stack(coils(6), two), 3), 2);
  EXPECT_EQ(lanes_of(Stack(coils(6), one), 3), 1);
  std::vector<NamedLinop> sized;
  for (const NamedLinop& A : coils(6)) sized.push_back(A.with_sizes({{"Ky", 32}, {"Kx", 32}}));
  EXPECT_EQ(lanes_of(Concat(sized, {.out = "Ky"}), 3), 3);
  EXPECT_EQ(lanes_of(Concat(sized, {.out = "Ky", .num_workers = 2}), 3), 2);
  EXPECT_EQ(lanes_of(Concat(sized, {.out = "Ky", .threaded = false}), 3), 1);
}

TEST(Threadable, ContainersNest) {
  const auto sum = [](Workers workers) { return Add(coils(4), workers); };
  // The limit of the outer sum applies to all of it, the limit of an inner one to its children.
  EXPECT_EQ(lanes_of(Add({sum({}), sum({})}, {.threaded = false}), 4), 1);
  EXPECT_EQ(lanes_of(Add({sum({}), sum({})}, {.num_workers = 3}), 4), 3);
  EXPECT_EQ(lanes_of(Add({sum({.threaded = false}), sum({.threaded = false})}), 4), 2);
}

TEST(Threadable, ResultsHaveTheSameBitsForAnyNumberOfWorkers) {
  const auto sized = [] {
    std::vector<NamedLinop> list;
    for (const NamedLinop& A : coils(5)) list.push_back(A.with_sizes({{"Ny", 32}, {"Ky", 32}}));
    return list;
  };
  const Tensor x = random({32, 32});
  const std::vector<std::function<NamedLinop(Workers)>> makers{
      [](Workers w) { return Add(coils(5), w); },
      [](Workers w) { return Add(coils(5), w).H(); },
      [](Workers w) { return Add(coils(5), w).N(); },
      [&](Workers w) {
        return Concat(sized(), {.out = "Ky", .threaded = w.threaded, .num_workers = w.num_workers})
            .N();
      },
      [](Workers w) {
        return Stack(
            coils(5),
            {.in = {}, .out = {"S", 0}, .threaded = w.threaded, .num_workers = w.num_workers});
      },
  };
  for (const auto& make : makers) {
    Tensor expected;
    for (const Workers workers : {Workers{}, Workers{.threaded = false}, Workers{.num_workers = 2},
                                  Workers{.num_workers = 3}}) {
      for (const index_t n : {1, 2, 4}) {
        const ConfigScope scope(threads(n));
        const Tensor y = make(workers)(x);
        if (!expected.defined()) expected = y;
        EXPECT_TRUE(equal(y, expected)) << make(workers).str();
      }
    }
  }
}

TEST(Threadable, SumsHoldOnePartialResultMoreThanWorkers) {
  for (const index_t n : {1, 2, 3, 4, 7}) {
    const ConfigScope scope(threads(8));
    const NamedLinop A = Add(coils(16), {.num_workers = n});
    const Plan plan = A.plan(kType);
    EXPECT_EQ(plan.lanes, n);
    EXPECT_LE(plan.peak_bytes, (n + 1) * kImage) << plan.to_string();
    const Tensor x = random({32, 32});
    const MemoryScope memory;
    A(x);
    EXPECT_EQ(static_cast<index_t>(memory.peak_bytes()), plan.peak_bytes);
  }
}

TEST(Threadable, NoMoreChildrenRunThanWorkers) {
  for (const index_t n : {1, 2, 3}) {
    std::atomic<int> running{0}, most{0};
    std::vector<NamedLinop> children;
    for (int i = 0; i < 9; ++i) {
      children.push_back(hook(i, [&] {
        const int now = ++running;
        for (int seen = most; seen < now && !most.compare_exchange_weak(seen, now);) continue;
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
        --running;
      }));
    }
    const ConfigScope scope(threads(4));
    Add(children, {.num_workers = n})(random({32, 32}));
    EXPECT_LE(most, n);
  }
}

TEST(Threadable, TheErrorIsThatOfTheFailingChildWithTheLowestIndex) {
  const Tensor x = random({32, 32});
  for (const index_t n : {1, 2, 4}) {
    bool fails = true;
    std::vector<NamedLinop> children;
    for (int i = 0; i < 8; ++i) {
      const NamedLinop last = hook(i, [&fails, i] {
        if (fails && i % 3 == 2) throw ValueError("child " + std::to_string(i) + " fails");
      });
      // The first child to fail in order is the last in time.
      NamedLinop child = last;
      for (int k = 0; i == 2 && k < 6; ++k) child = Chain(hook(100 + k, [] {}), child);
      children.push_back(child);
    }
    const NamedLinop A = Add(children);
    const Tensor weight = random({32, 32});
    const ConfigScope scope(threads(n));
    for (int run = 0; run < 5; ++run) {
      expect_error<ValueError>([&] { A(x); }, "child 2 fails");
      expect_error<ValueError>([&] { A(x); }, "of Add[2]/Chain[1]/");
    }
    fails = false;
    EXPECT_LE(testing::difference(A(x), (8 * Identity("NyNx"))(x)), 1e-14);
  }
}

TEST(Threadable, IsKeptByEverythingMadeOfAContainer) {
  const Workers workers{.threaded = true, .num_workers = 2};
  const NamedLinop add = Add(coils(4), workers);
  const NamedLinop stack =
      Stack(coils(4), {.in = {}, .out = {"S", 0}, .threaded = true, .num_workers = 2});
  std::vector<NamedLinop> wide;
  for (std::uint64_t i = 0; i < 3; ++i) {
    wide.push_back(Dense(random({8, 5}, DType::complex128, i), "MN,N->M"));
  }
  const NamedLinop concat = Concat(wide, {.out = "M", .num_workers = 2});
  for (const NamedLinop& A : {add, stack, concat}) {
    for (const NamedLinop& B : {A, A.H(), A.copy(), A.deepcopy(), from_bytes(to_bytes(A)),
                                A.slice(0, 2), A.named("mine"), A.to(Device{DeviceType::cpu, 1})}) {
      EXPECT_EQ(workers_of(B), workers) << B.str();
    }
  }
  EXPECT_EQ(workers_of(stack.N()), workers);
  EXPECT_EQ(workers_of(concat.N()), workers);
  EXPECT_EQ(workers_of(stack.split({{"S", slice(1, 3)}})), workers);
  EXPECT_EQ(workers_of(concat.split({{"M", slice(4, 20)}})), workers);
  EXPECT_EQ(workers_of(Add(wide, workers).split({{"M", slice(4, 8)}})), workers);
  // In graphs of normal operators too, which apply the children twice.
  EXPECT_EQ(lanes_of(Add(coils(6), {.threaded = false}).N(), 4), 1);
}

TEST(Threadable, SettersChangeIt) {
  NamedLinop A = Add(coils(4));
  EXPECT_EQ(workers_of(A), Workers());
  EXPECT_TRUE(A.attr("threaded").as_bool());
  const NamedLinop before = A;
  A.set_attr("num_workers", 2);
  EXPECT_EQ(lanes_of(A, 4), 2);
  A.set_attr("threaded", false);
  EXPECT_EQ(lanes_of(A, 4), 1);
  EXPECT_EQ(workers_of(before), Workers());
  expect_error<ValueError>([&] { A.set_attr("num_workers", -1); }, "num_workers: got -1");
  expect_error<TypeError>([&] { A.set_attr("threaded", 3); }, "got");
  EXPECT_EQ(A.attr("num_workers").as_integer(), 2);
  expect_error<ValueError>([] { Add(coils(2), {.num_workers = -2}); }, "[Add] num_workers");
  const NamedLinop row = Dense(random({2, 3}), "MN,N->M");
  expect_error<ValueError>(
      [&] {
        Concat({row, row}, {.out = "M", .num_workers = -2});
      },
      "num_workers");
}

TEST(Threadable, ABudgetTakesWorkersAway) {
  const NamedLinop A = Add(coils(16));
  const ConfigScope scope(threads(4));
  const index_t wide = A.copy().plan(kType).peak_bytes;
  const index_t data = 16 * kImage;
  ASSERT_GT(wide, 3 * kImage);
  const ConfigScope within(threads(4, data + 3 * kImage));
  const Plan plan = A.plan(kType);
  EXPECT_LE(plan.peak_bytes, 3 * kImage);
  EXPECT_GT(plan.lanes, 1);
}

}  // namespace
}  // namespace palimpsest
