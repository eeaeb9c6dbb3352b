// SPDX-License-Identifier: Apache-2.0
// Quality and time of the placement of buffers.
//
//     bench_placement [--effort ms] [--capacity bytes] [file.csv]...
//
// A file has the columns id, lower, upper, size of the minimalloc benchmarks, with lives that
// exclude `upper`. Without files, random buffers.
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "palimpsest/plan/placement.hpp"

namespace palimpsest {
namespace {

std::vector<Interval> read_csv(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::vector<Interval> intervals;
  for (std::getline(file, line); std::getline(file, line);) {
    std::istringstream fields(line);
    std::string id, lower, upper, size;
    std::getline(fields, id, ',');
    std::getline(fields, lower, ',');
    std::getline(fields, upper, ',');
    std::getline(fields, size, ',');
    intervals.push_back({std::stoll(size), std::stoi(lower), std::stoi(upper) - 1, 0});
  }
  return intervals;
}

std::vector<Interval> random_intervals(int n) {
  std::mt19937 random(3);
  std::vector<Interval> intervals;
  for (int i = 0; i < n; ++i) {
    const int first = static_cast<int>(random() % static_cast<unsigned>(n));
    const auto life = random() % 100 == 0 ? random() % static_cast<unsigned>(n) : random() % 50;
    intervals.push_back({static_cast<index_t>(64 * (1 + random() % (1u << (random() % 12)))), first,
                         std::min(first + static_cast<int>(life), n)});
  }
  return intervals;
}

void report(const std::string& name, std::vector<Interval> intervals,
            const PlacementOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  const ArenaSize placement = place(intervals, options);
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
  std::cout << name << ": " << intervals.size() << " buffers, " << placement.bytes
            << " bytes, lower bound " << placement.lower_bound << ", ratio "
            << static_cast<double>(placement.bytes) / static_cast<double>(placement.lower_bound)
            << ", " << time.count() << " s\n";
}

}  // namespace
}  // namespace palimpsest

int main(int argc, char** argv) {
  using namespace palimpsest;
  PlacementOptions options;
  std::vector<std::string> files;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--effort" && i + 1 < argc) {
      options.effort = std::atof(argv[++i]);
    } else if (argument == "--capacity" && i + 1 < argc) {
      options.capacity = std::atoll(argv[++i]);
    } else {
      files.push_back(argument);
    }
  }
  PlacementOptions bytes = options;
  bytes.alignment = 1;
  for (const std::string& file : files) report(file, read_csv(file), bytes);
  if (!files.empty()) return 0;
  for (int n : {1'000, 10'000, 100'000}) report("random", random_intervals(n), options);
}
