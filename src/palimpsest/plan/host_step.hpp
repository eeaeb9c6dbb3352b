// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <vector>

#include "palimpsest/plan/plan.hpp"

namespace palimpsest {

/// Copies for a step with operands on an accelerator, which runs on the host. Ranges of memory are
/// downloaded to a piece of the step's scratch, which is on the host, the op runs there, and the
/// elements of its outputs are uploaded.
///
/// Operands whose ranges overlap share one copy, so that views and in-place results meet there as
/// they do on the device.
struct HostStep {
  /// Bytes [first, last) of a buffer and their copy.
  struct Range {
    int buffer = 0;
    index_t first = 0, last = 0;
    index_t offset = 0;    // of the copy in the scratch of the step
    bool is_read = false;  // an input lies in it: it is downloaded
  };
  static constexpr int kInPlace = -1;  // an operand that the host can reach where it lies

  std::vector<Range> ranges;
  std::vector<int> inputs, outputs;  // the range of each operand, or kInPlace
  index_t op_scratch_bytes = 0;      // at the start of the scratch
  index_t scratch_bytes = 0;         // with the copies
};

/// True if some operand of the step lies on an accelerator. Such a step runs as a HostStep, unless
/// its op is ToDevice, which copies from device to device.
bool is_on_accelerator(const PlannedStep& step);

/// For a step whose slots are known. Constants lie on the host.
HostStep make_host_step(const Plan& plan, const PlannedStep& step, index_t op_scratch_bytes);

}  // namespace palimpsest
