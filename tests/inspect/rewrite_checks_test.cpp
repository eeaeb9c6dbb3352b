// SPDX-License-Identifier: Apache-2.0
// DebugMode and the compiler: rewrites that change results, that fail, or that are not
// deterministic.
#include <gtest/gtest.h>

#include <random>

#include "palimpsest/compile/function.hpp"
#include "palimpsest/copy/strided_copy.hpp"
#include "palimpsest/inspect/debug/debug_mode.hpp"
#include "palimpsest/inspect/debug/protection.hpp"
#include "palimpsest/inspect/debug/rewrite_record.hpp"
#include "palimpsest/ops/ops.hpp"
#include "support/expect_error.hpp"

namespace palimpsest {
namespace {

using testing::expect_error;

enum class Twin { right, wrong, one_bit, fails, moody };

// Doubles its input; its in-place twin may do something else.
class Double final : public Op {
 public:
  Double(Twin twin, bool in_place) : twin_(twin), in_place_(in_place) {}
  std::string name() const override { return in_place_ ? "DoubleInPlace" : "Double"; }
  std::string parameters() const override { return std::to_string(static_cast<int>(twin_)); }
  Apply make_node(std::span<const Variable> inputs) const override {
    return node(inputs, {inputs[0].type()});
  }
  AliasMap destroy_map(const Apply&) const override {
    return in_place_ ? AliasMap{{0, {0}}} : AliasMap{};
  }
  OpPtr inplace_on_inputs(const Apply&, const std::set<int>& allowed) const override {
    if (in_place_ || !allowed.contains(0)) return nullptr;
    if (twin_ == Twin::moody && !mood()) return nullptr;
    return std::make_shared<const Double>(twin_, true);
  }
  OpPtr pure() const override { return std::make_shared<const Double>(twin_, false); }
  std::vector<Extents> infer_shapes(const Apply&, std::span<const Extents> inputs) const override {
    return {inputs[0]};
  }
  void run(RunContext& context) const override {
    if (in_place_ && twin_ == Twin::fails) throw ShapeError("the twin fails");
    const ConstView& in = context.input(0);
    const MutableView& out = context.output(0);
    double factor = 2;
    if (in_place_ && twin_ == Twin::wrong) factor = 3;
    if (in_place_ && twin_ == Twin::one_bit) factor = 2 * (1 + 1e-15);
    for (index_t i = 0; i < in.extents[0]; ++i) {
      static_cast<double*>(out.data)[i * out.strides[0]] =
          factor * static_cast<const double*>(in.data)[i * in.strides[0]];
    }
  }
  static bool mood() {
    static std::mt19937 random(1);
    return random() % 2 == 0;
  }

 private:
  Twin twin_;
  bool in_place_;
};

struct RewriteCheckTest : ::testing::Test {
  Variable x = make_input({DType::float64, {kUnknown}, {}}, "x");
  Tensor a = Tensor::from(std::vector<double>{1, 2, 3, 4});

