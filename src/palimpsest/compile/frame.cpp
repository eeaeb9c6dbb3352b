// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/compile/frame.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <mutex>
#include <string>

#include "palimpsest/base/config.hpp"
#include "palimpsest/compile/loop_plan.hpp"
#include "palimpsest/compile/notes.hpp"
#include "palimpsest/compile/profiler.hpp"
#include "palimpsest/kernels/task_graph.hpp"
#include "palimpsest/memory/file_pages.hpp"

namespace palimpsest {
namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }

// From the lowest to the highest byte of a view.
std::pair<const std::byte*, std::size_t> bytes_read(const ConstView& view) {
  const ReachedRange range = reached_range(view.extents, view.strides);
  const auto item = static_cast<index_t>(item_size(view.dtype));
  return {static_cast<const std::byte*>(view.data) + range.low * item,
          static_cast<std::size_t>((range.high - range.low) * item)};
}

}  // namespace

Frame::Frame(const Plan& plan, Device device, Arena arena)
    : plan_(plan), device_(device), bases_(plan.buffers.size(), nullptr) {
  const auto is_arena = [](const PlannedBuffer& b) { return b.kind == BufferKind::arena; };
  if (arena == Arena::own && std::any_of(plan.buffers.begin(), plan.buffers.end(), is_arena)) {
    if (plan.arenas.empty()) {
      arenas_.push_back(
          Storage::allocate(static_cast<std::size_t>(plan.arena_bytes), device, "arena"));
    }
    for (const PlannedArena& planned : plan.arenas) {
      arenas_.push_back(
          Storage::allocate(static_cast<std::size_t>(planned.bytes), planned.device, "arena"));
    }
  }
  updates_.resize(plan.updates.size());
  output_storages.resize(plan.outputs.size());
  copies.resize(plan.outputs.size() + plan.updates.size());
  delivered.resize(plan.outputs.size() + plan.updates.size());
  moved.resize(plan.outputs.size());
  for (const PlannedStep& planned : plan.steps) {
    Step step{&planned.node.op(), {}, {}, {}, planned.guard};
    if (planned.loop) step.loop = std::make_shared<LoopFrame>(*planned.loop, device);
    for (int slot : planned.inputs) {
      const Layout& layout = plan.slots[at(slot)].layout;
      step.inputs.push_back({nullptr, layout.dtype, layout.extents, layout.strides});
    }
    for (int slot : planned.outputs) {
      const Layout& layout = plan.slots[at(slot)].layout;
      step.outputs.push_back({nullptr, layout.dtype, layout.extents, layout.strides});
    }
    steps_.push_back(std::move(step));
  }
  for (const PlannedGuard& guard : plan.guards) {
    guards_.push_back({nullptr, guard.when, guard.parent});
  }
  if (plan.lanes > 1) {
    std::vector<std::vector<int>> waits_for;
    std::vector<bool> is_small;
    for (const PlannedStep& planned : plan.steps) {
      waits_for.push_back(planned.waits_for);
      is_small.push_back(planned.work < plan.parallel_grain);
    }
    tasks_ = std::make_unique<TaskGraph>(waits_for, is_small);
  }
  refresh();
}

Frame::~Frame() = default;

std::size_t Frame::index_of(const PlannedBuffer& buffer) const {
  for (std::size_t a = 0; a < plan_.arenas.size(); ++a) {
    if (plan_.arenas[a].device == buffer.device) return a;
  }
  return 0;
}

void Frame::use_arena(std::byte* arena) {
  for (std::size_t b = 0; b < plan_.buffers.size(); ++b) {
    const PlannedBuffer& buffer = plan_.buffers[b];
    if (buffer.kind == BufferKind::arena) bases_[b] = arena ? arena + buffer.offset : nullptr;
  }
}

void Frame::refresh() {
  if (plan_.arenas.empty()) use_arena(arenas_.empty() ? nullptr : arenas_[0].overwrite_data());
  for (std::size_t b = 0; b < plan_.buffers.size(); ++b) {
    const PlannedBuffer& buffer = plan_.buffers[b];
    if (buffer.kind == BufferKind::arena && !plan_.arenas.empty()) {
      bases_[b] = arenas_[index_of(buffer)].overwrite_data() + buffer.offset;
    }
    if (buffer.kind == BufferKind::update) {
      Storage& storage = updates_[at(buffer.index)];
      if (!storage.defined()) {
        storage =
            Storage::allocate(static_cast<std::size_t>(buffer.bytes), device_of(buffer), "update");
      }
      bases_[b] = storage.overwrite_data();
    }
  }
}

