// SPDX-License-Identifier: Apache-2.0
// Convenient uses: results, numbers, tensors and shared variables in place of the values they
// represent.
#include <gtest/gtest.h>

#include <complex>
#include <sstream>

#include "palimpsest/compile/function.hpp"
#include "palimpsest/memory/copy_stats.hpp"
#include "palimpsest/ops/ops.hpp"
#include "support/expect_error.hpp"

namespace palimpsest {
namespace {

using testing::expect_error;
using V = std::vector<double>;

struct InterfaceTest : ::testing::Test {
  Variable x = dvector("x"), y = dvector("y");
  Tensor a = Tensor::from<double>({1, 2, 3}), b = Tensor::from<double>({10, 20, 30});
  static V numbers(const Tensor& t) { return t.to_vector<double>(); }
};

// -- results -------------------------------------------------------------------------------------

TEST_F(InterfaceTest, AResultConvertsToWhatItIsUsedAs) {
  const Function twice = function({x}, x * 2.0), total = function({x}, ops::sum(x));
  const double d = total(a);
  const float f = total(a);
  const index_t n = total(a);
  const std::complex<double> c = total(a);
  const bool is_there = total(a);
  EXPECT_EQ(d, 6.0);
  EXPECT_EQ(f, 6.0f);
  EXPECT_EQ(n, 6);
  EXPECT_EQ(c, std::complex<double>(6));
  EXPECT_TRUE(is_there);
  EXPECT_EQ(total(a).item<std::uint8_t>(), 6);
  const Tensor t = twice(a);
  EXPECT_EQ(numbers(t), (V{2, 4, 6}));
  const Value value = twice(a);
  EXPECT_EQ(numbers(value.tensor()), (V{2, 4, 6}));
  const std::vector<Tensor> list = twice(a);
  EXPECT_EQ(list.size(), 1u);
  SharedVariable s = shared(twice(a), {.name = "s"});
  const auto kept = twice(twice(a));
  s.set_value(kept);
  EXPECT_EQ(numbers(s.get_value()), (V{4, 8, 12}));
  s.set_value(twice(s.get_value({.borrow = true})), {.borrow = true});
  EXPECT_EQ(numbers(s.get_value()), (V{8, 16, 24}));
  EXPECT_EQ(numbers(function({x, y}, x + y)(twice(a), kw("y", twice(b)))), (V{22, 44, 66}));
  std::ostringstream stream;
  stream << total(a);
  EXPECT_EQ(stream.str(), "tensor(6., dtype=float64, device=cpu)");
}

// The result is moved, so nothing else holds a handle on it.
TEST_F(InterfaceTest, AResultIsExchangedWithoutAClone) {
  SharedVariable s = shared(a);
  const Function twice = function({x}, x * 2.0);
  const CopyStats stats;
  const Tensor old = s.exchange(twice(a));
  EXPECT_EQ(stats.counts().lazy_clones, 0u);
  EXPECT_EQ(numbers(s.get_value()), (V{2, 4, 6}));
}

// A function with a list of one output still gives one result.
TEST_F(InterfaceTest, AListOfOneConvertsToo) {
  const Function f = function({x}, {ops::sum(x)});
  EXPECT_EQ(double(f(a)), 6.0);
  EXPECT_EQ(f(a)[0].item<double>(), 6.0);
}

TEST_F(InterfaceTest, SeveralResultsAreNoSingleOne) {
  const Function f = function({x}, {x, ops::sum(x)}, {.name = "both"}), none = function({}, {});
  const Results results = f(a);
  expect_error<TypeError>([&] { [[maybe_unused]] const double d = results; },
                          "[both] gives 2 results, expected one. Try both(...)[0]");
  expect_error<TypeError>([&] { [[maybe_unused]] const Tensor t = f(a); },
                          "[both] gives 2 results");
  expect_error<TypeError>([&] { [[maybe_unused]] const Value v = f(a); }, "[both] gives 2 results");
  expect_error<TypeError>([&] { f(a).item<double>(); }, "[both] gives 2 results");
  expect_error<TypeError>([&] { [[maybe_unused]] const Tensor t = none(); },
                          "[function] gives no result");
  expect_error<ShapeError>([&] { [[maybe_unused]] const double d = function({x}, x)(a); }, "item");
}

// -- arguments -----------------------------------------------------------------------------------

TEST_F(InterfaceTest, NumbersInBracesAreAVector) {
  const Function f = function({x, y}, x + y);
  EXPECT_EQ(numbers(f({1.0, 2.0}, {10.0, 20.0})), (V{11, 22}));
  EXPECT_EQ(numbers(f({1, 2, 3}, a)), (V{2, 4, 6}));
  EXPECT_EQ(numbers(f({1, 2, 3}, kw("y", {1.0, 1.0, 1.0}))), (V{2, 3, 4}));
  EXPECT_EQ(numbers(function({x}, x * 2.0)({1.5})), V{3});
  const Variable z = dvector("z"), w = dvector("w");
  EXPECT_EQ(
      double(function({x, y, z, w}, ops::sum(x + y + z + w))({1.0}, a(slice(0, 1)), {3.0}, {4.0})),
      9.0);
  expect_error<TypeError>([&] { f({1.0, 2.0}); }, "got 1 arguments, expected 2");
}

// -- operands ------------------------------------------------------------------------------------

TEST_F(InterfaceTest, TensorsAndNumbersMixWithVariables) {
  const auto value = [&](const Variable& v) { return numbers(function({x}, v)(a)); };
  EXPECT_EQ(value(x + b), (V{11, 22, 33}));
  EXPECT_EQ(value(b - x), (V{9, 18, 27}));
  EXPECT_EQ(value(ops::add(x, 1.0)), (V{2, 3, 4}));
  EXPECT_EQ(value(ops::mul(2.0, x)), (V{2, 4, 6}));
  EXPECT_EQ(value(ops::maximum(x, b)), (V{10, 20, 30}));
  EXPECT_EQ(value(ops::dot(x, b)), V{140});
  EXPECT_EQ(value(ops::dot(b, x)), V{140});
  EXPECT_EQ(value(ops::dot(x, 2.0)), (V{2, 4, 6}));
  EXPECT_EQ(value(ops::join(0, {x, b})), (V{1, 2, 3, 10, 20, 30}));
  EXPECT_EQ(value(x[Tensor::from<index_t>({2, 0})]), (V{3, 1}));
  EXPECT_EQ(value(ops::where(x > 1.5, x, b)), (V{10, 2, 3}));
  // A weak number stays weak, a tensor does not.
  const Variable f32 = fvector("f32");
  EXPECT_EQ(ops::add(f32, 2.0).dtype(), DType::float32);
  EXPECT_EQ(ops::add(f32, Tensor::scalar(2.0)).dtype(), DType::float64);
  // The constant has the tensor's current value.
  Tensor later = b.clone();
  const Variable sum = x + later;
  later.fill(0.0);
  EXPECT_EQ(value(sum), (V{11, 22, 33}));
}

TEST_F(InterfaceTest, AssignmentOperatorsRebindTheHandle) {
  Variable v = x;
  const Variable before = v, twice = v * 2.0;
  v += 1.0;
  v *= b;
  v -= x;
  v /= 2.0;
  EXPECT_EQ(numbers(function({x}, v)(a)), (V{9.5, 29, 58.5}));
  EXPECT_TRUE(before == x);
  EXPECT_EQ(numbers(function({x}, twice)(a)), (V{2, 4, 6}));
  v = x;
  v += v;
  EXPECT_EQ(numbers(function({x}, v)(a)), (V{2, 4, 6}));
}

template <class A, class B>
concept CanAddTo = requires(A a, B b) {
  a += b;
};
template <class A, class B>
concept CanCompare = requires(A a, B b) {
  a == b;
};
// Neither would do what it seems to.
static_assert(!CanAddTo<SharedVariable&, double>);
static_assert(!CanCompare<Variable, Tensor>);
static_assert(CanCompare<Variable, SharedVariable>);

TEST_F(InterfaceTest, ASharedVariableIsUsedAsAVariable) {
  const SharedVariable s = shared(Tensor::from<double>({1, 2, 3, 4}, Extents{2, 2}));
  const auto value = [&](const Variable& v) { return numbers(function({}, v)()); };
  EXPECT_EQ(value(s(all, 0)), (V{1, 3}));
  EXPECT_EQ(value(s[1]), (V{3, 4}));
  EXPECT_EQ(value(s.T()), (V{1, 3, 2, 4}));
  EXPECT_EQ(value(s.reshape({4})), (V{1, 2, 3, 4}));
  EXPECT_EQ(value(s.ravel() + 1.0), (V{2, 3, 4, 5}));
  EXPECT_EQ(value(s.sum(0)), (V{4, 6}));
  EXPECT_EQ(value(s.max()), V{4});
  EXPECT_EQ(value(s(slice(0, 1)).inc(10.0)), (V{11, 12, 3, 4}));
  EXPECT_EQ(value(s + Tensor::ones({2, 2})), (V{2, 3, 4, 5}));
  EXPECT_EQ(s.astype(DType::float32).dtype(), DType::float32);
  EXPECT_EQ(s.rank(), 2u);
}

// -- looking things up ---------------------------------------------------------------------------

TEST_F(InterfaceTest, ContainersAreFoundByTheNameOfASharedVariable) {
  SharedVariable s = shared(a, {.name = "s"}), t = shared(b, {.name = "t"}),
                 other = shared(b, {.name = "t"});
  const Function f = function({In(x, {.value = a})}, x + s, {.name = "f"});
  EXPECT_EQ(&f.container("s"), &s.container());
  EXPECT_EQ(&f.container("x"), &f.container(x));
  expect_error<ValueError>([&] { f.container("z"); },
                           "[f.container] 'z': got the name of no input with a value and of no "
                           "shared variable, expected one of 'x', 's'");
  expect_error<ValueError>([&] { f.container(""); }, "expected one of 'x', 's'");
  const Function g = function({}, t + other);
  expect_error<ValueError>([&] { g.container("t"); }, "several shared variables are called 't'");
}

TEST_F(InterfaceTest, OptionsCanBeSetInAnyOrder) {
  SharedVariable s = shared(a);
  FunctionOptions options;
  options.name = "f";
  options.updates = {{s, s + 1.0}};
  function({}, {}, options)();
  EXPECT_EQ(numbers(s.get_value()), (V{2, 3, 4}));
}

}  // namespace
}  // namespace palimpsest
