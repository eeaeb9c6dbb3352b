// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include "palimpsest/ops/shape/pass_through_op.hpp"

namespace palimpsest::ops {

/// Inputs condition (bool, 0-d), n values for true, n values for false: n values.
///
/// Aliases  view_map {k: {1 + k, 1 + n + k}}. The executor of functions computes both values of k
///          in one buffer where it can, and then nothing is left to do here; run() copies otherwise
class IfElse final : public Op {
 public:
  explicit IfElse(std::size_t n) : n_(n) {}
  std::size_t count() const { return n_; }
  /// Positions among the inputs of the values of output k.
  std::size_t then_input(std::size_t k) const { return 1 + k; }
  std::size_t else_input(std::size_t k) const { return 1 + n_ + k; }

  std::string name() const override { return "IfElse"; }
  std::string parameters() const override { return "n=" + std::to_string(n_); }
  Apply make_node(std::span<const Variable> inputs) const override;
  AliasMap view_map(const Apply&) const override;
  std::vector<Extents> infer_shapes(const Apply& apply,
                                    std::span<const Extents> inputs) const override;
  bool can_fail() const override { return false; }
  Linearity linear_in(const Apply&, int in) const override {
    return in == 0 ? Linearity::no : Linearity::complex;
  }
  bool is_linear_sum(const Apply&) const override { return true; }
  std::vector<Variable> pullback(const Apply& apply,
                                 std::span<const Variable> cotangents) const override;
  void run(RunContext& context) const override;

 private:
  std::size_t n_;
};

/// Inputs x and conditions (bool): x. It runs because it can fail.
class AssertThat final : public PassThrough {
 public:
  explicit AssertThat(std::string message) : message_(std::move(message)) {}
  std::string name() const override { return "AssertThat"; }
  std::string parameters() const override { return "message=" + message_; }
  Apply make_node(std::span<const Variable> inputs) const override;
  std::vector<Variable> pullback(const Apply& apply,
                                 std::span<const Variable> cotangents) const override;
  void run(RunContext& context) const override;

 private:
  std::string message_;
};

}  // namespace palimpsest::ops
