// SPDX-License-Identifier: Apache-2.0
// The gain from reuse, reordering and work in place: the table of docs/planning.md. Each graph is
// run once to check that the announced peak is the measured one.
//
//     bench_peaks [coils] [size]
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <random>
#include <string>
#include <vector>

#include "palimpsest/base/config.hpp"
#include "palimpsest/compile/function.hpp"
#include "palimpsest/linop/containers/chain.hpp"
#include "palimpsest/linop/operators/dense.hpp"
#include "palimpsest/linop/transforms/fft.hpp"
#include "palimpsest/linop/transforms/sampling.hpp"
#include "palimpsest/memory/allocator.hpp"
#include "palimpsest/ops/ops.hpp"
#include "palimpsest/plan/planner.hpp"

namespace palimpsest {
namespace {

struct Case {
  std::string name;
  Variable x, y;
  Tensor value;
};

struct Peaks {
  index_t no_reuse = 0;       // in program order, without reuse
  index_t program_order = 0;  // with reuse of memory
  index_t reordered = 0;
  index_t all = 0;  // rewritten, in place, parts computed in their joins
  index_t two_lanes = 0;
  index_t lower_bound = 0, arena = 0;  // of `all`
  bool is_measured = false;            // do the measured peaks agree?
};

// The peak of a function without rewrites, with its steps in the order of the graph.
index_t peak_in_program_order(const Function& plain, const Tensor& value) {
  PlanRequest request;
  request.graph = &plain.graph();
  request.n_arguments = request.n_results = 1;
  request.argument_is_lent = request.borrowed = {false};
  request.input_layouts = {Layout::dense(value.dtype(), value.shape())};
  for (const auto& cell : plain.shared_variables()) {  // parameters of operators
    const Tensor t = cell->value();
    request.input_layouts.push_back({t.dtype(), t.shape(), t.strides(), 0});
  }
  request.overwritten.assign(request.input_layouts.size(), false);
  request.places_joins = request.reorders = false;
  return make_plan(request).peak_bytes;
}

bool is_as_announced(const Function& f, const Tensor& value) {
  const index_t announced = f.plan(std::vector<Tensor>{value}).peak_bytes;
  const MemoryScope scope;
  f(value);
  return static_cast<index_t>(scope.peak_bytes()) == announced;
}

Peaks peaks_of(const Case& c) {
  const std::vector<Tensor> values{c.value};
  Peaks peaks;
  {
    const ConfigScope scope({.threads = 1});
    const Function plain = function({c.x}, c.y, {.mode = Mode::no_rewrite});
    const Plan& plan = plain.plan(values);
    peaks.no_reuse = plan.no_reuse_bytes;
    peaks.program_order = peak_in_program_order(plain, c.value);
    peaks.reordered = plan.peak_bytes;
    const Function fast = function({c.x}, c.y);
    const Plan& best = fast.plan(values);
    peaks.all = best.peak_bytes;
    peaks.lower_bound = best.lower_bound_bytes;
    peaks.arena = best.arena_bytes;
    peaks.is_measured = is_as_announced(fast, c.value);
  }
  const ConfigScope scope({.threads = 2});
  const Function wide = function({c.x}, c.y);
  peaks.two_lanes = wide.plan(values).peak_bytes;
  peaks.is_measured &= is_as_announced(wide, c.value);
  return peaks;
}

Case sense_normal(index_t coils, index_t size) {
  const Tensor maps = Tensor::random_normal({coils, size, size}, DType::complex64, {1, 0});
  Tensor mask = Tensor::zeros({size, size}, DType::bool_);
  for (index_t i = 0; i < size; i += 2) mask(i, all).fill(true);
  const NamedLinop A =
      Chain(Dense(maps, "C Ny Nx,Ny Nx->C Ny Nx"),
            Fft(2, {.batch = "C", .grid = Grid{"NyNx", "KyKx"}, .norm = FftNorm::ortho}),
            SamplingFromMask(mask, {.output = "K", .input = "Ky Kx", .batch = "C"}));
  const Variable x = make_input({DType::complex64, {size, size}, {}}, "x");
  return {"SENSE normal operator, " + std::to_string(coils) + " coils", x, A.N()(x),
          Tensor::random_normal({size, size}, DType::complex64, {2, 0})};
}

// Branches of values of several sizes, which are joined repeatedly.
Case random_graph(unsigned seed) {
  std::mt19937 random(seed);
  const Variable x = make_input({DType::float64, {64, 128}, {}}, "x");
  std::vector<Variable> pool{x};
  const auto any = [&] { return pool[random() % pool.size()]; };
  for (int i = 0; i < 40; ++i) {
    const Variable a = any(), b = any();
    switch (random() % 7) {
      case 0:
        pool.push_back(ops::roll(a, 1, 1));
        break;
      case 1:
        pool.push_back(ops::cumsum(a, 0) * 0.1);
        break;
      case 2:
        pool.push_back(a * 0.5 + b);
        break;
      case 3:
        pool.push_back(a * ops::max(b, {.axes = Axes{1}, .keepdims = true}));
        break;
      case 4:
        pool.push_back(
            ops::index(ops::cumsum(ops::join(0, {a, ops::roll(b, 2, 0)}), 1), {slice(32, 96)}));
        break;
      case 5:
        pool.push_back(a + ops::mean(ops::stack({ops::roll(a, 1, 0), b, ops::cumsum(b, 1)}, 0),
                                     {.axes = Axes{0}}));
        break;
      default:
        pool.push_back(ops::sum(a, {.axes = Axes{0}, .keepdims = true}) * ops::tanh(b));
    }
  }
  Variable y = pool.back();
  for (std::size_t i = pool.size() - 5; i + 1 < pool.size(); ++i) y = y + pool[i];
  return {"random branchy graph " + std::to_string(seed), x, y,
          Tensor::random_normal({64, 128}, DType::float64, {3, seed})};
}

Variable chain(const Variable& x, int n) {
  Variable v = x;
  for (int i = 0; i < n; ++i) v = ops::roll(ops::flip(v, {0}), i + 1, 0);
  return v;
}

// Graphs whose arena must equal the lower bound.
std::vector<Case> shapes() {
  const Variable x = make_input({DType::float64, {64, 64}, {}}, "x");
  const Tensor value = Tensor::ones({64, 64});
  std::vector<Case> cases{{"chain of 50", x, chain(x, 50), value}};
  Variable sum = chain(x, 3);
  for (int k = 0; k < 12; ++k) sum = sum + ops::cumsum(chain(ops::roll(x, k, 1), 3), 0);
  cases.push_back({"fork and join of 12", x, sum, value});
  // Halved on the way down, doubled on the way up, with a bridge at each height.
  std::vector<Variable> bridges;
  Variable v = x;
  for (int i = 0; i < 5; ++i) {
    bridges.push_back(v = ops::cumsum(ops::roll(v, 1, 0), 1));
    v = ops::index(ops::roll(v, 1, 1), {slice({}, {}, 2), slice({}, {}, 2)});
  }
  for (int i = 5; i-- > 0;) {
    v = ops::repeat(ops::repeat(v, 2, 0), 2, 1);
    v = ops::cumsum(v * 0.5 + bridges[static_cast<std::size_t>(i)], 0);
  }
  cases.push_back({"U of depth 5", x, v, value});
  // Four unrolled iterations, without division by numbers that may be 0.
  const auto A = [](const Variable& p) {
    return p * 3.0 - ops::roll(p, 1, 0) - ops::roll(p, -1, 0);
  };
  Variable z = x * 0.0, r = x, p = x;
  Variable rho = ops::norm2(r);
  for (int i = 0; i < 4; ++i) {
    const Variable q = A(p), alpha = rho / (ops::sum(p * q) + 1e-300);
    z = z + alpha * p;
    r = r - alpha * q;
    const Variable next = ops::norm2(r);
    p = r + next / (rho + 1e-300) * p;
    rho = next;
  }
  cases.push_back({"conjugate gradients, 4 iterations", x, z, value});
  return cases;
}

double megabytes(index_t bytes) { return static_cast<double>(bytes) / 1e6; }

void print_row(const std::string& name, const Peaks& p) {
  char text[256];
  std::snprintf(text, sizeof text, "| %s | %.2f | %.2f | %.2f | %.2f | %.2f | %s |\n", name.c_str(),
                megabytes(p.no_reuse), megabytes(p.program_order), megabytes(p.reordered),
                megabytes(p.all), megabytes(p.two_lanes), p.is_measured ? "yes" : "NO");
  std::cout << text;
}

}  // namespace
}  // namespace palimpsest

