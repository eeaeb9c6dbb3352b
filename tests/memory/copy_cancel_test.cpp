// SPDX-License-Identifier: Apache-2.0
// A copy that becomes needless while it runs. Its source is unreadable in places. The signal
// handler of such an access runs in the middle of the copy, and waits there until the other owner
// has released its reference.
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "palimpsest/memory/allocator.hpp"
#include "palimpsest/memory/byte_layout.hpp"
#include "palimpsest/memory/storage.hpp"

namespace palimpsest {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;
constexpr std::size_t kPlaces = 2;

struct Trap {
  std::byte* place[kPlaces] = {};
  std::atomic<bool> is_hit[kPlaces] = {}, has_left{false};

  bool is_any_hit() const { return is_hit[0] || is_hit[1]; }
};
Trap* trap = nullptr;

std::size_t page_bytes() { return static_cast<std::size_t>(sysconf(_SC_PAGESIZE)); }

// Runs in the copying thread, in the middle of a load.
void wait_for_the_other(int, siginfo_t* info, void*) {
  const auto* const at = static_cast<std::byte*>(info->si_addr);
  bool is_ours = false;
  for (std::size_t k = 0; k < kPlaces; ++k) {
    if (at < trap->place[k] || at >= trap->place[k] + page_bytes()) continue;
    mprotect(trap->place[k], page_bytes(), PROT_READ | PROT_WRITE);
    trap->is_hit[k] = is_ours = true;
  }
  if (!is_ours) _exit(99);
  while (!trap->has_left) sched_yield();
}

class CopyCancel : public ::testing::Test {
 protected:
  // The first place is in the second piece of a copy, the second one in the last piece.
  CopyCancel() {
    std::memset(storage_.mutable_data(), 7, storage_.nbytes());
    trap_.place[0] = place(kMiB + kMiB / 2);
    trap_.place[1] = place(storage_.nbytes() - kMiB / 2);
    trap = &trap_;
    struct sigaction action = {};
    action.sa_sigaction = wait_for_the_other;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGSEGV, &action, &before_);
    for (std::byte* at : trap_.place) mprotect(at, page_bytes(), PROT_NONE);
    other_ = std::thread([this, clone = storage_.lazy_clone()]() mutable {
      while (!trap_.is_any_hit()) std::this_thread::yield();
      clone = Storage();
      trap_.has_left = true;
    });
  }
  ~CopyCancel() override {
    trap_.is_hit[0] = true;  // in case it was never hit
    other_.join();
    for (std::byte* at : trap_.place) mprotect(at, page_bytes(), PROT_READ | PROT_WRITE);
    sigaction(SIGSEGV, &before_, nullptr);
  }
  std::byte* place(std::size_t offset) {
    const auto address = reinterpret_cast<std::uintptr_t>(storage_.data()) + offset;
    return reinterpret_cast<std::byte*>(address / page_bytes() * page_bytes());
  }

  Storage storage_ = Storage::allocate(8 * kMiB);
  Trap trap_;
  std::thread other_;
  struct sigaction before_ = {};
};

TEST_F(CopyCancel, ACopyThatHasBecomeNeedlessStopsAfterItsPiece) {
  const std::byte* const address = storage_.data();
  const CopyStats stats;
  storage_.mutable_data()[0] = std::byte{9};
  EXPECT_TRUE(trap_.is_hit[0]);
  EXPECT_FALSE(trap_.is_hit[1]) << "it copied on";
  EXPECT_EQ(storage_.data(), address);
  EXPECT_EQ(stats.counts().take_overs, 1u);
  EXPECT_EQ(stats.counts().copies, 0u);
  EXPECT_EQ(CopyStats().counts().take_overs, 0u);  // counts from now on
}

TEST_F(CopyCancel, SoDoesACopyOfTheElementsOfAView) {
  const std::byte* const address = storage_.data();
  const ByteLayout every_second{.offset = 0,
                                .shape = {static_cast<index_t>(8 * kMiB / 512), 256},
                                .strides = {512, 1},
                                .item_size = 1};
  EXPECT_FALSE(storage_.materialize_densely(every_second, false));
  EXPECT_TRUE(trap_.is_hit[0]);
  EXPECT_FALSE(trap_.is_hit[1]) << "it copied on";
  EXPECT_EQ(storage_.data(), address);
  EXPECT_EQ(storage_.nbytes(), 8 * kMiB);
}

}  // namespace
}  // namespace palimpsest
