// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/kernels/pool/call_cache.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "kernels/arrays.hpp"
#include "palimpsest/kernels/elementwise/elementwise.hpp"

namespace palimpsest::testing {
namespace {

CallKey key_of(std::initializer_list<std::uint64_t> words) {
  CallKey key;
  for (const std::uint64_t word : words) key.add(word);
  return key;
}

TEST(CallCache, KeepsTheValueOfAKey) {
  CallCache<int> cache;
  {
    const auto lease = cache.find(key_of({1, 2}));
    ASSERT_TRUE(lease);
    EXPECT_FALSE(lease.value().has_value());
    lease.value() = 7;
  }
  EXPECT_EQ(cache.find(key_of({1, 2})).value(), 7);
  EXPECT_FALSE(cache.find(key_of({2, 1})).value().has_value());
  EXPECT_FALSE(cache.find(key_of({1})).value().has_value());
  EXPECT_FALSE(cache.find(key_of({1, 2, 0})).value().has_value());
}

TEST(CallCache, AValueInUseIsNotGivenAgain) {
  CallCache<int> cache;
  const auto first = cache.find(key_of({5}));
  first.value() = 1;
  {
    const auto second = cache.find(key_of({5}));
    ASSERT_TRUE(second);
    EXPECT_FALSE(second.value().has_value());
    second.value() = 2;
  }
  EXPECT_EQ(first.value(), 1);
  EXPECT_EQ(cache.find(key_of({5})).value(), 2);
}

TEST(CallCache, HasNothingToGiveWhenAllIsTaken) {
  CallCache<int> cache;
  std::vector<CallCache<int>::Lease> leases;
  bool refused = false;
  for (int i = 0; i < 10 && !refused; ++i) {
    auto lease = cache.find(key_of({3}));
    refused = !lease;
    if (lease) leases.push_back(std::move(lease));
  }
  EXPECT_TRUE(refused);
  leases.clear();
  EXPECT_TRUE(cache.find(key_of({3})));
}

TEST(CallCache, OldValuesMakeRoom) {
  CallCache<std::uint64_t> cache;
  for (std::uint64_t i = 0; i < 5000; ++i) {
    const auto lease = cache.find(key_of({i, i / 3}));
    ASSERT_TRUE(lease);
    EXPECT_FALSE(lease.value().has_value());
    lease.value() = i;
  }
  EXPECT_EQ(cache.find(key_of({4999, 4999 / 3})).value(), 4999U);
}

ElementwiseProgram sum_program(DType dtype) {
  ElementwiseProgram program;
  const int x = program.input(dtype), y = program.input(dtype);
  program.output(program.apply(ScalarOp::add, {x, y}));
  return program;
}

TEST(ElementwiseProgram, CopiesShareAVersionUntilTheyChange) {
  const ElementwiseProgram a = sum_program(DType::float32);
  ElementwiseProgram b = a;
  EXPECT_EQ(a.version(), b.version());
  b.apply(ScalarOp::mul, {0, 1});
  EXPECT_NE(a.version(), b.version());
  const std::uint64_t before = b.version();
  b.output(3);
  EXPECT_NE(before, b.version());
  const ElementwiseProgram c = sum_program(DType::float32);
  EXPECT_NE(a.version(), c.version());
  EXPECT_EQ(a, c);
}

// Cached runs must not interfere: the same program alternates between arrays of other kinds.
TEST(Elementwise, RunsOfOneProgramDoNotMixUp) {
  Random random(41);
  ElementwiseProgram program = sum_program(DType::float64);
  const auto expect_sum = [&](index_t rows, index_t cols, DType dtype, bool transposed, bool still,
                              bool in_place) {
    const Extents extents{rows, cols};
    const Strides strides = transposed ? Strides{1, rows} : contiguous_strides(extents);
    Array x(DType::float64, extents), y(dtype, extents, still ? Strides{0, 0} : strides);
    x.fill(random);
    y.fill(random);
    Array out(DType::float64, extents);
    const Array old = x;
    MutableView z = in_place ? x.mutable_view() : out.mutable_view();
    run_elementwise(program, std::array{x.view(), y.view()}, std::array{z});
    const Array& result = in_place ? x : out;
    for (index_t i = 0; i < rows * cols; ++i) {
      ASSERT_EQ(result.value(i), old.value(i) + y.value(i))
          << rows << " x " << cols << " " << item_size(dtype) << transposed << still << in_place;
    }
  };
  for (int round = 0; round < 3; ++round) {
    for (const index_t cols : {1, 5, 64, 700}) {
      for (const DType dtype : {DType::float64, DType::float32}) {
        for (const int how : {0, 1, 2, 3, 4, 5, 6, 7}) {
          expect_sum(3, cols, dtype, (how & 1) != 0, (how & 2) != 0, (how & 4) != 0);
        }
      }
    }
  }
  // The program is destroyed, and another one is made at its address.
  program = sum_program(DType::float64);
  expect_sum(3, 64, DType::float64, false, false, false);
  program = ElementwiseProgram(ScalarOp::mul, std::array{DType::float64, DType::float64});
  Array x(DType::float64, {3, 64}), y(DType::float64, {3, 64}), out(DType::float64, {3, 64});
  x.fill(random);
  y.fill(random);
  run_elementwise(program, std::array{x.view(), y.view()}, std::array{out.mutable_view()});
  for (index_t i = 0; i < 3 * 64; ++i) ASSERT_EQ(out.value(i), x.value(i) * y.value(i));
}

TEST(Elementwise, ManyThreadsRunOneProgram) {
  const ElementwiseProgram program = sum_program(DType::float32);
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  threads.reserve(8);
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      Array x(DType::float32, {100}), y(DType::float32, {100}), out(DType::float32, {100});
      for (index_t i = 0; i < 100; ++i) {
        x.set(i, static_cast<float>(t));
        y.set(i, static_cast<float>(i));
      }
      for (int round = 0; round < 300; ++round) {
        run_elementwise(program, std::array{x.view(), y.view()}, std::array{out.mutable_view()});
        for (index_t i = 0; i < 100; ++i) {
          if (out.get<float>(i) != static_cast<float>(t) + static_cast<float>(i)) ++wrong;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace palimpsest::testing
