// SPDX-License-Identifier: Apache-2.0
// The handler's data lie in static memory: a table of ranges, each with room for the first
// accesses, and a ring of retired ranges. It may run on any thread while others watch and unwatch.
// A thread that faults in a range is between watch() and unwatch() of that range, so the entry
// stays while it is read.
//
// A retired range keeps its addresses and has no memory. An access to one, and one to an address
// that nothing is mapped at, belong to an op that kept an address of an earlier run. Zeros are
// mapped there until unwatch(), so that the op goes on and the step is reported.
#include "palimpsest/inspect/debug/fault_handler.hpp"

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <mutex>

#if defined(__linux__)
#include <pthread.h>
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
// Beyond these the oldest retired ranges are unmapped. They take addresses only.
constexpr std::size_t kMostRetired = 1024;
constexpr std::uintptr_t kMostRetiredBytes = std::uintptr_t{1} << 34;
// The first access to unmapped addresses maps one page, the next one two, ...
constexpr std::size_t kMostDoublings = 18;

struct Entry {
  std::atomic<bool> is_taken{false};
  std::atomic<std::uintptr_t> thread{0};  // that watches; 0: none
  std::atomic<std::uintptr_t> begin{0}, end{0};
  std::atomic<std::size_t> count{0};
  std::array<std::atomic<std::uintptr_t>, kMostRecords> addresses{};
  std::array<std::atomic<std::uintptr_t>, kMostRecords> mapped{};  // bytes at a stale address
  std::array<std::atomic<int>, kMostRecords> kinds{};
};

struct Range {
  std::atomic<std::uintptr_t> begin{0}, end{0};
  bool holds(std::uintptr_t address) const {
    const std::uintptr_t first = begin.load(std::memory_order_acquire);
    return first != 0 && address >= first && address < end.load(std::memory_order_acquire);
  }
};

std::array<Entry, kMostRanges> table;
std::array<Range, kMostRetired> retired;
std::atomic<std::uintptr_t> bytes_per_page{0};

Mutex retiring;
std::size_t n_retired = 0, n_unmapped = 0;  // so far, guarded by retiring
std::uintptr_t retired_bytes = 0;           // guarded by retiring

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

// The addresses here were never those of objects of the language.
void* pointer_to(std::uintptr_t address) { return reinterpret_cast<void*>(address); }  // NOLINT

std::uintptr_t page_of(std::uintptr_t address) {
  return address & ~(bytes_per_page.load(std::memory_order_relaxed) - 1);
}

void note(Entry& entry, std::size_t i, std::uintptr_t address, std::uintptr_t mapped,
          void* context) {
  if (i >= kMostRecords) return;
  entry.kinds[i].store(static_cast<int>(kind_of(context)), std::memory_order_relaxed);
  entry.mapped[i].store(mapped, std::memory_order_relaxed);
  entry.addresses[i].store(address, std::memory_order_release);
}

// Of this thread; else of any one, for which this thread may work.
Entry* watching(bool of_any) {
  const auto self = static_cast<std::uintptr_t>(pthread_self());
  Entry* found = nullptr;
  for (Entry& entry : table) {
    const std::uintptr_t thread = entry.thread.load(std::memory_order_acquire);
    if (thread == self) return &entry;
    if (thread != 0 && of_any && !found) found = &entry;
  }
  return found;
}

const Range* retired_at(std::uintptr_t address) {
  for (const Range& range : retired) {
    if (range.holds(address)) return &range;
  }
  return nullptr;
}

bool record_retired(const Range& range, std::uintptr_t address, void* context) {
  Entry* const entry = watching(true);
  if (!entry) return false;
  note(*entry, entry->count.fetch_add(1, std::memory_order_acq_rel), address, 1, context);
  const std::uintptr_t begin = range.begin.load(std::memory_order_relaxed);
  return mprotect(pointer_to(begin), range.end.load(std::memory_order_relaxed) - begin,
                  PROT_READ | PROT_WRITE) == 0;
}

