// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/compile/tensor_math.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include "palimpsest/compile/function.hpp"
#include "palimpsest/inspect/debug/debug_mode.hpp"
#include "palimpsest/memory/allocator.hpp"
#include "palimpsest/ops/ops.hpp"
#include "support/expect_error.hpp"

namespace palimpsest {
namespace {

using testing::expect_error;
using C = std::complex<double>;
using V = std::vector<double>;

struct TensorMathTest : ::testing::Test {
  Tensor a = Tensor::from<double>({1, 2, 3}), b = Tensor::from<double>({10, 20, 30});
  static V numbers(const Tensor& t) { return t.to_vector<double>(); }
};

TEST_F(TensorMathTest, OperatorsTakeTensorsAndNumbers) {
  EXPECT_EQ(numbers(a + b), (V{11, 22, 33}));
  EXPECT_EQ(numbers(b - a), (V{9, 18, 27}));
  EXPECT_EQ(numbers(2.0 * a - 1), (V{1, 3, 5}));
  EXPECT_EQ(numbers(b / a), (V{10, 10, 10}));
  EXPECT_EQ(numbers(b % 7.0), (V{3, 6, 2}));
  EXPECT_EQ(numbers(-a), (V{-1, -2, -3}));
  EXPECT_EQ(numbers(a < 2.5), (V{1, 1, 0}));
  EXPECT_EQ(numbers((a < 2.5) & (a > 1.5)), (V{0, 1, 0}));
  EXPECT_EQ(numbers(~(a < 2.5)), (V{0, 0, 1}));
  EXPECT_EQ(numbers(eq(a, 2.0)), (V{0, 1, 0}));
  EXPECT_EQ(numbers(where(a < 2.5, a, 0.0)), (V{1, 2, 0}));
  EXPECT_EQ(numbers(minimum(a, 2)), (V{1, 2, 2}));
  EXPECT_EQ((a + C(0, 1)).dtype(), DType::complex128);
  EXPECT_EQ((a.to(DType::float32) * 2.0).dtype(), DType::float32);
  EXPECT_EQ((a.to(DType::int32) * 2.0).dtype(), DType::float64);
  EXPECT_EQ(numbers(a.to(DType::int32) / 2), (V{0.5, 1, 1.5}));
}

TEST_F(TensorMathTest, ExtentsOfOneBroadcast) {
  const Tensor column = Tensor::from<double>({1, 2}, Extents{2, 1});
  EXPECT_EQ((column + a).shape(), (Extents{2, 3}));
  EXPECT_EQ(numbers(column + a), (V{2, 3, 4, 3, 4, 5}));
  expect_error<ShapeError>([&] { a + Tensor::ones({2}); }, "[Add] axis 0: extents differ");
  expect_error<ValueError>([&] { a + Tensor(); }, "undefined");
}

TEST_F(TensorMathTest, FunctionsAreThoseOfGraphs) {
  EXPECT_EQ(sum(a).item<double>(), 6);
  const Tensor m = Tensor::from<double>({1, 2, 3, 4}, Extents{2, 2});
  EXPECT_EQ(numbers(sum(m, 0)), (V{4, 6}));
  EXPECT_EQ(numbers(sum(m, {0, 1})), V{10});
  EXPECT_EQ(sum(m, 1, true).shape(), (Extents{2, 1}));
  EXPECT_EQ(mean(m).item<double>(), 2.5);
  EXPECT_EQ(prod(m).item<double>(), 24);
  EXPECT_EQ(numbers(max(m, 0)), (V{3, 4}));
  EXPECT_EQ(min(m).item<double>(), 1);
  EXPECT_EQ(argmax(m).item<index_t>(), 3);
  EXPECT_TRUE(any(m > 3.5).item<bool>());
  EXPECT_FALSE(all_of(m > 3.5).item<bool>());
  EXPECT_EQ(norm(Tensor::from<C>({C(3, 4), C(0, 12)})).item<double>(), 13);
  EXPECT_EQ(dot(a, b).item<double>(), 140);
  EXPECT_EQ(numbers(dot(m, Tensor::ones({2}))), (V{3, 7}));
  EXPECT_EQ(numbers(matmul(m, m)), (V{7, 10, 15, 22}));
  EXPECT_EQ(outer(a, b).shape(), (Extents{3, 3}));
  EXPECT_EQ(vdot(Tensor::from<C>({C(0, 1)}), Tensor::from<C>({C(0, 1)})).item<C>(), C(1));
  EXPECT_EQ(numbers(abs(Tensor::from<C>({C(3, 4)}))), V{5});
  EXPECT_EQ(numbers(real(conj(Tensor::from<C>({C(3, 4)})))), V{3});
  EXPECT_TRUE(allclose(exp(log(a)), a));
  EXPECT_TRUE(allclose(sqrt(square(a)), abs(a)));
  EXPECT_TRUE(allclose(square(sin(a)) + square(cos(a)), Tensor::ones({3})));
}

TEST_F(TensorMathTest, ResultsOfCallsAreOperands) {
  const Variable x = dvector("x");
  const Function twice = function({x}, x * 2.0);
  const auto r = twice(a);
  EXPECT_EQ(numbers(r + 1.0), (V{3, 5, 7}));
  EXPECT_EQ(numbers(r + r), (V{4, 8, 12}));
  EXPECT_EQ(numbers(a - twice(b)), (V{-19, -38, -57}));
  EXPECT_EQ(numbers(-twice(a)), (V{-2, -4, -6}));
  EXPECT_EQ(norm(twice(Tensor::from<double>({3, 4}))).item<double>(), 10);
  EXPECT_EQ(numbers(r < 5), (V{1, 1, 0}));
}

// Both sets of names at once.
namespace both {
using namespace palimpsest::ops;
Tensor of(const Tensor& a, const Results& r) {
  return sum(a) + dot(a, r) + minimum(a, 2.0) + abs(r) + norm(r) + where(a < r, a, 1.0);
}
Variable of(const Variable& x, const Tensor& a) { return sum(x) + dot(x, a) + minimum(x, a); }
}  // namespace both
TEST_F(TensorMathTest, NamesOfOpsMayBeVisibleToo) {
  const Variable x = dvector("x");
  const Function same = function({x}, x + 0.0);
  EXPECT_EQ(both::of(a, same(a)).numel(), 3);
  EXPECT_EQ(numbers(function({x}, both::of(x, b))(a)), (V{147, 148, 149}));
}

// Next to a variable a tensor becomes a constant of a graph; next to a tensor there is no graph.
TEST_F(TensorMathTest, VariablesMakeGraphs) {
  const Variable x = dvector("x");
  static_assert(std::is_same_v<decltype(x + a), Variable>);
  static_assert(std::is_same_v<decltype(a * x), Variable>);
  static_assert(std::is_same_v<decltype(shared(a) + a), Variable>);
  static_assert(std::is_same_v<decltype(a + a), Tensor>);
  static_assert(std::is_same_v<decltype(1.0 + a), Tensor>);
  static_assert(std::is_same_v<decltype(x + 1.0), Variable>);
  EXPECT_EQ(numbers(function({x}, x + (a + b))(a)), (V{12, 24, 36}));
}

TEST_F(TensorMathTest, AssignmentWritesIntoTheTensor) {
  Tensor t = a.clone();
  const Tensor view = t(slice(0, 2));
  const Tensor copy = t.lazy_clone();
  t += b;
  t *= 2.0;
  EXPECT_EQ(numbers(t), (V{22, 44, 66}));
  EXPECT_EQ(numbers(view), (V{22, 44}));
  EXPECT_EQ(numbers(copy), (V{1, 2, 3}));
  t -= t;
  EXPECT_EQ(numbers(t), (V{0, 0, 0}));
  t += t.flip(std::vector<index_t>{0});
  Tensor rising = Tensor::arange(5, DType::float64);
  Tensor later = rising(slice(1, 5));
  later += rising(slice(0, 4));  // overlapping elements are read before they are written
  EXPECT_EQ(numbers(rising), (V{0, 1, 3, 5, 7}));
  rising /= 2.0;
  EXPECT_EQ(numbers(later), (V{0.5, 1.5, 2.5, 3.5}));
  Tensor one = Tensor::ones({1}), integers = Tensor::ones({3}, DType::int64);
  expect_error<ShapeError>([&] { one += a; }, "(3,)");
  expect_error<DTypeError>([&] { integers += 0.5; }, "float64");
  EXPECT_EQ(numbers(one), V{1});
  EXPECT_EQ(numbers(integers), (V{1, 1, 1}));
}

TEST_F(TensorMathTest, ResultsAreIndependentOfOperands) {
  const Tensor same = conj(a), part = real(a);
  Tensor r = real(a);
  r.fill(7.0);
  EXPECT_EQ(numbers(a), (V{1, 2, 3}));
  EXPECT_FALSE(shares_storage(same, a));
  EXPECT_FALSE(shares_storage(part, a));
}

TEST_F(TensorMathTest, OneCompiledFunctionServesAllCallsOfASignature) {
  const Tensor x = Tensor::ones({17}), y = Tensor::ones({17});
  x + y;
  const std::size_t count = tensor_detail::function_count();
  for (int i = 0; i < 100; ++i) y + x * 3.0 - x * 2.5;
  const std::size_t with_three = tensor_detail::function_count();
  EXPECT_LE(with_three, count + 2);  // a product with a number, a difference
  for (int i = 0; i < 100; ++i) y + x* double(i) - x * 2.5;
  EXPECT_EQ(tensor_detail::function_count(), with_three);
}

TEST_F(TensorMathTest, TheNumberOfKeptFunctionsIsBounded) {
  for (index_t n = 1; n < 400; ++n) {
    EXPECT_EQ((Tensor::ones({n}) + 1.0).shape(0), n);
    EXPECT_LE(tensor_detail::function_count(), tensor_detail::kMostFunctions);
  }
  EXPECT_EQ(tensor_detail::function_count(), tensor_detail::kMostFunctions);
}

TEST_F(TensorMathTest, NoMemoryStaysBehind) {
  const Tensor m = Tensor::ones({200, 200});
  (void)norm(matmul(m, m) - m);  // compiled
  const MemoryScope scope;
  const index_t before = scope.live_bytes();
  const double value = norm(matmul(m, m) - m).item<double>();
  EXPECT_EQ(value, 199.0 * 200);
  EXPECT_EQ(scope.live_bytes(), before);
}

TEST_F(TensorMathTest, TheConfigOfTheCallerDoesNotMatter) {
  const Tensor x = Tensor::ones({19});
  ConfigOverrides overrides;
  overrides.mode = "NoSuchMode";
  overrides.budget = 1;
  overrides.profile = true;
  const ConfigScope scope(overrides);
  EXPECT_EQ(sum(x + 2.0).item<double>(), 57);
}

TEST_F(TensorMathTest, SeveralThreadsComputeAtOnce) {
  std::vector<std::thread> threads;
  std::array<double, 4> totals{};
  for (std::size_t k = 0; k < totals.size(); ++k) {
    threads.emplace_back([&, k] {
      for (index_t i = 0; i < 300; ++i) {
        const Tensor x = Tensor::full({1 + i % 300}, static_cast<double>(k));
        totals[k] += sum(x + 1.0).item<double>() / static_cast<double>(x.numel());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (std::size_t k = 0; k < totals.size(); ++k) {
    EXPECT_NEAR(totals[k], 300.0 * (static_cast<double>(k) + 1), 1e-9);
  }
}

}  // namespace
}  // namespace palimpsest
