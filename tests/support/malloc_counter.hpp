// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace palimpsest::testing {

/// Calls of malloc and related functions by all threads so far; under a sanitizer, which has its
/// own malloc, calls of operator new. Not counted: mmap, which gives blocks of 4 MiB and more,
/// reallocarray and valloc. Needs malloc_counter.cpp among the sources of the program.
std::size_t count_of_mallocs();
/// False under a sanitizer, which must see each handle of a Storage made and freed: then a lazy
/// clone allocates its handle, which otherwise reuses a freed one.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kKeepsHandles = false;
#else
inline constexpr bool kKeepsHandles = true;
#endif
/// The bytes requested by these calls.
std::size_t bytes_of_mallocs();

}  // namespace palimpsest::testing
