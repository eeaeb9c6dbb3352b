// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include "palimpsest/graph/op.hpp"
#include "palimpsest/ops/parameters.hpp"

namespace palimpsest::ops {

/// Copies its input to another device.
class ToDevice final : public Declared<ToDevice> {
 public:
  explicit ToDevice(Device target) : target_(target) {}

  Apply make_node(std::span<const Variable> inputs) const override;
  std::vector<Extents> infer_shapes(const Apply&, ExtentsSpan inputs) const override {
    return {inputs[0]};
  }
  Linearity linear_in(const Apply&, int) const override { return Linearity::complex; }
  std::vector<Variable> pullback(const Apply& apply, CotangentSpan cotangents) const override;
  bool can_fail() const override { return false; }
  double tolerance(const Apply&) const override { return 0; }
  void run(RunContext& context) const override;
  static constexpr auto declaration() { return declare("ToDevice", field(&ToDevice::target_)); }

 private:
  Device target_;
};

}  // namespace palimpsest::ops
