// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/run/frame.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <limits>
#include <mutex>
#include <numeric>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "palimpsest/base/config.hpp"
#include "palimpsest/base/fork.hpp"
#include "palimpsest/base/interrupt.hpp"
#include "palimpsest/base/stop_watch.hpp"
#include "palimpsest/graph/collective.hpp"
#include "palimpsest/kernels/pool/task_graph.hpp"
#include "palimpsest/memory/device_copy.hpp"
#include "palimpsest/memory/file_pages.hpp"
#include "palimpsest/memory/lent_memory.hpp"
#include "palimpsest/plan/notes.hpp"
#include "palimpsest/plan/position.hpp"
#include "palimpsest/run/device_step.hpp"
#include "palimpsest/run/loop_frame.hpp"
#include "palimpsest/run/profiler.hpp"
#include "palimpsest/run/recorder.hpp"
#include "palimpsest/tensor/reach.hpp"

namespace palimpsest {
namespace {

// From the lowest to the highest byte of a view.
std::pair<const std::byte*, std::size_t> bytes_read(const ConstView& view) {
  const ReachedRange range = reached_range(view.extents, view.strides);
  const auto item = static_cast<index_t>(item_size(view.dtype));
  return {static_cast<const std::byte*>(view.data) + range.low * item,
          static_cast<std::size_t>((range.high - range.low) * item)};
}

// Adds the seconds that a step takes to those of the step; those of the body of a loop are added to
// the body's steps, which come after the plan's.
template <class Step>
void run_timed(const Step& step, const Plan& plan, std::size_t i, double* seconds) {
  std::span<double> inner;
  if (step.loop) {
    std::size_t first = plan.steps.size();
    for (std::size_t k = 0; k < i; ++k) {
      if (plan.steps[k].loop) first += measured_steps(plan.steps[k].loop->body);
    }
    inner = {seconds + first, measured_steps(plan.steps[i].loop->body)};
    step.loop->measure_into(inner.data());
  }
  const auto sum = [&] { return std::accumulate(inner.begin(), inner.end(), 0.0); };
  const double before = sum();
  const StopWatch watch;
  step.run();
  const double time = watch.seconds();
  seconds[i] += std::max(0.0, time - (sum() - before));
  if (step.loop) step.loop->measure_into(nullptr);
}

constexpr int kNoRank = std::numeric_limits<int>::max(), kLastRank = kNoRank - 1;

bool writes_user_memory(const Plan& plan, const PlannedStep& step) {
  const AliasMap views = step.node.op().view_map(step.node);
  for (std::size_t k = 0; k < step.outputs.size(); ++k) {
    if (views.contains(static_cast<int>(k))) continue;
    const BufferKind kind = plan.buffers[at(plan.slots[at(step.outputs[k])].buffer)].kind;
    if (kind == BufferKind::container || kind == BufferKind::argument) return true;
  }
  return false;
}

// The rank of each step in the graph: after all steps that it needs, inputs in their order. Steps
// that write memory of the user come last, because a failed call must leave it unchanged.
std::vector<int> ranks_of(const Plan& plan) {
  std::vector<Variable> all, results;
  for (const PlannedStep& step : plan.steps) all.push_back(step.node.output(0));
  std::unordered_set<const ApplyNode*> is_needed;
  for (const Apply& node : applications_of(all)) {
    for (const Variable& v : node.inputs()) is_needed.insert(v.owner().node());
  }
  for (const PlannedStep& step : plan.steps) {
    if (!is_needed.contains(step.node.node())) results.push_back(step.node.output(0));
  }
  std::unordered_map<const ApplyNode*, int> positions;
  for (const Apply& node : applications_of(results)) {
    positions.emplace(node.node(), static_cast<int>(positions.size()));
  }
  std::vector<int> ranks;
  for (const PlannedStep& step : plan.steps) {
    ranks.push_back(writes_user_memory(plan, step) ? kLastRank : positions.at(step.node.node()));
  }
  return ranks;
}

std::span<std::byte> bytes_to_overwrite(Storage& storage) {
  return {storage.overwrite_data(), storage.nbytes()};
}

}  // namespace

Frame::Frame(const Plan& plan, Device device, Arena arena) : Frame(plan, device, arena, nullptr) {}

Frame::Frame(const Plan& plan, Device device, const Frame& other)
    : Frame(plan, device, Arena::own, &other.arenas_.front()) {}

Frame::Frame(const Plan& plan, Device device, Arena arena, const Storage* shared_arena)
    : plan_(plan), device_(device), bases_(plan.buffers.size(), nullptr) {
  const auto is_arena = [](const PlannedBuffer& b) { return b.kind == BufferKind::arena; };
  if (arena == Arena::own && std::any_of(plan.buffers.begin(), plan.buffers.end(), is_arena)) {
    if (shared_arena != nullptr) {
      arenas_.push_back(*shared_arena);
      arenas_.back().claim();
    } else if (plan.arenas.empty()) {
      add_arena(plan.arena_bytes, device);
    }
    for (const PlannedArena& planned : plan.arenas) add_arena(planned.bytes, planned.device);
  }
  for (std::size_t b = 0; b < plan.buffers.size(); ++b) {
    if (plan.buffers[b].kind == BufferKind::arena) arena_buffers_.push_back(b);
    if (plan.buffers[b].kind == BufferKind::update) update_buffers_.push_back(b);
  }
  updates_.resize(plan.updates.size());
  output_storages.resize(plan.outputs.size());
  copies_.resize(plan.outputs.size() + plan.updates.size());
  delivered_.resize(plan.outputs.size() + plan.updates.size());
  moved.resize(plan.outputs.size());
  const auto add_operand = [&](int slot) {
    const Slot& s = plan.slots[at(slot)];
    operands_.push_back({s.buffer, s.layout.byte_offset});
  };
  for (const PlannedStep& planned : plan.steps) {
    Step step{&planned.node.op(), {}, {}, {}, planned.guard};
    // Arguments of the body of a loop are memory of the loop.
    step.writes_user_memory = arena == Arena::own && writes_user_memory(plan, planned);
    step.on_device = step_executor(plan, planned);
    // A loop runs where its operands are copied to.
    const Device loops_on = step.on_device ? Device{} : device;
    if (planned.loop) step.loop = std::make_shared<LoopFrame>(*planned.loop, loops_on);
    for (int slot : planned.inputs) {
      const Layout& layout = plan.slots[at(slot)].layout;
      step.inputs.push_back({nullptr, layout.dtype, layout.extents, layout.strides});
      add_operand(slot);
    }
    for (int slot : planned.outputs) {
      const Layout& layout = plan.slots[at(slot)].layout;
      step.outputs.push_back({nullptr, layout.dtype, layout.extents, layout.strides});
      add_operand(slot);
    }
    steps_.push_back(std::move(step));
  }
  for (const PlannedGuard& guard : plan.guards) {
    const Slot& slot = plan.slots[at(guard.condition)];
    guards_.push_back(
        {nullptr, device_of(plan.buffers[at(slot.buffer)]), guard.when, guard.parent});
  }
  if (plan.lanes > 1) {
    std::vector<std::vector<int>> waits_for;
    std::vector<bool> is_small;
    for (const PlannedStep& planned : plan.steps) {
      waits_for.push_back(planned.waits_for);
      is_small.push_back(planned.work < plan.parallel_grain);
    }
    tasks_ = std::make_unique<TaskGraph>(waits_for, is_small);
    ranks_ = ranks_of(plan);
  }
  if (arena == Arena::own) {
    collective_ = first_collective(plan);
    recorder_ = recorder();
  }
  refresh();
}

// Borrowed results may live longer, and are the caller's then.
Frame::~Frame() {
  for (Storage& arena : arenas_) arena.give_up_claim();
}

void Frame::add_arena(index_t bytes, Device device) {
  arenas_.push_back(Storage::allocate(static_cast<std::size_t>(bytes), device, "arena"));
  arenas_.back().claim();
}

bool Frame::is_reached_by(const Tensor& t) const {
  return std::any_of(arenas_.begin(), arenas_.end(),
                     [&](const Storage& arena) { return may_reach(t, arena); });
}

// Gives the frame a new arena for one whose address was handed out; the old one stays with its new
// owner.
void Frame::replace_pinned_arenas() {
  for (Storage& arena : arenas_) {
    if (arena.state() != StorageState::pinned) continue;
    Storage fresh = Storage::allocate(arena.nbytes(), arena.device(), "arena");
    fresh.claim();
    arena.give_up_claim();
    arena = std::move(fresh);
  }
}

std::size_t Frame::index_of(const PlannedBuffer& buffer) const {
  for (std::size_t a = 0; a < plan_.arenas.size(); ++a) {
    if (plan_.arenas[a].device == buffer.device) return a;
  }
  return 0;
}

void Frame::use_memory(std::size_t buffer, std::span<std::byte> memory) {
  const PlannedBuffer& planned = plan_.buffers[buffer];
  if (static_cast<index_t>(memory.size()) < planned.bytes) {
    throw InternalError("[call] the buffer '" + planned.name + "' needs " +
                        std::to_string(planned.bytes) + " bytes: got memory of " +
                        std::to_string(memory.size()));
  }
  bases_[buffer] = memory.data();
}

void Frame::use_arena(std::span<std::byte> arena, Device device) {
  for (std::size_t b : arena_buffers_) {
    const PlannedBuffer& buffer = plan_.buffers[b];
    if (!plan_.arenas.empty() && buffer.device != device) continue;
    const auto offset = static_cast<std::size_t>(buffer.offset);
    use_memory(b, arena.subspan(std::min(offset, arena.size())));
  }
}

void Frame::refresh() {
  replace_pinned_arenas();
  for (Storage& arena : arenas_) use_arena(bytes_to_overwrite(arena), arena.device());
  for (std::size_t b : update_buffers_) {
    const PlannedBuffer& buffer = plan_.buffers[b];
    Storage& storage = updates_[at(buffer.index)];
    if (!storage.defined()) {
      storage =
          Storage::allocate(static_cast<std::size_t>(buffer.bytes), device_of(buffer), "update");
    }
    use_memory(b, bytes_to_overwrite(storage));
  }
}

void Frame::bind() {
  const auto address = [&](const Operand& o) {
    std::byte* const base = bases_[at(o.buffer)];
    return base ? base + o.offset : nullptr;
  };
  const Operand* operand = operands_.data();
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    const PlannedStep& planned = plan_.steps[i];
    Step& step = steps_[i];
    for (ConstView& view : step.inputs) view.data = address(*operand++);
    for (MutableView& view : step.outputs) view.data = address(*operand++);
    if (planned.scratch >= 0) {
      const PlannedBuffer& buffer = plan_.buffers[at(planned.scratch)];
      step.scratch = {bases_[at(planned.scratch)], static_cast<std::size_t>(buffer.bytes)};
    }
    if (planned.host_scratch >= 0) {
      const PlannedBuffer& buffer = plan_.buffers[at(planned.host_scratch)];
      step.host_scratch = {bases_[at(planned.host_scratch)],
                           static_cast<std::size_t>(buffer.bytes)};
    }
  }
  for (std::size_t g = 0; g < guards_.size(); ++g) {
    const Slot& slot = plan_.slots[at(plan_.guards[g].condition)];
    guards_[g].condition =
        reinterpret_cast<const bool*>(address({slot.buffer, slot.layout.byte_offset}));
  }
  if (streams_files_) find_file_bytes();
}

