// SPDX-License-Identifier: Apache-2.0
// Internal: what the sources of this layer have in common.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <numbers>
#include <utility>
#include <vector>

#include "palimpsest/base/error.hpp"
#include "palimpsest/imaging/inputs.hpp"
#include "palimpsest/linop/transforms/fft.hpp"

namespace palimpsest {

/// A sample of k-space or an element of an image, and a sum of these.
using Sample = std::complex<float>;
using Complex = std::complex<double>;

}  // namespace palimpsest
