// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "palimpsest/base/api.hpp"
#include "palimpsest/graph/function_graph.hpp"

namespace PALIMPSEST_API palimpsest {

/// Owner of the memory of a buffer.
enum class BufferKind {
  arena,      // at an offset of the function's arena
  output,     // allocated for the caller at each call
  update,     // allocated once, then exchanged with a container's old value at each call
  argument,   // of the caller
  container,  // of a shared variable
  constant,
};
std::string_view name_of(BufferKind kind);

/// The memory of one alias tree: a value, its views and its in-place successors.
struct PlannedBuffer {
  BufferKind kind = BufferKind::arena;
  int index = 0;  // of the argument, container, constant, output or update
  index_t bytes = 0;
  index_t offset = 0;  // in the arena
  int first_step = 0;  // that writes it; -1: lives from before the first step
  int last_step = 0;   // that reads any of it
  std::string name;    // of the variable that it was made for
  Device device = {};  // in a plan on several devices
};

/// The arena of one device, in a plan on several.
struct PlannedArena {
  Device device;
  index_t bytes = 0;
  index_t lower_bound_bytes = 0;
};

/// A branch of an ifelse: its steps run only when the condition has this value.
struct PlannedGuard {
  int condition = 0;  // slot
  bool when = true;
  int parent = -1;  // the guard that must hold too, if any: it is looked at first
};

struct DeviceStep;
struct HostStep;
struct LoopPlan;

/// A step: an op on slots. Views are not steps: they only change a layout.
struct PlannedStep {
  Apply node;
  std::vector<int> inputs = {};                           // slots
  std::vector<int> outputs = {};                          // slots
  int scratch = -1;                                       // buffer, if any
  int host_scratch = -1;                                  // the same, of a loop on an accelerator
  int guard = -1;                                         // that must hold, if any
  std::shared_ptr<const LoopPlan> loop = nullptr;         // how the body of a loop runs
  std::shared_ptr<const DeviceStep> on_device = nullptr;  // of operands on an accelerator: launches
  std::shared_ptr<const HostStep> on_host = nullptr;      // or copies, where there is no kernel
  index_t new_bytes = 0;       // results and scratch with a place of their own
  index_t in_place_bytes = 0;  // results in memory that is overwritten
  index_t work = 1;            // elements of its biggest input or output
  bool is_repeated = false;    // repeats the computation of an earlier step
  int lane = 0;                // the steps of a lane run one after the other
  /// Earlier steps that must be done before it, in a plan of several lanes; steps that these wait
  /// for are left out. Among them are the last readers of the values that were in its memory
  /// before.
  std::vector<int> waits_for = {};
};

/// Position of one variable in a buffer.
struct Slot {
  int buffer = 0;
  Layout layout;  // byte offset counted from the start of the buffer's first element
  int part = -1;  // of the buffer; -1: it may be any of it
};

/// A piece of a buffer that has a value of its own until it is read as part of a joined one. An
/// access to one part touches no other part, unless that is within it or around it.
struct BufferPart {
  int buffer = 0;
  int parent = -1;  // the part that it is a part of
};

/// Way of an output or update out of the buffer where its value lies.
enum class Handover {
  own,      // the buffer's Storage itself, with no other owner
  keep,     // an update that has happened in the container's own memory
  clone,    // a lazy clone
  compact,  // a dense copy: a small view must not keep a big buffer
  borrow,   // the Storage of the frame, the argument or the container, as was asked for
};

struct Delivery {
  int slot = 0;
  Handover how = Handover::own;
  /// Device that the result is copied to, if it was computed on another one than the arguments'.
  std::optional<Device> moved_to = {};
  /// Device of the value itself. That of a constant is on the host until it is handed over.
  Device device = {};
};

/// Order, placement and peak of a function for one signature, known before anything runs.
///
/// The plan is exact: the first call on a frame allocates peak_bytes, each later call output_bytes,
/// which is 0 when all outputs are borrowed.
struct Plan {
  std::vector<PlannedStep> steps;
  std::vector<PlannedGuard> guards;
  std::vector<PlannedBuffer> buffers;
  std::vector<Slot> slots;
  std::vector<BufferPart> parts;
  std::vector<Variable> constants;
  std::vector<Delivery> outputs;
  std::vector<Delivery> updates;
  /// The op, if any, with elements that decide extents. Then this plan is empty: the program runs
  /// in stages, and each stage has a plan of its own once its extents are known.
  std::string run_time_extents;
  /// Refused in-place candidates: node, input and kind of refusal.
  std::vector<std::string> refused_in_place;
  /// Largest number of steps that run at once. Steps with fewer elements than the grain do so only
  /// if that needs no further thread.
  int lanes = 1;
  index_t parallel_grain = 0;
  /// An arena per device where values live on several; empty where all are on the device of the
  /// arguments. Sizes below are sums over all devices.
  std::vector<PlannedArena> arenas;
  /// Everything a call holds above arguments, containers and constants.
  index_t peak_bytes = 0;
  index_t arena_bytes = 0;
  index_t output_bytes = 0;
  index_t update_bytes = 0;
  /// Bound on the copies that a call makes on top of the peak: of arrays that it overwrites while
  /// they are shared or overlapped, and of results that are views. Excludes the copies for
  /// destinations of call_into that overlap arguments or containers.
  index_t entry_copy_bytes = 0;
  /// Largest sum of live arena bytes in this order: no placement can do with less.
  index_t lower_bound_bytes = 0;
  /// The peak of one lane.
  index_t serial_peak_bytes = 0;
  /// Memory that libraries hold for the steps: plans and tables of transforms. Excluded from the
  /// peak.
  index_t external_bytes = 0;
  /// Results that are computed twice, since the budget leaves no room to keep them.
  index_t repeated_bytes = 0;
  /// Bytes that a call would hold if nothing were freed.
  index_t no_reuse_bytes = 0;
  /// Results that need no memory since they show that of another value, or overwrite it.
  index_t saved_by_view_bytes = 0;
  index_t saved_by_inplace_bytes = 0;
  /// Inputs of joins and sets that are computed where these would have copied them to.
  index_t saved_by_join_bytes = 0;

  /// Bytes that a call holds on one of several devices at its worst moment.
  index_t peak_bytes_on(Device device) const;
  /// Tables of steps and buffers to read: the place of each buffer, the buffers that lay there
  /// before, and the reason why they were free.
  std::string to_string() const;
  std::string to_json() const;
  /// A picture of the arena: the place and the steps of each buffer.
  std::string to_svg() const;
  /// The step at which most bytes of the arena are live, the first of them; -1 without steps.
  int peak_step() const;
};

}  // namespace palimpsest
