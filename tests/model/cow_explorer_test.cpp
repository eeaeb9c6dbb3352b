// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "model/scenarios.hpp"

// The production template, run in every way allowed by the memory model.
namespace palimpsest::model {
namespace {

const Protocol kProduction = PALIMPSEST_PROTOCOL_OF(cow);

void expect_safe(const std::vector<Scenario>& scenarios, const std::string& title) {
  std::string table;
  Report total;
  for (const Scenario& scenario : scenarios) {
    const Report report = run(scenario, kProduction);
    EXPECT_EQ(report.violation, "") << scenario.name();
    total.executions += report.executions;
    total.states += report.states;
    table += "  " + scenario.name() + ": " + std::to_string(report.executions) + " executions, " +
             std::to_string(report.states) + " states\n";
  }
  summarize(title, title + ": " + std::to_string(scenarios.size()) + " programs, " +
                       std::to_string(total.executions) + " executions, " +
                       std::to_string(total.states) + " states, no violation\n" + table);
}

TEST(CowExplorer, TwoThreadsAreSafeInEveryOrder) {
  expect_safe(two_threads(), "explorer_two_threads");
}

TEST(CowExplorer, ThreeThreadsAreSafeInEveryOrder) {
  expect_safe(three_threads(), "explorer_three_threads");
}

TEST(CowExplorer, HandlesAndPinsAreSafeInEveryOrder) {
  expect_safe(families(), "explorer_handles_and_pins");
}

// The number of copies and take-overs of programs in which all threads write.
std::set<std::string> costs(const std::vector<std::string>& scripts) {
  std::set<std::string> all;
  for (const std::string& outcome : run({scripts}, kProduction).outcomes) {
    all.insert(outcome.substr(0, outcome.find(", taken over")));
  }
  return all;
}

TEST(CowExplorer, NWritersMakeNMinusOneCopies) {
  using Costs = std::set<std::string>;
  EXPECT_EQ(costs({"w0.", "w0."}), Costs{"copies 1, given up 0"});
  EXPECT_EQ(costs({"w0.", "f0w0."}), Costs{"copies 1, given up 0"});
  EXPECT_EQ(costs({"w0.", "w0.", "w0."}), Costs{"copies 2, given up 0"});
  EXPECT_EQ(costs({"c0w0w1.", "w0."}), Costs{"copies 2, given up 0"});
}

TEST(CowExplorer, ACopyStopsWhenItHasBecomeNeedless) {
  using Costs = std::set<std::string>;
  EXPECT_EQ(costs({"w0.", "d0"}),
            (Costs{"copies 0, given up 0", "copies 0, given up 1", "copies 1, given up 0"}));
}

}  // namespace
}  // namespace palimpsest::model
