// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <cstddef>

namespace palimpsest {

/// The number of an input, output, buffer or step, which is never negative, as the position in a
/// container.
constexpr std::size_t at(int position) { return static_cast<std::size_t>(position); }

}  // namespace palimpsest
