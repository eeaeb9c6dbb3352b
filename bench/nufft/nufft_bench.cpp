// SPDX-License-Identifier: Apache-2.0
// Nufft in single precision: 10^6 points at uniformly random frequencies, the case with the lowest
// locality. A case is image / decimal digits of eps / threads. Counters: points per second; the
// time of the FFT of the padded grid alone, as a share of the whole; the time to sort the points,
// once per trajectory, in seconds.
#include <benchmark/benchmark.h>
#include <tbb/global_control.h>

#include <chrono>
#include <cmath>
#include <map>
#include <tuple>

#include "palimpsest/kernels/fft/fft.hpp"
#include "palimpsest/linop/transforms/nufft.hpp"
#include "palimpsest/ops/transforms/nufft_geometry.hpp"

namespace palimpsest {
namespace {

constexpr index_t kPoints = 1000000;

double seconds_of(const auto& f) {
  const auto start = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

struct Problem {
  NamedLinop A;
  Tensor x, y;
  Extents padded;
  double sort_s = 0;
};

// Made once, for all numbers of threads and both directions.
const Problem& problem(const Extents& image, int digits) {
  static std::map<std::pair<std::size_t, int>, Problem> made;
  const auto [entry, is_new] = made.try_emplace({image.size(), digits});
  Problem& p = entry->second;
  if (!is_new) return p;
  Tensor k =
      Tensor::random_uniform({kPoints, static_cast<index_t>(image.size())}, DType::float32, {1});
  auto* values = static_cast<float*>(k.raw_mutable_data());
  for (index_t i = 0; i < k.numel(); ++i) {
    values[i] = (values[i] - 0.5F) * static_cast<float>(image[0]);
  }
  const double eps = std::pow(10, -digits);
  p.sort_s = seconds_of([&] { p.A = Nufft(k, image, "K", {.eps = eps}); });
  p.padded = NufftGeometry(image, {.eps = eps}, DType::float32, "bench").padded;
  p.x = Tensor::random_normal(image, DType::complex64, {2});
  p.y = Tensor::random_normal({kPoints}, DType::complex64, {3});
  return p;
}

// The time of the FFT that both directions contain, in seconds.
double fft_seconds(const Extents& padded) {
  Tensor grid = Tensor::random_normal(padded, DType::complex64, {4});
  FftSpec spec;
  spec.extents = padded;
  spec.in_strides = spec.out_strides = contiguous_strides(padded);
  for (std::size_t d = 0; d < padded.size(); ++d) spec.axes.push_back(static_cast<index_t>(d));
  spec.centered = spec.in_place = true;
  spec.scale = 1 / std::sqrt(static_cast<double>(grid.numel()));
  const FftPlan plan = fft_plan(spec);
  void* data = grid.raw_mutable_data();
  execute(plan, data, data);
  double best = INFINITY;
  for (int i = 0; i < 5; ++i) {
    best = std::min(best, seconds_of([&] { execute(plan, data, data); }));
  }
  return best;
}

void transform(benchmark::State& state, const Extents& image, bool adjoint) {
  const auto digits = static_cast<int>(state.range(0));
  const tbb::global_control control(tbb::global_control::max_allowed_parallelism,
                                    static_cast<std::size_t>(state.range(1)));
  const Problem& p = problem(image, digits);
  const NamedLinop A = adjoint ? p.A.H() : p.A;
  const Tensor& in = adjoint ? p.y : p.x;
  Tensor out = A(in);
  double seconds = 0;
  for (auto _ : state) seconds += seconds_of([&] { A.apply(in, out); });
  const auto n = static_cast<double>(state.iterations());
  state.counters["points/s"] = static_cast<double>(kPoints) * n / seconds;
  state.counters["fft_share"] = fft_seconds(p.padded) * n / seconds;
  state.counters["sort_s"] = p.sort_s;
}

void arguments(benchmark::internal::Benchmark* b) {
  b->ArgNames({"digits", "threads"})->ArgsProduct({{3, 6}, {1, 2}});
  b->Unit(benchmark::kMillisecond)->UseRealTime();
}

BENCHMARK_CAPTURE(transform, forward_512x512, Extents{512, 512}, false)->Apply(arguments);
BENCHMARK_CAPTURE(transform, adjoint_512x512, Extents{512, 512}, true)->Apply(arguments);
BENCHMARK_CAPTURE(transform, forward_128x128x128, Extents{128, 128, 128}, false)->Apply(arguments);
BENCHMARK_CAPTURE(transform, adjoint_128x128x128, Extents{128, 128, 128}, true)->Apply(arguments);

}  // namespace
}  // namespace palimpsest

BENCHMARK_MAIN();
