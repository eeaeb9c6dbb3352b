// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/compile/streaming.hpp"

#include <algorithm>

#include "palimpsest/memory/file_pages.hpp"

namespace palimpsest {

index_t streamed_bytes(const Function& f, const Plan& plan, bool arguments) {
  const auto containers = f.shared_variables();
  std::vector<bool> is_mapped;
  for (const auto& container : containers) {
    const Tensor value = container->value();
    is_mapped.push_back(value.numel() > 0 && is_file_mapped(value.raw_data(), 1));
  }
  index_t most = 0;
  for (const PlannedStep& step : plan.steps) {
    index_t bytes = 0;
    for (const int slot : step.inputs) {
      const Slot& read = plan.slots[static_cast<std::size_t>(slot)];
      const PlannedBuffer& buffer = plan.buffers[static_cast<std::size_t>(read.buffer)];
      const bool counts = buffer.kind == BufferKind::argument
                              ? arguments
                              : buffer.kind == BufferKind::container &&
                                    is_mapped[static_cast<std::size_t>(buffer.index)];
      if (!counts) continue;
      const ReachedRange range = reached_range(read.layout.extents, read.layout.strides);
      bytes += (range.high - range.low) * static_cast<index_t>(item_size(read.layout.dtype));
    }
    most = std::max(most, bytes);
  }
  return most;
}

}  // namespace palimpsest
