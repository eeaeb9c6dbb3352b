// SPDX-License-Identifier: Apache-2.0
// The calling thread's place in a tree of operators, for messages.
#include <pthread.h>

#include <algorithm>
#include <cstdint>

#include "palimpsest/linop/core/node.hpp"

namespace palimpsest {
namespace {

constinit thread_local const PathScope* innermost = nullptr;

}  // namespace

PathScope::PathScope(const NamedLinop& container, std::size_t index)
    : outer_(innermost), container_(container), index_(index) {
  innermost = this;
}
std::shared_ptr<const Way> PathScope::way() const {
  std::vector<const PathScope*> fresh;
  const PathScope* step = this;
  for (; step && !step->way_; step = step->outer_) fresh.push_back(step);
  std::shared_ptr<const Way> way = step ? step->way_ : nullptr;
  for (auto it = fresh.rbegin(); it != fresh.rend(); ++it) {
    (*it)->way_ = std::make_shared<const Way>(
        Way{way, (*it)->container_.name() + "[" + std::to_string((*it)->index_) + "]/"});
    way = (*it)->way_;
  }
  return way;
}

std::shared_ptr<const Way> way_here() { return innermost ? innermost->way() : nullptr; }

PathScope::~PathScope() { innermost = outer_; }

std::string path_of(const NamedLinop& A) {
  std::vector<const PathScope*> steps;
  for (const PathScope* step = innermost; step != nullptr; step = step->outer_) {
    steps.push_back(step);
  }
  std::string text;
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    text += (*step)->container_.name() + "[" + std::to_string((*step)->index_) + "]/";
  }
  return text + A.name();
}

DimSizes bind_of(const NamedLinop& A, const Dims& dims, const Extents& extents,
                 const DimSizes& known) {
  try {
    return palimpsest::bind(dims, extents, known);
  } catch (const ShapeError&) {
    return palimpsest::bind(dims, extents, known, path_of(A));
  }
}

namespace {

constinit thread_local std::uintptr_t lowest_frame = 0;

// Finds the lowest frame. The stack below it is left to the operator at the bottom: 512 KiB, or a
// quarter of a small stack.
std::uintptr_t find_lowest_frame() {
  constexpr std::size_t kLeast = 512 * 1024;
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return 1;
  void* low = nullptr;
  std::size_t bytes = 0;
  pthread_attr_getstack(&attributes, &low, &bytes);
  pthread_attr_destroy(&attributes);
  return reinterpret_cast<std::uintptr_t>(low) + std::min(kLeast, bytes / 4);
}

}  // namespace

void check_stack(const NamedLinop& A) {
  if (lowest_frame == 0) lowest_frame = find_lowest_frame();
  if (reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)) > lowest_frame) return;
  throw OutOfMemory("[" + A.name() +
                    "] operators are nested too deep for the stack of this thread. Try one Chain "
                    "or Add of a list");
}

std::string who(const NamedLinop& A) { return "[" + path_of(A) + "] "; }

}  // namespace palimpsest
