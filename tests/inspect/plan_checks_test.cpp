// SPDX-License-Identifier: Apache-2.0
// DebugMode and plans: wrong placements, and steps that behave differently in their plan.
#include "palimpsest/inspect/debug/plan_checks.hpp"

#include <gtest/gtest.h>

#include "inspect/liar_ops.hpp"
#include "palimpsest/compile/compile.hpp"
#include "palimpsest/inspect/debug/isolated_pass.hpp"
#include "palimpsest/kernels/libraries.hpp"
#include "palimpsest/ops/ops.hpp"
#include "palimpsest/run/frame.hpp"
#include "palimpsest/run/program.hpp"
#include "support/expect_error.hpp"
#include "support/window.hpp"

namespace palimpsest {
namespace {

using testing::expect_error;
using testing::first_element;
using testing::Liar;
using testing::liar;

// In isolation every buffer touches a page border, and guard pages separate two buffers; otherwise
// two buffers touch a border only if it lies between them.
bool touches_page(const ConstView& view) {
  const auto begin = reinterpret_cast<std::uintptr_t>(view.data);
  const auto bytes = static_cast<std::uintptr_t>(view.extents[0]) * 8;
  return begin % 4096 == 0 || (begin + bytes) % 4096 == 0;
}
const void* end_of(const ConstView& view) {
  return static_cast<const double*>(view.data) + view.extents[0];
}
bool is_isolated(const RunContext& c) {
  const ConstView in = c.input(0), out = c.output(0);
  const bool are_neighbours = end_of(in) == out.data || end_of(out) == in.data;
  return touches_page(in) && touches_page(out) && !are_neighbours;
}

struct PlanCheckTest : ::testing::Test {
  Variable x = make_input({DType::float64, {kUnknown}, {}}, "x");
  Tensor a = Tensor::random_normal({40}, DType::float64, {1, 0});
  DebugOptions options{.patience = 1, .preallocated = {}};

  // A chain of steps that alternate between buffers, and one value that is needed to the end.
  Variable chain() const {
    const Variable first = ops::roll(x, 1, 0).named("first");
    Variable v = first;
    for (int i = 0; i < 3; ++i) v = ops::roll(v, 2, 0).named("v" + std::to_string(i));
    return ops::roll(v + first, 1, 0);
  }

  // Runs a plan after `spoil` has changed it, like a call of the function.
  void run_spoiled(const Variable& v, const std::function<void(Plan&)>& spoil) {
    const Compiled compiled = compile({x}, v, {.mode = Mode::no_rewrite});
    const Program& program = *compiled.program;
    Plan plan = program.make_plan_for({Layout::dense(a.dtype(), a.shape())}).plan;
    IsolatedPass pass(options, "isolated", IsolatedPass::Operands::planned,
                      [](const Apply&) { return std::string(); });
    pass.bind(program.graph.inputs()[0], a.view_of(), "argument 0");
    pass.run(program.graph, [](const Apply&) { return -1; });
    spoil(plan);
    Frame frame(plan, {});
    Tensor out = Tensor::empty(a.shape(), a.dtype());
    for (std::size_t b = 0; b < plan.buffers.size(); ++b) {
      if (plan.buffers[b].kind == BufferKind::argument) {
        frame.bases()[b] = static_cast<std::byte*>(const_cast<void*>(a.raw_data()));
      } else if (plan.buffers[b].kind == BufferKind::output) {
        frame.bases()[b] = static_cast<std::byte*>(out.raw_mutable_data());
      } else if (plan.buffers[b].kind == BufferKind::constant) {
        const int i = plan.buffers[b].index;
        frame.bases()[b] = static_cast<std::byte*>(const_cast<void*>(
            plan.constants[static_cast<std::size_t>(i)].constant_value().raw_data()));
      }
    }
    frame.bind();
    const Tensor* const inputs[] = {&a};
    PlanWatch watch(options, {program, plan, frame, inputs},
                    [&](const Variable& variable) { return pass.value(variable); });
    frame.run_watched(watch, nullptr);
    const Tensor delivered[] = {out};
    watch.after_hand_over(delivered);
  }

