// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <initializer_list>

#include "support/expect_error.hpp"

namespace palimpsest::testing {

/// Calls expect_error() with each of the texts; the action runs once for each.
template <class E, class F>
void expect_error(F&& action, const std::string& text, std::initializer_list<std::string> more) {
  expect_error<E>(action, text);
  for (const std::string& part : more) expect_error<E>(action, part);
}

}  // namespace palimpsest::testing
