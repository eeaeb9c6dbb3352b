// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include "palimpsest/graph/op.hpp"
#include "palimpsest/kernels/gridding/gridding.hpp"
#include "palimpsest/ops/parameters.hpp"
#include "palimpsest/ops/shape/contiguous_op.hpp"
#include "palimpsest/ops/transforms/nufft.hpp"

namespace palimpsest::ops {

template <>
GriddingPlan read_value<GriddingPlan>(ParameterText& text);

/// Input locs (k.., D); output the order in which the points are visited
/// (kernels/gridding/gridding.hpp): int32, or int64 where there are known to be 2^31 points or
/// more.
class PointOrder final : public Declared<PointOrder> {
 public:
  explicit PointOrder(GriddingPlan plan) : plan_(std::move(plan)) {}
  Apply make_node(std::span<const Variable> inputs) const override;
  std::vector<Extents> infer_shapes(const Apply& apply, ExtentsSpan inputs) const override;
  std::size_t scratch_bytes(const Apply& apply, std::span<const Layout> inputs) const override;
  bool can_fail() const override { return true; }
  void run(RunContext& context) const override;
  static constexpr auto declaration() { return declare("PointOrder", field(&PointOrder::plan_)); }

 private:
  GriddingPlan plan_;
};

/// Inputs x (b.., g..), locs (k.., D) and the order of the points: y (b.., k..), the values between
/// the elements of a grid. `adjoint`: inputs y, locs and order, output x.
class Interpolation final : public Declared<Interpolation>, public RoundsByLayout {
 public:
  Interpolation(GriddingPlan plan, bool adjoint) : plan_(std::move(plan)), adjoint_(adjoint) {}
  const GriddingPlan& plan() const { return plan_; }
  Apply make_node(std::span<const Variable> inputs) const override;
  std::vector<Extents> infer_shapes(const Apply& apply, ExtentsSpan inputs) const override;
  Linearity linear_in(const Apply& apply, int in) const override;
  std::vector<Variable> pullback(const Apply& apply, CotangentSpan cotangents) const override;
  std::size_t scratch_bytes(const Apply& apply, std::span<const Layout> inputs) const override;
  void run(RunContext& context) const override;
  static constexpr auto declaration() {
    return declare(
        "Interpolate", field(&Interpolation::plan_),
        named<Interpolation, bool>(&Interpolation::adjoint_, {{"", false}, {"Adjoint", true}}));
  }

 private:
  GriddingPlan plan_;
  bool adjoint_;
};

/// The specification for `options` and a grid of this size.
/// Errors   ValueError naming `who`: "kernel", "norm", "width"
GriddingSpec gridding_spec(std::span<const index_t> grid, const InterpolateOptions& options,
                           std::string_view who);

Variable point_order(const GriddingPlan& plan, const Variable& locs);
Variable interpolate(const GriddingPlan& plan, const Variable& x, const Variable& locs,
                     const Variable& order);
Variable interpolate_adjoint(const GriddingPlan& plan, const Variable& y, const Variable& locs,
                             const Variable& order);

}  // namespace palimpsest::ops
