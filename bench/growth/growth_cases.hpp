// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace palimpsest::bench {

/// A case with n parts. `prepare` builds the inputs of the work and is not timed; it returns the
/// work.
struct GrowthCase {
  std::string name;
  std::function<std::function<void()>(int n)> prepare;
  int most_parts = 10'000;
};

/// Graphs and functions: building, saving and printing.
std::vector<GrowthCase> graph_cases();
/// Operators, their splits and files.
std::vector<GrowthCase> operator_cases();

}  // namespace palimpsest::bench
