// SPDX-License-Identifier: Apache-2.0
// Descriptions of plans, in text, in JSON and as a picture, compared byte by byte with the steps
// and buffers.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>

#include "palimpsest/base/config.hpp"
#include "palimpsest/compile/function.hpp"
#include "palimpsest/ops/ops.hpp"
#include "palimpsest/plan/loop_plan.hpp"
#include "palimpsest/plan/position.hpp"

namespace palimpsest {
namespace {

using Json = nlohmann::json;

Variable step(const Variable& v, index_t by = 1) { return ops::roll(v, by, 0); }

// Plans with all reported features: parts, places reused fully and partly, results in place,
// branches, loops, lanes, several devices, repeated steps, copies that a call can force.
std::vector<Plan> plans() {
  std::vector<Plan> list;
  const Variable x = make_input({DType::float64, {kUnknown, kUnknown}, {}}, "x");
  const std::vector<TensorType> type{{DType::float64, {6, 40}, {}}};
  const auto add = [&](std::vector<Out> outputs, FunctionOptions options = {}) {
    list.push_back(function({x}, std::move(outputs), options).plan(type));
  };
  const Variable column = ops::sum(x, {.axes = Axes{1}, .keepdims = true});
  const Variable row = ops::sum(x, {.axes = Axes{0}, .keepdims = true});
  const Variable joined = ops::join(0, {step(x), step(x, 2), step(x, 3)});
  const auto narrow = [&](index_t first, index_t last) {
    return ops::cumsum(step(x)(slice(first, last)), 1);
  };
  {
    const ConfigScope one({.threads = 1});
    add({ops::sum(ops::abs2(ops::fft(x, {0, 1})))});
    add({joined});
    add({ops::sum(ops::cumsum(joined, 1) * 2.0), ops::sum(step(joined))});
    add({ops::join(1, {ops::cumsum(ops::cumsum(step(x), 0) * 2.0, 1), step(x)})});
    // Smaller and larger values alternate, so that places are reused partly.
    add({ops::sum(step(narrow(0, 5))), ops::sum(step(narrow(1, 2))), ops::sum(step(x, 4)),
         ops::sum(step(narrow(2, 5))), ops::max(joined)});
    add({ops::ifelse(ops::gt(ops::sum(x), 0.0), ops::cumsum(step(x), 0), step(x, 2) * 3.0), x});
    add({x(slice(0, 1)), ops::transpose(x), ops::cumsum(x, 0)});
    const ops::LoopResult loop = ops::loop(
        [](const std::vector<Variable>& v) -> std::vector<Variable> {
          return {step(v[0]), ops::exp(v[0])};
        },
        {.states = {x}, .n_steps = 5});
    add({loop.last(0).named("turned"), step(x)});
    const Variable wide = ops::exp(column * row);
    const Variable first = ops::sum(step(wide));
    Variable big = ops::roll(ops::join(0, {x, x, x, x}), 1, 1) * first;
    big = ops::cumsum(ops::roll(big, 2, 1), 1);
    const Variable twice = ops::sum(ops::cumsum(wide * ops::max(step(big)), 0));
    add({twice});
    add({twice}, {.budget_bytes = list.back().peak_bytes - 1});
    EXPECT_GT(list.back().repeated_bytes, 0);
    const Variable there = ops::to_device(step(x), Device::parse("cpu:1"));
    add({ops::cumsum(step(there, 2), 0) +
         step(ops::to_device(step(x, 3), Device::parse("cpu:1")))});
    EXPECT_EQ(list.back().arenas.size(), 2u);
  }
  const ConfigScope wide({.threads = 4, .parallel_grain = 1});
  const auto chain = [&](index_t k) { return ops::cumsum(ops::cumsum(step(x, k), 0), 1); };
  add({ops::sum(chain(1) + chain(2) + chain(3)), joined});
  EXPECT_GT(list.back().lanes, 1);
  return list;
}

bool in_arena(const PlannedBuffer& b) { return b.kind == BufferKind::arena && b.bytes > 0; }

// For each buffer: the buffers whose bytes it takes over, the latest first.
std::vector<std::vector<int>> takeovers(const Plan& plan) {
  std::vector<std::vector<int>> result(plan.buffers.size());
  std::vector<int> order;
  for (int b = 0; b < static_cast<int>(plan.buffers.size()); ++b) {
    if (in_arena(plan.buffers[at(b)])) order.push_back(b);
  }
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return plan.buffers[at(a)].first_step < plan.buffers[at(b)].first_step;
  });
  std::map<std::pair<std::string, index_t>, int> owner;  // by byte and device
  for (const int b : order) {
    const PlannedBuffer& buffer = plan.buffers[at(b)];
    std::set<int> found;
    for (index_t byte = buffer.offset; byte < buffer.offset + buffer.bytes; ++byte) {
      const auto [at_byte, is_new] = owner.try_emplace({buffer.device.str(), byte}, b);
      if (is_new) continue;
      if (plan.buffers[at(at_byte->second)].last_step < buffer.first_step) {
        found.insert(at_byte->second);
      }
      at_byte->second = b;
    }
    result[at(b)].assign(found.begin(), found.end());
    std::stable_sort(result[at(b)].begin(), result[at(b)].end(), [&](int x, int y) {
      return plan.buffers[at(x)].last_step > plan.buffers[at(y)].last_step;
    });
  }
  return result;
}