void Frame::find_file_bytes() {
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    Step& step = steps_[i];
    step.file_bytes.clear();
    for (std::size_t k = 0; k < step.inputs.size(); ++k) {
      const BufferKind kind =
          plan_.buffers[at(plan_.slots[at(plan_.steps[i].inputs[k])].buffer)].kind;
      if (kind != BufferKind::container && kind != BufferKind::argument) continue;
      const auto [first, bytes] = bytes_read(step.inputs[k]);
      if (is_file_mapped(first, bytes)) step.file_bytes.emplace_back(first, bytes);
    }
  }
}

bool read_condition(Device device, const bool* where) {
  if (device.is_host()) return *where;
  bool value = false;
  copy_elements_on(device, {where, DType::bool_, {}, {}}, {}, {&value, DType::bool_, {}, {}});
  return value;
}

// The condition of a guard whose parent does not hold was never computed.
bool Frame::holds(int guard) const {
  constexpr std::size_t kUsualDepth = 16;
  SmallVector<int, kUsualDepth> around;
  for (; guard >= 0; guard = guards_[at(guard)].parent) around.push_back(guard);
  while (!around.empty()) {
    const Guard& g = guards_[at(around.back())];
    if (read_condition(g.device, g.condition) != g.when) return false;
    around.pop_back();
  }
  return true;
}

