// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <functional>

#include "palimpsest/base/error.hpp"
#include "palimpsest/memory/file_mappings.hpp"
#include "palimpsest/memory/file_pages.hpp"
#include "palimpsest/memory/storage.hpp"
#include "support/expect_error.hpp"
#include "support/in_child.hpp"

namespace palimpsest {
namespace {

using testing::expect_error;
using testing::in_child;

int count_mappings() {
  std::FILE* const maps = std::fopen("/proc/self/maps", "r");
  int count = 0;
  for (std::array<char, 1024> line; std::fgets(line.data(), line.size(), maps) != nullptr;) {
    if (std::strstr(line.data(), "memfd:palimpsest") != nullptr) ++count;
  }
  std::fclose(maps);
  return count;
}

// Sends a descriptor over a Unix socket, or receives one.
void send_descriptor(int socket, int descriptor) {
  std::byte payload{0};
  iovec part{&payload, 1};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(header), &descriptor, sizeof(int));
  ASSERT_EQ(sendmsg(socket, &message, 0), 1);
}

int receive_descriptor(int socket) {
  std::byte payload{0};
  iovec part{&payload, 1};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  if (recvmsg(socket, &message, 0) != 1) return -1;
  int descriptor = -1;
  std::memcpy(&descriptor, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(int));
  return descriptor;
}

TEST(SharedStorage, IsZeroedAndForeignWritable) {
  const Storage storage = Storage::shared_memory(10'000);
  EXPECT_EQ(storage.nbytes(), 10'000u);
  EXPECT_EQ(storage.state(), StorageState::foreign_writable);
  for (std::size_t k = 0; k < 10'000; ++k) ASSERT_EQ(storage.data()[k], std::byte{0});
}

TEST(SharedStorage, AForkedProcessSeesWritesAndIsSeen) {
  Storage storage = Storage::shared_memory(4096);
  storage.mutable_data()[0] = std::byte{1};
  const int status = in_child([&] {
    if (storage.data()[0] != std::byte{1}) return 1;
    Storage again = Storage::attach_shared_memory(storage.shared_descriptor());
    if (again.nbytes() != 4096 || again.data()[0] != std::byte{1}) return 2;
    again.mutable_data()[1] = std::byte{2};
    storage.mutable_data()[2] = std::byte{3};
    return 0;
  });
  EXPECT_EQ(status, 0);
  EXPECT_EQ(storage.data()[1], std::byte{2});
  EXPECT_EQ(storage.data()[2], std::byte{3});
}

TEST(SharedStorage, AHandleSentOverASocketIsAttached) {
  std::array<int, 2> sockets{};
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets.data()), 0);
  const pid_t child = fork();
  if (child == 0) {
    // This process has never had the storage, which is made after the fork.
    const int descriptor = receive_descriptor(sockets[1]);
    if (descriptor < 0) _exit(1);
    Storage storage = Storage::attach_shared_memory(descriptor);
    close(descriptor);
    if (storage.nbytes() != 100 || storage.data()[7] != std::byte{7}) _exit(2);
    storage.mutable_data()[8] = std::byte{8};
    _exit(0);
  }
  Storage storage = Storage::shared_memory(100);
  storage.mutable_data()[7] = std::byte{7};
  send_descriptor(sockets[0], storage.shared_descriptor());
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(storage.data()[8], std::byte{8});
  for (const int socket : sockets) close(socket);
}

TEST(SharedStorage, LivesUntilItsLastUserAndNoLonger) {
  const int before = count_mappings();
  Storage storage = Storage::shared_memory(100);
  storage.mutable_data()[5] = std::byte{5};
  Storage again = Storage::attach_shared_memory(storage.shared_descriptor());
  const int descriptor = again.shared_descriptor();
  EXPECT_FALSE(again.is(storage));
  EXPECT_EQ(count_mappings(), before + 2);
  storage = {};
  EXPECT_EQ(again.data()[5], std::byte{5});
  again = {};
  EXPECT_EQ(count_mappings(), before);
  EXPECT_EQ(fcntl(descriptor, F_GETFD), -1) << "its descriptor is closed";
}

TEST(SharedStorage, OfAnySizeLeavesNoMapping) {
  for (const std::size_t bytes : {0, 1, 2, 4096, 4097}) {
    const int before = count_mappings();
    {
      const Storage storage = Storage::shared_memory(bytes);
      EXPECT_EQ(count_mappings(), before + (bytes > 0 ? 1 : 0));
    }
    EXPECT_EQ(count_mappings(), before) << bytes;
  }
}

TEST(SharedStorage, LazyClonesCopyAtOnce) {
  Storage storage = Storage::shared_memory(100);
  const Storage clone = storage.lazy_clone();
  storage.mutable_data()[0] = std::byte{1};
  EXPECT_FALSE(clone.shares_data(storage));
  EXPECT_EQ(clone.data()[0], std::byte{0});
}

TEST(SharedStorage, NothingAtAllIsShareable) {
  const Storage empty = Storage::shared_memory(0);
  EXPECT_EQ(empty.nbytes(), 0u);
  EXPECT_EQ(Storage::attach_shared_memory(empty.shared_descriptor()).nbytes(), 0u);
}

TEST(SharedStorage, AttachmentsInOneProcessShowTheSamePlace) {
  const Storage a = Storage::shared_memory(100);
  const auto first = mapped_place(a.data(), 100);
  ASSERT_TRUE(first);
  {
    const Storage b = Storage::attach_shared_memory(a.shared_descriptor());
    const auto second = mapped_place(b.data() + 40, 60);
    ASSERT_TRUE(second);
    EXPECT_TRUE(first->is_in_same_file(*second));
    EXPECT_EQ(second->offset, first->offset + 40);
    EXPECT_FALSE(is_file_mapped(b.data(), 100)) << "its pages must stay";
  }
  const Storage other = Storage::shared_memory(100);
  EXPECT_FALSE(first->is_in_same_file(*mapped_place(other.data(), 100)));
}

TEST(SharedStorage, WhatHasEndedIsForgotten) {
  const void* address = nullptr;
  {
    const Storage a = Storage::shared_memory(100);
    address = a.data();
  }
  EXPECT_FALSE(mapped_place(address, 100));
}

// A service without standard input has descriptor 0 free.
TEST(SharedStorage, AnyDescriptorWillDo) {
  const int input = dup(0);
  ASSERT_GE(input, 0);
  const auto is_free = [] { return fcntl(0, F_GETFD) == -1; };
  close(0);
  {
    const Storage storage = Storage::shared_memory(100);
    EXPECT_EQ(storage.shared_descriptor(), 0);
  }
  EXPECT_TRUE(is_free());
  {
    const int held = open("/dev/null", O_RDONLY);
    const Storage storage = Storage::shared_memory(100);
    close(held);
    const Storage again = Storage::attach_shared_memory(storage.shared_descriptor());
    EXPECT_EQ(again.shared_descriptor(), 0);
  }
  EXPECT_TRUE(is_free());
  dup2(input, 0);
  close(input);
}

TEST(SharedStorage, NobodyCanShrinkIt) {
  const Storage storage = Storage::shared_memory(4096);
  EXPECT_NE(ftruncate(storage.shared_descriptor(), 0), 0);
  EXPECT_NE(ftruncate(storage.shared_descriptor(), 8192), 0);
}

TEST(SharedStorage, SaysWhatIsWrong) {
  expect_error<IoError>([] { Storage::attach_shared_memory(-1); },
                        "not a descriptor of shared memory: got -1");
  const int null = open("/dev/null", O_RDWR);
  expect_error<IoError>([&] { Storage::attach_shared_memory(null); }, "not a descriptor of shared");
  close(null);
  const int unsealed = memfd_create("other", MFD_CLOEXEC);
  expect_error<IoError>([&] { Storage::attach_shared_memory(unsealed); }, "not a descriptor of");
  close(unsealed);
  expect_error<IoError>([] { Storage::shared_memory(~std::size_t{0}); }, "cannot get");
  expect_error<IoError>([] { Storage::shared_memory(std::size_t{1} << 62); }, "shared_memory");
  expect_error<ValueError>([] { Storage::allocate(8).shared_descriptor(); },
                           "not shared memory: got a storage that is owned");
}

}  // namespace
}  // namespace palimpsest
