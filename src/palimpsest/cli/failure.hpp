// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

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
/// UsageError naming the option unless number >= least.
inline void expect_at_least(const std::string& option, double number, double least) {
  if (number >= least) return;
  throw UsageError(
      fmt::format("[{}] got {}, expected a number of at least {}", option, number, least));
}
/// UsageError unless --iterations is a number that an iteration can count to.
inline void expect_iterations(index_t iterations) {
  expect_between("--iterations", iterations, 1);
  expect_between("--iterations", iterations, 1, 1000000000);
}
/// UsageError unless a PNG can have this bit depth.
inline void expect_bits(index_t bits) {
  if (bits == 8 || bits == 16) return;
  throw UsageError("[--bits] got " + std::to_string(bits) + ", expected 8 or 16");
}

}  // namespace palimpsest::cli
