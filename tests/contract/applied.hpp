// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "ops/op_runner.hpp"
#include "samples/op_samples.hpp"

namespace palimpsest::testing {

// A sample applied to its inputs.
struct Applied {
  std::string name;
  std::vector<Variable> variables;
  Apply node;
  std::vector<Tensor> values;  // of the node's inputs
};

inline Applied applied(const ops::OpEntry& entry, const ops::OpSample& sample, bool known = true) {
  Applied result;
  result.name = std::string(entry.name) + ": " + sample.name;
  for (const Tensor& t : sample.inputs) {
    result.variables.push_back(input_like(t, known));
  }
  result.node = sample.build(result.variables).owner();
  for (const Variable& v : result.node.inputs()) {
    if (v.is_constant()) {
      result.values.push_back(v.constant_value());
      continue;
    }
    const auto at = std::find(result.variables.begin(), result.variables.end(), v);
    if (at == result.variables.end()) {
      ADD_FAILURE() << result.name << ": the sample is of another op";
      break;
    }
    result.values.push_back(sample.inputs[static_cast<std::size_t>(at - result.variables.begin())]);
  }
  return result;
}

template <class F>
void for_each_sample(F&& law) {
  for (const ops::OpEntry& entry : ops::op_samples()) {
    for (const ops::OpSample& sample : entry.samples()) {
      SCOPED_TRACE(std::string(entry.name) + ": " + sample.name);
      law(applied(entry, sample));
    }
  }
}

}  // namespace palimpsest::testing
