// SPDX-License-Identifier: Apache-2.0
// ifelse and assert_that in functions: only the steps of the branch that is taken run.
#include "palimpsest/ops/control/control.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>

#include "compile/hook_op.hpp"
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
  EXPECT_NE(plan.to_string().find("if guard 0"), std::string::npos);
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

// Returns its input and counts runs; the step of its derivative counts too.
class Probe final : public Op {
 public:
  Probe(std::string name, std::map<std::string, int>* runs) : name_(std::move(name)), runs_(runs) {}
  std::string name() const override { return "Probe"; }
  std::string parameters() const override { return name_; }
  Apply make_node(std::span<const Variable> inputs) const override {
    return node(inputs, {inputs[0].type()});
  }
  std::vector<Extents> infer_shapes(const Apply&, std::span<const Extents> inputs) const override {
    return {inputs[0]};
  }
  std::vector<Variable> pullback(const Apply&, std::span<const Variable> w) const override {
    return {std::make_shared<Probe>("d " + name_, runs_)->make_node(w).output(0)};
  }
  void run(RunContext& context) const override {
    ++(*runs_)[name_];
    strided_copy(context.input(0), context.output(0));
  }

 private:
  std::string name_;
  std::map<std::string, int>* runs_;
};

struct LazyDerivatives : IfElseTest {
  Variable probe(const Variable& v, const std::string& name) {
    return std::make_shared<Probe>(name, &runs)->make_node({&v, 1}).output(0);
  }
  using Runs = std::map<std::string, int>;
  // Counts of derivatives. Values may also run in their branch if derivatives need their extents.
  Runs derivatives() const {
    Runs result;
    for (const auto& [name, n] : runs) {
      if (name.starts_with("d ")) result[name] = n;
    }
    return result;
  }
};

TEST_F(LazyDerivatives, OnlyThatOfTheBranchTakenIsComputed) {
  const Variable z = ops::ifelse(c, probe(x * x, "then"), probe(ops::exp(x) * y, "else"));
  const std::vector<Variable> g = grad(ops::sum(z), {x, y});
  for (Mode mode : kModes) {
    const Function f = function({c, x, y}, {ops::sum(z), g[0], g[1]}, {.mode = mode});
    runs.clear();
    auto r = f(flag(true), a, b);
    EXPECT_EQ(runs, (Runs{{"then", 1}, {"d then", 1}}));
    EXPECT_EQ(values(r[1]), (V{2, 4}));
    EXPECT_EQ(values(r[2]), (V{0, 0}));
    runs.clear();
    r = f(flag(false), a, b);
    EXPECT_EQ(runs, (Runs{{"else", 1}, {"d else", 1}}));
    EXPECT_NEAR(values(r[1])[1], 20 * std::exp(2.0), 1e-12);
    EXPECT_NEAR(values(r[2])[1], std::exp(2.0), 1e-12);
  }
}

TEST_F(LazyDerivatives, WhatBothBranchesNeedIsDifferentiatedOnce) {
  const Variable h = probe(x * 3.0, "both");
  const Variable z = ops::ifelse(c, probe(h * h, "then"), probe(h * 5.0, "else")) + h;
  const Variable g = grad(ops::sum(z), x);
  for (Mode mode : kModes) {
    const Function f = function({c, x}, g, {.mode = mode});
    runs.clear();
    EXPECT_EQ(values(f(flag(true), a)), (V{21, 39}));  // 18 x + 3
    EXPECT_EQ(derivatives(), (Runs{{"d both", 1}, {"d then", 1}}));
    EXPECT_EQ(runs.count("else"), 0U);
    runs.clear();
    EXPECT_EQ(values(f(flag(false), a)), (V{18, 18}));
    EXPECT_EQ(derivatives(), (Runs{{"d both", 1}, {"d else", 1}}));
    EXPECT_EQ(runs.count("then"), 0U);
  }
}

