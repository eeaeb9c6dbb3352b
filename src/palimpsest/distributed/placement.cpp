// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/distributed/placement.hpp"

#include <fmt/format.h>

#include <set>

#include "palimpsest/base/error.hpp"

namespace palimpsest {

Placement::Placement(std::initializer_list<std::pair<const char*, const char*>> entries) {
  for (const auto& [dimension, axis] : entries) entries_.emplace_back(ND(dimension), axis);
}

std::optional<std::string> Placement::axis_of(const ND& d) const {
  for (const auto& [dimension, axis] : entries_) {
    if (dimension == d) return axis;
  }
  return {};
}

void Placement::check(const Team& team) const {
  std::set<std::string> dimensions, axes;
  for (const auto& [dimension, axis] : entries_) {
    team.size(axis);
    if (!dimensions.insert(dimension.str()).second || !axes.insert(axis).second) {
      throw ValueError(fmt::format(
          "[Placement] got {}, expected each dimension and each axis of the team once", str()));
    }
  }
}

std::string Placement::str() const {
  std::string text;
  for (const auto& [dimension, axis] : entries_) {
    text += (text.empty() ? "" : ", ") + dimension.str() + " along " + axis;
  }
  return "{" + text + "}";
}

}  // namespace palimpsest
