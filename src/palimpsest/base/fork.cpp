// SPDX-License-Identifier: Apache-2.0
// Every thread has a note in one list: the number of sections that it is in. fork() closes the gate
// and then waits until no note shows a section. Threads that want to enter meanwhile wait for the
// gate.
//
// To enter, a thread writes its note and then reads the gate; fork() writes the gate and then reads
// the notes. At least one of them must see the other's value. This takes a barrier between write
// and read on both sides. membarrier() moves the barrier of the threads into fork(); on systems
// without it each thread pays for its own.
#include "palimpsest/base/fork.hpp"

#include <pthread.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cassert>
#include <chrono>
#include <cstddef>
#include <new>
#include <thread>

#include "palimpsest/base/per_thread.hpp"
#include "palimpsest/base/system/system_calls.hpp"

namespace palimpsest {
namespace {

constexpr std::chrono::seconds kPatience{10};
constexpr std::size_t kMostHooks = 8;

// Never freed, so that a thread may end in any way; that of a thread that has ended serves another.
struct Note {
  std::atomic<unsigned> depth{0};  // written by its thread alone
  std::atomic<bool> is_taken{true};
  Note* next = nullptr;
};

struct Gate {
  std::mutex mutex;  // held from before fork() until after it
  std::atomic<bool> is_closed{false};
  std::atomic<bool> needs_fence{true};
  // Orders two threads that each write a flag, update this and read the other's flag: the later one
  // sees the flag of the earlier one. A fence would do the same, but ThreadSanitizer does not know
  // fences.
  std::atomic<unsigned> fence{0};
  std::atomic<Note*> notes{nullptr};
  std::atomic<unsigned> generation{0};
  std::atomic<pthread_t> closed_by{};
  std::atomic<bool> is_installed{false};
  std::array<std::atomic<void (*)() noexcept>, kMostHooks> hooks{};
};
constinit Gate gate;

struct Mine : ThreadExit {
  Note* note = nullptr;
};
constinit thread_local Mine mine{};

bool is_outside_of_others(const Note* own) {
  for (const Note* note = gate.notes.load(); note != nullptr; note = note->next) {
    if (note != own && note->depth.load(std::memory_order_acquire) > 0) return false;
  }
  return true;
}

void before_fork() {
  gate.mutex.lock();
  gate.closed_by.store(pthread_self());
  gate.is_closed.store(true);
  if (gate.needs_fence.load() || !system_detail::barrier_of_threads()) {
    gate.fence.fetch_add(1, std::memory_order_acq_rel);
  }
  // A section that waits for a thread which waits for the gate would never end.
  const auto end = std::chrono::steady_clock::now() + kPatience;
  for (int round = 0; !is_outside_of_others(mine.note); ++round) {
    if (std::chrono::steady_clock::now() > end) return;
    if (round < 100) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
  }
}

void open_gate() {
  gate.is_closed.store(false);
  gate.mutex.unlock();
}

void after_fork() {
  for (Note* note = gate.notes.load(); note != nullptr; note = note->next) {
    if (note == mine.note) continue;
    note->depth.store(0);
    note->is_taken.store(false);
  }
  gate.generation.fetch_add(1);
  gate.needs_fence.store(!system_detail::register_barrier_of_threads());
  open_gate();
  for (const auto& hook : gate.hooks) {
    if (const auto f = hook.load()) f();
  }
}

void install() noexcept {
  if (gate.is_installed.load(std::memory_order_acquire)) return;
  const std::lock_guard guard(gate.mutex);
  if (gate.is_installed.load(std::memory_order_relaxed)) return;
  gate.needs_fence.store(!system_detail::register_barrier_of_threads());
  pthread_atfork(before_fork, open_gate, after_fork);
  gate.is_installed.store(true, std::memory_order_release);
}

Note* free_note() {
  for (Note* note = gate.notes.load(); note != nullptr; note = note->next) {
    if (!note->is_taken.load() && !note->is_taken.exchange(true)) return note;
  }
  // Without memory for it the thread does without the gate.
  Note* const made = new (std::nothrow) Note;
  if (made == nullptr) return nullptr;
  made->next = gate.notes.load();
  while (!gate.notes.compare_exchange_weak(made->next, made)) {
  }
  return made;
}

void give_note_back(ThreadExit& exit) noexcept {
  Mine& me = static_cast<Mine&>(exit);
  Note* const note = me.note;
  me.note = nullptr;
  if (note != nullptr) note->is_taken.store(false);
}

// Waits while fork() runs, unless this thread called it: no other thread may be inside.
void wait_for_gate(Note& note) {
  while (gate.is_closed.load()) {
    if (pthread_equal(gate.closed_by.load(), pthread_self()) != 0) return;
    note.depth.store(0, std::memory_order_release);
    { const std::lock_guard guard(gate.mutex); }
    note.depth.store(1);
  }
}

Note* open_note() {
  install();
  Note* const note = free_note();
  if (note == nullptr) return nullptr;
  mine.note = note;
  mine.run = give_note_back;
  at_thread_exit(mine);
  return note;
}

}  // namespace

void ForkSection::enter() noexcept {
  Note* note = mine.note;
  if (note == nullptr) [[unlikely]] {
    note = open_note();
    if (note == nullptr) return;
  }
  const unsigned depth = note->depth.load(std::memory_order_relaxed);
  note->depth.store(depth + 1, std::memory_order_relaxed);
  if (depth > 0) return;
  if (gate.needs_fence.load(std::memory_order_relaxed)) [[unlikely]] {
    gate.fence.fetch_add(1, std::memory_order_acq_rel);
  } else {
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }
  if (gate.is_closed.load(std::memory_order_acquire)) [[unlikely]]
    wait_for_gate(*note);
}

void ForkSection::leave() noexcept {
  Note* const note = mine.note;
  if (note == nullptr) return;
  const unsigned depth = note->depth.load(std::memory_order_relaxed);
  if (depth > 0) note->depth.store(depth - 1, std::memory_order_release);
}

unsigned process_generation() noexcept {
  install();
  return gate.generation.load(std::memory_order_relaxed);
}

void after_fork_in_child(void (*f)() noexcept) {
  install();
  for (auto& hook : gate.hooks) {
    void (*present)() noexcept = hook.load(std::memory_order_acquire);
    if (present == nullptr && hook.compare_exchange_strong(present, f)) return;
    if (present == f) return;
  }
  assert(false && "more hooks than kMostHooks");
}

}  // namespace palimpsest
