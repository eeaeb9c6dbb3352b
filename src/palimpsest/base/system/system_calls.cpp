// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/base/system/system_calls.hpp"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstring>

#if defined(__linux__)
#include <linux/membarrier.h>
#include <malloc.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#else
#include <malloc/malloc.h>
#endif

namespace palimpsest::system_detail {

#if defined(__linux__)

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

bool register_barrier_of_threads() noexcept {
  return syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
}

bool barrier_of_threads() noexcept {
  return syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0;
}

int make_memory_file(const char* name) noexcept {
  return memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
}

bool seal_size(int descriptor) noexcept { return fcntl(descriptor, F_ADD_SEALS, kSeals) == 0; }

bool has_sealed_size(int descriptor) noexcept { return fcntl(descriptor, F_GET_SEALS) == kSeals; }

std::string path_of(int descriptor) { return "/proc/self/fd/" + std::to_string(descriptor); }

std::size_t status_bytes(const char* name) noexcept {
  char text[8192] = {};
  const int descriptor = ::open("/proc/self/status", O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return 0;
  const ssize_t got = ::read(descriptor, text, sizeof(text) - 1);
  ::close(descriptor);
  const char* const line = got > 0 ? std::strstr(text, name) : nullptr;
  if (line == nullptr || line[std::strlen(name)] != ':') return 0;
  return std::strtoull(line + std::strlen(name) + 1, nullptr, 10) * 1024;
}

void end_with_parent() noexcept { ::prctl(PR_SET_PDEATHSIG, SIGKILL); }

std::size_t allocated_bytes(void* block) noexcept { return malloc_usable_size(block); }

#else

bool register_barrier_of_threads() noexcept { return false; }

bool barrier_of_threads() noexcept { return false; }

int make_memory_file(const char*) noexcept {
  char path[] = "/tmp/palimpsest-XXXXXX";
  const int descriptor = mkstemp(path);
  if (descriptor < 0) return -1;
  unlink(path);
  fcntl(descriptor, F_SETFD, FD_CLOEXEC);
  return descriptor;
}

bool seal_size(int) noexcept { return true; }

bool has_sealed_size(int) noexcept { return true; }

std::string path_of(int descriptor) { return "/dev/fd/" + std::to_string(descriptor); }

std::size_t status_bytes(const char*) noexcept { return 0; }

void end_with_parent() noexcept {}

std::size_t allocated_bytes(void* block) noexcept { return malloc_size(block); }

#endif

}  // namespace palimpsest::system_detail
