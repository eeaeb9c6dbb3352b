// SPDX-License-Identifier: Apache-2.0
// Internal: placements as arguments, and the axes of teams.
#pragma once

#include "palimpsest/distributed/placement.hpp"
#include "palimpsest/python/convert.hpp"

namespace palimpsest::python {

struct PlacementObject {
  Placement value;
};

template <>
struct From<Placement> {
  static constexpr auto name = nb::detail::const_name("Placement | Mapping[str, str]");
  static Placement from(nb::handle object);
};
nb::object to_python(const Placement& placement);

template <>
struct From<TeamAxes> {
  static constexpr auto name = nb::detail::const_name("Mapping[str, int]");
  static TeamAxes from(nb::handle object);
};
template <>
inline constexpr auto kResultName<TeamAxes> = From<TeamAxes>::name;

}  // namespace palimpsest::python

PALIMPSEST_ARGUMENT(Placement)
PALIMPSEST_ARGUMENT(TeamAxes)
