// SPDX-License-Identifier: Apache-2.0
// Internal: checks of the options of solvers.
#pragma once

#include <cmath>
#include <string>
#include <string_view>

#include "palimpsest/base/error.hpp"
#include "palimpsest/solve/frame/problem.hpp"

namespace palimpsest {

/// ValueError "[solver] name: got .., expected .." unless it holds.
inline void expect_option(const Problem& p, std::string_view solver, std::string_view name,
                          bool holds, std::string_view expected) {
  if (holds) return;
  throw ValueError("[" + std::string(solver) + "] " + std::string(name) + ": got " +
                   p.attr(name).str() + ", expected " + std::string(expected));
}

inline void expect_positive(const Problem& p, std::string_view solver, std::string_view name) {
  const double value = p.real(name, 1);
  expect_option(p, solver, name, value > 0 && std::isfinite(value), "a positive number");
}
inline void expect_not_negative(const Problem& p, std::string_view solver, std::string_view name) {
  const double value = p.real(name, 0);
  expect_option(p, solver, name, value >= 0 && std::isfinite(value),
                "a number that is not negative");
}

}  // namespace palimpsest
