// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <string>

#include "palimpsest/io/ismrmrd.hpp"

namespace palimpsest::io_detail {

/// The facts out of an ISMRMRD header. FormatError naming the element that is missing or wrong.
RawScanHeader parse_ismrmrd_header(const std::string& path, const std::string& xml);

/// A header that fulfils the standard's schema.
std::string make_ismrmrd_header(const RawScanHeader& header);

}  // namespace palimpsest::io_detail
