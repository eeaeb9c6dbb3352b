// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "palimpsest/base/dtype.hpp"

namespace palimpsest::cli {

/// 1234567 as `1,234,567`.
std::string with_commas(index_t n);

/// Rows of cells under each other: the first column to the left, the others to the right.
std::string aligned_table(const std::vector<std::vector<std::string>>& rows);

}  // namespace palimpsest::cli
