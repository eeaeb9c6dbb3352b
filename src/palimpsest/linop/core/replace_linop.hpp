// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "palimpsest/base/api.hpp"
#include "palimpsest/linop/core/linop_type.hpp"

namespace PALIMPSEST_API palimpsest {

/// Makes a type known in place of the one that had its name, if there was one: for operators that
/// are loaded from now on. Operators that were made before keep theirs and cannot be saved.
/// Both types are kept by reference.
/// Errors   ValueError: the name is empty
void replace_linop(const LinopType& type);

}  // namespace palimpsest
