// SPDX-License-Identifier: Apache-2.0
// Calls from several threads behave as if executed in sequence.
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "compile/hook_op.hpp"
#include "palimpsest/compile/function.hpp"
#include "palimpsest/kernels/libraries.hpp"
#include "palimpsest/ops/ops.hpp"
#include "support/vectors.hpp"

namespace palimpsest {
namespace {

constexpr int kThreads = 8;

using testing::vector_of;

template <class F>
void in_threads(F&& body) {
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) threads.emplace_back([&, t] { body(t); });
  for (std::thread& thread : threads) thread.join();
}

struct ThreadTest : ::testing::Test {
  Variable x = make_input({DType::float64, {kUnknown}, {}}, "x");
};

// Every call takes the next number; each number is taken once, and both elements are equal.
TEST_F(ThreadTest, UpdatesAreSerialized) {
  constexpr int kCalls = 200;
  SharedVariable s = shared(vector_of({0, 0}));
  const Function next = function({}, {s.var() + 0.0}, {.updates = {{s, s.var() + 1.0}}});
  std::vector<std::vector<double>> seen(kThreads);
  std::atomic<int> torn{0};
  in_threads([&](int t) {
    for (int i = 0; i < kCalls; ++i) {
      const Tensor r = next()[0];
      if (r.at<double>({0}) != r.at<double>({1})) ++torn;
      seen[static_cast<std::size_t>(t)].push_back(r.at<double>({0}));
    }
  });
  EXPECT_EQ(torn, 0);
  std::vector<bool> taken(kThreads * kCalls, false);
  for (const auto& list : seen) {
    double last = -1;
    for (double number : list) {
      EXPECT_GT(number, last);  // in the order of this thread's calls
      last = number;
      EXPECT_FALSE(taken[static_cast<std::size_t>(number)]);
      taken[static_cast<std::size_t>(number)] = true;
    }
  }
  EXPECT_EQ(s.get_value().at<double>({0}), kThreads * kCalls);
}

// Functions that update several containers in different orders, with readers and set_value between
// them: a + b is 0 in every visible state.
TEST_F(ThreadTest, SeveralContainersChangeTogether) {
  SharedVariable a = shared(vector_of({0})), b = shared(vector_of({0}));
  const Function up = function({x}, {}, {.updates = {{a, a.var() + x}, {b, b.var() - x}}});
  const Function exchange = function({}, {}, {.updates = {{b, a}, {a, b}}});
  const Function negate =
      function({}, {a.var() + b.var()}, {.updates = {{b, -b.var()}, {a, -a.var()}}});
  const Function sum = function({}, {a.var() + b.var()});
  std::atomic<int> wrong{0};
  in_threads([&](int t) {
    const Tensor step = vector_of({static_cast<double>(1 + t)});
    for (int i = 0; i < 200; ++i) {
      switch ((t + i) % 4) {
        case 0:
          up(step);
          break;
        case 1:
          exchange();
          break;
        case 2:
          if (negate()[0].item<double>() != 0) ++wrong;
          break;
        default:
          if (sum()[0].item<double>() != 0) ++wrong;
      }
    }
  });
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(sum()[0].item<double>(), 0.0);
  EXPECT_FALSE(shares_storage(a.container().value(), b.container().value()));
}

// A borrowed result is unchanged until the same thread calls again.
TEST_F(ThreadTest, BorrowedResultsOfDifferentThreadsAreApart) {
  const Function f = function({x}, {Out(x * 2.0, {.borrow = true})});
  std::atomic<int> wrong{0};
  in_threads([&](int t) {
    for (int i = 0; i < 200; ++i) {
      const double number = 1000.0 * t + i;
      const Tensor r = f(vector_of({number, number}))[0];
      std::this_thread::yield();
      if (r.at<double>({0}) != 2 * number || r.at<double>({1}) != 2 * number) ++wrong;
    }
  });
  EXPECT_EQ(wrong, 0);
}

TEST_F(ThreadTest, ConfigLimitsTheThreadsOfACall) {
  const auto threads_of = [&](std::optional<index_t> wanted) {
    const ConfigScope scope({.threads = wanted});
    int seen = 0;
    const Variable v = dvector("v");
    const Function f =
        function({v}, testing::hooked(v, [&] { seen = compute_libraries().threads; }));
    f(Tensor::ones({2}));
    f(Tensor::ones({2}));
    return seen;
  };
  EXPECT_EQ(threads_of(1), 1);
  // Requests for more threads than the machine has processors are limited.
  const auto most = static_cast<int>(std::max(std::thread::hardware_concurrency(), 1U));
  EXPECT_EQ(threads_of(3), std::min(3, most));
  EXPECT_EQ(threads_of({}), compute_libraries().threads);
}

TEST_F(ThreadTest, ManySignaturesArePlannedAtOnce) {
  const Function f = function({x}, {ops::roll(x, 1, 0) + x});
  std::atomic<int> wrong{0};
  in_threads([&](int t) {
    for (int i = 0; i < 50; ++i) {
      const index_t n = 1 + (t + i) % 20;
      if (f(Tensor::ones({n}))[0].numel() != n) ++wrong;
    }
  });
  EXPECT_EQ(wrong, 0);
}

// A call that only reads does not lock a container while it runs: another thread may set it.
TEST_F(ThreadTest, ReaderDoesNotKeepAWriterWaiting) {
  SharedVariable s = shared(vector_of({1}));
  std::mutex mutex;
  std::condition_variable changed;
  int phase = 0;
  const auto reach = [&](int next) {
    const std::lock_guard guard(mutex);
    phase = next;
    changed.notify_all();
  };
  const auto wait_for = [&](int wanted) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return phase >= wanted; });
  };
  const Function f = function({x}, {testing::hooked(x,
                                                    [&] {
                                                      reach(1);
                                                      wait_for(2);
                                                    }) +
                                    s.var()});
  std::thread reader([&] { EXPECT_EQ(f(vector_of({0}))[0].item<double>(), 1.0); });
  wait_for(1);
  s.set_value(vector_of({5}));  // while the reader is in its step
  reach(2);
  reader.join();
  EXPECT_EQ(s.get_value().item<double>(), 5.0);
}

