// SPDX-License-Identifier: Apache-2.0
// The in-place passes on graphs of n elementwise steps: the time must stay below 5 s at 100,000
// steps, and below 15 times that of 10,000.
#include <benchmark/benchmark.h>

#include <random>
#include <stdexcept>

#include "palimpsest/graph/function_graph.hpp"
#include "palimpsest/ops/elementwise/elementwise.hpp"
#include "palimpsest/rewrite/passes/inplace.hpp"

namespace {

using namespace palimpsest;

struct Graph {
  std::vector<Variable> inputs, outputs;
};

Variable input(const char* name) { return make_input({DType::float64, {1000}, {}}, name); }

Graph chain(int n) {
  const Variable x = input("x"), y = input("y");
  Variable v = x;
  for (int i = 0; i < n; ++i) v = i % 2 == 0 ? v + y : ops::exp(v);
  return {{x, y}, {v}};
}

Graph branches(int n) {
  const Variable x = input("x");
  std::vector<Variable> ends;
  for (int i = 0; i < n / 2; ++i) ends.push_back(ops::exp(ops::exp(x)));
  return {{x}, ends};
}

// Layers of 100 steps; each step reads two values of the previous layer, and no value has more than
// 8 readers.
Graph layers(int n) {
  constexpr int kWidth = 100, kMostReaders = 8;
  std::mt19937_64 random(1);
  std::vector<Variable> inputs, last;
  for (int i = 0; i < kWidth; ++i) inputs.push_back(input("x"));
  last = inputs;
  for (int done = 0; done < n; done += kWidth) {
    std::vector<int> readers(last.size());
    const auto pick = [&] {
      for (;;) {
        const std::size_t k = random() % last.size();
        if (readers[k]++ < kMostReaders) return last[k];
      }
    };
    std::vector<Variable> layer;
    for (int i = 0; i < kWidth; ++i) layer.push_back(pick() + pick());
    last = std::move(layer);
  }
  return {inputs, last};
}

// Inputs are lent, so every value may be overwritten if its readers allow it.
template <Graph (*make)(int)>
void run_in_place_on(benchmark::State& state) {
  const Graph given = make(static_cast<int>(state.range(0)));
  int applied = 0;
  for (auto _ : state) {
    state.PauseTiming();
    FunctionGraph graph(given.inputs, given.outputs);
    state.ResumeTiming();
    applied = run_elementwise_in_place(graph, {});
    state.PauseTiming();
    if (!graph.consistent()) throw std::logic_error("an inconsistent graph");
    state.ResumeTiming();
  }
  state.counters["in_place"] = applied;
}

void sizes(benchmark::internal::Benchmark* b) {
  b->Arg(1000)->Arg(10000)->Arg(100000)->Iterations(1)->Unit(benchmark::kMillisecond);
}
BENCHMARK(run_in_place_on<chain>)->Apply(sizes)->Name("run_in_place/chain");
BENCHMARK(run_in_place_on<branches>)->Apply(sizes)->Name("run_in_place/branches");
BENCHMARK(run_in_place_on<layers>)->Apply(sizes)->Name("run_in_place/layers");

}  // namespace

BENCHMARK_MAIN();
