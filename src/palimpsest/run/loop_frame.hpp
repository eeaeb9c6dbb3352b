// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "palimpsest/plan/loop_plan.hpp"

namespace palimpsest {

class Frame;

/// Memory of one run of a loop besides its scratch.
class LoopFrame {
 public:
  LoopFrame(const LoopPlan& plan, Device device);
  ~LoopFrame();
  /// `host_scratch`: the scratch on the host of a loop on an accelerator.
  void run(const RunContext& context, std::span<std::byte> host_scratch = {});
  /// From the next run on adds the seconds of the body's steps; null: no more. As many as
  /// measured_steps(plan.body).
  void measure_into(double* seconds) { seconds_ = seconds; }

 private:
  void bind_fixed(const RunContext& context);
  void set_inits(const RunContext& context);
  void bind_step(const RunContext& context, index_t t);
  void copy_results(const RunContext& context, index_t t);
  index_t count(const RunContext& context) const;
  bool has_ended(const RunContext& context) const;
  void finish(const RunContext& context, index_t n_done);
  std::byte* place(const RunContext& context, std::size_t state, index_t t) const;
  std::byte* place_of_result(const RunContext& context, std::size_t result, index_t t) const;
  std::byte* scratch(const RunContext& context, Device device, index_t offset) const;
  Device device_of(const Slot& slot) const;

  const LoopPlan& plan_;
  std::unique_ptr<Frame> frame_;
  std::vector<int> input_buffers_;   // of the body's plan, per input of the body
  std::vector<int> result_buffers_;  // per result: the buffer that is its own, or -1
  std::span<std::byte> host_scratch_;
  index_t n_ = 0;
  double* seconds_ = nullptr;
};

}  // namespace palimpsest
