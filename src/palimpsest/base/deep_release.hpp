// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <memory>

namespace palimpsest {

/// Destroys a chain of owners, each of which releases the next one, by iteration, so that the stack
/// does not limit the length of the chain. Each later object ends right after the object that
/// released it.
void release_deep(std::shared_ptr<const void> object) noexcept;

}  // namespace palimpsest
