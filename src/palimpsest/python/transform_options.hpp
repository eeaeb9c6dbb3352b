// SPDX-License-Identifier: Apache-2.0
// Internal: the options of transforms, by their names in Python.
#pragma once

#include "palimpsest/ops/transforms/fft.hpp"
#include "palimpsest/python/convert.hpp"

namespace palimpsest::python {
PALIMPSEST_NAMES(FftNorm, "norm", "backward", "ortho", "forward")
}  // namespace palimpsest::python

PALIMPSEST_ARGUMENT(FftNorm)
