// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <string>

#include "palimpsest/ops/control/debugging.hpp"
#include "palimpsest/ops/parameters.hpp"
#include "palimpsest/ops/shape/pass_through_op.hpp"

namespace palimpsest::ops {

/// Calls a hook. Equal ones are not merged: each counts.
class Breakpoint final : public Declared<Breakpoint, PassThrough> {
 public:
  Breakpoint(PassDirection direction, std::string hook)
      : direction_(direction), hook_(std::move(hook)) {}
  Apply make_node(std::span<const Variable> inputs) const override;
  /// Calls the same hook, in the other direction.
  std::vector<Variable> pullback(const Apply& apply, CotangentSpan cotangents) const override;
  double tolerance(const Apply&) const override { return 0; }
  void run(RunContext& context) const override;
  static constexpr auto declaration() {
    return declare("Breakpoint",
                   choice<Breakpoint, PassDirection>(
                       "adjoint", &Breakpoint::direction_,
                       {{"0", PassDirection::forward}, {"1", PassDirection::adjoint}}),
                   field("hook", &Breakpoint::hook_));
  }

 private:
  PassDirection direction_;
  std::string hook_;
};

/// Waits.
class Sleep final : public Declared<Sleep, PassThrough> {
 public:
  explicit Sleep(double seconds) : seconds_(seconds) {}
  Apply make_node(std::span<const Variable> inputs) const override;
  std::vector<Variable> pullback(const Apply& apply, CotangentSpan cotangents) const override;
  double tolerance(const Apply&) const override { return 0; }
  void run(RunContext& context) const override;
  static std::string misfit(double seconds);
  static constexpr auto declaration() {
    return declare("Sleep", field("seconds", &Sleep::seconds_));
  }

 private:
  double seconds_;
};

}  // namespace palimpsest::ops
