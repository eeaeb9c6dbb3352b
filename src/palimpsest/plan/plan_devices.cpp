// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/plan/plan_devices.hpp"

#include <algorithm>
#include <optional>
#include <span>
#include <vector>

#include "palimpsest/lower/lower.hpp"
#include "palimpsest/plan/loop_plan.hpp"
#include "palimpsest/plan/placement.hpp"
#include "palimpsest/plan/position.hpp"

namespace palimpsest {
namespace {

// The device of every buffer: that of its values. A buffer that no step and no input decides goes
// to the device of the first input.
std::vector<Device> devices_of(const Plan& plan, const PlanRequest& request) {
  const FunctionGraph& graph = *request.graph;
  Device usual;
  if (!graph.inputs().empty()) {
    usual = graph.inputs()[0].type().device;
  } else if (!graph.outputs().empty()) {
    usual = graph.outputs()[0].type().device;
  }
  std::vector<Device> devices(plan.buffers.size(), usual);
  for (std::size_t b = 0; b < plan.buffers.size(); ++b) {
    const PlannedBuffer& buffer = plan.buffers[b];
    const auto input = at(buffer.index);
    if (buffer.kind == BufferKind::argument) devices[b] = graph.inputs()[input].type().device;
    if (buffer.kind == BufferKind::container) {
      devices[b] = graph.inputs()[request.n_arguments + input].type().device;
    }
    if (buffer.kind == BufferKind::constant)
      devices[b] = plan.constants[input].node()->value.device();
  }
  for (const PlannedStep& step : plan.steps) {
    for (std::size_t k = 0; k < step.outputs.size(); ++k) {
      devices[at(plan.slots[at(step.outputs[k])].buffer)] = step.node.output(k).type().device;
    }
    if (step.scratch >= 0) {
      devices[at(step.scratch)] = step.on_host ? Device{}
                                  : step.loop  ? step.loop->device
                                               : step.node.output(0).type().device;
    }
    if (step.host_scratch >= 0) devices[at(step.host_scratch)] = {};
  }
  return devices;
}

// The device of the results: that of the arguments, else of the containers, if these agree.
std::optional<Device> result_device(const PlanRequest& request) {
  const std::vector<Variable>& inputs = request.graph->inputs();
  const std::size_t n = request.n_arguments;
  const std::span<const Variable> all(inputs);
  const auto deciding = n > 0 ? all.first(n) : all;
  if (deciding.empty()) return {};
  const Device device = deciding[0].type().device;
  const bool agree = std::all_of(deciding.begin(), deciding.end(),
                                 [&](const Variable& v) { return v.type().device == device; });
  return agree ? std::optional(device) : std::nullopt;
}

index_t delivered_bytes(const Plan& plan, const Delivery& delivery) {
  const Layout& layout = plan.slots[at(delivery.slot)].layout;
  return byte_count(layout.extents, layout.dtype);
}

// Constants that launches on a device read, on any without one; those in the bodies of loops
// included.
index_t placed_bytes(const Plan& plan, std::optional<Device> device = {}) {
  index_t bytes = 0;
  for (const PlannedStep& step : plan.steps) {
    const bool counts = !device || step.node.output(0).type().device == *device;
    if (step.on_device && counts) bytes += step.on_device->constant_bytes;
    if (step.loop) bytes += placed_bytes(step.loop->body, device);
  }
  return bytes;
}

bool is_ours(const PlannedBuffer& buffer) {
  return buffer.kind == BufferKind::arena || buffer.kind == BufferKind::output ||
         buffer.kind == BufferKind::update;
}

// Gives the arena buffers of one device offsets in an arena of its own.
PlannedArena place_on(Plan& plan, Device device, double effort) {
  std::vector<Interval> intervals;
  std::vector<PlannedBuffer*> placed;
  for (PlannedBuffer& buffer : plan.buffers) {
    if (buffer.kind != BufferKind::arena || buffer.device != device) continue;
    intervals.push_back({buffer.bytes, buffer.first_step, buffer.last_step, 0});
    placed.push_back(&buffer);
  }
  const ArenaSize placement = place(intervals, {.capacity = 0, .effort = effort});
  for (std::size_t i = 0; i < placed.size(); ++i) placed[i]->offset = intervals[i].offset;
  return {device, placement.bytes, placement.lower_bound};
}

}  // namespace

void separate_devices(Plan& plan, const PlanRequest& request) {
  const std::vector<Device> devices = devices_of(plan, request);
  const bool is_one =
      std::all_of(devices.begin(), devices.end(), [&](Device d) { return d == devices[0]; });
  if (is_one && (devices.empty() || devices[0].is_host())) return;
  plan.lanes = 1;  // lives below are those of one step after the other
  std::vector<Device> ours;
  for (std::size_t b = 0; b < plan.buffers.size(); ++b) {
    plan.buffers[b].device = devices[b];
    const bool is_new = std::find(ours.begin(), ours.end(), devices[b]) == ours.end();
    if (is_ours(plan.buffers[b]) && is_new) ours.push_back(devices[b]);
  }
  if (ours.empty()) ours.push_back(devices[0]);  // arenas show that devices differ
  std::sort(ours.begin(), ours.end());
  plan.arena_bytes = 0;
  plan.lower_bound_bytes = 0;
  for (const Device device : ours) {
    plan.arenas.push_back(place_on(plan, device, request.effort));
    plan.arena_bytes += plan.arenas.back().bytes;
    plan.lower_bound_bytes += plan.arenas.back().lower_bound_bytes;
  }
  const std::optional<Device> target = result_device(request);
  for (std::size_t i = 0; i < plan.outputs.size(); ++i) {
    Delivery& delivery = plan.outputs[i];
    const Device made_on = delivery.device;
    if (!target || made_on == *target || request.follows.empty() || !request.follows[i]) continue;
    delivery.moved_to = target;
    plan.output_bytes += delivered_bytes(plan, delivery);
  }
  plan.peak_bytes = plan.arena_bytes + plan.output_bytes + plan.update_bytes;
  plan.peak_bytes += placed_bytes(plan);
}

void refuse_float64(const Plan& plan, const PlannedStep& step) {
  for (std::size_t k = 0; k < step.outputs.size(); ++k) {
    const Layout& layout = plan.slots[at(step.outputs[k])].layout;
    const bool is_wide = is_inexact(layout.dtype) && real_of(layout.dtype) == DType::float64;
    if (!is_wide || element_count(layout.extents) <= 1) continue;
    throw DeviceError("[" + step.node.op().name() + "] " + step.node.output(k).type().device.str() +
                      " has no float64. Try " +
                      (is_complex(layout.dtype) ? "complex64" : "float32"));
  }
}

index_t Plan::peak_bytes_on(Device device) const {
  index_t bytes = 0;
  for (const PlannedArena& arena : arenas) bytes += arena.device == device ? arena.bytes : 0;
  for (const PlannedBuffer& buffer : buffers) {
    const bool counts = buffer.kind == BufferKind::output || buffer.kind == BufferKind::update;
    if (counts && buffer.device == device) bytes += buffer.bytes;
  }
  bytes += placed_bytes(*this, device);
  for (const auto* deliveries : {&outputs, &updates}) {
    for (const Delivery& delivery : *deliveries) {
      if (delivery.moved_to == device) bytes += delivered_bytes(*this, delivery);
      if (delivery.how != Handover::compact || delivery.device != device) continue;
      bytes += delivered_bytes(*this, delivery);
    }
  }
  return bytes;
}

}  // namespace palimpsest
