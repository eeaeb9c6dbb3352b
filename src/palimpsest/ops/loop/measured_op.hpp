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

/// True if extents of results of this application, or of values computed inside of it, are known
/// only when it runs. `inputs` are the extents of its inputs, all known.
bool has_run_time_extents(const Apply& apply, std::span<const Extents> inputs);

}  // namespace ops
}  // namespace palimpsest
