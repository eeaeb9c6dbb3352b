// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "contract/applied.hpp"
#include "palimpsest/lower/lower.hpp"

namespace palimpsest::testing {

inline DeviceFacts some_device(bool has_float64 = true) {
  DeviceFacts facts;
  facts.name = "some device";
  facts.has_float64 = has_float64;
  return facts;
}

// The launches of a sample, each output dense in a buffer of its own.
inline std::optional<DeviceStep> lowered(const Applied& a, const DeviceFacts& facts) {
  std::vector<Layout> inputs, outputs;
  LowerRequest request{a.node, {}, {}, {}, {}, {}, facts};
  for (std::size_t i = 0; i < a.values.size(); ++i) {
    const Tensor& t = a.values[i];
    inputs.push_back({t.dtype(), t.shape(), t.strides(), 0});
    request.input_buffers.push_back(static_cast<int>(i));
    request.on_host.push_back(a.node.input(i).is_constant());
  }
  const std::vector<Extents> extents = result_extents(a.node, a.values);
  for (std::size_t k = 0; k < extents.size(); ++k) {
    outputs.push_back(Layout::dense(a.node.output(k).dtype(), extents[k]));
    request.output_buffers.push_back(100 + static_cast<int>(k));
  }
  request.inputs = inputs;
  request.outputs = outputs;
  return lower_step(request);
}

}  // namespace palimpsest::testing