void Frame::Step::run() const {
  const auto compute = [this](RunContext& context) {
    if (loop) {
      loop->run(context, host_scratch);
    } else {
      op->run(context);
    }
    if (!context.set_outputs().empty()) context.take_set_outputs();
  };
  if (on_device) {
    on_device->run(*op, inputs, outputs, scratch, compute);
  } else {
    RunContext context(inputs, outputs, scratch);
    compute(context);
  }
  for (const auto& [first, bytes] : file_bytes) release_file_pages(first, bytes);
}

void Frame::run_step(std::size_t i, double* seconds) const {
  const Step& step = steps_[i];
  if (step.guard >= 0 && !holds(step.guard)) return;
  if (!seconds) return step.run();
  run_timed(step, plan_, i, seconds);
}

void Frame::run() const { run_measured({}); }

void Frame::run_measured(std::span<double> seconds) const {
  try {
    run_steps(seconds);
  } catch (...) {
    tell_other_processes();
    throw;
  }
}

void Frame::tell_other_processes() const noexcept {
  if (!collective_) return;
  try {
    throw;
  } catch (const std::exception& error) {
    collective_->abandon(error.what());
  } catch (...) {
    collective_->abandon("a step threw an object that is not an exception");
  }
}

void Frame::run_steps(std::span<double> seconds) const {
  if (tasks_) return run_lanes(seconds.data());
  if (seconds.empty() && recorder_ && replay()) return;
  std::optional<UninterruptedScope> last_part;
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    if (!last_part && steps_[i].writes_user_memory) last_part.emplace();
    check_interrupt();
    try {
      run_step(i, seconds.data());
    } catch (...) {
      finish_after(Failure{std::current_exception(), i}, seconds);
    }
  }
}

