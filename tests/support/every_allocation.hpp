// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <functional>

namespace palimpsest::testing {

/// Makes the first allocation of an action fail, then the second and so on: the scene must be as
/// before, and a second try must work. Returns the number of allocations.
template <class Failing, class Error, class Scene>
std::size_t survived_failures(const std::function<void(Scene&)>& action) {
  for (std::size_t n = 0; n < 5000; ++n) {
    Scene scene;
    bool has_failed = false, has_thrown = false;
    {
      const Failing failing(n);
      try {
        action(scene);
      } catch (const Error&) {
        has_thrown = true;
      }
      has_failed = failing.has_failed();
    }
    EXPECT_TRUE(has_failed || !has_thrown);
    if (!has_failed) return n;
    if (has_thrown) scene.check();
    EXPECT_NO_THROW(action(scene));
  }
  ADD_FAILURE() << "no end of allocations";
  return 0;
}

}  // namespace palimpsest::testing
