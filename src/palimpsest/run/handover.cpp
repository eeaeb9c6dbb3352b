// SPDX-License-Identifier: Apache-2.0
// The last part of a call: the handover of memory to results and containers.
//
// All memory of results exists before the first step runs. After the steps, elements are copied and
// handles change hands; neither can fail.
#include <algorithm>

#include "palimpsest/memory/claimed_ranges.hpp"
#include "palimpsest/memory/device_copy.hpp"
#include "palimpsest/memory/thread_local_state.hpp"
#include "palimpsest/plan/position.hpp"
#include "palimpsest/run/call.hpp"

namespace palimpsest {
namespace {

// The layout, counted from a byte of a storage, as a tensor on that storage. An empty one may begin
// beyond its end.
Tensor tensor_on(const Storage& storage, const Layout& layout, index_t first_byte) {
  const auto item = static_cast<index_t>(item_size(layout.dtype));
  const bool is_empty = element_count(layout.extents) == 0;
  return Tensor(storage, layout.dtype, layout.extents, layout.strides,
                is_empty ? 0 : (first_byte + layout.byte_offset) / item);
}

index_t first_byte_of(const Tensor& t) {
  return t.offset() * static_cast<index_t>(item_size(t.dtype()));
}

Tensor tensor_within(const Tensor& whole, const Layout& layout) {
  return tensor_on(whole.storage(), layout, first_byte_of(whole));
}

// Counts a copy of a result that could have been a lazy clone, or go into no destination.
void note_copy(index_t bytes) {
  count(Counter::eager_copies);
  count(Counter::eager_copied_bytes, static_cast<std::uint64_t>(bytes));
}

}  // namespace

// Calls f for the updates that are handed over: all but those whose value lies in the container's
// own tensor.
template <class F>
void Call::for_each_moving_update(const Plan& plan, F f) const {
  if (!copies_any_) {
    for (std::size_t u : entry_->moving) f(u);
    return;
  }
  for (std::size_t u = 0; u < plan.updates.size(); ++u) {
    if (!is_staying(u)) f(u);
  }
}

bool Call::is_staying(std::size_t update) const {
  if (!entry_->stays[update]) return false;
  return bound_[program_.arguments.size() + at(program_.updated[update])].is_container;
}

// The value that an argument's or a container's buffer shows; null for other buffers.
const Tensor* Call::bound_to(const PlannedBuffer& buffer) const {
  const int input = program_.input_behind(buffer);
  return input < 0 ? nullptr : bound_[at(input)].tensor;
}

// True if a tensor can start at this place. Pairs of numbers, seen as complex ones, cannot at an
// odd place of a storage.
bool Call::can_start(const Plan& plan, const Delivery& delivery) const {
  const Slot& slot = plan.slots[at(delivery.slot)];
  const Tensor* const bound = bound_to(plan.buffers[at(slot.buffer)]);
  if (!bound) return true;
  const index_t start = first_byte_of(*bound) + slot.layout.byte_offset;
  return start % static_cast<index_t>(item_size(slot.layout.dtype)) == 0;
}

// True if the value must be copied: a lazy clone would copy, or keep a big buffer alive.
bool Call::must_copy(const Plan& plan, const Delivery& delivery, bool is_update) const {
  const Slot& slot = plan.slots[at(delivery.slot)];
  const PlannedBuffer& buffer = plan.buffers[at(slot.buffer)];
  const Tensor* const bound = bound_to(buffer);
  if (!bound) return false;
  if (!can_start(plan, delivery)) return true;
  if (delivery.how != Handover::clone) return false;
  const std::size_t input = at(program_.input_behind(buffer));
  if (bound->storage().is_cloned_eagerly() && !bound_[input].will_be_copied) return true;
  // A lazy clone would show the writes of another shared variable.
  if (is_update && meets_claimed_range(bound->storage())) return true;
  if (program_.overwritten[input]) return false;
  const index_t bytes = byte_count(slot.layout.extents, slot.layout.dtype);
  if (2 * bytes < static_cast<index_t>(bound->storage().nbytes())) return true;
  return is_update && has_internal_overlap(*bound);
}

// A result for a destination is copied twice only if the first copy could overwrite memory that
// other destinations still have to show.
void Call::choose_result_copies(const Plan& plan) {
  const std::size_t n_results = plan.outputs.size(), n = n_results + plan.updates.size();
  result_copies_.resize(n, ResultCopy::none);
  const auto choose = [&](std::size_t i) {
    const bool is_update = i >= n_results;
    const Delivery& delivery = is_update ? plan.updates[i - n_results] : plan.outputs[i];
    const Slot& slot = plan.slots[at(delivery.slot)];
    const int input = program_.input_behind(plan.buffers[at(slot.buffer)]);
    const bool meets = input >= 0 && bound_[at(input)].meets_destination;
    bool forced = false;
    if (has_destinations() && !is_update) {
      forced = meets || !can_start(plan, delivery);
    } else if (!is_in_its_container(plan, i)) {
      forced = (meets && delivery.how == Handover::clone) || must_copy(plan, delivery, is_update);
    }
    if (forced) {
      result_copies_[i] = ResultCopy::forced;
      report_.entry_copy_bytes += byte_count(slot.layout.extents, slot.layout.dtype);
    } else if (delivery.how == Handover::compact && (is_update || !has_destinations())) {
      result_copies_[i] = ResultCopy::planned;
    }
  };
  for (std::size_t i = 0; i < n_results; ++i) choose(i);
  for_each_moving_update(plan, [&](std::size_t u) { choose(n_results + u); });
}

// The device of a value before it is handed over.
Device Call::device_of(const Plan& plan, const Frame& frame, const Delivery& delivery) {
  return plan.arenas.empty() ? frame.device() : delivery.device;
}

// The device of results: that of the given arguments, else the containers' home, if these agree;
// else the device of the computation.
Device Call::result_device(Device computed_on) const {
  std::optional<Device> common;
  bool differ = false;
  const auto add = [&](Device device) {
    differ = differ || (common && *common != device);
    common = device;
  };
  for (const GivenArgument& given : given_) {
    if (given.tensor) add(given.tensor->device());
    if (given.value && !given.value->is_weak()) add(given.value->tensor().device());
  }
  if (!common) {
    for (const auto& container : impl_.containers) add(container->home());
  }
  return common && !differ ? *common : computed_on;
}

void Call::check_destinations(const Plan& plan, std::span<Tensor> outs) const {
  for (std::size_t i = 0; i < outs.size(); ++i) {
    check_destination(plan.slots[at(plan.outputs[i].slot)].layout, outs[i], i);
  }
}

void Call::prepare_results(const Plan& plan, Frame& frame, std::span<Tensor> outs) {
  for (std::size_t b : entry_->output_buffers) prepare_output(plan, frame, b, outs);
  for (std::size_t i = 0; i < outs.size(); ++i) {
    if (plan.outputs[i].how == Handover::borrow) prepare_borrowed(plan, frame, i, outs[i]);
  }
  const std::size_t n_results = plan.outputs.size();
  for (std::size_t i = 0; i < result_copies_.size(); ++i) {
    if (result_copies_[i] == ResultCopy::none) continue;
    const Delivery& delivery = i < n_results ? plan.outputs[i] : plan.updates[i - n_results];
    const Layout& layout = plan.slots[at(delivery.slot)].layout;
    Tensor& copy = frame.copy(i);
    copy = Tensor::empty(layout.extents, layout.dtype, device_of(plan, frame, delivery), "output");
    if (result_copies_[i] == ResultCopy::planned) allocated_ += copy.nbytes();
  }
  // From here on, writing them cannot fail.
  for (Tensor& out : outs) out.raw_mutable_data();
  const Device target = result_device(frame.device());
  if (!outs.empty() || (target == frame.device() && plan.arenas.empty())) return;
  for (std::size_t i = 0; i < plan.outputs.size(); ++i) {
    if (program_.outputs[i].return_internal_type) continue;
    if (target == device_of(plan, frame, plan.outputs[i])) continue;
    const Layout& layout = plan.slots[at(plan.outputs[i].slot)].layout;
    frame.moved[i] = Tensor::empty(layout.extents, layout.dtype, target, "output");
    if (plan.outputs[i].moved_to) allocated_ += frame.moved[i].nbytes();
  }
}

// Memory that the caller will own. A destination is used directly where nothing that the call reads
// or writes can lie in it.
void Call::prepare_output(const Plan& plan, Frame& frame, std::size_t buffer,
                          std::span<Tensor> outs) {
  const PlannedBuffer& planned = plan.buffers[buffer];
  const std::size_t i = at(planned.index);
  if (!outs.empty() && use_destination(plan, frame, i, outs[i])) return;
  Storage& storage = frame.output_storages[i];
  storage = Storage::allocate(static_cast<std::size_t>(planned.bytes), frame.device_of(planned),
                              "output");
  allocated_ += planned.bytes;
  frame.use_memory(buffer, {storage.overwrite_data(), storage.nbytes()});
}

// Steps write the whole buffer, of which the result may be a part.
bool Call::use_destination(const Plan& plan, Frame& frame, std::size_t i, Tensor& out) {
  const Slot& slot = plan.slots[at(plan.outputs[i].slot)];
  const PlannedBuffer& buffer = plan.buffers[at(slot.buffer)];
  const bool is_whole =
      buffer.bytes == out.nbytes() && slot.layout.is_dense() && slot.layout.byte_offset == 0;
  if (!is_whole || !out.is_contiguous() || !is_apart_[i]) return false;
  if (out.device() != frame.device_of(buffer)) return false;
  const bool is_guarded = program_.inspection && out.device().is_host();
  Tensor& target = is_guarded ? guarded_stand_in(i, out) : out;
  frame.use_memory(at(slot.buffer), {static_cast<std::byte*>(target.raw_overwrite_data()),
                                     static_cast<std::size_t>(target.nbytes())});
  frame.output_storages[i] = target.storage();
  return true;
}

// Memory in place of a destination, for an inspection that looks for writes beside it.
Tensor& Call::guarded_stand_in(std::size_t i, const Tensor& out) {
  guarded_.push_back({i, GuardedWindow(out.shape(), out.dtype())});
  return guarded_.back().window.tensor();
}

// A result that would be borrowed from the arena is made in its destination, if its buffer holds
// nothing else that is handed over.
void Call::prepare_borrowed(const Plan& plan, Frame& frame, std::size_t i, Tensor& out) {
  const int number = plan.slots[at(plan.outputs[i].slot)].buffer;
  const PlannedBuffer& buffer = plan.buffers[at(number)];
  const auto shows_it = [&](const Delivery& d) { return plan.slots[at(d.slot)].buffer == number; };
  if (buffer.kind != BufferKind::arena) return;
  if (std::any_of(plan.updates.begin(), plan.updates.end(), shows_it)) return;
  if (std::count_if(plan.outputs.begin(), plan.outputs.end(), shows_it) > 1) return;
  use_destination(plan, frame, i, out);
}

void Call::check_destination(const Layout& layout, const Tensor& destination, std::size_t i) const {
  const auto got = [&] { return "[call_into] destination " + std::to_string(i) + ": got "; };
  if (destination.dtype() != layout.dtype) {
    throw DTypeError(got() + std::string(name_of(destination.dtype())) + ", expected " +
                     std::string(name_of(layout.dtype)));
  }
  if (destination.shape() != layout.extents) {
    throw ShapeError(got() + "shape " + to_string(destination.shape()) + ", expected " +
                     to_string(layout.extents));
  }
  if (destination.device() != device()) {
    throw DeviceError(got() + destination.device().str() + ", expected " + device().str() +
                      ". Try to(device)");
  }
  if (has_internal_overlap(destination)) {
    throw AliasError("[call_into] destination " + std::to_string(i) +
                     " has elements that overlap one another");
  }
}

// Points the buffers of arguments, containers and constants at their memory. An overwritten input
// has memory of its own by now, so the caller's stays.
void Call::bind_memory(const Plan& plan, Frame& frame) const {
  const auto bind = [&](std::size_t buffer, const Tensor& t) {
    frame.bases()[buffer] = static_cast<std::byte*>(const_cast<void*>(t.raw_data()));
  };
  for (const auto& [buffer, input] : entry_->inputs) bind(at(buffer), *bound_[at(input)].tensor);
  for (const auto& [buffer, constant] : entry_->constants) {
    bind(at(buffer), plan.constants[at(constant)].node()->value);
  }
}

Tensor Call::value_of(const Plan& plan, Frame& frame, std::size_t i) const {
  const std::size_t n_results = plan.outputs.size();
  const Delivery& delivery = i < n_results ? plan.outputs[i] : plan.updates[i - n_results];
  const Slot& slot = plan.slots[at(delivery.slot)];
  const PlannedBuffer& buffer = plan.buffers[at(slot.buffer)];
  // At the start of its storage, except in a destination of the caller.
  const auto in_storage = [&](const Storage& storage) {
    return tensor_on(storage, slot.layout, frame.bases()[at(slot.buffer)] - storage.data());
  };
  switch (buffer.kind) {
    case BufferKind::arena:
      if (i < n_results && frame.output_storages[i].defined()) {  // a destination
        return in_storage(frame.output_storages[i]);
      }
      return tensor_on(frame.arena_of(buffer), slot.layout, buffer.offset);
    case BufferKind::output:
      return in_storage(frame.output_storages[at(buffer.index)]);
    case BufferKind::update:
      return tensor_on(frame.update_storage(buffer.index), slot.layout, 0);
    case BufferKind::argument:
    case BufferKind::container:
      return tensor_within(*bound_to(buffer), slot.layout);
    case BufferKind::constant:
      return tensor_within(plan.constants[at(buffer.index)].node()->value, slot.layout);
  }
  throw InternalError("[call] not a kind of buffer");
}

// True if an update happened in the memory of its own container, which is the default value of an
// argument that this call did not give.
bool Call::is_in_its_container(const Plan& plan, std::size_t index) const {
  if (index < plan.outputs.size()) return false;
  const std::size_t u = index - plan.outputs.size();
  const PlannedBuffer& buffer = plan.buffers[at(plan.slots[at(plan.updates[u].slot)].buffer)];
  if (buffer.kind != BufferKind::argument || !bound_[at(buffer.index)].is_container) return false;
  return program_.arguments[at(buffer.index)].container == program_.updated[u];
}

void Call::hand_over(const Plan& plan, Frame& frame) {
  const std::size_t n_results = plan.outputs.size();
  for (std::size_t i = 0; i < n_results; ++i) {
    Tensor value = handed_over(plan, frame, i);
    if (frame.moved[i].defined()) {
      Tensor& there = frame.moved[i];
      copy_elements_on(value.device(),
                       {value.raw_data(), value.dtype(), value.shape(), value.strides()},
                       there.device(),
                       {there.raw_overwrite_data(), there.dtype(), there.shape(), there.strides()});
      value = std::move(there);
    }
    frame.deliver(i, std::move(value));
  }
  const auto update = [&](std::size_t u) {
    frame.deliver(n_results + u, handed_over(plan, frame, n_results + u));
  };
  if (!program_.inspection) return for_each_moving_update(plan, update);
  for (std::size_t u = 0; u < plan.updates.size(); ++u) update(u);
}

Tensor Call::handed_over(const Plan& plan, Frame& frame, std::size_t i) const {
  const std::size_t n_results = plan.outputs.size();
  const Delivery& delivery = i < n_results ? plan.outputs[i] : plan.updates[i - n_results];
  if (result_copies_[i] != ResultCopy::none) {
    const Slot& slot = plan.slots[at(delivery.slot)];
    const std::byte* const first = frame.bases()[at(slot.buffer)] + slot.layout.byte_offset;
    Tensor& copy = frame.copy(i);
    copy_elements_on(frame.device_of(plan.buffers[at(slot.buffer)]),
                     {first, slot.layout.dtype, slot.layout.extents, slot.layout.strides},
                     copy.device(),
                     {copy.raw_overwrite_data(), copy.dtype(), copy.shape(), copy.strides()});
    note_copy(copy.nbytes());
    return std::move(copy);
  }
  const bool is_clone = delivery.how == Handover::clone && !is_in_its_container(plan, i) &&
                        (i >= n_results || !has_destinations());
  Tensor value = value_of(plan, frame, i);
  if (is_clone) return value.lazy_clone();
  return value;
}

// Drops each value after its copy: a container's old Storage may then become the frame's.
void Call::copy_to(std::span<Tensor> outs, Frame& frame) {
  for (std::size_t i = 0; i < outs.size(); ++i) {
    const Tensor value = std::move(frame.delivered(i));
    const bool is_there = shares_storage(value, outs[i]) && value.offset() == outs[i].offset();
    if (is_there) continue;
    outs[i].copy_from(value);
    note_copy(value.nbytes());
  }
}

// Exchanges all values at once. The frame keeps the Storage that a container gave up, to write it
// in the next call, unless another owner has it now.
void Call::commit(const Plan& plan, Frame& frame) noexcept {
  const std::size_t n_results = plan.outputs.size();
  // All are claimed before any is given up, or another container could take one in between.
  for_each_moving_update(plan,
                         [&](std::size_t u) { frame.delivered(n_results + u).storage().claim(); });
  for_each_moving_update(plan, [&](std::size_t u) {
    Container& container = *impl_.containers[at(program_.updated[u])];
    const Slot& slot = plan.slots[at(plan.updates[u].slot)];
    const PlannedBuffer& buffer = plan.buffers[at(slot.buffer)];
    const bool gives_update_buffer =
        buffer.kind == BufferKind::update && plan.updates[u].how == Handover::own;
    Storage old = container.held_value().storage();
    container.commit(std::move(frame.delivered(n_results + u)));
    if (!gives_update_buffer) return;
    Storage& spare = frame.update_storage(buffer.index);
    spare = Storage();
    const bool reusable = old.use_count() == 1 && old.state() == StorageState::owned &&
                          old.nbytes() == static_cast<std::size_t>(buffer.bytes);
    if (reusable) spare = std::move(old);
  });
  if (entry_->moving.size() == plan.updates.size()) return;
  for (std::size_t u = 0; u < plan.updates.size(); ++u) {
    if (is_staying(u)) impl_.containers[at(program_.updated[u])]->count_version();
  }
}

}  // namespace palimpsest