TEST_F(LazyDerivatives, BranchesWithinBranchesToo) {
  const Variable inner = ops::ifelse(d, probe(x * x, "dd"), probe(x * y, "dn"));
  const Variable z = ops::ifelse(c, probe(inner * 2.0, "cc"), probe(y * y, "cn"));
  const std::vector<Variable> g = grad(ops::sum(z), {x, y});
  for (Mode mode : kModes) {
    const Function f = function({c, d, x, y}, g, {.mode = mode});
    runs.clear();
    auto r = f(flag(true), flag(true), a, b);
    EXPECT_EQ(derivatives(), (Runs{{"d cc", 1}, {"d dd", 1}}));
    EXPECT_EQ(values(r[0]), (V{4, 8}));
    EXPECT_EQ(values(r[1]), (V{0, 0}));
    runs.clear();
    r = f(flag(true), flag(false), a, b);
    EXPECT_EQ(derivatives(), (Runs{{"d cc", 1}, {"d dn", 1}}));
    EXPECT_EQ(values(r[0]), (V{20, 40}));
    EXPECT_EQ(values(r[1]), (V{2, 4}));
    runs.clear();
    r = f(flag(false), flag(true), a, b);
    EXPECT_EQ(derivatives(), (Runs{{"d cn", 1}}));
    EXPECT_EQ(runs.count("cc") + runs.count("dd") + runs.count("dn"), 0U);
    EXPECT_EQ(values(r[0]), (V{0, 0}));
    EXPECT_EQ(values(r[1]), (V{20, 40}));
  }
}

TEST_F(LazyDerivatives, SeveralValuesOfOneConditionAreOneBranch) {
  const Variable u = probe(x * x, "u");
  const std::vector<Variable> z = ops::ifelse(c, {u, probe(u * y, "v")}, {x, probe(y, "w")});
  const Variable g = grad(ops::sum(z[0]) + 2.0 * ops::sum(z[1]), x);
  const Function f = function({c, x, y}, g);
  EXPECT_EQ(values(f(flag(true), a, b)), (V{42, 164}));  // 2 x + 4 x y
  EXPECT_EQ(derivatives(), (Runs{{"d u", 1}, {"d v", 1}}));
  runs.clear();
  EXPECT_EQ(values(f(flag(false), a, b)), (V{1, 1}));
  EXPECT_TRUE(derivatives().empty());
  EXPECT_EQ(runs.count("u") + runs.count("v"), 0U);
}

TEST_F(LazyDerivatives, OfSecondOrderAndForwards) {
  const Variable z = ops::ifelse(c, probe(x * x * x, "then"), probe(ops::exp(x), "else"));
  const Variable second = grad(ops::sum(grad(ops::sum(z), x)), x);
  const Function f = function({c, x}, second);
  EXPECT_EQ(values(f(flag(true), a)), (V{6, 12}));
  EXPECT_EQ(runs.count("d else"), 0U);
  runs.clear();
  EXPECT_NEAR(values(f(flag(false), a))[0], std::exp(1.0), 1e-12);
  EXPECT_EQ(runs.count("d then"), 0U);
  const Variable t = vector_input("t"), p = pushforward({&z, 1}, {&x, 1}, {&t, 1})[0];
  const Function forwards = function({c, x, t}, p);
  runs.clear();
  EXPECT_EQ(values(forwards(flag(true), a, b)), (V{30, 240}));
  EXPECT_EQ(runs.count("d d else"), 0U);
  EXPECT_EQ(runs["d d then"], 1);
}

// The other branch is not evaluated: no 0 times infinity.
TEST_F(LazyDerivatives, AreFiniteWhereTheOtherBranchesIsNot) {
  const Variable s = dscalar("s"), z = ops::ifelse(ops::gt(s, 0.0), ops::sqrt(s), s * 2.0);
  for (Mode mode : kModes) {
    const Function f = function({s}, grad(z, s), {.mode = mode});
    EXPECT_EQ(f(0.0)[0].item<double>(), 2);
    EXPECT_EQ(f(4.0)[0].item<double>(), 0.25);
  }
}

// The cotangent has the extents of the branch that is taken.
TEST_F(LazyDerivatives, OfBranchesOfDifferentExtents) {
  const Variable w = vector_input("w"), three = constant(V{1, 2, 3});
  const Variable z =
      ops::ifelse(c, probe(x(slice(0, 2)) * 2.0, "then"), probe(x(slice(0, 3)) * three, "else"));
  const Variable below = pullback({&z, 1}, {&x, 1}, {&w, 1})[0];
  const Tensor x4 = Tensor::zeros({4}), w2 = Tensor::from(V{5, 6}), w3 = Tensor::from(V{5, 6, 7});
  for (Mode mode : kModes) {
    const Function f = function({c, x, w}, below, {.mode = mode});
    runs.clear();
    EXPECT_EQ(values(f(flag(true), x4, w2)), (V{10, 12, 0, 0}));
    EXPECT_EQ(runs, (Runs{{"d then", 1}}));
    EXPECT_EQ(values(f(flag(false), x4, w3)), (V{5, 12, 21, 0}));
    EXPECT_EQ(runs, (Runs{{"d then", 1}, {"d else", 1}}));
    EXPECT_THROW(f(flag(false), x4, w2), ShapeError);
  }
}

