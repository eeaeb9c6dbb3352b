// SPDX-License-Identifier: Apache-2.0
// Functions whose extents depend on elements: masks, loops that stop, branches that differ.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <random>

#include "compile/hook_op.hpp"
#include "palimpsest/compile/function.hpp"
#include "palimpsest/compile/function_file.hpp"
#include "palimpsest/inspect/debug/debug_mode.hpp"
#include "palimpsest/ops/ops.hpp"
#include "support/expect_error.hpp"
#include "support/long_run.hpp"
#include "support/window.hpp"

namespace palimpsest {
namespace {

using testing::expect_error;
using V = std::vector<double>;
using Variables = std::vector<Variable>;

constexpr Mode::Base kModes[] = {Mode::fast_run, Mode::fast_compile, Mode::no_rewrite};

Variable input(Extents shape, std::string name = {}, DType dtype = DType::float64) {
  return make_input({dtype, std::move(shape), {}}, std::move(name));
}
Tensor flags(std::initializer_list<bool> list) {
  return Tensor::from<bool>(std::vector<bool>(list));
}
Tensor numbers(const V& list) { return Tensor::from<double>(list); }
V values(const Tensor& t) { return t.to_vector<double>(); }

class Masks : public ::testing::Test {
 protected:
  const Variable x = input({kUnknown}, "x"), m = input({kUnknown}, "m", DType::bool_);
};

TEST_F(Masks, SelectSetAndIncrease) {
  for (const Mode mode : kModes) {
    const Function f =
        function({x, m}, {x[m] * 2.0, x[m].set(0), x[m].inc(10), ops::sum(x[m])}, {.mode = mode});
    const Tensor a = numbers({1, 2, 3, 4});
    auto out = f(a, flags({true, false, true, false}));
    EXPECT_EQ(values(out[0]), (V{2, 6}));
    EXPECT_EQ(values(out[1]), (V{0, 2, 0, 4}));
    EXPECT_EQ(values(out[2]), (V{11, 2, 13, 4}));
    EXPECT_EQ(out[3].item<double>(), 4);
    out = f(a, flags({false, false, false, false}));
    EXPECT_EQ(out[0].shape(), (Extents{0}));
    EXPECT_EQ(values(out[1]), (V{1, 2, 3, 4}));
    EXPECT_EQ(values(a), (V{1, 2, 3, 4}));
  }
}

TEST_F(Masks, OfSeveralAxesAmongOtherEntries) {
  const Variable t = input({2, kUnknown, 3, 2}, "t"),
                 grid = input({kUnknown, 3}, "g", DType::bool_);
  const Function f = function({t, grid}, {t(1, grid, slice(1, {})), t(all, grid, 0)});
  const Tensor value = Tensor::arange(24, DType::float64).reshape({2, 2, 3, 2});
  const Tensor where = Tensor::from<bool>({true, false, false, false, true, true}, Extents{2, 3});
  const auto out = f(value, where);
  EXPECT_EQ(out[0].shape(), (Extents{3, 1}));
  EXPECT_EQ(values(out[0]), (V{13, 21, 23}));
  EXPECT_EQ(out[1].shape(), (Extents{2, 3}));
  EXPECT_EQ(values(out[1]), (V{0, 8, 10, 12, 20, 22}));
}

TEST_F(Masks, ComputedFromWhatTheySelect) {
  const Function f = function({x}, ops::sum(ops::sqrt(x[ops::gt(x, 0.0)])));
  EXPECT_EQ(f(numbers({4, -1, 9}))[0].item<double>(), 5);
  EXPECT_EQ(f(numbers({-1}))[0].item<double>(), 0);
  const Variable chosen = x[ops::gt(x, 0.0)];
  const Function twice = function({x}, chosen[ops::lt(chosen, 5.0)]);
  EXPECT_EQ(values(twice(numbers({4, -1, 9, 2}))), (V{4, 2}));
}

TEST_F(Masks, OfOtherExtentsAreRefusedBeforeAnythingIsWritten) {
  const SharedVariable s = shared(numbers({1, 2, 3}));
  const Function f = function({m}, {}, {.updates = {{s, s.var()[m].inc(1)}}});
  expect_error<ShapeError>(
      [&] {
        f(flags({true, false}));
      },
      "[index] axis 0: got a mask of extents (2,) for an array of extents (3,)");
  EXPECT_EQ(values(s.get_value()), (V{1, 2, 3}));
  f(flags({true, false, true}));
  EXPECT_EQ(values(s.get_value()), (V{2, 2, 4}));
}

TEST_F(Masks, HaveGradients) {
  const Variable cost = ops::sum(ops::square(x[m]));
  const Function f = function({x, m}, grad(cost, x));
  EXPECT_EQ(values(f(numbers({1, 2, 3}), flags({true, false, true}))), (V{2, 0, 6}));
}

TEST_F(Masks, NonzeroGivesPositions) {
  const Variable grid = input({kUnknown, kUnknown}, "g", DType::bool_);
  const Function f = function({grid}, ops::nonzero(grid));
  const auto out = f(Tensor::from<bool>({true, false, false, true, true, false}, Extents{2, 3}));
  EXPECT_EQ(out[0].to_vector<index_t>(), (std::vector<index_t>{0, 1, 1}));
  EXPECT_EQ(out[1].to_vector<index_t>(), (std::vector<index_t>{0, 0, 1}));
}

// -- loops
// -----------------------------------------------------------------------------------------

ops::LoopResult doubling(const Variable& start) {
  return ops::loop(
      [](const Variables& v) -> Variables {
        return {v[0] * 2.0, v[0] + 1.0};
      },
      {.states = {start}, .n_steps = 100, .until = [](const Variables&, const Variables& next) {
         return ops::gt(next[0], 50.0);
       }});
}

TEST(LoopThatStops, HasTracesAndMappedValuesOfItsSteps) {
  const Variable s = input({}, "s");
  const ops::LoopResult r = doubling(s);
  for (const Mode mode : kModes) {
    const Function f =
        function({s}, {r.trace(0), r.mapped(0), r.last(0), r.n_steps()}, {.mode = mode});
    auto out = f(10.0);
    EXPECT_EQ(values(out[0]), (V{20, 40, 80}));
    EXPECT_EQ(values(out[1]), (V{11, 21, 41}));
    EXPECT_EQ(out[2].item<double>(), 80);
    EXPECT_EQ(out[3].item<index_t>(), 3);
    out = f(60.0);
    EXPECT_EQ(values(out[0]), (V{120}));
    out = f(0.0);
    EXPECT_EQ(out[0].shape(), (Extents{100}));
  }
}

TEST(LoopThatStops, KeepsNoRoomForManyStepsThatItMayNotMake) {
  const Variable s = input({1000}, "s");
  const ops::LoopResult r = ops::loop(
      [](const Variables& v) -> Variables { return {v[0] * 2.0}; },
      {.states = {s}, .n_steps = 1000000, .until = [](const Variables&, const Variables& next) {
         return ops::gt(ops::sum(next[0]), 5000.0);
       }});
  const Function f = function({s}, r.trace(0));
  Tensor result;
  CallReport report;
  f.call(std::vector<Tensor>{Tensor::ones({1000})}, {&result, 1}, &report);
  EXPECT_EQ(result.shape(), (Extents{3, 1000}));
  EXPECT_LT(report.peak_bytes, 100000);
}

TEST(LoopThatStops, HasGradients) {
  const Variable s = input({}, "s");
  const Function f = function({s}, grad(ops::sum(doubling(s).trace(0)), s));
  EXPECT_EQ(f(10.0)[0].item<double>(), 14);  // 2 + 4 + 8
  EXPECT_EQ(f(60.0)[0].item<double>(), 2);
  const Function of_last = function({s}, grad(doubling(s).last(0), s));
  EXPECT_EQ(of_last(10.0)[0].item<double>(), 8);
  const Function of_mapped = function({s}, grad(ops::sum(doubling(s).mapped(0)), s));
  EXPECT_EQ(of_mapped(10.0)[0].item<double>(), 7);  // 1 + 2 + 4
}

TEST(LoopThatStops, LeavesRowsThatItDidNotReadWithoutGradient) {
  const Variable x = input({kUnknown}, "x");
  for (const bool backwards : {false, true}) {
    const auto body = [](const Variables& v) -> Variables { return {v[1] + ops::square(v[0])}; };
    const auto until = [](const Variables&, const Variables& next) {
      return ops::gt(next[0], 4.5);
    };
    const ops::LoopResult r = ops::loop(
        body,
        {.sequences = {x}, .states = {constant(0.0)}, .backwards = backwards, .until = until});
    const Function f = function({x}, {grad(r.last(0), x), r.last(0)});
    const auto out = f(numbers({1, 2, 3, 4}));
    EXPECT_EQ(values(out[0]), backwards ? (V{0, 0, 0, 8}) : (V{2, 4, 0, 0}));
    const ops::LoopResult bounded = ops::loop(body, {.sequences = {x},
                                                     .states = {constant(0.0)},
                                                     .n_steps = 3,
                                                     .backwards = backwards,
                                                     .until = until});
    EXPECT_EQ(values(function({x}, grad(bounded.last(0), x))(numbers({1, 2, 3, 4}))),
              backwards ? (V{0, 0, 6, 0}) : (V{2, 4, 0, 0}));
  }
}

TEST(LoopOfAValue, HasTracesAndGradients) {
  const Variable n = input({}, "n", DType::int64), a = input({kUnknown}, "a"),
                 x = input({kUnknown}, "x");
  const ops::LoopResult r = ops::loop(
      [&](const Variables& v) -> Variables {
        return {v[1] * a, v[0] * v[1]};
      },
      {.sequences = {x}, .states = {ops::ones_like(a)}, .n_steps = n});
  const Function f = function({n, a, x}, {r.trace(0), r.mapped(0)});
  auto out = f(3, numbers({2, 3}), numbers({1, 10, 100, 1000}));
  EXPECT_EQ(out[0].shape(), (Extents{3, 2}));
  EXPECT_EQ(values(out[0]), (V{2, 3, 4, 9, 8, 27}));
  EXPECT_EQ(values(out[1]), (V{1, 1, 20, 30, 400, 900}));
  EXPECT_EQ(f(0, numbers({2}), numbers({1}))[0].shape(), (Extents{0, 1}));
  const Variable cost = ops::sum(r.last(0)) + ops::sum(r.mapped(0));
  const Variable of[] = {a, x};
  const std::vector<Variable> gradients = grad(cost, of);
  const Function g = function({n, a, x}, gradients);
  out = g(2, numbers({2}), numbers({1, 10, 100}));
  EXPECT_EQ(values(out[0]), (V{4 + 10}));  // a^2 + x0 + x1 a
  EXPECT_EQ(values(out[1]), (V{1, 2, 0}));
  expect_error<ShapeError>([&] { f(5, numbers({2}), numbers({1, 2})); }, "number of steps 5");
}

TEST(LoopOfChangingExtents, RunsStepByStep) {
  const Variable x = input({kUnknown, kUnknown}, "x");
  const ops::LoopResult r = ops::loop(
      [](const Variables& v) -> Variables {
        const Variable total = ops::sum(v[0][ops::gt(v[0], 0.0)]);
        return {v[1] + total, total};
      },
      {.sequences = {x}, .states = {constant(0.0)}});
  const Tensor rows = Tensor::from<double>({1, -1, 2, 3, -4, -5}, Extents{3, 2});
  for (const Mode mode : kModes) {
    const Function f = function({x}, {r.trace(0), r.mapped(0), r.last(0)}, {.mode = mode});
    const auto out = f(rows);
    EXPECT_EQ(values(out[0]), (V{1, 6, 6}));
    EXPECT_EQ(values(out[1]), (V{1, 5, 0}));
    EXPECT_EQ(out[2].item<double>(), 6);
  }
  const ops::LoopResult back = ops::loop(
      [](const Variables& v) -> Variables { return {ops::sum(v[0][ops::gt(v[0], 0.0)]) - v[1]}; },
      {.sequences = {x}, .states = {constant(0.0)}, .backwards = true});
  EXPECT_EQ(values(function({x}, back.trace(0))(rows)), (V{0, 5, -4}));
  const ops::LoopResult grids = ops::loop(
      [](const Variables& v) -> Variables { return {v[1] * ops::sum(v[0][ops::gt(v[0], 0.0)])}; },
      {.sequences = {x}, .states = {ops::ones_like(x)}});
  const Tensor squares = Tensor::from<double>({1, 1, 2, 3}, Extents{2, 2});
  EXPECT_EQ(values(function({x}, grids.trace(0))(squares)), (V{2, 2, 2, 2, 10, 10, 10, 10}));
  const ops::LoopResult triples = ops::loop(
      [](const Variables& v) -> Variables { return {v[1] * ops::sum(v[0][ops::gt(v[0], 0.0)])}; },
      {.sequences = {x}, .states = {constant(Tensor::ones({3}))}});
  const Tensor nothing = Tensor::zeros({0, 2});
  EXPECT_EQ(function({x}, triples.trace(0))(nothing).tensor().shape(), (Extents{0, 3}));
  const ops::LoopResult ragged =
      ops::loop([](const Variables& v) -> Variables { return {v[0][ops::gt(v[0], 0.0)]}; },
                {.sequences = {x}});
  expect_error<ShapeError>([&] { function({x}, ragged.mapped(0))(rows); },
                           "[loop] mapped value 0: got extents (2,) in step 1");
}

// -- branches
// --------------------------------------------------------------------------------------

TEST(BranchesThatDiffer, GiveTheExtentsOfTheOneThatIsTaken) {
  const Variable c = input({}, "c", DType::bool_), x = input({kUnknown}, "x"),
                 y = input({kUnknown}, "y");
  const Variable chosen = ops::ifelse(c, x * 2.0, y);
  for (const Mode mode : kModes) {
    const Function f = function({c, x, y}, {chosen + 1.0, ops::sum(chosen)}, {.mode = mode});
    auto out = f(true, numbers({1, 2, 3}), numbers({10}));
    EXPECT_EQ(values(out[0]), (V{3, 5, 7}));
    out = f(false, numbers({1, 2, 3}), numbers({10}));
    EXPECT_EQ(values(out[0]), (V{11}));
    EXPECT_EQ(out[1].item<double>(), 10);
    EXPECT_EQ(values(f(false, numbers({1}), numbers({10}))[0]), (V{11})) << "planned as a whole";
  }
  const Function g = function({c, x, y}, grad(ops::sum(ops::square(chosen)), Variables{x, y}));
  auto out = g(true, numbers({1, 2}), numbers({10}));
  EXPECT_EQ(values(out[0]), (V{8, 16}));
  EXPECT_EQ(values(out[1]), (V{0}));
}

TEST(BranchesThatDiffer, RunOnlyTheOneThatIsTaken) {
  const Variable c = input({}, "c", DType::bool_), x = input({kUnknown}, "x"),
                 m = input({kUnknown}, "m", DType::bool_);
  const Variable checked = ops::assert_that(x, ops::gt(x, 0.0), "positive");
  const Function f = function({c, x, m}, ops::ifelse(c, checked[m], ops::neg(x)));
  EXPECT_EQ(values(f(false, numbers({-1, 2}), flags({true, false}))), (V{1, -2}));
  EXPECT_EQ(values(f(true, numbers({1, 2}), flags({false, true}))), (V{2}));
  expect_error<AssertionError>(
      [&] {
        f(true, numbers({-1, 2}), flags({false, true}));
      },
      "positive");
}

TEST(BranchesThatDiffer, MayShareWhatDoesNotFit) {
  const Variable x = input({kUnknown}, "x"), y = input({kUnknown}, "y"),
                 c = input({}, "c", DType::bool_), d = input({}, "d", DType::bool_);
  const Variable misfit = x + y;
  for (const Mode mode : kModes) {
    const Function f =
        function({x, y, c, d},
                 {ops::ifelse(c, misfit * 2.0, x), ops::ifelse(d, ops::sum(misfit), ops::sum(y))},
                 {.mode = mode});
    const Tensor a = numbers({1, 2, 3}), b = numbers({1, 2});
    const auto out = f(a, b, false, false);
    EXPECT_EQ(values(out[0]), (V{1, 2, 3}));
    EXPECT_EQ(out[1].item<double>(), 3);
    for (const bool first : {true, false}) {
      expect_error<ShapeError>([&] { f(a, b, first, !first); }, "extents differ");
    }
    EXPECT_EQ(f(a, a, false, true)[1].item<double>(), 12);
  }
}

// -- arrays of as many elements as a value says
// -----------------------------------------------------

TEST(ExtentsOfValues, OfNewArrays) {
  const Variable n = input({}, "n", DType::int64), x = input({kUnknown}, "x");
  for (const Mode mode : kModes) {
    const Function f = function({n, x},
                                {ops::zeros({n, 2}), ops::full({n - 1}, 2.5), ops::arange(n * 2),
                                 ops::eye(n), ops::alloc(x, {n, x.shape(0)}), x.reshape({n, -1})},
                                {.mode = mode});
    const auto out = f(2, numbers({1, 2, 3, 4}));
    EXPECT_EQ(values(out[0]), (V{0, 0, 0, 0}));
    EXPECT_EQ(values(out[1]), (V{2.5}));
    EXPECT_EQ(out[2].to_vector<int>(), (std::vector<int>{0, 1, 2, 3}));
    EXPECT_EQ(values(out[3]), (V{1, 0, 0, 1}));
    EXPECT_EQ(values(out[4]), (V{1, 2, 3, 4, 1, 2, 3, 4}));
    EXPECT_EQ(out[5].shape(), (Extents{2, 2}));
    EXPECT_EQ(f(1, numbers({1, 2}))[1].numel(), 0);
    expect_error<ShapeError>([&] { f(0, numbers({1})); }, "[extent] got -1");
    expect_error<ShapeError>([&] { f(3, numbers({1})); }, "[reshape]");
  }
}

TEST(ExtentsOfValues, OfValuesThatAreComputed) {
  const Variable x = input({kUnknown}, "x");
  const Variable count = ops::sum(ops::astype(ops::gt(x, 0.0), DType::int64));
  const Variable y = ops::arange(count, DType::float64) * ops::sum(x);
  const Function f = function({x}, {y, grad(ops::sum(y), x)});
  const auto out = f(numbers({1, -1, 2, 4}));
  EXPECT_EQ(values(out[0]), (V{0, 6, 12}));
  EXPECT_EQ(values(out[1]), (V{3, 3, 3, 3}));
  EXPECT_EQ(values(f(numbers({-1}))[1]), (V{0}));
}

TEST(ExtentsOfValues, OfRandomNumbersAndInLoops) {
  const Variable n = input({}, "n", DType::int32), key = input({2}, "key", DType::uint64);
  const Function draw = function({key, n}, ops::random_normal(key, {n}));
  const Tensor k = Tensor(function({}, ops::random_key(7))());
  const Tensor five = draw(k, 5), three = draw(k, 3);
  EXPECT_TRUE(equal(five.narrow(0, 0, 3), three)) << "element i depends on the key and i alone";
  const ops::LoopResult r = ops::loop(
      [](const Variables& v) -> Variables {
        return {v[0] + 1, ops::sum(ops::ones({v[0]}))};
      },
      {.states = {constant(index_t{0})}, .n_steps = 4});
  EXPECT_EQ(values(function({}, r.mapped(0))()), (V{0, 1, 2, 3}));
}

TEST(ExtentsOfValues, TakeNoMemoryOfTheirOwn) {
  const Variable n = input({}, "n", DType::int64);
  const Function f = function({n}, ops::sum(ops::arange(n, DType::float64)));
  Tensor result;
  CallReport report;
  f.call(std::vector<Tensor>{Tensor::scalar<index_t>(1000)}, {&result, 1}, &report);
  EXPECT_EQ(result.item<double>(), 499500);
  EXPECT_LT(report.peak_bytes, 8000 + 200);
  EXPECT_EQ(f.plan(std::vector<Tensor>{Tensor::scalar<index_t>(1)}).run_time_extents,
            "RunTimeExtent");
}

TEST(ExtentsOfValues, AreSavedAndLoadedAndWorkInDebugMode) {
  const Variable n = input({}, "n", DType::int64);
  const Function f = function({n}, ops::zeros({n}) + 1.0);
  const std::vector<std::byte> bytes = functions_to_bytes(std::span<const Function>(&f, 1));
  EXPECT_EQ(values(functions_from_bytes(bytes).at(0)(3)), (V{1, 1, 1}));
  EXPECT_EQ(values(function({n}, ops::zeros({n}) + 1.0, {.mode = DebugMode()})(2)), (V{1, 1}));
}

// Some steps in the body of a loop that is run step by step work in place.
TEST(LoopThatStops, OverwritesItsStateStepByStep) {
  const Variable s = input({50000}, "s");
  const ops::LoopResult r = ops::loop(
      [](const Variables& v) -> Variables {
        return {ops::roll(ops::cumsum(v[0] * 0.5) + 1.0, 1, 0)};
      },
      {.states = {s}, .n_steps = 100, .until = [](const Variables&, const Variables& next) {
         return ops::gt(ops::sum(next[0]), 0.0);
       }});
  for (const Mode mode : kModes) {
    const Function f = function({s}, {r.trace(0), r.n_steps()}, {.mode = mode});
    const auto out = f(Tensor::zeros({50000}));
    EXPECT_EQ(out[1].item<index_t>(), 1);
    EXPECT_EQ(out[0].shape(), (Extents{1, 50000}));
    EXPECT_EQ(values(out[0](0, slice(0, 2))), (V{1, 1}));
  }
}

// -- what holds for every function
// -----------------------------------------------------------------

TEST(RunTimeExtents, UpdatesHappenTogetherOrNotAtAll) {
  const SharedVariable s = shared(numbers({1, 2, 3}), {.shape = std::nullopt}),
                       n = shared(Tensor::scalar<index_t>(0));
  const Variable m = input({kUnknown}, "m", DType::bool_);
  const Variable kept = s.var()[m];
  const Function f =
      function({m}, kept, {.updates = {{s, kept * 2.0}, {n, n.var() + kept.shape(0)}}});
  const Tensor out = f(flags({true, false, true}));
  EXPECT_EQ(values(out), (V{1, 3}));
  EXPECT_EQ(values(s.get_value()), (V{2, 6}));
  EXPECT_EQ(n.get_value().item<index_t>(), 2);
  EXPECT_FALSE(shares_storage(out, s.get_value({.borrow = true})));
  const Variable checked = ops::assert_that(kept, ops::gt(kept, 3.0), "too small");
  const Function g = function({m}, {}, {.updates = {{n, n.var() + 1}, {s, checked}}});
  expect_error<AssertionError>([&] { g(flags({true, false})); }, "too small");
  EXPECT_EQ(values(s.get_value()), (V{2, 6}));
  EXPECT_EQ(n.get_value().item<index_t>(), 2);
}

TEST(RunTimeExtents, ResultsAreIndependentOfArgumentsAndOfEachOther) {
  const Variable x = input({kUnknown}, "x"), m = input({kUnknown}, "m", DType::bool_);
  const Variable kept = x[m];
  const Function f = function({x, m}, {kept, kept, x, kept(slice(0, 1))});
  Tensor a = numbers({1, 2, 3});
  auto out = f(a, flags({true, true, false}));
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_FALSE(shares_storage(out[i], a));
    for (std::size_t j = 0; j < i; ++j) EXPECT_FALSE(shares_storage(out[i], out[j])) << i << j;
  }
  out[0].fill(9.0);
  EXPECT_EQ(values(out[1]), (V{1, 2}));
  testing::Window into({2}), other({2}, DType::float64, WindowLayout::reversed), one({1});
  Tensor whole = a;
  Tensor outs[] = {into, other, whole, one};
  f.call_into(outs, a, flags({false, true, true}));
  EXPECT_EQ(values(into), (V{2, 3}));
  EXPECT_EQ(values(a), (V{1, 2, 3}));
  expect_error<ShapeError>(
      [&] {
        f.call_into(outs, a, flags({false, false, true}));
      },
      "[call_into] destination 0: got shape (2,), expected (1,)");
}

TEST(RunTimeExtents, ThePlanSaysWhyItIsNotThereYet) {
  const Variable x = input({kUnknown}, "x"), m = input({kUnknown}, "m", DType::bool_);
  const Function f = function({x, m}, x[m]);
  const Plan& plan = f.plan(std::vector<Tensor>{numbers({1}), flags({true})});
  EXPECT_EQ(plan.run_time_extents, "Nonzero");
  EXPECT_NE(plan.to_string().find("Nonzero decide extents"), std::string::npos);
}

TEST(RunTimeExtents, ABudgetHoldsForEveryStage) {
  const Variable x = input({kUnknown}, "x"), m = input({kUnknown}, "m", DType::bool_);
  const Variable kept = x[m];
  const Function f = function({x, m}, ops::exp(kept), {.budget_bytes = 2000});
  const Tensor a = Tensor::zeros({1000});
  Tensor few = Tensor::zeros({1000}, DType::bool_), most = Tensor::ones({1000}, DType::bool_);
  few.set<bool>({5}, true);
  EXPECT_EQ(f(a, few)[0].numel(), 1);
  expect_error<BudgetError>([&] { f(a, most); }, "a stage exceeds the budget");
}

// Each stage has the options of the function.
TEST(RunTimeExtents, AStageIsArrangedForTheBudget) {
  const ConfigScope scope({.threads = 2, .parallel_grain = 1000});
  const Variable x = input({kUnknown}, "x"), m = input({kUnknown}, "m", DType::bool_);
  const auto sums = [](const Variable& v) { return ops::sum(ops::cumsum(v)); };
  const std::vector<Out> outs{sums(x), sums(x * 2.0), sums(x[m])};
  const index_t n = 100000, budget = 8 * n * 5 / 2;
  const Function f = function({x, m}, outs, {.budget_bytes = budget});
  const Tensor a = Tensor::ones({n}), few = Tensor::zeros({n}, DType::bool_);
  CallReport report;
  std::vector<Tensor> results(3);
  ASSERT_NO_THROW(f.call(std::vector<Tensor>{a, few}, results, &report));
  EXPECT_LE(report.peak_bytes, budget);
  EXPECT_EQ(results[1].item<double>(), static_cast<double>(n) * static_cast<double>(n + 1));
}

// Values of the branches do not wait for the mask of another array.
TEST(RunTimeExtents, AChoiceOfKnownExtentsIsPlannedWithItsStage) {
  const Variable x = input({1000}, "x"), y = input({1000}, "y");
  const Variable u = ops::cumsum(x), w = ops::cumsum(y);
  const Variable chosen = ops::ifelse(ops::sum(u) > 0.0, ops::sin(u) * 0.5, ops::cos(u) + u);
  const Variable total = ops::sum(ops::cumsum(chosen));
  const Function plain = function({x}, total), f = function({x, y}, {total, ops::sum(w[w > 0.5])});
  for (const double sign : {1.0, -1.0}) {
    const std::vector<Tensor> arguments{Tensor::full({1000}, sign), Tensor::ones({1000})};
    std::vector<Tensor> results(2);
    CallReport report;
    f.call(arguments, results, &report);
    EXPECT_EQ(values(results[0]), values(plain(arguments[0])[0]));
    EXPECT_LE(report.peak_bytes, 8000 * 2 + 1000) << sign;
  }
}

TEST(RunTimeExtents, AChoiceOfKnownExtentsRunsNoStepThatFailsUnlessItIsTaken) {
  const Variable x = input({3}, "x"), c = input({}, "c", DType::bool_),
                 d = input({}, "d", DType::bool_);
  const Variable some = x[ops::gt(x, 0.0)], none = ops::ifelse(c, ops::sum(some), ops::sum(x));
  const Variable checked = ops::assert_that(x, ops::gt(x, 0.0), "positive") * 2.0;
  const Function f = function({x, c, d}, {ops::ifelse(c, checked, x), ops::ifelse(d, checked, x),
                                          ops::ifelse(c, x * none, x), some});
  EXPECT_EQ(values(f(numbers({-1, 2, 3}), false, false)[0]), (V{-1, 2, 3}));
  EXPECT_EQ(values(f(numbers({1, 2, 3}), true, false)[2]), (V{6, 12, 18}));
  for (const bool first : {true, false}) {
    expect_error<AssertionError>([&] { f(numbers({-1, 2, 3}), first, !first); }, "positive");
  }
}

TEST(RunTimeExtents, StagesKeepTheBitsThatTheModeKeeps) {
  const Variable x = input({kUnknown}, "x");
  const Variable kept = x[ops::gt(x, 0.0)];
  const std::vector<Out> outs{kept * kept * kept * 0.1 + kept * 0.1 + kept * 0.2,
                              ops::pow(kept, 3.0), ops::log(1.0 + ops::exp(kept))};
  V numbers_of_all;
  for (int i = 0; i < 500; ++i) numbers_of_all.push_back(std::fmod(i * 0.7310585, 5.0) - 1.0);
  const Tensor a = numbers(numbers_of_all);
  const auto expected = function({x}, outs, {.mode = NoRewrite()})(a);
  const Function exact = function({x}, outs, {.mode = FastRun().exact()});
  const Function loaded =
      functions_from_bytes(functions_to_bytes(std::span<const Function>(&exact, 1))).at(0);
  for (const Function& f : {exact, exact.copy(), loaded}) {
    const auto got = f(a);
    for (std::size_t i = 0; i < outs.size(); ++i) EXPECT_TRUE(equal(got[i], expected[i])) << i;
  }
}

TEST(RunTimeExtents, AChoiceThatIsNotTakenMayNeedWhatDoesNotFit) {
  const Variable x = input({kUnknown}, "x"), c = input({}, "c", DType::bool_);
  const Variable some = x[ops::gt(x, 0.0)];
  // The second branch adds arrays of other extents, and so does a choice within it.
  const Variable misfit = some + x;
  const Variable inner = ops::ifelse(ops::sum(some) > 3.0, misfit, some);
  const Variable y = ops::ifelse(c, ops::exp(some), ops::ifelse(c, some, inner) * 2.0);
  const Function f = function({x, c}, {y, ops::sum(some)});
  const Tensor yes = Tensor::scalar<bool>(true), no = Tensor::scalar<bool>(false);
  EXPECT_EQ(f(numbers({4, -1}), yes)[0].numel(), 1);
  EXPECT_EQ(values(f(numbers({2, -1}), no)[0]), (V{4}));
  EXPECT_EQ(values(f(numbers({4, 1}), no)[0]), (V{16, 4}));
  expect_error<ShapeError>([&] { f(numbers({4, -1, 5}), no); }, "");
}

TEST(RunTimeExtents, AreSavedAndLoaded) {
  const Variable s = input({}, "s"), x = input({kUnknown}, "x");
  const ops::LoopResult r = doubling(s);
  const ops::LoopResult sums =
      ops::loop([&](const Variables& v) -> Variables { return {v[1] + v[0] * s}; },
                {.sequences = {x}, .states = {constant(0.0)}});
  const Function f = function({s, x}, {r.trace(0), r.n_steps(), sums.trace(0), x[ops::gt(x, s)]});
  const std::vector<std::byte> bytes = functions_to_bytes(std::span<const Function>(&f, 1));
  const Function g = functions_from_bytes(bytes).at(0);
  const auto a = f(10.0, numbers({5, 20})), b = g(10.0, numbers({5, 20}));
  for (std::size_t i = 0; i < 4; ++i) EXPECT_TRUE(equal(a[i], b[i])) << i;
  EXPECT_EQ(values(b[0]), (V{20, 40, 80}));
  EXPECT_EQ(values(b[3]), (V{20}));
}

TEST(RunTimeExtents, WorkInDebugMode) {
  const Variable s = input({}, "s"), x = input({kUnknown}, "x");
  const Function f =
      function({s, x}, {doubling(s).trace(0), ops::exp(x[ops::gt(x, s)])}, {.mode = DebugMode()});
  const auto out = f(10.0, numbers({5, 20}));
  EXPECT_EQ(values(out[0]), (V{20, 40, 80}));
  EXPECT_EQ(out[1].numel(), 1);
}

// Only extents of a value are used outside of the branch that computes it.
TEST(RunTimeExtents, ExtentsOfAValueAreReadOutsideOfItsBranch) {
  const Variable x = input({kUnknown}, "x"), c = input({}, "c", DType::bool_);
  const Variable some = ops::exp(x[ops::gt(x, 0.0)]);
  const Function f = function({x, c}, {ops::ifelse(c, some, x), ops::zeros({some.shape(0)}) + 1.0});
  for (const bool holds : {true, false}) {
    const auto out = f(numbers({0.5, -1, 2}), holds);
    EXPECT_EQ(out[0].numel(), holds ? 2 : 3);
    EXPECT_EQ(values(out[1]), (V{1, 1}));
  }
}

TEST(RunTimeExtents, AChosenInputTakesNoMemory) {
  const Variable x = input({kUnknown}, "x"), c = input({}, "c", DType::bool_);
  const Variable some = x[ops::gt(x, 0.0)];
  const Variable chosen = ops::ifelse(c, x, some);
  const Function f = function({x, c}, {ops::sum(chosen), ops::max(chosen)}, {.budget_bytes = 1000});
  const Tensor a = Tensor::ones({1000});
  EXPECT_EQ(f(a, true)[0].item<double>(), 1000);
  expect_error<BudgetError>([&] { f(a, false); }, "a stage exceeds the budget");
}

// Builds a program along with the values that it must give. What is not taken may not fit.
class StagedProgramMaker {
 public:
  explicit StagedProgramMaker(std::uint32_t seed) : random_(seed) {
    for (std::size_t i = 0; i < 2; ++i) {
      V x(1 + pick(6));
      for (double& e : x) e = static_cast<double>(pick(17)) / 4 - 2;
      arguments.push_back(numbers(x));
      inputs.push_back(input({pick(2) == 0 ? kUnknown : static_cast<index_t>(x.size())}));
      add(inputs.back(), x);
    }
    for (int i = 0; i < 14; ++i) step();
    for (std::size_t i = 0; i < 3; ++i) results.push_back(any());
  }

