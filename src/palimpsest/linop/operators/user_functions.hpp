// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include "palimpsest/linop/operators/simple.hpp"

namespace palimpsest {

/// The functions of a SimpleLinop: its node keeps them, since no registry knows them.
struct UserFunctions {
  VariableFunction fn, adj_fn, normal_fn;
};

}  // namespace palimpsest
