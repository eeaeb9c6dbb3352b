// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/compile/frame.hpp"

#include <algorithm>

namespace palimpsest {
namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }

}  // namespace

Frame::Frame(const Plan& plan, Device device)
    : plan_(plan), device_(device), bases_(plan.buffers.size(), nullptr) {
  const auto is_arena = [](const PlannedBuffer& b) { return b.kind == BufferKind::arena; };
  if (std::any_of(plan.buffers.begin(), plan.buffers.end(), is_arena)) {
    arena_ = Storage::allocate(static_cast<std::size_t>(plan.arena_bytes), device, "arena");
  }
  updates_.resize(plan.updates.size());
  output_storages.resize(plan.outputs.size());
  new_values.resize(plan.updates.size());
  compact.resize(plan.outputs.size() + plan.updates.size());
  const auto n_arguments =
      std::count_if(plan.buffers.begin(), plan.buffers.end(),
                    [](const PlannedBuffer& b) { return b.kind == BufferKind::argument; });
  arguments.resize(static_cast<std::size_t>(n_arguments));
  for (const PlannedStep& planned : plan.steps) {
    Step step{&planned.node.op(), {}, {}, {}};
    for (int slot : planned.inputs) {
      const Layout& layout = plan.slots[at(slot)].layout;
      step.inputs.push_back({nullptr, layout.dtype, layout.extents, layout.strides});
    }
    for (int slot : planned.outputs) {
      const Layout& layout = plan.slots[at(slot)].layout;
      step.outputs.push_back({nullptr, layout.dtype, layout.extents, layout.strides});
    }
    steps_.push_back(std::move(step));
  }
  refresh();
}

void Frame::refresh() {
  std::byte* arena = arena_.defined() ? arena_.overwrite_data() : nullptr;
  for (std::size_t b = 0; b < plan_.buffers.size(); ++b) {
    const PlannedBuffer& buffer = plan_.buffers[b];
    if (buffer.kind == BufferKind::arena) {
      bases_[b] = arena ? arena + buffer.offset : nullptr;
    } else if (buffer.kind == BufferKind::update) {
      Storage& storage = updates_[at(buffer.index)];
      if (!storage.defined()) {
        storage = Storage::allocate(static_cast<std::size_t>(buffer.bytes), device_, "update");
      }
      bases_[b] = storage.overwrite_data();
    }
  }
}

void Frame::bind() {
  const auto address = [&](int slot) {
    const Slot& s = plan_.slots[at(slot)];
    std::byte* base = bases_[at(s.buffer)];
    return base ? base + s.layout.byte_offset : nullptr;
  };
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    const PlannedStep& planned = plan_.steps[i];
    Step& step = steps_[i];
    for (std::size_t k = 0; k < step.inputs.size(); ++k) {
      step.inputs[k].data = address(planned.inputs[k]);
    }
    for (std::size_t k = 0; k < step.outputs.size(); ++k) {
      step.outputs[k].data = address(planned.outputs[k]);
    }
    if (planned.scratch >= 0) {
      const PlannedBuffer& buffer = plan_.buffers[at(planned.scratch)];
      step.scratch = {bases_[at(planned.scratch)], static_cast<std::size_t>(buffer.bytes)};
    }
  }
}

void Frame::run() const {
  for (const Step& step : steps_) {
    RunContext context(step.inputs, step.outputs, step.scratch);
    step.op->run(context);
  }
}

index_t Frame::bytes() const {
  std::size_t total = arena_.defined() ? arena_.nbytes() : 0;
  for (const Storage& s : updates_) total += s.defined() ? s.nbytes() : 0;
  return static_cast<index_t>(total);
}

}  // namespace palimpsest
