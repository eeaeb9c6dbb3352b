// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/compile/function_impl.hpp"

#include <algorithm>
#include <numeric>

namespace palimpsest {
namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }

Layout layout_of(const Tensor& t) { return {t.dtype(), t.shape(), t.strides(), 0}; }

bool has_layout(const Tensor& t, const Layout& layout) {
  return t.dtype() == layout.dtype && t.shape() == layout.extents && t.strides() == layout.strides;
}

// The layout, counted from a byte of a storage, as a tensor on that storage.
Tensor tensor_on(const Storage& storage, const Layout& layout, index_t first_byte) {
  const auto item = static_cast<index_t>(item_size(layout.dtype));
  return Tensor(storage, layout.dtype, layout.extents, layout.strides,
                (first_byte + layout.byte_offset) / item);
}

Tensor tensor_within(const Tensor& whole, const Layout& layout) {
  const auto item = static_cast<index_t>(item_size(whole.dtype()));
  return tensor_on(whole.storage(), layout, whole.offset() * item);
}

}  // namespace

// Holds all containers of a call, taken in one order process-wide.
class Function::Impl::ContainerLocks {
 public:
  explicit ContainerLocks(const Impl& impl) : impl_(impl) {
    try {
      for (; held_ < impl.lock_order_.size(); ++held_) {
        const std::size_t c = impl.lock_order_[held_];
        impl.containers_[c]->hold(mode(c), "call");
      }
    } catch (...) {
      release();
      throw;
    }
  }
  ~ContainerLocks() { release(); }
  ContainerLocks(const ContainerLocks&) = delete;
  ContainerLocks& operator=(const ContainerLocks&) = delete;

 private:
  HoldMode mode(std::size_t c) const {
    return impl_.is_updated_[c] ? HoldMode::exclusive : HoldMode::shared;
  }
  void release() noexcept {
    while (held_ > 0) {
      const std::size_t c = impl_.lock_order_[--held_];
      impl_.containers_[c]->release(mode(c));
    }
  }

  const Impl& impl_;
  std::size_t held_ = 0;
};

// A frame taken from the pool for the time of a call. A frame whose borrowed results another
// thread may still read is left to that thread.
class Function::Impl::BorrowedFrame {
 public:
  BorrowedFrame(const Impl& impl, Planned& planned, Device device)
      : impl_(impl), planned_(planned) {
    const auto me = std::this_thread::get_id();
    {
      const std::lock_guard guard(impl_.mutex_);
      auto& idle = planned_.idle;
      const bool any_thread = std::none_of(impl_.outputs_.begin(), impl_.outputs_.end(),
                                           [](const Out& o) { return o.options.borrow; });
      const auto it = std::find_if(idle.begin(), idle.end(), [&](const auto& frame) {
        return any_thread || frame->last_user == me;
      });
      if (it != idle.end()) {
        frame_ = std::move(*it);
        idle.erase(it);
      }
    }
    if (frame_) {
      frame_->refresh();
    } else {
      frame_ = std::make_unique<Frame>(planned_.plan, device);
    }
    frame_->last_user = me;
  }
  ~BorrowedFrame() {
    for (Tensor& t : frame_->arguments) t = Tensor();
    for (Tensor& t : frame_->compact) t = Tensor();
    for (Tensor& t : frame_->new_values) t = Tensor();
    for (Storage& s : frame_->output_storages) s = Storage();
    const std::lock_guard guard(impl_.mutex_);
    planned_.idle.push_back(std::move(frame_));  // never reallocates: see make_planned
  }
  BorrowedFrame(const BorrowedFrame&) = delete;
  BorrowedFrame& operator=(const BorrowedFrame&) = delete;
  Frame& operator*() { return *frame_; }

 private:
  const Impl& impl_;
  Planned& planned_;
  std::unique_ptr<Frame> frame_;
};

Function::Impl::Impl(std::vector<In> inputs, std::vector<Out> outputs, FunctionGraph graph,
                     std::vector<std::shared_ptr<Container>> containers, std::vector<int> updated,
                     std::string name)
    : inputs_(std::move(inputs)),
      outputs_(std::move(outputs)),
      graph_(std::move(graph)),
      containers_(std::move(containers)),
      updated_(std::move(updated)),
      lock_order_(containers_.size()),
      is_updated_(containers_.size(), false),
      name_(std::move(name)) {
  std::iota(lock_order_.begin(), lock_order_.end(), std::size_t{0});
  std::sort(lock_order_.begin(), lock_order_.end(), [&](std::size_t a, std::size_t b) {
    return containers_[a]->id() < containers_[b]->id();
  });
  for (int c : updated_) is_updated_[at(c)] = true;
  for (const Variable& v : graph_.inputs()) overwritten_.push_back(!graph_.destroyers(v).empty());
}

