// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/memory/file_pages.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "palimpsest/memory/storage.hpp"
#include "support/resident_file.hpp"

namespace palimpsest {
namespace {

constexpr std::size_t kBytes = 8 << 20;

std::size_t sum_of(const Storage& storage) {
  std::size_t sum = 0;
  for (std::size_t i = 0; i < storage.nbytes(); i += 64) {
    sum += static_cast<std::size_t>(storage.data()[i]);
  }
  return sum;
}

class FilePages : public ::testing::Test {
 protected:
  FilePages()
      : path_(::testing::TempDir() + "palimpsest_file_pages_" + std::to_string(getpid()) + ".bin") {
    std::ofstream file(path_, std::ios::binary);
    for (std::size_t i = 0; i < kBytes; ++i) file.put(static_cast<char>(i / 64 % 251));
  }
  ~FilePages() override { std::filesystem::remove(path_); }

  std::size_t resident_bytes() const { return testing::resident_bytes_of(path_); }

  std::string path_;
};

TEST_F(FilePages, KnowsWhatIsMappedWhileItIs) {
  const std::byte* data = nullptr;
  {
    const Storage whole = Storage::from_file(path_, 0, kBytes);
    data = whole.data();
    EXPECT_TRUE(is_file_mapped(data, kBytes));
    EXPECT_TRUE(is_file_mapped(data + 1000, 1));
    EXPECT_FALSE(is_file_mapped(data, kBytes + 1));
    EXPECT_FALSE(is_file_mapped(data, 0));
    const Storage part = Storage::from_file(path_, 5000, 100);
    EXPECT_TRUE(is_file_mapped(part.data(), 100));
    const Storage own = Storage::allocate(100);
    EXPECT_FALSE(is_file_mapped(own.data(), 100));
    EXPECT_TRUE(is_file_mapped(whole.lazy_clone().data(), kBytes));
  }
  EXPECT_FALSE(is_file_mapped(data, 1));
}

TEST_F(FilePages, WhatIsGivenBackLeavesMemoryAndReadsTheSame) {
  const Storage storage = Storage::from_file(path_, 0, kBytes);
  const std::size_t sum = sum_of(storage);
  EXPECT_EQ(resident_bytes(), kBytes);
  release_file_pages(storage.data(), storage.nbytes());
  EXPECT_EQ(resident_bytes(), 0u);
  EXPECT_EQ(sum_of(storage), sum);
}

TEST_F(FilePages, OneByteIsGivenBackWithItsPages) {
  const Storage storage = Storage::from_file(path_, 0, 4096);
  EXPECT_GT(sum_of(storage), 0u);
  EXPECT_GT(resident_bytes(), 0u);
  release_file_pages(storage.data() + 100, 1);
  EXPECT_EQ(resident_bytes(), 0u);
}

// The kernel may load more pages than requested.
TEST_F(FilePages, OfSmallPiecesThatAreGivenBackNothingStays) {
  const Storage storage = Storage::from_file(path_, 0, kBytes);
  constexpr std::size_t kPiece = 200'000;
  for (std::size_t begin = 0; begin < kBytes; begin += kPiece) {
    const std::size_t bytes = std::min(kPiece, kBytes - begin);
    std::size_t sum = 0;
    for (std::size_t i = 0; i < bytes; i += 64) {
      sum += static_cast<std::size_t>(storage.data()[begin + i]);
    }
    EXPECT_GT(sum, 0u);
    release_file_pages(storage.data() + begin, bytes);
  }
  EXPECT_LE(resident_bytes(), kBytes / 20);
}

TEST_F(FilePages, GivingBackOtherMemoryDoesNothing) {
  Storage storage = Storage::allocate(kBytes);
  std::byte* const data = storage.overwrite_data();
  for (std::size_t i = 0; i < kBytes; ++i) data[i] = std::byte{7};
  const Storage mapped = Storage::from_file(path_, 0, 100);
  release_file_pages(data, kBytes);
  EXPECT_EQ(data[0], std::byte{7});
  EXPECT_EQ(data[kBytes - 1], std::byte{7});
}

TEST_F(FilePages, ACopyThatWasWrittenKeepsWhatWasWritten) {
  Storage storage = Storage::from_file(path_, 0, kBytes);
  const Storage other = storage.lazy_clone();
  storage.mutable_data()[4096] = std::byte{99};
  release_file_pages(storage.data(), kBytes);
  release_file_pages(other.data(), kBytes);
  EXPECT_EQ(storage.data()[4096], std::byte{99});
  EXPECT_EQ(other.data()[4096], static_cast<std::byte>(4096 / 64 % 251));
}

}  // namespace
}  // namespace palimpsest
