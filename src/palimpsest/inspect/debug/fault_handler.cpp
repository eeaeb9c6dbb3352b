// SPDX-License-Identifier: Apache-2.0
// The handler's data lie in static memory: a table of ranges, each with room for the first
// accesses. It may run on any thread while others watch and unwatch. A thread that faults in a
// range is between watch() and unwatch() of that range, so the entry stays while it is read.
#include "palimpsest/inspect/debug/fault_handler.hpp"

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <mutex>

#if defined(__linux__)
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "palimpsest/base/fork.hpp"
#endif

namespace palimpsest::fault_handler {

#if defined(__linux__)
namespace {

constexpr std::size_t kMostRanges = 128;
constexpr std::size_t kMostRecords = 32;

struct Entry {
  std::atomic<bool> is_taken{false};
  std::atomic<std::uintptr_t> begin{0}, end{0};
  std::atomic<std::size_t> count{0};
  std::array<std::atomic<std::uintptr_t>, kMostRecords> addresses{};
  std::array<std::atomic<int>, kMostRecords> kinds{};
};

std::array<Entry, kMostRanges> table;
std::atomic<std::uintptr_t> bytes_per_page{0};

Mutex installing;
int users = 0;              // guarded by installing
bool is_installed = false;  // guarded by installing
struct sigaction previous;  // written before the handler is installed only

MemoryFault::Kind kind_of(void* context) {
#if defined(__x86_64__)
  constexpr std::uint64_t kWriteBit = 2;
  const auto code =
      static_cast<std::uint64_t>(static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_ERR]);
  return (code & kWriteBit) != 0 ? MemoryFault::Kind::write : MemoryFault::Kind::read;
#else
  static_cast<void>(context);
  return MemoryFault::Kind::unknown;
#endif
}

bool record_fault(std::uintptr_t address, void* context) {
  for (Entry& entry : table) {
    const std::uintptr_t begin = entry.begin.load(std::memory_order_acquire);
    if (begin == 0 || address < begin) continue;
    if (address >= entry.end.load(std::memory_order_acquire)) continue;
    const std::size_t i = entry.count.fetch_add(1, std::memory_order_acq_rel);
    if (i < kMostRecords) {
      entry.kinds[i].store(static_cast<int>(kind_of(context)), std::memory_order_relaxed);
      entry.addresses[i].store(address, std::memory_order_release);
    }
    const std::uintptr_t size = bytes_per_page.load(std::memory_order_relaxed);
    // The address was never that of an object of the language.
    void* const page = reinterpret_cast<void*>(address & ~(size - 1));  // NOLINT
    return mprotect(page, size, PROT_READ | PROT_WRITE) == 0;
  }
  return false;
}

void pass_on(int signal, siginfo_t* info, void* context) {
  if ((previous.sa_flags & SA_SIGINFO) != 0 && previous.sa_sigaction != nullptr) {
    previous.sa_sigaction(signal, info, context);
  } else if (previous.sa_handler == SIG_DFL || previous.sa_handler == SIG_IGN) {
    // The access is repeated without this handler.
    sigaction(signal, &previous, nullptr);
  } else {
    previous.sa_handler(signal);
  }
}

void handle(int signal, siginfo_t* info, void* context) {
  const int saved = errno;
  const bool is_access = info->si_code > 0;  // and not a signal from kill()
  if (!is_access || !record_fault(reinterpret_cast<std::uintptr_t>(info->si_addr), context)) {
    pass_on(signal, info, context);
  }
  errno = saved;
}

bool is_ours(const struct sigaction& action) {
  return (action.sa_flags & SA_SIGINFO) != 0 && action.sa_sigaction == handle;
}

// A handler that was installed after this one may pass faults on to it. Then this one stays and is
// not installed a second time.
void acquire() {
  const std::lock_guard guard(installing);
  if (users++ > 0 || is_installed) return;
  struct sigaction action {};
  action.sa_sigaction = handle;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  sigaction(SIGSEGV, nullptr, &previous);
  sigaction(SIGSEGV, &action, nullptr);
  is_installed = true;
}

void release() {
  const std::lock_guard guard(installing);
  if (--users > 0) return;
  struct sigaction current {};
  sigaction(SIGSEGV, nullptr, &current);
  if (!is_ours(current)) return;
  sigaction(SIGSEGV, &previous, nullptr);
  is_installed = false;
}

}  // namespace

std::size_t page_size() {
  std::uintptr_t size = bytes_per_page.load(std::memory_order_relaxed);
  if (size == 0) {
    size = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
    bytes_per_page.store(size, std::memory_order_relaxed);
  }
  return size;
}

int watch(std::byte* begin, std::byte* end) {
  page_size();
  for (std::size_t i = 0; i < table.size(); ++i) {
    Entry& entry = table[i];
    if (entry.is_taken.exchange(true, std::memory_order_acq_rel)) continue;
    entry.count.store(0, std::memory_order_relaxed);
    for (auto& address : entry.addresses) address.store(0, std::memory_order_relaxed);
    entry.end.store(reinterpret_cast<std::uintptr_t>(end), std::memory_order_release);
    entry.begin.store(reinterpret_cast<std::uintptr_t>(begin), std::memory_order_release);
    acquire();
    return static_cast<int>(i);
  }
  return -1;
}

std::vector<Record> unwatch(int slot) {
  Entry& entry = table[static_cast<std::size_t>(slot)];
  release();
  entry.begin.store(0, std::memory_order_release);
  std::vector<Record> records;
  const std::size_t count = std::min(entry.count.load(std::memory_order_acquire), kMostRecords);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uintptr_t address = entry.addresses[i].load(std::memory_order_acquire);
    if (address == 0) continue;
    const auto* const where = reinterpret_cast<const std::byte*>(address);  // NOLINT
    records.push_back(
        {where, static_cast<MemoryFault::Kind>(entry.kinds[i].load(std::memory_order_relaxed))});
  }
  entry.is_taken.store(false, std::memory_order_release);
  return records;
}

#else

std::size_t page_size() { return 0; }
int watch(std::byte*, std::byte*) { return -1; }
std::vector<Record> unwatch(int) { return {}; }

#endif

}  // namespace palimpsest::fault_handler