std::string Function::Impl::who(std::size_t argument) const {
  const In& in = inputs_[argument];
  const std::string& given = in.options.name.empty() ? in.variable.name() : in.options.name;
  return "[" + (name_.empty() ? std::string("function") : name_) + "] argument " +
         std::to_string(argument) + (given.empty() ? "" : " '" + given + "'") + ": ";
}

// The value as the steps may use it: of the input's type, and private where it will be overwritten
// although others can see it.
Tensor Function::Impl::filtered(const Tensor& value, std::size_t argument) const {
  const TensorType& type = inputs_[argument].variable.type();
  if (!value.defined()) throw TypeError(who(argument) + "got an undefined tensor");
  if (value.device() != type.device) {
    throw DeviceError(who(argument) + "device: got " + value.device().str() + ", expected " +
                      type.device.str());
  }
  if (!type.admits(value.shape())) {
    throw ShapeError(who(argument) + "got shape " + to_string(value.shape()) + ", expected " +
                     type.str());
  }
  if (value.dtype() != type.dtype) {
    if (!converts_exactly(value.dtype(), type.dtype)) {
      throw DTypeError(who(argument) + "got " + std::string(name_of(value.dtype())) +
                       ", expected " + std::string(name_of(type.dtype)) + ". Try to(dtype)");
    }
    return value.to(type.dtype);
  }
  if (!overwritten_[argument]) return value;
  const StorageState state = value.storage().state();
  const bool is_private = (state == StorageState::owned || state == StorageState::pinned ||
                           state == StorageState::foreign_writable) &&
                          !has_internal_overlap(value);
  return is_private ? value : value.clone();
}

const Tensor& Function::Impl::input_tensor(std::span<const Tensor> arguments, std::size_t i) const {
  return i < arguments.size() ? arguments[i] : containers_[i - arguments.size()]->held_value();
}

// The caller holds mutex_.
Function::Impl::Planned& Function::Impl::make_planned(std::vector<Layout> signature) const {
  PlanRequest request;
  request.graph = &graph_;
  request.n_arguments = inputs_.size();
  request.n_results = outputs_.size();
  for (const Out& out : outputs_) request.borrowed.push_back(out.options.borrow);
  request.updated = updated_;
  request.input_layouts = signature;
  Planned made{std::move(signature), make_plan(request), {}};
  made.idle.reserve(64);
  return planned_.emplace_back(std::move(made));
}

Function::Impl::Planned& Function::Impl::planned_for(std::span<const Tensor> arguments) const {
  const std::lock_guard guard(mutex_);
  const std::size_t n = graph_.inputs().size();
  for (Planned& planned : planned_) {
    bool fits = true;
    for (std::size_t i = 0; i < n && fits; ++i) {
      fits = has_layout(input_tensor(arguments, i), planned.signature[i]);
    }
    if (fits) return planned;
  }
  std::vector<Layout> signature;
  for (std::size_t i = 0; i < n; ++i) signature.push_back(layout_of(input_tensor(arguments, i)));
  return make_planned(std::move(signature));
}

Device Function::Impl::device_of(std::span<const Tensor> arguments) const {
  if (graph_.inputs().empty()) return {};
  const Device device = input_tensor(arguments, 0).device();
  for (std::size_t i = 1; i < graph_.inputs().size(); ++i) {
    const Device other = input_tensor(arguments, i).device();
    if (other != device) {
      throw DeviceError("[" + (name_.empty() ? std::string("function") : name_) +
                        "] device: " + graph_.inputs()[i].str() + " is on " + other.str() +
                        ", but " + graph_.inputs()[0].str() + " is on " + device.str());
    }
  }
  return device;
}

void Function::Impl::call(std::span<const Tensor> arguments, std::span<Tensor> results,
                          CallReport* report) const {
  if (results.size() != outputs_.size()) {
    throw TypeError("[call] room for " + std::to_string(results.size()) + " results, expected " +
                    std::to_string(outputs_.size()));
  }
  execute(arguments, results, {}, report);
}

void Function::Impl::call_into(std::span<const Tensor> arguments,
                               std::span<Tensor> destinations) const {
  if (destinations.size() != outputs_.size()) {
    throw TypeError("[call_into] got " + std::to_string(destinations.size()) +
                    " destinations, expected " + std::to_string(outputs_.size()));
  }
  std::vector<Tensor> results(outputs_.size());
  execute(arguments, results, destinations, nullptr);
}

