// SPDX-License-Identifier: Apache-2.0
// Passes that reorder arithmetic: graphs that they rewrite, similar graphs that they must not, and
// values.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "palimpsest/compile/function.hpp"
#include "palimpsest/compile/tensor_math.hpp"
#include "palimpsest/ops/ops.hpp"
#include "rewrite/rewrite_runner.hpp"

namespace palimpsest {
namespace {

using testing::Agreement;
using testing::expect_left_alone;
using testing::expect_rewritten;
using testing::RewriteCase;

struct ReorderingRewriteTest : ::testing::Test {
  static Variable input(DType dtype, Extents shape, std::string name) {
    return make_input({dtype, std::move(shape), {}}, std::move(name));
  }
  Variable x = input(DType::float64, {kUnknown}, "x");
  Variable y = input(DType::float64, {kUnknown}, "y");
  Variable z = input(DType::complex128, {kUnknown}, "z");
  Variable w = input(DType::complex128, {kUnknown}, "w");
  Variable i = input(DType::int64, {kUnknown}, "i");
  Variable s = input(DType::float64, {}, "s");
  Variable v4 = input(DType::float64, {4}, "v4");
  Variable v6 = input(DType::float64, {6}, "v6");
  Variable m = input(DType::float64, {4, 6}, "m");
  Variable n = input(DType::float64, {6, 5}, "n");
  Variable p = input(DType::float64, {4, 5}, "p");
  Variable c = input(DType::complex64, {4, 6}, "c");
  Variable d = input(DType::complex64, {6, 5}, "d");

