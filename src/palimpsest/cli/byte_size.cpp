// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/cli/byte_size.hpp"

#include "palimpsest/base/byte_size.hpp"
#include "palimpsest/cli/failure.hpp"

namespace palimpsest::cli {

index_t parse_bytes(const std::string& option, const std::string& text) {
  try {
    return palimpsest::parse_bytes(text, option);
  } catch (const ValueError& error) {
    throw UsageError(error.what());
  }
}

}  // namespace palimpsest::cli
