// SPDX-License-Identifier: Apache-2.0
// Destinations inside larger arrays: tests write into these instead of into tensors of their own.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "palimpsest/tensor/guarded_window.hpp"

namespace palimpsest::testing {

/// A guarded window that fails the test, when it ends, if a byte beside it has changed.
class Window {
 public:
  explicit Window(const Extents& extents, DType dtype = DType::float64,
                  WindowLayout layout = WindowLayout::dense)
      : guarded_(extents, dtype, layout), layout_(layout) {}
  Window(Window&& other) noexcept
      : guarded_(std::move(other.guarded_)),
        layout_(other.layout_),
        is_checked_(std::exchange(other.is_checked_, false)) {}
  Window& operator=(Window&&) = delete;
  ~Window() {
    if (is_checked_) expect_intact();
  }

  Tensor& tensor() { return guarded_.tensor(); }
  const Tensor& tensor() const { return guarded_.tensor(); }
  operator Tensor&() { return tensor(); }
  bool is_intact() const { return guarded_.is_intact(); }
  void expect_intact() const {
    const auto change = guarded_.first_change();
    EXPECT_FALSE(change.has_value())
        << "byte " << change.value_or(0) << " beside a " << name_of(layout_) << " window of "
        << tensor().nbytes() << " bytes has changed";
  }

 private:
  GuardedWindow guarded_;
  WindowLayout layout_;
  bool is_checked_ = true;
};

/// Layouts in turn, so that tests with several destinations meet all of them.
inline WindowLayout window_layout(std::uint64_t number) {
  return kWindowLayouts[number % kWindowLayouts.size()];
}

/// Windows for several results.
class Windows {
 public:
  Tensor& add(const Extents& extents, DType dtype = DType::float64,
              WindowLayout layout = WindowLayout::dense) {
    windows_.emplace_back(extents, dtype, layout);
    return windows_.back().tensor();
  }
  std::vector<Tensor> tensors() const {
    std::vector<Tensor> list;
    for (const Window& window : windows_) list.push_back(window.tensor());
    return list;
  }
  void expect_intact() const {
    for (const Window& window : windows_) window.expect_intact();
  }

 private:
  std::vector<Window> windows_;
};

}  // namespace palimpsest::testing
