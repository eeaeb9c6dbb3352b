// SPDX-License-Identifier: Apache-2.0
// Passes that change no bit: graphs that they rewrite, similar graphs that they must not, and
// values.
#include <gtest/gtest.h>

#include "palimpsest/compile/function.hpp"
#include "palimpsest/ops/ops.hpp"
#include "rewrite/rewrite_runner.hpp"

namespace palimpsest {
namespace {

using testing::Agreement;
using testing::expect_left_alone;
using testing::expect_rewritten;
using testing::RewriteCase;

struct ExactRewriteTest : ::testing::Test {
  static Variable input(DType dtype, Extents shape, std::string name) {
    return make_input({dtype, std::move(shape), {}}, std::move(name));
  }
  Variable x = input(DType::float64, {kUnknown}, "x");
  Variable y = input(DType::float64, {kUnknown}, "y");
  Variable f = input(DType::float32, {kUnknown}, "f");
  Variable z = input(DType::complex128, {kUnknown}, "z");
  Variable w = input(DType::complex128, {kUnknown}, "w");
  Variable i = input(DType::int32, {kUnknown}, "i");
  Variable j = input(DType::int64, {kUnknown}, "j");
  Variable b = input(DType::bool_, {kUnknown}, "b");
  Variable c = input(DType::bool_, {kUnknown}, "c");
  Variable m = input(DType::float64, {4, 6}, "m");
  Variable u = input(DType::float64, {kUnknown, 6}, "u");

