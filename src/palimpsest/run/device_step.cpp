// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/run/device_step.hpp"

#include <complex>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include "palimpsest/base/config.hpp"
#include "palimpsest/base/log.hpp"
#include "palimpsest/device/devices.hpp"
#include "palimpsest/device/kernel_cache.hpp"
#include "palimpsest/kernels/arrays/index.hpp"
#include "palimpsest/lower/lower.hpp"
#include "palimpsest/memory/device_copy.hpp"
#include "palimpsest/ops/control/device_op.hpp"
#include "palimpsest/plan/notes.hpp"
#include "palimpsest/plan/position.hpp"

namespace palimpsest {
namespace {

Device device_of_slot(const Plan& plan, int slot) {
  return plan.buffers[at(plan.slots[at(slot)].buffer)].device;
}

// ToDevice between two devices of which one at least is an accelerator.
class Transfer final : public StepExecutor {
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
class OnHost final : public StepExecutor {
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

// The part of a number that lies on the host, in the form of an argument.
KernelArgument number_at(const ConstView& view, bool imaginary) {
  return visit_dtype(view.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    T value;
    std::memcpy(&value, view.data, sizeof value);
    if constexpr (std::is_floating_point_v<T>) {
      return KernelArgument::of(static_cast<double>(value));
    } else if constexpr (std::is_integral_v<T>) {
      return KernelArgument::of(static_cast<std::int64_t>(value));
    } else {
      return KernelArgument::of(static_cast<double>(imaginary ? value.imag() : value.real()));
    }
  });
}

// Enqueues the kernels of a step.
class Launches final : public StepExecutor {
 public:
  Launches(const Plan& plan, const PlannedStep& step)
      : plan_(plan),
        planned_(step),
        step_(step.on_device),
        device_(step.node.output(0).type().device),
        name_(std::make_shared<const std::string>(
            name_of_step(plan, static_cast<std::size_t>(&step - plan.steps.data())))) {
    place_constants(plan, step);
    for (const PlannedLaunch& launch : step_->launches) {
      programs_.push_back(shared_kernels(backend_of(device_), *launch.text));
    }
  }

  void run(const Op&, std::span<const ConstView> inputs, std::span<const MutableView> outputs,
           std::span<std::byte> scratch,
           const std::function<void(RunContext&)>& compute) const override {
    if (step_->n_checking > 0) {
      std::byte* const word = scratch.data() + step_->check_word;
      std::int32_t found = 0;
      fill_bytes_on(device_, word, std::byte{0}, sizeof found);
      launch(0, step_->n_checking, inputs, outputs, scratch);
      copy_bytes_on(device_, word, {}, &found, sizeof found);
      if (found != 0) throw_as_host(inputs, compute);
    }
    for (const DeviceStep::IndexCheck& wanted : step_->checks) {
      check_index_range(inputs[at(wanted.input)], wanted.size, wanted.who);
    }
    launch(step_->n_checking, programs_.size(), inputs, outputs, scratch);
  }

  bool can_be_recorded() const override { return step_->n_checking == 0 && step_->checks.empty(); }
  void add_launches(std::span<const ConstView> inputs, std::span<const MutableView> outputs,
                    std::span<std::byte> scratch,
                    std::vector<RecordedLaunch>& launches) const override {
    for (std::size_t l = 0; l < programs_.size(); ++l) {
      RecordedLaunch& made = launches.emplace_back();
      made.launch = launch_without_arguments(l);
      set_arguments(l, inputs, outputs, scratch, made.arguments);
    }
  }

 private:
  void launch(std::size_t first, std::size_t last, std::span<const ConstView> inputs,
              std::span<const MutableView> outputs, std::span<std::byte> scratch) const {
    std::vector<KernelArgument> arguments;
    for (std::size_t l = first; l < last; ++l) {
      arguments.clear();
      set_arguments(l, inputs, outputs, scratch, arguments);
      Launch launch = launch_without_arguments(l);
      launch.arguments = arguments;
      backend_of(device_).launch(launch);
    }
  }
  Launch launch_without_arguments(std::size_t l) const {
    const PlannedLaunch& launch = step_->launches[l];
    return {programs_[l].get(), 0, launch.groups, launch.items, {}, name_};
  }
  void set_arguments(std::size_t l, std::span<const ConstView> inputs,
                     std::span<const MutableView> outputs, std::span<std::byte> scratch,
                     std::vector<KernelArgument>& arguments) const {
    for (const LaunchArgument& a : step_->launches[l].arguments) {
      arguments.push_back(value_of(a, inputs, outputs, scratch));
    }
  }

