// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "palimpsest/compile/plan.hpp"
#include "palimpsest/ops/loop_op.hpp"

namespace palimpsest {

class Frame;

/// How the body of a loop runs: planned once for all steps, in memory that the step around it gets
/// as scratch.
///
/// A state with a history is computed in the rows of that. Any other has rows + 1 places that take
/// turns; the last step's turn is the output, where there is one and it is dense. A state of one row
/// has one place where its step works in place, or makes the new value elsewhere and nothing else
/// looks at the old one when that is copied to its place.
struct LoopPlan {
  struct StatePlaces {
    index_t row_bytes = 0;
    index_t count = 0;      // of places
    index_t distance = 0;   // between places in scratch
    index_t offset = 0;     // of the first place in scratch
    bool is_apart = false;  // the output lies as an init did that is overwritten, and is not dense
  };
  /// A result of the body, which goes to a dense place that differs from step to step.
  struct Result {
    Layout place;  // its type; byte offset 0
    index_t bytes = 0;
    bool is_direct = false;  // computed there; else it is copied
    bool stays = false;      // computed in the old value's place, and that is where it belongs
    index_t offset = -1;     // of its own buffer in scratch, if it is not computed there; -1: none
  };

  Apply node;  // keeps the loop and its body alive
  const ops::Loop* op = nullptr;
  std::shared_ptr<const FunctionGraph> graph;
  Plan body;
  std::optional<index_t> n_steps;  // nothing: an input tells
  std::vector<StatePlaces> states;
  std::vector<Result> results;
  index_t until_offset = 0;  // of the place of `until` in scratch
  index_t scratch_bytes = 0;
};

std::shared_ptr<const LoopPlan> make_loop_plan(const Apply& loop, std::span<const Layout> inputs);

/// What one run of a loop needs besides its scratch.
class LoopFrame {
 public:
  LoopFrame(const LoopPlan& plan, Device device);
  ~LoopFrame();
  void run(const RunContext& context);
  /// From the next run on adds the seconds of the body's steps; null: no more. As many as
  /// measured_steps(plan.body).
  void measure_into(double* seconds) { seconds_ = seconds; }

 private:
  void bind_fixed(const RunContext& context);
  void set_inits(const RunContext& context);
  void bind_step(const RunContext& context, index_t t);
  void copy_results(const RunContext& context, index_t t);
  static void clear_rows(const MutableView& array, index_t n);
  void finish(const RunContext& context, index_t n_done);
  std::byte* place(const RunContext& context, std::size_t state, index_t t) const;
  std::byte* place_of_result(const RunContext& context, std::size_t result, index_t t) const;
  std::byte* scratch(const RunContext& context, index_t offset) const;

  const LoopPlan& plan_;
  std::unique_ptr<Frame> frame_;
  std::vector<int> input_buffers_;   // of the body's plan, per input of the body
  std::vector<int> result_buffers_;  // per result: the buffer that is its own, or -1
  index_t n_ = 0;
  double* seconds_ = nullptr;
};

/// How many steps of a plan are measured: its own, and then those in the bodies of its loops.
std::size_t measured_steps(const Plan& plan);

}  // namespace palimpsest
