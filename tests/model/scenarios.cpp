// SPDX-License-Identifier: Apache-2.0
#include "model/scenarios.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>

namespace palimpsest::model {

std::vector<Scenario> two_threads() {
  const std::string longest = "c0w0w1";
  const std::vector<std::string> scripts{"w0",   "r0",    "o0",     "r0o0",    "f0w0",
                                         "p0o0", longest, "w0c0w1", "c0r0d1w0"};
  std::vector<Scenario> all;
  for (std::size_t a = 0; a < scripts.size(); ++a) {
    for (std::size_t b = a; b < scripts.size(); ++b) {
      if (scripts[a] != longest || scripts[b] != longest) all.push_back({{scripts[a], scripts[b]}});
    }
  }
  all.push_back({{"w0c0w0w1", "r0"}});
  all.push_back({{"w0", "o0"}, cow::kFixed});
  all.push_back({{"f0w0", "c0w0"}, cow::kFixed});
  all.push_back({{"k0w0w1", "k0r1w1"}, 1});
  all.push_back({{"k0c1w1", "w0k0"}, 1});
  all.push_back({{"c0", "c0w0"}, cow::kMaxRefs - 2});
  all.push_back({{"g0w0", "w0"}});
  all.push_back({{"g0r0", "c0w1"}, 0, 2});
  all.push_back({{"w0", "w0"}, 0, 2});
  all.push_back({{"w0", "r0"}, 0, 2});
  all.push_back({{"w0", "o0"}, 0, 3});
  return all;
}

std::vector<Scenario> three_threads() {
  return {
      {{"w0", "w0", "w0"}},      {{"w0", "w0", "r0"}},
      {{"w0", "r0", "o0"}},      {{"f0w0", "w0", "r0"}},
      {{"f0", "w0", "w0"}},      {{"r0o0", "r0o0", "w0"}},
      {{"c0w0", "w0", "r0"}},    {{"w0", "r0", "w0"}, cow::kFixed},
      {{"k0w1", "k0", "r0"}, 1}, {{"g0", "w0", "d0"}, 0, 2},
      {{"o0", "w0", "p0"}},
  };
}

namespace {

Scenario family(std::vector<std::string> scripts, std::size_t pins, bool clones = false) {
  return Scenario{std::move(scripts), 0, 1, true, pins, clones};
}

}  // namespace

std::vector<Scenario> families() {
  return {
      // The handles end the storage after all its uses.
      family({"N0R0D0", "R0N0"}, 0),
      family({"R0", "R0", "R0"}, 0),
      // Concurrent clones and exports are reads.
      family({"C0r0", "C0w0"}, 0),
      family({"E0Z0", "C0w0"}, 0),
      family({"E0Z0", "E0", "C0w0"}, 0),
      // A clone that finds the pin gone has everything written through it.
      family({"X0U0", "U0C0r0"}, 2),
      family({"X0U0", "C0r0w0", "C0"}, 1),
      // An export for reading that joined a pin keeps the data in place after the pin ends.
      family({"U0A0C0W0d0", "E0S0Z0"}, 1),
      family({"U0C0", "E0C0Z0"}, 1),
      family({"U0", "E0U0C0r0", "C0"}, 1),
      // A pin is raised while other threads clone and drop.
      family({"P0C0X0r1U0C0r2", "r0w0"}, 0, true),
      family({"d0P0X0U0", "c0d0w1"}, 0, true),
      family({"W0P0X0", "d0", "r0"}, 0, true),
  };
}

std::vector<Scenario> telling() {
  return {
      {{"w0", "w0"}},
      {{"w0", "r0"}},
      {{"w0.", "d0"}},
      {{"o0", "w0"}},
      {{"o0.", "p0o0."}},
      {{"p0", "r0"}},
      {{"r0", "c0w0w1"}},
      {{"f0", "w0"}},
      {{"g0.", "r0"}},
      {{"f0", "r0"}, 1},
      {{"w0", "r0"}, 0, 2},
      {{"w0", "o0"}, cow::kFixed},
      {{"f0.", "w0."}, cow::kFixed},
      {{"c0.", "c0."}, cow::kMaxRefs - 2},
      {{"c0.", "c0."}, cow::kMaxRefs - 3},
      {{"k0w0.", "k0r1."}, 1},
      {{"w0", "c0w0w1"}},
      {{"w0", "f0w0"}},
      {{"w0", "w0", "r0"}},
      {{"w0", "r0", "o0"}},
      {{"f0", "w0", "r0"}},
      family({"R0", "R0"}, 0),
      family({"N0D0", "R0"}, 0),
      family({"X0U0", "C0r0"}, 1),
      family({"C0.", "E0C0."}, 1),
      family({"U0A0C0W0d0", "E0S0Z0"}, 1),
      family({"P0C0X0r0U0C0r1"}, 0),
  };
}

void summarize(const std::string& title, const std::string& text) {
  std::cout << text;
  const char* const folder = std::getenv("PALIMPSEST_SUMMARIES");
  if (folder == nullptr) return;
  const std::filesystem::path own = std::filesystem::path(folder) / title;
  std::filesystem::create_directories(own);
  std::ofstream(own / "table") << text;
  std::ofstream(own / "summary") << text.substr(0, text.find('\n') + 1);
}

}  // namespace palimpsest::model
