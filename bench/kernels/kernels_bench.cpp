// SPDX-License-Identifier: Apache-2.0
// Kernels on arrays of the size of an 8-coil image. Bytes count one read or write per element.
#include <benchmark/benchmark.h>

#include <array>
#include <complex>
#include <numeric>
#include <vector>

#include "palimpsest/base/random.hpp"
#include "palimpsest/kernels/arrays/index.hpp"
#include "palimpsest/kernels/elementwise/elementwise.hpp"
#include "palimpsest/kernels/fft/fft.hpp"
#include "palimpsest/kernels/matrices/contract.hpp"
#include "palimpsest/kernels/pool/parallel.hpp"
#include "palimpsest/kernels/reduce/reduce.hpp"

namespace palimpsest {
namespace {

struct Array {
  Array(DType t, Extents e)
      : dtype(t),
        extents(std::move(e)),
        strides(contiguous_strides(extents)),
        memory(static_cast<std::size_t>(byte_count(extents, t))) {
    if (is_inexact(dtype)) random_normal({1, 2}, view());
  }
  MutableView view() { return {memory.data(), dtype, extents, strides}; }
  DType dtype;
  Extents extents;
  Strides strides;
  std::vector<std::byte> memory;
};

void report_bytes(benchmark::State& state, std::initializer_list<const Array*> arrays) {
  std::size_t bytes = 0;
  for (const Array* x : arrays) bytes += x->memory.size();
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(bytes));
}

void multiply(benchmark::State& state, DType dtype) {
  Array a(dtype, {8, 320, 320}), b(dtype, {8, 320, 320}), out(dtype, {8, 320, 320});
  const std::array dtypes{dtype, dtype};
  const ElementwiseProgram program(ScalarOp::mul, dtypes);
  for (auto _ : state) {
    run_elementwise(program, std::array<ConstView, 2>{a.view(), b.view()}, std::array{out.view()});
  }
  report_bytes(state, {&a, &b, &out});
}
BENCHMARK_CAPTURE(multiply, float32_8x320x320, DType::float32);
BENCHMARK_CAPTURE(multiply, complex64_8x320x320, DType::complex64);

// A function of 100,000 elements in cache.
void function(benchmark::State& state, ScalarOp op, DType dtype) {
  const int n = arity(op);
  const std::vector<DType> dtypes(static_cast<std::size_t>(n), dtype);
  const ElementwiseProgram program(op, dtypes);
  std::vector<Array> arrays;
  for (int k = 0; k < n; ++k) arrays.emplace_back(dtype, Extents{100000});
  Array out(program.dtype_of_register(program.outputs()[0]), {100000});
  std::vector<ConstView> inputs;
  for (Array& x : arrays) inputs.push_back(x.view());
  for (auto _ : state) {
    run_with_threads(1, [&] { run_elementwise(program, inputs, std::array{out.view()}); });
  }
  state.SetItemsProcessed(state.iterations() * 100000);
}
#define PALIMPSEST_FUNCTION(op)                                                \
  BENCHMARK_CAPTURE(function, op##_float32, ScalarOp::op, DType::float32);     \
  BENCHMARK_CAPTURE(function, op##_complex64, ScalarOp::op, DType::complex64); \
  BENCHMARK_CAPTURE(function, op##_complex128, ScalarOp::op, DType::complex128)
PALIMPSEST_FUNCTION(add);
PALIMPSEST_FUNCTION(mul);
PALIMPSEST_FUNCTION(div);
PALIMPSEST_FUNCTION(abs);
PALIMPSEST_FUNCTION(sign);
PALIMPSEST_FUNCTION(sqrt);
PALIMPSEST_FUNCTION(exp);
PALIMPSEST_FUNCTION(sin);
PALIMPSEST_FUNCTION(eq);
#undef PALIMPSEST_FUNCTION

void axpy_in_place(benchmark::State& state) {
  Array x(DType::complex64, {1 << 20}), y(DType::complex64, {1 << 20}), a(DType::complex64, {});
  const Strides still{0};
  ElementwiseProgram program;
  const int ra = program.input(DType::complex64), rx = program.input(DType::complex64),
            ry = program.input(DType::complex64);
  program.output(program.apply(ScalarOp::fma, {ra, rx, ry}));
  const ConstView scalar{a.memory.data(), a.dtype, x.extents, still};
  for (auto _ : state) {
    run_elementwise(program, std::array<ConstView, 3>{scalar, x.view(), y.view()},
                    std::array{y.view()});
  }
  report_bytes(state, {&x, &y, &y});
}
BENCHMARK(axpy_in_place);

void transpose_add(benchmark::State& state) {
  Array x(DType::float32, {2048, 2048}), out(DType::float32, {2048, 2048});
  const Strides flipped{1, 2048};
  const std::array dtypes{DType::float32, DType::float32};
  const ElementwiseProgram program(ScalarOp::add, dtypes);
  const ConstView transposed{x.memory.data(), x.dtype, x.extents, flipped};
  for (auto _ : state) {
    run_elementwise(program, std::array<ConstView, 2>{x.view(), transposed},
                    std::array{out.view()});
  }
  report_bytes(state, {&x, &x, &out});
}
BENCHMARK(transpose_add);

void inner(benchmark::State& state, DType dtype) {
  Array a(dtype, {1 << 20}), b(dtype, {1 << 20}), out(dtype, {});
  for (auto _ : state) run_inner(a.view(), true, b.view(), out.view());
  report_bytes(state, {&a, &b});
}
BENCHMARK_CAPTURE(inner, float32_1M, DType::float32);
BENCHMARK_CAPTURE(inner, complex64_1M, DType::complex64);

void sum(benchmark::State& state, Extents extents, Axes axes) {
  Array x(DType::float32, extents);
  Extents kept;
  for (std::size_t i = 0; i < extents.size(); ++i) {
    if (static_cast<index_t>(i) != axes[0]) kept.push_back(extents[i]);
  }
  Array out(DType::float32, kept);
  for (auto _ : state) run_reduce(ReduceOp::sum, x.view(), axes, out.view());
  report_bytes(state, {&x, &out});
}
BENCHMARK_CAPTURE(sum, rows_2048x2048, Extents{2048, 2048}, Axes{1});
BENCHMARK_CAPTURE(sum, columns_2048x2048, Extents{2048, 2048}, Axes{0});
BENCHMARK_CAPTURE(sum, triples_1Mx3, Extents{1 << 20, 3}, Axes{1});

// cyx,yx->cyx and its adjoint, conj(cyx),cyx->yx.
void coils(benchmark::State& state, bool adjoint) {
  Array maps(DType::complex64, {8, 320, 320}), coil(DType::complex64, {8, 320, 320}),
      image(DType::complex64, {320, 320});
  const Contraction forward{{0, 1, 2}, {1, 2}, {0, 1, 2}, false, false};
  const Contraction back{{0, 1, 2}, {0, 1, 2}, {1, 2}, true, false};
  for (auto _ : state) {
    if (adjoint) {
      run_contraction(back, maps.view(), coil.view(), image.view());
    } else {
      run_contraction(forward, maps.view(), image.view(), coil.view());
    }
  }
  report_bytes(state, {&maps, &coil, &image});
}
BENCHMARK_CAPTURE(coils, forward_complex64_8x320x320, false);
BENCHMARK_CAPTURE(coils, adjoint_complex64_8x320x320, true);

void matrix_product(benchmark::State& state) {
  Array a(DType::complex64, {512, 512}), b(DType::complex64, {512, 512}),
      out(DType::complex64, {512, 512});
  const Contraction product{{0, 1}, {1, 2}, {0, 2}, false, false};
  for (auto _ : state) run_contraction(product, a.view(), b.view(), out.view());
  state.counters["flops"] = benchmark::Counter(
      8.0 * 512 * 512 * 512 * static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
}
BENCHMARK(matrix_product);

void fft(benchmark::State& state, Extents extents, Axes axes, bool centered) {
  Array x(DType::complex64, extents), y(DType::complex64, extents);
  FftSpec spec;
  spec.extents = extents;
  spec.in_strides = spec.out_strides = x.strides;
  spec.axes = std::move(axes);
  spec.centered = centered;
  spec.scale = 0.01;
  const FftPlan plan = fft_plan(spec);
  std::vector<std::byte> workspace(fft_workspace_bytes(spec, pool_threads()));
  for (auto _ : state) {
    execute(plan, x.memory.data(), y.memory.data(), {.workspace = workspace});
  }
  report_bytes(state, {&x, &y});
}
BENCHMARK_CAPTURE(fft, complex64_8x256x256, Extents{8, 256, 256}, Axes{1, 2}, false);
BENCHMARK_CAPTURE(fft, complex64_8x256x256_centered, Extents{8, 256, 256}, Axes{1, 2}, true);
BENCHMARK_CAPTURE(fft, complex64_8x320x320_centered, Extents{8, 320, 320}, Axes{1, 2}, true);
BENCHMARK_CAPTURE(fft, complex64_8x180x210_centered, Extents{8, 180, 210}, Axes{1, 2}, true);
BENCHMARK_CAPTURE(fft, complex64_4x512x512_centered, Extents{4, 512, 512}, Axes{1, 2}, true);
BENCHMARK_CAPTURE(fft, complex64_256x256x8_centered, Extents{256, 256, 8}, Axes{0, 1}, true);
BENCHMARK_CAPTURE(fft, complex64_1024x1024, Extents{1024, 1024}, Axes{0, 1}, false);
BENCHMARK_CAPTURE(fft, complex64_500x1000_rows, Extents{500, 1000}, Axes{1}, false);

// Picks a quarter of the samples of each of 8 coils, and puts them back.
void sample(benchmark::State& state, bool adjoint) {
  constexpr index_t kSamples = 320 * 320 / 4;
  Array grid(DType::complex64, {8, 320 * 320}), samples(DType::complex64, {8, kSamples}),
      index(DType::int64, {kSamples});
  auto* i = reinterpret_cast<std::int64_t*>(index.memory.data());
  for (index_t k = 0; k < kSamples; ++k) i[k] = 4 * k + k % 3;
  const std::array<ConstView, 1> indices{index.view()};
  for (auto _ : state) {
    if (adjoint) {
      run_scatter_add(samples.view(), indices, grid.view(), ScatterStart::zero);
    } else {
      run_gather(grid.view(), indices, samples.view());
    }
  }
  report_bytes(state, {&samples, &samples});
}
BENCHMARK_CAPTURE(sample, gather_8x25600, false);
BENCHMARK_CAPTURE(sample, scatter_add_8x25600, true);

}  // namespace
}  // namespace palimpsest

BENCHMARK_MAIN();