  struct Value {
    Variable v;
    V x;
  };
  std::vector<Variable> inputs;
  std::vector<Tensor> arguments;
  std::vector<Value> results;

 private:
  std::size_t pick(std::size_t n) { return random_() % n; }
  // Late ones are more likely.
  const Value& any() {
    return values_[values_.size() - 1 - std::min(pick(values_.size()), pick(values_.size()))];
  }
  void add(const Variable& v, V x) { values_.push_back({v, std::move(x)}); }
  void map(const Value& a, const Variable& v, double (*f)(double)) {
    V x = a.x;
    for (double& e : x) e = f(e);
    add(v, x);
  }
  double total(const Value& a) { return std::accumulate(a.x.begin(), a.x.end(), 0.0); }

  void step() {
    const Value a = any(), b = any();
    V x;
    switch (pick(8)) {
      case 0:
        return map(a, a.v * 0.5 + 1.0, [](double e) { return e * 0.5 + 1; });
      case 1:
        return map(a, ops::minimum(ops::abs(a.v) * 2.0, 4.0),
                   [](double e) { return std::min(std::abs(e) * 2, 4.0); });
      case 2:
        for (double e : a.x) {
          if (e > 0.5) x.push_back(e);
        }
        return add(a.v[ops::gt(a.v, 0.5)], x);
      case 3:
        return add(ops::expand_dims(ops::sum(a.v), {0}), {total(a)});
      case 4:
        return add(ops::ones({a.v.shape(0)}), V(a.x.size(), 1.0));
      case 5:
        x = a.x;
        for (double& e : x) e += total(b);
        return add(a.v + ops::sum(b.v), x);
      case 6:
        if (a.x.size() != b.x.size()) return choose(a, b);
        x = a.x;
        for (std::size_t i = 0; i < x.size(); ++i) x[i] -= b.x[i];
        return add(a.v - b.v, x);
      default:
        return choose(a, b);
    }
  }

