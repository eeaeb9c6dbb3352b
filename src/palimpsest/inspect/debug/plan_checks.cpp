// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/inspect/debug/plan_checks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "palimpsest/inspect/debug/isolated_step.hpp"
#include "palimpsest/memory/thread_allocations.hpp"
#include "palimpsest/plan/position.hpp"
#include "palimpsest/run/frame.hpp"
#include "palimpsest/run/program.hpp"

namespace palimpsest {
namespace {

constexpr std::byte kDeadMemory{0xFB};

bool in_arena(const PlannedBuffer& b) { return b.kind == BufferKind::arena && b.bytes > 0; }
bool live_together(const PlannedBuffer& a, const PlannedBuffer& b) {
  return a.first_step <= b.last_step && b.first_step <= a.last_step;
}
bool share_bytes(const PlannedBuffer& a, const PlannedBuffer& b) {
  return a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
}

std::string buffer_text(const Plan& plan, std::size_t b) {
  const PlannedBuffer& buffer = plan.buffers[b];
  std::string text =
      fmt::format("buffer {} '{}' ({}, {} bytes, steps {}..{}", b, buffer.name,
                  name_of(buffer.kind), buffer.bytes, buffer.first_step, buffer.last_step);
  if (in_arena(buffer)) {
    text += fmt::format(", arena bytes {}..{}", buffer.offset, buffer.offset + buffer.bytes - 1);
  }
  return text + ")";
}

std::string step_text(const Plan& plan, int step) {
  return step >= 0 ? fmt::format("step {}: {}", step, plan.steps[at(step)].node.op().name())
                   : std::string("before the first step");
}

[[noreturn]] void fail_plan(const std::string& text, DebugModeError::Facts facts = {}) {
  throw BadPlan("[DebugMode: BadPlan] " + text +
                    "\n  Hint: this is a fault of the planner or of an op that writes into "
                    "memory that is not its own.",
                std::move(facts));
}

void check_life(const Plan& plan, std::size_t step, int slot) {
  const std::size_t b = at(plan.slots[at(slot)].buffer);
  const PlannedBuffer& buffer = plan.buffers[b];
  const int now = static_cast<int>(step);
  if (buffer.first_step <= now && now <= buffer.last_step) return;
  fail_plan(fmt::format("{} (step {}) uses {} outside of its life",
                        plan.steps[step].node.op().name(), step, buffer_text(plan, b)),
            {{}, plan.steps[step].node, {}, -1, -1});
}

index_t sum_of(const Plan& plan, BufferKind kind) {
  index_t sum = 0;
  for (const PlannedBuffer& b : plan.buffers) sum += b.kind == kind ? b.bytes : 0;
  return sum;
}

}  // namespace

void check_placement(const Plan& plan) {
  for (std::size_t a = 0; a < plan.buffers.size(); ++a) {
    const PlannedBuffer& one = plan.buffers[a];
    if (!in_arena(one)) continue;
    if (one.offset < 0 || one.offset + one.bytes > plan.arena_bytes) {
      fail_plan(fmt::format("{} does not lie in the arena of {} bytes", buffer_text(plan, a),
                            plan.arena_bytes));
    }
    for (std::size_t b = a + 1; b < plan.buffers.size(); ++b) {
      const PlannedBuffer& other = plan.buffers[b];
      if (!in_arena(other) || !live_together(one, other) || !share_bytes(one, other)) continue;
      fail_plan(fmt::format("two live buffers share bytes: {} and {}", buffer_text(plan, a),
                            buffer_text(plan, b)));
    }
  }
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    for (int slot : plan.steps[i].inputs) check_life(plan, i, slot);
    for (int slot : plan.steps[i].outputs) check_life(plan, i, slot);
  }
  const index_t updates = sum_of(plan, BufferKind::update);
  if (plan.update_bytes != updates || plan.output_bytes < sum_of(plan, BufferKind::output) ||
      plan.peak_bytes != plan.arena_bytes + plan.output_bytes + plan.update_bytes) {
    fail_plan(fmt::format(
        "the sums do not add up: peak {}, arena {}, outputs {}, updates {}, of which "
        "buffers {}",
        plan.peak_bytes, plan.arena_bytes, plan.output_bytes, plan.update_bytes, updates));
  }
}

