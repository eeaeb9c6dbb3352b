// SPDX-License-Identifier: Apache-2.0
// CG-SENSE of a volume within byte budgets, and `bart pics` (Debian package bart) on the same
// files.
//
//   budget_bench COMMAND [size, default 160] [coils, 12] [iterations, 20] [repetitions, 2] [folder]
//
// COMMAND is the palimpsest command. Budgets: none, 40 % and 15 % of the peak announced without
// one, and the smallest, which the command names when it refuses an impossible one. Peak: largest
// resident set of the process minus that of `palimpsest --version`. Seconds: wall clock of the
// whole process, best of the repetitions, files in the page cache; and processor time of all
// threads, which other work on the machine changes less. The ratio is of processor times. Error: of
// the image, compared with that without a budget. Prints a table in Markdown and checks no limits.
#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "child_process.hpp"
#include "palimpsest/io/cfl.hpp"
#include "palimpsest/io/npy.hpp"
#include "scan_files.hpp"

namespace palimpsest::bench {
namespace {

using Json = nlohmann::json;
constexpr const char* kLambda = "0.01";

struct Bench {
  std::string command, folder;
  index_t size = 160, coils = 12, iterations = 20, repetitions = 2;

  std::string file(const char* name) const { return folder + "/" + name; }
};

[[noreturn]] void fail(const ChildResult& result) {
  std::fprintf(stderr, "%s\n", result.errors.c_str());
  std::exit(1);
}

// The repetition with the shortest time, and the largest peak of all repetitions.
ChildResult best_of(index_t repetitions, const std::vector<std::string>& command) {
  ChildResult best;
  for (index_t i = 0; i < repetitions; ++i) {
    ChildResult one = run_child(command);
    if (!one.has_run || one.exit_code != 0) return one;
    const auto peak = std::max(one.peak_bytes, best.peak_bytes);
    if (i == 0 || one.seconds < best.seconds) best = std::move(one);
    best.peak_bytes = peak;
  }
  return best;
}

std::vector<std::string> plan_command(const Bench& bench) {
  return {bench.command,
          "plan",
          bench.file("kspace.npy"),
          "--maps",
          bench.file("maps.npy"),
          "--lambda",
          kLambda,
          "--json"};
}

std::vector<std::complex<float>> values_of(const Tensor& t) {
  return t.contiguous().to_vector<std::complex<float>>();
}

// s x - y| / |y|, where s is 1 or, if `free`, the best factor.
double error_of(const Tensor& image, const Tensor& reference, bool free_scale) {
  const auto x = values_of(image), y = values_of(reference);
  std::complex<double> xy = 0;
  double xx = 0, yy = 0, difference = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    xy += std::conj(std::complex<double>(x[i])) * std::complex<double>(y[i]);
    xx += std::norm(std::complex<double>(x[i]));
    yy += std::norm(std::complex<double>(y[i]));
  }
  const std::complex<double> scale = free_scale ? xy / xx : 1.0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    difference += std::norm(scale * std::complex<double>(x[i]) - std::complex<double>(y[i]));
  }
  return std::sqrt(difference / yy);
}

// The budget in "Try --memory N" of a refusal.
std::int64_t smallest_budget(const Bench& bench) {
  std::vector<std::string> command = plan_command(bench);
  command.insert(command.end(), {"--memory", "1"});
  const std::string text = run_child(command).errors, before = "Try --memory ";
  const std::size_t at = text.find(before);
  return at == std::string::npos ? 0 : std::atoll(text.c_str() + at + before.size());
}

void run_bart(const Bench& bench, const Tensor& reference) {
  const auto empty = run_child({"bart", "version"});
  if (!empty.has_run) {
    std::printf("\nbart is not installed\n");
    return;
  }
  const ChildResult result = best_of(
      bench.repetitions, {"bart", "pics", "-S", "-i", std::to_string(bench.iterations), "-l2", "-r",
                          kLambda, bench.file("kspace"), bench.file("maps"), bench.file("bart")});
  if (result.exit_code != 0) fail(result);
  const Tensor image = read_cfl(bench.file("bart"));
  std::printf("| bart pics | | | | %.1f | | %.1f | %.1f | | %.1e |\n",
              static_cast<double>(result.peak_bytes - empty.peak_bytes) / 1e6, result.seconds,
              result.cpu_seconds, error_of(image, reference, /*free_scale=*/true));
}

