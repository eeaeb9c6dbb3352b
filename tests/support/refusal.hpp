// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "support/expect_error.hpp"

namespace palimpsest::testing {

/// A use that must be refused: `expect` checks the type of error and a piece of its text.
struct Refusal {
  std::string text;
  std::function<void()> expect;
};

/// The refusal of `action` with exactly an E whose text contains `text`.
template <class E, class F>
Refusal refusal(std::string text, F action) {
  auto expect = [text, action = std::move(action)] { expect_error<E>(action, text); };
  return {std::move(text), std::move(expect)};
}

}  // namespace palimpsest::testing
