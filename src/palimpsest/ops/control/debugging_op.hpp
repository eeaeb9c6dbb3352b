// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <string>

#include "palimpsest/ops/control/debugging.hpp"
#include "palimpsest/ops/shape/pass_through_op.hpp"

namespace palimpsest::ops {

/// Calls a hook. Equal ones are not merged: each counts.
class Breakpoint final : public PassThrough {
 public:
  Breakpoint(std::string hook, PassDirection direction)
      : hook_(std::move(hook)), direction_(direction) {}
  std::string name() const override { return "Breakpoint"; }
  std::string parameters() const override;
  Apply make_node(std::span<const Variable> inputs) const override;
  /// Calls the same hook, in the other direction.
  std::vector<Variable> pullback(const Apply& apply,
                                 std::span<const Variable> cotangents) const override;
  double tolerance(const Apply&) const override { return 0; }
  void run(RunContext& context) const override;

 private:
  std::string hook_;
  PassDirection direction_;
};

/// Waits.
class Sleep final : public PassThrough {
 public:
  explicit Sleep(double seconds) : seconds_(seconds) {}
  std::string name() const override { return "Sleep"; }
  std::string parameters() const override;
  Apply make_node(std::span<const Variable> inputs) const override;
  std::vector<Variable> pullback(const Apply& apply,
                                 std::span<const Variable> cotangents) const override;
  double tolerance(const Apply&) const override { return 0; }
  void run(RunContext& context) const override;

 private:
  double seconds_;
};

}  // namespace palimpsest::ops