  static Variable join(index_t axis, const std::vector<Variable>& parts) {
    return ops::join(axis, parts);
  }
  static void exactly(const std::string& pass, const std::vector<RewriteCase>& cases) {
    expect_rewritten(pass, cases, Agreement::bits);
  }
  static void alone(const std::string& pass, const std::vector<Variable>& values) {
    for (const Variable& v : values) expect_left_alone(pass, v);
  }
};

TEST_F(ExactRewriteTest, CanonicalizeCancelsWhatUndoesItself) {
  exactly("canonicalize", {{"-(-x)", -(-x), {}},
                           {"-(-i)", -(-i), {}},
                           {"conj(conj(z))", ops::conj(ops::conj(z)) * w, {"Mul"}},
                           {"~~i", ~(~i), {}},
                           {"not not b", ops::logical_not(ops::logical_not(b)), {}},
                           {"| |x| |", ops::abs(ops::abs(x)), {"Abs"}},
                           {"|exp(x)|", ops::abs(ops::exp(x)), {"Exp"}},
                           {"| |z|^2 |", ops::abs(ops::abs2(z)), {"Abs2"}},
                           {"round twice", ops::round(ops::round(x)), {"Round"}},
                           {"sign twice", ops::sign(ops::sign(x)), {"Sign"}},
                           {"min(x, x)", ops::minimum(x, x), {}},
                           {"b and b", ops::logical_and(b, b), {}}});
  alone("canonicalize", {-ops::conj(z), ops::logical_not(ops::logical_not(i)), ops::minimum(x, y),
                         ops::abs(ops::abs2(i)), ops::sqrt(ops::square(x)), ops::exp(ops::log(x)),
                         ops::sign(ops::sign(z)), ops::round(ops::sign(x)),
                         ops::abs(-input(DType::uint8, {kUnknown}, "byte"))});
}

// An operand of extent 1 beside one of unknown extent is smaller than the result.
TEST_F(ExactRewriteTest, OperandsThatBroadcastAreNotTheResult) {
  const Variable s = input(DType::float64, {1}, "s"), r = input(DType::float64, {1, 6}, "r");
  const Variable yes = constant(Tensor::scalar(true)), no = constant(Tensor::scalar(false));
  alone("canonicalize",
        {ops::where(b, s, s), ops::where(yes, s, x), ops::where(no, x, s), ops::where(yes, r, u),
         ops::real(ops::complex(s, x)), ops::imag(ops::complex(x, s)),
         ops::real(ops::complex(r, u)), ops::imag(ops::complex(u, r))});
  exactly("canonicalize", {{"true ? x : s", ops::where(yes, x, s), {}},
                           {"re(x + is)", ops::real(ops::complex(x, s)), {}},
                           {"im(r + iu)", ops::imag(ops::complex(r, u)), {}}});
}

TEST_F(ExactRewriteTest, CanonicalizeMovesSigns) {
  exactly("canonicalize", {{"x + -y", x + (-y), {"Sub"}},
                           {"-x + y", (-x) + y, {"Sub"}},
                           {"x - -y", x - (-y), {"Add"}},
                           {"z - -w", z - (-w), {"Add"}},
                           {"-x * -y", (-x) * (-y), {"Mul"}},
                           {"-z * -w", (-z) * (-w), {"Mul"}},
                           {"-x / -y", (-x) / (-y), {"Div"}},
                           {"|-x|", ops::abs(-x), {"Abs"}},
                           {"|conj(z)|", ops::abs(ops::conj(z)), {"Abs"}},
                           {"|-z|^2", ops::abs2(-z), {"Abs2"}},
                           {"(-x)^2", ops::square(-x), {"Square"}},
                           {"|x|^2", ops::square(ops::abs(x)), {"Square"}},
                           {"|i|^2", ops::square(ops::abs(i)), {"Square"}}});
  alone("canonicalize", {-(x - y), (-x) * y, (-z) / (-w), ops::exp(-x), ops::square(ops::abs(z)),
                         ops::square(ops::conj(z))});
}

TEST_F(ExactRewriteTest, CanonicalizeResolvesChoicesAndParts) {
  exactly("canonicalize",
          {{"c ? x : x", ops::where(b, x, x), {}},
           {"true ? x : y", ops::where(constant(Tensor::full<bool>({1}, true)), x, y), {}},
           {"!b ? x : y", ops::where(ops::logical_not(b), x, y), {"Where"}},
           {"re(x + iy)", ops::real(ops::complex(x, y)), {}},
           {"im(x + iy)", ops::imag(ops::complex(x, y)), {}},
           {"re(conj(z))", ops::real(ops::conj(z)), {}},
           {"im(conj(z))", ops::imag(ops::conj(z)), {"Neg"}},
           {"re(z) + i im(z)", ops::complex(ops::real(z), ops::imag(z)), {}},
           {"pairs and back", ops::view_as_complex(ops::view_as_real(z)), {}}});
  alone("canonicalize", {ops::where(b, x, y), ops::complex(ops::imag(z), ops::real(z)),
                         ops::complex(ops::real(z), ops::imag(w)), ops::real(ops::complex(f, x))});
}

TEST_F(ExactRewriteTest, CanonicalizeChainsConversionsThatLoseNothing) {
  exactly("canonicalize",
          {{"i32 i64 i8", i.astype(DType::int64).astype(DType::int8), {"Cast"}},
           {"f32 f64 f32", f.astype(DType::float64).astype(DType::float32), {}},
           {"i32 f64 c128", i.astype(DType::float64).astype(DType::complex128), {"Cast"}}});
  alone(
      "canonicalize",
      {x.astype(DType::float32).astype(DType::float64), j.astype(DType::int32).astype(DType::int64),
       i.astype(DType::float64).astype(DType::int8), b.astype(DType::int32).astype(DType::float64),
       i.astype(DType::int64).astype(DType::bool_)});
}

TEST_F(ExactRewriteTest, SpecializeDropsNeutralNumbers) {
  exactly("specialize", {{"x * 1", x * 1.0, {}},
                         {"1 * x", 1.0 * x, {}},
                         {"i * 1", i * 1, {}},
                         {"x / 1", x / 1.0, {}},
                         {"x^1", ops::pow(x, 1.0), {}},
                         {"x + -0", x + -0.0, {}},
                         {"x - 0", x - 0.0, {}},
                         {"z - 0", z - 0.0, {}},
                         {"i + 0", i + 0, {}},
                         {"|x| + 0", ops::abs(x) + 0.0, {"Abs"}}});
  // x + 0 turns -0 into +0; an infinite complex number times 1 is NaN.
  alone("specialize", {x + 0.0, 0.0 + x, x - -0.0, z * 1.0, z + 0.0, x * 0.0, 1.0 / x, b * true,
                       x * 2.0, 0.0 - x});
}

TEST_F(ExactRewriteTest, SpecializeMultipliesWhereOneProductIsSummed) {
  const Variable a = input(DType::complex128, {1, 6, 6}, "a"),
                 d = input(DType::complex128, {1, 6, 6}, "d"),
                 e = input(DType::complex128, {6, 6}, "e"),
                 two = input(DType::complex128, {2, 6, 6}, "two"),
                 open = input(DType::complex128, {kUnknown, 6, 6}, "open");
  exactly("specialize",
          {{"abc,abc->bc", ops::einsum("abc,abc->bc", a, d), {"Mul"}},
           {"abc,bc->bc", ops::einsum("abc,bc->bc", a, e), {"Mul"}},
           {"conjugated", ops::einsum("abc,abc->bc", ops::conj(a), d), {"Conj", "Mul"}}});
  alone("specialize", {ops::einsum("abc,abc->bc", two, two), ops::einsum("abc,abc->bc", open, open),
                       ops::einsum("abc,abc->cb", a, d), ops::einsum("abc,bc->abc", a, e),
                       ops::einsum("abc,bd->abcd", a, e)});
}

TEST_F(ExactRewriteTest, SpecializeFindsCheaperOps) {
  exactly("specialize", {{"x * -1", x * -1.0, {"Neg"}},
                         {"-1 * i", -1 * i, {"Neg"}},
                         {"x / 4", x / 4.0, {"Mul"}},
                         {"x / -0.125", x / -0.125, {"Mul"}},
                         {"f / 2^100", f / 0x1p100f, {"Mul"}},
                         {"i^2", ops::pow(i, 2), {"Square"}}});
  alone("specialize", {x / 3.0, x / 0x1p1023, f / 0x1p127f, x / 0.0, z * -1.0, ops::pow(x, 2.0),
                       ops::pow(i, 3), x / y});
}

TEST_F(ExactRewriteTest, DropUselessRemovesWhatChangesNothing) {
  const Variable row = input(DType::float64, {1, 6}, "row");
  exactly("drop_useless",
          {{"transposed twice", m.T().T() * m, {"Mul"}},
           {"axis added and removed", ops::squeeze(ops::expand_dims(x, {0}), {0}) * x, {"Mul"}},
           {"axis removed and added", ops::expand_dims(ops::squeeze(row, {0}), {0}) * m, {"Mul"}},
           {"flipped twice", ops::flip(ops::flip(m, {0, 1}), {1}) + m, {"Add"}},
           {"same extents", ops::reshape(ops::reshape(m, {24}), {4, 6}) * m, {"Mul"}},
           {"flat twice", ops::reshape(ops::reshape(m, {2, 12}), {24}) * 2.0, {"Mul"}},
           {"marker", ops::stop_gradient(x) * y, {"Mul"}},
           {"whole slice", m(slice(0, 4)) * m, {"Mul"}}});
  alone("drop_useless",
        {m.T() * 2.0, ops::reshape(u, {-1, 6}), ops::squeeze(ops::expand_dims(row, {0}), {1}),
         ops::flip(ops::flip(m, {0}).T(), {0}), u(slice(0, 4)), ops::specify_shape(u, {4, 6})});
}

TEST_F(ExactRewriteTest, DropUselessLeavesOutUnusedOutputsOfLoops) {
  const auto body = [](const std::vector<Variable>& v) {
    return std::vector{v[0] * 2.0, ops::sin(v[0])};
  };
  const auto r = ops::loop(body, {.states = {x}, .n_steps = 3});
  FunctionGraph graph({x}, {r.last(0)});
  const auto pass = [&] {
    for (const Rewrite& rewrite : rewrite_list()) {
      if (rewrite.name == "drop_useless") return rewrite.run(graph, {}).applied;
    }
    return -1;
  };
  EXPECT_EQ(pass(), 1);
  EXPECT_EQ(graph.outputs()[0].owner().output_count(), 1u);
  EXPECT_EQ(pass(), 0);
  const Tensor a = Tensor::from<double>({1, -3});
  const Tensor with = function({x}, r.last(0), {.mode = FastRun().exact()})(a);
  EXPECT_TRUE(testing::same_bits(with, function({x}, r.last(0), {.mode = NoRewrite()})(a)));
}

TEST_F(ExactRewriteTest, FoldConstantsComputesWhatNeedsNoInput) {
  const Variable two = constant(2.0), three = constant(Tensor::from<double>({3, 4, 5}));
  const Variable v = input(DType::float64, {3}, "v");
  exactly("fold_constants",
          {{"whole expressions", v * (ops::sqrt(two) + 1.0) / 3.0, {"Mul", "Div"}},
           {"arrays", v + ops::sin(three) * two, {"Add"}},
           {"sums", v * ops::sum(three), {"Mul"}}});
  alone("fold_constants",
        {v * two, x + ops::zeros({1000}), x * ops::eye(3)(index_t{0}),
         v(index_t{0}) * ops::sum(ops::broadcast_to(two, {1000}) * two),  // would be kept
         ops::assert_that(two, constant(Tensor::scalar(true)), "small") * v});
}

TEST_F(ExactRewriteTest, FoldShapesTakesExtentsFromWhereArraysComeFrom) {
  const Variable n = ops::shape(x * 2.0, 0);
  exactly("fold_shapes", {{"zeros like", ops::zeros_like(ops::exp(x)) + x, {"Alloc", "Add"}},
                          {"shape", ops::shape(ops::roll(x * 2.0, 1, 0)), {"Shape"}}});
  alone("fold_shapes", {ops::shape(x + y), ops::shape(x), ops::zeros_like(join(0, {x, y}))});
  const Function g = function({x}, n, {.mode = NoRewrite().including({"fold_shapes"})});
  EXPECT_EQ(g(Tensor::ones({7})).tensor().at<index_t>({}), 7);
}

TEST_F(ExactRewriteTest, ResolveSlicesLooksThroughPadsAndJoins) {
  const Variable p = ops::pad(m, {{1, 2}, {0, 3}});
  const Variable n = input(DType::float64, {2, 6}, "n");
  const Variable joined = join(0, {m, n});
  exactly("resolve_slices",
          {{"block", p(slice(1, 5), slice(0, 6)) * 2.0, {"Mul"}},
           {"inside", p(slice(2, 4), slice(1, 6, 2)) * 2.0, {"Mul"}},
           {"backwards", p(slice(4, 0, -1), slice(5, {}, -1)) * 2.0, {"Mul"}},
           {"row", p(index_t{3}, slice(0, 6)) * 2.0, {"Mul"}},
           {"new axis", p(slice(1, 5), newaxis, slice(0, 2)) * 2.0, {"Mul"}},
           {"first part", joined(slice(0, 4)) * m, {"Mul"}},
           {"second part", joined(index_t{-1}) * 2.0, {"Mul"}},
           {"pieces", join(0, {m(slice(0, 1)), m(slice(1, 3)), m(slice(3, 4))}) * m, {"Mul"}},
           {"some pieces", join(1, {m(all, slice(1, 3)), m(all, slice(3, 5))}) * 2.0, {"Mul"}},
           {"two borders", ops::pad(p, {{1, 0}, {0, 1}}), {"Pad"}}});
  alone("resolve_slices",
        {p(slice(0, 5), slice(0, 6)), p(slice(1, 6), slice(0, 6)), joined(slice(3, 5)),
         join(0, {m(slice(0, 1)), m(slice(2, 4))}), join(0, {m(slice(1, 2)), m(slice(0, 1))}),
         join(0, {m(slice(0, 4, 2)), m(slice(1, 4, 2))}),
         ops::pad(u, {{1, 1}, {0, 0}})(slice(1, -1)), join(0, {m(slice(0, 1)), n(slice(1, 2))})});
}

TEST_F(ExactRewriteTest, SplitBuffersGivesEachWriterItsOwn) {
  const Variable zeros = ops::zeros({400, 6});
  const auto split = [&](const std::vector<Variable>& results) {
    FunctionGraph graph({x, m}, results);
    for (const Rewrite& rewrite : rewrite_list()) {
      if (rewrite.name != "split_buffers") continue;
      const int applied = rewrite.run(graph, {}).applied;
      EXPECT_EQ(rewrite.run(graph, {}).applied, 0);
      return applied;
    }
    return -1;
  };
  const Variable one = zeros(index_t{0}).set(1.0), other = zeros(index_t{1}).set(2.0);
  EXPECT_EQ(split({one, other}), 1);
  EXPECT_EQ(split({one, other, zeros + zeros}), 2);
  EXPECT_EQ(split({one, other, ops::sum(zeros)}), 1);
  EXPECT_EQ(split({one, ops::sum(zeros)}), 0);
  EXPECT_EQ(split({one, other, zeros}), 0);  // an output
  const Variable dear = ops::sin(m);
  EXPECT_EQ(split({dear(index_t{0}).set(1.0), dear(index_t{1}).set(2.0)}), 0);
  const std::vector<std::string> expected{"Alloc", "SetSubtensorInPlace", "Alloc",
                                          "SetSubtensorInPlace"};
  EXPECT_EQ(testing::ops_in({}, {one, other}, "FastRun"), expected);
}

}  // namespace
}  // namespace palimpsest
