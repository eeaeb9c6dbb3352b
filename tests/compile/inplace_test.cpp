// SPDX-License-Identifier: Apache-2.0
// Functions whose graphs overwrite inputs: the worked examples of the specification that need a
// run, and in-place ops written by users.
#include "palimpsest/ops/inplace.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <random>

#include "inspect/liar_ops.hpp"
#include "palimpsest/base/config.hpp"
#include "palimpsest/base/log.hpp"
#include "palimpsest/compile/function.hpp"
#include "palimpsest/inspect/debug/debug_mode.hpp"
#include "palimpsest/ops/ops.hpp"
#include "rewrite/sums_in_steps.hpp"
#include "support/expect_error.hpp"
#include "support/long_run.hpp"

namespace palimpsest {
namespace {

using testing::expect_error;
using V = std::vector<double>;
V values(const Tensor& t) { return t.to_vector<double>(); }

struct InplaceFunctions : ::testing::Test {
  Variable x = make_input({DType::float64, {kUnknown}, {}}, "x");
  Variable y = make_input({DType::float64, {kUnknown}, {}}, "y");
  InOptions lent{.is_mutable = true, .borrow = true};

  static int count(const Function& f, const std::string& op) {
    int n = 0;
    for (const Apply& node : f.steps()) n += node.op().name() == op ? 1 : 0;
    return n;
  }
};

// -- what users write ----------------------------------------------------------------------------

TEST_F(InplaceFunctions, TheDocumentsSampleDoesNotDependOnTheOrderOfItsLines) {
  const Variable r1 = ops::log(x), r2 = inplace::add_inplace(x, y), r3 = ops::log(x),
                 r4 = ops::log(r2);
  const V old{1, 2, 4}, more{1, 6, 12};
  V of_old, of_sum;
  for (std::size_t i = 0; i < 3; ++i) {
    of_old.push_back(std::log(old[i]));
    of_sum.push_back(std::log(old[i] + more[i]));
  }
  for (const Mode& mode : {Mode(Mode::fast_run), Mode(Mode::fast_compile), Mode(Mode::no_rewrite),
                           DebugMode({.patience = 2})}) {
    for (const bool backwards : {false, true}) {
      std::vector<Out> outs{r1, r2, r3, r4};
      if (backwards) std::reverse(outs.begin(), outs.end());
      const Function f = function({In(x, lent), y}, outs, {.mode = mode, .accept_inplace = true});
      const Results r = f(Tensor::from(old), Tensor::from(more));
      const auto at = [&](std::size_t i) { return values(r[backwards ? 3 - i : i]); };
      EXPECT_EQ(at(0), of_old);
      EXPECT_EQ(at(2), of_old);
      EXPECT_EQ(at(3), of_sum);
    }
  }
}

TEST_F(InplaceFunctions, OpsThatOverwriteAreRefusedUnlessAccepted) {
  const Variable v = inplace::add_inplace(x, y);
  expect_error<TypeError>(
      [&] {
        function({In(x, lent), y}, v);
      },
      "AddInPlace overwrites an input. Try accept_inplace = true");
  expect_error<InconsistencyError>(
      [&] {
        function({x, y}, v, {.accept_inplace = true});
      },
      "AddInPlace destroys x");
  const Function f = function({In(x, lent), y}, v, {.accept_inplace = true});
  EXPECT_EQ(values(f(Tensor::from(V{1, 2}), Tensor::from(V{3, 4})).tensor()), (V{4, 6}));
}

TEST_F(InplaceFunctions, WhatIsWrongBeforeAnyRewriteIsNotBlamedOnOne) {
  std::vector<std::string> lines;
  set_log_sink([&](LogLevel, std::string_view line) { lines.emplace_back(line); });
  const ConfigScope scope({.on_opt_error = Reaction::warn});
  EXPECT_THROW(function({x, y}, inplace::add_inplace(x, y), {.accept_inplace = true}),
               InconsistencyError);
  set_log_sink(nullptr);
  EXPECT_TRUE(lines.empty()) << lines[0];
}

// A reader of the old value and a user of the new one cannot be one step; everything else can.
TEST_F(InplaceFunctions, FusionLeavesOutTheStepsThatCloseACircleAndNoOthers) {
  const ConfigScope scope({.on_opt_error = Reaction::raise});
  const Variable old = ops::exp(x * 2.0) + 1.0, now = inplace::neg_inplace(x),
                 both = (old * 0.5 + ops::roll(now, 1, 0)) * 3.0 - 1.0,
                 other = ops::exp(y) * 2.0 + 1.0, total = ops::sum(y * y);
  const FunctionOptions options{.accept_inplace = true};
  const Function f = function({In(x, lent), y}, {both, other, total}, options);
  // Each of `old` and `both` is one step, and so is `other`.
  EXPECT_EQ(f.steps().size(), 6U) << f.dprint();
  FunctionOptions plain = options;
  plain.mode = NoRewrite();
  const Function g = function({In(x, lent), y}, {both, other, total}, plain);
  const auto run = [](const Function& h) {
    return h(Tensor::from<double>({1, 2, 3}), Tensor::from<double>({0, 1, 2}));
  };
  const Results expected = run(g), got = run(f);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_TRUE(allclose(got[i], expected[i])) << i;
}

// Graphs in which steps overwrite what others read. No pass is given up as a whole.
TEST_F(InplaceFunctions, NoPassFailsOnGraphsWhoseStepsOverwriteTheirInputs) {
  const ConfigScope scope({.on_opt_error = Reaction::raise});
  int n_compiled = 0;
  for (unsigned seed = 0; seed < static_cast<unsigned>(testing::longer(400)); ++seed) {
    std::mt19937 random(seed);
    const auto pick = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
    std::vector<Variable> known{x, y, x * 2.0};
    for (int k = 0; k < 14; ++k) {
      const Variable a = known[known.size() - 1 - pick(std::min<std::size_t>(known.size(), 5))],
                     b = known[pick(known.size())];
      switch (pick(9)) {
        case 0:
          known.push_back(ops::exp(a * 0.25));
          break;
        case 1:
          known.push_back(ops::roll(a, 1, 0));
          break;
        case 2:
          known.push_back(a + b);
          break;
        case 3:
          known.push_back(a * 0.5 - 1.0);
          break;
        case 4:
          known.push_back(inplace::neg_inplace(a));
          break;
        case 5:
          known.push_back(inplace::add_inplace(a, b * 0.5));
          break;
        case 6:
          known.push_back(a + ops::sum(b * b));
          break;
        case 7:
          known.push_back(ops::ones_like(a) * 0.5 + b);
          break;
        default:
          known.push_back(inplace::set_subtensor_inplace(a, {slice(0, 2)}, b(slice(1, 3))));
      }
    }
    const std::vector<Out> outs{known.back(), known[known.size() - 3], ops::sum(known[4])};
    const auto compiled = [&](const Mode& mode) {
      return function({In(x, lent), In(y, lent)}, outs,
                      {.mode = mode, .on_unused_input = Reaction::ignore, .accept_inplace = true});
    };
    std::optional<Function> plain;
    try {
      plain = compiled(NoRewrite());
    } catch (const InconsistencyError&) {
      continue;
    }
    ++n_compiled;
    const auto run = [](const Function& h) {
      return h(Tensor::from<double>({1, 2, -3}), Tensor::from<double>({0.5, 1, 2}));
    };
    const Results expected = run(*plain);
    for (const Mode& mode : {FastRun(), testing::sums_in_steps(FastRun(), 1), FastCompile()}) {
      std::optional<Function> f;
      ASSERT_NO_THROW(f = compiled(mode)) << seed;
      const Results got = run(*f);
      for (std::size_t i = 0; i < outs.size(); ++i) {
        ASSERT_TRUE(allclose(got[i], expected[i])) << seed << "\n" << f->dprint();
      }
    }
  }
  EXPECT_GT(n_compiled, 50);
}

TEST_F(InplaceFunctions, XorLeavesTheResultInItsFirstArgumentsMemory) {
  for (const DType dtype : {DType::int8, DType::int16, DType::int32, DType::int64}) {
    const Variable a = make_input({dtype, {kUnknown}, {}}, "a"),
                   b = make_input({dtype, {kUnknown}, {}}, "b");
    const Function f =
        function({In(a, lent), b}, Out(inplace::bitwise_xor_inplace(a, b), {.borrow = true}),
                 {.accept_inplace = true});
    const Tensor first = Tensor::from<index_t>({5, -1, 3}).to(dtype);
    const Tensor second = Tensor::from<index_t>({3, 1, -3}).to(dtype);
    const Tensor result = f(first, second);
    EXPECT_EQ(result.to_vector<index_t>(), (std::vector<index_t>{6, -2, -2}));
    EXPECT_EQ(result.raw_data(), first.raw_data());
    EXPECT_TRUE(equal(result, first));
  }
}

TEST_F(InplaceFunctions, SeveralResultsMayBeWrittenIntoOneLentArray) {
  const Variable four = make_input({DType::float64, {4}, {}}, "four");
  const Variable left = inplace::mul_inplace(four(slice(0, 2)), 10.0);
  const Variable right = inplace::add_inplace(four(slice(2, {})), 1.0);
  for (const Mode& mode : {Mode(Mode::fast_run), DebugMode({.patience = 2})}) {
    const Function f =
        function({In(four, lent)}, {left, right}, {.mode = mode, .accept_inplace = true});
    const Results r = f(Tensor::from(V{1, 2, 3, 4}));
    EXPECT_EQ(values(r[0]), (V{10, 20}));
    EXPECT_EQ(values(r[1]), (V{4, 5}));
  }
  const Variable overlapping = inplace::add_inplace(four(slice(1, {})), 1.0);
  EXPECT_THROW(function({In(four, lent)}, {left, overlapping}, {.accept_inplace = true}),
               InconsistencyError);
}

TEST_F(InplaceFunctions, OneResultMayOverwriteTwoInputs) {
  const Variable sum = testing::liar({.destroys = {{0, {0, 1}}},
                                      .can_fail = false,
                                      .run =
                                          [](RunContext& c) {
                                            testing::first_element(c.output(0)) +=
                                                testing::first_element(c.input(1));
                                            testing::first_element(c.input(1)) = 0;
                                          }},
                                     {x, y});
  for (const Mode& mode : {Mode(Mode::fast_run), DebugMode({.patience = 2})}) {
    const Function f =
        function({In(x, lent), In(y, lent)}, sum, {.mode = mode, .accept_inplace = true});
    EXPECT_EQ(values(f(Tensor::from(V{1, 2}), Tensor::from(V{10, 20})).tensor()), (V{11, 2}));
  }
  expect_error<InconsistencyError>(
      [&] {
        function({In(x, lent), y}, sum, {.accept_inplace = true});
      },
      "destroys_protected");
}

TEST_F(InplaceFunctions, AViewOfTwoInputsIsReadBeforeEitherIsOverwritten) {
  const Variable either =
      testing::liar({.views = {{0, {0, 1}}},
                     .run = [](RunContext& c) { testing::Liar::copy(c.input(1), c.output(0)); }},
                    {x, y});
  const Variable read = ops::roll(either, 1, 0), next = inplace::add_inplace(y, 1.0);
  for (const bool backwards : {false, true}) {
    std::vector<Out> outs{read, next};
    if (backwards) std::reverse(outs.begin(), outs.end());
    const Function f = function({x, In(y, lent)}, outs, {.accept_inplace = true});
    const Results r = f(Tensor::from(V{1, 2}), Tensor::from(V{10, 20}));
    EXPECT_EQ(values(r[backwards ? 1 : 0]), (V{20, 10}));
    EXPECT_EQ(values(r[backwards ? 0 : 1]), (V{11, 21}));
  }
}

// -- what is rewritten ---------------------------------------------------------------------------

TEST_F(InplaceFunctions, AnOperandTwiceRunsInPlace) {
  const Variable t = ops::roll(x, 1, 0);
  const Function f = function({x}, t + t, {.mode = FastRun().exact()});
  EXPECT_EQ(count(f, "AddInPlace"), 1);
  EXPECT_EQ(values(f(Tensor::from(V{1, 2, 3})).tensor()), (V{6, 2, 4}));
  EXPECT_EQ(f.plan(std::vector{Tensor::from(V{1, 2, 3})}).peak_bytes, 24);
}

TEST_F(InplaceFunctions, AnUpdateByAGemmOverwritesItsContainer) {
  const Variable m = make_input({DType::float64, {2, 2}, {}}, "m");
  SharedVariable z = shared(Tensor::from(V{1, 0, 0, 1}, Extents{2, 2}), {.name = "z"});
  const void* const address = z.container().value().raw_data();
  const Function f = function({m}, {}, {.updates = {{z, ops::gemm(z, 1, m, m.T(), 1)}}});
  EXPECT_EQ(count(f, "GemmInPlace"), 1);
  f(Tensor::from(V{1, 2, 3, 4}, Extents{2, 2}));
  EXPECT_EQ(values(z.get_value()), (V{6, 11, 11, 26}));
  EXPECT_EQ(z.container().value().raw_data(), address);
}

TEST_F(InplaceFunctions, ARankOneUpdateIsOneDestructiveStepWhateverTheStrides) {
  for (const bool reversed : {false, true}) {
    Tensor start = Tensor::from(V{1, 2, 3, 4, 5, 6}, Extents{2, 3});
    const Axes both{0, 1};
    if (reversed) start = start.flip(both).clone().flip(both);
    SharedVariable a = shared(start, {.name = "a", .borrow = true});
    const Function f = function({x, y}, {}, {.updates = {{a, ops::ger(a, 0.1, x, y)}}});
    EXPECT_EQ(count(f, "GerInPlace"), 1);
    EXPECT_EQ(f.steps().size(), 1u);
    f(Tensor::from(V{10, 20}), Tensor::from(V{1, 2, 3}));
    const Tensor expected = Tensor::from(V{2, 4, 6, 6, 9, 12}, Extents{2, 3});
    EXPECT_TRUE(allclose(a.get_value(), expected, 1e-14, 1e-14)) << a.get_value();
  }
}

TEST_F(InplaceFunctions, AValueThatShowsItsTargetIsReadBeforeItIsWritten) {
  const Variable k = constant(Tensor::from<index_t>({0, 1, 2}));
  for (const Mode& mode : {Mode(Mode::fast_run), DebugMode({.patience = 2})}) {
    for (const bool by_arrays : {false, true}) {
      SharedVariable s = shared(Tensor::from(V{1, 2, 3, 4}), {.name = "s"});
      const Variable moved = s.var()(slice(1, {}));
      const Variable next =
          by_arrays ? s.var()[k].set(moved) : ops::set_subtensor(s, {slice(0, 3)}, moved);
      const Variable back = ops::inc_subtensor(next, {slice(1, {})}, next(slice(0, 3)));
      const Function f = function({}, {}, {.updates = {{s, back}}, .mode = mode});
      EXPECT_EQ(count(f, by_arrays ? "AdvancedSetInPlace" : "SetSubtensorInPlace"), 1);
      EXPECT_EQ(count(f, "IncSubtensorInPlace"), 1);
      f();
      EXPECT_EQ(values(s.get_value()), (V{2, 5, 7, 8}));
    }
  }
}

TEST_F(InplaceFunctions, TheReportTellsWhatWasLeftAlone) {
  const ConfigScope scope({.profile = true});
  const Function f = function({x, y}, x * ops::roll(y, 1, 0) + ops::roll(x, 1, 0));
  ASSERT_FALSE(f.inplace_report().empty());
  bool found = false;
  for (const InplaceRefusal& r : f.inplace_report()) {
    found = found || (r.variable == "x" && r.kind == InconsistencyKind::destroys_protected);
  }
  EXPECT_TRUE(found);
  EXPECT_NE(f.profile().summary().find(": destroys_protected"), std::string::npos);
  EXPECT_NE(f.profile().to_json().find("\"destroys_protected\""), std::string::npos);
  const Function none = function({x}, ops::exp(ops::roll(x, 1, 0)));
  EXPECT_TRUE(none.inplace_report().empty());
}

TEST_F(InplaceFunctions, WorkingOnAPartNeverRaisesThePeak) {
  const Variable t = ops::roll(x, 1, 0);
  const Variable small = ops::exp(t(slice(0, 4))), big = ops::roll(y, 1, 0);
  const Variable result = ops::roll(ops::exp(big), 1, 0).sum() + ops::roll(small, 1, 0).sum();
  const Tensor a = Tensor::full({1000}, 0.5), b = Tensor::full({1000}, 0.25);
  const auto peak = [&](const std::vector<std::string>& without) {
    const ConfigScope scope({.rewrites_excluding = without});
    return function({x, y}, result).plan(std::vector{a, b}).peak_bytes;
  };
  EXPECT_LE(peak({}), peak({"inplace"}));
}

// -- loops ---------------------------------------------------------------------------------------

// The pullback of an op that overwrites is that of its pure twin. If it needs a value that is
// overwritten by then, compiling fails; it never reads a wrong value.
TEST_F(InplaceFunctions, DerivativesOfOpsThatOverwriteAreThoseOfTheirPureTwins) {
  using Build = std::function<Variable(const Variable&, const Variable&)>;
  const std::vector<std::pair<Build, Build>> pairs{
      {[](const Variable& t, const Variable&) { return inplace::exp_inplace(t); },
       [](const Variable& t, const Variable&) { return ops::exp(t); }},
      {[](const Variable& t, const Variable&) { return inplace::sqrt_inplace(t); },
       [](const Variable& t, const Variable&) { return ops::sqrt(t); }},
      {[](const Variable& t, const Variable&) { return inplace::tanh_inplace(t); },
       [](const Variable& t, const Variable&) { return ops::tanh(t); }},
      {[](const Variable& t, const Variable&) { return inplace::square_inplace(t); },
       [](const Variable& t, const Variable&) { return ops::square(t); }},
      {[](const Variable& t, const Variable& u) { return inplace::add_inplace(t, u); },
       [](const Variable& t, const Variable& u) { return t + u; }},
      {[](const Variable& t, const Variable& u) { return inplace::mul_inplace(t, u); },
       [](const Variable& t, const Variable& u) { return t * u; }},
      {[](const Variable& t, const Variable& u) { return inplace::div_inplace(t, u); },
       [](const Variable& t, const Variable& u) { return t / u; }}};
  int n_compiled = 0, n_refused = 0;
  const Tensor a = Tensor::from(V{1, 2, 3}), b = Tensor::from(V{4, 5, 7});
  for (const auto& [overwriting, pure] : pairs) {
    const auto gradients = [&](const Build& build) {
      const Variable cost = ops::sum(ops::square(build(ops::roll(x, 1, 0), y)));
      return grad(cost, std::vector<Variable>{x, y}, {.disconnected = Disconnected::zero});
    };
    const std::vector<Variable> got = gradients(overwriting), expected = gradients(pure);
    const auto options = [&] {
      return FunctionOptions{.on_unused_input = Reaction::ignore, .accept_inplace = true};
    };
    const Results want = function({x, y}, {expected[0], expected[1]}, options())(a, b);
    try {
      const Results found = function({x, y}, {got[0], got[1]}, options())(a, b);
      for (std::size_t k = 0; k < 2; ++k) EXPECT_TRUE(allclose(found[k], want[k], 1e-12));
      ++n_compiled;
    } catch (const InconsistencyError& error) {
      EXPECT_TRUE(error.kind() == InconsistencyKind::ordering_cycle) << error.what();
      ++n_refused;
    }
  }
  EXPECT_GE(n_compiled, 4) << "those whose derivative is written in what they give";
  EXPECT_GE(n_refused, 1) << "those whose derivative needs what they were given";
}

TEST_F(InplaceFunctions, ALoopThatOnlyMapsHasNothingToOverwrite) {
  const ops::LoopResult r = ops::loop(
      [](const std::vector<Variable>& v) { return std::vector{v[0] * 2.0}; }, {.sequences = {x}});
  const Function f = function({x}, r.mapped(0));
  EXPECT_EQ(count(f, "Loop"), 1);
  for (const InplaceRefusal& refusal : f.inplace_report()) EXPECT_EQ(refusal.body, "Loop 0");
  EXPECT_EQ(values(f(Tensor::from(V{1, 2, 3})).tensor()), (V{2, 4, 6}));
}

Variable halved(const Variable& init, index_t n, const ops::LoopUntil& until = {}) {
  return ops::loop([](const std::vector<Variable>& v) { return std::vector{v[0] * 0.5 + 1.0}; },
                   {.states = {init}, .n_steps = n, .until = until})
      .last(0);
}

TEST_F(InplaceFunctions, ALoopOverwritesTheSharedVariableThatItUpdates) {
  for (const Mode& mode : {Mode(Mode::fast_run), DebugMode({.patience = 2})}) {
    for (const index_t n : {0, 1, 2, 3}) {
      for (const bool reversed : {false, true}) {
        Tensor start = Tensor::from(V{1, 2, 4, 8}, Extents{2, 2});
        const Axes both{0, 1};
        if (reversed) start = start.flip(both).clone().flip(both);
        SharedVariable s = shared(start, {.name = "s", .borrow = true});
        const void* const address = s.container().value().raw_data();
        const Function f = function({}, {}, {.updates = {{s, halved(s, n)}}, .mode = mode});
        EXPECT_EQ(count(f, "LoopInPlace"), 1);
        f();
        V expected{1, 2, 4, 8};
        for (index_t t = 0; t < n; ++t) {
          for (double& v : expected) v = v * 0.5 + 1;
        }
        EXPECT_EQ(values(s.get_value()), expected) << n << reversed;
        EXPECT_EQ(s.container().value().raw_data(), address);
      }
    }
  }
}

// A step of a body that reads a sequence may not overwrite it; the report names the loop.
TEST_F(InplaceFunctions, RefusalsInBodiesOfLoopsAreReported) {
  const Variable rows = make_input({DType::float64, {3, 4}, {}}, "rows");
  const ops::LoopResult r =
      ops::loop([](const std::vector<Variable>& v) { return std::vector{ops::cumsum(v[0], 0)}; },
                {.sequences = {rows}});
  const Function f = function({rows}, r.mapped(0));
  ASSERT_EQ(f.inplace_report().size(), 1U);
  const InplaceRefusal& refusal = f.inplace_report()[0];
  EXPECT_EQ(refusal.body, "Loop 0");
  EXPECT_EQ(refusal.kind, InconsistencyKind::destroys_protected);
  EXPECT_EQ(refusal.str().substr(0, 14), "Loop 0: CumSum");
}

// x' = x - v' with v' = 0.9 v + g, in one pass that writes both in place, in either order.
TEST_F(InplaceFunctions, OneStepOverwritesAllSharedVariablesThatItUpdates) {
  for (const bool swapped : {false, true}) {
    SharedVariable speed = shared(Tensor::from(V{1, 2}), {.name = "v", .borrow = true});
    SharedVariable place = shared(Tensor::from(V{10, 20}), {.name = "x", .borrow = true});
    const void* const at_v = speed.container().value().raw_data();
    const void* const at_x = place.container().value().raw_data();
    const Variable g = make_input({DType::float64, {2}, {}}, "g");
    const Variable next_v = speed.var() * 0.5 + g, next_x = place.var() - next_v;
    Updates updates{{speed, next_v}, {place, next_x}};
    if (swapped) std::swap(updates[0], updates[1]);
    const Function f = function({g}, {}, {.updates = updates});
    EXPECT_EQ(count(f, "FusedInPlace"), 1);
    EXPECT_EQ(f.plan(std::vector<Tensor>{Tensor::from(V{1, 1})}).peak_bytes, 0);
    f(Tensor::from(V{1, 1}));
    EXPECT_EQ(values(speed.get_value()), (V{1.5, 2}));
    EXPECT_EQ(values(place.get_value()), (V{8.5, 18}));
    EXPECT_EQ(speed.container().value().raw_data(), at_v);
    EXPECT_EQ(place.container().value().raw_data(), at_x);
  }
}

TEST_F(InplaceFunctions, ALoopOverwritesATemporaryAndNothingElse) {
  const Variable four = make_input({DType::float64, {4}, {}}, "four");
  const Tensor a = Tensor::from(V{1, 2, 3, 4});
  const Function temporary = function({four}, halved(ops::roll(four, 1, 0), 3));
  EXPECT_EQ(count(temporary, "LoopInPlace"), 1);
  EXPECT_EQ(values(temporary(a).tensor()), (V{2.25, 1.875, 2, 2.125}));
  const Function argument = function({four}, halved(four, 3));
  EXPECT_EQ(count(argument, "LoopInPlace"), 0);
  ASSERT_EQ(argument.inplace_report().size(), 1U);
  EXPECT_EQ(argument.inplace_report()[0].kind, InconsistencyKind::destroys_protected);
  const Variable t = ops::roll(four, 1, 0);
  const Function read_later = function({four}, {halved(t, 3), ops::roll(t, 1, 0)});
  EXPECT_EQ(values(read_later(a)[1]), (V{3, 4, 1, 2}));
  const auto late = [](const std::vector<Variable>&, const std::vector<Variable>& results) {
    return ops::lt(ops::max(results[0]), 3.5);
  };
  const Function stops = function({four}, halved(ops::roll(four, 1, 0), 8, late));
  EXPECT_EQ(values(stops(a).tensor()), (V{3, 1.5, 2, 2.5}));
}

// Results of a loop that are views of one another, or of an outside value, are separate arrays
// around it.
TEST_F(InplaceFunctions, EveryResultOfALoopCountsOneIncrement) {
  const Variable m = make_input({DType::float64, {2, 2}, {}}, "m");
  const Variable fixed = ops::roll(m, 1, 0);
  const ops::LoopResult r = ops::loop(
      [&](const std::vector<Variable>&) {
        return std::vector{fixed, fixed.T(), ops::flip(fixed, {0})};
      },
      {.n_steps = 1});
  std::vector<Out> outs;
  for (std::size_t k = 0; k < 3; ++k) {
    outs.emplace_back(ops::inc_subtensor(r.mapped(k)(0), {}, constant(1.0)));
  }
  outs.emplace_back(ops::inc_subtensor(fixed, {}, constant(1.0)));
  const Tensor value = Tensor::from(V{1, 2, 3, 4}, Extents{2, 2});
  for (const Mode& mode :
       {Mode(Mode::fast_run), Mode(Mode::no_rewrite), DebugMode({.patience = 1})}) {
    const Results results = function({m}, outs, {.mode = mode})(value);
    EXPECT_EQ(values(results[0]), (V{4, 5, 2, 3}));
    EXPECT_EQ(values(results[1]), (V{4, 2, 5, 3}));
    EXPECT_EQ(values(results[2]), (V{2, 3, 4, 5}));
    EXPECT_EQ(values(results[3]), (V{4, 5, 2, 3}));
  }
}

}  // namespace
}  // namespace palimpsest
