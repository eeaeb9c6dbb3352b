// SPDX-License-Identifier: Apache-2.0
// palimpsest bench: how fast this machine applies operators.

#include "palimpsest/cli/steps/prelude.hpp"
#include "palimpsest/imaging/coil_maps.hpp"
#include "palimpsest/imaging/forward_model.hpp"
#include "palimpsest/imaging/patterns.hpp"
#include "palimpsest/imaging/trajectories.hpp"
#include "palimpsest/linop/transforms/fft.hpp"

namespace palimpsest::cli {
namespace {

struct BenchCommand {
  index_t size = 256, coils = 8, rounds = 5;
  CommonOptions common;
};

struct Case {
  std::string name;
  NamedLinop A;
  Tensor x;
  double bytes = 0;  // moved at least: input and output
};

std::vector<Case> cases_of(const BenchCommand& options) {
  const index_t n = options.size;
  const Tensor maps = ring_coil_maps(options.coils, n, n);
  const Tensor image = Tensor::random_normal({n, n}, DType::complex64, {1, 1});
  const Tensor images = Tensor::random_normal(maps.shape(), DType::complex64, {1, 2});
  const Tensor mask =
      sampling_pattern(n, n, {.acceleration = 4, .center = std::min<index_t>(24, n / 4)});
  const Tensor spokes = radial_trajectory({.spokes = n / 2, .samples = 2 * n});
  const NamedLinop sense = sense_model(maps, {.mask = mask});
  const NamedLinop radial = trajectory_transform(spokes, {n, n});
  return {
      {"Fft of the coils", Fft(2, {.centered = true}).H(), images, 2.0 * double(images.nbytes())},
      {"SENSE", sense, image, double(image.nbytes() + images.nbytes())},
      {"SENSE, normal", sense.N(), image, 2.0 * double(image.nbytes())},
      {"Nufft, radial", radial, image, double(image.nbytes() + spokes.nbytes())},
      {"Nufft, adjoint", radial.H(), radial(image), double(image.nbytes() + spokes.nbytes())}};
}

// The best of several applications, after one that compiles.
double seconds_of(const Case& one, index_t rounds) {
  one.A(one.x);
  double best = 1e300;
  for (index_t i = 0; i < rounds; ++i) {
    const StopWatch watch;
    one.A(one.x);
    best = std::min(best, watch.seconds());
  }
  return best;
}

double copy_seconds(index_t n_bytes, index_t rounds) {
  const Tensor from = Tensor::ones({n_bytes / 8}, DType::float64);
  double best = 1e300;
  for (index_t i = 0; i <= rounds; ++i) {
    const StopWatch watch;
    const Tensor copy = from.clone();
    best = std::min(best, watch.seconds());
  }
  return best;
}

void bench(const BenchCommand& options) {
  constexpr index_t kCopyBytes = index_t{1} << 26;
  expect_between("--size", options.size, 8, 4096);
  if (options.coils < 1 || options.coils > 256 || options.rounds < 1) {
    throw UsageError(
        fmt::format("[--coils, --rounds] got {} and {}, expected 1 to 256, and at least "
                    "1",
                    options.coils, options.rounds));
  }
  Run run("bench", options.common);
  run.facts().set("size", options.size).set("coils", options.coils);
  std::vector<std::vector<std::string>> rows = {{"", "ms", "GB/s", "bytes"}};
  std::vector<JsonReport> results;
  const auto add = [&](const std::string& name, double seconds, double bytes, index_t peak) {
    rows.push_back({name, fmt::format("{:.3f}", 1e3 * seconds),
                    fmt::format("{:.2f}", 1e-9 * bytes / seconds), with_commas(peak)});
    JsonReport one;
    one.set("name", name).set("seconds", seconds).set("bytes_per_second", bytes / seconds);
    results.push_back(one.set("peak_bytes", peak));
  };
  const std::vector<Case> cases = cases_of(options);
  index_t peak = 2 * kCopyBytes;
  for (const Case& one : cases) {
    peak = std::max(peak, one.A.plan({DType::complex64, one.x.shape(), {}}).peak_bytes);
  }
  if (run.announce(peak)) return run.finish("");
  add("copy of 64 MiB", copy_seconds(kCopyBytes, options.rounds), 2.0 * kCopyBytes, 2 * kCopyBytes);
  for (const Case& one : cases) {
    add(one.name, seconds_of(one, options.rounds), one.bytes,
        one.A.plan({DType::complex64, one.x.shape(), {}}).peak_bytes);
  }
  run.facts().set("results", results);
  run.finish(aligned_table(rows));
}

}  // namespace

void add_bench(CommandLine& line) {
  const auto options = std::make_shared<BenchCommand>();
  Command command = line.add("bench", "Measure how fast this machine applies operators");
  command.option("--size", "N", options->size, "Width and height of the image, 8 to 4096")
      .option("--coils", "N", options->coils, "Coils, 1 to 256")
      .option("--rounds", "N", options->rounds, "Number of applications; the fastest counts")
      .action([options] { bench(*options); });
  add_common(command, options->common);
}

}  // namespace palimpsest::cli
