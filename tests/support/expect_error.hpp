// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <typeinfo>

namespace palimpsest::testing {

/// Expects that `action` throws exactly an `E` whose text contains `text`.
template <class E, class F>
void expect_error(F&& action, const std::string& text) {
  try {
    action();
  } catch (const E& error) {
    EXPECT_TRUE(typeid(error) == typeid(E)) << "a derived type: " << typeid(error).name();
    EXPECT_NE(std::string(error.what()).find(text), std::string::npos)
        << "text: " << error.what() << "\nexpected in it: " << text;
    return;
  } catch (const std::exception& error) {
    FAIL() << "another exception: " << error.what();
  }
  FAIL() << "no exception, expected one with: " << text;
}

}  // namespace palimpsest::testing
