// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <map>

#include "model/mutants.hpp"
#include "model/scenarios.hpp"
#include "support/long_run.hpp"

// Every mutant of make_mutants.py is detected: a program has a violation, or its outcomes differ
// from those of the production template.
namespace palimpsest::model {
namespace {

// Equivalent mutants, with the reason.
const std::map<std::string, std::string>& equivalent() {
  static const std::string an_owner = "the caller is an owner, so it sees at least one";
  static const std::string a_handle = "the caller has a handle, so it sees at least one";
  static const std::string no_shortcut = "without the shortcut the subtraction tells the same";
  static const std::map<std::string, std::string> all{
      {"drop_ref: return refs(word.fetch_sub(kOneRef, acq_rel)) [== -> <=] 1;", an_owner},
      {"is_sole: return word.load(acquire) [== -> <=] kOneRef;", an_owner},
      {"materialize: if (refs(seen) [== -> <=] 1) return Outcome::taken_over;", an_owner},
      {"materialize: if (refs(seen) - copiers(seen) [== -> <=] 1)",
       "the caller is no copier, so there is at least one that is none"},
      {"materialize: if (refs(left) [== -> <=] 0)", "unsigned"},
      {"materialize: else if (left [== -> <=] kOneRef)", "refs = 0 went another way before"},
      {"replace: if (refs(old) [== -> <=] 1) environment.free_old();", an_owner},
      {"drop_use: if ([uses.load(acquire) == 1 -> false]) return true;", no_shortcut},
      {"drop_use: if (uses.load(acquire) == [1 -> 0]) return true;", no_shortcut},
      {"drop_use: if (uses.load(acquire) [== -> <=] 1) return true;", a_handle},
      {"drop_use: return uses.fetch_sub(1, acq_rel) [== -> <=] 1;", a_handle},
      {"materialize: an exchange that succeeds acquires nothing",
       "the caller's reference ordered the data before its reads; it learns nothing about others"},
  };
  return all;
}

// The first program that distinguishes the mutant from the production template, and the difference;
// else empty.
std::string verdict(const Mutant& mutant, const std::vector<Scenario>& scenarios,
                    const std::vector<Report>& production) {
  for (std::size_t k = 0; k < scenarios.size(); ++k) {
    const Report report = run(scenarios[k], mutant.protocol);
    if (!report.violation.empty()) return report.violation + " (" + scenarios[k].name() + ")";
    for (const std::string& outcome : report.outcomes) {
      if (!production[k].outcomes.contains(outcome)) {
        return outcome + " (" + scenarios[k].name() + ")";
      }
    }
    for (const std::string& outcome : production[k].outcomes) {
      if (!report.outcomes.contains(outcome)) {
        return "never: " + outcome + " (" + scenarios[k].name() + ")";
      }
    }
  }
  return "";
}

TEST(CowMutants, EachIsKilledOrEquivalent) {
  std::vector<Scenario> scenarios = telling();
  if (testing::length_factor() > 1) {
    for (const Scenario& scenario : two_threads()) scenarios.push_back(scenario);
    for (const Scenario& scenario : three_threads()) scenarios.push_back(scenario);
  }
  std::vector<Report> production;
  for (const Scenario& scenario : scenarios) {
    production.push_back(run(scenario, PALIMPSEST_PROTOCOL_OF(cow)));
    ASSERT_EQ(production.back().violation, "") << scenario.name();
  }
  std::string table;
  std::size_t n_killed = 0;
  std::set<std::string> survivors;
  for (const Mutant& mutant : mutants()) {
    const std::string killed_by = verdict(mutant, scenarios, production);
    const auto reason = equivalent().find(mutant.name);
    table += "  " + mutant.name + "\n    ";
    if (!killed_by.empty()) {
      ++n_killed;
      table += "killed: " + killed_by + "\n";
      EXPECT_EQ(reason, equivalent().end()) << mutant.name << " is listed, but " << killed_by;
      continue;
    }
    survivors.insert(mutant.name);
    table += reason == equivalent().end() ? "SURVIVES\n" : "equivalent: " + reason->second + "\n";
    EXPECT_NE(reason, equivalent().end()) << mutant.name << " survives";
  }
  for (const auto& [name, reason] : equivalent()) {
    EXPECT_TRUE(survivors.contains(name)) << "listed, but no such mutant survives: " << name;
  }
  summarize("mutants", std::to_string(mutants().size()) +
                           " mutants of the protocol: " + std::to_string(n_killed) + " killed, " +
                           std::to_string(survivors.size()) + " equivalent\n" + table);
}

}  // namespace
}  // namespace palimpsest::model
