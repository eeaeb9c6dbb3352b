// SPDX-License-Identifier: Apache-2.0
// The cost of a call and of a compilation besides the arithmetic. numpy_calls.py times the same
// small expressions in NumPy.
#include <benchmark/benchmark.h>

#include <string>
#include <vector>

#include "palimpsest/compile/function.hpp"
#include "palimpsest/ops/ops.hpp"

namespace palimpsest {
namespace {

Variable vector_input(std::string name) {
  return make_input({DType::float64, {kUnknown}, {}}, std::move(name));
}

// -- calls ---------------------------------------------------------------------------------------

void call_add(benchmark::State& state, bool borrow, index_t n) {
  const Variable x = vector_input("x"), y = vector_input("y");
  const Function f = function({x, y}, {Out(x + y, {.borrow = borrow})});
  const Tensor a = Tensor::ones({n}), b = Tensor::ones({n});
  for (auto _ : state) benchmark::DoNotOptimize(f(a, b)[0].raw_data());
}
BENCHMARK_CAPTURE(call_add, borrowed_float64_1, true, 1);
BENCHMARK_CAPTURE(call_add, owned_float64_1, false, 1);
BENCHMARK_CAPTURE(call_add, borrowed_float64_1000, true, 1000);

void call_fused(benchmark::State& state, index_t n) {
  const Variable x = vector_input("x"), y = vector_input("y");
  const Function f = function({x, y}, {Out((x + y) * x - y * 2.0, {.borrow = true})});
  const Tensor a = Tensor::ones({n}), b = Tensor::ones({n});
  for (auto _ : state) benchmark::DoNotOptimize(f(a, b)[0].raw_data());
}
BENCHMARK_CAPTURE(call_fused, float64_1, 1);
BENCHMARK_CAPTURE(call_fused, float64_1000, 1000);

void call_update(benchmark::State& state) {
  const Variable x = vector_input("x");
  SharedVariable s = shared(Tensor::zeros({1}));
  const Function f = function({x}, {}, {.updates = {{s, s.var() + x}}});
  const Tensor a = Tensor::ones({1});
  for (auto _ : state) f(a);
}
BENCHMARK(call_update);

void call_with_container(benchmark::State& state) {
  const Variable x = vector_input("x");
  const SharedVariable s = shared(Tensor::zeros({1}));
  const Function f = function({x}, {Out(s.var() + x, {.borrow = true})});
  const Tensor a = Tensor::ones({1});
  for (auto _ : state) benchmark::DoNotOptimize(f(a)[0].raw_data());
}
BENCHMARK(call_with_container);

// -- compilations --------------------------------------------------------------------------------

// 20 ops of two inputs.
Variable twenty_ops(const Variable& x, const Variable& y) {
  Variable v = x;
  for (int i = 0; i < 5; ++i) {
    v = ops::abs(v * x + y);
    v = i % 2 == 0 ? ops::sqrt(v) : v - y;
  }
  return v;
}

void compile_20_ops(benchmark::State& state) {
  const Variable x = vector_input("x"), y = vector_input("y");
  const Variable v = twenty_ops(x, y);
  for (auto _ : state) benchmark::DoNotOptimize(function({x, y}, v));
}
BENCHMARK(compile_20_ops)->Unit(benchmark::kMicrosecond);

void compile_and_plan_20_ops(benchmark::State& state) {
  const Variable x = vector_input("x"), y = vector_input("y");
  const Variable v = twenty_ops(x, y);
  const std::vector<TensorType> types(2, {DType::float64, {8}, {}});
  for (auto _ : state) {
    const Function f = function({x, y}, v);
    benchmark::DoNotOptimize(f.plan(std::span<const TensorType>(types)).peak_bytes);
  }
}
BENCHMARK(compile_and_plan_20_ops)->Unit(benchmark::kMicrosecond);

void compile_chain(benchmark::State& state, bool fuses) {
  const Variable x = vector_input("x");
  Variable v = x;
  for (int i = 0; i < state.range(0); ++i) v = fuses ? v * 2.0 : ops::roll(ops::flip(v, {0}), 1, 0);
  for (auto _ : state) benchmark::DoNotOptimize(function({x}, v));
}
BENCHMARK_CAPTURE(compile_chain, elementwise, true)
    ->Arg(100)
    ->Arg(1000)
    ->Arg(10000)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(compile_chain, roll, false)
    ->Arg(100)
    ->Arg(1000)
    ->Arg(10000)
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace palimpsest

BENCHMARK_MAIN();
