// SPDX-License-Identifier: Apache-2.0
// A plan as text and as JSON.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "palimpsest/base/thread_scratch.hpp"
#include "palimpsest/plan/loop_plan.hpp"
#include "palimpsest/plan/plan.hpp"
#include "palimpsest/plan/position.hpp"
#include "palimpsest/tensor/checked_json.hpp"

namespace palimpsest {
namespace {

using io_detail::Json;

bool in_arena(const PlannedBuffer& b) { return b.kind == BufferKind::arena && b.bytes > 0; }

std::string name_of_op(const PlannedStep& step) {
  return step.loop ? "Loop" : step.node.op().name();
}
std::string text_of_op(const PlannedStep& step) {
  return step.loop ? "Loop" : step.node.op().str();
}

// A result that lies in memory that was overwritten for it.
struct InPlace {
  int step;
  std::string of;
};

std::string label_of(const Variable& v) {
  if (!v.name().empty()) return v.name();
  return v.owner().defined() ? v.owner().op().name() : v.str();
}

class Report {
 public:
  explicit Report(const Plan& plan)
      : plan_(plan),
        in_place_(plan.buffers.size()),
        predecessors_(plan.buffers.size()),
        writers_of_parts_(plan.buffers.size()) {
    find_predecessors();
    find_writers_of_parts();
    for (std::size_t i = 0; i < plan.steps.size(); ++i) {
      const Apply& node = plan.steps[i].node;
      for (int input : overwritten_inputs(node)) {
        const int buffer = plan.slots[at(plan.steps[i].inputs[at(input)])].buffer;
        in_place_[at(buffer)].push_back({static_cast<int>(i), label_of(node.input(at(input)))});
      }
    }
  }

  std::string text() {
    add_sums();
    add_peak();
    for (std::size_t i = 0; i < plan_.steps.size(); ++i) add_step(i);
    for (std::size_t b = 0; b < plan_.buffers.size(); ++b) add_buffer(b);
    for (const std::string& refusal : plan_.refused_in_place) {
      text_ += "not in place: " + refusal + "\n";
    }
    return std::move(text_);
  }

  std::string json() const {
    Json json = {{"peak_bytes", plan_.peak_bytes},
                 {"arena_bytes", plan_.arena_bytes},
                 {"output_bytes", plan_.output_bytes},
                 {"update_bytes", plan_.update_bytes},
                 {"entry_copy_bytes", plan_.entry_copy_bytes},
                 {"lower_bound_bytes", plan_.lower_bound_bytes},
                 {"no_reuse_bytes", plan_.no_reuse_bytes},
                 {"serial_peak_bytes", plan_.serial_peak_bytes},
                 {"external_bytes", plan_.external_bytes},
                 {"repeated_bytes", plan_.repeated_bytes},
                 {"saved_by_view_bytes", plan_.saved_by_view_bytes},
                 {"saved_by_inplace_bytes", plan_.saved_by_inplace_bytes},
                 {"saved_by_join_bytes", plan_.saved_by_join_bytes},
                 {"lanes", plan_.lanes},
                 {"peak_step", plan_.peak_step()},
                 {"peak_buffers", live_at(plan_.peak_step())}};
    json["steps"] = Json::array();
    for (const PlannedStep& step : plan_.steps) json["steps"].push_back(json_of(step));
    json["buffers"] = Json::array();
    for (std::size_t b = 0; b < plan_.buffers.size(); ++b) json["buffers"].push_back(json_of(b));
    json["refused_in_place"] = plan_.refused_in_place;
    return io_detail::text_of_json(json, 2);
  }

 private:
  // Buffers of the arena that are live at a step, the biggest first.
  std::vector<int> live_at(int step) const {
    std::vector<int> live;
    for (int b = 0; b < static_cast<int>(plan_.buffers.size()); ++b) {
      const PlannedBuffer& buffer = plan_.buffers[at(b)];
      if (in_arena(buffer) && buffer.first_step <= step && step <= buffer.last_step) {
        live.push_back(b);
      }
    }
    std::stable_sort(live.begin(), live.end(), [&](int a, int b) {
      return plan_.buffers[at(a)].bytes > plan_.buffers[at(b)].bytes;
    });
    return live;
  }

