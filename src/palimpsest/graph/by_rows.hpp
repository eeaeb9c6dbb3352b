// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include "palimpsest/graph/op.hpp"

namespace palimpsest {

/// An op whose steps may run for some rows at a time, so that the rows are still in cache when the
/// next step reads them.
class WorksByRows {
 public:
  virtual ~WorksByRows() = default;
  /// True if row i along the first axis of each output has the same bits when run() gets some rows
  /// only, i among them, of all outputs and of all inputs that have as many; inputs of one row
  /// serve all.
  virtual bool works_by_rows(const Apply& apply) const = 0;
};

}  // namespace palimpsest
