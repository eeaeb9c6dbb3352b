// SPDX-License-Identifier: Apache-2.0
// Internal: arrays that never move.
#pragma once

#include <array>
#include <cstddef>
#include <memory>

namespace palimpsest {

/// Array whose size is given once. Up to N elements live inside the object, so that a small one is
/// one piece of memory. Elements never move.
template <class T, std::size_t N>
class FixedArray {
 public:
  FixedArray() = default;
  explicit FixedArray(std::size_t n) : size_(n) {
    if (n > N) more_ = std::make_unique<T[]>(n);
  }
  FixedArray(const FixedArray&) = delete;
  FixedArray& operator=(const FixedArray&) = delete;

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* begin() { return more_ ? more_.get() : few_.data(); }
  T* end() { return begin() + size_; }
  const T* begin() const { return more_ ? more_.get() : few_.data(); }
  const T* end() const { return begin() + size_; }
  T* data() { return begin(); }
  const T* data() const { return begin(); }
  T& operator[](std::size_t i) { return begin()[i]; }
  const T& operator[](std::size_t i) const { return begin()[i]; }

 private:
  std::size_t size_ = 0;
  std::unique_ptr<T[]> more_;
  std::array<T, N> few_{};
};

}  // namespace palimpsest
