// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/compile/function_mode.hpp"

#include <string>

#include "palimpsest/compile/debug/debug_mode.hpp"
#include "palimpsest/compile/debug/nan_guard.hpp"

namespace palimpsest {

std::string_view name_of(Mode mode) {
  switch (mode) {
    case Mode::fast_run:
      return "FastRun";
    case Mode::fast_compile:
      return "FastCompile";
    case Mode::no_rewrite:
      return "NoRewrite";
  }
  return "unknown";
}

FunctionMode mode_named(std::string_view name) {
  for (Mode mode : {Mode::fast_run, Mode::fast_compile, Mode::no_rewrite}) {
    if (name_of(mode) == name) return mode;
  }
  if (name == "DebugMode") return DebugMode();
  if (name == "NanGuardMode") return NanGuardMode();
  throw ValueError("[config mode] got '" + std::string(name) +
                   "', expected FastRun, FastCompile, NoRewrite, DebugMode or NanGuardMode");
}

}  // namespace palimpsest
