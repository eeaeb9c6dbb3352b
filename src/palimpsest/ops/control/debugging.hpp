// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "palimpsest/base/api.hpp"
#include "palimpsest/base/view.hpp"
#include "palimpsest/graph/variable.hpp"

namespace PALIMPSEST_API palimpsest {

/// Direction of data through a Breakpoint: that of its operator, or that of the adjoint.
enum class PassDirection : std::uint8_t { forward, adjoint };

/// A run of a Breakpoint. The data are there during the call only.
struct BreakpointHit {
  std::string_view hook;
  PassDirection direction = PassDirection::forward;
  ConstView data;
};
using BreakpointHook = std::function<void(const BreakpointHit&)>;

/// Gives a hook its name, by which graphs and files know it; one of that name is replaced, also for
/// functions that exist.
///
/// Threads  the hook is called by the thread that runs the step: by several at once where steps or
///          calls run side by side
/// Errors   ValueError "hook": no name, or no function
void set_breakpoint_hook(std::string name, BreakpointHook hook);
/// The names that there are, sorted.
std::vector<std::string> breakpoint_hooks();

namespace ops {

/// x, after a call of the hook of this name. A view; never merged with another one, computed
/// beforehand, or left out while its result is used. An exception of the hook ends the call.
///
/// Errors   ValueError "hook": no hook of this name
/// Cost     none but the hook's
Variable breakpoint(const Variable& x, std::string hook,
                    PassDirection direction = PassDirection::forward);

/// x, after the step has waited for so long. A view. Its derivative does not wait.
/// Errors   ValueError "seconds": negative or not finite
Variable sleep(const Variable& x, double seconds);

}  // namespace ops
}  // namespace palimpsest