  // The host runs the op, and has the error to throw.
  [[noreturn]] void throw_as_host(std::span<const ConstView> inputs,
                                  const std::function<void(RunContext&)>& compute) const {
    std::vector<Tensor> here;
    std::vector<ConstView> views(inputs.begin(), inputs.end());
    std::vector<MutableView> results;
    std::vector<Layout> layouts;
    here.reserve(views.size() + planned_.outputs.size());
    for (ConstView& view : views) {
      layouts.push_back({view.dtype, Extents(view.extents), Strides(view.strides), 0});
      if (!backend_of(device_).owns(view.data)) continue;
      here.push_back(Tensor::empty(Extents(view.extents), view.dtype));
      copy_elements_on(device_, view, {}, here.back().mutable_view());
      view = here.back().view_of();
      layouts.back().strides = here.back().strides();
    }
    for (const int slot : planned_.outputs) {
      const Layout& layout = plan_.slots[at(slot)].layout;
      here.push_back(Tensor::empty(layout.extents, layout.dtype));
      results.push_back(here.back().mutable_view());
    }
    std::vector<std::byte> scratch(planned_.node.op().scratch_bytes(planned_.node, layouts));
    RunContext context(views, results, scratch);
    try {
      compute(context);
    } catch (Error& error) {
      error.add_note("found on " + device_.str());
      throw;
    }
    throw InternalError("[" + planned_.node.op().name() + "] " + device_.str() +
                        " found a wrong index, the host none");
  }

  void place_constants(const Plan& plan, const PlannedStep& step) {
    if (step_->constant_bytes == 0) return;
    constants_ = Storage::allocate(static_cast<std::size_t>(step_->constant_bytes), device_,
                                   "constants of " + step.node.op().name());
    first_constant_ = constants_.overwrite_data();
    for (const DeviceStep::PlacedConstant& placed : step_->constants) {
      const Slot& slot = plan.slots[at(step.inputs[at(placed.input)])];
      const Tensor value = plan.constants[at(plan.buffers[at(slot.buffer)].index)].constant_value();
      const Layout& layout = slot.layout;
      const auto* const first = static_cast<const std::byte*>(value.raw_data());
      const Strides dense = contiguous_strides(layout.extents);
      copy_elements_on(
          {}, {first + layout.byte_offset, layout.dtype, layout.extents, layout.strides}, device_,
          {first_constant_ + placed.offset, layout.dtype, layout.extents, dense});
    }
    for (const DeviceStep::Table& table : step_->tables) {
      copy_bytes_on({}, table.numbers.data(), device_, first_constant_ + table.offset,
                    table.numbers.size() * sizeof(index_t));
    }
  }

  KernelArgument value_of(const LaunchArgument& a, std::span<const ConstView> inputs,
                          std::span<const MutableView> outputs,
                          std::span<std::byte> scratch) const {
    const auto operand = static_cast<std::size_t>(a.operand);
    const auto address = [&](const void* first) {
      return KernelArgument::of(static_cast<const std::byte*>(first) + a.byte_offset);
    };
    switch (a.kind) {
      case LaunchArgument::Kind::input:
        return address(inputs[operand].data);
      case LaunchArgument::Kind::output:
        return address(outputs[operand].data);
      case LaunchArgument::Kind::scratch:
        return address(scratch.data());
      case LaunchArgument::Kind::constant:
        return address(first_constant_);
      case LaunchArgument::Kind::integer:
        return KernelArgument::of(a.integer);
      case LaunchArgument::Kind::real:
        return KernelArgument::of(a.real);
      case LaunchArgument::Kind::number:
      case LaunchArgument::Kind::imaginary:
        return number_at(inputs[operand], a.kind == LaunchArgument::Kind::imaginary);
    }
    throw InternalError("[launch] not a kind of argument");
  }

  const Plan& plan_;
  const PlannedStep& planned_;
  std::shared_ptr<const DeviceStep> step_;
  Device device_;
  std::shared_ptr<const std::string> name_;  // of the step
  std::vector<KernelProgram> programs_;
  Storage constants_;
  std::byte* first_constant_ = nullptr;
};

}  // namespace

void log_transfer(const std::string& what, const std::string& shape, std::size_t bytes, Device from,
                  Device to) {
  log(LogLevel::warn, "[" + what + "] " + shape + ", " + std::to_string(bytes) + " bytes, from " +
                          from.str() + " to " + to.str());
}

std::shared_ptr<const StepExecutor> step_executor(const Plan& plan, const PlannedStep& step) {
  if (step.on_host) return std::make_shared<OnHost>(plan, step);
  if (step.on_device) return std::make_shared<Launches>(plan, step);
  if (dynamic_cast<const ops::ToDevice*>(&step.node.op()) == nullptr) return nullptr;
  const Device from = device_of_slot(plan, step.inputs[0]);
  const Device to = device_of_slot(plan, step.outputs[0]);
  if (from.is_host() && to.is_host()) return nullptr;
  return std::make_shared<Transfer>(from, to);
}

}  // namespace palimpsest
