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
  /// False: only the extents of the one result matter; it is bool and false.
  virtual bool has_values() const { return true; }
};

/// False if the extents of the results, and of all values computed inside of the application,
/// follow from those of its inputs. True for every IfElse: a branch that is not taken may not fit.
bool may_decide_extents(const Apply& apply);

}  // namespace ops
}  // namespace palimpsest
