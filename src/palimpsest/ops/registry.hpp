// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "palimpsest/graph/variable.hpp"

namespace palimpsest::ops {

/// One application of an op on small inputs, for the laws that every op obeys.
struct OpSample {
  std::string name;
  std::vector<Tensor> inputs;
  /// The result is an output of the op that the sample is about, on these inputs.
  std::function<Variable(std::span<const Variable>)> build;
};

/// One op: its registered name and its samples.
struct OpEntry {
  std::string_view name;
  std::vector<OpSample> (*samples)();
};

/// Every op of the library, each once. An op that is not here is held to no law.
std::span<const OpEntry> op_registry();

/// Registers all ops of the library for restore_op(); once, however often it is called.
void register_library_ops();

/// Numbers between 0.2 and 0.9 (both parts, if complex), where every scalar function is smooth; for
/// integers 1, 2, 3 and so on modulo 7, less 2; for bools every third is true.
Tensor sample_values(Extents shape, DType dtype, std::uint64_t seed = 1);

}  // namespace palimpsest::ops