  // Finds, for each buffer, the buffers that were in its bytes just before, the latest first. All
  // buffers enter the arenas in the order of their lives and replace the present owner of each
  // byte.
  void find_predecessors() {
    struct Owned {
      index_t end;
      int by;
    };
    std::map<std::string, std::map<index_t, Owned>> owners_on;  // a device; by the first byte
    std::vector<int> order;
    for (int b = 0; b < static_cast<int>(plan_.buffers.size()); ++b) {
      if (in_arena(plan_.buffers[at(b)])) order.push_back(b);
    }
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
      return plan_.buffers[at(a)].first_step < plan_.buffers[at(b)].first_step;
    });
    for (int b : order) {
      const PlannedBuffer& buffer = plan_.buffers[at(b)];
      const index_t begin = buffer.offset, end = begin + buffer.bytes;
      std::map<index_t, Owned>& owners = owners_on[buffer.device.str()];
      std::set<int> found;
      auto it = owners.upper_bound(begin);
      if (it != owners.begin()) --it;
      while (it != owners.end() && it->first < end) {
        const auto [from, owned] = *it;
        if (owned.end <= begin) {
          ++it;
          continue;
        }
        found.insert(owned.by);
        it = owners.erase(it);
        if (from < begin) owners.insert_or_assign(from, Owned{begin, owned.by});
        if (end < owned.end) owners.insert_or_assign(end, Owned{owned.end, owned.by});
      }
      owners.insert_or_assign(begin, Owned{end, b});
      std::vector<int>& list = predecessors_[at(b)];
      std::copy_if(found.begin(), found.end(), std::back_inserter(list), [&](int other) {
        return plan_.buffers[at(other)].last_step < buffer.first_step;
      });
      std::stable_sort(list.begin(), list.end(), [&](int x, int y) {
        return plan_.buffers[at(x)].last_step > plan_.buffers[at(y)].last_step;
      });
    }
  }

  // The steps that put values into parts of a buffer.
  void find_writers_of_parts() {
    for (std::size_t i = 0; i < plan_.steps.size(); ++i) {
      for (int s : plan_.steps[i].outputs) {
        const Slot& slot = plan_.slots[at(s)];
        std::vector<int>& writers = writers_of_parts_[at(slot.buffer)];
        const bool is_known = !writers.empty() && writers.back() == static_cast<int>(i);
        if (slot.part >= 0 && !is_known) writers.push_back(static_cast<int>(i));
      }
    }
  }

  void add_sums() {
    text_ += fmt::format(
        "peak {} bytes = arena {} + outputs {} + updates {}; lower bound of the arena {}, without "
        "reuse {}\n",
        plan_.peak_bytes, plan_.arena_bytes, plan_.output_bytes, plan_.update_bytes,
        plan_.lower_bound_bytes, plan_.no_reuse_bytes);
    if (plan_.lanes > 1) {
      text_ += fmt::format("{} lanes; one lane would peak at {} bytes\n", plan_.lanes,
                           plan_.serial_peak_bytes);
    }
    if (plan_.entry_copy_bytes > 0) {
      text_ += fmt::format("copies that the state of a call can force: {} bytes\n",
                           plan_.entry_copy_bytes);
    }
    if (plan_.repeated_bytes > 0) {
      text_ += fmt::format("computed twice to meet the budget: {} bytes\n", plan_.repeated_bytes);
    }
    if (plan_.external_bytes > 0) {
      text_ += fmt::format(
          "held beside it by libraries and, as scratch of up to {} bytes, by each thread: {} "
          "bytes\n",
          kThreadScratchBytes, plan_.external_bytes);
    }
  }

  void add_peak() {
    const int peak = plan_.peak_step();
    if (peak < 0) return;
    text_ += fmt::format("most bytes of the arena are live at step {}: {}; there lie", peak,
                         name_of_op(plan_.steps[at(peak)]));
    for (int b : live_at(peak)) {
      text_ +=
          fmt::format(" [{}] {} ({})", b, plan_.buffers[at(b)].name, plan_.buffers[at(b)].bytes);
    }
    text_ += "\n";
  }

