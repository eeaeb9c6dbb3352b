// SPDX-License-Identifier: Apache-2.0
// Internal: order of memory accesses in the files that run tasks of oneTBB. That library comes
// without ThreadSanitizer's instrumentation. So these files are compiled without it too
// (CMakeLists.txt), and state the order that the library guarantees: accesses before
// PALIMPSEST_RELEASE of a token come before accesses after an ACQUIRE of it.
#pragma once

#if defined(PALIMPSEST_THREAD_SANITIZER)
#include <sanitizer/tsan_interface.h>
#define PALIMPSEST_RELEASE(token) __tsan_release(token)
#define PALIMPSEST_ACQUIRE(token) __tsan_acquire(token)
#else
#define PALIMPSEST_RELEASE(token) static_cast<void>(token)
#define PALIMPSEST_ACQUIRE(token) static_cast<void>(token)
#endif
