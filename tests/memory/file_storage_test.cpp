// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "palimpsest/base/error.hpp"
#include "palimpsest/memory/storage.hpp"
#include "support/expect_error.hpp"

namespace palimpsest {
namespace {

using testing::expect_error;

class FileStorage : public ::testing::Test {
 protected:
  FileStorage() {
    std::ofstream file(path_, std::ios::binary);
    for (int i = 0; i < 10000; ++i) file.put(static_cast<char>(i % 251));
  }
  ~FileStorage() override { std::filesystem::remove(path_); }

  std::byte on_disk(int offset) const {
    std::ifstream file(path_, std::ios::binary);
    file.seekg(offset);
    return static_cast<std::byte>(file.get());
  }

  const std::string path_ = std::filesystem::temp_directory_path() /
                            ("palimpsest_file_storage_" + std::to_string(getpid()));
};

TEST_F(FileStorage, ShowsAPartOfAFile) {
  for (const std::size_t offset : {0, 1, 4096, 5000}) {
    const Storage storage = Storage::from_file(path_, offset, 3000);
    EXPECT_EQ(storage.state(), StorageState::foreign_read_only);
    EXPECT_EQ(storage.nbytes(), 3000u);
    EXPECT_EQ(storage.data()[2999], static_cast<std::byte>((offset + 2999) % 251));
  }
}

TEST_F(FileStorage, WritesGoToMemoryNotToTheFile) {
  Storage storage = Storage::from_file(path_, 100, 50);
  Storage clone = storage.lazy_clone(10, 5);
  clone.mutable_data()[0] = std::byte{255};
  EXPECT_EQ(clone.state(), StorageState::owned);
  EXPECT_EQ(storage.data()[10], std::byte{110});
  storage.mutable_data()[10] = std::byte{254};
  EXPECT_EQ(on_disk(110), std::byte{110});
}

TEST_F(FileStorage, MayBeEmpty) { EXPECT_EQ(Storage::from_file(path_, 10000, 0).nbytes(), 0u); }

TEST_F(FileStorage, RefusesWhatIsNotThere) {
  expect_error<IoError>([&] { Storage::from_file(path_, 9000, 1001); },
                        "is too short: got 10000 bytes, expected 9000 + 1001");
  expect_error<IoError>([&] { Storage::from_file(path_, 10001, 0); }, "is too short");
  expect_error<IoError>([&] { Storage::from_file(path_ + ".none", 0, 1); }, "cannot be opened");
  expect_error<IoError>([&] { Storage::from_file(std::filesystem::temp_directory_path(), 0, 1); },
                        "is not a regular file");
}

}  // namespace
}  // namespace palimpsest
