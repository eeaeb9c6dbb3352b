// SPDX-License-Identifier: Apache-2.0
// ArrayToBlocks and its adjoint in single precision, complex: bytes per second of the larger side,
// that of the blocks, and the same as a share of what memcpy reaches on a side of that size.
#include <benchmark/benchmark.h>

#include <chrono>
#include <cmath>
#include <complex>
#include <cstring>
#include <string>
#include <vector>

#include "palimpsest/linop/blocks.hpp"

namespace palimpsest {
namespace {

double seconds_of(const auto& f) {
  const auto start = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double memcpy_rate(std::size_t bytes) {
  std::vector<std::byte> from(bytes, std::byte{1}), to(bytes);
  double best = INFINITY;
  for (int i = 0; i < 5; ++i) {
    best = std::min(best, seconds_of([&] {
                      std::memcpy(to.data(), from.data(), bytes);
                      benchmark::DoNotOptimize(to.data());
                    }));
  }
  return static_cast<double>(bytes) / best;
}

void blocks(benchmark::State& state, const Extents& image, const Extents& block,
            const Extents& stride, bool adjoint) {
  const NamedLinop A = ArrayToBlocks(image, block, stride);
  const Tensor x = Tensor::random_normal(image, DType::complex64, {1});
  const Tensor y = A(x);
  const NamedLinop B = adjoint ? A.H() : A;
  const Tensor& in = adjoint ? y : x;
  Tensor out = B(in);
  double seconds = 0;
  for (auto _ : state) seconds += seconds_of([&] { B.apply(in, out); });
  const double bytes = static_cast<double>(y.numel()) * sizeof(std::complex<float>);
  const double rate = bytes * static_cast<double>(state.iterations()) / seconds;
  state.counters["bytes/s"] = rate;
  state.counters["of_memcpy"] = rate / memcpy_rate(static_cast<std::size_t>(bytes));
}

struct Case {
  const char* name;
  Extents image, block, stride;
};

int register_cases() {
  const Case cases[] = {{"1024x1024_block_8_stride_4", {1024, 1024}, {8, 8}, {4, 4}},
                        {"1024x1024_block_8_stride_8", {1024, 1024}, {8, 8}, {8, 8}},
                        {"96x96x96_block_8_stride_4", {96, 96, 96}, {8, 8, 8}, {4, 4, 4}}};
  for (const Case& c : cases) {
    for (const bool adjoint : {false, true}) {
      const std::string name = std::string(adjoint ? "adjoint_" : "forward_") + c.name;
      benchmark::RegisterBenchmark(name.c_str(),
                                   [c, adjoint](benchmark::State& state) {
                                     blocks(state, c.image, c.block, c.stride, adjoint);
                                   })
          ->Unit(benchmark::kMillisecond)
          ->UseRealTime();
    }
  }
  return 0;
}
[[maybe_unused]] const int kRegistered = register_cases();

}  // namespace
}  // namespace palimpsest

BENCHMARK_MAIN();
