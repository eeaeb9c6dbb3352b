// SPDX-License-Identifier: Apache-2.0
// Concurrent exports and clones. Exporting a const tensor is a read, so others may clone and export
// it meanwhile. A writable export is a write of one Storage, whose data lazy clones of other
// threads share.
#include <gtest/gtest.h>

#include <atomic>
#include <iostream>
#include <thread>
#include <vector>

#include "palimpsest/memory/allocator.hpp"
#include "palimpsest/tensor/dlpack.hpp"
#include "support/long_run.hpp"

namespace palimpsest {
namespace {

using Managed = dlpack::ManagedTensorVersioned;

constexpr index_t kWords = 16;
constexpr int kValue = 7;

struct Counts {
  std::atomic<int> wrong{0};
  std::atomic<long> handed_over{0};
};

// Exports made by one thread, and written and ended by another.
class Mailbox {
 public:
  bool put(Managed* managed) {
    Managed* empty = nullptr;
    return slot_.compare_exchange_strong(empty, managed, std::memory_order_acq_rel);
  }
  Managed* take() { return slot_.exchange(nullptr, std::memory_order_acq_rel); }

 private:
  std::atomic<Managed*> slot_{nullptr};
};

int* data_of(Managed* managed) { return static_cast<int*>(managed->view.data); }

// Clones the common tensor, writes some of the clones, and receives exports of other threads.
void clone_and_receive(const Tensor& t, int rounds, Mailbox& mailbox, Counts& counts) {
  for (int k = 0; k < rounds; ++k) {
    Tensor clone = t.lazy_clone();
    if (k % 4 == 0) clone.set({0}, k);
    if (clone.at<int>({kWords - 1}) != kValue) ++counts.wrong;
    if (Managed* const managed = mailbox.take()) {
      data_of(managed)[1] = kValue + 1;
      managed->deleter(managed);
    }
  }
}

// Exports the common tensor for reading, and lazy clones of it for writing.
void export_both_ways(const Tensor& t, int rounds, Mailbox& mailbox, Counts& counts) {
  Tensor mine = t.lazy_clone();
  bool is_handed_over = false;
  for (int k = 0; k < rounds; ++k) {
    Managed* const reading = to_dlpack(t);
    if (data_of(reading)[1] != kValue || (reading->flags & dlpack::kReadOnly) == 0) ++counts.wrong;
    reading->deleter(reading);
    if (is_handed_over) {
      // Once the receiver is done, its write is visible, also in clones that are lazy again.
      if (mine.storage().state() == StorageState::pinned) continue;
      if (mine.lazy_clone().at<int>({1}) != kValue + 1) ++counts.wrong;
      is_handed_over = false;
    }
    mine = t.lazy_clone();
    Managed* const writing = to_dlpack(mine, DlpackAccess::writable);
    data_of(writing)[0] = k;
    if (mine.lazy_clone().at<int>({0}) != k || data_of(writing)[1] != kValue) ++counts.wrong;
    if (k % 8 == 0 && mailbox.put(writing)) {
      is_handed_over = true;
      ++counts.handed_over;
    } else {
      writing->deleter(writing);
    }
  }
}

TEST(ExportStress, ClonesAndExportsBesideOneAnotherKeepAllContents) {
  const int rounds = testing::longer_unless_sanitized(1'000'000);
  const MemoryScope leaks;
  {
    const Tensor t = Tensor::full<int>({kWords}, kValue);
    const void* const address = t.raw_data();
    Counts counts;
    Mailbox mailbox;
    {
      std::thread other([&] { export_both_ways(t, rounds, mailbox, counts); });
      clone_and_receive(t, rounds, mailbox, counts);
      other.join();
    }
    if (Managed* const managed = mailbox.take()) managed->deleter(managed);
    EXPECT_EQ(counts.wrong, 0);
    EXPECT_GT(counts.handed_over, 0);
    EXPECT_EQ(t.raw_data(), address);
    EXPECT_EQ(t.storage().state(), StorageState::owned);
    EXPECT_EQ(t.to_vector<int>(), std::vector<int>(kWords, kValue));
    std::cout << rounds << " rounds, " << counts.handed_over
              << " exports ended by another thread\n";
  }
  EXPECT_EQ(leaks.live_bytes(), 0);
}

}  // namespace
}  // namespace palimpsest
