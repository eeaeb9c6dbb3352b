// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "palimpsest/io/ismrmrd.hpp"

namespace palimpsest::io_detail {

/// The facts out of an ISMRMRD header. FormatError naming the element that is missing or wrong.
RawScanHeader parse_ismrmrd_header(const std::string& path, const std::string& xml);

/// A header that fulfils the standard's schema.
std::string make_ismrmrd_header(const RawScanHeader& header);

/// The attributes of an image: names and values.
using MetaAttributes = std::vector<std::pair<std::string, std::string>>;
/// Reads attributes from the standard's XML; none from any other text.
MetaAttributes parse_meta_attributes(const std::string& xml);
/// Empty without attributes.
std::string make_meta_attributes(const MetaAttributes& attributes);

}  // namespace palimpsest::io_detail
