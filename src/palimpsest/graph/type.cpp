// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/graph/type.hpp"

#include <algorithm>

namespace palimpsest {

bool is_known(std::span<const index_t> extents) {
  return std::find(extents.begin(), extents.end(), kUnknown) == extents.end();
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

std::string extents_text(std::span<const index_t> extents) {
  std::string text = "(";
  for (std::size_t i = 0; i < extents.size(); ++i) {
    if (i > 0) text += ", ";
    text += extents[i] == kUnknown ? "?" : std::to_string(extents[i]);
  }
  return text + (extents.size() == 1 ? ",)" : ")");
}

std::string TensorType::str() const {
  std::string text = std::string(name_of(dtype)) + " " + extents_text(shape);
  if (device != Device{}) text += " " + device.str();
  return text;
}

}  // namespace palimpsest
