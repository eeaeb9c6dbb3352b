// SPDX-License-Identifier: Apache-2.0
// Internal: the options of transforms, by their names in Python.
#pragma once

#include "palimpsest/linop/transforms/finite_difference.hpp"
#include "palimpsest/ops/transforms/fft.hpp"
#include "palimpsest/ops/transforms/nufft.hpp"
#include "palimpsest/python/convert.hpp"

namespace palimpsest::python {

PALIMPSEST_NAMES(DifferenceBoundary, "boundary", "periodic", "neumann", "zero")
PALIMPSEST_NAMES(DifferenceDirection, "direction", "forward", "backward")
PALIMPSEST_NAMES(FftNorm, "norm", "backward", "ortho", "forward")
PALIMPSEST_NAMES(LocsUnit, "units", "cycles", "normalized", "radians")
PALIMPSEST_NAMES(NufftScale, "scale", "ortho", "none")
PALIMPSEST_NAMES(PadMode, "pad_mode", "circular", "zero")

/// A number for all axes, or a list of them.
template <>
struct From<PerAxis> {
  static constexpr auto name = nb::detail::const_name("float | Sequence[float]");
  static PerAxis from(nb::handle object) {
    if (!is_list(object)) return PerAxis(nb::cast<double>(nb::float_(nb::borrow(object))));
    std::vector<double> values;
    for (nb::handle item : object) {
      values.push_back(nb::cast<double>(nb::float_(nb::borrow(item))));
    }
    return PerAxis(std::span<const double>(values));
  }
};

}  // namespace palimpsest::python

PALIMPSEST_ARGUMENT(FftNorm)
PALIMPSEST_ARGUMENT(PerAxis)