int main(int argc, char** argv) {
  using namespace palimpsest;
  const index_t coils = argc > 1 ? std::atoll(argv[1]) : 32,
                size = argc > 2 ? std::atoll(argv[2]) : 256;
  std::cout << "Peaks in MB\n\n| graph | program order, no reuse | with reuse | reordered | and in "
               "place | 2 threads | measured = announced |\n|---|---:|---:|---:|---:|---:|---|\n";
  print_row("SENSE normal operator, " + std::to_string(coils) + " coils, " + std::to_string(size) +
                " x " + std::to_string(size),
            peaks_of(sense_normal(coils, size)));
  Peaks sum;
  sum.is_measured = true;
  for (unsigned seed = 1; seed <= 20; ++seed) {
    const Case c = random_graph(seed);
    const Peaks p = peaks_of(c);
    print_row(c.name, p);
    sum.no_reuse += p.no_reuse;
    sum.program_order += p.program_order;
    sum.reordered += p.reordered;
    sum.all += p.all;
    sum.two_lanes += p.two_lanes;
    sum.is_measured &= p.is_measured;
  }
  print_row("sum of the 20", sum);
  std::cout << "\n| graph | arena | lower bound | measured = announced |\n|---|---:|---:|---|\n";
  for (const Case& c : shapes()) {
    const Peaks p = peaks_of(c);
    std::cout << "| " << c.name << " | " << p.arena << " | " << p.lower_bound << " | "
              << (p.is_measured ? "yes" : "NO") << " |\n";
  }
}
