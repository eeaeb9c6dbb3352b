// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/compile/plan.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

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
  std::string text = fmt::format(
      "peak {} bytes = arena {} + outputs {} + updates {}; lower bound of the arena {}, without "
      "reuse {}\n",
      peak_bytes, arena_bytes, output_bytes, update_bytes, lower_bound_bytes, no_reuse_bytes);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    text += fmt::format("step {:3}  {}\n", i, steps[i].node.op().str());
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
                                 {"no_reuse_bytes", no_reuse_bytes}};
  json["steps"] = nlohmann::ordered_json::array();
  for (const PlannedStep& step : steps) json["steps"].push_back(step.node.op().str());
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
