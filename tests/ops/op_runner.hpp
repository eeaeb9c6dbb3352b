// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>
#include <vector>

#include "palimpsest/graph/op.hpp"
#include "support/window.hpp"

namespace palimpsest::testing {

struct RunOptions {
  /// The byte that destinations and scratch contain before the run.
  unsigned char poison = 0xA5;
  /// Of the destinations.
  WindowLayout layout = WindowLayout::dense;
};

/// Runs one application on these inputs, without a compiler, and returns its first result. The
/// destination has the extents of infer_shapes, or is the memory of the destroyed input; scratch
/// has exactly scratch_bytes bytes. Expects that all memory beside the destinations and scratch,
/// and every input that is not destroyed, keep their bytes.
Tensor run_op(const Apply& node, std::vector<Tensor> inputs, RunOptions options = {});

/// The extents of a node's results: inferred, or measured if elements decide.
std::vector<Extents> result_extents(const Apply& node, const std::vector<Tensor>& inputs);

/// Destinations for all results but the first.
std::vector<Tensor> further_destinations(const Apply& node, const std::vector<Tensor>& inputs);

using Bindings = std::vector<std::pair<Variable, Tensor>>;

/// The value of y, computed node by node.
Tensor evaluate(const Variable& y, const Bindings& bindings = {});

/// An input of the type of the tensor; with `known` false every extent but 1 is unknown.
Variable input_like(const Tensor& value, bool known = true);

/// Equal values in other layouts: with gaps, with negative strides, with the first axis dense.
Tensor with_gaps(const Tensor& t);
Tensor with_negative_strides(const Tensor& t);
Tensor column_major(const Tensor& t);

/// Re<a, b>, in double precision.
double real_inner(const Tensor& a, const Tensor& b);
/// Largest |a - b|, relative to the largest |b| (or absolute, where that is below 1).
double distance(const Tensor& a, const Tensor& b);
/// Bound for the rounding of some hundred terms of this dtype.
double tolerance(DType dtype);

}  // namespace palimpsest::testing
