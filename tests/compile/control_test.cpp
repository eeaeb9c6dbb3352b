// SPDX-License-Identifier: Apache-2.0
// ifelse and assert_that in functions: only the steps of the branch that is taken run.
#include "palimpsest/ops/control.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>

#include "hook_op.hpp"
#include "palimpsest/compile/function.hpp"
#include "palimpsest/ops/ops.hpp"
#include "support/expect_error.hpp"

namespace palimpsest {
namespace {

using testing::expect_error;
using testing::hooked;
using V = std::vector<double>;

Variable vector_input(std::string name) {
  return make_input({DType::float64, {kUnknown}, {}}, std::move(name));
}
Variable flag_input(std::string name) { return make_input({DType::bool_, {}, {}}, name); }
Tensor flag(bool value) { return Tensor::scalar(value); }
V values(const Tensor& t) { return t.to_vector<double>(); }

constexpr Mode::Base kModes[] = {Mode::fast_run, Mode::fast_compile, Mode::no_rewrite};

struct IfElseTest : ::testing::Test {
  Variable x = vector_input("x"), y = vector_input("y"), c = flag_input("c"), d = flag_input("d");
  std::map<std::string, int> runs;
  Tensor a = Tensor::from<double>({1.0, 2.0}), b = Tensor::from<double>({10.0, 20.0});