  static std::size_t buffer_named(const Plan& plan, const std::string& name) {
    for (std::size_t b = 0; b < plan.buffers.size(); ++b) {
      if (plan.buffers[b].name == name) return b;
    }
    throw std::runtime_error("no buffer " + name);
  }
};

TEST_F(PlanCheckTest, ThePlanAsItIsPasses) {
  EXPECT_NO_THROW(run_spoiled(chain(), [](const Plan& plan) { check_placement(plan); }));
}

TEST_F(PlanCheckTest, FindsLiveBuffersThatShareBytes) {
  const auto spoil = [](Plan& plan) {
    plan.buffers[buffer_named(plan, "v1")].offset =
        plan.buffers[buffer_named(plan, "first")].offset;
  };
  expect_error<BadPlan>(
      [&] {
        run_spoiled(chain(), [&](Plan& plan) {
          spoil(plan);
          check_placement(plan);
        });
      },
      "two live buffers share bytes: buffer ");
  // The reader sees the bytes of another step.
  try {
    run_spoiled(chain(), spoil);
    FAIL() << "no error";
  } catch (const BadPlan& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("whose value has changed"), std::string::npos) << text;
    EXPECT_NE(text.find("'first' (arena, 320 bytes, steps 0.."), std::string::npos) << text;
    EXPECT_NE(text.find("taken at step 2: Roll by buffer "), std::string::npos) << text;
    EXPECT_NE(text.find("planned peak "), std::string::npos) << text;
    EXPECT_EQ(error.variable().name(), "first");
    EXPECT_EQ(text.find("freed after"), std::string::npos) << text;
  }
}

TEST_F(PlanCheckTest, FindsBuffersThatAreFreedTooEarly) {
  const auto spoil = [](Plan& plan) { plan.buffers[buffer_named(plan, "first")].last_step = 1; };
  expect_error<BadPlan>(
      [&] {
        run_spoiled(chain(), [&](Plan& plan) {
          spoil(plan);
          check_placement(plan);
        });
      },
      "outside of its life");
  // Dead memory is poisoned.
  expect_error<BadPlan>([&] { run_spoiled(chain(), spoil); }, "freed after step 1: Roll");
}

TEST_F(PlanCheckTest, FindsBuffersOutsideOfTheArenaAndSumsThatDoNotAddUp) {
  const auto check_after = [&](const std::function<void(Plan&)>& spoil) {
    run_spoiled(chain(), [&](Plan& plan) {
      spoil(plan);
      check_placement(plan);
    });
  };
  expect_error<BadPlan>(
      [&] {
        check_after([](Plan& p) { p.buffers[buffer_named(p, "v0")].offset = p.arena_bytes; });
      },
      "does not lie in the arena of ");
  expect_error<BadPlan>([&] { check_after([](Plan& p) { p.peak_bytes += 8; }); },
                        "the sums do not add up");
}

TEST_F(PlanCheckTest, FindsStepsThatBehaveOtherwiseInTheirPlan) {
  const auto run = [](RunContext& c) {
    Liar::copy(c.input(0), c.output(0));
    if (!is_isolated(c)) first_element(c.output(0)) += 1;
  };
  const Function f =
      function({x}, ops::roll(liar({.run = run}, {x}), 1, 0), {.mode = DebugMode(options)});
  expect_error<BadPlan>([&] { f(a); }, "differs from that of the isolated step");
}

TEST_F(PlanCheckTest, FindsStepsThatWriteIntoTheMemoryOfOthers) {
  const auto run = [](RunContext& c) {
    Liar::copy(c.input(0), c.output(0));
    if (is_isolated(c)) return;
    first_element(c.input(0)) = 77;
  };
  const Variable u = ops::roll(x, 1, 0), w = liar({.run = run}, {u}), t = ops::roll(w, 1, 0);
  const Variable sum = ops::roll((u + w) + t, 1, 0);
  const Function f = function(
      {x}, sum, {.mode = DebugMode({.base = Mode::no_rewrite, .patience = 1, .preallocated = {}})});
  expect_error<BadPlan>([&] { f(a); }, "no buffer lies there: an op wrote outside");
}

// The op writes beside its result only in the plan, where no guard page is.
TEST_F(PlanCheckTest, FindsStepsThatWriteBesideADestination) {
  for (const index_t beside : {-1, 40}) {
    const auto run = [beside](RunContext& c) {
      Liar::copy(c.input(0), c.output(0));
      if (!is_isolated(c)) static_cast<double*>(c.output(0).data)[beside] = 77;
    };
    const Variable u = liar({.run = run}, {ops::roll(x, 1, 0)});
    for (const bool is_borrowed : {false, true}) {
      const Function f =
          function({x}, Out(u, {.borrow = is_borrowed}), {.mode = DebugMode(options)});
      testing::Window out({40});
      const Tensor before = out.tensor().clone();
      expect_error<BadPlan>([&] { f.call_into(out.tensor(), a); },
                            " was written in step 1: Liar: byte " + std::to_string(8 * beside) +
                                " from the start of its 320 bytes");
      EXPECT_TRUE(equal(out.tensor(), before));
    }
  }
}

TEST_F(PlanCheckTest, FindsStepsThatAllocate) {
  const auto run = [](RunContext& c) {
    static_cast<void>(Tensor::empty({10}));
    Liar::copy(c.input(0), c.output(0));
  };
  const Function f = function({x}, liar({.run = run}, {x}), {.mode = DebugMode(options)});
  expect_error<BadPlan>([&] { f(a); }, "the step allocated 1 times, planned 0");
}

TEST_F(PlanCheckTest, FindsResultsThatDependOnTheNumberOfThreads) {
  if (compute_libraries().threads == 1) GTEST_SKIP() << "the machine has one thread";
  const auto run = [](RunContext& c) {
    Liar::copy(c.input(0), c.output(0));
    first_element(c.output(0)) = compute_libraries().threads;
  };
  const Function f = function({x}, liar({.run = run}, {x}), {.mode = DebugMode(options)});
  expect_error<BadThunkOutput>([&] { f(a); }, "");
}

TEST_F(PlanCheckTest, WhatAPlanOverwroteIsPutBackWhenItFails) {
  const auto run = [](RunContext& c) {
    Liar::copy(c.input(0), c.output(0));
    if (!is_isolated(c)) first_element(c.output(0)) += 1;
  };
  SharedVariable s = shared(a.clone(), {.name = "s"});
  const Variable lent = make_input({DType::float64, {kUnknown}, {}}, "lent");
  Tensor argument = a.clone();
  const Function f = function(
      {In(lent, {.is_mutable = true, .borrow = true})},
      {lent * 2.0, ops::roll(liar({.can_fail = false, .run = run}, {s.var() * 3.0}), 1, 0)},
      {.updates = {{s, s.var() + 1.0}}, .mode = DebugMode(options)});
  EXPECT_THROW(f(argument), BadPlan);
  EXPECT_TRUE(equal(s.get_value(), a));
  EXPECT_TRUE(equal(argument, a));
}

TEST_F(PlanCheckTest, FindsBorrowedResultsThatWereWrittenBetweenCalls) {
  const Function f =
      function({x}, Out(ops::roll(x, 1, 0), {.borrow = true}), {.mode = DebugMode(options)});
  Tensor result = f(a).tensor();
  EXPECT_NO_THROW(result = f(a).tensor());
  result.set<double>({3}, 1.0);
  expect_error<BadPlan>([&] { f(a); }, "the borrowed result 0 was written between two calls");
}

TEST_F(PlanCheckTest, PlansThatDifferAreStochastic) {
  const Compiled compiled = compile({x}, chain(), {});
  const Plan plan = compiled.program->make_plan_for({Layout::dense(DType::float64, {40})}).plan;
  EXPECT_NO_THROW(check_same_plan(plan, plan, 1));
  Plan other = plan;
  for (PlannedBuffer& buffer : other.buffers) buffer.offset += 64;
  expect_error<StochasticOrder>([&] { check_same_plan(plan, other, 3); }, "run 3: buffer ");
}

}  // namespace
}  // namespace palimpsest
