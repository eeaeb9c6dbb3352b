// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/inspect/debug/monitor_mode.hpp"

#include "palimpsest/inspect/debug/scan_values.hpp"
#include "palimpsest/run/frame.hpp"
#include "palimpsest/run/inspection.hpp"
#include "palimpsest/run/program.hpp"

namespace palimpsest {
namespace {

// A tensor that shows the view's memory without owning it.
Tensor shown(const ConstView& view, Device device) {
  index_t lowest = 0, highest = 0;
  for (std::size_t k = 0; k < view.rank(); ++k) {
    if (view.extents[k] == 0) {
      return Tensor::empty(Extents(view.extents.begin(), view.extents.end()), view.dtype, device);
    }
    const index_t reach = view.strides[k] * (view.extents[k] - 1);
    (reach < 0 ? lowest : highest) += reach;
  }
  const auto item = static_cast<index_t>(item_size(view.dtype));
  auto* const first = static_cast<std::byte*>(const_cast<void*>(view.data)) + lowest * item;
  Storage storage = Storage::from_foreign(
      first, static_cast<std::size_t>((highest - lowest + 1) * item), device, false);
  return Tensor(std::move(storage), view.dtype, Extents(view.extents.begin(), view.extents.end()),
                Strides(view.strides.begin(), view.strides.end()), -lowest);
}

StepView shown(const StepAccess& access, Device device) {
  std::vector<Tensor> inputs, outputs;
  for (const ConstView& v : access.inputs) inputs.push_back(shown(v, device));
  for (const MutableView& v : access.outputs) outputs.push_back(shown(v, device));
  return {std::move(inputs), std::move(outputs)};
}

class MonitorWatch final : public CallWatch {
 public:
  MonitorWatch(const MonitorOptions& options, const CallAccess& call)
      : options_(options), graph_(call.program.graph), device_(call.frame.device()) {}
  void before_step(const StepAccess& access) override { call(options_.pre, access); }
  void after_step(const StepAccess& access) override { call(options_.post, access); }

 private:
  void call(const StepCallback& callback, const StepAccess& access) const {
    if (!callback) return;
    callback(graph_, static_cast<int>(access.step), access.node, shown(access, device_));
  }

  const MonitorOptions& options_;
  const FunctionGraph& graph_;
  Device device_;
};

class MonitorInspection final : public Inspection {
 public:
  explicit MonitorInspection(MonitorOptions options) : options_(std::move(options)) {}
  std::string_view name() const override { return "MonitorMode"; }
  std::unique_ptr<CallWatch> watch(const CallAccess& call) const override {
    return std::make_unique<MonitorWatch>(options_, call);
  }

 private:
  MonitorOptions options_;
};

}  // namespace

Mode MonitorMode(MonitorOptions options) {
  const Mode base = options.base;
  return {base, std::make_shared<const MonitorInspection>(std::move(options))};
}

void detect_nan(const FunctionGraph&, int step, const Apply& node, const StepView& view) {
  for (std::size_t k = 0; k < view.output_count(); ++k) {
    const NumberScan scan =
        scan_numbers(view.output(k).view_of(), {.nan = true, .infinite = false});
    if (!scan) continue;
    throw AssertionError("[detect_nan] NaN in output " + std::to_string(k) + " of " +
                         node.op().name() + " (step " + std::to_string(step) + "): got " +
                         std::to_string(scan.bad) + " of " + std::to_string(scan.elements) +
                         " elements, the first at " + to_string(scan.index));
  }
}

}  // namespace palimpsest