std::string name_of_op(const PlannedStep& step) {
  return step.loop ? "Loop" : step.node.op().name();
}

// The notes behind the name of each buffer, as text and as JSON.
struct Notes {
  std::string text;
  Json json;
};
Notes notes_of(const Plan& plan, int number, const std::vector<int>& taken_over) {
  const PlannedBuffer& buffer = plan.buffers[at(number)];
  Notes notes{"",
              {{"name", buffer.name},
               {"kind", name_of(buffer.kind)},
               {"bytes", buffer.bytes},
               {"first_step", buffer.first_step},
               {"last_step", buffer.last_step}}};
  if (in_arena(buffer)) {
    notes.text += fmt::format("  @{}", buffer.offset);
    notes.json["offset"] = buffer.offset;
    notes.json["reuses"] = Json::array();
  }
  for (const int p : taken_over) {
    const PlannedBuffer& before = plan.buffers[at(p)];
    const std::string op = name_of_op(plan.steps[at(before.last_step)]);
    notes.text += fmt::format("; reuses [{}] {} (last read by step {}: {})", p, before.name,
                              before.last_step, op);
    notes.json["reuses"].push_back({{"buffer", p},
                                    {"name", before.name},
                                    {"last_read_by_step", before.last_step},
                                    {"op", op}});
  }
  std::string parts;
  for (int i = 0; i < static_cast<int>(plan.steps.size()); ++i) {
    const PlannedStep& step = plan.steps[at(i)];
    for (const int input : overwritten_inputs(step.node)) {
      if (plan.slots[at(step.inputs[at(input)])].buffer != number) continue;
      const Variable v = step.node.input(static_cast<std::size_t>(input));
      const std::string of = !v.name().empty()     ? v.name()
                             : v.owner().defined() ? v.owner().op().name()
                                                   : v.str();
      notes.text += fmt::format("; step {}: {} in place of {}", i, name_of_op(step), of);
      notes.json["in_place"].push_back({{"step", i}, {"op", name_of_op(step)}, {"of", of}});
    }
    const bool writes_part = std::any_of(step.outputs.begin(), step.outputs.end(), [&](int s) {
      return plan.slots[at(s)].buffer == number && plan.slots[at(s)].part >= 0;
    });
    if (!writes_part) continue;
    parts += fmt::format("{} {}: {}", parts.empty() ? "; parts computed in it by step" : ",", i,
                         name_of_op(step));
    notes.json["parts_by_steps"].push_back(i);
  }
  notes.text += parts;
  return notes;
}