  Variable counted(const Variable& v, const std::string& name, bool can_fail = true) {
    return hooked(
        v, [this, name] { ++runs[name]; }, can_fail, static_cast<int>(runs.size()) + 100 * ++n_);
  }
  int n_ = 0;
};

TEST_F(IfElseTest, RunsTheStepsOfTheBranchTaken) {
  const Variable z = ops::ifelse(c, counted(x * 2.0, "then") + 1.0, counted(y, "else") * 3.0);
  for (Mode mode : kModes) {
    const Function f = function({c, x, y}, z, {.mode = mode});
    runs.clear();
    EXPECT_EQ(values(f(flag(true), a, b)), (V{3, 5}));
    EXPECT_EQ(runs, (std::map<std::string, int>{{"then", 1}}));
    EXPECT_EQ(values(f(flag(false), a, b)), (V{30, 60}));
    EXPECT_EQ(runs, (std::map<std::string, int>{{"then", 1}, {"else", 1}}));
  }
}

TEST_F(IfElseTest, WhatIsNeededBesidesRunsInAnyCase) {
  const Variable both = counted(x, "both"), other = counted(y, "other");
  const Variable z = ops::ifelse(c, both + other, both * counted(other, "else"));
  const Function f = function({c, x, y}, {z, other});
  EXPECT_EQ(values(f(flag(true), a, b)[0]), (V{11, 22}));
  EXPECT_EQ(values(f(flag(false), a, b)[0]), (V{10, 40}));
  EXPECT_EQ(runs, (std::map<std::string, int>{{"both", 2}, {"other", 2}, {"else", 1}}));
}

TEST_F(IfElseTest, NestsWithConditionsThatAreComputed) {
  const Variable inner_condition = ops::gt(ops::sum(counted(y, "condition")), 0);
  const Variable inner =
      ops::ifelse(inner_condition, counted(x + y, "positive"), counted(x - y, "negative"));
  const Variable z = ops::ifelse(ops::lt(ops::sum(x), 100), inner * 2.0, counted(y, "else"));
  for (Mode mode : kModes) {
    const Function f = function({x, y}, z, {.mode = mode});
    runs.clear();
    EXPECT_EQ(values(f(a, b)), (V{22, 44}));
    EXPECT_EQ(runs, (std::map<std::string, int>{{"condition", 1}, {"positive", 1}}));
    EXPECT_EQ(values(f(a, Tensor::from<double>({-1.0, -1.0}))), (V{4, 6}));
    EXPECT_EQ(runs["negative"], 1);
    EXPECT_EQ(values(f(Tensor::from<double>({100.0, 0.0}), b)), (V{10, 20}));
    EXPECT_EQ(runs, (std::map<std::string, int>{
                        {"condition", 2}, {"positive", 1}, {"negative", 1}, {"else", 1}}));
  }
}

TEST_F(IfElseTest, ComputesBothBranchesInOneBuffer) {
  const Variable z = ops::ifelse(c, ops::cumsum(x * 2.0), ops::cumsum(y * 3.0));
  const Function f = function({c, x, y}, Out(z, {.borrow = true}), {.mode = Mode::no_rewrite});
  const Plan& plan = f.plan(std::vector<TensorType>{
      {DType::bool_, {}, {}}, {DType::float64, {1000}, {}}, {DType::float64, {1000}, {}}});
  EXPECT_EQ(plan.steps.size(), 4U) << plan.to_string();
  EXPECT_EQ(plan.arena_bytes, 2 * 8000) << "one for the products and one for the sums\n"
                                        << plan.to_string();
  EXPECT_NE(plan.to_string().find("if guard"), std::string::npos);
}

TEST_F(IfElseTest, CopiesABranchThatIsThereAnyway) {
  const Variable z = ops::ifelse(c, x, y + 1.0);
  const Function f = function({c, x, y}, z);
  Tensor r = f(flag(true), a, b);
  EXPECT_EQ(values(r), (V{1, 2}));
  EXPECT_FALSE(shares_storage(r, a));
  EXPECT_EQ(values(f(flag(false), a, b)), (V{11, 21}));
  EXPECT_EQ(values(a), (V{1, 2}));
}

TEST_F(IfElseTest, ValuesOfOneConditionMayShareBranches) {
  const Variable u = x + 1.0, v = y * 2.0;
  const std::vector<Variable> z = ops::ifelse(c, {u, u, v}, {v, x, v});
  for (Mode mode : kModes) {
    const Function f = function({c, x, y}, {z[0], z[1] + 0.5, z[2]}, {.mode = mode});
    auto r = f(flag(true), a, b);
    EXPECT_EQ(values(r[0]), (V{2, 3}));
    EXPECT_EQ(values(r[1]), (V{2.5, 3.5}));
    EXPECT_EQ(values(r[2]), (V{20, 40}));
    r = f(flag(false), a, b);
    EXPECT_EQ(values(r[0]), (V{20, 40}));
    EXPECT_EQ(values(r[1]), (V{1.5, 2.5}));
    EXPECT_EQ(values(r[2]), (V{20, 40}));
  }
}

TEST_F(IfElseTest, ABranchMayUpdateInPlaceAndAFailureChangesNothing) {
  const SharedVariable s = shared(Tensor::from<double>({1.0, 1.0}), {.name = "s"});
  bool fails = false;
  const Variable checked = hooked(x, [&] {
    if (fails) throw std::runtime_error("boom");
  });
  const Function f = function({c, x}, Outputs(std::vector<Out>{}),
                              {.updates = {{s, ops::ifelse(c, s.var() + checked, s.var() * 2.0)}}});
  f(flag(true), a);
  EXPECT_EQ(values(s.get_value()), (V{2, 3}));
  fails = true;
  f(flag(false), a);
  EXPECT_EQ(values(s.get_value()), (V{4, 6}));
  EXPECT_THROW(f(flag(true), a), OpError);
  EXPECT_EQ(values(s.get_value()), (V{4, 6}));
}

TEST_F(IfElseTest, HasDerivatives) {
  const Variable z = ops::ifelse(c, x * x, ops::exp(x) * y);
  const std::vector<Variable> g = grad(ops::sum(z), {x, y});
  const Variable t = vector_input("t");
  const Variable p = pushforward({&z, 1}, {&x, 1}, {&t, 1})[0];
  const Function f = function({c, x, y, t}, {g[0], g[1], p});
  const Tensor one = Tensor::from<double>({1.0, 3.0});
  auto r = f(flag(true), a, b, one);
  EXPECT_EQ(values(r[0]), (V{2, 4}));
  EXPECT_EQ(values(r[1]), (V{0, 0}));
  EXPECT_EQ(values(r[2]), (V{2, 12}));
  r = f(flag(false), a, b, one);
  EXPECT_THAT(values(r[0]), ::testing::Pointwise(::testing::DoubleNear(1e-12),
                                                 V{10 * std::exp(1.0), 20 * std::exp(2.0)}));
  EXPECT_THAT(values(r[1]),
              ::testing::Pointwise(::testing::DoubleNear(1e-12), V{std::exp(1.0), std::exp(2.0)}));
  EXPECT_THAT(values(r[2]), ::testing::Pointwise(::testing::DoubleNear(1e-12),
                                                 V{10 * std::exp(1.0), 60 * std::exp(2.0)}));
}

TEST_F(IfElseTest, TakesNumbersAndPromotes) {
  const Variable n = make_input({DType::int32, {}, {}}, "n");
  const Variable z = ops::ifelse(n, 2.5, n);
  EXPECT_EQ(z.dtype(), DType::float64);
  const Function f = function({n}, z);
  EXPECT_EQ(Tensor(f(3)).item<double>(), 2.5);
  EXPECT_EQ(Tensor(f(0)).item<double>(), 0);
  EXPECT_TRUE(ops::ifelse(c, std::vector<Variable>{}, {}).empty());
}

TEST_F(IfElseTest, RefusesWhatDoesNotFit) {
  expect_error<TypeError>([&] { ops::ifelse(x, x, y); },
                          "[ifelse] condition: got float64 (?,), expected one value. Try all_of");
  expect_error<ValueError>(
      [&] {
        ops::ifelse(c, {x, y}, std::vector<Variable>{x});
      },
      "[ifelse] numbers of values: got 2 and 1");
  expect_error<ValueError>(
      [&] {
        ops::ifelse(c, {x, Variable()}, {x, y});
      },
      "[ifelse] value 1: got an undefined variable");
  expect_error<TypeError>([&] { ops::ifelse(c, x, dmatrix("m")); },
                          "[ifelse] types of the branches");
  const Variable three = make_input({DType::float64, {3}, {}}),
                 four = make_input({DType::float64, {4}, {}});
  expect_error<ShapeError>([&] { ops::ifelse(c, three, four); }, "[ifelse] axis 0: extents differ");
}

// Programs of a few values, of which some are chosen by conditions on others, against the same
// arithmetic without a compiler.
TEST(IfElseProgram, AgreesWithAnInterpreterInEveryMode) {
  for (unsigned seed = 1; seed <= 60; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
    std::vector<Variable> variables{vector_input("a"), vector_input("b"), vector_input("c")};
    std::vector<V> results;
    std::vector<Tensor> arguments;
    for (int i = 0; i < 3; ++i) {
      V v;
      for (int k = 0; k < 4; ++k) v.push_back(static_cast<double>(below(9)) - 4);
      arguments.push_back(Tensor::from(v));
      results.push_back(v);
    }
    for (int n = 0; n < 14; ++n) {
      const std::size_t i = below(results.size()), j = below(results.size()),
                        k = below(results.size());
      V r = results[i];
      switch (below(4)) {
        case 0:
          variables.push_back(variables[i] + variables[j]);
          for (std::size_t e = 0; e < 4; ++e) r[e] += results[j][e];
          break;
        case 1:
          variables.push_back(ops::minimum(variables[i] * -2.0, 50.0));
          for (double& e : r) e = std::min(e * -2, 50.0);
          break;
        default: {
          double sum = 0;
          for (double e : results[k]) sum += e;
          variables.push_back(
              ops::ifelse(ops::gt(ops::sum(variables[k]), 0.5), variables[i], variables[j]));
          if (sum <= 0.5) r = results[j];
        }
      }
      results.push_back(r);
    }
    const std::size_t other = below(results.size());
    for (Mode mode : kModes) {
      const Function f =
          function({variables[0], variables[1], variables[2]}, {variables.back(), variables[other]},
                   {.mode = mode, .on_unused_input = Reaction::ignore});
      const auto r = f(arguments[0], arguments[1], arguments[2]);
      EXPECT_EQ(values(r[0]), results.back()) << "seed " << seed;
      EXPECT_EQ(values(r[1]), results[other]) << "seed " << seed;
    }
  }
}

TEST(AssertThat, IsAViewThatRuns) {
  const Variable x = vector_input("x");
  const Variable y = ops::assert_that(x, ops::gt(x, 0), "x must be positive");
  const Function f = function({x}, y * 2.0);
  EXPECT_EQ(values(f(Tensor::from<double>({1.0, 2.0}))), (V{2, 4}));
  expect_error<AssertionError>(
      [&] {
        f(Tensor::from<double>({1.0, -2.5, 3.0, 0.0, -1.0, -1.0, -1.0, -1.0}));
      },
      "[assert_that] x must be positive: got 6 of 8 false, at (1,) where it is -2.5, (3,) where it "
      "is 0");
  expect_error<AssertionError>([&] { f(Tensor::from<double>({-1.0})); }, "in step");
  const Variable total = ops::assert_that(x, ops::lt(ops::sum(x), 10), "too much");
  expect_error<AssertionError>([&] { function({x}, total)(Tensor::from<double>({11.0})); },
                               "[assert_that] too much: got 1 of 1 false, at ()");
  EXPECT_EQ(values(function({x}, grad(ops::sum(y * y), x))(Tensor::from<double>({3.0}))), (V{6}));
}

TEST(AssertThat, FailsBeforeAnythingIsStored) {
  const SharedVariable s = shared(Tensor::from<double>({1.0}));
  const Variable x = vector_input("x");
  const Variable y = ops::assert_that(x, ops::gt(x, 0), "x");
  const Function f = function({x}, y, {.updates = {{s, s.var() + x}}});
  EXPECT_THROW(f(Tensor::from<double>({-1.0})), AssertionError);
  EXPECT_EQ(values(s.get_value()), (V{1}));
}

TEST(AssertThat, WantsBools) {
  const Variable x = vector_input("x");
  expect_error<DTypeError>([&] { ops::assert_that(x, x, "text"); }, "[assert_that] condition");
  EXPECT_EQ(ops::assert_that(x, std::vector<Variable>{}, "text"), x);
}

}  // namespace
}  // namespace palimpsest
