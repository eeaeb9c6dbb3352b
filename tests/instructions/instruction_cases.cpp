// SPDX-License-Identifier: Apache-2.0
// Small calls, each between two marks where callgrind starts and stops counting; see
// count_instructions.py. Prints the name of each case in the order of the counts.
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "palimpsest/compile/function.hpp"
#include "palimpsest/linop/containers/kronecker.hpp"
#include "palimpsest/linop/operators/dense.hpp"
#include "palimpsest/ops/ops.hpp"

extern "C" {
void begin_of_case();
void end_of_case();
// The bodies are not empty: else compilers would merge both functions.
__attribute__((noinline)) void begin_of_case() { __asm__ volatile("nop" ::: "memory"); }
__attribute__((noinline)) void end_of_case() { __asm__ volatile("nop; nop" ::: "memory"); }
}

namespace palimpsest {
namespace {

constexpr int kCalls = 4;

// Numbers from 0.25 to 1.25, the same on every run.
Tensor numbers(const Extents& extents, DType dtype) {
  std::vector<double> values;
  for (index_t i = 0; i < element_count(extents); ++i) {
    values.push_back(0.25 + static_cast<double>(i * 7919 % 1009) / 1009);
  }
  return Tensor::from(values).view(extents).to(dtype);
}

void count(const char* name, const std::function<void()>& call) {
  for (int i = 0; i < 3; ++i) call();  // plans, caches
  begin_of_case();
  for (int i = 0; i < kCalls; ++i) call();
  end_of_case();
  std::puts(name);
}

// Results are borrowed, so nothing is allocated.
void count(const char* name, const std::vector<Tensor>& values,
           const std::function<Variable(const std::vector<Variable>&)>& expression) {
  std::vector<Variable> inputs;
  for (const Tensor& t : values) inputs.push_back(make_input({t.dtype(), t.shape(), {}}));
  const Function f =
      function({inputs.begin(), inputs.end()}, {Out(expression(inputs), {.borrow = true})});
  std::vector<Tensor> results(1);
  count(name, [&] { f.call(values, results); });
}

using In = const std::vector<Variable>&;

void count_elementwise() {
  const Tensor one = numbers({1}, DType::float64), x = numbers({4096}, DType::float32),
               wide = numbers({4096}, DType::float64), z = numbers({4096}, DType::complex64);
  count("add_one_element", {one, one}, [](In v) { return v[0] + v[1]; });
  count("fused_chain", {x, x},
        [](In v) { return ops::abs((v[0] + v[1]) * v[0] - v[1] * 2.0) * v[1] + v[0]; });
  count("complex_product", {z, z}, [](In v) { return v[0] * ops::conj(v[1]) + v[0]; });
  count("exp", {x}, [](In v) { return ops::exp(v[0]); });
  count("tanh", {x}, [](In v) { return ops::tanh(v[0]); });
  count("sin_float64", {wide}, [](In v) { return ops::sin(v[0]); });
  count("pow_float64", {wide}, [](In v) { return ops::pow(v[0], 2.5); });
  count("complex_exp", {z}, [](In v) { return ops::exp(v[0]); });
  count("sigmoid_by_hand", {x, x}, [](In v) { return 1.0 / (1.0 + ops::exp(-(v[0] * v[1]))); });
  count("float32_to_int32", {x}, [](In v) { return ops::astype(v[0] * 100.0, DType::int32); });
  count("where", {x, x}, [](In v) { return ops::where(ops::lt(v[0], v[1]), v[0], v[1] + 1.0); });
}

void count_reductions() {
  const Tensor x = numbers({16384}, DType::float32), rows = numbers({64, 256}, DType::float32);
  count("sum", {x}, [](In v) { return ops::sum(v[0]); });
  count("max", {x}, [](In v) { return ops::max(v[0]); });
  count("argmax", {x}, [](In v) { return ops::argmax(v[0]); });
  count("cumsum", {x}, [](In v) { return ops::cumsum(v[0], 0); });
  count("sum_of_rows", {rows}, [](In v) { return ops::sum(v[0], {.axes = Axes{1}}); });
}

void count_products() {
  const Tensor small = numbers({256, 4, 4}, DType::float32),
               z = numbers({256, 4, 4}, DType::complex64);
  count("small_products", {small, small}, [](In v) { return ops::matmul(v[0], v[1]); });
  count("small_complex_products", {z, z}, [](In v) { return ops::matmul(v[0], v[1]); });
  const NamedLinop A = Dense(numbers({24, 24}, DType::float32), "MN,N->M"),
                   B = Dense(numbers({24, 24}, DType::float32), "PQ,Q->P"), K = Kronecker(A, B);
  const Tensor image = numbers({24, 24}, DType::float32);
  count("kronecker", [&] { K(image); });
}

void count_transforms() {
  const Tensor plane = numbers({2, 64, 64}, DType::complex64);
  count("transposition", {plane}, [](In v) { return ops::transpose(v[0], {0, 2, 1}) + v[0]; });
  count("fft", {plane}, [](In v) { return ops::fft(v[0], {-2, -1}); });
  const Tensor image = numbers({32, 32}, DType::complex64), y = numbers({500}, DType::complex64);
  const Tensor locs = numbers({500, 2}, DType::float32);
  count("nufft", {image, locs}, [](In v) { return ops::nufft(v[0], v[1], {.eps = 1e-3}); });
  count("nufft_adjoint", {y, locs}, [](In v) {
    return ops::nufft_adjoint(v[0], v[1], {32, 32}, {.eps = 1e-3});
  });
}

}  // namespace
}  // namespace palimpsest

int main() {
  palimpsest::count_elementwise();
  palimpsest::count_reductions();
  palimpsest::count_products();
  palimpsest::count_transforms();
}
