// SPDX-License-Identifier: Apache-2.0
// The time to decide whether two views overlap.
#include <benchmark/benchmark.h>

#include "palimpsest/tensor/tensor.hpp"

namespace palimpsest {
namespace {

const Tensor& volume() {
  static const Tensor t = Tensor::empty({64, 128, 128}, DType::complex64);
  return t;
}

void overlap(benchmark::State& state, const Tensor& a, const Tensor& b, bool expected) {
  if (overlaps(a, b) != expected) return state.SkipWithError("wrong answer");
  for (auto _ : state) benchmark::DoNotOptimize(overlaps(a, b));
}
BENCHMARK_CAPTURE(overlap, the_same_view, volume(), volume(), true);
BENCHMARK_CAPTURE(overlap, disjoint_slabs, volume()(slice(0, 32)), volume()(slice(32, 64)), false);
BENCHMARK_CAPTURE(overlap, neighbouring_slabs, volume()(slice(0, 33)), volume()(slice(32, 64)),
                  true);
BENCHMARK_CAPTURE(overlap, disjoint_tiles, volume()(ellipsis, slice(0, 64), slice(0, 64)),
                  volume()(ellipsis, slice(64, 128), slice(64, 128)), false);
BENCHMARK_CAPTURE(overlap, meeting_tiles, volume()(ellipsis, slice(0, 65), slice(0, 65)),
                  volume()(ellipsis, slice(64, 128), slice(64, 128)), true);
BENCHMARK_CAPTURE(overlap, even_and_odd_columns, volume()(ellipsis, slice(0, {}, 2)),
                  volume()(ellipsis, slice(1, {}, 2)), false);
BENCHMARK_CAPTURE(overlap, even_and_third_columns, volume()(ellipsis, slice(0, {}, 2)),
                  volume()(ellipsis, slice(1, {}, 3)), true);
BENCHMARK_CAPTURE(overlap, real_and_imaginary_parts, volume().view_as_real()(ellipsis, 0),
                  volume().view_as_real()(ellipsis, 1), false);
BENCHMARK_CAPTURE(overlap, transposed, volume(), volume().transpose(), true);
BENCHMARK_CAPTURE(overlap, two_storages, volume(), Tensor::empty({4}), false);

void internal_overlap(benchmark::State& state, const Tensor& t, bool expected) {
  if (has_internal_overlap(t) != expected) return state.SkipWithError("wrong answer");
  for (auto _ : state) benchmark::DoNotOptimize(has_internal_overlap(t));
}
BENCHMARK_CAPTURE(internal_overlap, permuted, volume().permute({2, 0, 1}), false);
BENCHMARK_CAPTURE(internal_overlap, windows, volume()(0, 0).unfold(0, 8, 4), true);

}  // namespace
}  // namespace palimpsest