  static void nearly(const std::string& pass, const std::vector<RewriteCase>& cases) {
    expect_rewritten(pass, cases, Agreement::rounding);
  }
  static void alone(const std::string& pass, const std::vector<Variable>& values) {
    for (const Variable& v : values) expect_left_alone(pass, v);
  }
  // The result of FastRun for one number.
  static double at(const Variable& x, const Variable& v, double value) {
    return function({x}, v)(Tensor::from<double>({value})).tensor().at<double>({0});
  }
};

TEST_F(ReorderingRewriteTest, WeighSpectraJoinsTransformsWithWeightsBetween) {
  const Variable mask = input(DType::float32, {4, 6}, "mask");
  const Variable row = input(DType::float32, {1, 6}, "row");
  const Variable q = input(DType::complex64, {4, 6}, "q");
  const FftOptions centered{FftNorm::ortho, true};
  const auto there = [&](const Variable& v, const Axes& axes = {0, 1}) {
    return ops::fft(v, axes);
  };
  const auto back = [&](const Variable& v, const Axes& axes = {0, 1}) {
    return ops::ifft(v, axes);
  };
  nearly("weigh_spectra",
         {{"real", back(there(c) * mask), {"WeightedFft"}},
          {"weights first", back(mask * there(c)), {"WeightedFft"}},
          {"complex", back(there(c) * q), {"WeightedFft"}},
          {"repeated", back(there(c, {1}) * row, {1}), {"WeightedFft"}},
          {"back first", there(back(c) * mask), {"WeightedFft"}},
          {"centered",
           ops::fft_adjoint(ops::fft(c, {0, 1}, centered) * mask, {0, 1}, centered),
           {"WeightedFft"}},
          {"twice", back(there(back(there(c) * mask)) * q), {"WeightedFft", "WeightedFft"}},
          {"weights computed", back(there(c) * ops::exp(mask)), {"Exp", "WeightedFft"}}});
  const Variable spectrum = there(c);
  const Variable one = input(DType::complex64, {1, 6}, "one");
  alone("weigh_spectra",
        {there(there(c) * mask),                        // the same sign
         back(there(c) * mask, {0}),                    // other axes
         ops::ifft(there(c) * mask, {0, 1}, centered),  // another center
         back(there(c) + mask),                         // no product
         back(spectrum * spectrum),                     // transforms that would be repeated
         back(spectrum * mask) + spectrum,              // the spectrum is read once more
         back(there(one, {1}) * mask, {1}),             // the weights repeat the spectrum
         back(there(c) * input(DType::float64, {4, 6}, "wide")),  // of another precision
         back(there(c) * input(DType::float32, {kUnknown, 6}, "unknown"))});
}

TEST_F(ReorderingRewriteTest, WeighSpectraLeavesOutZeros) {
  const Variable mask = input(DType::float32, {8, 9}, "mask");
  const Variable row = input(DType::float32, {1, 9}, "row");
  const FftOptions centered{FftNorm::ortho, true};
  const auto weighed = [&](const Variable& v, const Axes& axes = {0, 1}) {
    return ops::fft_adjoint(ops::fft(v, axes, centered) * mask, axes, centered);
  };
  const auto inside = [](const Variable& v) { return ops::index(v, {slice(2, 6), slice(0, 6)}); };
  const ops::PadWidths widths{{2, 2}, {0, 3}};
  nearly("weigh_spectra",
         {{"both axes", inside(weighed(ops::pad(c, widths))), {"WeightedFft"}},
          {"one axis",
           ops::index(ops::fft_adjoint(ops::fft(ops::pad(c, {{0, 0}, {1, 2}}), {1}) * row, {1}),
                      {All(), slice(1, 7)}),
           {"WeightedFft"}},
          {"part of the zeros",
           ops::index(weighed(ops::pad(c, widths)), {slice(2, 6)}),
           {"Pad", "WeightedFft"}}});
  const Variable padded = ops::pad(c, widths), twice = weighed(padded);
  // Zeros, the spectrum or results outside are needed, and so no step can leave them out.
  for (const Variable& v :
       {inside(weighed(ops::pad(c, widths, 1))), inside(weighed(ops::pad(c, {{1, 3}, {0, 3}}))),
        inside(weighed(padded)) + inside(padded * 2.0), inside(twice) + ops::sum(twice),
        inside(weighed(padded, {0}))}) {
    const Function f = function({c, mask}, v);
    for (const PlannedStep& step : f.plan(std::vector{c.type(), mask.type()}).steps) {
      EXPECT_EQ(step.node.op().parameters().find("zeros="), std::string::npos);
    }
  }
}

TEST_F(ReorderingRewriteTest, WeighSpectraSumsOverCoils) {
  const Variable maps = input(DType::complex64, {3, 4, 6}, "maps");
  const Variable others = input(DType::complex64, {3, 4, 6}, "others");
  const Variable mask = input(DType::float32, {1, 4, 6}, "mask");
  const auto weighed = [&](const Variable& v, const Axes& axes = {1, 2}) {
    return ops::ifft(ops::fft(v, axes) * mask, axes);
  };
  const auto coils = [&](const Variable& of) { return ops::einsum("cyx,yx->cyx", of, c); };
  const auto sum = [](const Variable& of, const Variable& v) {
    return ops::einsum("cyx,cyx->yx", of, v, {.conj_a = true});
  };
  nearly("weigh_spectra", {{"coils", sum(maps, weighed(coils(maps))), {"SenseNormal"}},
                           {"image first",
                            ops::einsum("cyx,cyx->yx", weighed(ops::einsum("yx,cyx->cyx", c, maps)),
                                        maps, {.conj_b = true}),
                            {"SenseNormal"}}});
  const Variable many = input(DType::complex64, {17, 4, 6}, "many");
  const Variable products = coils(maps);
  for (const Variable& v :
       {sum(others, weighed(coils(maps))),                           // other maps
        ops::einsum("cyx,cyx->yx", maps, weighed(coils(maps))),      // without conjugates
        sum(maps, weighed(coils(maps), {2})),                        // one axis
        sum(maps, weighed(coils(maps), {0, 2})),                     // along the coils
        sum(maps, weighed(products)) + ops::sum(products),           // products that are needed
        sum(many, weighed(ops::einsum("cyx,yx->cyx", many, c)))}) {  // summed in pairs
    const Function f =
        function({c, maps, others, many, mask}, v, {.on_unused_input = Reaction::ignore});
    const std::vector<TensorType> types{c.type(), maps.type(), others.type(), many.type(),
                                        mask.type()};
    for (const PlannedStep& step : f.plan(types).steps) {
      EXPECT_NE(step.node.op().name(), "SenseNormal");
    }
  }
}

TEST_F(ReorderingRewriteTest, SpecializePowersFindsProductsAndRoots) {
  nearly("specialize_powers",
         {{"x^2", ops::pow(x, 2.0), {"Square"}},
          {"x^3", ops::pow(x, 3.0), {"Square", "Mul"}},
          {"x^4", ops::pow(x, 4.0), {"Square", "Square"}},
          {"x^-1", ops::pow(x, -1.0), {"Reciprocal"}},
          {"x^-2", ops::pow(x, -2.0), {"Square", "Reciprocal"}},
          {"|x|^0.5", ops::pow(ops::abs(x), 0.5), {"Abs", "Sqrt"}},
          {"|x|^-0.5", ops::pow(ops::abs(x), -0.5), {"Abs", "Sqrt", "Reciprocal"}},
          {"z^2", ops::pow(z, 2.0), {"Square"}},
          {"|z|^2", ops::square(ops::abs(z)), {"Abs2"}},
          {"sqrt(|z|^2)", ops::sqrt(ops::abs2(z)), {"Abs"}},
          {"re(conj(z) z)", ops::real(ops::conj(z) * z), {"Abs2"}},
          {"z * 1", z * 1.0, {}},
          {"z * -1", z * -1.0, {"Neg"}}});
  alone("specialize_powers",
        {ops::pow(x, 0.5), ops::pow(x, 5.0), ops::pow(x, y), ops::pow(i, 2), ops::pow(2.0, x),
         ops::real(ops::conj(z) * w), ops::square(ops::abs(x)), x * 1.0});
}

TEST_F(ReorderingRewriteTest, StabilizeFindsFunctionsThatKeepDigits) {
  const Variable e = ops::exp(x), positive = ops::abs(x);
  nearly("stabilize",
         {{"log(1 + |x|)", ops::log(1.0 + positive), {"Abs", "Log1p"}},
          {"log(1 - s(x))", ops::log(1.0 - positive / 4.0), {"Abs", "Div", "Neg", "Log1p"}},
          {"exp(x) - 1", e - 1.0, {"Expm1"}},
          {"-1 + exp(x)", -1.0 + e, {"Expm1"}},
          {"1 - exp(x)", 1.0 - e, {"Expm1", "Neg"}},
          {"1 / (1 + exp(-x))", 1.0 / (1.0 + ops::exp(-x)), {"Sigmoid"}},
          {"1 / (1 + exp(x))", 1.0 / (e + 1.0), {"Neg", "Sigmoid"}},
          {"exp(x) / (1 + exp(x))", e / (1.0 + e), {"Sigmoid"}},
          {"1 - sigmoid(x)", 1.0 - ops::sigmoid(x), {"Neg", "Sigmoid"}},
          {"log(exp(x))", ops::log(e) * 2.0, {"Mul"}}});
  alone("stabilize",
        {ops::log(2.0 + x), ops::log(1.0 + z), e - 2.0, e - y, ops::exp(z) - 1.0,
         e / (1.0 + ops::exp(y)), 2.0 / (1.0 + e), ops::log(ops::exp(z)), ops::log1p(x) - 1.0});
}

TEST_F(ReorderingRewriteTest, StabilizeDoesNotOverflowOrLoseDigits) {
  const Variable sigmoid = ops::sigmoid(x);
  EXPECT_EQ(at(x, ops::log(1.0 + x), 1e-20), 1e-20);
  EXPECT_EQ(at(x, ops::exp(x) - 1.0, 1e-20), 1e-20);
  EXPECT_EQ(at(x, ops::log(ops::exp(x)), 1000), 1000);
  EXPECT_EQ(at(x, ops::log(sigmoid), -1000), -1000);
  EXPECT_EQ(at(x, ops::log(sigmoid), 1000), 0);
  EXPECT_EQ(at(x, ops::log(1.0 - sigmoid), 1000), -1000);
  EXPECT_EQ(at(x, ops::log(1.0 + ops::exp(x)), 1000), 1000);
  EXPECT_NEAR(at(x, ops::log(1.0 + ops::exp(x)), 0.5), std::log1p(std::exp(0.5)), 1e-15);
  EXPECT_EQ(at(x, ops::exp(x) / (1.0 + ops::exp(x)), 1000), 1);
}

// Lengths known only at a call, including 0.
TEST_F(ReorderingRewriteTest, StabilizeFindsLogSumExpOfAnyLength) {
  const Variable u = dmatrix("u");
  const Tensor big = Tensor::from<double>({1000, 1001, 999}), none = Tensor::zeros({0});
  const double expected = 1001 + std::log(1 + std::exp(-1.0) + std::exp(-2.0));
  const Function total = function({x}, ops::log(ops::sum(ops::exp(x))));
  EXPECT_NEAR(double(total(big)), expected, 1e-9);
  EXPECT_EQ(double(total(none)), -std::numeric_limits<double>::infinity());
  EXPECT_NEAR(double(total(big - 5000.0)), expected - 5000, 1e-9);
  const Function direct = function({x}, ops::logsumexp(x));
  EXPECT_NEAR(double(direct(big)), expected, 1e-9);
  EXPECT_EQ(double(direct(none)), -std::numeric_limits<double>::infinity());
  const Function rows = function({u}, ops::log(ops::sum(ops::exp(u), {.axes = 1})));
  EXPECT_NEAR(rows(big.view({1, 3})).tensor().at<double>({0}), expected, 1e-9);
  EXPECT_EQ(rows(Tensor::zeros({2, 0})).tensor().to_vector<double>(),
            (std::vector<double>(2, -std::numeric_limits<double>::infinity())));
  EXPECT_EQ(rows(Tensor::zeros({0, 2})).tensor().shape(), Extents{0});
  const Variable e = ops::exp(x), shifted = ops::exp(x - ops::max(x));
  const Function softmax = function({x}, ops::log(e / ops::sum(e)));
  const Function careful = function({x}, ops::log(shifted / ops::sum(shifted)));
  const Tensor wide = Tensor::from<double>({0, 2000, 1000});
  for (const Function& f : {softmax, careful}) {
    EXPECT_EQ(f(wide).tensor().to_vector<double>(), (std::vector<double>{-2000, 0, -1000}));
    EXPECT_NEAR(f(big).tensor().to_vector<double>()[1], 1001 - expected, 1e-12);
  }
  EXPECT_EQ(softmax(none).tensor().numel(), 0);
  const Function gradient = function({x}, grad(ops::logsumexp(x), x));
  EXPECT_NEAR(double(function({x}, ops::sum(x))(gradient(big))), 1.0, 1e-12);
}

TEST_F(ReorderingRewriteTest, TransposedProductsAreWrittenThatWay) {
  const Variable q = input(DType::float64, {5, 4}, "q"), r = dmatrix("r");
  nearly("apply_linear_identities", {{"(mn)T", ops::dot(m, n).T(), {"Contract"}},
                                     {"q + (mn)T", q + ops::dot(m, n).T(), {"Contract", "Add"}}});
  const auto steps = [&](const Variable& v) {
    return testing::ops_in(testing::inputs_of({v}), {v}, "FastRun");
  };
  const std::vector<std::string> one{"Gemm"};
  EXPECT_EQ(steps(q + s * ops::dot(m, n).T()), one);
  EXPECT_EQ(steps(q - ops::dot(m, n).T()), one);
  EXPECT_EQ(steps(dmatrix("z") + s * ops::dot(r, dmatrix("t")).T()), one);
  // The product itself is also used: one product, and its transpose as a view.
  const Variable product = ops::dot(m, n);
  const auto both = testing::ops_in({m, n}, {product, product.T() * 2.0}, "FastRun");
  EXPECT_EQ(std::count(both.begin(), both.end(), "Contract"), 1);
}

TEST_F(ReorderingRewriteTest, StabilizeFindsLogSumExp) {
  const Variable e = ops::exp(m);
  const Tensor big = Tensor::full({4, 6}, 1000.0);
  const auto value = [&](const Variable& v) { return function({m}, v)(big).tensor(); };
  const double expected = 1000 + std::log(6.0);
  EXPECT_NEAR(value(ops::log(ops::sum(e, {Axes{1}}))).at<double>({0}), expected, 1e-9);
  EXPECT_NEAR(value(ops::log(ops::sum(e, {Axes{1}, true}))).at<double>({3, 0}), expected, 1e-9);
  EXPECT_NEAR(value(ops::log(ops::sum(e))).at<double>({}), 1000 + std::log(24.0), 1e-9);
  const Variable softmax = e / ops::sum(e, {Axes{1}, true});
  EXPECT_NEAR(value(ops::log(softmax)).at<double>({2, 3}), -std::log(6.0), 1e-9);
  testing::expect_left_alone("stabilize", ops::logsumexp(m, {Axes{1}}), "itself");
  testing::expect_left_alone("stabilize", ops::log(ops::sum(m, {Axes{1}})));
  testing::expect_left_alone("stabilize", ops::log(ops::sum(e, {Axes{1}}) + 2.0));
}

TEST_F(ReorderingRewriteTest, CallLibrariesFindsProductsThatAreAdded) {
  const Variable q = input(DType::complex64, {4, 5}, "q");
  const Variable product = ops::dot(m, n);
  nearly("call_libraries", {{"p + m n", p + product, {"Gemm"}},
                            {"m n + p", product + p, {"Gemm"}},
                            {"p - m n", p - product, {"Gemm"}},
                            {"m n - p", product - p, {"Gemm"}},
                            {"p + 0.5 m n", p + 0.5 * product, {"Gemm"}},
                            {"s p + m n", s * p + product, {"Gemm"}},
                            {"p - s m n", p - s * product, {"Neg", "Gemm"}},
                            {"p + p + m n", p + p + product, {"Gemm"}},
                            {"3 p - -(m n)", p * 3.0 - (-product), {"Gemm"}},
                            {"complex", q * 2.0 + ops::dot(c, d), {"Gemm"}},
                            {"of a matrix and a vector", v4 + 2.0 * ops::dot(m, v6), {"Gemv"}},
                            {"outer", m + 0.1 * ops::outer(v4, v6), {"Ger"}},
                            {"two products",
                             product + ops::dot(p, ops::dot(n.T(), n)),
                             {"Contract", "Contract", "Gemm"}}});
  alone("call_libraries", {p + ops::exp(product), product * p, ops::expand_dims(v4, {1}) + product,
                           i + ops::dot(i, i), s + ops::dot(v4, v4), product + product});
}

TEST_F(ReorderingRewriteTest, CallLibrariesKeepsWhatIsReadElsewhere) {
  const Variable product = ops::dot(m, n);
  FunctionGraph graph({m, n, p}, {p + product, product});
  for (const Rewrite& rewrite : rewrite_list()) {
    if (rewrite.name == "call_libraries") {
      EXPECT_EQ(rewrite.run(graph, {}).applied, 0);
    }
  }
}

TEST_F(ReorderingRewriteTest, CallLibrariesFindsSumsOfProducts) {
  const Variable c2 = input(DType::complex64, {4, 6}, "c2");
  nearly("call_libraries",
         {{"sum(x y)", ops::sum(x * y), {"Contract"}},
          {"sum(conj(z) w)", ops::sum(ops::conj(z) * w), {"Contract"}},
          {"sum over a matrix", ops::sum(c * ops::conj(c2)), {"Contract"}},
          {"sum(x^2)", ops::sum(ops::square(x)), {"Norm2"}},
          {"sum(|z|^2)", ops::sum(ops::abs2(z)), {"Norm2"}},
          {"matrix times vector", ops::sum(m * v6, {Axes{1}}), {"Contract"}},
          {"vector times matrix", ops::sum(m * ops::expand_dims(v4, {1}), {Axes{0}}), {"Contract"}},
          {"matrix times matrix",
           ops::sum(ops::expand_dims(m, {2}) * ops::expand_dims(n, {0}), {Axes{1}}),
           {"Contract"}}});
  alone("call_libraries", {ops::sum(m * m, {Axes{1}}), ops::sum(i * i), ops::sum(x + y),
                           ops::prod(x * y), ops::sum(x * 2.0)});
}

// The examples of the specification.
TEST_F(ReorderingRewriteTest, UpdateByAnOuterProductIsOneDestructiveStep) {
  for (const bool flipped : {false, true}) {
    Tensor value = Tensor::random_normal({4, 6}, DType::float64, {1, 0});
    if (flipped) value = value.flip(Axes{0, 1});
    SharedVariable a = shared(value, {.name = "a"});
    const Function update =
        function({v4, v6}, {}, {.updates = {{a, a.var() + 0.1 * ops::outer(v4, v6)}}});
    EXPECT_EQ(testing::op_names(update.graph()), (std::vector<std::string>{"GerInPlace"}));
    const Tensor left = Tensor::random_normal({4}, DType::float64, {2, 0});
    const Tensor right = Tensor::random_normal({6}, DType::float64, {3, 0});
    update(left, right);
    const Tensor result = a.get_value();
    for (index_t r = 0; r < 4; ++r) {
      for (index_t t = 0; t < 6; ++t) {
        EXPECT_NEAR(result.at<double>({r, t}),
                    value.at<double>({r, t}) + 0.1 * left.at<double>({r}) * right.at<double>({t}),
                    1e-14);
      }
    }
  }
}

TEST_F(ReorderingRewriteTest, SumOfTwoAndAProductIsOnePureProduct) {
  const std::vector<std::string> expected{"Gemm"};
  EXPECT_EQ(testing::ops_in({p, m, n}, {p + p + ops::dot(m, n)}, "FastRun"), expected);
  EXPECT_EQ(testing::ops_in({p, m, n}, {p + p + ops::dot(m, n)}, "FastCompile"), expected);
}

TEST_F(ReorderingRewriteTest, LinearIdentities) {
  const Variable row = constant(Tensor::from<double>({1, 2, 3, 4, 5, 6}, Extents{1, 6}));
  const Variable other = constant(Tensor::from<double>({6, 5, 4, 3, 2, 1}, Extents{1, 6}));
  const Variable column = constant(Tensor::from<double>({1, 2, 3, 4}, Extents{4, 1}));
  const FftOptions ortho{FftNorm::ortho};
  nearly("apply_linear_identities",
         {{"inverse of a transform", ops::ifft(ops::fft(c, {0}), {0}) * c, {"Mul"}},
          {"adjoint of a transform", ops::fft_adjoint(ops::fft(c, {0, 1}), {0, 1}), {"Mul"}},
          {"conjugated factor", ops::dot(ops::conj(c), d), {"Contract"}},
          {"sum of repeated", ops::sum(ops::broadcast_to(v6, {4, 6}), {Axes{0}}), {"Mul"}},
          {"sum of all of it", ops::sum(ops::broadcast_to(v6, {4, 6})), {"Sum", "Mul"}},
          {"one axis of two",
           ops::sum(ops::broadcast_to(ops::expand_dims(v4, {1}), {3, 4, 6}), {Axes{2}}),
           {"Mul"}},
          {"two numbers", x * 2.0 * 3.0, {"Mul", "Mul"}},
          {"two diagonals", m * row * other, {"Mul", "Mul"}}});
  // Constants of 12 and of 24 elements; their product has 8 or 9.
  const auto matrix = [](Extents extents, std::uint64_t seed) {
    return constant(Tensor::random_normal(std::move(extents), DType::complex128, {seed}));
  };
  const Variable A = matrix({4, 3}, 1), B = matrix({2, 6}, 2), C = matrix({6, 4}, 3);
  const Variable u = input(DType::complex128, {3}, "u"), U = input(DType::complex128, {3, 5}, "U");
  const Variable AH = ops::conj(ops::transpose(A));
  // The product of the constants is left to fold_constants.
  const std::vector<std::string> two{"Contract", "Contract"};
  nearly("apply_linear_identities",
         {{"Gram matrix", ops::dot(matrix({3, 4}, 4), ops::dot(A, u)), two},
          {"of many columns",
           ops::dot(B, ops::dot(C, ops::dot(A, U))),
           {"Contract", "Contract", "Contract"}},
          {"of the conjugate", ops::dot(B, ops::conj(ops::dot(matrix({6, 3}, 5), U))), two},
          {"from the right", ops::dot(ops::dot(ops::transpose(U), matrix({3, 6}, 6)), C), two}});
  EXPECT_EQ(testing::ops_in({u}, {ops::dot(AH, ops::dot(A, u))}, "FastRun"),
            (std::vector<std::string>{"Contract"}));
  alone("apply_linear_identities",
        {ops::ifft(ops::fft(c, {0}, ortho), {1}, ortho), ops::dot(c, d), ops::sum(m, {Axes{0}}),
         ops::sum(ops::broadcast_to(v6, {4, 6}), {Axes{1}}), m * v6, m * row * column, m * v6 * row,
         x * 1e-200 * 1e-200, x * 1e200 * 1e200, ops::max(ops::broadcast_to(v6, {4, 6}), {Axes{0}}),
         ops::dot(matrix({8, 2}, 7), ops::dot(matrix({2, 3}, 8), u)),  // more than in both
         ops::dot(u, ops::dot(matrix({3, 3}, 9), U))});
}

TEST_F(ReorderingRewriteTest, CollectTermsMakesSumsAndProductsShorter) {
  const Variable a = input(DType::float64, {kUnknown}, "a");
  nearly("collect_terms", {{"numbers", (x + 1.0) + 2.0, {"Add"}},
                           {"numbers apart", 1.0 + (x - y) - 3.0, {"Sub", "Add"}},
                           {"a term twice", x + y + x, {"Mul", "Add"}},
                           {"multiples", x * 2.0 - y + x * 3.0, {"Mul", "Sub"}},
                           {"taken off twice", x - y - y, {"Mul", "Sub"}},
                           {"factors", x * 2.0 * y * 3.0, {"Mul", "Mul"}},
                           {"quotients", x / 3.0 * y * 6.0, {"Mul", "Mul"}},
                           {"inverse numbers", x / 4.0 * y * 4.0, {"Mul"}},
                           {"complex", z * 2.0 + w + z, {"Mul", "Add"}}});
  alone("collect_terms", {x + y + a, x * 2.0 * y, x + 1.0, x - y + y, x * 1e-200 * y * 1e-200,
                          v6 + m + v6,  // v6 is added to whole rows
                          i + i + i, 2.0 / x * 3.0, x * 2.0 + y * 3.0});
}

TEST_F(ReorderingRewriteTest, CollectTermsKeepsWhatIsReadElsewhere) {
  const Variable t = x + 1.0;
  FunctionGraph graph({x}, {t + 2.0, t});
  for (const Rewrite& rewrite : rewrite_list()) {
    if (rewrite.name == "collect_terms") {
      EXPECT_EQ(rewrite.run(graph, {}).applied, 0);
    }
  }
}

// Deeper than any stack could hold.
TEST_F(ReorderingRewriteTest, LongSumsAreNoDanger) {
  Variable v = x;
  for (int k = 0; k < 30'000; ++k) v = v + (k % 2 == 0 ? y : x);
  FunctionGraph graph({x, y}, {v});
  for (const Rewrite& rewrite : rewrite_list()) {
    if (rewrite.position >= 1 && rewrite.position < 49) rewrite.run(graph, {});
  }
  EXPECT_GE(graph.node_count(), 1u);
}

}  // namespace
}  // namespace palimpsest
