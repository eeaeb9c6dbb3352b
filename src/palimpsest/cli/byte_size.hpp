// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "palimpsest/base/dtype.hpp"

namespace palimpsest::cli {

/// `300M`, `1.5G`, `64Ki`, `4096`: k, M, G, T count by 1000, with an i by 1024; a B may follow.
///
/// Errors   UsageError: no such number, negative, or beyond 63 bits
index_t parse_bytes(const std::string& option, const std::string& text);

}  // namespace palimpsest::cli
