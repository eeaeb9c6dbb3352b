// SPDX-License-Identifier: Apache-2.0
// Internal: for the files that run tasks of oneTBB. That library comes without ThreadSanitizer's
// instrumentation, so they are compiled without it too (CMakeLists.txt) and state the order that it
// guarantees: what came before PALIMPSEST_RELEASE of a token is before what follows an ACQUIRE.
#pragma once

#if defined(PALIMPSEST_THREAD_SANITIZER)
#include <sanitizer/tsan_interface.h>
#define PALIMPSEST_RELEASE(token) __tsan_release(token)
#define PALIMPSEST_ACQUIRE(token) __tsan_acquire(token)
#else
#define PALIMPSEST_RELEASE(token) static_cast<void>(token)
#define PALIMPSEST_ACQUIRE(token) static_cast<void>(token)
#endif