TEST_F(ThreadTest, CopiesAndFreeingAreSafeWhileOthersCall) {
  const Function f = function({x}, {Out(ops::roll(x, 1, 0), {.borrow = true})});
  std::atomic<int> wrong{0};
  in_threads([&](int t) {
    const Tensor a = vector_of({1, 2});
    for (int i = 0; i < 100; ++i) {
      if (t == 0) f.free();
      if (t == 1) f.allow_gc(i % 2 == 0);
      const Function g = t == 2 ? f.copy({.share_memory = true}) : f;
      if (g(a)[0].at<double>({0}) != 2) ++wrong;
    }
  });
  EXPECT_EQ(wrong, 0);
}

// The results of random calls are those of some serial order: every call is stamped, and the calls
// are replayed in the order of their stamps.
TEST_F(ThreadTest, ResultsAreThoseOfASerialOrder) {
  constexpr int kCalls = 100;
  SharedVariable clock = shared(vector_of({0})), state = shared(vector_of({1}));
  const Variable v = state.var() * 3.0 + x;
  // Modulo 97 keeps the numbers small and exact.
  const Variable next = ops::elementwise(ScalarOp::mod, {v, constant(vector_of({97}))});
  const Function f = function({x}, {clock.var() + 0.0, state.var() + x},
                              {.updates = {{clock, clock.var() + 1.0}, {state, next}}});
  struct Call {
    double argument, result;
  };
  std::mutex mutex;
  std::map<int, Call> calls;
  in_threads([&](int t) {
    for (int i = 0; i < kCalls; ++i) {
      const double argument = (7 * t + i) % 11;
      const auto r = f(vector_of({argument}));
      const std::lock_guard guard(mutex);
      calls[static_cast<int>(r[0].item<double>())] = {argument, r[1].item<double>()};
    }
  });
  ASSERT_EQ(calls.size(), static_cast<std::size_t>(kThreads * kCalls));
  double replayed = 1;
  for (const auto& [stamp, call] : calls) {
    EXPECT_EQ(call.result, replayed + call.argument) << stamp;
    const double product = replayed * 3 + call.argument;
    replayed = product - std::floor(product / 97) * 97;
  }
}

}  // namespace
}  // namespace palimpsest
