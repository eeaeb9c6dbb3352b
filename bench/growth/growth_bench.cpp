// SPDX-License-Identifier: Apache-2.0
// Growth of the cost of compiling, planning, running, saving and printing with the number of parts.
// For each case the processor time at 10, 100, 1000 and 10,000 parts, the exponent p of the line
// time = c n^p through the last three (least squares in logarithms), the exponent of the last
// decade alone, and the peak memory of the process at the last size. Ends with the cases whose
// fitted exponent is above 1.2.
//
//     bench_growth [--most parts] [name]...     names: cases whose name contains one of these
#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <string>
#include <vector>

#include "growth_cases.hpp"

namespace palimpsest::bench {
namespace {

constexpr double kHighestExponent = 1.2;
constexpr double kShortest_s = 0.02;  // minimum total time of the repetitions of a measurement

double processor_time_s() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// The shortest of at least two repetitions, unless one takes more than a second.
double time_s(const std::function<void()>& work) {
  double least = 1e300, all = 0;
  for (int k = 0; k < 1000 && (k < 2 || all < kShortest_s) && all < 1; ++k) {
    const double start = processor_time_s();
    work();
    const double took = processor_time_s() - start;
    least = std::min(least, took);
    all += took;
  }
  return least;
}

// callgrind counts within the function of this name.
__attribute__((noinline)) void counted_work(const std::function<void()>& work) { work(); }

// Resets the process' high-water mark to its current memory, if the system allows this.
void reset_peak() { std::ofstream("/proc/self/clear_refs") << "5"; }
double peak_mib() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::atof(line.c_str() + 6) / 1024;
  }
  return 0;
}

// The slope of log(time) over log(n), by least squares.
double exponent(const std::vector<std::pair<int, double>>& points) {
  double sx = 0, sy = 0, sxx = 0, sxy = 0;
  for (const auto& [n, time] : points) {
    const double x = std::log(n), y = std::log(time);
    sx += x, sy += y, sxx += x * x, sxy += x * y;
  }
  const double m = static_cast<double>(points.size());
  return (m * sxy - sx * sy) / (m * sxx - sx * sx);
}

// The fitted exponent; 0 if there are fewer than two points to fit.
double measure(const GrowthCase& c, int most_parts) {
  std::printf("%-44s", c.name.c_str());
  std::vector<std::pair<int, double>> points;
  reset_peak();
  for (int n = 10; n <= 10'000; n *= 10) {
    if (n > std::min(most_parts, c.most_parts)) {
      std::printf("%11s", "");
      continue;
    }
    const double t = time_s(c.prepare(n));
    std::printf("%11.3f", 1e3 * t);
    std::fflush(stdout);
    points.emplace_back(n, t);
  }
  if (points.size() < 3) {
    std::printf("\n");
    return 0;
  }
  const double last = exponent({points.end() - 2, points.end()});
  points.erase(points.begin());
  const double fitted = exponent(points);
  std::printf("%8.2f%8.2f%9.0f\n", fitted, last, peak_mib());
  std::fflush(stdout);
  return fitted;
}

bool is_wanted(const std::string& name, const std::vector<std::string>& parts) {
  return parts.empty() || std::any_of(parts.begin(), parts.end(), [&](const std::string& part) {
           return name.find(part) != std::string::npos;
         });
}

void run_once(int parts, const std::string& name) {
  for (const auto& cases : {graph_cases(), operator_cases()}) {
    for (const GrowthCase& c : cases) {
      if (c.name == name && parts <= c.most_parts) counted_work(c.prepare(parts));
    }
  }
}

void list() {
  for (const auto& cases : {graph_cases(), operator_cases()}) {
    for (const GrowthCase& c : cases) std::printf("%s\n", c.name.c_str());
  }
}

void run(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "--list") == 0) return list();
  if (argc == 4 && std::strcmp(argv[1], "--once") == 0) {
    return run_once(std::atoi(argv[2]), argv[3]);
  }
  int most_parts = 10'000;
  std::vector<std::string> wanted;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--most") == 0 && i + 1 < argc) {
      most_parts = std::atoi(argv[++i]);
    } else {
      wanted.emplace_back(argv[i]);
    }
  }
  std::printf("%-44s%11s%11s%11s%11s%8s%8s%9s\n", "processor time in ms at", "10", "100", "1000",
              "10000", "exp.", "last", "MiB");
  std::vector<std::string> above;
  for (const auto& cases : {graph_cases(), operator_cases()}) {
    for (const GrowthCase& c : cases) {
      if (is_wanted(c.name, wanted) && measure(c, most_parts) > kHighestExponent) {
        above.push_back(c.name);
      }
    }
  }
  std::printf("\n%zu cases with an exponent above %.1f\n", above.size(), kHighestExponent);
  for (const std::string& name : above) std::printf("  %s\n", name.c_str());
}

}  // namespace
}  // namespace palimpsest::bench

int main(int argc, char** argv) {
  palimpsest::bench::run(argc, argv);
  return 0;
}
