// SPDX-License-Identifier: Apache-2.0
// The end of the interpreter: objects that the module gives up then, and threads that still run.
//
// Exit handlers run while other threads call the library. So objects are given up later, when
// Python takes its modules apart.
//
// Python before 3.14 calls pthread_exit() in a thread that wants its lock after Python has begun to
// end, anywhere in code of Python. The stack is then unwound as by an exception that must not be
// caught. On its way through C++ the unwinding runs destructors without the lock and meets noexcept
// functions: the process aborts. So a thread is stopped at the first step of that unwinding, before
// any frame is left. The C library calls the cleanup handlers whose record is not in the part of
// the stack that remains: for a record on the heap that is the first step.
#include <pthread.h>
#include <unistd.h>

#include <cstdlib>
#include <ranges>

#include "palimpsest/python/families.hpp"

// Part of the binary interface of the C library (Linux Standard Base), without a declaration.
extern "C" {
struct _pthread_cleanup_buffer;
void _pthread_cleanup_push(_pthread_cleanup_buffer* record, void (*routine)(void*), void* argument);
}

namespace palimpsest::python {
namespace {

// Routine, argument, type of cancellation, and the record before.
struct Record {
  void* fields[4];
};
pthread_key_t record_of_thread;  // freed by the C library when the thread ends

bool has_ended() { return Py_IsInitialized() == 0; }

[[noreturn]] void wait_for_ever() {
  for (;;) pause();
}

void at_exit_of_thread(void*) {
  if (!has_ended()) usleep(1000);  // the interpreter says so just after it has begun to end threads
  if (has_ended()) wait_for_ever();
}

constinit Global<std::vector<void (*)()>> drops;

}  // namespace

void wait_at_end() {
  if (!pthread_getspecific(record_of_thread)) {
    void* const record = std::calloc(1, sizeof(Record));
    if (record && pthread_setspecific(record_of_thread, record) == 0) {
      _pthread_cleanup_push(static_cast<_pthread_cleanup_buffer*>(record), at_exit_of_thread,
                            nullptr);
    } else {  // destructors call this, too
      std::free(record);
    }
  }
  // An interpreter that is gone cannot be asked. The thread that ends it has a state.
  if (has_ended() && !PyGILState_GetThisThreadState()) wait_for_ever();
}

void at_end(void (*drop)()) { drops.get().push_back(drop); }

void begin_and_end_with(nb::module_& m) {
  if (pthread_key_create(&record_of_thread, std::free) != 0) {
    throw OutOfMemory("[palimpsest] got no room for data of threads.");
  }
  m.attr("_end") = nb::capsule(m.ptr(), [](void*) noexcept {
    for (void (*drop)() : std::exchange(drops.get(), {}) | std::views::reverse) drop();
  });
}

}  // namespace palimpsest::python
