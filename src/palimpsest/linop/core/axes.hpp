// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <optional>

#include "palimpsest/base/shape.hpp"
#include "palimpsest/named/dims.hpp"

// Operators act on axes, not on names. An axis before an ellipsis is counted from the front (0, 1,
// ...), any other from the end (-1, -2, ...). So renaming, and spelling out an ellipsis, change no
// axis.
namespace palimpsest {

/// The position in `axes` of the axis that d has in `dims`; none if it is not among them.
std::optional<std::size_t> find_axis(const Dims& dims, const ND& d, std::span<const index_t> axes);
/// The last n axes: -n .. -1.
Axes last_axes(std::size_t n);
/// Counted from the front, for arrays of this rank, in the given order.
Axes from_front(std::span<const index_t> axes, std::size_t rank);
/// Names for n axes: the spatial ones up to three, else `base`1...
Dims default_names(std::size_t n, bool kspace);
/// For every dimension the first of d + 1, d + 2, ... that `avoid` and the ones before lack.
Dims fresh_names(const Dims& dims, const Dims& avoid);

}  // namespace palimpsest
