// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/base/per_thread.hpp"

#include <pthread.h>

#include <atomic>

namespace palimpsest {
namespace {

// The latest first.
constinit thread_local ThreadExit* exits = nullptr;

// Destructors of thread-specific data come after those of thread_local objects, and once more if
// one of them has set its data again.
void run_exits(void*) {
  while (exits != nullptr) {
    ThreadExit& exit = *exits;
    exits = exit.next;
    exit.run(exit);
  }
}

constexpr unsigned kNone = ~0U, kFailed = kNone - 1;
constinit std::atomic<unsigned> key_of_exits{kNone};

// Any thread may make it: of two, the second gives its key back. Without a key nothing runs, which
// costs the memory of threads that end.
unsigned the_key() {
  unsigned key = key_of_exits.load(std::memory_order_acquire);
  if (key != kNone) return key;
  pthread_key_t made{};
  const unsigned wanted = pthread_key_create(&made, run_exits) == 0 ? made : kFailed;
  if (key_of_exits.compare_exchange_strong(key, wanted)) return wanted;
  if (wanted != kFailed) pthread_key_delete(made);
  return key;
}

}  // namespace

void at_thread_exit(ThreadExit& exit) noexcept {
  exit.next = exits;
  exits = &exit;
  if (const unsigned key = the_key(); key != kFailed) pthread_setspecific(key, &exits);
}

}  // namespace palimpsest
