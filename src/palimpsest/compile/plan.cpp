// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/compile/plan.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "palimpsest/compile/loop_plan.hpp"

namespace palimpsest {
namespace {

bool in_arena(const PlannedBuffer& buffer) { return buffer.kind == BufferKind::arena; }

// The latest buffer that lay in some of these bytes before.
const PlannedBuffer* predecessor(const Plan& plan, const PlannedBuffer& buffer) {
  const PlannedBuffer* best = nullptr;
  for (const PlannedBuffer& other : plan.buffers) {
    if (!in_arena(other) || other.last_step >= buffer.first_step) continue;
    if (other.offset >= buffer.offset + buffer.bytes ||
        buffer.offset >= other.offset + other.bytes) {
      continue;
    }
    if (!best || other.last_step > best->last_step) best = &other;
  }
  return best;
}

std::string indented(const std::string& text) {
  std::string result;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin);
    result += "  | " + text.substr(begin, end - begin) + "\n";
    begin = end == std::string::npos ? text.size() : end + 1;
  }
  return result;
}

}  // namespace

std::string_view name_of(BufferKind kind) {
  switch (kind) {
    case BufferKind::arena:
      return "arena";
    case BufferKind::output:
      return "output";
    case BufferKind::update:
      return "update";
    case BufferKind::argument:
      return "argument";
    case BufferKind::container:
      return "container";
    case BufferKind::constant:
      return "constant";
  }
  return "unknown";
}

std::string_view name_of(Handover handover) {
  switch (handover) {
    case Handover::own:
      return "own";
    case Handover::keep:
      return "keep";
    case Handover::clone:
      return "clone";
    case Handover::compact:
      return "compact";
    case Handover::borrow:
      return "borrow";
  }
  return "unknown";
}

std::string Plan::to_string() const {
  if (!run_time_extents.empty()) {
    return "elements of the inputs of " + run_time_extents +
           " decide extents: planned in stages while it runs\n";
  }
  std::string text = fmt::format(
      "peak {} bytes = arena {} + outputs {} + updates {}; lower bound of the arena {}, without "
      "reuse {}\n",
      peak_bytes, arena_bytes, output_bytes, update_bytes, lower_bound_bytes, no_reuse_bytes);
  const int peak = peak_step();
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const std::string op = steps[i].loop ? "Loop" : steps[i].node.op().str();
    text += fmt::format("step {:3}  {}", i, op);
    if (steps[i].guard >= 0) text += fmt::format("  if guard {}", steps[i].guard);
    if (static_cast<int>(i) == peak) text += "  <- most bytes of the arena are live";
    text += "\n";
    if (steps[i].loop) text += indented(steps[i].loop->body.to_string());
  }
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    const PlannedBuffer& b = buffers[i];
    text += fmt::format("buffer {:3}  {:<9} {:>12} bytes  steps {}..{}  {}", i, name_of(b.kind),
                        b.bytes, b.first_step, b.last_step, b.name);
    if (in_arena(b)) {
      text += fmt::format("  @{}", b.offset);
      if (const PlannedBuffer* before = predecessor(*this, b)) {
        text +=
            fmt::format("  reuses {} (last read by step {}: {})", before->name, before->last_step,
                        steps[static_cast<std::size_t>(before->last_step)].node.op().name());
      }
    }
    text += "\n";
  }
  return text;
}

std::string Plan::to_json() const {
  nlohmann::ordered_json json = {{"peak_bytes", peak_bytes},
                                 {"arena_bytes", arena_bytes},
                                 {"output_bytes", output_bytes},
                                 {"update_bytes", update_bytes},
                                 {"entry_copy_bytes", entry_copy_bytes},
                                 {"lower_bound_bytes", lower_bound_bytes},
                                 {"no_reuse_bytes", no_reuse_bytes},
                                 {"peak_step", peak_step()}};
  json["steps"] = nlohmann::ordered_json::array();
  for (const PlannedStep& step : steps) {
    json["steps"].push_back(step.loop ? "Loop" : step.node.op().str());
  }
  json["buffers"] = nlohmann::ordered_json::array();
  for (const PlannedBuffer& b : buffers) {
    nlohmann::ordered_json entry = {{"name", b.name},
                                    {"kind", std::string(name_of(b.kind))},
                                    {"bytes", b.bytes},
                                    {"first_step", b.first_step},
                                    {"last_step", b.last_step}};
    if (in_arena(b)) entry["offset"] = b.offset;
    json["buffers"].push_back(std::move(entry));
  }
  return json.dump(2);
}

}  // namespace palimpsest