std::vector<int> live_at(const Plan& plan, int step) {
  std::vector<int> live;
  for (int b = 0; b < static_cast<int>(plan.buffers.size()); ++b) {
    const PlannedBuffer& buffer = plan.buffers[at(b)];
    if (in_arena(buffer) && buffer.first_step <= step && step <= buffer.last_step) {
      live.push_back(b);
    }
  }
  std::stable_sort(live.begin(), live.end(), [&](int a, int b) {
    return plan.buffers[at(a)].bytes > plan.buffers[at(b)].bytes;
  });
  return live;
}

int fullest_step(const Plan& plan) {
  int fullest = -1;
  index_t most = -1;
  for (int i = 0; i < static_cast<int>(plan.steps.size()); ++i) {
    index_t bytes = 0;
    for (const int b : live_at(plan, i)) bytes += plan.buffers[at(b)].bytes;
    if (bytes > most) fullest = i;
    most = std::max(most, bytes);
  }
  return fullest;
}

std::string text_of_steps(const Plan& plan) {
  std::string text;
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const PlannedStep& step = plan.steps[i];
    text += fmt::format("step {:3}  {}", i, step.loop ? "Loop" : step.node.op().str());
    if (step.is_repeated) text += "  again";
    if (step.guard >= 0) text += fmt::format("  if guard {}", step.guard);
    if (plan.lanes > 1) text += fmt::format("  lane {}", step.lane);
    for (std::size_t k = 0; plan.lanes > 1 && k < step.waits_for.size(); ++k) {
      text += (k == 0 ? " after " : ", ") + std::to_string(step.waits_for[k]);
    }
    text += "\n";
    if (!step.loop) continue;
    const std::string body = step.loop->body.to_string();
    text += std::regex_replace(body, std::regex("([^\n]*)\n"), "  | $1\n");
  }
  return text;
}

TEST(PlanReport, TextSaysWhatFollowsFromStepsAndBuffers) {
  for (const Plan& plan : plans()) {
    std::string text = fmt::format(
        "peak {} bytes = arena {} + outputs {} + updates {}; lower bound of the arena {}, without "
        "reuse {}\n",
        plan.peak_bytes, plan.arena_bytes, plan.output_bytes, plan.update_bytes,
        plan.lower_bound_bytes, plan.no_reuse_bytes);
    const auto line = [&](bool is_there, const std::string& what) {
      if (is_there) text += what + "\n";
    };
    line(plan.lanes > 1, fmt::format("{} lanes; one lane would peak at {} bytes", plan.lanes,
                                     plan.serial_peak_bytes));
    line(plan.entry_copy_bytes > 0,
         fmt::format("copies that the state of a call can force: {} bytes", plan.entry_copy_bytes));
    line(plan.repeated_bytes > 0,
         fmt::format("computed twice to meet the budget: {} bytes", plan.repeated_bytes));
    line(plan.external_bytes > 0,
         fmt::format("held beside it by libraries and, as scratch of up to 2097152 bytes, by each "
                     "thread: {} bytes",
                     plan.external_bytes));
    const int peak = fullest_step(plan);
    if (peak >= 0) {
      text += fmt::format("most bytes of the arena are live at step {}: {}; there lie", peak,
                          name_of_op(plan.steps[at(peak)]));
      for (const int b : live_at(plan, peak)) {
        text +=
            fmt::format(" [{}] {} ({})", b, plan.buffers[at(b)].name, plan.buffers[at(b)].bytes);
      }
      text += "\n";
    }
    text += text_of_steps(plan);
    const std::vector<std::vector<int>> taken_over = takeovers(plan);
    for (int b = 0; b < static_cast<int>(plan.buffers.size()); ++b) {
      const PlannedBuffer& buffer = plan.buffers[at(b)];
      text +=
          fmt::format("buffer {:3}  {:<9} {:>12} bytes  steps {}..{}  {}", b, name_of(buffer.kind),
                      buffer.bytes, buffer.first_step, buffer.last_step, buffer.name) +
          notes_of(plan, b, taken_over[at(b)]).text + "\n";
    }
    for (const std::string& refusal : plan.refused_in_place) {
      text += "not in place: " + refusal + "\n";
    }
    EXPECT_EQ(plan.to_string(), text);
  }
}

