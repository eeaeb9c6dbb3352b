// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>
#include <string>

namespace palimpsest::testing {

/// The first Python with a module; empty if there is none.
inline std::string python_with(const std::string& module) {
  for (const std::string python : {"python3", "/usr/bin/python3"}) {
    const std::string command = python + " -c 'import " + module + "' >/dev/null 2>&1";
    if (std::system(command.c_str()) == 0) return python;
  }
  return {};
}

}  // namespace palimpsest::testing
