// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "palimpsest/base/api.hpp"
#include "palimpsest/base/dtype.hpp"

namespace PALIMPSEST_API palimpsest {

/// `300M`, `1.5G`, `64Ki`, `4096`: k, M, G, T count by 1000, with an i by 1024; a B may follow.
/// `who` begins the error.
///
/// Errors   ValueError: not a number of bytes, negative, or beyond 63 bits
index_t parse_bytes(std::string_view text, std::string_view who = "bytes");

/// 1234567 as `1,234,567`.
std::string with_commas(index_t n);

}  // namespace palimpsest