TEST(PlanReport, JsonSaysTheSame) {
  std::set<std::string> seen;  // by all plans
  for (const Plan& plan : plans()) {
    const Json json = Json::parse(plan.to_json());
    Json expected = {{"peak_bytes", plan.peak_bytes},
                     {"arena_bytes", plan.arena_bytes},
                     {"output_bytes", plan.output_bytes},
                     {"update_bytes", plan.update_bytes},
                     {"entry_copy_bytes", plan.entry_copy_bytes},
                     {"lower_bound_bytes", plan.lower_bound_bytes},
                     {"no_reuse_bytes", plan.no_reuse_bytes},
                     {"serial_peak_bytes", plan.serial_peak_bytes},
                     {"external_bytes", plan.external_bytes},
                     {"repeated_bytes", plan.repeated_bytes},
                     {"saved_by_view_bytes", plan.saved_by_view_bytes},
                     {"saved_by_inplace_bytes", plan.saved_by_inplace_bytes},
                     {"saved_by_join_bytes", plan.saved_by_join_bytes},
                     {"lanes", plan.lanes},
                     {"peak_step", fullest_step(plan)},
                     {"peak_buffers", live_at(plan, fullest_step(plan))},
                     {"refused_in_place", plan.refused_in_place},
                     {"steps", Json::array()},
                     {"buffers", Json::array()}};
    for (const PlannedStep& step : plan.steps) {
      Json each = {{"op", step.loop ? "Loop" : step.node.op().str()},
                   {"new_bytes", step.new_bytes},
                   {"in_place_bytes", step.in_place_bytes}};
      if (step.guard >= 0) each["guard"] = step.guard;
      if (step.is_repeated) each["again"] = true;
      if (plan.lanes > 1) each["lane"] = step.lane, each["waits_for"] = step.waits_for;
      if (step.loop) each["body"] = Json::parse(step.loop->body.to_json());
      for (const auto& [key, value] : each.items()) seen.insert(key);
      expected["steps"].push_back(each);
    }
    const std::vector<std::vector<int>> taken_over = takeovers(plan);
    for (int b = 0; b < static_cast<int>(plan.buffers.size()); ++b) {
      expected["buffers"].push_back(notes_of(plan, b, taken_over[at(b)]).json);
      for (const auto& [key, value] : expected["buffers"].back().items()) seen.insert(key);
    }
    EXPECT_EQ(json, expected);
  }
  for (const char* key : {"guard", "again", "lane", "body", "in_place", "parts_by_steps"}) {
    EXPECT_TRUE(seen.contains(key)) << key << " is in no plan of this test";
  }
}

// The numbers of all boxes and labels of one kind in a picture.
std::vector<std::vector<double>> numbers(const std::string& picture, const char* pattern) {
  std::vector<std::vector<double>> all;
  const std::regex expression(pattern);
  for (std::sregex_iterator it(picture.begin(), picture.end(), expression), end; it != end; ++it) {
    std::vector<double> found;
    for (std::size_t k = 1; k < it->size(); ++k) found.push_back(std::stod((*it)[k]));
    all.push_back(std::move(found));
  }
  return all;
}

