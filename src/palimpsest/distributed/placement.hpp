// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "palimpsest/base/api.hpp"
#include "palimpsest/distributed/team.hpp"
#include "palimpsest/named/dims.hpp"

namespace PALIMPSEST_API palimpsest {

/// Assignment of dimensions to the axes of a team that cut them: {{"C", "rank"}}. Along axes that
/// are not named, all ranks hold the same.
class Placement {
 public:
  using Entries = std::vector<std::pair<ND, std::string>>;
  Placement() = default;
  Placement(std::initializer_list<std::pair<const char*, const char*>> entries);
  explicit Placement(Entries entries) : entries_(std::move(entries)) {}
  const Entries& entries() const { return entries_; }
  /// The axis that cuts a dimension.
  std::optional<std::string> axis_of(const ND& d) const;
  /// Errors   ValueError: a dimension or an axis twice; NameError: no such axis
  void check(const Team& team) const;
  std::string str() const;
  friend bool operator==(const Placement&, const Placement&) = default;

 private:
  Entries entries_;
};

}  // namespace palimpsest
