// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "palimpsest/ops/loop/loop_op.hpp"
#include "palimpsest/plan/plan.hpp"

namespace palimpsest {

class Collective;

/// Plan of the body of a loop: made once for all steps, in memory that the step around it gets as
/// scratch.
///
/// A loop with operands on an accelerator runs there if each step of its body with such operands
/// has kernels: the host enqueues step after step, computes numbers of its own, which go with the
/// launches, and waits for `until` alone. Any other loop runs as a whole on the host.
///
/// A state with a history is computed in the rows of the history. Any other state has rows + 1
/// places that take turns; the place of the last step is the output, if there is one and it is
/// dense. A state of one row has one place in two cases: its step works in place, or the step makes
/// the new value elsewhere and copies it when nothing else reads the old one.
struct LoopPlan {
  struct StatePlaces {
    Device device;
    index_t row_bytes = 0;
    index_t count = 0;      // of places
    index_t distance = 0;   // between places in scratch
    index_t offset = 0;     // of the first place in scratch
    bool is_apart = false;  // the output lies as an init did that is overwritten, and is not dense
  };
  /// A result of the body, which goes to a dense place that differs from step to step.
  struct Result {
    Device device;  // of its place
    Layout place;   // its type; byte offset 0
    index_t bytes = 0;
    bool is_direct = false;  // computed there; else it is copied
    bool stays = false;      // computed in the old value's place, and that is where it belongs
    index_t offset = -1;     // of its own buffer in scratch, if it is not computed there; -1: none
  };
  /// Sizes of pieces of scratch.
  struct ScratchSizes {
    index_t on_device = 0;
    index_t on_host = 0;  // beside it, of a loop on an accelerator
  };

  Apply node;  // keeps the loop and its body alive
  const ops::Loop* op = nullptr;
  std::shared_ptr<const FunctionGraph> graph;
  Plan body;
  Device device;                   // of the body: an accelerator, or the host
  std::vector<Device> inputs;      // where they lie: constants of an accelerator are on the host
  std::optional<index_t> n_steps;  // nothing: an input tells
  std::vector<StatePlaces> states;
  std::vector<Result> results;
  index_t until_offset = 0;  // of the place of `until` in scratch
  ScratchSizes scratch_bytes;

  /// The piece of scratch for values of a device.
  index_t& scratch_for(Device of) {
    return of == device ? scratch_bytes.on_device : scratch_bytes.on_host;
  }
};

/// `devices`: where each input lies; empty: all operands are to be reached by the host.
std::shared_ptr<const LoopPlan> make_loop_plan(const Apply& loop, std::span<const Layout> inputs,
                                               std::vector<Device> devices = {});

/// The plans of the loops of one graph, each made once for the same layouts.
class LoopPlans {
 public:
  std::shared_ptr<const LoopPlan> find_or_make(const Apply& loop, std::span<const Layout> inputs,
                                               const std::vector<Device>& devices);

 private:
  struct Entry {
    std::vector<Layout> inputs;
    std::vector<Device> devices;
    std::shared_ptr<const LoopPlan> plan;
  };
  std::unordered_map<const ApplyNode*, std::vector<Entry>> entries_;
};

/// The number of measured steps of a plan: its own, then those in the bodies of its loops.
std::size_t measured_steps(const Plan& plan);

/// The first op that several processes run together, those in the bodies of loops included; null:
/// none.
const Collective* first_collective(const Plan& plan);
const Collective* first_collective(const PlannedStep& step);

}  // namespace palimpsest
