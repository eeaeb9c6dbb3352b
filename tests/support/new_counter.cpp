// SPDX-License-Identifier: Apache-2.0
// Alone in its source, so that no compiler sees a pair of new and delete from two worlds.
#include "support/new_counter.hpp"

#include <atomic>
#include <cstdlib>
#include <new>

namespace {
std::atomic<std::size_t> n_news{0};
}  // namespace

std::size_t palimpsest::testing::count_of_news() { return n_news.load(std::memory_order_relaxed); }

void* operator new(std::size_t bytes) {
  n_news.fetch_add(1, std::memory_order_relaxed);
  if (void* const memory = std::malloc(bytes == 0 ? 1 : bytes)) return memory;
  throw std::bad_alloc();
}
// What std::stable_sort takes its buffer from; the default one is a sanitizer's own.
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  n_news.fetch_add(1, std::memory_order_relaxed);
  return std::malloc(bytes == 0 ? 1 : bytes);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
