// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <complex>
#include <optional>

namespace palimpsest {

/// a b, the factor of two Scalars that become one; real if both are. None if the product of two
/// finite numbers is too large or too small for double precision: then they stay two.
std::optional<std::complex<double>> product_of_numbers(std::complex<double> a,
                                                       std::complex<double> b);

}  // namespace palimpsest