bool record_unmapped(std::uintptr_t address, void* context) {
  Entry* const entry = watching(false);
  if (!entry) return false;
  const std::size_t i = entry->count.fetch_add(1, std::memory_order_acq_rel);
  if (i >= kMostRecords) return false;
  const std::uintptr_t page = page_of(address),
                       size = bytes_per_page.load(std::memory_order_relaxed);
  for (const std::uintptr_t bytes : {size << std::min(i, kMostDoublings), size}) {
    constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE;
    void* const made = mmap(pointer_to(page), bytes, PROT_READ | PROT_WRITE, kFlags, -1, 0);
    if (made == MAP_FAILED) continue;
    note(*entry, i, address, bytes, context);
    if (made == pointer_to(page)) return true;
    munmap(made, bytes);  // an old kernel takes the address for a wish
    return false;
  }
  return false;
}

bool record_fault(std::uintptr_t address, int code, void* context) {
  for (Entry& entry : table) {
    const std::uintptr_t begin = entry.begin.load(std::memory_order_acquire);
    if (begin == 0 || address < begin) continue;
    if (address >= entry.end.load(std::memory_order_acquire)) continue;
    note(entry, entry.count.fetch_add(1, std::memory_order_acq_rel), address, 0, context);
    const std::uintptr_t size = bytes_per_page.load(std::memory_order_relaxed);
    return mprotect(pointer_to(page_of(address)), size, PROT_READ | PROT_WRITE) == 0;
  }
  if (const Range* const range = retired_at(address)) {
    return record_retired(*range, address, context);
  }
  return code == SEGV_MAPERR && record_unmapped(address, context);
}

// Takes the memory away and keeps the addresses.
bool make_empty(std::uintptr_t begin, std::uintptr_t bytes) {
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
  return mmap(pointer_to(begin), bytes, PROT_NONE, kFlags, -1, 0) != MAP_FAILED;
}

void close_stale(std::uintptr_t address, std::uintptr_t mapped) {
  const std::lock_guard guard(retiring);
  if (const Range* const range = retired_at(address)) {
    const std::uintptr_t begin = range->begin.load(std::memory_order_relaxed);
    make_empty(begin, range->end.load(std::memory_order_relaxed) - begin);
  } else if (mapped > 1) {
    munmap(pointer_to(page_of(address)), mapped);
  }
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
  const auto address = reinterpret_cast<std::uintptr_t>(info->si_addr);
  if (!is_access || !record_fault(address, info->si_code, context)) {
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
    entry.thread.store(static_cast<std::uintptr_t>(pthread_self()), std::memory_order_release);
    acquire();
    return static_cast<int>(i);
  }
  return -1;
}

std::vector<Record> unwatch(int slot) {
  Entry& entry = table[static_cast<std::size_t>(slot)];
  release();
  entry.thread.store(0, std::memory_order_release);
  entry.begin.store(0, std::memory_order_release);
  std::vector<Record> records;
  const std::size_t count = std::min(entry.count.load(std::memory_order_acquire), kMostRecords);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uintptr_t address = entry.addresses[i].load(std::memory_order_acquire);
    if (address == 0) continue;
    const std::uintptr_t mapped = entry.mapped[i].load(std::memory_order_relaxed);
    const auto kind =
        static_cast<MemoryFault::Kind>(entry.kinds[i].load(std::memory_order_relaxed));
    records.push_back({static_cast<const std::byte*>(pointer_to(address)), kind, mapped > 0});
    if (mapped > 0) close_stale(address, mapped);
  }
  entry.is_taken.store(false, std::memory_order_release);
  return records;
}

void retire(std::byte* begin, std::size_t bytes) {
  const auto first = reinterpret_cast<std::uintptr_t>(begin);
  const std::lock_guard guard(retiring);
  if (bytes > kMostRetiredBytes || !make_empty(first, bytes)) {
    munmap(begin, bytes);
    return;
  }
  while (n_retired - n_unmapped == kMostRetired || retired_bytes + bytes > kMostRetiredBytes) {
    Range& oldest = retired[n_unmapped++ % kMostRetired];
    const std::uintptr_t at = oldest.begin.exchange(0, std::memory_order_acq_rel);
    const std::uintptr_t size = oldest.end.load(std::memory_order_relaxed) - at;
    munmap(pointer_to(at), size);
    retired_bytes -= size;
  }
  Range& range = retired[n_retired++ % kMostRetired];
  range.end.store(first + bytes, std::memory_order_release);
  range.begin.store(first, std::memory_order_release);
  retired_bytes += bytes;
}

#else

std::size_t page_size() { return 0; }
void retire(std::byte*, std::size_t) {}
int watch(std::byte*, std::byte*) { return -1; }
std::vector<Record> unwatch(int) { return {}; }

#endif

}  // namespace palimpsest::fault_handler
