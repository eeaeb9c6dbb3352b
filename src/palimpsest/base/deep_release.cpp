// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/base/deep_release.hpp"

#include <new>
#include <utility>
#include <vector>

namespace palimpsest {
namespace {

constexpr int kMostNested = 16;

struct Nesting {
  int depth = 0;
  std::vector<std::shared_ptr<const void>>* waiting = nullptr;  // at kMostNested
};
constinit thread_local Nesting nesting;

}  // namespace

void release_deep(std::shared_ptr<const void> object) noexcept {
  if (object.use_count() != 1) return;
  if (nesting.depth == kMostNested) {
    try {
      nesting.waiting->push_back(std::move(object));
    } catch (const std::bad_alloc&) {
      // It ends here, one in the other.
    }
    return;
  }
  std::vector<std::shared_ptr<const void>> waiting;
  if (++nesting.depth == kMostNested) nesting.waiting = &waiting;
  object.reset();
  while (!waiting.empty()) {
    const std::shared_ptr<const void> next = std::move(waiting.back());
    waiting.pop_back();
  }
  --nesting.depth;
}

}  // namespace palimpsest
