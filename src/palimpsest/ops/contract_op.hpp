// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "palimpsest/graph/op.hpp"
#include "palimpsest/kernels/contract.hpp"

namespace palimpsest::ops {

/// out = sum of conj?(a) conj?(b) over the labels that the result lacks. Both inputs are of one
/// dtype that the kernel takes.
class Contract final : public Op {
 public:
  explicit Contract(Contraction contraction) : contraction_(std::move(contraction)) {}
  const Contraction& contraction() const { return contraction_; }

  std::string name() const override { return "Contract"; }
  std::string parameters() const override;
  Apply make_node(std::span<const Variable> inputs) const override;
  std::vector<Extents> infer_shapes(const Apply& apply,
                                    std::span<const Extents> inputs) const override;
  std::size_t scratch_bytes(const Apply& apply, std::span<const Layout> inputs) const override;
  Linearity linear_in(const Apply& apply, int in) const override;
  std::vector<Variable> pullback(const Apply& apply,
                                 std::span<const Variable> cotangents) const override;
  bool can_fail() const override { return false; }
  void run(RunContext& context) const override;

 private:
  Extents result_extents(std::span<const index_t> a, std::span<const index_t> b) const;
  Variable pullback_of(const Apply& apply, const Variable& w, bool first) const;

  Contraction contraction_;
};

/// sum of |x|^2 over all elements.
class Norm2 final : public Op {
 public:
  std::string name() const override { return "Norm2"; }
  Apply make_node(std::span<const Variable> inputs) const override;
  std::vector<Extents> infer_shapes(const Apply&, std::span<const Extents>) const override {
    return {Extents()};
  }
  std::vector<Variable> pullback(const Apply& apply,
                                 std::span<const Variable> cotangents) const override;
  bool can_fail() const override { return false; }
  void run(RunContext& context) const override;
};

}  // namespace palimpsest::ops
