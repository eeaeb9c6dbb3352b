// SPDX-License-Identifier: Apache-2.0
// Internal: calibration areas as arguments.
#pragma once

#include "palimpsest/imaging/calibration.hpp"
#include "palimpsest/python/convert.hpp"

namespace palimpsest::python {

template <>
struct From<CalibrationArea> {
  static constexpr auto name = nb::detail::const_name("CalibrationArea");
  static CalibrationArea from(nb::handle object);
};

/// A shape, or that of an array.
Extents shape_of(nb::handle object);

}  // namespace palimpsest::python