  Variable doubled(Twin twin, const Variable& v) const {
    const Variable inputs[] = {v};
    return std::make_shared<const Double>(twin, false)->make_node(inputs).output(0);
  }
  Function f(const Variable& v, int patience = 1) const {
    return function({x}, v, {.mode = DebugMode({.patience = patience})});
  }
};

// Values of a branch that is not taken are unknown; all others are compared.
TEST_F(RewriteCheckTest, ABranchThatIsNotTakenHidesNoWrongTwin) {
  const Variable far = ops::assert_that(x, ops::gt(x, 100.0), "far");
  const Variable chosen = ops::ifelse(constant(Tensor::scalar(true)), ops::roll(x, 1, 0), far);
  const auto call = [&](Twin twin) {
    f(ops::roll(doubled(twin, ops::roll(chosen, 1, 0)), 1, 0))(a);
  };
  EXPECT_NO_THROW(call(Twin::right));
  EXPECT_THROW(call(Twin::wrong), BadOptimization);
}

TEST_F(RewriteCheckTest, ATwinThatIsRightPasses) {
  const Function g = f(doubled(Twin::right, ops::roll(x, 1, 0)), 3);
  EXPECT_EQ(g.graph().outputs()[0].owner().op().name(), "DoubleInPlace");
  EXPECT_EQ(g(a).tensor().to_vector<double>(), (std::vector<double>{8, 2, 4, 6}));
}

TEST_F(RewriteCheckTest, FindsTheRewriteThatChangesAValue) {
  for (const Twin twin : {Twin::wrong, Twin::one_bit}) {
    const Function g = f(ops::roll(doubled(twin, ops::roll(x, 1, 0)), 1, 0));
    try {
      g(a);
      FAIL() << "no error";
    } catch (const BadOptimization& error) {
      const std::string text = error.what();
      EXPECT_NE(text.find("[DebugMode: BadOptimization] DoubleInPlace (step "), std::string::npos)
          << text;
      EXPECT_NE(
          text.find(
              "the rewrite run_elementwise_in_place replaced a variable by one of another value"),
          std::string::npos)
          << text;
      EXPECT_NE(text.find("old: <float64 (?,)> = Double("), std::string::npos) << text;
      EXPECT_NE(text.find("new value: float64 (4,): min "), std::string::npos) << text;
      EXPECT_NE(text.find("4 elements differ"), std::string::npos) << text;
      EXPECT_EQ(error.reason(), "run_elementwise_in_place");
      EXPECT_EQ(error.node().op().name(), "DoubleInPlace");
      EXPECT_EQ(error.output(), 0);
    }
  }
}

TEST_F(RewriteCheckTest, AnExceptionOfAnIntroducedNodeNamesItsRewrite) {
  const Function g = f(doubled(Twin::fails, ops::roll(x, 1, 0)));
  expect_error<ShapeError>([&] { g(a); }, "introduced by the rewrite run_elementwise_in_place");
}

// The twin cannot be placed, so its effect on other values is not checked. But it is run, and its
// exceptions are reported.
TEST_F(RewriteCheckTest, RefusedRewritesAreNotBlamedForValues) {
  EXPECT_NO_THROW(f(doubled(Twin::wrong, x))(a));
}

TEST_F(RewriteCheckTest, FindsRewritingThatNeverDoesTheSame) {
  try {
    f(doubled(Twin::moody, ops::roll(x, 1, 0)), 20);
    FAIL() << "no error";
  } catch (const StochasticOrder& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("[DebugMode: StochasticOrder]"), std::string::npos);
    EXPECT_NE(text.find("did not do the same in run 0 and in run "), std::string::npos) << text;
    EXPECT_NE(text.find("DoubleInPlace"), std::string::npos) << text;
  }
  EXPECT_NO_THROW(f(doubled(Twin::moody, ops::roll(x, 1, 0)), 1));
}

TEST_F(RewriteCheckTest, LibraryRewritesPass) {
  const Variable z = make_input({DType::complex128, {kUnknown}, {}}, "z");
  const Variable v =
      ops::ifft(ops::fft(z, {0}), {0}) * 2.0 + ops::ifft(ops::fft(z * 3.0, {0}), {0});
  const Function g = function({z}, {v, (v * v).sum()}, {.mode = DebugMode({.patience = 3})});
  EXPECT_NO_THROW(g(Tensor::random_normal({12}, DType::complex128, {3, 0})));
}

TEST_F(RewriteCheckTest, ProtectedInputsAndOutputsCannotBeOverwritten) {
  FunctionGraph graph({x}, {ops::roll(x, 1, 0)});
  graph.protect(graph.inputs()[0]);
  EXPECT_NO_THROW(check_protection(graph));
  EXPECT_NO_THROW(check_alias_state(graph));
}

TEST_F(RewriteCheckTest, RecordsTellRefusedReplacementsApart) {
  const Variable y = ops::roll(x, 1, 0), z = ops::roll(y, 1, 0);
  FunctionGraph graph({x}, {z});
  graph.protect(graph.inputs()[0]);
  const auto record = std::make_shared<RewriteRecord>();
  graph.add_feature(record);
  const Apply last = graph.outputs()[0].owner();
  const Apply first = last.input(0).owner();
  const auto twin = [&](const Apply& node) {
    return std::make_shared<const Double>(Twin::right, true)->make_node(node.inputs()).output(0);
  };
  EXPECT_THROW(graph.replace_validate(first.output(0), twin(first), "refused"), InconsistencyError);
  graph.replace_validate(last.output(0), twin(last), "accepted");
  ASSERT_EQ(record->introduced().size(), 2U);
  EXPECT_EQ(record->introduced()[0].reason, "refused");
  EXPECT_EQ(record->reason_of(graph.outputs()[0].owner()), "accepted");
  int in_force = 0;
  for (const auto& r : record->replacements()) {
    in_force += r.uses;
    EXPECT_EQ(r.uses > 0, r.reason == "accepted");
  }
  EXPECT_EQ(in_force, 1);
}

}  // namespace
}  // namespace palimpsest
