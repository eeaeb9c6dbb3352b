// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/inspect/debug/nan_guard.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "palimpsest/compile/function.hpp"
#include "palimpsest/inspect/print.hpp"
#include "palimpsest/ops/ops.hpp"
#include "support/expect_error.hpp"

namespace palimpsest {
namespace {

using testing::expect_error;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

struct NanGuardTest : ::testing::Test {
  Variable x = make_input({DType::float64, {kUnknown}, {}}, "x");
  Tensor good = Tensor::from(std::vector<double>{1.0, 2.0, 3.0});

  static Tensor bad(double value) { return Tensor::from(std::vector<double>{1.0, value, value}); }
  static Variable exempt_of(const Variable& v) {
    v.tags().nan_guard = false;
    return v;
  }
  static NanGuardReport report_of(const Function& f, const Tensor& argument) {
    try {
      f(argument);
    } catch (const NanGuardError& error) {
      return error.report();
    }
    ADD_FAILURE() << "no NanGuardError";
    return {};
  }
};

TEST_F(NanGuardTest, LetsGoodNumbersPass) {
  const Function f = function({x}, ops::log(x) * x + 1.0, {.mode = NanGuardMode()});
  const Function plain = function({x}, ops::log(x) * x + 1.0);
  EXPECT_TRUE(equal(f(good).tensor(), plain(good).tensor()));
}

TEST_F(NanGuardTest, NamesAnArgument) {
  const Function f = function({x}, x + 1.0, {.mode = NanGuardMode()});
  expect_error<NanGuardError>([&] { f(bad(kNan)); },
                              "[NanGuardMode] NaN in argument 0 'x': got nan at (1,), 2 of 3");
  expect_error<NanGuardError>([&] { f(bad(-kInf)); }, "infinity in argument 0 'x': got -inf");
  expect_error<NanGuardError>([&] { f(bad(2e10)); },
                              "a big value in argument 0 'x': got 20000000000");
  expect_error<NanGuardError>([&] { f(bad(2e10)); }, "expected numbers up to 1e+10");
  const NanGuardReport report = report_of(f, bad(kNan));
  EXPECT_EQ(report.kind, "NaN");
  EXPECT_EQ(report.step, -1);
  EXPECT_EQ(report.index, (Extents{1}));
  EXPECT_EQ(report.bad_elements, 2);
  EXPECT_EQ(report.elements, 3);
}

TEST_F(NanGuardTest, IsAnAssertionError) {
  const Function f = function({x}, x + 1.0, {.mode = NanGuardMode()});
  EXPECT_THROW(f(bad(kNan)), AssertionError);
}

TEST_F(NanGuardTest, NamesSharedVariablesAndConstants) {
  const SharedVariable s = shared(bad(kNan), {.name = "s"});
  expect_error<NanGuardError>([&] { function({}, s.var() + 1.0, {.mode = NanGuardMode()})(); },
                              "in shared variable 's'");
  const Variable c = constant(bad(kInf), "c");
  expect_error<NanGuardError>([&] { function({x}, x + c, {.mode = NanGuardMode()})(good); },
                              "infinity in constant 'c'");
}

TEST_F(NanGuardTest, NamesTheStepAndWhatItsInputsHad) {
  const Variable y = ops::log(x - 2.0).named("y");
  const Function f =
      function({x}, ops::roll(y, 1, 0), {.mode = NanGuardMode({.base = Mode::fast_compile})});
  const NanGuardReport report = report_of(f, good);
  EXPECT_EQ(report.kind, "NaN");
  EXPECT_EQ(report.variable.name(), "y");
  EXPECT_EQ(report.node.op().name(), "Log");
  EXPECT_EQ(report.step, 1);
  EXPECT_EQ(report.index, (Extents{0}));
  EXPECT_TRUE(report.affected_inputs.empty());
  EXPECT_EQ(report.inner_op, "") << "a step of one operation is none of several";
  EXPECT_NE(report.text.find("[NanGuardMode] NaN in the result 'y' of Log (step 1): got "),
            std::string::npos)
      << report.text;
  EXPECT_NE(report.text.find("Inputs affected before the step: none"), std::string::npos);
}

TEST_F(NanGuardTest, ContainersStayWhenAStepFails) {
  SharedVariable s = shared(good.clone(), {.name = "s"});
  const Function f =
      function({}, {}, {.updates = {{s, ops::log(s.var() - 2.0)}}, .mode = NanGuardMode()});
  EXPECT_THROW(f(), NanGuardError);
  EXPECT_TRUE(equal(s.get_value(), good));
}

TEST_F(NanGuardTest, NamesTheOperationInsideOfAFusedStep) {
  const Variable y = ops::exp(ops::sqrt(x - 2.0) * 3.0);
  for (const bool in_place : {false, true}) {
    const Function f = in_place ? function({In(x, {.is_mutable = true, .borrow = true})}, y,
                                           {.mode = NanGuardMode()})
                                : function({x}, y, {.mode = NanGuardMode()});
    ASSERT_EQ(f.graph().node_count(), 1U);
    const NanGuardReport report = report_of(f, good.clone());
    EXPECT_EQ(report.inner_op, "sqrt") << report.text;
    EXPECT_NE(report.text.find("The first operation of the fused step that gives one is sqrt"),
              std::string::npos)
        << report.text;
  }
}

TEST_F(NanGuardTest, ComplexNumbersAreLookedAtByComponent) {
  const Variable z = make_input({DType::complex128, {2}, {}}, "z");
  const Function f = function({z}, z * 2.0, {.mode = NanGuardMode()});
  const std::vector<std::complex<double>> numbers{{1.0, 2.0}, {1.0, kNan}};
  expect_error<NanGuardError>([&] { f(Tensor::from(numbers)); }, "at (1,), 1 of 2 elements");
}

TEST_F(NanGuardTest, IntegersAreNot) {
  const Variable n = make_input({DType::int64, {1}, {}}, "n");
  const Function f = function({n}, n * 2, {.mode = NanGuardMode({.big = 1.0})});
  EXPECT_NO_THROW(f(Tensor::from(std::vector<std::int64_t>{1000})));
}

TEST_F(NanGuardTest, EachKindCanBeLeftOut) {
  const auto with = [&](NanGuardOptions options) {
    return function({x}, x + 1.0, {.mode = NanGuardMode(std::move(options))});
  };
  EXPECT_NO_THROW(with({.nan_is_error = false})(bad(kNan)));
  EXPECT_NO_THROW(with({.inf_is_error = false})(bad(kInf)));
  EXPECT_NO_THROW(with({.big_is_error = false})(bad(1e300)));
  EXPECT_THROW(with({.nan_is_error = false})(bad(kInf)), NanGuardError);
  EXPECT_THROW(with({.big = 2.5})(good), NanGuardError);
  expect_error<ValueError>([&] { with({.big = -1.0}); }, "[NanGuardMode] big: got -1");
  expect_error<ValueError>([&] { with({.big = kNan}); }, "expected a bound of at least 0");
}

TEST_F(NanGuardTest, ACallbackIsToldAndTheCallGoesOn) {
  std::vector<std::string> found;
  const auto note = [&](const NanGuardReport& r) { found.push_back(r.text); };
  const Function f =
      function({x}, ops::roll(x * 2.0, 1, 0), {.mode = NanGuardMode({.action = note})});
  EXPECT_TRUE(std::isnan(f(bad(kNan)).tensor().at<double>({0})));
  ASSERT_EQ(found.size(), 3U);
  EXPECT_NE(found[0].find("argument 0"), std::string::npos);
  EXPECT_NE(found[1].find("NaN in 'x', input 0 of Mul (step 0), passes on to the result"),
            std::string::npos)
      << found[1];
  EXPECT_NE(found[2].find("Inputs affected before the step: 0"), std::string::npos) << found[2];
}

TEST_F(NanGuardTest, AWarningLetsTheCallGoOn) {
  const Function f = function({x}, x * 2.0, {.mode = NanGuardMode({.action = Reaction::warn})});
  ::testing::internal::CaptureStderr();
  f(bad(kNan));
  const std::string text = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(text.find("[NanGuardMode] NaN in argument 0 'x'"), std::string::npos) << text;
}

TEST_F(NanGuardTest, ATagExemptsAVariable) {
  const Variable a = make_input({DType::float64, {kUnknown}, {}}, "a");
  a.tags().nan_guard = false;
  const Variable y = ops::roll(a, 1, 0);
  y.tags().nan_guard = false;
  EXPECT_NO_THROW(function({a}, y, {.mode = NanGuardMode()})(bad(kNan)));
  // A step that reads an exempt variable is reported, with the variable as cause.
  const NanGuardReport report =
      report_of(function({a}, ops::roll(a, 1, 0), {.mode = NanGuardMode()}), bad(kNan));
  EXPECT_EQ(report.variable.name(), "a");
  EXPECT_EQ(report.affected_inputs, (std::vector<int>{0}));
}

// Rewrites, copies and stages put other variables in the place of an exempt one.
TEST_F(NanGuardTest, AnExemptionPassesToWhateverTakesThePlaceOfAVariable) {
  const auto expect_exempt = [&](const Variable& y, FunctionOptions options = {}) {
    options.mode = NanGuardMode();
    const Function f = function({exempt_of(x)}, y, options);
    EXPECT_NO_THROW(f(bad(kNan))) << pprint(y);
    EXPECT_NO_THROW(f.copy()(bad(kNan)));
  };
  const auto doubled = [](const std::vector<Variable>& s) {
    return std::vector{exempt_of(s[0] * 2.0), exempt_of(s[1] * 3.0)};
  };
  const auto loop = ops::loop(doubled, {.states = {x, x}, .n_steps = index_t{2}});
  expect_exempt(exempt_of(loop.last(0)));
  expect_exempt(exempt_of(ops::exp(x) * 2.0 + 1.0));
  expect_exempt(exempt_of(ops::sum(exempt_of(x * 2.0))));
  expect_exempt(exempt_of(x(exempt_of(x > -1.0) | exempt_of(ops::isnan(x)))));
  const Variable given = make_input({DType::float64, {kUnknown}, {}}, "given");
  for (const bool strict : {true, false}) {
    expect_exempt(exempt_of(ops::roll(given, 1, 0)),
                  {.givens = {{given, exempt_of(x * 2.0)}}, .rebuild_strict = strict});
  }
  const Variable single = make_input({DType::float32, {kUnknown}, {}}, "single");
  expect_exempt(exempt_of(ops::roll(single, 1, 0)),
                {.givens = {{single, exempt_of(x * 2.0)}}, .rebuild_strict = false});
}

TEST_F(NanGuardTest, TheConfigGivesModeAndDefaults) {
  const ConfigScope scope({.mode = "NanGuardMode", .nan_guard_big = 2.5});
  expect_error<NanGuardError>([&] { function({x}, x)(good); }, "expected numbers up to 2.5");
}

}  // namespace
}  // namespace palimpsest