void Function::Impl::execute(std::span<const Tensor> arguments, std::span<Tensor> results,
                             std::span<Tensor> destinations, CallReport* report) const {
  if (arguments.size() != inputs_.size()) {
    throw TypeError("[" + (name_.empty() ? std::string("function") : name_) + "] got " +
                    std::to_string(arguments.size()) + " arguments, expected " +
                    std::to_string(inputs_.size()));
  }
  CallReport local;
  std::vector<Tensor> changed;  // only when the filter changes an argument
  std::span<const Tensor> used = arguments;
  const auto replace = [&](std::size_t i, Tensor with) {
    if (changed.empty()) {
      changed.assign(arguments.begin(), arguments.end());
      used = changed;
    }
    local.entry_copy_bytes += with.nbytes();
    changed[i] = std::move(with);
  };
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    Tensor value = filtered(arguments[i], i);
    if (!shares_storage(value, arguments[i])) replace(i, std::move(value));
  }
  // A lent argument that another value overlaps would be overwritten under that value's readers.
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (!overwritten_[i]) continue;
    for (std::size_t j = 0; j < arguments.size(); ++j) {
      const bool first_of_two = overwritten_[j] && j > i;
      if (j == i || first_of_two || !overlaps(used[i], used[j])) continue;
      replace(i, used[i].clone());
      break;
    }
  }
  const ContainerLocks locks(*this);
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    for (const auto& container : containers_) {
      const bool writes = overwritten_[i];
      if (writes && overlaps(used[i], container->held_value())) replace(i, used[i].clone());
    }
  }
  Planned& planned = planned_for(used);
  BorrowedFrame frame(*this, planned, device_of(used));
  std::copy(used.begin(), used.end(), (*frame).arguments.begin());
  run_locked(planned, *frame, results, destinations, &local);
  if (report) *report = local;
}

void Function::Impl::run_locked(Planned& planned, Frame& frame, std::span<Tensor> results,
                                std::span<Tensor> destinations, CallReport* report) const {
  const Plan& plan = planned.plan;
  bind_inputs(plan, frame, &report->entry_copy_bytes);
  const index_t allocated = bind_outputs(plan, frame, destinations);
  report->peak_bytes = frame.bytes() + allocated + report->entry_copy_bytes;
  frame.bind();
  frame.run();
  for (std::size_t i = 0; i < results.size(); ++i) {
    Tensor value = delivered(plan, frame, plan.outputs[i], frame.compact[i], static_cast<int>(i));
    if (!destinations.empty()) {
      if (!shares_storage(value, destinations[i])) destinations[i].copy_from(value);
    } else {
      results[i] = std::move(value);
    }
  }
  commit(plan, frame);
}

// Points the buffers of arguments, containers and constants at their memory.
void Function::Impl::bind_inputs(const Plan& plan, Frame& frame, index_t* copied) const {
  const std::size_t n_arguments = inputs_.size();
  for (std::size_t b = 0; b < plan.buffers.size(); ++b) {
    const PlannedBuffer& buffer = plan.buffers[b];
    const void* base = nullptr;
    if (buffer.kind == BufferKind::argument) {
      Tensor& value = frame.arguments[at(buffer.index)];
      base = overwritten_[at(buffer.index)] ? value.raw_mutable_data() : value.raw_data();
    } else if (buffer.kind == BufferKind::container) {
      Tensor& value = containers_[at(buffer.index)]->held_value();
      if (overwritten_[n_arguments + at(buffer.index)]) {
        if (value.is_shared()) *copied += static_cast<index_t>(value.storage().nbytes());
        base = value.raw_mutable_data();
      } else {
        base = std::as_const(value).raw_data();
      }
    } else if (buffer.kind == BufferKind::constant) {
      base = plan.constants[at(buffer.index)].constant_value().raw_data();
    } else {
      continue;
    }
    frame.bases()[b] = static_cast<std::byte*>(const_cast<void*>(base));
  }
}

