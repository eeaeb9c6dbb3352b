// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include "palimpsest/ops/parameters.hpp"
#include "palimpsest/ops/shape/pass_through_op.hpp"

namespace palimpsest::ops {

/// Inputs condition (bool, 0-d), n values for true, n values for false: n values.
///
/// Aliases  view_map {k: {1 + k, 1 + n + k}}. The executor of functions computes both values of k
///          in one buffer where it can, and then nothing is left to do here; run() copies otherwise
class IfElse final : public Declared<IfElse> {
 public:
  explicit IfElse(std::size_t n) : n_(n) {}
  std::size_t count() const { return n_; }
  /// Positions among the inputs of the values of output k.
  std::size_t then_input(std::size_t k) const { return 1 + k; }
  std::size_t else_input(std::size_t k) const { return 1 + n_ + k; }

  Apply make_node(std::span<const Variable> inputs) const override;
  AliasMap view_map(const Apply&) const override;
  std::vector<Extents> infer_shapes(const Apply& apply, ExtentsSpan inputs) const override;
  bool can_fail() const override { return false; }
  Linearity linear_in(const Apply&, int in) const override {
    return in == 0 ? Linearity::no : Linearity::complex;
  }
  bool is_linear_sum(const Apply&) const override { return true; }
  std::vector<Variable> pullback(const Apply& apply, CotangentSpan cotangents) const override;
  void run(RunContext& context) const override;
  static std::string misfit(std::size_t n) { return n > 1000 ? "too many outputs" : ""; }
  static constexpr auto declaration() { return declare("IfElse", field("n", &IfElse::n_)); }

 private:
  std::size_t n_;
};

/// Inputs x and conditions (bool): x. It runs because it can fail.
class AssertThat final : public Declared<AssertThat, PassThrough> {
 public:
  explicit AssertThat(std::string message) : message_(std::move(message)) {}
  Apply make_node(std::span<const Variable> inputs) const override;
  std::vector<Variable> pullback(const Apply& apply, CotangentSpan cotangents) const override;
  void run(RunContext& context) const override;
  static constexpr auto declaration() {
    return declare("AssertThat", field("message", &AssertThat::message_));
  }

 private:
  std::string message_;
};

}  // namespace palimpsest::ops
