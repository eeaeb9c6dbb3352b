// SPDX-License-Identifier: Apache-2.0
// In a separate source, so that no compiler sees new and delete from different implementations.
#include "support/new_counter.hpp"

#include <atomic>
#include <cstdlib>
#include <new>

namespace {
std::atomic<std::size_t> n_news{0};
constexpr std::size_t kNoFailure = ~std::size_t{0};
constinit thread_local std::size_t news_until_failure = kNoFailure;

void count() {
  if (news_until_failure != kNoFailure && news_until_failure-- == 0) throw std::bad_alloc();
  n_news.fetch_add(1, std::memory_order_relaxed);
}
}  // namespace

std::size_t palimpsest::testing::count_of_news() { return n_news.load(std::memory_order_relaxed); }

palimpsest::testing::FailingNew::FailingNew(std::size_t n) { news_until_failure = n; }
palimpsest::testing::FailingNew::~FailingNew() { news_until_failure = kNoFailure; }
bool palimpsest::testing::FailingNew::has_failed() const {
  return news_until_failure == kNoFailure;
}

void* operator new(std::size_t bytes) {
  count();
  if (void* const memory = std::malloc(bytes == 0 ? 1 : bytes)) return memory;
  throw std::bad_alloc();
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  count();
  const auto unit = static_cast<std::size_t>(alignment);
  if (void* const memory = std::aligned_alloc(unit, (bytes + unit - 1) / unit * unit))
    return memory;
  throw std::bad_alloc();
}
// Used by std::stable_sort for its buffer; the default one belongs to a sanitizer.
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  n_news.fetch_add(1, std::memory_order_relaxed);
  return std::malloc(bytes == 0 ? 1 : bytes);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