int run(const Bench& bench) {
  make_scan_files(bench.folder, bench.size, bench.coils);
  const std::int64_t empty = run_child({bench.command, "--version"}).peak_bytes;
  const ChildResult planned = run_child(plan_command(bench));
  if (planned.exit_code != 0) fail(planned);
  const auto whole = Json::parse(planned.output).at("announced_peak_bytes").get<std::int64_t>();
  std::printf("%lld coils, %lld^3 points, %lld iterations; an empty process has %.1f MB\n\n",
              static_cast<long long>(bench.coils), static_cast<long long>(bench.size),
              static_cast<long long>(bench.iterations), static_cast<double>(empty) / 1e6);
  std::printf(
      "| | budget MB | large arrays | announced MB | measured MB | process MB | seconds |"
      " of processors | ratio | error |\n|---|---|---|---|---|---|---|---|---|---|\n");
  const std::int64_t smallest = smallest_budget(bench);
  const std::pair<const char*, std::int64_t> budgets[] = {{"none", whole},
                                                          {"40 %", whole * 4 / 10},
                                                          {"15 %", whole * 15 / 100},
                                                          {"smallest", smallest}};
  Tensor reference;
  double first = 0;
  for (const auto& [name, budget] : budgets) {
    if (budget < smallest) {
      std::printf("| %s | %.1f | not feasible |\n", name, static_cast<double>(budget) / 1e6);
      continue;
    }
    std::vector<std::string> command{bench.command,
                                     "recon",
                                     bench.file("kspace.npy"),
                                     "--maps",
                                     bench.file("maps.npy"),
                                     "--iterations",
                                     std::to_string(bench.iterations),
                                     "--tolerance",
                                     "0",
                                     "--lambda",
                                     kLambda,
                                     "--save",
                                     bench.file("image.npy"),
                                     "--json"};
    if (reference.defined()) {
      command.insert(command.end(), {"--memory", std::to_string(budget)});
    }
    const ChildResult result = best_of(bench.repetitions, command);
    if (result.exit_code != 0) fail(result);
    const Json report = Json::parse(result.output);
    const Tensor image = read_npy(bench.file("image.npy"));
    if (!reference.defined()) {
      reference = image;
      first = result.cpu_seconds;
    }
    const auto peak = static_cast<double>(result.peak_bytes - empty);
    std::printf("| %s | %.1f | in %s | %.1f | %.1f | %.1f | %.1f | %.1f | %.2f | %.1e |\n", name,
                static_cast<double>(budget) / 1e6,
                report.at("plan").at("large_arrays").get<std::string>().c_str(),
                report.at("announced_peak_bytes").get<double>() / 1e6,
                report.at("measured_peak_bytes").get<double>() / 1e6, peak / 1e6, result.seconds,
                result.cpu_seconds, result.cpu_seconds / first,
                error_of(image, reference, /*free_scale=*/false));
    std::fflush(stdout);
  }
  run_bart(bench, reference);
  return 0;
}

}  // namespace
}  // namespace palimpsest::bench

int main(int argc, char** argv) {
  using namespace palimpsest::bench;
  if (argc > 1 && std::string(argv[1]) == "--launch") return launch(argc, argv);
  if (argc < 2) {
    std::fprintf(stderr,
                 "usage: budget_bench COMMAND [size] [coils] [iterations] [repetitions] "
                 "[folder]\n");
    return 2;
  }
  Bench bench;
  bench.command = argv[1];
  const auto number = [&](int i, palimpsest::index_t usual) {
    return argc > i ? static_cast<palimpsest::index_t>(std::atoll(argv[i])) : usual;
  };
  bench.size = number(2, 160);
  bench.coils = number(3, 12);
  bench.iterations = number(4, 20);
  bench.repetitions = number(5, 2);
  bench.folder = std::string(argc > 6 ? argv[6] : ".") + "/scan-" + std::to_string(bench.size) +
                 "-" + std::to_string(bench.coils);
  return run(bench);
}
