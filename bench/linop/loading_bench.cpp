// SPDX-License-Identifier: Apache-2.0
// Saving and loading a large operator, and several processes that use one file.
//
//   bench_loading [folder for the file, default .] [GiB of weights, default 1] [processes, default
//   4]
//
// Memory is read from smaps_rollup: Rss counts resident pages, Pss counts a page that n processes
// share as 1 / n of a page in each.
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "palimpsest/linop/copies/saving.hpp"
#include "palimpsest/linop/operators/dense.hpp"
#include "palimpsest/memory/allocator.hpp"

namespace palimpsest {
namespace {

double seconds_of(const auto& f) {
  const auto start = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// A line of smaps_rollup, in MiB.
double mebibytes(const std::string& key) {
  std::ifstream file("/proc/self/smaps_rollup");
  std::string word;
  while (file >> word) {
    double kibibytes = 0;
    if (word == key + ":" && file >> kibibytes) return kibibytes / 1024;
  }
  return NAN;
}

// Each process has a separate pipe: a fast process must not take the signal for a slow one.
constexpr std::size_t kRounds = 2;

// Applies the operator, waits until all processes have, and prints the memory of this process.
void use(const std::string& path, int number, int ready, std::array<int, kRounds> go) {
  const double before = mebibytes("Pss");
  NamedLinop A;
  const double load_s = seconds_of([&] { A = load(path); });
  const double loaded = mebibytes("Pss");
  const Tensor x = Tensor::ones({*A.size("N")}, DType::complex64);
  const double apply_s = seconds_of([&] { A(x); });
  char byte = 0;
  if (write(ready, &byte, 1) != 1 || read(go[0], &byte, 1) != 1) std::_Exit(1);
  std::printf(
      "  process %d: load %.2f ms, +%.2f MiB; first use %.0f ms; in use Rss %.0f MiB, "
      "Pss %.0f MiB (%.0f MiB at the start)\n",
      number, 1e3 * load_s, loaded - before, 1e3 * apply_s, mebibytes("Rss"), mebibytes("Pss"),
      before);
  std::fflush(stdout);
  if (write(ready, &byte, 1) != 1 || read(go[1], &byte, 1) != 1) std::_Exit(1);
}

int run(const std::string& path, double gibibytes, int n_processes) {
  const auto n = static_cast<index_t>(std::sqrt(gibibytes * 1024 * 1024 * 1024 / 8));
  {
    const NamedLinop A = Dense(Tensor::ones({n, n}, DType::complex64), "MN,N->M");
    std::printf("%.2f GiB of weights: save %.0f ms\n", gibibytes,
                1e3 * seconds_of([&] { save(A, path); }));
  }
  Allocator::of(Device{}).trim();
  std::fflush(stdout);
  int ready[2], go[kRounds][2];
  if (pipe(ready) != 0 || pipe(go[0]) != 0 || pipe(go[1]) != 0) return 1;
  for (int i = 0; i < n_processes; ++i) {
    if (fork() != 0) continue;
    use(path, i, ready[1], {go[0][0], go[1][0]});
    std::_Exit(0);
  }
  const std::vector<char> bytes(static_cast<std::size_t>(n_processes));
  for (const auto& signal : go) {
    char byte = 0;
    for (int i = 0; i < n_processes; ++i) {
      if (read(ready[0], &byte, 1) != 1) return 1;
    }
    if (write(signal[1], bytes.data(), bytes.size()) < 0) return 1;
  }
  int failed = 0, status = 0;
  while (wait(&status) > 0) failed += status != 0 ? 1 : 0;
  std::remove(path.c_str());
  return failed;
}

}  // namespace
}  // namespace palimpsest

int main(int argc, char** argv) {
  const std::string folder = argc > 1 ? argv[1] : ".";
  return palimpsest::run(folder + "/bench_loading.pal", argc > 2 ? std::atof(argv[2]) : 1,
                         argc > 3 ? std::atoi(argv[3]) : 4);
}
