// SPDX-License-Identifier: Apache-2.0
// Internal: a tensor inside a larger array, to find writes beside it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "palimpsest/tensor/tensor.hpp"

namespace palimpsest {

/// Layout of a window in its array.
enum class WindowLayout {
  dense,       ///< row-major, 64-byte aligned
  shifted,     ///< row-major, one element further
  strided,     ///< every second element along the last axis
  transposed,  ///< column-major
  reversed,    ///< row-major with negative strides
};
inline constexpr std::array kWindowLayouts{WindowLayout::dense, WindowLayout::shifted,
                                           WindowLayout::strided, WindowLayout::transposed,
                                           WindowLayout::reversed};
std::string_view name_of(WindowLayout layout);

/// The bytes of a tensor's storage, as they are now.
Tensor storage_bytes(const Tensor& t);
/// The first byte of the tensor's storage outside of the tensor that differs from `before`, earlier
/// storage_bytes() of it: its distance from the lowest byte of the tensor, negative in front of it.
std::optional<index_t> first_change_beside(const Tensor& t, const Tensor& before);

/// A tensor inside a larger array whose other bytes have a known pattern. The array has room on
/// both sides, so that a write of a few times the window's size beyond its ends stays inside.
class GuardedWindow {
 public:
  /// `least_margin` is the least number of bytes on each side. The window has the pattern, too.
  GuardedWindow(const Extents& extents, DType dtype, WindowLayout layout = WindowLayout::dense,
                index_t least_margin = 4096);

  const Tensor& tensor() const { return window_; }
  Tensor& tensor() { return window_; }
  /// Sets each byte of the window.
  void fill_bytes(std::uint8_t value);
  /// See first_change_beside().
  std::optional<index_t> first_change() const;
  bool is_intact() const { return !first_change(); }

 private:
  Tensor window_;
};

}  // namespace palimpsest
