// SPDX-License-Identifier: Apache-2.0
// Internal: values that DebugMode keeps and compares, in memory that no plan knows of.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "palimpsest/graph/op.hpp"

namespace palimpsest {

/// An array of its own: dense, row-major, bit for bit as read. Copies share it.
class DebugValue {
 public:
  DebugValue() = default;
  static DebugValue read(const ConstView& view);
  bool defined() const { return data_ != nullptr; }
  DType dtype() const { return data_->dtype; }
  const Extents& extents() const { return data_->extents; }
  std::size_t bytes() const { return data_->bytes.size(); }
  const std::byte* data() const { return data_->bytes.data(); }
  ConstView view() const {
    return {data(),
            dtype(),
            {data_->extents.data(), data_->extents.size()},
            {data_->strides.data(), data_->strides.size()}};
  }
  index_t numel() const;
  /// Stores the elements; the view may hold any bytes.
  void write(const MutableView& view) const;
  bool same_bits(const DebugValue& other) const;
  /// `float64 (3,): min 0, max 2, mean 1, 0 of 3 not finite`, with the elements of a small one.
  std::string str() const;

 private:
  struct Data {
    DType dtype;
    Extents extents;
    Strides strides;
    std::vector<std::byte> bytes;
  };
  std::shared_ptr<const Data> data_;
};

/// Allowed difference of two values.
struct Tolerance {
  /// Rounding errors of the dtype, relative to the scale; 0: bit for bit.
  double roundings = 0;
  /// Scale of numbers that may have cancelled: their error is relative to it.
  double scale = 0;
};

/// Difference of two values. NaN equals NaN; infinities are equal by sign.
struct Difference {
  bool is_within = true;
  bool comparable = true;  // of one dtype and shape
  index_t differing = 0;   // elements beyond the tolerance
  double largest_absolute = 0, largest_relative = 0, allowed = 0;
  Extents index;  // of the first one beyond
  std::string first, second;
  std::string str() const;
};
Difference compare(const DebugValue& a, const DebugValue& b, const Tolerance& tolerance);
/// Largest finite absolute value.
double scale_of(const DebugValue& v);

/// Bytes from the first to the last element of a layout, and where its first element is in them.
struct Span {
  std::size_t bytes = 0;
  index_t first = 0;
};
Span span_of(const Layout& layout);
/// A view with this layout and its first element at `first`.
MutableView view_at(std::byte* first, const Layout& layout);

}  // namespace palimpsest