// Allocates what the caller will own; returns its bytes. A destination is used directly where
// nothing that the call reads can lie in it.
index_t Function::Impl::bind_outputs(const Plan& plan, Frame& frame,
                                     std::span<Tensor> destinations) const {
  index_t allocated = 0;
  const auto allocate = [&](index_t bytes, Device device) {
    allocated += bytes;
    return Storage::allocate(static_cast<std::size_t>(bytes), device, "output");
  };
  const auto usable = [&](const Tensor& t, const Layout& layout) {
    if (!t.is_contiguous() || !layout.is_dense() || layout.byte_offset != 0) return false;
    const auto meets = [&](const Tensor& other) { return may_share_memory(t, other); };
    return std::none_of(frame.arguments.begin(), frame.arguments.end(), meets) &&
           std::none_of(destinations.begin(), destinations.end(),
                        [&](const Tensor& other) { return &other != &t && meets(other); }) &&
           std::none_of(containers_.begin(), containers_.end(),
                        [&](const auto& c) { return meets(c->held_value()); });
  };
  for (std::size_t i = 0; i < destinations.size(); ++i) check_destination(plan, destinations[i], i);
  for (std::size_t b = 0; b < plan.buffers.size(); ++b) {
    const PlannedBuffer& buffer = plan.buffers[b];
    if (buffer.kind != BufferKind::output) continue;
    const std::size_t i = at(buffer.index);
    const Layout& layout = plan.slots[at(plan.outputs[i].slot)].layout;
    if (!destinations.empty() && usable(destinations[i], layout)) {
      frame.bases()[b] = static_cast<std::byte*>(destinations[i].raw_overwrite_data());
      frame.output_storages[i] = destinations[i].storage();
      continue;
    }
    frame.output_storages[i] = allocate(buffer.bytes, frame.device());
    frame.bases()[b] = frame.output_storages[i].overwrite_data();
  }
  const auto prepare = [&](const Delivery& delivery, Tensor& compact) {
    if (!delivery.compact) return;
    const Layout& layout = plan.slots[at(delivery.slot)].layout;
    compact = Tensor::empty(layout.extents, layout.dtype, frame.device(), "output");
    allocated += compact.nbytes();
  };
  for (std::size_t i = 0; i < plan.outputs.size(); ++i) prepare(plan.outputs[i], frame.compact[i]);
  for (std::size_t u = 0; u < plan.updates.size(); ++u) {
    prepare(plan.updates[u], frame.compact[plan.outputs.size() + u]);
  }
  return allocated;
}

void Function::Impl::check_destination(const Plan& plan, const Tensor& destination,
                                       std::size_t i) const {
  const Layout& layout = plan.slots[at(plan.outputs[i].slot)].layout;
  const std::string prefix = "[call_into] destination " + std::to_string(i) + ": got ";
  if (destination.dtype() != layout.dtype) {
    throw DTypeError(prefix + std::string(name_of(destination.dtype())) + ", expected " +
                     std::string(name_of(layout.dtype)));
  }
  if (destination.shape() != layout.extents) {
    throw ShapeError(prefix + "shape " + to_string(destination.shape()) + ", expected " +
                     to_string(layout.extents));
  }
  if (has_internal_overlap(destination)) {
    throw AliasError("[call_into] destination " + std::to_string(i) +
                     " has elements that overlap one another");
  }
}

// The value of an output or update after the steps have run, independent of everything else unless
// it is borrowed.
Tensor Function::Impl::delivered(const Plan& plan, Frame& frame, const Delivery& delivery,
                                 Tensor& compact, int result) const {
  const Slot& slot = plan.slots[at(delivery.slot)];
  const PlannedBuffer& buffer = plan.buffers[at(slot.buffer)];
  Tensor value;
  bool is_own = false;
  switch (buffer.kind) {
    case BufferKind::arena:
      value = tensor_on(frame.arena(), slot.layout, buffer.offset);
      is_own = result >= 0;  // borrowed: it stays in the arena
      break;
    case BufferKind::output:
      value = tensor_within_storage(frame, buffer, slot.layout);
      is_own = result == buffer.index;
      break;
    case BufferKind::update:
      value = tensor_on(frame.update_storage(buffer.index), slot.layout, 0);
      break;
    case BufferKind::argument:
      value = tensor_within(frame.arguments[at(buffer.index)], slot.layout);
      break;
    case BufferKind::container:
      value = tensor_within(containers_[at(buffer.index)]->held_value(), slot.layout);
      break;
    case BufferKind::constant:
      value = tensor_within(plan.constants[at(buffer.index)].constant_value(), slot.layout);
      break;
  }
  if (delivery.compact) {
    compact.copy_from(value);
    return std::move(compact);
  }
  return is_own ? value : value.lazy_clone();
}

// Results lie at the start of their storage, except in a destination of the caller.
Tensor Function::Impl::tensor_within_storage(Frame& frame, const PlannedBuffer& buffer,
                                             const Layout& layout) const {
  const Storage& storage = frame.output_storages[at(buffer.index)];
  const std::size_t b = static_cast<std::size_t>(&buffer - frame.plan().buffers.data());
  return tensor_on(storage, layout, frame.bases()[b] - storage.data());
}

