// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace palimpsest::testing {

/// Calls of malloc and its kin by all threads so far; under a sanitizer, which brings its own
/// malloc, those of operator new. Not counted: mmap, which gives blocks of 4 MiB and more,
/// reallocarray and valloc. Needs malloc_counter.cpp among the sources of the program.
std::size_t count_of_mallocs();
/// The bytes that these asked for.
std::size_t bytes_of_mallocs();

}  // namespace palimpsest::testing
