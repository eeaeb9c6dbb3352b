// SPDX-License-Identifier: Apache-2.0
// Commands of functions, loops and solvers on an accelerator, and the waits of the host.
#include <gtest/gtest.h>

#include "device/tested_device.hpp"
#include "palimpsest/compile/function.hpp"
#include "palimpsest/linop/operators/dense.hpp"
#include "palimpsest/ops/ops.hpp"
#include "palimpsest/solve/conjugate_gradients.hpp"
#include "support/delaying_backend.hpp"

namespace palimpsest {
namespace {

const Device kThere = testing::delayed(testing::tested_device());
testing::DelayingBackend& backend() { return testing::delaying_backend(kThere); }

// Steps that no kernel does together. Some need one another, others only the memory.
Function many_steps(const TensorType& type) {
  const Variable x = make_input(type, "x");
  const Variable a = ops::cumsum(x, 0), b = ops::cumsum(ops::flip(x, {0}), 0);
  const Variable c = ops::roll(a + b, {3}, {0}), d = ops::cumsum(c * 2.0, 0);
  return function({x}, {ops::roll(d, {5}, {0}) + ops::sum(a), ops::cumsum(b - c, 0)});
}

TEST(DeviceQueue, CallsWithTheSameAddressesAreRecorded) {
  const Function f = many_steps({DType::float64, {64}, kThere});
  const Function near = many_steps({DType::float64, {64}, {}});
  Tensor x = Tensor::zeros({64}, DType::float64, kThere);
  std::vector<Tensor> results{Tensor::zeros({64}, DType::float64, kThere),
                              Tensor::zeros({64}, DType::float64, kThere)};
  const int before = backend().replays();
  for (int call = 0; call < 5; ++call) {
    const Tensor value =
        Tensor::random_normal({64}, DType::float64, {static_cast<std::uint64_t>(call)});
    x.copy_from(value.to(kThere));
    f.call_into(results, x);
    EXPECT_EQ(backend().replays() - before, call);
    const std::vector<Tensor> expected = near(value);
    for (std::size_t k = 0; k < 2; ++k)
      EXPECT_TRUE(equal(on_host(results[k]), expected[k])) << call;
  }
}

// The number of kept frames and their memory may differ: a new value takes turns with the old one.
TEST(DeviceQueue, ValuesThatTakeTurnsAreRecordedTwice) {
  const SharedVariable s = shared(Tensor::arange(8, DType::float64).to(kThere), {.name = "s"});
  const Variable next = ops::roll(s.var(), {1}, {0}) + ops::cumsum(s.var(), 0);
  const Function f = function({}, std::vector<Out>{}, {.updates = {{s, next}}});
  Tensor expected = Tensor::arange(8, DType::float64);
  const Variable v = make_input({DType::float64, {8}, {}}, "v");
  const Function near = function({v}, {ops::roll(v, {1}, {0}) + ops::cumsum(v, 0)});
  const int before = backend().replays();
  for (int call = 0; call < 8; ++call) {
    f();
    expected = near(expected)[0];
    EXPECT_TRUE(equal(s.get_value(), expected)) << call;
  }
  EXPECT_GE(backend().replays() - before, 4);
}

TEST(DeviceQueue, AnIterationOfASolverWaitsOnce) {
  const NamedLinop A =
      Dense(Tensor::random_normal({12, 9}, DType::complex64, {1}), "MN,N->M").to(kThere);
  const Tensor b = A.H()(Tensor::random_normal({12}, DType::complex64, {2}).to(kThere));
  const auto counted = [&](int iterations) {
    const int waits = backend().waits(), replays = backend().replays();
    conjugate_gradients(A.N(), b, {.tolerance = 0, .max_iterations = iterations});
    return std::pair(backend().waits() - waits, backend().replays() - replays);
  };
  const auto few = counted(3), many = counted(7);
  EXPECT_EQ(many.first - few.first, 4);
  EXPECT_GT(many.second, few.second);
}

// Loops whose number of steps is a value, with arrays of constants.
TEST(DeviceQueue, LoopsWithConstantSequencesAndAnOpenNumberOfStepsGiveTheBitsOfTheHost) {
  const Tensor numbers = Tensor::arange(6, DType::float64);
  const Tensor rows = Tensor::random_normal({6, 5}, DType::float64, {4});
  for (const bool until : {false, true}) {
    const auto looping = [&](Device device) {
      const Variable x = make_input({DType::float64, {5}, device}, "x");
      const Variable n = make_input({DType::int64, {}, device}, "n");
      ops::LoopOptions options;
      options.sequences = {constant(numbers), constant(rows)};
      options.states = {x, constant(Tensor::ones({5}))};
      options.n_steps = Operand(n);
      if (until) {
        options.until = [](const auto&, const auto& next) { return ops::gt(next[0].sum(), 1e3); };
      }
      const ops::LoopResult all = ops::loop(
          [](const std::vector<Variable>& a) -> std::vector<Variable> {
            return {a[2] * 0.5 + a[1] * a[0], a[3] + a[2], a[1] + 1.0};
          },
          options);
      return function({x, n}, {all.trace(0), all.last(1), all.mapped(0)});
    };
    const Function near = looping({}), far = looping(kThere);
    const Tensor x = Tensor::random_normal({5}, DType::float64, {9});
    for (const index_t n : {4, 6, 0}) {
      const Tensor steps = Tensor::scalar(n);
      const auto expected = near(x, steps), got = far(x.to(kThere), steps.to(kThere));
      for (std::size_t k = 0; k < expected.size(); ++k) {
        EXPECT_EQ(got[k].device(), kThere);
        EXPECT_TRUE(equal(on_host(got[k]), expected[k])) << n << " steps, result " << k;
      }
    }
  }
}

}  // namespace
}  // namespace palimpsest
