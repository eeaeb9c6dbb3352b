// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace palimpsest::testing {

/// Calls of operator new by all threads so far. Needs new_counter.cpp among the sources of the
/// program, which replaces the allocation functions.
std::size_t count_of_news();

/// Counts from its construction on.
class NewCounter {
 public:
  std::size_t count() const { return count_of_news() - start_; }

 private:
  std::size_t start_ = count_of_news();
};

/// While it lives, the n-th operator new of this thread, counted from 0, throws std::bad_alloc.
/// Must not be nested.
class FailingNew {
 public:
  explicit FailingNew(std::size_t n);
  ~FailingNew();
  FailingNew(const FailingNew&) = delete;
  FailingNew& operator=(const FailingNew&) = delete;

  /// Has the failing call occurred?
  bool has_failed() const;
};

}  // namespace palimpsest::testing
