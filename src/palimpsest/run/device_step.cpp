// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/run/device_step.hpp"

#include <string>

#include "palimpsest/base/config.hpp"
#include "palimpsest/base/log.hpp"
#include "palimpsest/memory/device_copy.hpp"
#include "palimpsest/ops/control/device_op.hpp"
#include "palimpsest/plan/position.hpp"

namespace palimpsest {
namespace {

Device device_of_slot(const Plan& plan, int slot) {
  return plan.buffers[at(plan.slots[at(slot)].buffer)].device;
}

void log_transfer(const std::string& what, const std::string& shape, std::size_t bytes, Device from,
                  Device to) {
  log(LogLevel::warn, "[" + what + "] " + shape + ", " + std::to_string(bytes) + " bytes, from " +
                          from.str() + " to " + to.str());
}

// ToDevice between two devices of which one at least is an accelerator.
class Transfer final : public DeviceStep {
 public:
  Transfer(Device from, Device to) : from_(from), to_(to) {}

  void run(const Op& op, std::span<const ConstView> inputs, std::span<const MutableView> outputs,
           std::span<std::byte>, const std::function<void(RunContext&)>&) const override {
    const ConstView& x = inputs[0];
    if (config().log_device_transfers) {
      log_transfer(op.name(), std::string(name_of(x.dtype)) + " " + to_string(x.extents),
                   static_cast<std::size_t>(byte_count(x.extents, x.dtype)), from_, to_);
    }
    copy_elements_on(from_, x, to_, outputs[0]);
  }

 private:
  Device from_, to_;
};

// An op that runs on the host: its operands are downloaded, its results uploaded.
class OnHost final : public DeviceStep {
 public:
  OnHost(const Plan& plan, const PlannedStep& step) : step_(step.on_host) {
    for (const int slot : step.outputs) output_devices_.push_back(device_of_slot(plan, slot));
    for (const HostStep::Range& range : step_->ranges) {
      range_devices_.push_back(plan.buffers[at(range.buffer)].device);
      places_.push_back(place_in(plan, step, range));
    }
    for (std::size_t i = 0; i < step.inputs.size(); ++i) {
      input_offsets_.push_back(offset_of(plan, step.inputs[i], step_->inputs[i]));
    }
    for (std::size_t k = 0; k < step.outputs.size(); ++k) {
      output_offsets_.push_back(offset_of(plan, step.outputs[k], step_->outputs[k]));
    }
  }

  void run(const Op& op, std::span<const ConstView> inputs, std::span<const MutableView> outputs,
           std::span<std::byte> scratch,
           const std::function<void(RunContext&)>& compute) const override {
    const bool logs = config().log_device_transfers;
    for (std::size_t r = 0; r < step_->ranges.size(); ++r) {
      const HostStep::Range& range = step_->ranges[r];
      if (!range.is_read) continue;
      const auto bytes = static_cast<std::size_t>(range.last - range.first);
      copy_bytes_on(range_devices_[r], start_of(r, inputs, outputs), {},
                    scratch.data() + range.offset, bytes);
      if (logs) log_transfer(op.name() + " on the host", "inputs", bytes, range_devices_[r], {});
    }
    std::vector<ConstView> here(inputs.begin(), inputs.end());
    for (std::size_t i = 0; i < here.size(); ++i) {
      if (step_->inputs[i] >= 0) here[i].data = scratch.data() + input_offsets_[i];
    }
    std::vector<MutableView> results(outputs.begin(), outputs.end());
    for (std::size_t k = 0; k < results.size(); ++k) {
      if (step_->outputs[k] >= 0) results[k].data = scratch.data() + output_offsets_[k];
    }
    RunContext context(here, results,
                       scratch.first(static_cast<std::size_t>(step_->op_scratch_bytes)));
    compute(context);
    for (std::size_t k = 0; k < results.size(); ++k) {
      if (step_->outputs[k] < 0) continue;
      const MutableView& y = results[k];
      copy_elements_on({}, {y.data, y.dtype, y.extents, y.strides}, output_devices_[k], outputs[k]);
      if (!logs) continue;
      log_transfer(op.name() + " on the host", "result",
                   static_cast<std::size_t>(byte_count(y.extents, y.dtype)), {},
                   output_devices_[k]);
    }
  }

 private:
  // The first operand of a range, from which its address follows.
  struct Place {
    bool is_input = false;
    std::size_t operand = 0;
    index_t distance = 0;  // of the first element of the operand from the start of the range
  };

  Place place_in(const Plan& plan, const PlannedStep& step, const HostStep::Range& range) const {
    const auto r = static_cast<int>(&range - step_->ranges.data());
    for (std::size_t i = 0; i < step.inputs.size(); ++i) {
      if (step_->inputs[i] != r) continue;
      return {true, i, plan.slots[at(step.inputs[i])].layout.byte_offset - range.first};
    }
    for (std::size_t k = 0; k < step.outputs.size(); ++k) {
      if (step_->outputs[k] != r) continue;
      return {false, k, plan.slots[at(step.outputs[k])].layout.byte_offset - range.first};
    }
    return {};
  }
  const std::byte* start_of(std::size_t r, std::span<const ConstView> inputs,
                            std::span<const MutableView> outputs) const {
    const Place& place = places_[r];
    const void* const first =
        place.is_input ? inputs[place.operand].data : outputs[place.operand].data;
    return static_cast<const std::byte*>(first) - place.distance;
  }
  index_t offset_of(const Plan& plan, int slot, int range) const {
    if (range < 0) return 0;
    const HostStep::Range& found = step_->ranges[at(range)];
    return found.offset + plan.slots[at(slot)].layout.byte_offset - found.first;
  }

  std::shared_ptr<const HostStep> step_;
  std::vector<Device> output_devices_, range_devices_;
  std::vector<Place> places_;                            // of the ranges
  std::vector<index_t> input_offsets_, output_offsets_;  // of the first elements, in the scratch
};

}  // namespace

std::shared_ptr<const DeviceStep> device_step(const Plan& plan, const PlannedStep& step) {
  if (step.on_host) return std::make_shared<OnHost>(plan, step);
  if (dynamic_cast<const ops::ToDevice*>(&step.node.op()) == nullptr) return nullptr;
  const Device from = device_of_slot(plan, step.inputs[0]);
  const Device to = device_of_slot(plan, step.outputs[0]);
  if (from.is_host() && to.is_host()) return nullptr;
  return std::make_shared<Transfer>(from, to);
}

}  // namespace palimpsest
