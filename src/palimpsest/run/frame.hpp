// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <algorithm>
#include <cstddef>
#include <exception>
#include <memory>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "palimpsest/base/view.hpp"
#include "palimpsest/plan/plan.hpp"
#include "palimpsest/run/device_step.hpp"
#include "palimpsest/run/inspection.hpp"

namespace palimpsest {

class CallMeasurement;
class Collective;
class LoopFrame;
class Recorder;
class TaskGraph;

/// Memory of one call of a plan: the arena, the buffers to exchange with containers, and the views
/// for the kernels. Frames are pooled; two calls at once never share one.
///
/// Invariants
///  1. Views point into the shapes and strides of the plan, which outlives the frame.
///  2. Between calls a frame holds memory of a caller only if a borrowed result shows it.
class Frame {
 public:
  enum class Arena { own, given };
  /// Allocates update buffers, and the arena unless that is given.
  Frame(const Plan& plan, Device device, Arena arena = Arena::own);
  /// A frame with the arena of another frame, which is idle whenever this one runs.
  Frame(const Plan& plan, Device device, const Frame& other);
  ~Frame();
  Frame(const Frame&) = delete;
  Frame& operator=(const Frame&) = delete;

  /// The start of each buffer; the caller fills in those of arguments, containers and constants,
  /// whose layouts are those of the plan.
  std::span<std::byte*> bases() { return bases_; }
  /// Renews the addresses of the frame's own memory. A clone that a caller took of a borrowed
  /// result, or memory exported for writing, keeps the old bytes; the frame gets new memory.
  void refresh();
  /// True if the tensor may show bytes that a call with this frame writes.
  bool is_reached_by(const Tensor& t) const;
  /// Sets the start of a buffer whose memory others made. InternalError: it has fewer bytes than
  /// the buffer.
  void use_memory(std::size_t buffer, std::span<std::byte> memory);
  /// Sets the arena of a device, in a frame that was given none: 64-byte aligned. InternalError: it
  /// has fewer bytes than a buffer that lies there needs.
  void use_arena(std::span<std::byte> arena, Device device);
  /// true: pages of mapped files are released after the step that read them.
  void stream_files(bool value) { streams_files_ = value; }
  /// Points all views at the present bases.
  void bind();
  /// Runs all steps; lanes run side by side. An exception of an op gets a note about the step; one
  /// that is not an Error becomes an OpError. Of several errors the first one in the order of the
  /// graph is thrown: after an error the earlier steps of the graph still run.
  void run() const;
  /// Does as run(), and adds the seconds of each step.
  void run_measured(std::span<double> seconds) const;
  /// Does as run(), step after step, with a watch. The measurement (null: none) pauses while
  /// the watch works.
  void run_watched(CallWatch& watch, CallMeasurement* measurement) const;

  const Plan& plan() const { return plan_; }
  /// The device of the arguments.
  Device device() const { return device_; }
  /// The device of a buffer's values.
  Device device_of(const PlannedBuffer& buffer) const {
    return plan_.arenas.empty() ? device_ : buffer.device;
  }
  /// Bytes of all arenas.
  index_t arena_bytes() const;
  /// Could a frame of this plan use this frame's arena?
  bool has_arena_for(const Plan& plan, Device device) const;
  /// The arena that a buffer lies in.
  const Storage& arena_of(const PlannedBuffer& buffer) const { return arenas_[index_of(buffer)]; }
  Storage& update_storage(int update) { return updates_[static_cast<std::size_t>(update)]; }
  /// Bytes that the frame holds.
  index_t bytes() const;

  // -- members of a call, kept here to avoid allocations ------------------------------------------
  std::vector<Storage> output_storages;  // of the buffers that callers will own
  std::vector<Tensor> moved;             // results on another device
  /// The destination of a copied result or, counted from the end of the results, of an update.
  Tensor& copy(std::size_t i) { return in_use(copies_, i); }
  /// The same for values that are handed over.
  void deliver(std::size_t i, Tensor value) { in_use(delivered_, i) = std::move(value); }
  Tensor& delivered(std::size_t i) { return delivered_[i]; }
  std::span<const Tensor> all_delivered() const { return delivered_; }
  std::thread::id last_user;
  /// Memory of an inspection from one call to the next.
  std::shared_ptr<void> watch_data;
  /// Drops all of it but last_user.
  void forget_call() noexcept;

 private:
  struct Step {
    const Op* op;
    std::vector<ConstView> inputs;
    std::vector<MutableView> outputs;
    std::span<std::byte> scratch;
    int guard = -1;
    std::span<std::byte> host_scratch = {};  // of a loop on an accelerator
    std::shared_ptr<LoopFrame> loop = nullptr;
    std::shared_ptr<const StepExecutor> on_device = nullptr;  // of operands on an accelerator
    bool writes_user_memory = false;
    std::vector<std::pair<const void*, std::size_t>> file_bytes = {};  // that it reads

    void run() const;
  };
  struct Guard {
    const bool* condition = nullptr;
    Device device;
    bool when = true;
    int parent = -1;
  };

  /// An operand of a step: the buffer that holds it, and its offset from the buffer's start.
  struct Operand {
    int buffer;
    index_t offset;
  };

  Frame(const Plan& plan, Device device, Arena arena, const Storage* shared_arena);

  Tensor& in_use(std::vector<Tensor>& list, std::size_t i) {
    most_used_ = std::max(most_used_, i + 1);
    least_used_ = std::min(least_used_, i);
    return list[i];
  }
  void add_arena(index_t bytes, Device device);
  void replace_pinned_arenas();
  bool holds(int guard) const;
  void run_step(std::size_t step, double* seconds) const;
  void run_steps(std::span<double> seconds) const;
  std::unique_ptr<Recorder> recorder() const;
  /// True if all steps are enqueued as one recording.
  bool replay() const;
  void run_lanes(double* seconds) const;
  /// While an exception is handled: processes that wait for steps of this one end their calls too.
  void tell_other_processes() const noexcept;
  void find_file_bytes();
  std::size_t index_of(const PlannedBuffer& buffer) const;

  struct Failure {
    std::exception_ptr error = nullptr;
    std::size_t step = 0;
  };
  /// Runs the steps after a failed one that come before it in the graph, then rethrows.
  [[noreturn]] void finish_after(Failure failure, std::span<double> seconds) const;
  [[noreturn]] void rethrow(Failure failure) const;
  [[noreturn]] void rethrow_from(std::size_t step) const;
  /// Arrays of others may still show memory of a step that failed.
  void share_lent_memory() const noexcept;

  const Plan& plan_;
  Device device_;
  std::vector<Storage> arenas_;  // claimed: one, or as many as the plan has
  std::vector<Storage> updates_;
  std::vector<Tensor> copies_, delivered_;      // results, then updates
  std::size_t least_used_ = 0, most_used_ = 0;  // of these: others are empty
  std::vector<std::byte*> bases_;
  std::vector<std::size_t> arena_buffers_, update_buffers_;
  std::vector<Operand> operands_;  // of all steps: inputs, then outputs
  std::vector<Step> steps_;
  std::vector<Guard> guards_;
  std::unique_ptr<TaskGraph> tasks_;    // of several lanes
  std::vector<int> ranks_;              // of steps in several lanes: the order of their errors
  std::unique_ptr<Recorder> recorder_;  // of a plan of launches on one accelerator
  bool streams_files_ = false;
  const Collective* collective_ = nullptr;  // the first step that is one; null in bodies of loops
};

}  // namespace palimpsest
