// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/tensor/guarded_window.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "palimpsest/tensor/placeholder.hpp"

namespace palimpsest {
namespace {

const Extents kShapes[] = {{}, {1}, {5}, {3, 4}, {2, 3, 4}, {0}, {2, 0}};

std::byte* bytes_of(const Tensor& t) { return Storage(t.storage()).mutable_data(); }

TEST(GuardedWindow, WritesInsideAreAllowed) {
  for (const Extents& shape : kShapes) {
    for (const DType dtype : {DType::bool_, DType::float32, DType::complex128}) {
      for (const WindowLayout layout : kWindowLayouts) {
        GuardedWindow window(shape, dtype, layout);
        EXPECT_EQ(window.tensor().shape(), shape);
        EXPECT_EQ(window.tensor().dtype(), dtype);
        EXPECT_FALSE(has_internal_overlap(window.tensor()));
        EXPECT_TRUE(window.is_intact());
        window.tensor().copy_from(Tensor::ones(shape, dtype));
        EXPECT_TRUE(window.is_intact());
        window.fill_bytes(0xA5);
        EXPECT_TRUE(window.is_intact());
      }
    }
  }
}

TEST(GuardedWindow, EachByteBesideItIsGuarded) {
  for (const WindowLayout layout : kWindowLayouts) {
    GuardedWindow window({2, 3}, DType::float32, layout, 64);
    const Tensor& t = window.tensor();
    std::byte* const memory = bytes_of(t);
    const std::size_t n = t.storage().nbytes();
    std::vector<bool> is_inside(n);
    for (index_t i = 0; i < 2; ++i) {
      for (index_t j = 0; j < 3; ++j) {
        const index_t first = 4 * (t.offset() + i * t.strides()[0] + j * t.strides()[1]);
        for (index_t b = first; b < first + 4; ++b) is_inside[static_cast<std::size_t>(b)] = true;
      }
    }
    const auto lowest = std::find(is_inside.begin(), is_inside.end(), true) - is_inside.begin();
    for (std::size_t b = 0; b < n; ++b) {
      const std::byte before = memory[b];
      memory[b] ^= std::byte{0x10};
      const auto change = window.first_change();
      EXPECT_EQ(change.has_value(), !is_inside[b]) << b;
      if (change) {
        EXPECT_EQ(*change, static_cast<index_t>(b) - lowest);
      }
      memory[b] = before;
    }
  }
}

TEST(GuardedWindow, TheRestOfTheStorageOfAnyTensorIsCompared) {
  Tensor whole = Tensor::arange(12, DType::float64).view({3, 4});
  Tensor column = whole(all, 1);
  const Tensor before = storage_bytes(column);
  column.fill(7.0);
  EXPECT_FALSE(first_change_beside(column, before));
  whole.set({1, 2}, -1.0);
  EXPECT_EQ(first_change_beside(column, before), 8 * 5 + 6);  // the high bytes of 6. differ
}

TEST(Placeholder, HasAddressesOfItsOwn) {
  const Tensor a = placeholder(DType::float32, {100, 100}), b = placeholder(DType::float32, {3});
  EXPECT_EQ(a.shape(), (Extents{100, 100}));
  EXPECT_TRUE(a.is_contiguous());
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(a.raw_data()) % 64, 0u);
  EXPECT_FALSE(may_share_memory(a, b));
  EXPECT_FALSE(may_share_memory(a, Tensor::zeros({3})));
}

}  // namespace
}  // namespace palimpsest