// First all new values, then the exchange, which cannot fail: everything is computed from the old
// values. An in-place update has happened already.
void Function::Impl::commit(const Plan& plan, Frame& frame) const {
  const std::size_t n_outputs = plan.outputs.size();
  const auto kind_of = [&](std::size_t u) -> const PlannedBuffer& {
    return plan.buffers[at(plan.slots[at(plan.updates[u].slot)].buffer)];
  };
  const auto is_in_place = [&](std::size_t u) {
    return !plan.updates[u].compact && kind_of(u).kind == BufferKind::container &&
           kind_of(u).index == updated_[u];
  };
  const auto is_exchanged = [&](std::size_t u) {
    return !plan.updates[u].compact && kind_of(u).kind == BufferKind::update &&
           kind_of(u).index == static_cast<int>(u);
  };
  for (std::size_t u = 0; u < updated_.size(); ++u) {
    if (is_in_place(u)) continue;
    if (is_exchanged(u)) {
      const Slot& slot = plan.slots[at(plan.updates[u].slot)];
      frame.new_values[u] = tensor_on(frame.update_storage(static_cast<int>(u)), slot.layout, 0);
    } else {
      frame.new_values[u] =
          delivered(plan, frame, plan.updates[u], frame.compact[n_outputs + u], -1);
    }
  }
  for (std::size_t u = 0; u < updated_.size(); ++u) {
    Container& container = *containers_[at(updated_[u])];
    if (is_in_place(u)) {
      Tensor same = container.held_value();
      container.commit(std::move(same));
      continue;
    }
    Storage old = container.held_value().storage();
    container.commit(std::move(frame.new_values[u]));
    if (!is_exchanged(u)) continue;
    Storage& spare = frame.update_storage(static_cast<int>(u));
    spare = Storage();
    const bool reusable = old.use_count() == 1 && old.state() == StorageState::owned &&
                          old.nbytes() == static_cast<std::size_t>(kind_of(u).bytes);
    if (reusable) spare = std::move(old);
  }
}

const Plan& Function::Impl::plan(std::span<const Tensor> arguments) const {
  if (arguments.size() != inputs_.size()) {
    throw TypeError("[plan] got " + std::to_string(arguments.size()) + " arguments, expected " +
                    std::to_string(inputs_.size()));
  }
  std::vector<Tensor> used;
  for (std::size_t i = 0; i < arguments.size(); ++i) used.push_back(filtered(arguments[i], i));
  const ContainerLocks locks(*this);
  return planned_for(used).plan;
}

const Plan& Function::Impl::plan(std::span<const TensorType> arguments) const {
  if (arguments.size() != inputs_.size()) {
    throw TypeError("[plan] got " + std::to_string(arguments.size()) + " types, expected " +
                    std::to_string(inputs_.size()));
  }
  std::vector<Layout> signature;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const TensorType& type = arguments[i];
    if (!type.is_fully_known() || !inputs_[i].variable.type().is_super(type)) {
      throw ShapeError(who(i) + "got " + type.str() + ", expected a fully known " +
                       inputs_[i].variable.type().str());
    }
    signature.push_back(Layout::dense(type.dtype, type.shape));
  }
  const ContainerLocks locks(*this);
  for (const auto& container : containers_) {
    signature.push_back(layout_of(container->held_value()));
  }
  const std::lock_guard guard(mutex_);
  for (Planned& planned : planned_) {
    if (planned.signature == signature) return planned.plan;
  }
  return make_planned(std::move(signature)).plan;
}

void Function::Impl::prepare(std::span<const Tensor> arguments) const {
  if (arguments.size() != inputs_.size()) {
    throw TypeError("[prepare] got " + std::to_string(arguments.size()) + " arguments, expected " +
                    std::to_string(inputs_.size()));
  }
  std::vector<Tensor> used;
  for (std::size_t i = 0; i < arguments.size(); ++i) used.push_back(filtered(arguments[i], i));
  const ContainerLocks locks(*this);
  const BorrowedFrame frame(*this, planned_for(used), device_of(used));
}

void Function::Impl::free() const {
  std::vector<std::unique_ptr<Frame>> released;
  const std::lock_guard guard(mutex_);
  for (Planned& planned : planned_) {
    for (auto& frame : planned.idle) released.push_back(std::move(frame));
    planned.idle.clear();
  }
}

}  // namespace palimpsest
