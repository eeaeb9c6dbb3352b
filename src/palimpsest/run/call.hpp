// SPDX-License-Identifier: Apache-2.0
// Internal: one call of a function.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <vector>

#include "palimpsest/run/function_state.hpp"
#include "palimpsest/run/overlap_finder.hpp"

namespace palimpsest {

/// A call argument: a tensor or a Value. At most one is set.
struct GivenArgument {
  const Tensor* tensor = nullptr;
  const Value* value = nullptr;
  bool is_given() const { return tensor || value; }
};

/// The value of one graph input during a call.
struct BoundInput {
  const Tensor* tensor = nullptr;
  bool is_private = false;    // made for this call: no other owner
  bool is_container = false;  // the container's own memory
  bool will_be_copied = false;
  bool meets_destination = false;            // of call_into
  StorageState state = StorageState::owned;  // of a container's memory, when it was bound
};

/// Reason to copy a result or a new value when it is handed over.
enum class ResultCopy : char { none, planned, forced };

/// The tensors made for one call, at addresses that stay. Their list comes from the thread's
/// previous calls, so that no list is allocated.
class MadeTensors {
 public:
  MadeTensors() = default;
  ~MadeTensors();
  MadeTensors(const MadeTensors&) = delete;
  MadeTensors& operator=(const MadeTensors&) = delete;
  /// `most` is the largest number of tensors.
  const Tensor* add(Tensor made, std::size_t most);

 private:
  std::vector<Tensor> list_;
};

/// A call, on the stack of the caller. Everything that can fail comes before the first step that
/// overwrites a container, in this order:
///  1. bind: values are matched with inputs and filtered
///  2. hold: containers, and those that their values are derived from, are locked in the order of
///     their ids, so that all values are those of one moment. Read containers are lazily cloned and
///     released; updated ones are held until the end
///  3. protect: overwritten inputs that others may see are copied
///  4. plan, budget, a frame that no value of the call reaches, memory for the results
///  5. the steps
///  6. results are handed over and new values committed together
class Call {
 public:
  explicit Call(const FunctionState& impl);
  ~Call() { release_containers(); }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  void bind(std::span<const Argument> arguments);
  void bind(std::span<const Tensor> arguments);
  /// Either results or outs is empty; outs are written into.
  void run(std::span<Tensor> results, std::span<Tensor> outs, CallReport* report);
  const Plan& plan();
  /// The same with the copies that this call will make.
  Plan plan_with_copies();
  void prepare();

 private:
  // So many tensors are looked at before the first of them is worked on: the cache misses of loads
  // overlap, those between the atomic operations that count handles and locks do not. Reading
  // 10,000 shared variables takes 3.1 ms without it and 2.6 ms with it.
  static constexpr std::size_t kLookedAt = 32;
  static StorageState look_at(const Tensor& t) {
    const auto* const object = reinterpret_cast<const std::byte*>(&t);
    for (std::size_t line = 64; line < sizeof t; line += 64) __builtin_prefetch(object + line);
    return t.storage().state();
  }

  // -- binding.cpp
  std::size_t argument_for(const Keyword& keyword) const;
  void check_nothing_missing() const;
  void filter_arguments();

  // The held cells, marked in is_held_.
  class HeldCells final : public HeldScope {
   public:
    explicit HeldCells(const Call& call) : call_(call) {}
    using HeldScope::enter;
    bool holds(const Container& container) const override;
    void keep_in_child() const noexcept override;

   private:
    const Call& call_;
  };

