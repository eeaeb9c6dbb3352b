// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <limits>
#include <string>

#include "palimpsest/base/dtype.hpp"
#include "palimpsest/base/error.hpp"

namespace palimpsest::cli {

/// Wrong usage or input: the command ends with exit code 2 instead of 1.
class UsageError : public Error {
 public:
  using Error::Error;
};

/// UsageError naming the option unless least <= number <= most.
inline void expect_between(const std::string& option, index_t number, index_t least,
                           index_t most = std::numeric_limits<index_t>::max()) {
  if (number >= least && number <= most) return;
  const bool is_open = most == std::numeric_limits<index_t>::max();
  throw UsageError("[" + option + "] got " + std::to_string(number) + ", expected " +
                   (is_open ? "at least " + std::to_string(least)
                            : std::to_string(least) + " to " + std::to_string(most)));
}
/// UsageError unless a PNG can have this bit depth.
inline void expect_bits(index_t bits) {
  if (bits == 8 || bits == 16) return;
  throw UsageError("[--bits] got " + std::to_string(bits) + ", expected 8 or 16");
}

}  // namespace palimpsest::cli