TEST(PlanPicture, IsDrawnToScale) {
  for (const Plan& plan : plans()) {
    const std::string picture = plan.to_svg();
    const auto boxes = numbers(
        picture, R"re(<rect x="([\d.]+)" y="([\d.]+)" width="([\d.]+)" height="([\d.]+)" fill)re");
    const auto frame = numbers(picture, R"re(<svg [^>]*width="(\d+)" height="(\d+)")re")[0];
    std::vector<PlannedBuffer> drawn;
    for (const PlannedBuffer& b : plan.buffers) {
      if (b.kind == BufferKind::arena) drawn.push_back(b);
    }
    ASSERT_EQ(boxes.size(), drawn.size());
    if (drawn.empty()) continue;
    // All steps have the same width, all bytes the same height.
    const auto steps_of = [](const PlannedBuffer& b) { return b.last_step - b.first_step + 1; };
    const auto widest = static_cast<std::size_t>(
        std::max_element(drawn.begin(), drawn.end(),
                         [&](const auto& a, const auto& b) { return steps_of(a) < steps_of(b); }) -
        drawn.begin());
    const auto highest = static_cast<std::size_t>(
        std::max_element(drawn.begin(), drawn.end(),
                         [](const auto& a, const auto& b) { return a.bytes < b.bytes; }) -
        drawn.begin());
    const double step_width = boxes[widest][2] / steps_of(drawn[widest]),
                 byte_height = boxes[highest][3] / static_cast<double>(drawn[highest].bytes);
    const double left = boxes[widest][0] - drawn[widest].first_step * step_width;
    const double bottom = boxes[highest][1] + boxes[highest][3] +
                          static_cast<double>(drawn[highest].offset) * byte_height;
    EXPECT_GE(left, 0);
    EXPECT_LE(bottom, frame[1]);
    EXPECT_LE(left + static_cast<double>(plan.steps.size()) * step_width, frame[0]);
    for (std::size_t k = 0; k < drawn.size(); ++k) {
      const PlannedBuffer& b = drawn[k];
      const double slack = 0.5;  // for sums of numbers with two decimals
      EXPECT_NEAR(boxes[k][0], left + b.first_step * step_width, slack);
      EXPECT_NEAR(boxes[k][2], steps_of(b) * step_width, slack);
      EXPECT_NEAR(boxes[k][3], static_cast<double>(b.bytes) * byte_height, slack);
      EXPECT_NEAR(boxes[k][1] + boxes[k][3], bottom - static_cast<double>(b.offset) * byte_height,
                  slack);
    }
    // Labels of bytes are beside the lines, from bottom to top.
    const auto lines = numbers(picture, R"re(<line x1="[\d.]+" y1="([\d.]+)")re");
    ASSERT_EQ(lines.size(), 5u);
    EXPECT_NEAR(lines.front()[0], bottom, 0.5);
    EXPECT_NEAR(lines.back()[0], bottom - static_cast<double>(plan.arena_bytes) * byte_height, 0.5);
    // Labels of steps are below their middles: as many as fit.
    const auto names =
        numbers(picture, R"re(<text x="([\d.]+)" y="([\d.]+)" transform=[^>]*>(\d+) )re");
    ASSERT_FALSE(names.empty());
    const double every = names.size() > 1 ? names[1][2] : static_cast<double>(plan.steps.size());
    EXPECT_EQ(names.size(), (plan.steps.size() + static_cast<std::size_t>(every) - 1) /
                                static_cast<std::size_t>(every));
    constexpr double kRoom = 13;  // height of a line of text
    if (names.size() > 1) {
      EXPECT_GE(every * step_width, kRoom - 0.5);
      EXPECT_LE((every - 1) * step_width, kRoom + 0.5);
    }
    for (const auto& name : names) {
      EXPECT_NEAR(name[0], left + (name[2] + 0.5) * step_width, 5);
      EXPECT_GT(name[1], bottom);
    }
  }
}

TEST(PlanPicture, OfManyStepsNamesAsManyAsHaveRoom) {
  const ConfigScope one({.threads = 1});
  const Variable x = make_input({DType::float64, {100}, {}}, "x");
  for (const int n : {60, 66, 150}) {
    Variable v = x;
    for (int i = 0; i < n; ++i) v = step(v, i % 2 + 1);
    const Plan plan = function({x}, v, {.mode = Mode::no_rewrite}).plan(std::vector{x.type()});
    ASSERT_EQ(static_cast<int>(plan.steps.size()), n);
    const auto names =
        numbers(plan.to_svg(), R"re(<text x="([\d.]+)" y="([\d.]+)" transform=[^>]*>(\d+) )re");
    ASSERT_GT(names.size(), 1u);
    const double distance = names[1][0] - names[0][0], every = names[1][2];
    EXPECT_GE(distance, 13 - 0.02);
    EXPECT_LE(distance * (every - 1) / every, 13);
    EXPECT_EQ(names.size(), (plan.steps.size() - 1) / static_cast<std::size_t>(every) + 1);
  }
}

}  // namespace
}  // namespace palimpsest
