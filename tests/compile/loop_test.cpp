// SPDX-License-Identifier: Apache-2.0
// loop in functions, compared with the same body unrolled.
#include "palimpsest/ops/loop/loop.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "compile/hook_op.hpp"
#include "palimpsest/compile/function.hpp"
#include "palimpsest/compile/random_state.hpp"
#include "palimpsest/memory/allocator.hpp"
#include "palimpsest/ops/ops.hpp"
#include "support/expect_error.hpp"

namespace palimpsest {
namespace {

using testing::expect_error;
using V = std::vector<double>;
using Variables = std::vector<Variable>;

Variable input(Extents shape, std::string name = {}, DType dtype = DType::float64) {
  return make_input({dtype, std::move(shape), {}}, std::move(name));
}
V values(const Tensor& t) { return t.to_vector<double>(); }
Tensor numbers(Extents shape, std::uint64_t seed) {
  Tensor t = Tensor::random_uniform(shape, DType::float64, {seed, 0});
  return t;
}

constexpr Mode::Base kModes[] = {Mode::fast_run, Mode::fast_compile, Mode::no_rewrite};

// An unrolled loop of n steps, as a graph without a loop.
struct Unrolled {
  std::vector<Variables> traces, mapped;  // rows
  Variables last;
};

Unrolled unroll(const ops::LoopBody& body, const ops::LoopOptions& options, index_t n) {
  Unrolled result;
  std::vector<Variables> values;  // by state, the rows of init first
  for (const ops::LoopState& state : options.states) {
    const index_t rows = -*std::min_element(state.taps.begin(), state.taps.end());
    values.emplace_back();
    for (index_t i = 0; i < rows; ++i) {
      values.back().push_back(rows > 1 ? ops::index(state.init, {i}) : state.init);
    }
  }
  for (index_t t = 0; t < n; ++t) {
    Variables arguments;
    for (const ops::LoopSequence& sequence : options.sequences) {
      const index_t first =
          std::min<index_t>(0, *std::min_element(sequence.taps.begin(), sequence.taps.end()));
      for (index_t tap : sequence.taps) {
        const index_t position = options.backwards ? n - 1 - t : t;
        arguments.push_back(ops::index(sequence.value, {position + tap - first}));
      }
    }
    for (std::size_t k = 0; k < values.size(); ++k) {
      for (index_t tap : options.states[k].taps) {
        arguments.push_back(values[k][values[k].size() - static_cast<std::size_t>(-tap)]);
      }
    }
    arguments.insert(arguments.end(), options.fixed.begin(), options.fixed.end());
    const Variables next = body(arguments);
    result.traces.resize(values.size());
    result.mapped.resize(next.size() - values.size());
    for (std::size_t k = 0; k < next.size(); ++k) {
      if (k < values.size()) values[k].push_back(next[k]);
      (k < values.size() ? result.traces[k] : result.mapped[k - values.size()]).push_back(next[k]);
    }
  }
  for (const Variables& v : values) result.last.push_back(v.back());
  return result;
}

// Compares all results of the loop with the unrolled steps.
void expect_as_unrolled(const ops::LoopBody& body, const ops::LoopOptions& options, index_t n,
                        const Variables& inputs, const std::vector<Tensor>& arguments,
                        std::size_t n_mapped) {
  const ops::LoopResult loop = ops::loop(body, options);
  const Unrolled expected = unroll(body, options, n);
  Variables got, wanted;
  const auto compare = [&](const Variable& a, const Variable& b) {
    got.push_back(a);
    wanted.push_back(b);
  };
  for (std::size_t k = 0; k < options.states.size(); ++k) {
    compare(loop.trace(k), ops::stack(expected.traces[k]));
    compare(loop.last(k), expected.last[k]);
  }
  for (std::size_t k = 0; k < n_mapped; ++k)
    compare(loop.mapped(k), ops::stack(expected.mapped[k]));

  // A cost of all results, and its derivatives of first and second order.
  Variables above;
  for (std::size_t i = 0; i < got.size(); ++i) {
    above.push_back(constant(numbers({}, 50 + i)) * (wanted[i] + 1.0));
  }
  const auto pulled = [&](const Variables& outs) { return pullback(outs, inputs, above); };
  const Variables g = pulled(got), h = pulled(wanted);
  Variables directions;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    compare(g[i], h[i]);
    directions.push_back(ops::cos(inputs[i]));
  }
  const Variables p = pushforward(got, inputs, directions),
                  q = pushforward(wanted, inputs, directions);
  for (std::size_t i = 0; i < p.size(); ++i) compare(p[i], q[i]);
  const auto second = [&](const Variables& first) {
    Variable sum;
    for (std::size_t i = 0; i < first.size(); ++i) {
      const Variable part = ops::sum(first[i] * directions[i]);
      sum = sum.defined() ? sum + part : part;
    }
    return grad(sum, inputs, {.disconnected = Disconnected::zero});
  };
  const Variables gg = second(g), hh = second(h);
  for (std::size_t i = 0; i < inputs.size(); ++i) compare(gg[i], hh[i]);

