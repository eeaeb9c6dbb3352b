// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "palimpsest/base/api.hpp"
#include "palimpsest/graph/op.hpp"

namespace PALIMPSEST_API palimpsest {
namespace ops {

/// An op whose results have extents that follow from the elements of its inputs. infer_shapes()
/// gives kUnknown for them.
class MeasuredOp : public Op {
 public:
  /// Extents of the outputs as the elements of the inputs decide them, before anything is computed.
  virtual std::vector<Extents> measured_shapes(const Apply& apply,
                                               std::span<const ConstView> inputs) const = 0;
  /// False: nobody looks at anything but the extents of the one result, which is bool and false.
  virtual bool has_values() const { return true; }
};

/// Input n (int64, 0-d): an array of n elements, for those who ask for its extent. So an extent
/// that is no function of extents becomes one.
///
/// Errors   ShapeError, when it runs: n is negative
/// Cost     no memory in a function
class RunTimeExtent final : public MeasuredOp {
 public:
  std::string name() const override { return "RunTimeExtent"; }
  Apply make_node(std::span<const Variable> inputs) const override;
  std::vector<Extents> infer_shapes(const Apply& apply,
                                    std::span<const Extents> inputs) const override;
  std::vector<Extents> measured_shapes(const Apply& apply,
                                       std::span<const ConstView> inputs) const override;
  bool has_values() const override { return false; }
  std::vector<Variable> pullback(const Apply&, std::span<const Variable>) const override {
    return {Variable()};
  }
  void run(RunContext& context) const override;
};

/// Inputs a mask (bool) and, if it is to fit an array, that array, whose axes from `axis` on must
/// have the mask's extents: for each axis of the mask, the positions along it of its true elements,
/// in row-major order.
///
/// DTypes   int64
/// Cost     two passes over the mask
class Nonzero final : public MeasuredOp {
 public:
  explicit Nonzero(std::size_t axis = 0) : axis_(axis) {}
  std::string name() const override { return "Nonzero"; }
  std::string parameters() const override { return "axis=" + std::to_string(axis_); }
  Apply make_node(std::span<const Variable> inputs) const override;
  std::vector<Extents> infer_shapes(const Apply& apply,
                                    std::span<const Extents> inputs) const override;
  std::vector<Extents> measured_shapes(const Apply& apply,
                                       std::span<const ConstView> inputs) const override;
  bool uses_elements(const Apply&, int in) const override { return in == 0; }
  bool can_fail() const override { return false; }
  void run(RunContext& context) const override;

 private:
  void check(std::span<const index_t> mask, std::span<const index_t> array) const;

  std::size_t axis_;
};

/// Are extents of results of this application, or of anything that is computed inside of it, known
/// only when it runs? `inputs` are the extents of its inputs, all known.
bool has_run_time_extents(const Apply& apply, std::span<const Extents> inputs);

}  // namespace ops
}  // namespace palimpsest
