// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <memory>

namespace palimpsest {

/// Gives up an object whose end may give up others, and these others again: chains of any length,
/// of which the stack holds some steps. What comes after those ends as soon as the object has that
/// gave it up.
void release_deep(std::shared_ptr<const void> object) noexcept;

}  // namespace palimpsest
