// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace palimpsest::bench {

/// Something that is made of n parts. `prepare` builds what the work starts from and is not timed;
/// it returns the work.
struct GrowthCase {
  std::string name;
  std::function<std::function<void()>(int n)> prepare;
  int most_parts = 10'000;
};

/// Graphs, functions, what they are saved as and how they are printed.
std::vector<GrowthCase> graph_cases();
/// Operators, their splits and files.
std::vector<GrowthCase> operator_cases();

}  // namespace palimpsest::bench