void check_same_plan(const Plan& first, const Plan& other, int run) {
  const std::string a = first.to_string(), b = other.to_string();
  if (a == b) return;
  const auto [at_a, at_b] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  const auto line = [](const std::string& text, std::string::const_iterator where) {
    const auto position = static_cast<std::size_t>(where - text.begin());
    const std::size_t before = text.rfind('\n', position == 0 ? 0 : position - 1);
    const std::size_t begin = before == std::string::npos ? 0 : before + 1;
    return text.substr(begin, text.find('\n', position) - begin);
  };
  throw StochasticOrder(
      fmt::format("[DebugMode: StochasticOrder] planning the same graph gave two plans, in run 0 "
                  "and run {}\n  run 0: {}\n  run {}: {}\n  Hint: nothing in a plan may depend on "
                  "addresses or time.",
                  run, line(a, at_a), run, line(b, at_b)),
      {});
}

// Results of borrowed outputs that lie in the frame, as the last call left them.
struct PlanWatch::Kept {
  struct Result {
    std::size_t output;
    const void* address;
    Layout layout;
    DebugValue value;
  };
  std::vector<Result> results;
};

PlanWatch::PlanWatch(const DebugOptions& options, const CallAccess& call, ExpectedValue expected)
    : options_(options),
      program_(call.program),
      plan_(call.plan),
      frame_(call.frame),
      destinations_(call.destinations),
      expected_(std::move(expected)) {
  check_borrowed();
  const index_t arena = frame_.arena_bytes();
  if (arena != plan_.arena_bytes) {
    fail_plan(fmt::format("the arena has {} bytes, planned {}", arena, plan_.arena_bytes));
  }
  for (std::size_t i = 0; i < plan_.steps.size(); ++i) step_of_[plan_.steps[i].node.node()] = i;
  has_run_.assign(plan_.steps.size(), false);
  is_delivered_.assign(plan_.buffers.size(), false);
  for (const auto* const list : {&plan_.outputs, &plan_.updates}) {
    for (const Delivery& delivery : *list) {
      is_delivered_[at(plan_.slots[at(delivery.slot)].buffer)] = true;
    }
  }
  if (options_.poison) poison_all();
  check_destinations("before the first step");
}

bool PlanWatch::writes_destination(std::size_t step) const {
  const auto buffer_of = [&](int slot) { return plan_.slots[at(slot)].buffer; };
  const std::vector<int>& written = plan_.steps[step].outputs;
  return std::any_of(written.begin(), written.end(), [&](int slot) {
    return std::any_of(destinations_.begin(), destinations_.end(), [&](const auto& destination) {
      return buffer_of(plan_.outputs[destination.output].slot) == buffer_of(slot);
    });
  });
}

// Poison fills whole buffers, so it goes beyond a destination that is smaller than its buffer.
void PlanWatch::check_destinations(const std::string& when) const {
  for (const GuardedDestination& destination : destinations_) {
    const auto change = destination.window.first_change();
    if (!change) continue;
    const int output = static_cast<int>(destination.output);
    const Variable& v = program_.graph.outputs()[destination.output];
    const int slot = plan_.outputs[destination.output].slot;
    fail_plan(fmt::format("memory beside destination {} {} was written {}: byte {} from the start "
                          "of its {} bytes. It is written as {}",
                          output, v.str(), when, *change, destination.window.tensor().nbytes(),
                          buffer_text(plan_, at(plan_.slots[at(slot)].buffer))),
              {{}, v.owner(), v, -1, output});
  }
}

void PlanWatch::poison(std::size_t buffer) {
  if (plan_.buffers[buffer].bytes == 0) return;
  std::memset(frame_.bases()[buffer], static_cast<int>(kDeadMemory),
              static_cast<std::size_t>(plan_.buffers[buffer].bytes));
}

void PlanWatch::poison_all() {
  for (std::size_t b = 0; b < plan_.buffers.size(); ++b) {
    const BufferKind kind = plan_.buffers[b].kind;
    if (kind == BufferKind::arena || kind == BufferKind::output || kind == BufferKind::update) {
      poison(b);
    }
  }
}