  void choose(const Value& a, const Value& b) {
    const Value of = any();
    const bool holds = total(of) > 1.0;
    const Variable condition = ops::gt(ops::sum(of.v), 1.0);
    const bool fits = a.x.size() == b.x.size();
    if (!fits && a.v.type().is_fully_known() && b.v.type().is_fully_known()) return;
    if (holds == (pick(2) == 0) && !fits) {
      // A branch that is not taken adds what does not fit, and so does what it needs.
      const Variable misfit = (a.v + b.v) * 2.0;
      const Variable chosen =
          holds ? ops::ifelse(condition, a.v, misfit) : ops::ifelse(condition, misfit, a.v);
      return add(chosen, a.x);
    }
    const std::vector<Variable> both =
        ops::ifelse(condition, {a.v * 2.0, a.v}, {b.v, ops::neg(b.v)});
    V x = holds ? a.x : b.x, y = x;
    for (double& e : holds ? x : y) e = holds ? e * 2 : -e;
    add(both[0], x);
    add(both[1], y);
  }

  std::mt19937 random_;
  std::vector<Value> values_;
};

TEST(RunTimeExtents, RandomProgramsGiveWhatTheyMust) {
  const int n_programs = testing::longer(400);
  for (int seed = 0; seed < n_programs; ++seed) {
    const StagedProgramMaker made(static_cast<std::uint32_t>(seed));
    std::vector<Out> outs;
    for (const auto& result : made.results) outs.emplace_back(result.v);
    const std::vector<In> ins(made.inputs.begin(), made.inputs.end());
    FunctionOptions options;
    options.mode = kModes[static_cast<std::size_t>(seed) % std::size(kModes)];
    options.on_unused_input = Reaction::ignore;
    SCOPED_TRACE(seed);
    const Function f = function(ins, outs, options);
    for (int call = 0; call < 2; ++call) {
      std::vector<Tensor> got(outs.size()), arguments;
      for (const Tensor& t : made.arguments) arguments.push_back(t.clone());
      f.call(arguments, got);
      for (std::size_t i = 0; i < got.size(); ++i) {
        ASSERT_EQ(values(got[i]), made.results[i].x) << seed << " output " << i;
        for (std::size_t j = 0; j < i; ++j) ASSERT_FALSE(shares_storage(got[i], got[j])) << seed;
      }
      for (std::size_t i = 0; i < arguments.size(); ++i) {
        ASSERT_TRUE(equal(arguments[i], made.arguments[i])) << seed;
      }
    }
  }
}

// -- transposition of loops
// ------------------------------------------------------------------------

TEST(LinearAdjoint, OfALoopIsTheReversedLoop) {
  const Variable x = input({4}, "x"), w = input({4}, "w"), a = input({}, "a");
  // A recursive filter: linear in the sequence, with a state that begins at zero.
  const auto filter = [&](const Variable& y) {
    return ops::loop([&](const Variables& v) -> Variables { return {v[1] * a + v[0]}; },
                     {.sequences = {y}, .states = {constant(0.0)}})
        .trace(0);
  };
  EXPECT_EQ(is_linear(filter(x), x), Linearity::complex);
  const Function forward = function({x, a}, filter(x));
  const Function adjoint = function({w, a}, linear_adjoint(filter(x), x, w));
  const Tensor u = numbers({1, 2, -1, 3}), v = numbers({0.5, -2, 4, 1});
  const V y = values(forward(u, 0.5)), z = values(adjoint(v, 0.5)), uu = values(u), vv = values(v);
  double lhs = 0, rhs = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    lhs += y[i] * vv[i];
    rhs += uu[i] * z[i];
  }
  EXPECT_NEAR(lhs, rhs, 1e-12);
}

TEST(LinearAdjoint, OfALoopThatIsNotLinearNamesTheReason) {
  const Variable x = input({4}, "x"), w = input({4}, "w"), s = input({}, "s"), v0 = input({}, "v");
  const auto squares =
      ops::loop([](const Variables& v) -> Variables { return {v[0] * v[0]}; }, {.sequences = {x}});
  expect_error<NotLinearError>([&] { linear_adjoint(squares.mapped(0), x, w); }, "Mul");
  const auto affine = ops::loop([](const Variables& v) -> Variables { return {v[1] + v[0]}; },
                                {.sequences = {x}, .states = {constant(1.0)}});
  expect_error<NotLinearError>([&] { linear_adjoint(affine.last(0), x, v0); }, "affine");
  const auto product = ops::loop([](const Variables& v) -> Variables { return {v[1] * v[0]}; },
                                 {.sequences = {x}, .states = {s}});
  EXPECT_EQ(is_linear(product.last(0), s), Linearity::complex);
  EXPECT_EQ(is_linear(product.last(0), x), Linearity::no);
  EXPECT_EQ(is_linear(doubling(s).last(0), s), Linearity::no)
      << "the number of steps depends on it";
}

}  // namespace
}  // namespace palimpsest
