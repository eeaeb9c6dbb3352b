// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/base/interrupt.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>

#include "palimpsest/base/config.hpp"
#include "palimpsest/compile/function.hpp"
#include "palimpsest/graph/inputs.hpp"
#include "palimpsest/ops/ops.hpp"

namespace palimpsest {
namespace {

struct Stopped : std::runtime_error {
  Stopped() : std::runtime_error("stopped") {}
};
std::atomic<int> checks_left{0};

void check() {
  if (checks_left.fetch_sub(1) <= 0) throw Stopped();
}

/// An interrupt check that throws after this many calls.
class InterruptAfter {
 public:
  explicit InterruptAfter(int checks) {
    checks_left = checks;
    set_interrupt_check(check);
  }
  ~InterruptAfter() { set_interrupt_check(nullptr); }
};

// Three steps that cannot be fused, and an update.
struct Calls {
  Variable x = dmatrix("x");
  SharedVariable s = shared(Tensor::zeros({3, 3}));
  Function f = function({x}, dot(dot(x, x), dot(x, s)), {.updates = {{s, s + dot(x, x)}}});
  static Variable dot(const Variable& a, const Variable& b) { return ops::dot(a, b); }
};

TEST(Interrupt, BetweenStepsArrivesAsItIsAndChangesNothing) {
  Calls c;
  const Tensor x = Tensor::ones({3, 3});
  for (int n = 0; n < 3; ++n) {
    const InterruptAfter interrupt(n);
    EXPECT_THROW(c.f(x), Stopped) << n;
    EXPECT_TRUE(equal(c.s.get_value(), Tensor::zeros({3, 3})));
    EXPECT_EQ(c.s.version(), 0U);
  }
  c.f(x);
  EXPECT_TRUE(equal(c.s.get_value(), Tensor::full({3, 3}, 3.0)));
}

TEST(Interrupt, BetweenStepsThatRunSideBySide) {
  const ConfigScope scope({.threads = 2, .parallel_grain = 1});
  Calls c;
  const Tensor x = Tensor::ones({3, 3});
  {
    const InterruptAfter interrupt(1);
    EXPECT_THROW(c.f(x), Stopped);
  }
  EXPECT_TRUE(equal(c.s.get_value(), Tensor::zeros({3, 3})));
  c.f(x);
  EXPECT_TRUE(equal(c.s.get_value(), Tensor::full({3, 3}, 3.0)));
}

TEST(Interrupt, BetweenTheStepsOfALoop) {
  const Variable x = dmatrix("x");
  const ops::LoopResult loop = ops::loop(
      [](const std::vector<Variable>& v) { return std::vector<Variable>{ops::dot(v[0], v[0])}; },
      {.states = {x}, .n_steps = 1000});
  const Function f = function({x}, loop.last(0));
  const InterruptAfter interrupt(500);
  EXPECT_THROW(
      try {
        f(Tensor::zeros({2, 2}));
      } catch (const OpError& error) { std::rethrow_if_nested(error); },
      Stopped);
  EXPECT_LT(checks_left.load(), 1);
}

TEST(Interrupt, BetweenTheStepsOfALoopThatWorksInPlace) {
  const Variable x = dvector("x");
  const ops::LoopResult loop =
      ops::loop([](const std::vector<Variable>& v) { return std::vector<Variable>{v[0] * 2.0}; },
                {.states = {x}, .n_steps = 1000});
  const Function f = function({x}, loop.last(0));
  const InterruptAfter interrupt(500);
  EXPECT_THROW(
      try { f(Tensor::zeros({2})); } catch (const OpError& error) {
        std::rethrow_if_nested(error);
      },
      Stopped);
}

TEST(Interrupt, NotWhileANewValueIsWrittenInPlaceOfTheOldOne) {
  const SharedVariable s = shared(Tensor::ones({2, 2}));
  const ops::LoopResult loop =
      ops::loop([](const std::vector<Variable>& v) { return std::vector<Variable>{v[0] * 2.0}; },
                {.states = {s}, .n_steps = 8});
  const Function f = function({}, std::vector<Variable>{}, {.updates = {{s, loop.last(0)}}});
  const InterruptAfter interrupt(0);
  f();
  EXPECT_TRUE(equal(s.get_value(), Tensor::full({2, 2}, 256.0)));
}

TEST(Interrupt, WhileAFunctionIsCompiled) {
  const Variable x = dmatrix("x");
  const InterruptAfter interrupt(3);
  EXPECT_THROW(function({x}, x + 1.0), Stopped);
}

}  // namespace
}  // namespace palimpsest
