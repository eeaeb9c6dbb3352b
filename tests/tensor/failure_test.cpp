// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <functional>
#include <new>

#include "palimpsest/memory/allocator.hpp"
#include "palimpsest/tensor/tensor.hpp"
#include "palimpsest/tensor/tensor_map.hpp"
#include "support/every_allocation.hpp"
#include "support/expect_error.hpp"
#include "support/new_counter.hpp"

namespace palimpsest {
namespace {

struct Scene {
  std::array<double, 6> foreign{0, 1, 2, 3, 4, 5};
  Tensor t = Tensor::arange(6, DType::float64).view({2, 3});
  Tensor clone = t.lazy_clone();
  Tensor read_only = Tensor::from_blob(foreign.data(), DType::float64, {6}, {1}, {}, false);

  void check() const {
    const std::vector<double> expected{0, 1, 2, 3, 4, 5};
    EXPECT_EQ(t.to_vector<double>(), expected);
    EXPECT_EQ(clone.to_vector<double>(), expected);
    EXPECT_EQ(read_only.to_vector<double>(), expected);
    EXPECT_TRUE(t.storage().shares_data(clone.storage()));
    EXPECT_EQ(t.storage().references(), 2u);
    EXPECT_EQ(read_only.raw_data(), foreign.data());
  }
};

using Actions = std::vector<std::function<void(Scene&)>>;

// Every public operation that may allocate memory for elements.
const Actions& actions() {
  static const Actions list{
      [](Scene&) { Tensor::empty({4}); },
      [](Scene&) { Tensor::arange(4, DType::float32); },
      [](Scene&) { Tensor::linspace(0, 1, 4, DType::float32); },
      [](Scene&) { Tensor::eye(3); },
      [](Scene&) {
        Tensor::from<float>({1, 2});
      },
      [](Scene&) { Tensor::random_normal({3}, DType::complex64, {}); },
      [](Scene& s) { s.t.clone(); },
      [](Scene& s) { s.t.transpose().contiguous(); },
      [](Scene& s) { s.t.transpose().reshape({6}); },
      [](Scene& s) { s.t.to(DType::complex64); },
      [](Scene& s) {
        s.t.to(Device{DeviceType::cpu, 1});
      },
      [](Scene& s) { s.t.mutable_data<double>(); },
      [](Scene& s) { s.t.raw_overwrite_data(); },
      [](Scene& s) { s.t.fill(1.0); },
      [](Scene& s) { s.t(0, all).fill(1.0); },
      [](Scene& s) {
        s.t.set({0, 0}, 1.0);
      },
      [](Scene& s) { s.t.copy_from(Tensor::ones({3})); },
      [](Scene& s) { s.t(0, all).copy_from(s.t(1, all)); },
      [](Scene& s) { s.t.copy_from(s.t(0, slice({}, {}, -1))); },
      [](Scene& s) { s.read_only.fill(1.0); },
      [](Scene& s) { s.read_only(0).fill(1.0); },
      [](Scene& s) { equal(s.t.transpose(), s.clone.transpose()); },
      [](Scene& s) { allclose(s.t, s.clone); },
      [](Scene& s) { to_string(s.t, {.summarize_above = 2, .edge_items = 1}); },
      [](Scene& s) {
        MemoryMap sharing;
        add(sharing, s.t);
        add(sharing, s.t(0, all));
        sharing.copy();
        map(sharing, s.t);
      },
  };
  return list;
}

// Operations that may use the heap for handles, shapes and text.
const Actions& actions_without_memory() {
  static const Actions list{
      [](Scene& s) { s.t.lazy_clone(); },
      [](Scene& s) { s.t(0, all).lazy_clone(); },
      [](Scene& s) {
        s.t.reshape({3, 2});
      },
      [](Scene& s) { s.t.contiguous(); },
      [](Scene& s) { s.t.to(DType::float64); },
      [](Scene& s) { s.t(newaxis, ellipsis, slice({}, {}, -1)); },
      [](Scene& s) {
        s.t.view({1, 1, 1, 1, 1, 1, 1, 1, 1, 6}).permute({9, 8, 7, 6, 5, 4, 3, 2, 1, 0});
      },
      [](Scene& s) {
        s.t.expand({2, 1, 1, 1, 1, 1, 1, 1, 2, 3});
      },
      [](Scene& s) { s.t.unfold(1, 2, 1); },
      [](Scene& s) { s.t.bitcast(DType::uint8); },
      [](Scene& s) { s.t.to_vector<double>(); },
      [](Scene& s) {
        s.t.at<double>({1, 2});
      },
      [](Scene& s) {
        Tensor::from_blob(
            s.foreign.data(), DType::float64, {2, 3}, {3, 1}, [] {}, true);
      },
      [](Scene& s) { overlaps(s.t(all, slice({}, {}, 2)), s.t(all, slice(1, {}, 2))); },
      [](Scene& s) { has_internal_overlap(s.t.unfold(1, 2, 1)); },
      [](Scene& s) { to_string(s.t); },
  };
  return list;
}

TEST(TensorFailure, AtEveryAllocationLeavesEverythingAsItWas) {
  for (std::size_t a = 0; a < actions().size(); ++a) {
    SCOPED_TRACE("action " + std::to_string(a));
    const MemoryScope leaks, leaks_elsewhere(Device{DeviceType::cpu, 1});
    const std::size_t n = testing::survived_failures<FailingAllocator, OutOfMemory>(actions()[a]);
    EXPECT_GT(n, 0u) << "nothing was allocated";
    EXPECT_EQ(leaks.live_bytes(), 0);
    EXPECT_EQ(leaks_elsewhere.live_bytes(), 0);
  }
}

TEST(TensorFailure, AtEveryUseOfTheHeapLeavesEverythingAsItWas) {
  std::size_t n = 0;
  const MemoryScope leaks, leaks_elsewhere(Device{DeviceType::cpu, 1});
  for (const auto* list : {&actions(), &actions_without_memory()}) {
    for (std::size_t a = 0; a < list->size(); ++a) {
      SCOPED_TRACE("action " + std::to_string(a));
      n += testing::survived_failures<testing::FailingNew, std::bad_alloc>((*list)[a]);
    }
  }
  EXPECT_GT(n, 50u);
  EXPECT_EQ(leaks.live_bytes(), 0);
  EXPECT_EQ(leaks_elsewhere.live_bytes(), 0);
}

}  // namespace
}  // namespace palimpsest
