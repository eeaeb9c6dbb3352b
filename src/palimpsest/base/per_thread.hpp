// SPDX-License-Identifier: Apache-2.0
// Internal: objects that each thread has for itself.
#pragma once

namespace palimpsest {

/// Something to do when the calling thread ends, after its objects of type thread_local are gone.
struct ThreadExit {
  void (*run)(ThreadExit&) noexcept = nullptr;
  ThreadExit* next = nullptr;
};

/// `exit` must stay in place until it has run. It never runs for the first thread of a process,
/// which ends with it. In a destructor of another library's thread-specific data the call may come
/// too late.
void at_thread_exit(ThreadExit& exit) noexcept;

/// The calling thread's T, made at its first use. It can be used while the thread and the process
/// end, in destructors of static and thread_local objects, because those of T run later. A use
/// after that makes another T.
template <class T>
T& of_this_thread() {
  struct Own : ThreadExit {
    T value;
  };
  static constinit thread_local Own* own = nullptr;
  if (own == nullptr) [[unlikely]] {
    own = new Own;
    own->run = [](ThreadExit& exit) noexcept {
      own = nullptr;
      delete static_cast<Own*>(&exit);
    };
    at_thread_exit(*own);
  }
  return own->value;
}

}  // namespace palimpsest
