// SPDX-License-Identifier: Apache-2.0
// Arguments of calls, and the members of Function.
#include <gtest/gtest.h>

#include "compile/hook_op.hpp"
#include "palimpsest/compile/function.hpp"
#include "palimpsest/memory/allocator.hpp"
#include "palimpsest/ops/ops.hpp"
#include "support/expect_error.hpp"
#include "support/vectors.hpp"
#include "support/window.hpp"

namespace palimpsest {
namespace {

using testing::expect_error;

using testing::values;
using testing::vector_of;

struct CallTest : ::testing::Test {
  Variable x = make_input({DType::float64, {kUnknown}, {}}, "x");
  Variable y = make_input({DType::float64, {kUnknown}, {}}, "y");
  Function minus = function({x, y}, x - y, {.name = "minus"});
};

// -- arguments -----------------------------------------------------------------------------------

TEST_F(CallTest, TakesTensorsNumbersAndVectors) {
  const Variable n = make_input({DType::float64, {}, {}}, "n");
  const Function f = function({x, n}, ops::sum(x) * n);
  EXPECT_EQ(Tensor(f(std::vector<int>{1, 2}, 3)).item<double>(), 9.0);
  EXPECT_EQ(Tensor(f(vector_of({1, 2}), Tensor::scalar(2.0))).item<double>(), 6.0);
  EXPECT_EQ(Tensor(f(kw("n", 2.0), kw("x", std::vector<double>{1}))).item<double>(), 2.0);
}

TEST_F(CallTest, TooManyArgumentsAreATypeError) {
  const Tensor a = vector_of({1});
  expect_error<TypeError>([&] { minus(a, a, a); },
                          "[minus] too many arguments: got 3, expected at most 2");
  const std::vector<Tensor> three{a, a, a};
  std::vector<Tensor> result(1);
  expect_error<TypeError>([&] { minus.call(three, result); }, "too many arguments: got 3");
}

TEST_F(CallTest, UnknownKeywordListsTheNamesAndCountsTheRest) {
  const Variable nameless = make_input({DType::float64, {kUnknown}, {}});
  const Function f = function({x, nameless, y}, x + nameless + y);
  expect_error<TypeError>([&] { f(kw("z", vector_of({1}))); },
                          "unknown keyword: got 'z', expected one of 'x', 'y' (and 1 without a "
                          "name)");
  expect_error<TypeError>([&] { f(kw(make_input({}, "w"), vector_of({1}))); },
                          "unknown keyword: got w");
}

TEST_F(CallTest, NameThatTwoInputsShareIsATypeError) {
  const Variable other = make_input({DType::float64, {kUnknown}, {}}, "x");
  const Function f = function({x, other}, x - other);
  const Tensor a = vector_of({1});
  expect_error<TypeError>([&] { f(kw("x", a), kw("x", a)); }, "keyword 'x' names two inputs");
  EXPECT_EQ(Tensor(f(kw(other, a), kw(x, vector_of({5})))).item<double>(), 4.0);
}

TEST_F(CallTest, MissingArgumentsAreNamed) {
  expect_error<TypeError>([&] { minus(); },
                          "[minus] got 0 arguments, expected 2: missing 0 'x', "
                          "1 'y'");
  expect_error<TypeError>([&] { minus(kw("y", vector_of({1}))); },
                          "got 1 arguments, expected 2: missing 0 'x'");
}

TEST_F(CallTest, ArgumentGivenTwiceIsATypeError) {
  const Tensor a = vector_of({1});
  expect_error<TypeError>([&] { minus(a, kw("x", a)); }, "[minus] 'x' is given twice");
  expect_error<TypeError>([&] { minus(kw("y", a), kw(y, a)); }, "y is given twice");
}

TEST_F(CallTest, PositionalArgumentsComeFirst) {
  const Tensor a = vector_of({1});
  expect_error<TypeError>([&] { minus(kw("x", a), a); }, "come before keywords");
}

TEST_F(CallTest, VariableAsArgumentIsATypeError) {
  const SharedVariable s = shared(vector_of({1}), {.name = "s"});
  expect_error<TypeError>([&] { minus(x, vector_of({1})); }, "Try to evaluate it first");
  expect_error<TypeError>([&] { minus(vector_of({1}), s); }, "got the Variable s");
}

TEST_F(CallTest, FilterErrorsNameTheArgument) {
  expect_error<ShapeError>(
      [&] {
        minus(vector_of({1}), Tensor::ones({2, 2}));
      },
      "[minus argument 1 'y'] shape: got (2, 2), expected float64 (?,)");
  expect_error<TypeError>([&] { minus(Tensor(), vector_of({1})); }, "undefined tensor");
}

TEST_F(CallTest, RejectedCallHasChangedNothing) {
  SharedVariable s = shared(vector_of({1, 2}));
  const Function f =
      function({In(x, {.is_mutable = true}), y}, x + y, {.updates = {{s, s.var() + x}}});
  Tensor a = vector_of({1, 2});
  const auto version = s.version();
  EXPECT_THROW(f(a, Tensor::ones({2, 2})), ShapeError);
  EXPECT_THROW(f(a), TypeError);
  EXPECT_THROW(f(a, vector_of({1, 2, 3})), ShapeError);  // found by the plan
  EXPECT_EQ(values(a), (std::vector<double>{1, 2}));
  EXPECT_EQ(values(s.get_value()), (std::vector<double>{1, 2}));
  EXPECT_EQ(s.version(), version);
}

TEST_F(CallTest, ValuesOfAnEarlierCallAreNeverReused) {
  minus(vector_of({1}), vector_of({2}));
  EXPECT_THROW(minus(vector_of({1})), TypeError);
}

TEST_F(CallTest, UndefinedFunctionIsAValueError) {
  expect_error<ValueError>([] { Function()(); }, "undefined");
  expect_error<ValueError>([] { Function().copy(); }, "undefined");
}

// -- call_into -----------------------------------------------------------------------------------

TEST_F(CallTest, ResultsAreWrittenIntoTensorsThatMayOverlapArguments) {
  const Function f = function({x, y}, {x + y, x * y});
  Tensor a = vector_of({1, 2}), b = vector_of({3, 4});
  testing::Window out({2});
  std::vector<Tensor> outs{a, out};
  f.call_into(outs, a, b);
  EXPECT_EQ(values(a), (std::vector<double>{4, 6}));
  EXPECT_EQ(values(out), (std::vector<double>{3, 8}));
}

TEST_F(CallTest, CallIntoAllocatesNothingWhereNothingOverlaps) {
  const Tensor a = vector_of({5, 6}), b = vector_of({1, 2});
  testing::Window out({2});
  minus.call_into(out, a, b);
  const MemoryScope scope;
  minus.call_into(out, a, kw("y", b));
  EXPECT_EQ(scope.calls(), 0u);
  EXPECT_EQ(values(out), (std::vector<double>{4, 4}));
}

TEST_F(CallTest, CallIntoWritesBorrowedResultsStraightIntoDestinations) {
  const Variable sum = x + y;
  const Function f =
      function({x, y}, {Out(sum * 2.0, {.borrow = true}), Out(x - y, {.borrow = true})});
  const Tensor a = vector_of({5, 6}), b = vector_of({1, 2});
  const Tensor lent = f(a, b)[0];
  testing::Window first({2}), second({2}, DType::float64, WindowLayout::shifted);
  std::vector<Tensor> outs{first, second};
  const CopyStats stats;
  const MemoryScope scope;
  f.call_into(outs, a, b);
  EXPECT_EQ(scope.calls(), 0u);
  EXPECT_EQ(stats.counts().eager_copies, 0u);
  EXPECT_EQ(values(outs[0]), (std::vector<double>{12, 16}));
  EXPECT_EQ(values(outs[1]), (std::vector<double>{4, 4}));
  // Strided, overlapping and doubly shown ones are copied.
  Tensor whole = Tensor::zeros({2, 2}), both = vector_of({5, 6});
  std::vector<Tensor> others{whole(all, 0), both};
  f.call_into(others, both, b);
  EXPECT_EQ(values(whole), (std::vector<double>{12, 0, 16, 0}));
  EXPECT_EQ(values(both), (std::vector<double>{4, 4}));
  const Function twice = function(
      {x, y},
      {Out(sum, {.borrow = true}), Out(ops::index(sum, {slice({}, {}, -1)}), {.borrow = true})});
  twice.call_into(outs, a, b);
  EXPECT_EQ(values(outs[0]), (std::vector<double>{6, 8}));
  EXPECT_EQ(values(outs[1]), (std::vector<double>{8, 6}));
  EXPECT_EQ(values(f(a, b)[0]), (std::vector<double>{12, 16}));
}

TEST_F(CallTest, CallIntoTakesAnyStridesViewsAndSharedData) {
  const Function f = function({x}, {x, ops::index(x, {slice({}, {}, -1)}), x * 2.0});
  const Tensor a = vector_of({1, 2, 3});
  Tensor whole = Tensor::zeros({3, 3});
  const Tensor kept = whole.lazy_clone();
  std::vector<Tensor> outs{whole(all, 0), whole(all, 1), whole(all, 2)};
  f.call_into(outs, a);
  EXPECT_EQ(values(whole), (std::vector<double>{1, 3, 2, 2, 2, 4, 3, 1, 6}));
  EXPECT_EQ(values(kept), std::vector<double>(9, 0.0));
  Tensor same = vector_of({1, 2, 3});
  function({x}, ops::index(x, {slice({}, {}, -1)})).call_into(same, same);
  EXPECT_EQ(values(same), (std::vector<double>{3, 2, 1}));
}

TEST_F(CallTest, WrongDestinationsAreRefusedBeforeAnythingRuns) {
  const Tensor a = vector_of({1, 2});
  const auto refuses = [&](Tensor out, const std::string& text, auto error) {
    using E = typename decltype(error)::type;
    expect_error<E>([&] { minus.call_into(out, a, a); }, text);
  };
  refuses(Tensor::zeros({3}), "destination 0: got shape (3,), expected (2,)",
          TypeTag<ShapeError>());
  refuses(Tensor::zeros({2}, DType::float32), "got float32", TypeTag<DTypeError>());
  refuses(Tensor::zeros({1}).expand({2}), "overlap one another", TypeTag<AliasError>());
  refuses(Tensor::zeros({2}, DType::float64, Device::parse("cpu:1")), "got cpu:1",
          TypeTag<DeviceError>());
  refuses(Tensor(), "undefined", TypeTag<TypeError>());
  std::vector<Tensor> two(2);
  expect_error<TypeError>([&] { minus.call_into(two, a, a); }, "got 2 destinations, expected 1");
}

// -- frames --------------------------------------------------------------------------------------

// allow_gc(true), call: no frame left; false, call: one frame held; true, call: none.
TEST_F(CallTest, FramesAreKeptOrReleased) {
  const Tensor a = vector_of({1});
  minus.allow_gc(true);
  minus(a, a);
  EXPECT_EQ(minus.idle_frame_count(), 0u);
  minus.allow_gc(false);
  minus(a, a);
  EXPECT_EQ(minus.idle_frame_count(), 1u);
  minus.allow_gc(true);
  EXPECT_EQ(minus.idle_frame_count(), 0u);
  minus(a, a);
  EXPECT_EQ(minus.idle_frame_count(), 0u);
}

TEST_F(CallTest, FreeReleasesTheMemoryOfIdleFrames) {
  const Function f = function({x}, {Out(ops::roll(x, 1, 0), {.borrow = true})});
  const MemoryScope scope;
  f(Tensor::ones({1000}));
  EXPECT_GE(scope.live_bytes(), 8000);
  f.free();
  EXPECT_EQ(scope.live_bytes(), 0);
}

// -- introspection -------------------------------------------------------------------------------

TEST_F(CallTest, FunctionTellsWhatItIs) {
  SharedVariable s = shared(vector_of({1}), {.name = "s"});
  const Function f = function({x, In(y, {.value = s.container()})}, x + y, {.name = "f"});
  EXPECT_EQ(f.name(), "f");
  EXPECT_EQ(function({x}, x).name(), "");
  EXPECT_EQ(f.mode(), Mode::fast_run);
  EXPECT_TRUE(f.is_single());
  EXPECT_EQ(f.output_count(), 1u);
  EXPECT_EQ(f.inputs(), (std::vector<Variable>{x, y}));
  ASSERT_EQ(f.shared_variables().size(), 1u);
  EXPECT_EQ(f.shared_variables()[0], s.container_ptr());
  EXPECT_EQ(f.graph().node_count(), 1u);
}

// -- a call inside of a call ---------------------------------------------------------------------

TEST_F(CallTest, CallFromWithinAStepOfTheSameFunctionGetsAFrameOfItsOwn) {
  Function f;
  int depth = 0;
  const Variable v = testing::hooked(x * 2.0, [&] {
    if (++depth > 1) return;
    EXPECT_EQ(Tensor(f(vector_of({7}))).item<double>(), 15.0);
  });
  f = function({x}, v + 1.0);
  EXPECT_EQ(Tensor(f(vector_of({1}))).item<double>(), 3.0);
  EXPECT_EQ(depth, 2);
}

TEST_F(CallTest, StepThatReachesAContainerOfItsCallIsAStateError) {
  SharedVariable s = shared(vector_of({1}), {.name = "s"});
  std::function<void()> action;
  const Function f =
      function({x}, testing::hooked(x, [&] { action(); }), {.updates = {{s, s.var() + 1.0}}});
  action = [&] { s.get_value(); };
  expect_error<StateError>([&] { f(vector_of({1})); }, "'s' is held by this thread already");
  action = [&] { f(vector_of({1})); };
  EXPECT_THROW(f(vector_of({1})), StateError);
  action = [] {};
  f(vector_of({1}));
  EXPECT_EQ(values(s.get_value()), (std::vector<double>{2}));
}

TEST_F(CallTest, CallThatOnlyReadsKeepsItsValueWhileOthersSetTheVariable) {
  SharedVariable s = shared(vector_of({1}));
  const Function f =
      function({x}, {testing::hooked(x, [&] { s.set_value(vector_of({100})); }) + s.var()});
  EXPECT_EQ(values(f(vector_of({0}))[0]), (std::vector<double>{1}));
  EXPECT_EQ(values(f(vector_of({0}))[0]), (std::vector<double>{100}));
}

}  // namespace
}  // namespace palimpsest
