// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/run/call.hpp"

#include <algorithm>
#include <functional>
#include <utility>

#include "palimpsest/kernels/pool/parallel.hpp"
#include "palimpsest/memory/claimed_ranges.hpp"
#include "palimpsest/memory/lent_memory.hpp"
#include "palimpsest/plan/position.hpp"
#include "palimpsest/run/kept_inputs.hpp"
#include "palimpsest/run/stretched_values.hpp"

namespace palimpsest {
namespace {

bool has_layout(const Tensor& t, const Layout& layout) {
  return t.dtype() == layout.dtype && t.shape() == layout.extents && t.strides() == layout.strides;
}

// Shared or read-only memory of a container is replaced when it is first written.
bool replaces_memory(const BoundInput& container) {
  return container.state == StorageState::shared ||
         container.state == StorageState::foreign_read_only;
}

bool is_dense_copy_of(const Tensor& t, const Layout& layout) {
  return t.dtype() == layout.dtype && t.shape() == layout.extents && layout.is_dense();
}

}  // namespace

// -- containers --------------------------------------------------------------------------------

HoldMode Call::hold_mode(std::size_t cell) const {
  const bool writes =
      cell < program_.is_updated.size() && program_.is_updated[cell] && !is_planning_;
  return writes ? HoldMode::exclusive : HoldMode::shared;
}

bool Call::HeldCells::holds(const Container& container) const {
  const auto& order = call_.impl_.lock_order;
  const auto first = std::lower_bound(
      order.begin(), order.end(), container.id(),
      [&](std::size_t c, std::uint64_t id) { return call_.impl_.cell(c)->id() < id; });
  return first != order.end() && call_.is_held_[*first] &&
         call_.impl_.cell(*first).get() == &container;
}

void Call::HeldCells::keep_in_child() const noexcept {
  for (std::size_t c = 0; c < call_.is_held_.size(); ++c) {
    if (call_.is_held_[c]) call_.impl_.cell(c)->keep_hold(call_.hold_mode(c));
  }
}

void Call::hold_containers() {
  const auto& order = impl_.lock_order;
  if (HeldScope::any_here()) {
    for (std::size_t c : order) impl_.cell(c)->check_not_held(impl_.who());
  }
  held_cells_.enter();
  constexpr std::size_t kAhead = 16;
  for (std::size_t k = 0; k < order.size(); ++k) {
    if (k + kAhead < order.size()) impl_.cell(order[k + kAhead])->prefetch();
    const std::size_t c = order[k];
    impl_.cell(c)->hold(hold_mode(c), impl_.who());
    is_held_[c] = 1;
  }
}

void Call::release_containers() noexcept {
  for (std::size_t c = 0; c < is_held_.size(); ++c) {
    if (is_held_[c]) impl_.cell(c)->release(hold_mode(c));
    is_held_[c] = 0;
  }
}

// The value of a container that this call holds, or the up-to-date value if it is derived and
// stale.
Tensor Call::clone_of_source(const Container& source) const {
  const Derivation* derivation = source.derivation();
  if (!derivation || derivation->is_fresh()) return source.held_value().lazy_clone();
  return derivation->value_for(clones_of_sources(*derivation));
}

std::vector<Tensor> Call::clones_of_sources(const Derivation& derivation) const {
  std::vector<Tensor> values;
  for (const auto& source : derivation.sources()) values.push_back(clone_of_source(*source));
  return values;
}

void Call::look_at_containers(std::size_t first,
                              std::array<StorageState, kLookedAt>& states) const {
  for (std::size_t k = 0; k < kLookedAt && first + k < bound_.size(); ++k) {
    if (bound_[first + k].tensor) continue;
    const std::size_t c = at(program_.container_of_input(first + k));
    states[k] = look_at(impl_.containers[c]->held_value());
  }
}

// A container that is only read is cloned lazily, so that others may update it meanwhile. Memory
// that code outside the library may write cannot be cloned lazily: such a container stays locked.
void Call::bind_containers() {
  if (impl_.containers.empty()) return;
  for (std::size_t c : impl_.derived) impl_.containers[c]->renew();
  hold_containers();
  SmallVector<char, 32> stays(is_held_.size());
  for (std::size_t c = 0; c < impl_.containers.size(); ++c) {
    if (program_.is_updated[c] && !is_planning_) separate_elements(*impl_.containers[c]);
    stays[c] = is_planning_ || program_.is_updated[c] ||
               (program_.borrows_any && program_.containers[c].is_lent);
  }
  std::vector<std::pair<std::size_t, std::vector<Tensor>>> late;
  std::array<StorageState, kLookedAt> states;
  for (std::size_t i = 0; i < bound_.size(); ++i) {
    if (i % kLookedAt == 0) look_at_containers(i, states);
    if (bound_[i].tensor) continue;
    const std::size_t c = at(program_.container_of_input(i));
    const Container& container = *impl_.containers[c];
    const Derivation* derivation =
        is_planning_ || impl_.derived.empty() ? nullptr : container.derivation();
    if (derivation && !derivation->is_fresh()) {
      // Another thread wrote a source since it was renewed: this call gets a value of its own.
      late.emplace_back(i, clones_of_sources(*derivation));
      continue;
    }
    const Tensor& value = container.held_value();
    const StorageState state = states[i % kLookedAt];
    // The common states need no second look at the memory of the Storage.
    const bool is_own = state == StorageState::owned || state == StorageState::shared;
    if (!is_own && value.storage().is_cloned_eagerly()) stays[c] = 1;
    if (stays[c]) {
      bound_[i] = {&value, false, true, false, false, state};
    } else {
      keep(i, value.lazy_clone());
      bound_[i].is_private = false;  // the container has its data too
    }
  }
  for (std::size_t c = 0; c < stays.size(); ++c) {
    if (stays[c]) continue;
    impl_.cell(c)->release(hold_mode(c));
    is_held_[c] = 0;
  }
  for (const auto& [input, values] : late) {
    const std::size_t c = at(program_.container_of_input(input));
    keep(input, impl_.containers[c]->derivation()->value_for(values));
    copies_any_ = true;
  }
  // Values were cloned since the states were looked at.
  if (!late.empty()) note_states();
}

void Call::note_states() {
  for (BoundInput& bound : bound_) {
    if (bound.is_container) bound.state = bound.tensor->storage().state();
  }
}

// -- inputs that must not be overwritten -------------------------------------------------------

// True if others see the memory of this input, although the plan overwrites it.
bool Call::needs_copy(std::size_t input) const {
  const BoundInput& bound = bound_[input];
  if (bound.is_private) return false;
  const Tensor& value = *bound.tensor;
  if (bound.is_container) {
    // Shared or read-only memory is replaced when it is first written: the container keeps its
    // Storage, and the clones the old bytes.
    return !program_.is_updated[at(program_.container_of_input(input))];
  }
  const StorageState state = value.storage().state();
  return state == StorageState::shared || state == StorageState::foreign_read_only ||
         has_internal_overlap(value);
}

// True if it overlaps another value of the call. Of several overwritten values the first may stay.
bool Call::meets_another(const OverlapFinder& finder, std::size_t input) const {
  if (number_of_[input] == kNotSearched) return false;
  return finder.any(number_of_[input], [&](std::size_t number) {
    const std::size_t j = searched_[number];
    if (j >= bound_.size()) return false;  // destinations are written when all else is done
    if (program_.overwritten[j] && (j > input || bound_[j].will_be_copied)) return false;
    const std::size_t n = program_.arguments.size();
    if (program_.trust_input && input < n && j < n) return false;
    return overlaps(*bound_[input].tensor, *bound_[j].tensor);
  });
}

// A container must not get, or pass on to another one, the memory of a destination.
bool Call::would_lose_value(std::size_t input) const {
  const BoundInput& bound = bound_[input];
  return bound.is_container && bound.meets_destination &&
         program_.is_updated[at(program_.container_of_input(input))];
}

// Finds the inputs that meet a destination, and the destinations that meet no input. AliasError if
// two destinations meet.
void Call::find_destinations(const OverlapFinder& finder, std::span<Tensor> outs) {
  const std::size_t n = bound_.size();
  is_apart_.resize(outs.size());
  for (std::size_t i = 0; i < outs.size(); ++i) {
    is_apart_[i] = 1;
    finder.any(number_of_[n + i], [&](std::size_t number) {
      const std::size_t j = searched_[number];
      if (j < n) {
        if (!overlaps(outs[i], *bound_[j].tensor)) return false;
        bound_[j].meets_destination = true;
        is_apart_[i] = 0;
      } else if (overlaps(outs[i], outs[j - n])) {
        throw AliasError("[call_into] destination " + std::to_string(std::min(i, j - n)) +
                         " overlaps destination " + std::to_string(std::max(i, j - n)) +
                         ". Try destinations with no element in common");
      }
      return false;
    });
  }
}

// True if the containers' values overlap no other value. No two containers have one Storage, and
// each has claimed its own. So only foreign memory, or a claimed Storage, can show their memory.
bool Call::containers_are_apart(std::span<Tensor> outs) const {
  const auto may_meet = [](const Tensor& t) {
    const StorageState state = t.storage().state();
    return state == StorageState::foreign_writable || state == StorageState::foreign_read_only ||
           t.storage().is_claimed();
  };
  for (std::size_t i = 0; i < bound_.size(); ++i) {
    const BoundInput& bound = bound_[i];
    // Held as the default value of an argument, and perhaps once more.
    if (bound.is_container && i < program_.arguments.size()) return false;
    const bool is_foreign = bound.state == StorageState::foreign_writable ||
                            bound.state == StorageState::foreign_read_only;
    if (bound.is_container ? is_foreign : may_meet(*bound.tensor)) return false;
  }
  return std::none_of(outs.begin(), outs.end(), may_meet);
}

// Adds the tensors to search for overlaps: all inputs and destinations; without the containers if
// these are apart.
void Call::find_overlaps(OverlapFinder& finder, std::span<Tensor> outs) {
  for (std::size_t i = 0; i < outs.size(); ++i) {
    if (outs[i].defined()) continue;
    throw TypeError("[call_into] destination " + std::to_string(i) + ": got an undefined tensor");
  }
  const bool are_apart = containers_are_apart(outs);
  number_of_.resize(bound_.size() + outs.size(), kNotSearched);
  for (std::size_t j = 0; j < number_of_.size(); ++j) {
    if (j < bound_.size() && bound_[j].is_container && are_apart) continue;
    number_of_[j] = static_cast<std::uint32_t>(searched_.size());
    searched_.push_back(static_cast<std::uint32_t>(j));
    finder.add(j < bound_.size() ? *bound_[j].tensor : outs[j - bound_.size()]);
  }
  finder.sort();
}

void Call::choose_copies(std::span<Tensor> outs) {
  if (!program_.overwrites_any && outs.empty()) return;
  OverlapFinder finder;
  find_overlaps(finder, outs);
  find_destinations(finder, outs);
  for (std::size_t i = 0; i < bound_.size(); ++i) {
    BoundInput& bound = bound_[i];
    if (bound.is_private) continue;
    const bool is_overwritten = program_.overwritten[i];
    bound.will_be_copied =
        would_lose_value(i) || (is_overwritten && (needs_copy(i) || meets_another(finder, i)));
    if (bound.will_be_copied) {
      report_.entry_copy_bytes += bound.tensor->nbytes();
      copies_any_ = true;
    } else if (is_overwritten && bound.is_container && replaces_memory(bound)) {
      report_.entry_copy_bytes += static_cast<index_t>(bound.tensor->storage().nbytes());
    }
  }
}

void Call::make_copies() {
  if (!program_.overwrites_any && !copies_any_) return;
  for (std::size_t i = 0; i < bound_.size(); ++i) {
    if (bound_[i].will_be_copied) {
      keep(i, bound_[i].tensor->clone());
    } else if (program_.overwritten[i] && bound_[i].is_container && replaces_memory(bound_[i])) {
      const std::size_t c = at(program_.container_of_input(i));
      Tensor& value = impl_.containers[c]->held_value();
      value.raw_mutable_data();  // gets memory of its own
      renew_range(value.storage());
    }
  }
}

// -- the plan ----------------------------------------------------------------------------------

bool Call::fits(const std::vector<Layout>& signature) const {
  for (std::size_t i = 0; i < bound_.size(); ++i) {
    const Tensor& value = *bound_[i].tensor;
    const bool same = bound_[i].will_be_copied ? is_dense_copy_of(value, signature[i])
                                               : has_layout(value, signature[i]);
    if (!same) return false;
  }
  return true;
}

std::vector<Layout> Call::signature() const {
  std::vector<Layout> result;
  for (const BoundInput& bound : bound_) {
    const Tensor& t = *bound.tensor;
    result.push_back(bound.will_be_copied ? Layout::dense(t.dtype(), t.shape())
                                          : Layout{t.dtype(), t.shape(), t.strides(), 0});
  }
  return result;
}

Device Call::device() const {
  if (bound_.empty()) {
    const auto& outputs = program_.graph.outputs();
    return outputs.empty() ? Device{} : outputs[0].type().device;
  }
  const Device device = bound_[0].tensor->device();
  const auto& inputs = program_.graph.inputs();
  for (std::size_t i = 1; i < bound_.size(); ++i) {
    if (bound_[i].is_container) continue;  // its value fits its type
    const Device other = bound_[i].tensor->device();
    if (other == device || other == inputs[i].type().device) continue;
    throw DeviceError("[" + impl_.who() + "] device: " + inputs[i].str() + " is on " + other.str() +
                      ", but " + inputs[0].str() + " is on " + device.str() +
                      ". Try one device for all");
  }
  return device;
}

void Call::check_budget(const Plan& plan) const {
  const index_t peak = plan.peak_bytes + report_.entry_copy_bytes;
  if (!program_.budget || peak <= *program_.budget) return;
  std::vector<const PlannedBuffer*> biggest;
  for (const PlannedBuffer& buffer : plan.buffers) {
    const bool counts = buffer.kind == BufferKind::arena || buffer.kind == BufferKind::output ||
                        buffer.kind == BufferKind::update;
    if (counts) biggest.push_back(&buffer);
  }
  std::ranges::stable_sort(biggest, std::ranges::greater(), &PlannedBuffer::bytes);
  if (biggest.size() > 3) biggest.resize(3);
  std::string text = "[" + impl_.who() + "] the plan exceeds the budget: got a peak of " +
                     std::to_string(peak) + " bytes, the smallest found, expected at most " +
                     std::to_string(*program_.budget) + ". The largest buffers:";
  for (const PlannedBuffer* buffer : biggest) {
    text += " " + buffer->name + " (" + std::to_string(buffer->bytes) + ")";
  }
  throw BudgetError(text + ". Try smaller parts, or borrowed outputs");
}

void Call::find_plan() {
  entry_ = &program_.plans->find_or_make([&](const auto& signature) { return fits(signature); },
                                         [&] { return program_.make_plan_for(signature()); });
}

const Plan& Call::plan() {
  is_planning_ = true;
  bind_containers();
  choose_copies();
  find_plan();
  return entry_->plan;
}

Plan Call::plan_with_copies() {
  Plan made = plan();
  if (made.run_time_extents.empty()) choose_result_copies(made);
  for (std::size_t i = 0; i < made.outputs.size() && i < result_copies_.size(); ++i) {
    Delivery& delivery = made.outputs[i];
    if (result_copies_[i] == ResultCopy::forced) delivery.how = Handover::compact;
    if (delivery.how != Handover::clone) continue;
    const int input = program_.input_behind(made.buffers[at(made.slots[at(delivery.slot)].buffer)]);
    if (input < 0) continue;
    // Memory that the call makes for itself is gone after it.
    const BoundInput& bound = bound_[at(input)];
    const bool is_made = bound.is_private && bound.tensor->storage().use_count() == 1;
    if (is_made || bound.will_be_copied) delivery.how = Handover::own;
  }
  made.entry_copy_bytes = report_.entry_copy_bytes;
  made.peak_bytes += made.entry_copy_bytes;
  return made;
}

void Call::prepare() {
  const Plan& planned = plan();
  if (!planned.run_time_extents.empty()) return;  // a stage makes its frame when it runs
  const bool any_thread = !program_.borrows_any;
  const auto values = values_in_frames({});
  // An idle frame is left unchanged: a borrowed result that shows it stays until the next call.
  if (auto idle = impl_.pool->take(planned, any_thread, values)) {
    return impl_.pool->give(std::move(idle));
  }
  impl_.pool->give({});
  const BorrowedFrame frame(*impl_.pool, planned, device(), any_thread, values);
}

// Does as Frame::run and hand_over, with a watch that may end the call at any step.
void Call::run_watched(const Plan& plan, Frame& frame, CallMeasurement* measurement) {
  for (const PlannedBuffer& buffer : plan.buffers) {
    if (frame.device_of(buffer).is_host()) continue;
    throw NotSupported(
        "[" + impl_.who() + "] a mode that looks at memory does so on the host: got " + "'" +
        buffer.name + "' on " + frame.device_of(buffer).str() + ". Try mode FastRun");
  }
  SmallVector<const Tensor*, 32> inputs;
  for (const BoundInput& bound : bound_) inputs.push_back(bound.tensor);
  const CallAccess access{program_, plan, frame, inputs, guarded_};
  if (measurement) measurement->pause();
  KeptInputs kept(access);
  const std::unique_ptr<CallWatch> watch = program_.inspection->watch(access);
  if (measurement) measurement->resume();
  frame.run_watched(*watch, measurement);
  hand_over(plan, frame);
  if (measurement) measurement->pause();
  watch->after_hand_over(frame.all_delivered());
  kept.release();
  if (measurement) measurement->resume();
}

// Values that may lie in a frame: results borrowed from it, directly or through foreign memory.
SmallVector<const Tensor*, 32> Call::values_in_frames(std::span<Tensor> outs) const {
  SmallVector<const Tensor*, 32> values;
  if (!program_.borrows_any) return values;
  const auto add = [&](const Tensor& t, bool is_container) {
    const StorageState state = t.storage().state();
    const bool is_foreign =
        state == StorageState::foreign_writable || state == StorageState::foreign_read_only;
    if (is_foreign || (!is_container && t.storage().is_claimed())) values.push_back(&t);
  };
  for (const BoundInput& bound : bound_) add(*bound.tensor, bound.is_container);
  for (const Tensor& out : outs) add(out, false);
  return values;
}

// Values of containers are overwritten only after all stages have succeeded.
void Call::run_in_stages(const Plan& plan, std::span<Tensor> results, std::span<Tensor> outs,
                         CallReport* report, CallMeasurement* measurement) {
  const Device where = device();
  SmallVector<const Tensor*, 32> inputs;
  for (const BoundInput& bound : bound_) inputs.push_back(bound.tensor);
  Stages::Result made;
  const auto run_steps = [&] {
    made = program_.with_checked_shapes([&] {
      return program_.staged().run(std::span<const Tensor* const>(inputs.data(), inputs.size()));
    });
  };
  if (const auto threads = program_.config->threads) {
    run_with_threads(static_cast<int>(*threads), run_steps);
  } else {
    run_steps();
  }
  const std::size_t n_results = program_.outputs.size(), n_updates = program_.updated.size();
  for (std::size_t i = 0; i < outs.size(); ++i) {
    const Tensor& value = made.outputs[i];
    check_destination(Layout::dense(value.dtype(), value.shape()), outs[i], i);
  }
  const Device target = result_device(where);
  for (std::size_t i = 0; i < results.size(); ++i) {
    const bool moves = target != where && !program_.outputs[i].return_internal_type;
    results[i] = moves ? made.outputs[i].to(target) : std::move(made.outputs[i]);
  }
  for (std::size_t i = 0; i < outs.size(); ++i) outs[i].copy_from(made.outputs[i]);
  for (std::size_t u = 0; u < n_updates; ++u) {
    Tensor& value = made.outputs[n_results + u];
    if (meets_claimed_range(value.storage())) value = value.clone();
  }
  for (std::size_t u = 0; u < n_updates; ++u) {
    Tensor& value = made.outputs[n_results + u];
    value.storage().claim();
    impl_.containers[at(program_.updated[u])]->commit(std::move(value));
  }
  if (measurement) {
    measurement->steps(plan);
    measurement->finish(plan, 0);
  }
  report_.peak_bytes = made.peak_bytes;
  report_.entry_copy_bytes = 0;
  if (report) *report = report_;
}

// -- the call ----------------------------------------------------------------------------------

// The frame did so with its own memory.
void Call::share_lent_memory(std::span<const Tensor> outs) const noexcept {
  for (const BoundInput& bound : bound_) LentMemory::share(bound.tensor->storage());
  for (const Tensor& out : outs) LentMemory::share(out.storage());
}

void Call::run(std::span<Tensor> results, std::span<Tensor> outs, CallReport* report) {
  std::optional<CallMeasurement> measurement;
  if (impl_.profiler) measurement.emplace(*impl_.profiler, Device{});
  bind_containers();
  choose_copies(outs);
  find_plan();
  const Plan& plan = entry_->plan;
  if (!plan.run_time_extents.empty()) {
    run_in_stages(plan, results, outs, report, measurement ? &*measurement : nullptr);
    return;
  }
  const Device where = device();
  check_destinations(plan, outs);
  check_budget(plan);
  make_copies();
  choose_result_copies(plan);
  check_budget(plan);
  BorrowedFrame frame(*impl_.pool, plan, where, !program_.borrows_any, values_in_frames(outs));
  prepare_results(plan, *frame, outs);
  bind_memory(plan, *frame);
  frame->stream_files(program_.budget.has_value());
  frame->bind();
  const auto run_all = [&] {
    if (program_.inspection) {
      run_watched(plan, *frame, measurement ? &*measurement : nullptr);
      return;
    }
    if (measurement) {
      frame->run_measured(measurement->steps(plan));
    } else {
      frame->run();
    }
    hand_over(plan, *frame);
  };
  const auto run_steps = [&] {
    try {
      run_all();
    } catch (...) {
      share_lent_memory(outs);
      throw;
    }
  };
  if (const auto threads = program_.config->threads) {
    run_with_threads(static_cast<int>(*threads), run_steps);
  } else {
    run_steps();
  }
  copy_to(outs, *frame);
  commit(plan, *frame);
  for (std::size_t i = 0; i < results.size(); ++i) results[i] = std::move(frame->delivered(i));
  if (measurement) measurement->finish(plan, frame.held_bytes());
  if (!report) return;
  report_.peak_bytes = frame->bytes() + allocated_ + report_.entry_copy_bytes;
  *report = report_;
}

}  // namespace palimpsest