std::unique_ptr<Recorder> Frame::recorder() const {
  const auto is_launched = [](const Step& step) {
    return step.on_device && step.on_device->can_be_recorded() && step.guard < 0;
  };
  if (steps_.size() < 2 || !std::ranges::all_of(steps_, is_launched)) return nullptr;
  const auto device_of_step = [](const PlannedStep& step) {
    return step.node.output(0).type().device;
  };
  const Device device = device_of_step(plan_.steps[0]);
  const bool is_one = std::ranges::all_of(
      plan_.steps, [&](const PlannedStep& step) { return device_of_step(step) == device; });
  return is_one ? std::make_unique<Recorder>(device) : nullptr;
}

bool Frame::replay() const {
  if (!recorder_->is_of_use()) return false;
  check_interrupt();
  std::vector<BoundStep> steps;
  for (const Step& step : steps_) {
    steps.push_back({step.on_device.get(), step.inputs, step.outputs, step.scratch});
  }
  return recorder_->replay(steps);
}

void Frame::finish_after(Failure failure, std::span<double> seconds) const {
  // Other processes do not wait for the messages of these steps.
  if (collective_) rethrow(std::move(failure));
  const std::vector<int> ranks = ranks_of(plan_);
  for (std::size_t i = failure.step + 1; i < steps_.size(); ++i) {
    if (ranks[i] >= ranks[failure.step]) continue;
    try {
      run_step(i, seconds.data());
    } catch (...) {
      failure = {std::current_exception(), i};
    }
  }
  rethrow(std::move(failure));
}

