// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/graph/type.hpp"

#include <algorithm>

namespace palimpsest {

bool TensorType::is_fully_known() const {
  return std::find(shape.begin(), shape.end(), kUnknown) == shape.end();
}

bool TensorType::is_super(const TensorType& other) const {
  return dtype == other.dtype && device == other.device && admits(other.shape);
}

bool TensorType::admits(std::span<const index_t> extents) const {
  if (extents.size() != shape.size()) return false;
  for (std::size_t i = 0; i < extents.size(); ++i) {
    if (shape[i] != kUnknown && shape[i] != extents[i]) return false;
  }
  return true;
}

std::string TensorType::str() const {
  std::string text(name_of(dtype));
  text += " (";
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (i > 0) text += ", ";
    text += shape[i] == kUnknown ? "?" : std::to_string(shape[i]);
  }
  if (shape.size() == 1) text += ",";
  text += ")";
  if (device != Device{}) text += " " + device.str();
  return text;
}

}  // namespace palimpsest
