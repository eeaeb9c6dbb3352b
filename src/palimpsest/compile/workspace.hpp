// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include "palimpsest/compile/function.hpp"

namespace palimpsest {

/// The function f whose calls use the arena of `other`, where it is idle and large enough. For
/// functions that are never called side by side and whose borrowed results are read before the
/// other is called. The one with the largest arena should be prepared first.
Function with_workspace_of(const Function& f, const Function& other);

}  // namespace palimpsest
