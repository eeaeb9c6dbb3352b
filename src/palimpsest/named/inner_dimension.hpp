// SPDX-License-Identifier: Apache-2.0
// Internal: names of dimensions inside derived operators, such as `Nx~16p`. A text spells one only
// if the dimension exists, so that it is never one that a user chose.
#pragma once

#include <cstdint>
#include <string_view>

#include "palimpsest/named/dimension.hpp"

namespace palimpsest {

/// A dimension that is made for d: `Nx~16p` for Nx, 16 elements and the mark `p`, a lower-case
/// letter. Its extent is a part of its name, so that equal names have equal sizes.
NamedDimension inner_dimension(const NamedDimension& d, std::int64_t extent, char mark);

/// The dimension of a text that str() gave in another process.
/// Errors   ValueError as of NamedDimension
NamedDimension stored_dimension(std::string_view text);

}  // namespace palimpsest
