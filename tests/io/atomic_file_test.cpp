// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/base/atomic_file.hpp"

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/files.hpp"
#include "palimpsest/io/npy.hpp"
#include "support/expect_error.hpp"
#include "support/in_child.hpp"

namespace palimpsest {
namespace {

using testing::expect_error;
using testing::in_child;
using testing::read_bytes;
using testing::TemporaryDirectory;
using testing::write_bytes;
using Names = std::vector<std::string>;

TEST(AtomicFile, AppearsOnlyWhenCommitted) {
  const TemporaryDirectory directory;
  const std::string path = directory / "a.txt";
  AtomicFile file(path);
  file.write("hello ");
  file.write(std::string(200000, 'x'));
  file.write("end");
  file.flush();
  EXPECT_FALSE(std::filesystem::exists(path));
  file.commit();
  EXPECT_EQ(read_bytes(path), "hello " + std::string(200000, 'x') + "end");
  EXPECT_EQ(directory.names(), Names{"a.txt"});
}

TEST(AtomicFile, LeavesNothingWhenItIsNotCommitted) {
  const TemporaryDirectory directory;
  write_bytes(directory / "old", "old");
  {
    AtomicFile file(directory / "old");
    AtomicFile other(directory / "new");
    file.write("new");
    other.write("new");
    EXPECT_EQ(directory.names().size(), 3u);
  }
  EXPECT_EQ(directory.names(), Names{"old"});
  EXPECT_EQ(read_bytes(directory / "old"), "old");
}

TEST(AtomicFile, FollowsALinkToWhatIsNotThereYet) {
  const TemporaryDirectory directory;
  std::filesystem::create_directory(directory / "folder");
  std::filesystem::create_symlink("folder/real", directory / "link");
  AtomicFile file(directory / "link");
  file.write("new");
  file.commit();
  EXPECT_TRUE(std::filesystem::is_symlink(directory / "link"));
  EXPECT_EQ(read_bytes(directory / "folder/real"), "new");
  std::filesystem::create_symlink("circle", directory / "circle");
  expect_error<IoError>([&] { AtomicFile circle(directory / "circle"); }, "circle");
}

TEST(AtomicFile, FollowsLinksAndKeepsTheMode) {
  const TemporaryDirectory directory;
  write_bytes(directory / "real", "old");
  ::chmod((directory / "real").c_str(), 0640);
  std::filesystem::create_symlink("real", directory / "link");
  AtomicFile file(directory / "link");
  file.write("new");
  file.commit();
  EXPECT_TRUE(std::filesystem::is_symlink(directory / "link"));
  EXPECT_EQ(read_bytes(directory / "real"), "new");
  struct stat status = {};
  ::stat((directory / "real").c_str(), &status);
  EXPECT_EQ(status.st_mode & 0777, 0640u);
}

TEST(AtomicFile, WritesDevicesDirectlyAndReportsAFullOne) {
  AtomicFile null("/dev/null");
  null.write("gone");
  null.commit();
  struct stat status = {};
  ::stat("/dev/null", &status);
  EXPECT_TRUE(S_ISCHR(status.st_mode));
  expect_error<IoError>(
      [] {
        AtomicFile full("/dev/full");
        full.write(std::string(100000, 'x'));
        full.commit();
      },
      "[/dev/full] cannot be written: No space left on device. Try a place with more free space.");
}

TEST(AtomicFile, NamesAMissingDirectory) {
  const TemporaryDirectory directory;
  expect_error<IoError>([&] { AtomicFile file(directory / "nowhere/a.txt"); },
                        "nowhere/a.txt] cannot be written: no such file or directory");
  expect_error<IoError>([&] { AtomicFile file(directory.path()); }, "Is a directory");
  expect_error<IoError>([&] { AtomicFile file(directory.path() + "/"); }, "Is a directory");
  expect_error<IoError>([&] { AtomicFile file(""); }, "no such file or directory");
  write_bytes(directory / "file", "x");
  expect_error<IoError>([&] { AtomicFile file(directory / "file/a"); }, "Not a directory");
}

template <class Work>
int expect_io_error(Work work, const std::string& text) {
  try {
    work();
  } catch (const IoError& error) {
    return std::string(error.what()).find(text) != std::string::npos ? 0 : 3;
  }
  return 4;
}

TEST(AtomicFile, RefusesReadOnlyDirectoriesAndFiles) {
  const TemporaryDirectory directory;
  std::filesystem::create_directory(directory / "locked");
  std::filesystem::create_directory(directory / "open");
  write_bytes(directory / "open/locked", "old");
  ::chmod(directory.path().c_str(), 0755);
  ::chmod((directory / "locked").c_str(), 0555);
  ::chmod((directory / "open").c_str(), 0777);
  ::chmod((directory / "open/locked").c_str(), 0444);
  EXPECT_EQ(in_child([&] {
              if (::geteuid() == 0 && ::setuid(65534) != 0) return 5;
              return expect_io_error([&] { AtomicFile file(directory / "locked/a"); },
                                     "Permission denied. Try another directory");
            }),
            0);
  EXPECT_EQ(in_child([&] {
              if (::geteuid() == 0 && ::setuid(65534) != 0) return 5;
              return expect_io_error([&] { AtomicFile file(directory / "open/locked"); },
                                     "Permission denied");
            }),
            0);
  EXPECT_EQ(read_bytes(directory / "open/locked"), "old");
}

TEST(AtomicFile, LeavesNothingWhenTheDiskIsFull) {
  const TemporaryDirectory directory;
  const Tensor big = Tensor::zeros({1 << 16}, DType::float64);
  EXPECT_EQ(in_child([&] {
              ::signal(SIGXFSZ, SIG_IGN);
              const rlimit limit = {100000, 100000};
              ::setrlimit(RLIMIT_FSIZE, &limit);
              return expect_io_error([&] { write_npy(directory / "big.npy", big); },
                                     "File too large. Try a place with more free space");
            }),
            0);
  EXPECT_EQ(directory.names(), Names{});
}

TEST(AtomicFile, RefusesToBeUsedAfterItsEnd) {
  const TemporaryDirectory directory;
  AtomicFile file(directory / "a");
  file.commit();
  expect_error<InternalError>([&] { file.write("x"); }, "written after its end");
  expect_error<InternalError>([&] { file.flush(); }, "flushed after its end");
}

}  // namespace
}  // namespace palimpsest
