// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/inspect/mode_named.hpp"

#include "palimpsest/inspect/debug/debug_mode.hpp"
#include "palimpsest/inspect/debug/nan_guard.hpp"

namespace palimpsest {
namespace {

constexpr Mode::Base kBases[] = {Mode::fast_run, Mode::fast_compile, Mode::no_rewrite};

}  // namespace

Mode mode_named(std::string_view name) {
  for (const Mode::Base base : kBases) {
    if (name_of(base) == name) return base;
  }
  if (name == "DebugMode") return DebugMode();
  if (name == "NanGuardMode") return NanGuardMode();
  throw ValueError("[config mode] got '" + std::string(name) +
                   "', expected FastRun, FastCompile, NoRewrite, DebugMode or NanGuardMode");
}

}  // namespace palimpsest
