// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string_view>
#include <utility>

namespace palimpsest {

/// How a graph is rewritten before it is planned.
enum class Mode {
  fast_run,      // everything
  fast_compile,  // equal expressions are merged; nothing is fused or put in place
  no_rewrite     // plan only
};

std::string_view name_of(Mode mode);

/// What looks at the calls of a function; made by MonitorMode(), NanGuardMode() and DebugMode().
class Inspection;

/// What function() is told: how to rewrite, and what looks at the calls, if anything does.
class FunctionMode {
 public:
  FunctionMode(Mode base) : base_(base) {}
  FunctionMode(Mode base, std::shared_ptr<const Inspection> inspection)
      : base_(base), inspection_(std::move(inspection)) {}
  /// The mode that decides how the graph is rewritten and planned.
  Mode base() const { return base_; }
  /// Null: nothing looks.
  const std::shared_ptr<const Inspection>& inspection() const { return inspection_; }

 private:
  Mode base_;
  std::shared_ptr<const Inspection> inspection_;
};

/// FastRun, FastCompile, NoRewrite, DebugMode or NanGuardMode, the last two with the options of the
/// config.
/// Errors  ValueError: another name
FunctionMode mode_named(std::string_view name);

}  // namespace palimpsest
