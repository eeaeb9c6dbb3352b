// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <compare>
#include <cstddef>
#include <initializer_list>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "palimpsest/base/api.hpp"

namespace PALIMPSEST_API palimpsest {

/// A vector of trivially copyable values whose first N live inside the object, so that the
/// shapes and strides of ordinary arrays never allocate.
///
/// Aliases  a copy is independent
/// Cost     O(size) to copy; no allocation up to N elements
template <class T, std::size_t N>
class SmallVector {
  static_assert(std::is_trivially_copyable_v<T> && std::is_default_constructible_v<T>);

 public:
  using value_type = T;
  using iterator = T*;
  using const_iterator = const T*;

  SmallVector() = default;
  explicit SmallVector(std::size_t n, T value = T{}) { resize(n, value); }
  SmallVector(std::initializer_list<T> values) { assign(values.begin(), values.end()); }
  SmallVector(std::span<const T> values) { assign(values.begin(), values.end()); }
  SmallVector(const std::vector<T>& values) { assign(values.begin(), values.end()); }
  template <class It>
  requires(!std::is_integral_v<It>) SmallVector(It first, It last) { assign(first, last); }

  SmallVector(const SmallVector& other) { copy(other); }
  SmallVector(SmallVector&& other) noexcept { steal(other); }
  SmallVector& operator=(const SmallVector& other) {
    if (this != &other) copy(other);
    return *this;
  }
  SmallVector& operator=(SmallVector&& other) noexcept {
    if (this != &other) {
      release();
      steal(other);
    }
    return *this;
  }
  ~SmallVector() { release(); }

  template <class It>
  void assign(It first, It last) {
    const auto n = static_cast<std::size_t>(std::distance(first, last));
    reserve(n);
    std::copy(first, last, data_);
    size_ = n;
  }

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* data() { return data_; }
  const T* data() const { return data_; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }
  T& operator[](std::size_t i) { return data_[i]; }
  const T& operator[](std::size_t i) const { return data_[i]; }
  T& front() { return data_[0]; }
  const T& front() const { return data_[0]; }
  T& back() { return data_[size_ - 1]; }
  const T& back() const { return data_[size_ - 1]; }

  void reserve(std::size_t n) {
    if (n <= capacity_) return;
    n = std::max(n, 2 * capacity_);
    T* grown = new T[n];
    std::copy(begin(), end(), grown);
    release();
    data_ = grown;
    capacity_ = n;
  }
  void resize(std::size_t n, T value = T{}) {
    reserve(n);
    if (n > size_) std::fill(data_ + size_, data_ + n, value);
    size_ = n;
  }
  void clear() { size_ = 0; }
  void push_back(T value) {
    reserve(size_ + 1);
    data_[size_++] = value;
  }
  void pop_back() { --size_; }
  void insert(std::size_t position, T value) {
    push_back(value);
    std::rotate(begin() + position, end() - 1, end());
  }
  void erase(std::size_t position) {
    std::copy(begin() + position + 1, end(), begin() + position);
    --size_;
  }

  operator std::span<const T>() const { return {data_, size_}; }

  friend bool operator==(const SmallVector& a, const SmallVector& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }
  friend auto operator<=>(const SmallVector& a, const SmallVector& b) {
    return std::lexicographical_compare_three_way(a.begin(), a.end(), b.begin(), b.end());
  }

 private:
  void release() {
    if (data_ != inline_) delete[] data_;
    data_ = inline_;
    capacity_ = N;
  }
  // All of the inline elements: a copy of known size costs less than one of the right size.
  void copy_inline(const SmallVector& other) {
    std::copy(other.inline_, other.inline_ + N, inline_);
  }
  void copy(const SmallVector& other) {
    if (data_ == inline_ && other.data_ == other.inline_ && sizeof(inline_) <= kCopiedWhole) {
      copy_inline(other);
      size_ = other.size_;
    } else {
      assign(other.begin(), other.end());
    }
  }
  void steal(SmallVector& other) noexcept {
    if (other.data_ == other.inline_) {
      if (sizeof(inline_) <= kCopiedWhole) {
        copy_inline(other);
      } else {
        std::copy(other.begin(), other.end(), inline_);
      }
    } else {
      data_ = std::exchange(other.data_, other.inline_);
      capacity_ = std::exchange(other.capacity_, N);
    }
    size_ = std::exchange(other.size_, 0);
  }

  static constexpr std::size_t kCopiedWhole = 128;  // bytes

  std::size_t size_ = 0;
  std::size_t capacity_ = N;
  T* data_ = inline_;
  T inline_[N] = {};
};

}  // namespace palimpsest
