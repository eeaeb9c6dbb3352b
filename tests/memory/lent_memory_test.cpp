// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/memory/lent_memory.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <optional>
#include <vector>

namespace palimpsest {
namespace {

Storage filled(std::size_t bytes, int value) {
  Storage storage = Storage::allocate(bytes);
  std::memset(storage.mutable_data(), value, bytes);
  return storage;
}

TEST(LentMemory, StaysReadableWhenItsOwnerIsGone) {
  std::optional<Storage> owner = filled(4096, 7);
  const std::byte* const lent = owner->data() + 64;
  const LentMemory memory(lent, 128);
  LentMemory::share(*owner);
  owner.reset();
  const Storage other = filled(4096, 9);  // would reuse freed memory
  EXPECT_EQ(lent[0], std::byte{7});
  EXPECT_EQ(lent[127], std::byte{7});
}

TEST(LentMemory, KeepsItsBytesWhenTheOwnerIsWritten) {
  Storage owner = filled(256, 1);
  const std::byte* const lent = owner.data();
  {
    const LentMemory memory(lent, 256);
    LentMemory::share(owner);
    std::memset(owner.overwrite_data(), 2, 256);
    EXPECT_EQ(lent[0], std::byte{1});
    EXPECT_NE(owner.data(), lent);
  }
  EXPECT_FALSE(owner.is_shared());
}

TEST(LentMemory, OfOthersIsKeptButNotCopied) {
  std::vector<std::byte> bytes(64, std::byte{3});
  bool is_released = false;
  std::optional<Storage> owner =
      Storage::from_foreign(bytes.data(), 64, {}, true, [&] { is_released = true; });
  {
    const LentMemory memory(bytes.data(), 64);
    LentMemory::share(*owner);
    owner.reset();
    EXPECT_FALSE(is_released);
  }
  EXPECT_TRUE(is_released);
}

TEST(LentMemory, WaitsForTheOwnerThatItLiesIn) {
  const Storage one = filled(64, 1), other = filled(64, 2);
  const LentMemory memory(one.data(), 64);
  EXPECT_TRUE(LentMemory::is_lent(one.data(), 64));
  EXPECT_FALSE(LentMemory::is_lent(other.data(), 64));
  EXPECT_FALSE(LentMemory::is_lent(one.data(), 63));
  LentMemory::share(other);
  EXPECT_FALSE(other.is_shared());
  LentMemory::share(Storage());
  LentMemory::share(one);
  EXPECT_TRUE(one.is_shared());
  EXPECT_FALSE(LentMemory::is_lent(one.data(), 64));
}

TEST(LentMemory, IsForgottenWithTheObject) {
  const Storage owner = filled(64, 1);
  { const LentMemory memory(owner.data(), 64); }
  EXPECT_FALSE(LentMemory::is_lent(owner.data(), 64));
  LentMemory::share(owner);
  EXPECT_FALSE(owner.is_shared());
}

}  // namespace
}  // namespace palimpsest
