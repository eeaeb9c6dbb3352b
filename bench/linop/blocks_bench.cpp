// SPDX-License-Identifier: Apache-2.0
// ArrayToBlocks and its adjoint in single precision, complex, on one thread: bytes per second of
// the larger side (the blocks), and its ratio to memcpy of a side of that size. Applications and
// memcpy alternate; the ratios are medians over neighbours in processor time, so that other work of
// the machine affects both.
#include <benchmark/benchmark.h>
#include <tbb/global_control.h>

#include <algorithm>
#include <complex>
#include <cstring>
#include <ctime>
#include <string>
#include <vector>

#include "palimpsest/linop/containers/blocks.hpp"

namespace palimpsest {
namespace {

double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double seconds_of(const auto& f) {
  const double start = processor_seconds();
  f();
  return processor_seconds() - start;
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

void blocks(benchmark::State& state, const Extents& image, const Extents& block,
            const Extents& stride, bool adjoint) {
  const tbb::global_control one_thread(tbb::global_control::max_allowed_parallelism, 1);
  const NamedLinop A = ArrayToBlocks(image, block, stride);
  const Tensor x = Tensor::random_normal(image, DType::complex64, {1});
  const Tensor y = A(x);
  const NamedLinop B = adjoint ? A.H() : A;
  const Tensor& in = adjoint ? y : x;
  Tensor out = B(in);
  const auto bytes = static_cast<std::size_t>(y.numel()) * sizeof(std::complex<float>);
  const std::vector<std::byte> from(bytes, std::byte{1});
  std::vector<std::byte> to(bytes);
  std::vector<double> seconds, shares;
  for (auto _ : state) {
    seconds.push_back(seconds_of([&] { B.apply(in, out); }));
    const double copy = seconds_of([&] {
      std::memcpy(to.data(), from.data(), bytes);
      benchmark::DoNotOptimize(to.data());
    });
    shares.push_back(copy / seconds.back());
  }
  state.counters["bytes/s"] = static_cast<double>(bytes) / median(seconds);
  state.counters["of_memcpy"] = median(shares);
}

struct Case {
  const char* name;
  Extents image, block, stride;
};

int register_cases() {
  const Case cases[] = {{"1024x1024_block_8_stride_4", {1024, 1024}, {8, 8}, {4, 4}},
                        {"1024x1024_block_8_stride_8", {1024, 1024}, {8, 8}, {8, 8}},
                        {"1001x1001_block_7_stride_7", {1001, 1001}, {7, 7}, {7, 7}},
                        {"4000000_block_64_stride_32", {4000000}, {64}, {32}},
                        {"96x96x96_block_8_stride_4", {96, 96, 96}, {8, 8, 8}, {4, 4, 4}},
                        {"192x192x192_block_16_stride_8", {192, 192, 192}, {16, 16, 16}, {8, 8, 8}},
                        {"512x512_block_6_stride_3", {512, 512}, {6, 6}, {3, 3}}};
  for (const Case& c : cases) {
    for (const bool adjoint : {false, true}) {
      const std::string name = std::string(adjoint ? "adjoint_" : "forward_") + c.name;
      benchmark::RegisterBenchmark(name.c_str(),
                                   [c, adjoint](benchmark::State& state) {
                                     blocks(state, c.image, c.block, c.stride, adjoint);
                                   })
          ->Unit(benchmark::kMillisecond)
          ->MeasureProcessCPUTime();
    }
  }
  return 0;
}
[[maybe_unused]] const int kRegistered = register_cases();

}  // namespace
}  // namespace palimpsest

BENCHMARK_MAIN();
