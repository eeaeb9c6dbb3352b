// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "palimpsest/graph/op.hpp"

namespace palimpsest {

/// Op::infer_shapes gave shapes that do not fit the types of the outputs.
class InferredShapesError : public ShapeError {
 public:
  /// `output`: the first that does not fit; -1: there are not as many shapes as outputs.
  InferredShapesError(const Apply& node, std::vector<Extents> got, int output);

  const Apply& node() const { return facts_->node; }
  const std::vector<Extents>& got() const { return facts_->got; }
  int output() const { return facts_->output; }

 private:
  struct Facts {
    Apply node;
    std::vector<Extents> got;
    int output;
  };
  std::shared_ptr<const Facts> facts_;  // so that copying an exception cannot throw
};

/// The extents of the outputs, by Op::infer_shapes: one shape per output, of its rank, with the
/// extents that its type knows. Others may be kUnknown.
/// Errors  those of infer_shapes; InferredShapesError
std::vector<Extents> inferred_shapes(const Apply& node, std::span<const Extents> inputs);

}  // namespace palimpsest