// After an error the steps earlier in the graph still run; they need no later step. The later ones
// do not run. So the error is the same for any order and any number of lanes.
void Frame::run_lanes(double* seconds) const {
  const std::shared_ptr<const Config> config = shared_config();
  std::atomic<int> failed_rank{kNoRank};
  Mutex mutex;
  Failure failure;
  std::exception_ptr interrupt;
  bool is_last_part = false;
  const bool has_last_part = std::any_of(steps_.begin(), steps_.end(),
                                         [](const Step& step) { return step.writes_user_memory; });
  const auto may_start = [&](const Step& step) {
    if (!has_interrupt_check()) return true;
    const std::lock_guard guard(mutex);
    if (interrupt) return false;
    is_last_part = is_last_part || step.writes_user_memory;
    if (is_last_part) return true;
    try {
      check_interrupt();
      return true;
    } catch (...) {
      interrupt = std::current_exception();
      return false;
    }
  };
  tasks_->run([&](std::size_t i) {
    const int rank = ranks_[i];
    if (rank >= failed_rank.load() || !may_start(steps_[i])) return;
    const ConfigScope scope(config);
    std::optional<UninterruptedScope> whole_step;
    if (has_last_part) whole_step.emplace();  // another lane may be in it
    try {
      run_step(i, seconds);
    } catch (...) {
      const std::lock_guard guard(mutex);
      if (rank >= failed_rank.load()) return;
      failure = {std::current_exception(), i};
      failed_rank.store(rank);
    }
  });
  if (interrupt) std::rethrow_exception(interrupt);
  if (failure.error) rethrow(std::move(failure));
}

void Frame::rethrow(Failure failure) const {
  try {
    std::rethrow_exception(std::move(failure.error));
  } catch (...) {
    rethrow_from(failure.step);
  }
}

void Frame::run_watched(CallWatch& watch, CallMeasurement* measurement) const {
  const std::span<double> seconds = measurement ? measurement->steps(plan_) : std::span<double>();
  std::size_t i = 0;
  try {
    for (; i < steps_.size(); ++i) {
      const Step& step = steps_[i];
      if (step.guard >= 0 && !holds(step.guard)) continue;
      const StepAccess access{i, plan_.steps[i].node, step.inputs, step.outputs, step.scratch};
      if (measurement) measurement->pause();
      watch.before_step(access);
      if (measurement) measurement->resume();
      if (measurement) {
        run_timed(step, plan_, i, seconds.data());
        measurement->pause();
      } else {
        step.run();
      }
      watch.after_step(access);
      if (measurement) measurement->resume();
    }
  } catch (...) {
    tell_other_processes();
    rethrow_from(i);
  }
}

void Frame::share_lent_memory() const noexcept {
  for (const std::vector<Storage>* list : {&arenas_, &updates_, &output_storages}) {
    for (const Storage& storage : *list) LentMemory::share(storage);
  }
}

void Frame::rethrow_from(std::size_t step) const {
  share_lent_memory();
  std::vector<ConstView> shown(steps_[step].inputs);
  if (steps_[step].on_device) {  // the host cannot show them
    for (ConstView& view : shown) view.data = nullptr;
  }
  const std::string where = describe_step(plan_, step, shown);
  try {
    throw;
  } catch (Error& error) {
    error.add_note(where);
    throw;
  } catch (const std::exception& error) {
    std::throw_with_nested(OpError("[" + steps_[step].op->name() + "] step " +
                                   std::to_string(step) + " failed: " + error.what() + "\n  " +
                                   where));
  } catch (...) {
    std::throw_with_nested(OpError("[" + steps_[step].op->name() + "] step " +
                                   std::to_string(step) +
                                   " threw an object that is not an exception\n  " + where));
  }
}

void Frame::forget_call() noexcept {
  // Most are empty already, and asking costs less than emptying.
  const auto drop = [](auto& value) {
    if (value.defined()) value = {};
  };
  for (std::size_t i = least_used_; i < most_used_; ++i) {
    drop(copies_[i]);
    drop(delivered_[i]);
  }
  least_used_ = copies_.size();
  most_used_ = 0;
  for (Tensor& value : moved) drop(value);
  for (Storage& value : output_storages) drop(value);
}

bool Frame::has_arena_for(const Plan& plan, Device device) const {
  return plan.arenas.empty() && plan_.arenas.empty() && arenas_.size() == 1 && device == device_ &&
         static_cast<index_t>(arenas_.front().nbytes()) >= plan.arena_bytes;
}

index_t Frame::arena_bytes() const {
  std::size_t total = 0;
  for (const Storage& s : arenas_) total += s.nbytes();
  return static_cast<index_t>(total);
}

index_t Frame::bytes() const {
  auto total = static_cast<std::size_t>(arena_bytes());
  for (const Storage& s : updates_) total += s.defined() ? s.nbytes() : 0;
  return static_cast<index_t>(total);
}

}  // namespace palimpsest
