// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "palimpsest/graph/variable.hpp"
#include "support/refusal.hpp"

// Applications of every op on small inputs, for the contract tests.
namespace palimpsest::ops {

/// An application of an op.
struct OpSample {
  std::string name;
  std::vector<Tensor> inputs;
  /// Returns the output of the sample's op, applied to these inputs.
  std::function<Variable(std::span<const Variable>)> build;
  /// The value of the output by a plain loop; null: values are tested in tests/ops/.
  std::function<Tensor(std::span<const Tensor>)> expected = {};
};

/// The name of an op or of a family of ops, and its samples.
struct OpEntry {
  std::string_view name;
  std::vector<OpSample> (*samples)();
};

/// Every op of the library, each once: the build lists all `std::vector<OpSample> <name>_samples()`
/// of this folder.
std::vector<OpEntry> op_samples();
/// All `std::vector<testing::Refusal> <name>_refusals()` of this folder.
std::vector<testing::Refusal> op_refusals();

/// Numbers between 0.2 and 0.9 (both parts, if complex), where every scalar function is smooth; for
/// integers 1, 2, 3, ... modulo 7, minus 2; for bools every third is true.
Tensor sample_values(Extents shape, DType dtype, std::uint64_t seed = 1);

using Vars = std::span<const Variable>;

/// The sample of an op of one input.
OpSample unary(std::string name, Tensor input, std::function<Variable(const Variable&)> build);

}  // namespace palimpsest::ops