StepContext PlanWatch::context_of(const StepAccess& access) const {
  StepContext context;
  context.pass = "production";
  context.node = access.node;
  context.step = static_cast<int>(access.step);
  for (const ConstView& view : access.inputs) {
    context.inputs.push_back(DebugValue::read(view));
    context.layouts.push_back({view.dtype, Extents(view.extents.begin(), view.extents.end()),
                               Strides(view.strides.begin(), view.strides.end()), 0});
  }
  return context;
}

// Names the buffer that took the bytes in between, or the step that freed them.
void PlanWatch::throw_changed(const StepAccess& access, std::size_t input,
                              const DebugValue& now) const {
  const Variable& v = access.node.input(input);
  const std::size_t b = at(plan_.slots[at(plan_.steps[access.step].inputs[input])].buffer);
  const PlannedBuffer& mine = plan_.buffers[b];
  const int step = static_cast<int>(access.step);
  std::string who = "no buffer lies there: an op wrote outside of its memory";
  for (std::size_t other = 0; in_arena(mine) && other < plan_.buffers.size(); ++other) {
    const PlannedBuffer& taker = plan_.buffers[other];
    if (other == b || !in_arena(taker) || !share_bytes(mine, taker)) continue;
    if (taker.first_step < mine.first_step || taker.first_step > step) continue;
    who = fmt::format("taken at {} by {}", step_text(plan_, taker.first_step),
                      buffer_text(plan_, other));
  }
  if (mine.last_step < step) {
    who += fmt::format("; freed after {}", step_text(plan_, mine.last_step));
  }
  throw BadPlan(
      DebugMessage("BadPlan", context_of(access))
          .line(fmt::format("it reads input {} {}, whose value has changed", input, v.str()))
          .line("it lies in " + buffer_text(plan_, b))
          .line(who)
          .value("expected", expected_(v))
          .value("got", now)
          .line(fmt::format("planned peak {} bytes, arena {} bytes", plan_.peak_bytes,
                            plan_.arena_bytes))
          .finish(nullptr, "A buffer must live until its last reader is done."),
      {{}, access.node, v, static_cast<int>(input), -1});
}

// True if all steps have run that this value depends on by its memory.
bool PlanWatch::is_computed(const Variable& v) const {
  const Apply owner = v.owner();
  if (!owner.defined()) return true;
  if (const auto it = step_of_.find(owner.node()); it != step_of_.end()) {
    return has_run_[it->second];
  }
  const AliasMap views = owner.op().view_map(owner);
  const auto it = views.find(v.index());
  if (it == views.end()) {
    // The node needed no step: its inputs were computed in their place.
    return std::all_of(owner.inputs().begin(), owner.inputs().end(),
                       [&](const Variable& input) { return is_computed(input); });
  }
  return std::any_of(it->second.begin(), it->second.end(),
                     [&](int i) { return is_computed(owner.input(at(i))); });
}

void PlanWatch::before_step(const StepAccess& access) {
  for (std::size_t i = 0; i < access.inputs.size(); ++i) {
    if (!is_computed(access.node.input(i))) continue;
    const DebugValue expected = expected_(access.node.input(i));
    const DebugValue now = DebugValue::read(access.inputs[i]);
    if (expected.defined() && !expected.same_bits(now)) throw_changed(access, i, now);
  }
  if (options_.guard_pages != "off") stale_.emplace();
  allocations_ = allocations_by_this_thread();
}

