// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <memory>

namespace palimpsest {

/// Releases an object whose end may release others, and these again others, in chains of any
/// length. The stack holds some steps of a chain. Each later object ends right after the object
/// that released it.
void release_deep(std::shared_ptr<const void> object) noexcept;

}  // namespace palimpsest
