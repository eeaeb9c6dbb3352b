// SPDX-License-Identifier: Apache-2.0
// Random functions of matrices with all kinds of layouts, in DebugMode: nothing is wrong, so
// nothing may be reported; in modes without reordered arithmetic, bits equal those of NoRewrite;
// and in no mode a byte beside a destination or an argument changes.
#include <gtest/gtest.h>

#include "palimpsest/inspect/debug/debug_mode.hpp"
#include "palimpsest/inspect/debug/monitor_mode.hpp"
#include "palimpsest/inspect/debug/nan_guard.hpp"
#include "palimpsest/inspect/print.hpp"
#include "palimpsest/ops/ops.hpp"
#include "support/checked_calls.hpp"
#include "support/long_run.hpp"

namespace palimpsest {
namespace {

using testing::CheckedCalls;
using testing::RandomProgram;

std::string text_of(const Function& f) { return debugprint(f, {.print_type = true}); }

TEST(RandomFunctions, GiveNoAlarmInDebugMode) {
  const int n = testing::longer_unless_sanitized(600);
  for (int seed = 0; seed < n; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomProgram program(static_cast<std::uint32_t>(seed), {.is_rounded = true});
    const Mode base = seed % 5 == 0 ? FastRun().exact() : FastRun();
    const Function f = program.compiled(DebugMode({.base = base, .patience = 1}));
    CheckedCalls calls(program, f);
    try {
      for (int call = 0; call < 2; ++call) {
        std::vector<Tensor> results(f.output_count());
        f.call(calls.arguments(), results);
      }
    } catch (const Error& error) {
      FAIL() << error.what() << "\n" << text_of(f);
    }
  }
}

// Calls a function in DebugMode, which finds nothing.
void expect_no_alarm(const Variable& x, const std::vector<Out>& outputs, const Updates& updates,
                     const std::vector<Tensor>& arguments) {
  const Function f = function(
      {x}, outputs, {.updates = updates, .mode = DebugMode({.base = FastRun(), .patience = 1})});
  std::vector<Tensor> results(outputs.size());
  for (const Tensor& t : arguments) EXPECT_NO_THROW(f.call({&t, 1}, results)) << text_of(f);
}

// Two duplicates were merged; then the inputs of the remaining one were replaced by values equal up
// to rounding.
TEST(RandomFunctions, AMergeWhoseInputsWereRewrittenLaterIsNoAlarm) {
  const Variable x = make_input({DType::float64, {17, 17}, {}}, "x");
  SharedVariable s = shared(Tensor::random_normal({17, 17}, DType::float64, {1}), {.name = "s"});
  const auto made = [&] {
    const Variable mixed = ops::set_subtensor(s, {slice(0, 8)}, x(slice(0, 8)));
    return ops::dot(mixed, x) * 0.2 * x * 0.5;
  };
  const Variable a = ops::dot(made().T(), s) * 0.2;
  const Variable b = made().T().reshape({289}).reshape({17, 17});
  std::vector<Tensor> arguments;
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    arguments.push_back(Tensor::random_normal({17, 17}, DType::float64, {seed, 1}));
  }
  expect_no_alarm(x, {a, b}, {{s, a * 0.125}}, arguments);
}

// A product of columns that sum to zero with a matrix of equal rows.
TEST(RandomFunctions, AProductWhoseTermsCancelIsNoAlarm) {
  const Variable x = make_input({DType::float64, {17, 17}, {}}, "x");
  const Variable centered = x - ops::reshape(ops::mean(x, {.axes = Axes{1}}), {17, 1});
  const Variable product = ops::dot(centered, ops::dot(x.T(), centered) * 0.2) * 0.1;
  const Variable second = ops::stack({centered * 0.5, product}, 1)(all, index_t{1});
  const Variable mixed = ops::set_subtensor(centered, {slice(0, 8)}, second(slice(0, 8)));
  std::vector<Tensor> arguments;
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const Tensor row = Tensor::random_normal({1, 17}, DType::float64, {seed, 2});
    arguments.push_back(row.expand({17, 17}));
    arguments.push_back(row.transpose().expand({17, 17}));
  }
  expect_no_alarm(x, {ops::dot(mixed, second) * 0.2}, {}, arguments);
}

TEST(RandomFunctions, WriteInsideTheirDestinationsInAllModes) {
  const int n = testing::longer_unless_sanitized(2000);
  // A value may be big or infinite.
  const NanGuardOptions any{.nan_is_error = false, .inf_is_error = false, .big_is_error = false};
  const Mode modes[] = {FastRun(),
                        NoRewrite(),
                        FastCompile(),
                        FastRun().exact(),
                        NanGuardMode(any),
                        MonitorMode({}),
                        DebugMode({.patience = 1, .preallocated = {}})};
  for (int seed = 0; seed < n; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomProgram program(static_cast<std::uint32_t>(seed), {.is_rounded = true, .parts = 85});
    const Function f = program.compiled(modes[static_cast<std::size_t>(seed) % std::size(modes)]);
    CheckedCalls calls(program, f, 100);
    for (int call = 0; call < 2; ++call) calls.call(&f);
    ASSERT_FALSE(HasFailure()) << text_of(f);
  }
}

TEST(RandomFunctions, GiveTheBitsOfNoRewriteInExactModes) {
  const int n = testing::longer_unless_sanitized(4000);
  for (int seed = 0; seed < n; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomProgram program(static_cast<std::uint32_t>(seed), {.is_rounded = true});
    const Function plain = program.compiled(NoRewrite());
    const Function exact =
        program.compiled(seed % 2 == 0 ? FastRun().exact() : FastCompile().exact());
    CheckedCalls calls(program, exact);
    for (int call = 0; call < 2; ++call) calls.call(&plain);
    ASSERT_FALSE(HasFailure()) << text_of(exact);
  }
}

}  // namespace
}  // namespace palimpsest