void PlanWatch::after_step(const StepAccess& access) {
  has_run_[access.step] = true;
  const std::uint64_t allocations = allocations_by_this_thread() - allocations_;
  if (const auto fault = stale_ ? stale_->stop() : std::nullopt) {
    throw_stale_access(*fault, context_of(access), nullptr);
  }
  if (allocations > 0) {
    throw BadPlan(DebugMessage("BadPlan", context_of(access))
                      .line(fmt::format("the step allocated {} times, planned 0", allocations))
                      .finish(nullptr, "A kernel works in its outputs and its scratch."),
                  {{}, access.node, {}, -1, -1});
  }
  for (std::size_t k = 0; k < access.outputs.size(); ++k) {
    const Variable v = access.node.output(k);
    const DebugValue expected = expected_(v);
    const DebugValue now = DebugValue::read(access.outputs[k]);
    if (!expected.defined() || expected.same_bits(now)) continue;
    throw BadPlan(
        DebugMessage("BadPlan", context_of(access))
            .line(fmt::format("output {} {} differs from that of the isolated step", k, v.str()))
            .value("isolated", expected)
            .value("production", now)
            .line(compare(expected, now, {}).str())
            .finish(nullptr,
                    "The same inputs must give the same bits wherever results "
                    "and scratch lie."),
        {{}, access.node, v, -1, static_cast<int>(k)});
  }
  if (writes_destination(access.step)) {
    check_destinations("in " + step_text(plan_, static_cast<int>(access.step)));
  }
  if (!options_.poison) return;
  for (std::size_t b = 0; b < plan_.buffers.size(); ++b) {
    const PlannedBuffer& buffer = plan_.buffers[b];
    if (!in_arena(buffer) || is_delivered_[b]) continue;
    if (buffer.last_step == static_cast<int>(access.step)) poison(b);
  }
}

void PlanWatch::after_hand_over(std::span<const Tensor> delivered) {
  check_destinations("by a step");
  const auto& outputs = program_.graph.outputs();
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const DebugValue expected = expected_(outputs[i]);
    const DebugValue now = DebugValue::read(delivered[i].view_of());
    if (!expected.defined() || expected.same_bits(now)) continue;
    const bool is_result = i < plan_.outputs.size();
    fail_plan(
        fmt::format(
            "{} {} {} differs from the value that its step computed\n  expected: {}\n  got: {}",
            is_result ? "result" : "update", is_result ? i : i - plan_.outputs.size(),
            outputs[i].str(), expected.str(), now.str()),
        {{}, outputs[i].owner(), outputs[i], -1, static_cast<int>(i)});
  }
  for (std::size_t a = plan_.outputs.size(); a < delivered.size(); ++a) {
    for (std::size_t b = a + 1; b < delivered.size(); ++b) {
      if (!shares_storage(delivered[a], delivered[b])) continue;
      fail_plan(fmt::format("two containers would share a Storage: updates {} and {}",
                            a - plan_.outputs.size(), b - plan_.outputs.size()),
                {{}, outputs[b].owner(), outputs[b], -1, static_cast<int>(b)});
    }
  }
  keep_borrowed(delivered);
}

void PlanWatch::keep_borrowed(std::span<const Tensor> delivered) {
  auto kept = std::make_shared<Kept>();
  for (std::size_t i = 0; i < plan_.outputs.size(); ++i) {
    const Slot& slot = plan_.slots[at(plan_.outputs[i].slot)];
    const bool in_frame = plan_.buffers[at(slot.buffer)].kind == BufferKind::arena;
    const bool is_given = std::any_of(destinations_.begin(), destinations_.end(),
                                      [&](const auto& d) { return d.output == i; });
    if (!in_frame || is_given || plan_.outputs[i].how != Handover::borrow) continue;
    kept->results.push_back(
        {i, delivered[i].raw_data(), slot.layout, DebugValue::read(delivered[i].view_of())});
  }
  frame_.watch_data = std::move(kept);
}

void PlanWatch::check_borrowed() const {
  const auto* const kept = static_cast<const Kept*>(frame_.watch_data.get());
  if (!kept) return;
  for (const Kept::Result& result : kept->results) {
    const Slot& slot = plan_.slots[at(plan_.outputs[result.output].slot)];
    std::byte* const here = frame_.bases()[at(slot.buffer)] + slot.layout.byte_offset;
    // Other memory: the caller keeps a clone of the old one, and may write it.
    if (here != result.address) continue;
    const DebugValue now = DebugValue::read(view_at(here, result.layout));
    if (now.same_bits(result.value)) continue;
    fail_plan(
        fmt::format("the borrowed result {} was written between two calls: {}", result.output,
                    compare(result.value, now, {}).str()),
        {{}, {}, program_.graph.outputs()[result.output], -1, static_cast<int>(result.output)});
  }
}

}  // namespace palimpsest