  // -- call.cpp
  void keep(std::size_t input, Tensor made);
  HoldMode hold_mode(std::size_t cell) const;
  void hold_containers();
  void bind_containers();
  void look_at_containers(std::size_t first, std::array<StorageState, kLookedAt>& states) const;
  Tensor clone_of_source(const Container& source) const;
  std::vector<Tensor> clones_of_sources(const Derivation& derivation) const;
  void release_containers() noexcept;
  void note_states();
  void choose_copies(std::span<Tensor> outs = {});
  bool containers_are_apart(std::span<Tensor> outs) const;
  void find_overlaps(OverlapFinder& finder, std::span<Tensor> outs);
  void find_destinations(const OverlapFinder& finder, std::span<Tensor> outs);
  bool needs_copy(std::size_t input) const;
  bool meets_another(const OverlapFinder& finder, std::size_t input) const;
  bool would_lose_value(std::size_t input) const;
  void make_copies();
  SmallVector<const Tensor*, 32> values_in_frames(std::span<Tensor> outs) const;
  void find_plan();
  bool fits(const std::vector<Layout>& signature) const;
  std::vector<Layout> signature() const;
  Device device() const;
  void check_budget(const Plan& plan) const;
  void run_in_stages(const Plan& plan, std::span<Tensor> results, std::span<Tensor> outs,
                     CallReport* report, CallMeasurement* measurement);
  void run_watched(const Plan& plan, Frame& frame, CallMeasurement* measurement);
  void share_lent_memory(std::span<const Tensor> outs) const noexcept;

  // -- handover.cpp
  template <class F>
  void for_each_moving_update(const Plan& plan, F f) const;
  bool is_staying(std::size_t update) const;
  void choose_result_copies(const Plan& plan);
  bool has_destinations() const { return !is_apart_.empty(); }
  void check_destinations(const Plan& plan, std::span<Tensor> outs) const;
  void prepare_results(const Plan& plan, Frame& frame, std::span<Tensor> outs);
  void prepare_output(const Plan& plan, Frame& frame, std::size_t buffer, std::span<Tensor> outs);
  bool can_start(const Plan& plan, const Delivery& delivery) const;
  bool must_copy(const Plan& plan, const Delivery& delivery, bool is_update) const;
  bool is_in_its_container(const Plan& plan, std::size_t index) const;
  bool use_destination(const Plan& plan, Frame& frame, std::size_t i, Tensor& out);
  Tensor& guarded_stand_in(std::size_t i, const Tensor& out);
  void prepare_borrowed(const Plan& plan, Frame& frame, std::size_t i, Tensor& out);
  void check_destination(const Layout& layout, const Tensor& destination, std::size_t i) const;
  void bind_memory(const Plan& plan, Frame& frame) const;
  const Tensor* bound_to(const PlannedBuffer& buffer) const;
  Tensor value_of(const Plan& plan, Frame& frame, std::size_t i) const;
  void hand_over(const Plan& plan, Frame& frame);
  Tensor handed_over(const Plan& plan, Frame& frame, std::size_t i) const;
  static void copy_to(std::span<Tensor> outs, Frame& frame);
  void commit(const Plan& plan, Frame& frame) noexcept;
  Device result_device(Device computed_on) const;
  static Device device_of(const Plan& plan, const Frame& frame, const Delivery& delivery);

  const FunctionState& impl_;
  const Program& program_;
  SmallVector<GivenArgument, 8> given_;
  SmallVector<BoundInput, 32> bound_;
  MadeTensors made_;
  const PlanCache::Entry* entry_ = nullptr;
  SmallVector<char, 32> is_held_;  // per cell
  HeldCells held_cells_{*this};
  SmallVector<char, 8> is_apart_;              // per destination: no value of the call meets it
  SmallVector<ResultCopy, 32> result_copies_;  // per result, then update
  std::vector<GuardedDestination> guarded_;    // with an inspection: in place of destinations
  // Numbers in the finder, per input and destination; kNotSearched: it meets nothing.
  static constexpr std::uint32_t kNotSearched = ~std::uint32_t{0};
  SmallVector<std::uint32_t, 32> number_of_;
  SmallVector<std::uint32_t, 32> searched_;  // the inputs and destinations behind the numbers
  bool copies_any_ = false;   // an input is a copy of its argument or of a container's value
  bool is_planning_ = false;  // nothing will be updated: hold all as readers do
  CallReport report_;
  index_t allocated_ = 0;  // for results, at this call
};

}  // namespace palimpsest
