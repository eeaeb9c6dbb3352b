// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

#include "palimpsest/base/api.hpp"
#include "palimpsest/base/shape.hpp"
#include "palimpsest/device/device.hpp"

namespace PALIMPSEST_API palimpsest {

/// An extent that is not known when the graph is built.
inline constexpr index_t kUnknown = -1;

/// `(?, 3)`: extents, with ? for unknown ones.
std::string extents_text(std::span<const index_t> extents);

/// True if none of them is kUnknown.
bool is_known(std::span<const index_t> extents);

/// Type of a Variable: an array of fixed dtype, rank and device whose extents are known or
/// kUnknown. A dimension broadcasts only if it is known to be 1.
struct TensorType {
  DType dtype = DType::float64;
  Extents shape;
  Device device;

  std::size_t rank() const { return shape.size(); }
  bool is_fully_known() const { return is_known(shape); }
  /// True if every value of `other` is a value of this type.
  bool is_super(const TensorType& other) const;
  /// True if arrays of these extents can be values of this type.
  bool admits(std::span<const index_t> extents) const;
  /// `float64 (?, 3)`, with the device when it is not the host.
  std::string str() const;
  friend bool operator==(const TensorType&, const TensorType&) = default;
};

}  // namespace palimpsest