void Frame::bind() {
  const auto address = [&](int slot) {
    const Slot& s = plan_.slots[at(slot)];
    std::byte* base = bases_[at(s.buffer)];
    return base ? base + s.layout.byte_offset : nullptr;
  };
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    const PlannedStep& planned = plan_.steps[i];
    Step& step = steps_[i];
    for (std::size_t k = 0; k < step.inputs.size(); ++k) {
      step.inputs[k].data = address(planned.inputs[k]);
    }
    for (std::size_t k = 0; k < step.outputs.size(); ++k) {
      step.outputs[k].data = address(planned.outputs[k]);
    }
    if (planned.scratch >= 0) {
      const PlannedBuffer& buffer = plan_.buffers[at(planned.scratch)];
      step.scratch = {bases_[at(planned.scratch)], static_cast<std::size_t>(buffer.bytes)};
    }
  }
  for (std::size_t g = 0; g < guards_.size(); ++g) {
    guards_[g].condition = reinterpret_cast<const bool*>(address(plan_.guards[g].condition));
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

// The condition of a guard whose parent does not hold was never computed.
bool Frame::holds(int guard) const {
  const Guard& g = guards_[at(guard)];
  return (g.parent < 0 || holds(g.parent)) && *g.condition == g.when;
}

void Frame::Step::run() const {
  RunContext context(inputs, outputs, scratch);
  if (loop) {
    loop->run(context);
  } else {
    op->run(context);
  }
  if (!context.set_outputs().empty()) context.take_set_outputs();
  for (const auto& [first, bytes] : file_bytes) release_file_pages(first, bytes);
}

void Frame::run_step(std::size_t i, double* seconds) const {
  const Step& step = steps_[i];
  if (step.guard >= 0 && !holds(step.guard)) return;
  if (!seconds) return step.run();
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  step.run();
  seconds[i] += std::chrono::duration<double>(Clock::now() - start).count();
}

void Frame::run() const { run_measured({}); }

void Frame::run_measured(std::span<double> seconds) const {
  if (tasks_) return run_lanes(seconds.data());
  std::size_t i = 0;
  try {
    for (; i < steps_.size(); ++i) run_step(i, seconds.data());
  } catch (...) {
    rethrow_from(i);
  }
}

// After an error the steps before the one that failed still run, so that the error is that which
// one thread would have met first; those after it do not.
void Frame::run_lanes(double* seconds) const {
  const std::shared_ptr<const Config> config = shared_config();
  std::atomic<std::size_t> failed{steps_.size()};
  std::mutex mutex;
  std::exception_ptr error;  // of that step
  tasks_->run([&](std::size_t i) {
    if (i > failed.load()) return;
    const ConfigScope scope(config);
    try {
      run_step(i, seconds);
    } catch (...) {
      const std::lock_guard guard(mutex);
      if (i > failed.load()) return;
      error = std::current_exception();
      failed.store(i);
    }
  });
  if (!error) return;
  try {
    std::rethrow_exception(std::move(error));
  } catch (...) {
    rethrow_from(failed.load());
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
      using Clock = std::chrono::steady_clock;
      const Clock::time_point start = Clock::now();
      step.run();
      if (measurement) {
        seconds[i] += std::chrono::duration<double>(Clock::now() - start).count();
        measurement->pause();
      }
      watch.after_step(access);
      if (measurement) measurement->resume();
    }
  } catch (...) {
    rethrow_from(i);
  }
}

void Frame::rethrow_from(std::size_t step) const {
  const std::string where = describe_step(plan_, step, steps_[step].inputs);
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
                                   std::to_string(step) + " threw what is no exception\n  " +
                                   where));
  }
}

void Frame::forget_call() noexcept {
  // Most are empty already, and asking costs less than emptying.
  const auto drop = [](auto& list) {
    for (auto& value : list) {
      if (value.defined()) value = {};
    }
  };
  drop(copies);
  drop(moved);
  drop(delivered);
  drop(output_storages);
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
