// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/base/per_thread.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <thread>

#include "palimpsest/base/thread_scratch.hpp"

namespace palimpsest {
namespace {

std::atomic<int> made{0}, gone{0};
struct Counted {
  Counted() { ++made; }
  ~Counted() { ++gone; }
  int n = 0;
};

TEST(PerThread, EachThreadHasOneOfItsOwnUntilItEnds) {
  made = gone = 0;
  std::thread([] {
    of_this_thread<Counted>().n = 3;
    EXPECT_EQ(of_this_thread<Counted>().n, 3);
    std::thread([] { EXPECT_EQ(of_this_thread<Counted>().n, 0); }).join();
    EXPECT_EQ(gone, 1);
    EXPECT_EQ(made, 2);
  }).join();
  EXPECT_EQ(gone, 2);
}

struct AtTheEnd {
  ~AtTheEnd() { seen = of_this_thread<Counted>().n; }
  static inline int seen = 0;
};
TEST(PerThread, ItOutlivesTheThreadLocalObjects) {
  made = gone = 0;
  std::thread([] {
    thread_local AtTheEnd object;
    static_cast<void>(object);
    of_this_thread<Counted>().n = 5;
  }).join();
  EXPECT_EQ(AtTheEnd::seen, 5);
  EXPECT_EQ(made, 1);
  EXPECT_EQ(gone, 1);
}

// A use of another part of the library while the thread ends.
struct Late {
  ~Late() { of_this_thread<Counted>().n = 1; }
};
TEST(PerThread, WhatIsAskedForAtTheEndIsMadeAndGoesToo) {
  made = gone = 0;
  std::thread([] {
    of_this_thread<Late>();
    of_this_thread<Counted>();
  }).join();
  EXPECT_EQ(made, 2);
  EXPECT_EQ(gone, 2);
}

TEST(ThreadScratch, RoomsLieBesideOneAnotherAndAreUsedAgain) {
  struct Big {
    std::array<char, 100000> bytes;
  };
  const char* first = nullptr;
  {
    const Scratched<Big> a;
    const Scratched<std::string> text(std::size_t{40}, 'x');
    const Scratched<Big> b;
    first = a->bytes.data();
    a->bytes.fill('a');
    b->bytes.fill('b');
    EXPECT_EQ(*text, std::string(40, 'x'));
    EXPECT_EQ(a->bytes.back(), 'a');
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(b->bytes.data()) % 64, 0U);
  }
  const Scratched<Big> again;
  EXPECT_EQ(again->bytes.data(), first);
}

TEST(ThreadScratch, HoldsAnyNumberOfUpToAChunkEach) {
  struct Huge {
    std::array<char, kScratchChunkBytes> bytes;
  };
  for (int round = 0; round < 3; ++round) {
    const Scratched<int> small(1);
    const Scratched<Huge> a;
    const Scratched<int> middle(2);
    const Scratched<Huge> b;
    a->bytes.fill('a');
    b->bytes.fill('b');
    EXPECT_EQ(*small + *middle, 3);
    EXPECT_EQ(a->bytes.front(), 'a');
    EXPECT_EQ(a->bytes.back(), 'a');
  }
}

}  // namespace
}  // namespace palimpsest
