// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/ops/control/debugging.hpp"

#include <chrono>
#include <cmath>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "palimpsest/base/immortal.hpp"
#include "palimpsest/ops/common.hpp"
#include "palimpsest/ops/control/debugging_op.hpp"
#include "palimpsest/ops/parameters.hpp"

namespace palimpsest {
namespace {

struct Hooks {
  Mutex mutex;
  std::map<std::string, std::shared_ptr<const BreakpointHook>, std::less<>> by_name;
};
Hooks& hooks() {
  return immortal([] { return Hooks(); });
}

std::shared_ptr<const BreakpointHook> find_hook(std::string_view name) {
  Hooks& known = hooks();
  const std::lock_guard guard(known.mutex);
  const auto found = known.by_name.find(name);
  return found == known.by_name.end() ? nullptr : found->second;
}

}  // namespace

void set_breakpoint_hook(std::string name, BreakpointHook hook) {
  if (name.empty() || !hook) {
    throw ValueError("[set_breakpoint_hook] hook: got " + std::string(hook ? "no name" : "none") +
                     ", expected a name and a function");
  }
  auto made = std::make_shared<const BreakpointHook>(std::move(hook));
  Hooks& known = hooks();
  const std::lock_guard guard(known.mutex);
  known.by_name[std::move(name)].swap(made);
}

std::vector<std::string> breakpoint_hooks() {
  Hooks& known = hooks();
  const std::lock_guard guard(known.mutex);
  std::vector<std::string> names;
  for (const auto& [name, hook] : known.by_name) names.push_back(name);
  return names;
}

namespace ops {

Apply Breakpoint::make_node(std::span<const Variable> inputs) const {
  expect_inputs(inputs, 1, "breakpoint");
  return node(inputs, {inputs[0].type()});
}

std::vector<Variable> Breakpoint::pullback(const Apply&, CotangentSpan cotangents) const {
  if (!cotangents[0].defined()) return {Variable()};
  const bool is_forward = direction_ == PassDirection::forward;
  return {breakpoint(cotangents[0], hook_,
                     is_forward ? PassDirection::adjoint : PassDirection::forward)};
}

void Breakpoint::run(RunContext& context) const {
  // Hooks of new graphs were checked. A file may name a hook that this program lacks.
  if (const auto hook = find_hook(hook_)) (*hook)({hook_, direction_, context.input(0)});
  pass(context);
}

Variable breakpoint(const Variable& x, std::string hook, PassDirection direction) {
  if (!find_hook(hook)) {
    std::string known;
    for (const std::string& name : breakpoint_hooks()) {
      known += (known.empty() ? "'" : ", '") + name + "'";
    }
    throw ValueError("[breakpoint] hook: got '" + hook + "', expected " +
                     (known.empty() ? "one that has been set" : "one of " + known) +
                     ". Try set_breakpoint_hook");
  }
  return std::make_shared<Breakpoint>(direction, std::move(hook))->make_node({&x, 1}).output(0);
}

std::string Sleep::misfit(double seconds) {
  return std::isfinite(seconds) && seconds >= 0 ? "" : "no time to wait";
}

Apply Sleep::make_node(std::span<const Variable> inputs) const {
  expect_inputs(inputs, 1, "sleep");
  return node(inputs, {inputs[0].type()});
}

std::vector<Variable> Sleep::pullback(const Apply&, CotangentSpan cotangents) const {
  return {cotangents[0]};
}

void Sleep::run(RunContext& context) const {
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds_));
  pass(context);
}

Variable sleep(const Variable& x, double seconds) {
  if (!std::isfinite(seconds) || seconds < 0) {
    throw ValueError("[sleep] seconds: got " + written(seconds) +
                     ", expected a finite number that is not negative");
  }
  return std::make_shared<Sleep>(seconds)->make_node({&x, 1}).output(0);
}

void register_ops_of_debugging() {
  register_type<Breakpoint>();
  register_type<Sleep>();
}

}  // namespace ops
}  // namespace palimpsest
