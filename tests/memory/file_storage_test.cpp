// SPDX-License-Identifier: Apache-2.0
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "palimpsest/base/error.hpp"
#include "palimpsest/memory/file_mappings.hpp"
#include "palimpsest/memory/storage.hpp"
#include "support/expect_error.hpp"
#include "support/in_child.hpp"

namespace palimpsest {
namespace {

using testing::expect_error;
using testing::in_child;

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

TEST_F(FileStorage, RefusesAPipeAtOnce) {
  const std::string pipe = path_ + "_pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  expect_error<IoError>([&] { Storage::from_file(pipe, 0, 1); }, "is not a regular file");
  std::filesystem::remove(pipe);
}

// Descriptor 0 is the first free one if standard input is closed.
TEST_F(FileStorage, AnyDescriptorWillDo) {
  EXPECT_EQ(in_child([&] {
              close(STDIN_FILENO);
              return Storage::from_file(path_, 7, 1).data()[0] == std::byte{7};
            }),
            0);
}

TEST_F(FileStorage, EveryMappingKnowsWhichBytesOfWhichFileItShows) {
  const std::string link = path_ + "_link";
  std::filesystem::create_hard_link(path_, link);
  const Storage a = Storage::from_file(path_, 100, 50), b = Storage::from_file(link, 5000, 2000);
  std::filesystem::remove(link);
  const auto first = mapped_place(a.data(), a.nbytes()), second = mapped_place(b.data() + 7, 1);
  ASSERT_TRUE(first && second);
  EXPECT_TRUE(first->is_in_same_file(*second));
  EXPECT_EQ(first->offset, 100);
  EXPECT_EQ(second->offset, 5007);
  EXPECT_FALSE(mapped_place(b.data(), 2001)) << "not all of them are mapped";
  EXPECT_FALSE(mapped_place(&first, 1));
  const Storage shared = Storage::shared_memory(10);
  const auto other = mapped_place(shared.data(), 10);
  ASSERT_TRUE(other);
  EXPECT_FALSE(other->is_in_same_file(*first));
}

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
