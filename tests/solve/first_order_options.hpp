// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "palimpsest/solve/gradient_methods.hpp"

namespace palimpsest::testing {

/// The options of fista as those of another first-order method, which lacks some of them.
template <class To>
To as(const FistaOptions& o) {
  To made = solve_options<To>(o);
  made.L = o.L;
  made.average = o.average;
  if constexpr (requires { made.restart; }) made.restart = o.restart;
  if constexpr (requires { made.monotone; }) {
    made.monotone = o.monotone;
    made.backtrack = o.backtrack;
  }
  return made;
}

}  // namespace palimpsest::testing