  void add_step(std::size_t i) {
    const PlannedStep& step = plan_.steps[i];
    text_ += fmt::format("step {:3}  {}", i, text_of_op(step));
    if (step.is_repeated) text_ += "  again";
    if (step.guard >= 0) text_ += fmt::format("  if guard {}", step.guard);
    if (plan_.lanes > 1) {
      text_ += fmt::format("  lane {}", step.lane);
      for (std::size_t k = 0; k < step.waits_for.size(); ++k) {
        text_ += (k == 0 ? " after " : ", ") + std::to_string(step.waits_for[k]);
      }
    }
    text_ += "\n";
    if (step.loop) add_indented(step.loop->body.to_string());
  }

  void add_indented(const std::string& text) {
    for (std::size_t begin = 0; begin < text.size();) {
      const std::size_t end = std::min(text.find('\n', begin), text.size());
      text_ += "  | " + text.substr(begin, end - begin) + "\n";
      begin = end + 1;
    }
  }

  void add_buffer(std::size_t number) {
    const PlannedBuffer& b = plan_.buffers[number];
    text_ += fmt::format("buffer {:3}  {:<9} {:>12} bytes  steps {}..{}  {}", number,
                         name_of(b.kind), b.bytes, b.first_step, b.last_step, b.name);
    if (in_arena(b)) {
      text_ += fmt::format("  @{}", b.offset);
      for (int p : predecessors_[number]) {
        const PlannedBuffer& before = plan_.buffers[at(p)];
        text_ += fmt::format("; reuses [{}] {} (last read by step {}: {})", p, before.name,
                             before.last_step, name_of_op(plan_.steps[at(before.last_step)]));
      }
    }
    for (const InPlace& result : in_place_[number]) {
      text_ += fmt::format("; step {}: {} in place of {}", result.step,
                           name_of_op(plan_.steps[at(result.step)]), result.of);
    }
    const std::vector<int>& parts = writers_of_parts_[number];
    for (std::size_t k = 0; k < parts.size(); ++k) {
      text_ += fmt::format("{} {}: {}", k == 0 ? "; parts computed in it by step" : ",", parts[k],
                           name_of_op(plan_.steps[at(parts[k])]));
    }
    text_ += "\n";
  }

  Json json_of(const PlannedStep& step) const {
    Json json = {{"op", text_of_op(step)}};
    if (step.guard >= 0) json["guard"] = step.guard;
    if (step.is_repeated) json["again"] = true;
    if (plan_.lanes > 1) {
      json["lane"] = step.lane;
      json["waits_for"] = step.waits_for;
    }
    json["new_bytes"] = step.new_bytes;
    json["in_place_bytes"] = step.in_place_bytes;
    if (step.loop) json["body"] = io_detail::parse_json(step.loop->body.to_json());
    return json;
  }

  Json json_of(std::size_t number) const {
    const PlannedBuffer& b = plan_.buffers[number];
    Json json = {{"name", b.name},
                 {"kind", std::string(name_of(b.kind))},
                 {"bytes", b.bytes},
                 {"first_step", b.first_step},
                 {"last_step", b.last_step}};
    if (in_arena(b)) {
      json["offset"] = b.offset;
      json["reuses"] = Json::array();
      for (int p : predecessors_[number]) {
        const int last = plan_.buffers[at(p)].last_step;
        json["reuses"].push_back({{"buffer", p},
                                  {"name", plan_.buffers[at(p)].name},
                                  {"last_read_by_step", last},
                                  {"op", name_of_op(plan_.steps[at(last)])}});
      }
    }
    for (const InPlace& result : in_place_[number]) {
      json["in_place"].push_back({{"step", result.step},
                                  {"op", name_of_op(plan_.steps[at(result.step)])},
                                  {"of", result.of}});
    }
    const std::vector<int>& parts = writers_of_parts_[number];
    if (!parts.empty()) json["parts_by_steps"] = parts;
    return json;
  }

  const Plan& plan_;
  // Per buffer:
  std::vector<std::vector<InPlace>> in_place_;
  std::vector<std::vector<int>> predecessors_, writers_of_parts_;
  std::string text_;
};

}  // namespace

std::string Plan::to_string() const {
  if (!run_time_extents.empty()) {
    return "elements of the inputs of " + run_time_extents +
           " decide extents: planned in stages while it runs\n";
  }
  return Report(*this).text();
}

std::string Plan::to_json() const {
  if (run_time_extents.empty()) return Report(*this).json();
  return io_detail::text_of_json(Json{{"run_time_extents", run_time_extents}}, 2);
}

}  // namespace palimpsest
