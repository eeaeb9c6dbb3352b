// SPDX-License-Identifier: Apache-2.0
// Options of function().
#include <gtest/gtest.h>

#include "compile/hook_op.hpp"
#include "palimpsest/compile/function.hpp"
#include "palimpsest/ops/ops.hpp"
#include "support/expect_error.hpp"
#include "support/vectors.hpp"

namespace palimpsest {
namespace {

using testing::expect_error;

using testing::vector_of;
double number(const Tensor& t) { return t.item<double>(); }

struct OptionsTest : ::testing::Test {
  Variable x = make_input({DType::float64, {kUnknown}, {}}, "x");
  Variable y = make_input({DType::float64, {kUnknown}, {}}, "y");
  SharedVariable s = shared(vector_of({1}), {.name = "s"});
  SharedVariable t = shared(vector_of({10}), {.name = "t"});
};

// -- inputs --------------------------------------------------------------------------------------

TEST_F(OptionsTest, InputTwiceIsAnUnusedInputError) {
  expect_error<UnusedInputError>([&] { function({x, x}, x); }, "x is used twice in inputs");
}

TEST_F(OptionsTest, ConstantOrSharedInputIsATypeErrorThatPointsToGivens) {
  const Variable c = constant(vector_of({1}), "c");
  expect_error<TypeError>([&] { function({c}, c); }, "input c is a constant. Try givens");
  expect_error<TypeError>([&] { function({s}, s); },
                          "input s is a shared variable. Try givens, or In(");
}

TEST_F(OptionsTest, InputThatIsNoRootCutsTheGraph) {
  const Variable b = x * 2.0, c = b + 1.0;
  EXPECT_EQ(number(function({b}, c)(vector_of({5}))), 6.0);
  EXPECT_EQ(number(function({x}, c)(vector_of({5}))), 11.0);
}

TEST_F(OptionsTest, UndefinedVariablesAreValueErrors) {
  expect_error<ValueError>([&] { function({Variable()}, x); }, "input 0 is undefined");
  expect_error<ValueError>([&] { function({x}, {Variable()}); }, "output 0 is undefined");
  expect_error<ValueError>([&] { function({x}, x, {.updates = {{Variable(), x}}}); }, "undefined");
  expect_error<ValueError>([&] { function({x}, x, {.givens = {{Variable(), x}}}); }, "undefined");
  expect_error<ValueError>([&] { function({}, {}, {.updates = {{s, Value()}}}); }, "undefined");
  expect_error<ValueError>([&] { function({x}, x, {.givens = {{y, Value()}}}); }, "by nothing");
}

// -- outputs -------------------------------------------------------------------------------------

TEST_F(OptionsTest, ConstantAndAnInputAreOutputs) {
  const auto r = function({x}, {x, constant(vector_of({3}))})(vector_of({2}));
  EXPECT_EQ(number(r[0]), 2.0);
  EXPECT_EQ(number(r[1]), 3.0);
}

TEST_F(OptionsTest, MissingInputNamesAPathToAnOutput) {
  expect_error<MissingInputError>(
      [&] {
        function({x}, {x, (x + y) * 2.0});
      },
      "y is needed but is neither an input, a constant nor a shared "
      "variable: y -> Add -> Mul -> output 1");
}

TEST_F(OptionsTest, OneOutputInNoListGivesATensorAndAListAVector) {
  const Tensor one = function({x}, x * 2.0)(vector_of({2}));
  EXPECT_EQ(number(one), 4.0);
  const std::vector<Tensor> list = function({x}, {x * 2.0})(vector_of({2}));
  EXPECT_EQ(list.size(), 1u);
  EXPECT_EQ(number(function({x}, {x * 2.0})(vector_of({2}))), 4.0);
  EXPECT_TRUE(function({}, {})().empty());
}

// -- updates -------------------------------------------------------------------------------------

TEST_F(OptionsTest, UpdateOfWhatIsNotSharedIsATypeError) {
  expect_error<TypeError>(
      [&] {
        function({x}, x, {.updates = {{x, x}}});
      },
      "updates: got x, expected a shared variable");
}

TEST_F(OptionsTest, UpdateOfOneContainerTwiceIsAValueError) {
  const SharedVariable alias = s.clone();
  expect_error<ValueError>(
      [&] {
        function({}, {}, {.updates = {{s, s.var() + 1.0}, {alias, s.var() * 2.0}}});
      },
      "several updates of 's'");
}

TEST_F(OptionsTest, UpdateOfAnotherTypeIsATypeError) {
  const auto refused = [&](const Variable& value) {
    expect_error<TypeError>([&] { function({}, {}, {.updates = {{s, value}}}); }, "update of 's'");
  };
  refused(ops::sum(s.var()));                           // rank
  refused(ops::astype(s.var(), DType::float32));        // dtype
  refused(make_input({DType::float64, {2}, {}}, "v"));  // extent
  const SharedVariable open = shared(vector_of({1}), {.name = "s", .shape = std::nullopt});
  const Variable one = make_input({DType::float64, {1}, {}}, "v");  // a 1 where it is open
  expect_error<TypeError>(
      [&] {
        function({one}, {}, {.updates = {{open, one}}});
      },
      "update of 's'");
}

TEST_F(OptionsTest, NumbersAndTensorsAsUpdatesBecomeConstants) {
  SharedVariable m = shared(7), n = shared(vector_of({1, 2}));
  function({}, {}, {.updates = {{m, 3}, {n, vector_of({5, 6})}}})();
  EXPECT_EQ(m.get_value().item<std::int64_t>(), 3);
  EXPECT_EQ(n.get_value().to_vector<double>(), (std::vector<double>{5, 6}));
}

// With m, n: updates {s: 3} assign 3; {s: s + 1} increments; {s: s + t} adds the other value.
TEST_F(OptionsTest, UpdatesAssignIncrementAndAdd) {
  const Variable m = make_input({DType::float64, {}, {}}, "m"),
                 n = make_input({DType::float64, {}, {}}, "n");
  SharedVariable a = shared(0.0), b = shared(10.0);
  const auto call = [&](Value update) {
    const Function f = function({m, n}, m + n, {.updates = {{a, update}}});
    EXPECT_EQ(number(f(1.0, 2.0)), 3.0);
    return number(a.get_value());
  };
  EXPECT_EQ(call(3), 3.0);
  EXPECT_EQ(call(a.var() + 1.0), 4.0);
  EXPECT_EQ(call(a.var() + b.var()), 14.0);
}

// -- givens --------------------------------------------------------------------------------------

TEST_F(OptionsTest, GivensReplaceByVariablesSharedVariablesAndValues) {
  const Variable z = x * s.var() + y;
  EXPECT_EQ(number(function({x}, z, {.givens = {{y, x + 1.0}}})(vector_of({5}))), 11.0);
  EXPECT_EQ(number(function({x}, z, {.givens = {{y, t}}})(vector_of({5}))), 15.0);
  EXPECT_EQ(number(function({x}, z, {.givens = {{y, vector_of({2})}}})(vector_of({5}))), 7.0);
  EXPECT_EQ(number(function({x}, z, {.givens = {{y, std::vector<int>{2}}}})(vector_of({5}))), 7.0);
}

TEST_F(OptionsTest, GivensLeaveTheValueOfASharedVariableAlone) {
  SharedVariable a = shared(1.0);
  EXPECT_EQ(number(function({}, a.var() * 2.0, {.givens = {{a, 6}}})()), 12.0);
  EXPECT_EQ(number(a.get_value()), 1.0);
}

TEST_F(OptionsTest, GivensApplyToUpdatesAndToTheMiddleOfAGraph) {
  const Variable middle = x * 2.0, end = middle + 1.0;
  const Function f = function({x}, end, {.updates = {{s, end}}, .givens = {{middle, x}}});
  EXPECT_EQ(number(f(vector_of({5}))), 6.0);
  EXPECT_EQ(number(s.get_value()), 6.0);
}

TEST_F(OptionsTest, GivensMayUseWhatTheyReplaceAndFollowChains) {
  EXPECT_EQ(number(function({}, s.var() * 2.0, {.givens = {{s, s.var() + 1.0}}})()), 4.0);
  const Function chained = function({x}, y, {.givens = {{y, t.var() + x}, {t, s.var() * 100.0}}});
  EXPECT_EQ(number(chained(vector_of({5}))), 105.0);
}

TEST_F(OptionsTest, GivensThatFormACycleAreAValueError) {
  const Variable z = make_input({DType::float64, {kUnknown}, {}}, "z");
  expect_error<ValueError>(
      [&] {
        function({x}, x + y + z, {.givens = {{y, z + 1.0}, {z, y * 2.0}}});
      },
      "givens form a cycle: each of y, z");
}

TEST_F(OptionsTest, GivenForAnExplicitInputOrTwiceIsAValueError) {
  expect_error<ValueError>(
      [&] {
        function({x}, x, {.givens = {{x, y}}});
      },
      "x is an explicit input");
  expect_error<ValueError>(
      [&] {
        function({x}, x + y, {.givens = {{y, x}, {y, x}}});
      },
      "y is replaced twice");
}

TEST_F(OptionsTest, GivensMustHaveTheTypeUnlessTheGraphIsRebuilt) {
  const Variable matrix = make_input({DType::float32, {kUnknown, kUnknown}, {}}, "m");
  const Variable z = ops::exp(y) + y;
  expect_error<TypeError>(
      [&] {
        function({matrix}, z, {.givens = {{y, matrix}}});
      },
      "got float32 (?, ?), expected float64 (?,)");
  const Function f = function({matrix}, z, {.givens = {{y, matrix}}, .rebuild_strict = false});
  const Tensor r = f(Tensor::zeros({2, 3}, DType::float32));
  EXPECT_EQ(r.shape(), (Extents{2, 3}));
  EXPECT_EQ(r.dtype(), DType::float32);
  EXPECT_EQ(r.at<float>({1, 1}), 1.0f);
}

TEST_F(OptionsTest, EmptyGivensAndUpdatesAreNoOptions) {
  EXPECT_EQ(number(function({x}, x + 1.0, {.updates = {}, .givens = {}})(vector_of({1}))), 2.0);
}

// -- default updates -----------------------------------------------------------------------------

TEST_F(OptionsTest, DefaultUpdateHappensInEveryFunctionThatNeedsTheVariable) {
  s.set_default_update(s.var() + 1.0);
  const Function f = function({}, s.var() * 1.0);
  EXPECT_EQ(number(f()), 1.0);
  EXPECT_EQ(number(f()), 2.0);
  function({}, t.var() * 1.0)();
  EXPECT_EQ(number(s.get_value()), 3.0);
}

TEST_F(OptionsTest, DefaultUpdatesBringInThoseOfWhatTheyNeed) {
  s.set_default_update(s.var() + t.var());
  t.set_default_update(t.var() * 2.0);
  const Function f = function({}, s.var() * 1.0);
  f();  // all from old values
  EXPECT_EQ(number(s.get_value()), 11.0);
  EXPECT_EQ(number(t.get_value()), 20.0);
  f();
  EXPECT_EQ(number(s.get_value()), 31.0);
  EXPECT_EQ(number(t.get_value()), 40.0);
}

TEST_F(OptionsTest, ExplicitUpdateOverridesTheDefaultOne) {
  s.set_default_update(s.var() + 1.0);
  function({}, s.var() * 1.0, {.updates = {{s, s.var() - 1.0}}})();
  EXPECT_EQ(number(s.get_value()), 0.0);
  function({}, {}, {.updates = {{s, s.var() + 5.0}}, .no_default_updates = true})();
  EXPECT_EQ(number(s.get_value()), 5.0);
}

TEST_F(OptionsTest, NoDefaultUpdatesExcludesAllOrAList) {
  s.set_default_update(s.var() + 1.0);
  t.set_default_update(t.var() + 1.0);
  function({}, s.var() + t.var(), {.no_default_updates = true})();
  EXPECT_EQ(number(s.get_value()), 1.0);
  function({}, s.var() + t.var(), {.no_default_updates = {s.var()}})();
  EXPECT_EQ(number(s.get_value()), 1.0);
  EXPECT_EQ(number(t.get_value()), 11.0);
}

TEST_F(OptionsTest, DefaultUpdateOfACutPartDoesNotHappen) {
  s.set_default_update(s.var() + 1.0);
  const Variable b = s.var() * 2.0;
  EXPECT_EQ(number(function({b}, b)(vector_of({5}))), 5.0);
  EXPECT_EQ(number(s.get_value()), 1.0);
}

TEST_F(OptionsTest, DefaultUpdateCountsAsItWasWhenTheFunctionWasCompiled) {
  s.set_default_update(s.var() + 1.0);
  const Function f = function({}, s.var() * 1.0);
  s.set_default_update(Variable());
  f();
  EXPECT_EQ(number(s.get_value()), 2.0);
  function({}, s.var() * 1.0)();
  EXPECT_EQ(number(s.get_value()), 2.0);
}

TEST_F(OptionsTest, DefaultUpdateThatNeedsAnInputMustFindIt) {
  s.set_default_update(s.var() + x);
  expect_error<MissingInputError>([&] { function({}, s.var() * 1.0); }, "x is needed");
  const Function f = function({x}, s.var() * 1.0);
  f(vector_of({4}));
  EXPECT_EQ(number(s.get_value()), 5.0);
}

// -- on_unused_input -----------------------------------------------------------------------------

TEST_F(OptionsTest, UnusedInputIsRaisedWarnedOfOrIgnored) {
  expect_error<UnusedInputError>([&] { function({x, y}, x); }, "input y is not needed");
  EXPECT_NO_THROW(function({x, y}, x, {.on_unused_input = Reaction::ignore}));
  EXPECT_NO_THROW(function({x, y}, x, {.on_unused_input = Reaction::warn}));
  const ConfigScope scope({.on_unused_input = Reaction::ignore});
  EXPECT_NO_THROW(function({x, y}, x));
}

TEST_F(OptionsTest, MissingInputIsReportedBeforeAnUnusedOne) {
  EXPECT_THROW(function({y}, x), MissingInputError);
}

TEST_F(OptionsTest, InputThatOnlyAnUpdateOrAGivenNeedsIsUsed) {
  EXPECT_NO_THROW(function({x}, {}, {.updates = {{s, x}}}));
  EXPECT_NO_THROW(function({x}, t, {.givens = {{t, x + 1.0}}}));
  EXPECT_NO_THROW(function({x}, s, {.givens = {{t, x + 1.0}}}));
}

// -- accept_inplace ------------------------------------------------------------------------------

struct InplaceTest : OptionsTest {
  // x += y, written by the user.
  Variable add_in_place() {
    const Variable sum = x + y;
    const OpPtr op = sum.owner().op().inplace_on_inputs(sum.owner(), {0});
    return op->make_node(sum.owner().inputs()).output(0);
  }
};

TEST_F(InplaceTest, OpThatOverwritesIsRefusedUnlessAccepted) {
  expect_error<TypeError>(
      [&] {
        function({x, y}, add_in_place());
      },
      "AddInPlace overwrites an input. Try accept_inplace = true, or its pure "
      "twin Add");
}

TEST_F(InplaceTest, AcceptedOpOverwritesLentInputsOnly) {
  EXPECT_THROW(function({x, y}, add_in_place(), {.accept_inplace = true}), InconsistencyError);
  const Function f =
      function({In(x, {.is_mutable = true}), y}, add_in_place(), {.accept_inplace = true});
  Tensor a = vector_of({1});
  const void* address = a.raw_data();
  EXPECT_EQ(f(a, vector_of({2})).tensor().raw_data(), address);
}

// -- trust_input, mode, name, budget -------------------------------------------------------------

TEST_F(OptionsTest, TrustedArgumentsAreNotConverted) {
  const Function f = function({x}, x * 2.0, {.name = "f", .trust_input = true});
  EXPECT_EQ(number(f(vector_of({2}))), 4.0);
  expect_error<DTypeError>([&] { f(Tensor::ones({1}, DType::int32)); }, "[f argument 0 'x']");
  expect_error<ShapeError>([&] { f(3.0); }, "got ()");
}

TEST_F(OptionsTest, ModeComesFromTheOptionsElseFromTheConfig) {
  const Variable v = x * 2.0 + 1.0;
  EXPECT_EQ(function({x}, v).mode(), Mode::fast_run);
  EXPECT_EQ(function({x}, v).graph().node_count(), 1u);  // fused
  const Function compiled = function({x}, v, {.mode = Mode::fast_compile});
  EXPECT_EQ(compiled.graph().node_count(), 2u);
  for (const Apply& node : compiled.graph().toposort()) {
    EXPECT_TRUE(overwritten_inputs(node).empty());
  }
  const ConfigScope scope({.mode = "NoRewrite"});
  EXPECT_EQ(function({x}, v).mode(), Mode::no_rewrite);
  const ConfigScope wrong({.mode = "Fastest"});
  expect_error<ValueError>([&] { function({x}, v); }, "[config mode] got 'Fastest'");
}

TEST_F(OptionsTest, RewritesAreIncludedAndExcludedByTag) {
  const Variable v = x * 2.0 + 1.0;
  {
    const ConfigScope scope({.rewrites_excluding = std::vector<std::string>{"fusion"}});
    EXPECT_GT(function({x}, v).graph().node_count(), 1u);
  }
  const ConfigScope scope({.rewrites_including = std::vector<std::string>{"fusion"}});
  EXPECT_EQ(function({x}, v, {.mode = Mode::fast_compile}).graph().node_count(), 1u);
}

// An op whose in-place variant throws.
class Broken final : public Op {
 public:
  std::string name() const override { return "Broken"; }
  Apply make_node(std::span<const Variable> inputs) const override {
    return node(inputs, {inputs[0].type()});
  }
  std::vector<Extents> infer_shapes(const Apply&, std::span<const Extents> inputs) const override {
    return {inputs[0]};
  }
  OpPtr inplace_on_inputs(const Apply&, const std::set<int>&) const override {
    throw NotSupported("[Broken] no variant");
  }
  void run(RunContext& context) const override {
    strided_copy(context.input(0), context.output(0));
  }
};

TEST_F(OptionsTest, RewriteThatThrowsIsLeftOutOrRaised) {
  const Variable inputs[] = {x * 2.0};
  const Variable v = std::make_shared<const Broken>()->make_node(inputs).output(0);
  {
    const ConfigScope scope({.on_opt_error = Reaction::ignore});
    EXPECT_EQ(number(function({x}, v)(vector_of({3}))), 6.0);
  }
  const ConfigScope scope({.on_opt_error = Reaction::raise});
  expect_error<NotSupported>([&] { function({x}, v); }, "[Broken] no variant");
}

TEST_F(OptionsTest, BudgetIsCheckedBeforeAnythingRuns) {
  const Variable v = ops::roll(x * 2.0, 1, 0);
  int runs = 0;
  const Function f = function({x}, testing::hooked(v, [&] { ++runs; }), {.budget_bytes = 30000});
  EXPECT_NO_THROW(f(Tensor::ones({1000})));
  EXPECT_EQ(runs, 1);
  expect_error<BudgetError>([&] { f(Tensor::ones({2000})); },
                            "exceeds the budget: got a peak of 48000 bytes, the smallest found, "
                            "expected at most 30000. The largest buffers: ");
  expect_error<BudgetError>([&] { f(Tensor::ones({2000})); }, "Hook (16000)");
  EXPECT_EQ(runs, 1);
  const ConfigScope scope({.budget = std::optional<index_t>(100)});
  EXPECT_THROW(function({x}, v)(Tensor::ones({100})), BudgetError);
  EXPECT_NO_THROW(f(Tensor::ones({1000})));
}

TEST_F(OptionsTest, SameExpressionAsOutputAndUpdateIsComputedOnce) {
  int runs = 0;
  const Variable e = testing::hooked(x + s.var(), [&] { ++runs; });
  function({x}, e, {.updates = {{s, e}}})(vector_of({1}));
  EXPECT_EQ(runs, 1);
}

TEST_F(OptionsTest, OneContainerMayBeReachedThroughInputsAndGraph) {
  const Function f =
      function({In(y, {.value = s.container()})}, {y + s.var()}, {.updates = {{s, y * 3.0}}});
  EXPECT_EQ(number(f()[0]), 2.0);
  EXPECT_EQ(number(s.get_value()), 3.0);
}

TEST_F(OptionsTest, GraphsOfUsersStayAsTheyAre) {
  const Variable v = x * 2.0 + 1.0;
  const Apply owner = v.owner();
  const std::string before = FunctionGraph({x}, {v}).str();
  function({x}, v, {.givens = {{x * 1.0, x}}});
  EXPECT_EQ(FunctionGraph({x}, {v}).str(), before);
  EXPECT_EQ(v.owner(), owner);
}

TEST_F(OptionsTest, FunctionKeepsTheConfigItWasCompiledWith) {
  const Function f = [&] {
    const ConfigScope scope({.allow_gc = true});
    return function({x}, x * 2.0);
  }();
  f(vector_of({1}));
  EXPECT_EQ(f.idle_frame_count(), 0u);
}

}  // namespace
}  // namespace palimpsest
