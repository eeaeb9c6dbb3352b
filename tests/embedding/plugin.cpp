// SPDX-License-Identifier: Apache-2.0
// A plug-in that uses the library; its host does not.
#include <exception>

#include "embedding/use_everything.hpp"

extern "C" int use(const char* folder) {
  try {
    palimpsest::testing::use_everything(folder);
    return 0;
  } catch (const std::exception&) {
    return 1;
  }
}