TEST_F(LazyDerivatives, InBodiesOfLoops) {
  const ops::LoopResult r = ops::loop(
      [&](const std::vector<Variable>& v) -> std::vector<Variable> {
        return {
            ops::ifelse(ops::gt(v[0], 0.0), probe(v[1] * 2.0, "then"), probe(v[1] * v[1], "else"))};
      },
      {.sequences = {y}, .states = {constant(3.0)}});
  const Variable start = r.last(0).owner().input(1);
  const Function f = function({y}, grad(r.last(0), start));
  EXPECT_EQ(Tensor(f(Tensor::from(V{1, -1, 1}))).item<double>(), 48);  // of 2 (2 s)^2
  EXPECT_EQ(runs["d then"], 2);
  EXPECT_EQ(runs["d else"], 1);
}

// Random programs with choices: derivatives agree with those of the same program with `where`,
// which computes both branches.
TEST_F(LazyDerivatives, AgreeWithThoseThatComputeBothBranches) {
  const Tensor small = Tensor::from(V{1, -2});
  for (unsigned seed = 1; seed <= 60; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
    std::vector<Variable> lazy{x, y}, eager{x, y};
    for (int n = 0; n < 10; ++n) {
      const std::size_t i = below(lazy.size()), j = below(lazy.size());
      const auto both = [&](const auto& make) {
        const Variable made = make(lazy);
        eager.push_back(make(eager));
        lazy.push_back(made);
      };
      switch (below(4)) {
        case 0:
          both([&](const auto& v) { return v[i] * 0.5 + v[j]; });
          break;
        case 1:
          both([&](const auto& v) { return ops::sin(v[i]) * v[j]; });
          break;
        default: {
          const std::size_t k = below(lazy.size());
          const Variable holds = below(2) == 0 ? Variable(c) : Variable(d);
          const Variable computed = ops::gt(ops::sum(lazy[k]), 0.5);
          const bool is_given = below(2) == 0;
          lazy.push_back(ops::ifelse(is_given ? holds : computed, lazy[i], lazy[j]));
          eager.push_back(
              ops::where(is_given ? holds : ops::gt(ops::sum(eager[k]), 0.5), eager[i], eager[j]));
        }
      }
    }
    const auto gradients = [&](const std::vector<Variable>& v) {
      return grad(ops::sum(v.back()) + ops::sum(v[v.size() - 3]), std::vector<Variable>{x, y},
                  {.disconnected = Disconnected::zero});
    };
    const std::vector<Variable> got = gradients(lazy), expected = gradients(eager);
    for (Mode mode : kModes) {
      const Function f = function({c, d, x, y}, {got[0], got[1], expected[0], expected[1]},
                                  {.mode = mode, .on_unused_input = Reaction::ignore});
      for (const int flags : {0, 1, 2, 3}) {
        const auto r = f(flag(flags % 2 != 0), flag(flags / 2 != 0), a, small);
        for (std::size_t k = 0; k < 2; ++k) {
          for (std::size_t e = 0; e < 2; ++e) {
            EXPECT_NEAR(values(r[k])[e], values(r[k + 2])[e],
                        1e-12 * (1 + std::abs(values(r[k])[e])))
                << "seed " << seed << " flags " << flags;
          }
        }
      }
    }
  }
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

// Programs of a few values, some of them chosen by conditions on others, compared with the same
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

TEST(IfElseMemory, AValueThatIsNeededElsewhereKeepsItsMemory) {
  const Variable c = make_input({DType::bool_, {}, {}}, "c"),
                 x = make_input({DType::float64, {kUnknown}, {}}, "x");
  const Variable kept = ops::roll(x, 1, 0), other = ops::roll(x, 2, 0);
  const Tensor a = Tensor::from<double>({1, 2, 4, 8});
  for (const bool swapped : {false, true}) {
    const Variable v = swapped ? ops::ifelse(c, other, kept) : ops::ifelse(c, kept, other);
    const Function f = function({c, x}, ops::roll(kept - 2.0 * v, 0, 0));
    for (const bool holds : {false, true}) {
      const V of_kept{-8, -1, -2, -4}, of_other{0, -15, 0, 0};
      EXPECT_EQ(f(holds, a).tensor().to_vector<double>(), holds != swapped ? of_kept : of_other);
    }
  }
}

}  // namespace
}  // namespace palimpsest
