// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <span>
#include <vector>

#include "palimpsest/device/backend.hpp"

namespace palimpsest::testing {

/// Staging memory of a device with elements.
template <class T>
class Staged {
 public:
  Staged(DeviceBackend& backend, std::size_t n)
      : backend_(backend), bytes_(n * sizeof(T)), first_(backend.obtain_staging(bytes_)) {
    EXPECT_NE(first_, nullptr);
  }
  ~Staged() { backend_.give_back_staging(first_, bytes_); }
  Staged(const Staged&) = delete;
  Staged& operator=(const Staged&) = delete;

  T* data() const { return reinterpret_cast<T*>(first_); }
  std::size_t size_bytes() const { return bytes_; }
  std::span<T> elements() const { return {data(), bytes_ / sizeof(T)}; }

 private:
  DeviceBackend& backend_;
  std::size_t bytes_;
  std::byte* first_;
};

/// Memory of a device with elements.
template <class T>
class OnDevice {
 public:
  OnDevice(DeviceBackend& backend, std::size_t n)
      : backend_(backend), bytes_(n * sizeof(T)), first_(backend.obtain(bytes_)) {
    EXPECT_NE(first_, nullptr);
  }
  OnDevice(DeviceBackend& backend, const std::vector<T>& values)
      : OnDevice(backend, values.size()) {
    upload(values);
  }
  ~OnDevice() { backend_.give_back(first_, bytes_); }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

  std::byte* data() const { return first_; }
  std::byte* at(std::size_t element) const { return first_ + element * sizeof(T); }
  std::size_t size_bytes() const { return bytes_; }

  void upload(const std::vector<T>& values) const {
    const Staged<T> staged(backend_, values.size());
    std::memcpy(staged.data(), values.data(), staged.size_bytes());
    backend_.copy(first_, staged.data(), staged.size_bytes());
    backend_.wait_on_host(backend_.mark());
  }
  /// The elements, after all that is enqueued.
  std::vector<T> values() const {
    const Staged<T> staged(backend_, bytes_ / sizeof(T));
    backend_.copy(staged.data(), first_, bytes_);
    backend_.wait_on_host(backend_.mark());
    return {staged.elements().begin(), staged.elements().end()};
  }

 private:
  DeviceBackend& backend_;
  std::size_t bytes_;
  std::byte* first_;
};

/// 0, 1, .. n - 1.
template <class T>
std::vector<T> counted(std::size_t n) {
  std::vector<T> values(n);
  for (std::size_t i = 0; i < n; ++i) values[i] = static_cast<T>(i);
  return values;
}

inline void finish(DeviceBackend& backend) { backend.wait_on_host(backend.mark()); }

}  // namespace palimpsest::testing
