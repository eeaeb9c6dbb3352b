// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "palimpsest/base/byte_size.hpp"

namespace palimpsest::cli {

/// `1 coil`, `8 coils`, `1,024 coils`.
std::string counted(index_t n, const std::string& noun);

/// Rows of cells under each other: the first column to the left, the others to the right.
std::string aligned_table(const std::vector<std::vector<std::string>>& rows);

}  // namespace palimpsest::cli