  for (Mode mode : kModes) {
    std::vector<In> in(inputs.begin(), inputs.end());
    std::vector<Out> outs(got.begin(), got.end());
    const std::size_t count = outs.size();
    outs.insert(outs.end(), wanted.begin(), wanted.end());
    const Function f = function(in, Outputs(outs), {.mode = mode});
    std::vector<Tensor> results(outs.size());
    f.call(arguments, results);
    for (std::size_t i = 0; i < count; ++i) {
      const V a = values(results[i]), b = values(results[count + i]);
      ASSERT_EQ(results[i].shape(), results[count + i].shape()) << i;
      for (std::size_t e = 0; e < a.size(); ++e) {
        EXPECT_NEAR(a[e], b[e], 1e-11 * (1 + std::abs(b[e]))) << "output " << i << " element " << e;
      }
    }
  }
}

// -- values and derivatives ----------------------------------------------------------------------

TEST(Loop, StatesSequencesAndFixedValues) {
  const Variable x = input({kUnknown, 3}, "x"), s = input({3}, "s"), w = input({3}, "w");
  const ops::LoopBody body = [](const Variables& v) -> Variables {
    const Variable next = ops::sin(v[0] * v[2]) + v[1] * 0.5;
    return {next, ops::sum(next * v[0])};
  };
  for (bool backwards : {false, true}) {
    expect_as_unrolled(body,
                       {.sequences = {x}, .states = {s}, .fixed = {w}, .backwards = backwards}, 4,
                       {x, s, w}, {numbers({4, 3}, 1), numbers({3}, 2), numbers({3}, 3)}, 1);
  }
}

TEST(Loop, TapsOfSequencesAndStates) {
  const Variable x = input({7, 2}, "x"), s = input({3, 2}, "s"), u = input({kUnknown}, "u");
  const ops::LoopBody body = [](const Variables& v) -> Variables {
    // x[-1], x[+2], x[0], u[0], s[-1], s[-3]
    const Variable next = v[4] * v[0] - v[5] * v[1] + v[3];
    return {next, next * v[2], v[2]};
  };
  for (bool backwards : {false, true}) {
    expect_as_unrolled(
        body,
        {.sequences = {{x, {-1, 2, 0}}, u}, .states = {{s, {-1, -3}}}, .backwards = backwards}, 4,
        {x, s, u}, {numbers({7, 2}, 1), numbers({3, 2}, 2), numbers({4}, 3)}, 2);
  }
}

TEST(Loop, SeveralStatesOfWhichSomeAreHandedOn) {
  const Variable a = input({2}, "a"), b = input({2}, "b"), m = input({2, 2}, "m");
  const ops::LoopBody body = [&](const Variables& v) -> Variables {
    // The matrix is captured; twice the matrix does not depend on the steps.
    return {v[1], ops::dot(m * 2.0, v[0]) + 0.1 * v[1]};
  };
  expect_as_unrolled(body, {.states = {a, b}, .n_steps = 5}, 5, {a, b, m},
                     {numbers({2}, 1), numbers({2}, 2), numbers({2, 2}, 3)}, 0);
}

TEST(Loop, AMapHasNoState) {
  const Variable x = input({kUnknown}, "x"), y = input({kUnknown}, "y");
  const ops::LoopBody body = [](const Variables& v) -> Variables { return {v[0] * v[1] * v[1]}; };
  expect_as_unrolled(body, {.sequences = {x, y}}, 3, {x, y}, {numbers({3}, 1), numbers({3}, 2)}, 1);
}

TEST(Loop, LoopsNest) {
  const Variable x = input({3, kUnknown}, "x"), s = input({}, "s");
  const ops::LoopBody outer = [](const Variables& v) -> Variables {
    const ops::LoopResult inner =
        ops::loop([&](const Variables& w) -> Variables { return {w[1] * w[0] + v[1]}; },
                  {.sequences = {v[0]}, .states = {constant(1.0)}});
    return {v[1] + inner.last(0), ops::sum(inner.trace(0))};
  };
  expect_as_unrolled(outer, {.sequences = {x}, .states = {s}}, 3, {x, s},
                     {numbers({3, 4}, 1), numbers({}, 2)}, 1);
}

TEST(Loop, AnIfElseInTheBodyIsLazy) {
  const Variable x = input({kUnknown}, "x");
  int runs = 0;
  const ops::LoopResult r = ops::loop(
      [&](const Variables& v) -> Variables {
        const Variable slow = testing::hooked(v[0] * 10.0, [&] { ++runs; });
        return {v[1] + ops::ifelse(ops::gt(v[0], 0), slow, v[0])};
      },
      {.sequences = {x}, .states = {constant(0.0)}});
  const Function f = function({x}, r.last(0));
  EXPECT_EQ(Tensor(f(Tensor::from<double>({1.0, -2.0, 3.0, -4.0}))).item<double>(), 34);
  EXPECT_EQ(runs, 2);
}

TEST(Loop, InABranchItRunsOnlyWhenTaken) {
  const Variable x = input({kUnknown}, "x"), c = input({}, "c", DType::bool_);
  int runs = 0;
  const ops::LoopResult r = ops::loop(
      [&](const Variables& v) -> Variables {
        return {testing::hooked(v[1] + v[0], [&] { ++runs; })};
      },
      {.sequences = {x}, .states = {constant(0.0)}});
  const Function f = function({c, x}, ops::ifelse(c, r.last(0), 5.0));
  EXPECT_EQ(Tensor(f(Tensor::scalar(false), Tensor::ones({3}))).item<double>(), 5);
  EXPECT_EQ(runs, 0);
  EXPECT_EQ(Tensor(f(Tensor::scalar(true), Tensor::ones({3}))).item<double>(), 3);
  EXPECT_EQ(runs, 3);
}

// -- numbers of steps ----------------------------------------------------------------------------

TEST(Loop, OfNoStepsLeavesItsStates) {
  const Variable x = input({kUnknown, 2}, "x"), s = input({2}, "s"), p = input({2, 2}, "p");
  const ops::LoopResult r = ops::loop(
      [](const Variables& v) -> Variables {
        return {v[0] + v[1], v[2] + v[3], v[0]};
      },
      {.sequences = {x}, .states = {s, {p, {-1, -2}}}});
  for (Mode mode : kModes) {
    const Function f =
        function({x, s, p}, {r.last(0), r.last(1), r.trace(0), r.mapped(0)}, {.mode = mode});
    const auto out = f(Tensor::zeros({0, 2}), Tensor::from<double>({1.0, 2.0}),
                       Tensor::arange(4, DType::float64).reshape({2, 2}));
    EXPECT_EQ(values(out[0]), (V{1, 2}));
    EXPECT_EQ(values(out[1]), (V{2, 3}));
    EXPECT_EQ(out[2].shape(), (Extents{0, 2}));
    EXPECT_EQ(out[3].shape(), (Extents{0, 2}));
  }
  const ops::LoopResult none = ops::loop(
      [](const Variables& v) -> Variables { return {v[0] * 2.0}; }, {.states = {s}, .n_steps = -3});
  EXPECT_EQ(values(function({s}, none.last(0))(Tensor::from<double>({1.0, 2.0}))), (V{1, 2}));
}

TEST(Loop, NumberOfStepsFromExtentsOrFewerThanTheSequenceHas) {
  const Variable x = input({kUnknown, 2}, "x"), y = input({kUnknown}, "y");
  const ops::LoopBody body = [](const Variables& v) -> Variables { return {v[0] + v[1]}; };
  const ops::LoopResult r =
      ops::loop(body, {.sequences = {y}, .states = {constant(0.0)}, .n_steps = x.shape(0) * 2 - 1});
  const Function f = function({x, y}, {r.trace(0), r.last(0)});
  const auto out = f(Tensor::zeros({2, 2}), Tensor::arange(5, DType::float64));
  EXPECT_EQ(values(out[0]), (V{0, 1, 3}));
  EXPECT_EQ(out[1].item<double>(), 3);
  expect_error<ShapeError>(
      [&] {
        f(Tensor::zeros({4, 2}), Tensor::zeros({5}));
      },
      "[loop] number of steps 7: got a sequence of extents (5,), expected at least 7 rows");
  const Variable four = input({4}, "four");
  expect_as_unrolled(body, {.sequences = {four}, .states = {constant(0.5)}, .n_steps = 2}, 2,
                     {four}, {numbers({4}, 1)}, 0);
}

TEST(Loop, NumberOfStepsAsAValue) {
  const Variable n = input({}, "n", DType::int32), a = input({kUnknown}, "a");
  const ops::LoopResult r = ops::loop(
      [&](const Variables& v) -> Variables {
        return {v[0] * a, v[0]};
      },
      {.states = {ops::ones_like(a)}, .n_steps = n});
  const Function power = function({n, a}, r.last(0));
  EXPECT_EQ(values(power(3, Tensor::from<double>({2.0, 3.0}))), (V{8, 27}));
  EXPECT_EQ(values(power(0, Tensor::from<double>({2.0, 3.0}))), (V{1, 1}));
  EXPECT_EQ(values(power(-1, Tensor::from<double>({2.0, 3.0}))), (V{1, 1}));
  expect_error<NotSupported>([&] { r.n_steps(); }, "only a loop with until counts");
  const Variable t = input({kUnknown}, "t");
  const Variable tangent = pushforward(Variables{r.last(0)}, Variables{a}, Variables{t})[0];
  EXPECT_EQ(values(function({n, a, t}, tangent)(3, Tensor::from<double>({2.0}),
                                                Tensor::from<double>({1.0}))),
            (V{12}));
}

TEST(Loop, UntilStopsAfterTheStepWhereItHolds) {
  const Variable s = input({}, "s");
  const ops::LoopResult r = ops::loop(
      [](const Variables& v) -> Variables { return {v[0] * 2.0}; },
      {.states = {s}, .n_steps = 100, .until = [](const Variables&, const Variables& next) {
         return ops::gt(next[0], 50.0);
       }});
  for (Mode mode : kModes) {
    const Function f = function({s}, {r.last(0), r.n_steps()}, {.mode = mode});
    auto out = f(1.0);
    EXPECT_EQ(out[0].item<double>(), 64);
    EXPECT_EQ(out[1].item<index_t>(), 6);
    out = f(100.0);
    EXPECT_EQ(out[1].item<index_t>(), 1);
    out = f(0.0);
    EXPECT_EQ(out[1].item<index_t>(), 100);
  }
}

// -- memory --------------------------------------------------------------------------------------

TEST(LoopMemory, AStateOfWhichOnlyTheLastIsUsedTakesTwoBuffers) {
  const Variable s = input({1000}, "s");
  const ops::LoopResult r = ops::loop(
      [](const Variables& v) -> Variables {
        return {ops::roll(v[0], 1, 0), ops::exp(v[0])};
      },
      {.states = {s}, .n_steps = 50});
  const Function f = function({s}, r.last(0));
  const Plan& plan = f.plan(std::vector<TensorType>{s.type()});
  EXPECT_EQ(plan.output_bytes, 8000);
  EXPECT_EQ(plan.arena_bytes, 8000) << plan.to_string();
  EXPECT_NE(plan.to_string().find("Roll"), std::string::npos) << "steps of the body are listed";
}

// The arena bytes of a loop over a thousand numbers besides its result.
index_t arena_of(const ops::LoopBody& body, std::size_t n_states = 1, std::size_t result = 0) {
  Variables inits;
  std::vector<ops::LoopState> states;
  for (std::size_t k = 0; k < n_states; ++k) {
    inits.push_back(input({1000}, "s" + std::to_string(k)));
    states.emplace_back(inits.back());
  }
  const ops::LoopResult r = ops::loop(body, {.states = states, .n_steps = 50});
  const Function f = function(std::vector<In>(inits.begin(), inits.end()), r.last(result),
                              {.on_unused_input = Reaction::ignore});
  const Plan& plan = f.plan(std::vector<TensorType>(n_states, inits[0].type()));
  EXPECT_EQ(plan.output_bytes, 8000) << plan.to_string();
  return plan.arena_bytes;
}

TEST(LoopMemory, AStateWhoseStepWorksInPlaceTakesOneBuffer) {
  EXPECT_EQ(arena_of([](const Variables& v) -> Variables { return {ops::cumsum(v[0])}; }), 0);
  EXPECT_EQ(arena_of([](const Variables& v) -> Variables { return {ops::exp(v[0] * 0.5) - 1.0}; }),
            0);
  // A step in place; and one that cannot be, which alternates with the other buffer.
  EXPECT_EQ(arena_of([](const Variables& v) -> Variables {
              return {ops::roll(ops::cumsum(v[0]), 1, 0)};
            }),
            8000);
  // A result that is not dense is computed elsewhere and copied to the one buffer.
  EXPECT_EQ(arena_of([](const Variables& v) -> Variables {
              return {ops::flip(ops::roll(v[0], 1, 0), {0})};
            }),
            8000);
  // Of two states, one is computed at a time.
  EXPECT_EQ(arena_of(
                [](const Variables& v) -> Variables {
                  return {ops::cumsum(v[0] + v[1]), ops::cumsum(v[1])};
                },
                2),
            8000);
}

TEST(LoopMemory, ALoopInPlaceOfItsInitTakesNoMemory) {
  SharedVariable s = shared(Tensor::ones({1000}), {.shape = Extents{1000}});
  const ops::LoopResult r =
      ops::loop([](const Variables& v) -> Variables { return {ops::cumsum(v[0] * 0.5)}; },
                {.states = {s.var()}, .n_steps = 5});
  const Function f = function({}, {}, {.updates = {{s, r.last(0)}}});
  EXPECT_EQ(f.plan(std::vector<TensorType>{}).peak_bytes, 0);
  const void* const memory = s.container().value().raw_data();
  f();
  EXPECT_EQ(s.container().value().raw_data(), memory);
}

// Every state is read by others while its own new value is computed, passed on, or returned.
TEST(LoopMemory, OverwrittenStatesAreReadBefore) {
  const Variable s = input({3}, "s"), u = input({3}, "u"), x = input({kUnknown, 3}, "x");
  const std::vector<std::pair<const char*, ops::LoopBody>> bodies{
      {"other reads old",
       [](const Variables& v) -> Variables {
         return {v[1] * 0.5 + v[0], v[1] + v[2], ops::exp(v[1])};
       }},
      {"exchange",
       [](const Variables& v) -> Variables {
         return {v[2], v[1], v[1] * v[2]};
       }},
      {"old value mapped",
       [](const Variables& v) -> Variables {
         return {v[1] * 2.0, v[2] + 1.0, v[1]};
       }},
      {"new value mapped",
       [](const Variables& v) -> Variables {
         const Variable next = ops::sin(v[1]) + v[0];
         return {next, v[2] + next, ops::flip(next, {0})};
       }},
      {"flipped",
       [](const Variables& v) -> Variables {
         return {ops::flip(v[1], {0}), ops::flip(v[2] * 0.5, {0}), v[0]};
       }},
      {"unchanged",
       [](const Variables& v) -> Variables {
         return {v[1], v[2] + v[1], v[1]};
       }},
      {"overwritten for the other",
       [](const Variables& v) -> Variables {
         return {ops::roll(v[2], 1, 0), ops::exp(v[1]) + v[0], ops::cos(v[2])};
       }},
      {"part", [](const Variables& v) -> Variables {
         const Variable half = v[1](slice(0, 2)).inc(1.0);
         return {half, v[2](0).set(ops::sum(v[1])), v[0] * half};
       }}};
  const Tensor x0 = numbers({5, 3}, 1), s0 = numbers({3}, 2), u0 = numbers({3}, 3);
  for (const auto& [name, body] : bodies) {
    const ops::LoopOptions options{.sequences = {x}, .states = {s, u}};
    const ops::LoopResult r = ops::loop(body, options);
    const Unrolled expected = unroll(body, options, 5);
    const std::vector<Out> outs{r.last(0), r.last(1), r.mapped(0)};
    const std::vector<Out> plain{expected.last[0], expected.last[1],
                                 ops::stack(expected.mapped[0])};
    const auto compiled = [&](const Outputs& results, const Mode& mode) {
      return function({x, s, u}, results, {.mode = mode, .on_unused_input = Reaction::ignore});
    };
    const auto want = compiled(plain, Mode::no_rewrite)(x0, s0, u0);
    for (const Mode mode : kModes) {
      const auto got = compiled(outs, mode)(x0, s0, u0);
      for (std::size_t k = 0; k < 3; ++k) {
        EXPECT_TRUE(allclose(got[k], want[k])) << name << " " << k;
      }
      // Only one of them is used: the others keep no history.
      EXPECT_TRUE(allclose(compiled(r.last(1), mode)(x0, s0, u0), want[1])) << name;
    }
  }
}

TEST(LoopMemory, AStateIsOverwrittenForItsOwnNextValueOnly) {
  const Variable s = input({1000}, "s"), u = input({1000}, "u");
  // The old s is free after exp; but that result is mapped, and is not the new s.
  const ops::LoopResult r = ops::loop(
      [](const Variables& v) -> Variables {
        return {ops::roll(v[1], 1, 0), v[1] + 1.0, ops::cumsum(v[0])};
      },
      {.states = {s, u}, .n_steps = 4});
  const Function f = function({s, u}, {r.last(0), r.mapped(0)});
  // Here the new s is computed from the mapped result, and lies elsewhere.
  const ops::LoopResult t = ops::loop(
      [](const Variables& v) -> Variables {
        const Variable sums = ops::cumsum(v[0]);
        return {ops::roll(sums, 1, 0), sums};
      },
      {.states = {s}, .n_steps = 4});
  const Function g = function({s}, {t.last(0), t.mapped(0)});
  for (const Function& each : {f, g}) {
    for (const Apply& node : each.graph().toposort()) {
      const std::string text = node.op().str();
      EXPECT_EQ(text.find("CumSumInPlace"), std::string::npos) << text;
    }
  }
}

TEST(LoopMemory, ThePlannedPeakIsTheMeasuredOne) {
  const Variable x = input({kUnknown, 100}, "x"), s = input({100}, "s");
  const ops::LoopResult r = ops::loop(
      [](const Variables& v) -> Variables {
        const Variable u = ops::cumsum(v[0] + v[1]);
        return {ops::cumsum(u * u) / (1.0 + ops::sum(u)), u};
      },
      {.sequences = {x}, .states = {s}});
  const Variable cost = ops::sum(r.trace(0)) + ops::sum(r.mapped(0)) + ops::sum(r.last(0));
  const Function f = function({x, s}, Outputs({cost, grad(cost, x)}));
  const std::vector<Tensor> arguments{numbers({20, 100}, 1), numbers({100}, 2)};
  const Plan& plan = f.plan(arguments);
  std::vector<Tensor> results(2);
  const MemoryScope first{Device{}};
  f.call(arguments, results);
  EXPECT_EQ(static_cast<index_t>(first.peak_bytes()), plan.peak_bytes);
  results = std::vector<Tensor>(2);
  const MemoryScope second{Device{}};
  f.call(arguments, results);
  EXPECT_EQ(static_cast<index_t>(second.peak_bytes()), plan.output_bytes);
}

TEST(LoopMemory, InnerGraphsThatUsersHoldStay) {
  const Variable s = input({4}, "s");
  const ops::LoopResult r =
      ops::loop([](const Variables& v) -> Variables { return {ops::exp(v[0] * 2.0) + 1.0}; },
                {.states = {s}, .n_steps = 3});
  const std::string before = r.last(0).owner().op().str();
  const Tensor a = function({s}, r.last(0))(Tensor::full({4}, -1.0));
  const Tensor b = function({s}, r.last(0), {.mode = Mode::no_rewrite})(Tensor::full({4}, -1.0));
  EXPECT_TRUE(equal(a, b));
  EXPECT_EQ(r.last(0).owner().op().str(), before);
}

TEST(LoopMemory, UpdatesASharedVariable) {
  const SharedVariable s = shared(Tensor::from<double>({1.0, 2.0}));
  const ops::LoopResult r = ops::loop([](const Variables& v) -> Variables { return {v[0] * 2.0}; },
                                      {.states = {s.var()}, .n_steps = 3});
  const Function f = function({}, Outputs(std::vector<Out>{}), {.updates = {{s, r.last(0)}}});
  f();
  f();
  EXPECT_EQ(values(s.get_value()), (V{64, 128}));
}

TEST(LoopMemory, RandomNumbersDifferFromStepToStep) {
  RandomState random(3);
  const ops::LoopResult r = ops::loop(
      [](const Variables& v) -> Variables {
        return {ops::next_key(v[0]), ops::random_normal(v[0], {2})};
      },
      {.states = {random.next()}, .n_steps = 4});
  const Function f = function({}, r.mapped(0));
  const V a = values(f()), b = values(f());
  EXPECT_NE(a, b);
  for (std::size_t i = 2; i < 8; ++i) EXPECT_NE(a[i], a[i - 2]);
}

// -- identity and errors -------------------------------------------------------------------------

// A loop of a loop of a loop: each is planned, and its extents are found, once.
TEST(LoopMemory, PlanningTakesAsLongAsTheNestIsDeep) {
  const std::function<Variable(const Variable&, int)> nest = [&](const Variable& v, int depth) {
    if (depth == 0) return v * 2.0;
    return ops::loop([&](const Variables& w) -> Variables { return {nest(w[0], depth - 1)}; },
                     {.states = {v}, .n_steps = 1})
        .last(0);
  };
  const Variable x = input({kUnknown}, "x");
  const Function f = function({x}, nest(x, 24));
  EXPECT_EQ(f(Tensor::ones({2})).tensor().to_vector<double>(), (std::vector<double>{2, 2}));
}

TEST(LoopOp, IsEqualByWhatItComputes) {
  const Variable s = input({2}, "s");
  const auto op_of = [&](double factor, index_t n) {
    return ops::loop([&](const Variables& v) -> Variables { return {v[0] * factor}; },
                     {.states = {s}, .n_steps = n})
        .last(0)
        .owner()
        .op()
        .str();
  };
  EXPECT_EQ(op_of(2, 3), op_of(2, 3));
  EXPECT_NE(op_of(2, 3), op_of(2.5, 3));
  EXPECT_NE(op_of(2, 3), op_of(2, 4));
}

TEST(LoopOp, SaysInWhichStepItFailed) {
  const Variable x = input({kUnknown}, "x");
  const ops::LoopResult r = ops::loop(
      [](const Variables& v) -> Variables {
        return {ops::assert_that(v[0], ops::gt(v[0], 0), "positive")};
      },
      {.sequences = {x}});
  const Function f = function({x}, r.mapped(0));
  expect_error<AssertionError>(
      [&] {
        f(Tensor::from<double>({1.0, 2.0, -1.0, 3.0}));
      },
      "in step 2 of 4 of a loop");
}

TEST(LoopOp, RefusesWhatDoesNotFit) {
  const Variable x = input({3, 2}, "x"), y = input({4, 2}, "y"), s = input({2}, "s"),
                 n = input({}, "n");
  const ops::LoopBody same = [](const Variables& v) { return v; };
  expect_error<ValueError>([&] { ops::loop(same, {.states = {s}}); },
                           "[loop] number of steps: got neither n_steps nor a sequence");
  expect_error<TypeError>([&] { ops::loop(same, {.states = {s}, .n_steps = n}); },
                          "[loop] n_steps: got float64 ()");
  expect_error<ShapeError>(
      [&] {
        ops::loop(same, {.sequences = {x, y}});
      },
      "[loop] number of steps 3");
  expect_error<ShapeError>([&] { ops::loop(same, {.sequences = {n}}); },
                           "[loop] sequence 0: got float64 (), expected a leading axis");
  expect_error<ValueError>(
      [&] {
        ops::loop(same, {.states = {{s, {0}}}, .n_steps = 1});
      },
      "[loop] taps of state 0: got 0, expected negative ones");
  expect_error<ValueError>(
      [&] {
        ops::loop(same, {.sequences = {{x, {1, 1}}}});
      },
      "[loop] taps of sequence 0: got (1, 1), expected some that differ");
  expect_error<ValueError>(
      [&] {
        ops::loop([](const Variables&) { return Variables{}; }, {.states = {s}, .n_steps = 1});
      },
      "[loop] number of results of the body: got 0, expected at least 1");
  expect_error<ValueError>(
      [&] {
        ops::loop([](const Variables&) { return Variables(1); }, {.states = {s}, .n_steps = 1});
      },
      "[loop] result of the body: got an undefined variable");
  expect_error<DTypeError>(
      [&] {
        ops::loop([](const Variables& v) -> Variables { return {v[0] * 0.5}; },
                  {.states = {constant(1)}, .n_steps = 1});
      },
      "[loop] new value of state 0: got float64 (), expected int64, as its init is");
  expect_error<TypeError>(
      [&] {
        ops::loop([](const Variables& v) -> Variables { return {ops::sum(v[0])}; },
                  {.states = {s}, .n_steps = 1});
      },
      "[loop] new value of state 0: got float64 (), expected float64 (2,)");
  expect_error<ShapeError>(
      [&] {
        ops::loop(same, {.states = {{x, {-1, -2}}}, .n_steps = 1});
      },
      "[loop] init of state 0: got float64 (3, 2), expected 2 rows for its taps");
  expect_error<TypeError>(
      [&] {
        ops::loop(same, {.states = {s},
                         .n_steps = 1,
                         .until = [](const Variables& v, const Variables&) { return v[0]; }});
      },
      "[loop] until: got float64 (2,), expected one value");
  const ops::LoopResult r = ops::loop(same, {.states = {s}, .n_steps = 1});
  expect_error<ValueError>([&] { r.last(1); },
                           "[loop] last value of a state: got number 1, expected one below 1");
  expect_error<ValueError>([&] { r.mapped(0); }, "[loop] mapped value: got number 0");
  const Variable u = input({kUnknown}, "u");
  const ops::LoopResult grows = ops::loop(
      [](const Variables& v) -> Variables {
        return {ops::join(0, {v[0], v[0]})};
      },
      {.states = {u}, .n_steps = 2});
  expect_error<ShapeError>(
      [&] { function({u}, grows.last(0))(Tensor::ones({2})); },
      "[loop] new value of state 0: got extents (4,), expected those of its init, (2,)");
}

}  // namespace
}  // namespace palimpsest
