// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/graph/variable.hpp"

#include <gtest/gtest.h>

#include "graph/toy_ops.hpp"
#include "support/small_stack.hpp"

namespace palimpsest {
namespace {

TEST(TensorType, AdmitsExtentsThatFitItsKnownOnes) {
  const TensorType type{DType::float32, {kUnknown, 3}, {}};
  EXPECT_TRUE(type.admits(Extents{7, 3}));
  EXPECT_FALSE(type.admits(Extents{7, 4}));
  EXPECT_FALSE(type.admits(Extents{3}));
  EXPECT_EQ(type.str(), "float32 (?, 3)");
  EXPECT_TRUE(type.is_super({DType::float32, {2, 3}, {}}));
  EXPECT_FALSE(type.is_super({DType::float64, {2, 3}, {}}));
}

TEST(Variable, IsComparedByIdentity) {
  const Variable x = toy::input("x"), y = toy::input("x");
  EXPECT_EQ(x, Variable(x));
  EXPECT_FALSE(x == y);
}

TEST(Variable, PrintsItsNameOrItsType) {
  EXPECT_EQ(toy::input("x").str(), "x");
  EXPECT_EQ(make_input({DType::float64, {kUnknown, 3}, {}}).str(), "<float64 (?, 3)>");
}

TEST(Variable, UndefinedOneSaysSo) { EXPECT_THROW(Variable().type(), ValueError); }

TEST(Variable, KeepsItsOwnerAlive) {
  Variable y;
  {
    const Variable x = toy::input("x");
    y = toy::apply(toy::S, {x});
  }
  ASSERT_TRUE(y.owner().defined());
  EXPECT_EQ(y.owner().op().name(), "S");
  EXPECT_EQ(y.owner().input(0).name(), "x");
  EXPECT_EQ(y.owner().output(0), y);
}

TEST(Variable, ChainLongerThanTheStackIsReleased) {
  Variable v = toy::input("x");
  for (int i = 0; i < 300000; ++i) v = toy::apply(toy::S, {v});
  EXPECT_EQ(applications_of(std::vector<Variable>{v}).size(), 300000u);
}

// Chains through objects that a variable holds. Each is made here and destroyed on a small stack.
constexpr int kLinks = 10'000;

struct Keeping : Attachment {
  explicit Keeping(Variable kept_) : kept(std::move(kept_)) {}
  Variable kept;
};

class KeepingOp : public toy::ToyOp {
 public:
  explicit KeepingOp(Variable kept) : ToyOp(toy::Spec{.name = "Keeping"}), kept_(std::move(kept)) {}

 private:
  Variable kept_;
};

Variable kept_by_attachment(const Variable& v) {
  const Variable root = toy::input("x");
  root.node()->attachment = std::make_shared<Keeping>(v);
  return root;
}
Variable kept_by_op(const Variable& v) {
  const std::vector<Variable> inputs{toy::input("x")};
  return std::make_shared<KeepingOp>(v)->make_node(inputs).output(0);
}
Variable kept_by_memory(const Variable& v) {
  static double memory = 0;
  return constant(Tensor::from_blob(
      &memory, DType::float64, {1}, {1}, [v] {}, false));
}

TEST(Variable, ChainOfWhatVariablesHoldIsReleased) {
  using Step = Variable (*)(const Variable&);
  const std::vector<std::vector<Step>> kinds{{kept_by_attachment},
                                             {kept_by_op},
                                             {kept_by_memory},
                                             {kept_by_attachment, kept_by_op, kept_by_memory}};
  for (const auto& steps : kinds) {
    Variable v = toy::input("x");
    for (int k = 0; k < kLinks; ++k) {
      for (const Step step : steps) v = step(v);
      v = toy::apply(toy::S, {v});
    }
    testing::run_on_small_stack([&] { v = Variable(); });
  }
}

TEST(Constant, DoesNotSeeLaterWritesOfTheCaller) {
  Tensor t = Tensor::full<double>({2}, 1.0);
  const Variable c = constant(t);
  t.fill(5.0);
  EXPECT_EQ(c.constant_value().at<double>({0}), 1.0);
  EXPECT_THROW(toy::input("x").constant_value(), TypeError);
}

TEST(CloneGraph, MapsInputsAndLeavesTheOriginal) {
  const Variable x = toy::input("x"), z = toy::input("z");
  const Variable y = toy::apply(toy::A, {x, toy::apply(toy::S, {x})}).named("y");
  y.set_indestructible();
  const std::vector<Variable> outputs{y}, from{x}, to{z};
  const Variable copy = clone_graph(outputs, from, to)[0];
  EXPECT_FALSE(copy == y);
  EXPECT_EQ(copy.name(), "y");
  EXPECT_TRUE(copy.is_indestructible());
  EXPECT_EQ(copy.owner().input(0), z);
  EXPECT_EQ(copy.owner().input(1).owner().input(0), z);
  EXPECT_EQ(y.owner().input(0), x);
}

TEST(Op, EqualityFollowsNameAndParameters) {
  EXPECT_TRUE(*toy::A_same == *toy::make("A!s", {}, {{0, {0}}}, {{0, 1}}));
  EXPECT_FALSE(*toy::A_same == *toy::make("A!s", {}, {{0, {0}}}, {}, {{0, 1}}));
}

}  // namespace
}  // namespace palimpsest
