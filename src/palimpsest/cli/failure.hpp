// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "palimpsest/base/error.hpp"

namespace palimpsest::cli {

/// Wrong usage or input: the command ends with exit code 2 instead of 1.
class UsageError : public Error {
 public:
  using Error::Error;
};

}  // namespace palimpsest::cli
