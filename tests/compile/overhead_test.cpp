// SPDX-License-Identifier: Apache-2.0
// A call on a warm frame allocates nothing on the heap; bench/compile measures its time.
#include <gtest/gtest.h>

#include "palimpsest/compile/function.hpp"
#include "palimpsest/ops/ops.hpp"
#include "support/malloc_counter.hpp"
#include "support/window.hpp"

namespace palimpsest {
namespace {

struct OverheadTest : ::testing::Test {
  Variable x = make_input({DType::float64, {kUnknown}, {}}, "x");
  Variable y = make_input({DType::float64, {kUnknown}, {}}, "y");
  Tensor a = Tensor::ones({1}), b = Tensor::ones({1});

  template <class F>
  static std::size_t mallocs_of(F&& call) {
    for (int i = 0; i < 3; ++i) call();
    const std::size_t before = testing::count_of_mallocs();
    for (int i = 0; i < 10; ++i) call();
    return testing::count_of_mallocs() - before;
  }
};

TEST_F(OverheadTest, BorrowedResultOfOneStepAllocatesNothing) {
  const Function f = function({x, y}, {Out(x + y, {.borrow = true})});
  EXPECT_EQ(mallocs_of([&] { f(a, b); }), 0u);
  const std::vector<Tensor> arguments{a, b};
  std::vector<Tensor> results(1);
  EXPECT_EQ(mallocs_of([&] { f.call(arguments, results); }), 0u);
}

TEST_F(OverheadTest, UpdateInPlaceAllocatesNothing) {
  SharedVariable s = shared(Tensor::zeros({1}));
  const Function f = function({x}, {}, {.updates = {{s, s.var() + x}}});
  EXPECT_EQ(mallocs_of([&] { f(a); }), 0u);
  EXPECT_EQ(s.get_value().item<double>(), 13.0);
}

TEST_F(OverheadTest, ExchangeOfContainersAllocatesNothing) {
  SharedVariable s = shared(Tensor::zeros({1})), t = shared(Tensor::ones({1}));
  const Function f = function({}, {}, {.updates = {{s, t}, {t, s.var() + 1.0}}});
  EXPECT_EQ(mallocs_of([&] { f(); }), 0u);
}

TEST_F(OverheadTest, ReadingAContainerAllocatesNothing) {
  if (!testing::kKeepsHandles) GTEST_SKIP() << "a sanitizer is to see each handle";
  const SharedVariable s = shared(Tensor::zeros({1}));
  const Function f = function({x}, {Out(s.var() + x, {.borrow = true})});
  EXPECT_EQ(mallocs_of([&] { f(a); }), 0u);
}

TEST_F(OverheadTest, WritingIntoAGivenTensorAllocatesNothing) {
  const Function f = function({x, y}, x + y);
  testing::Window out({1});
  EXPECT_EQ(mallocs_of([&] { f.call_into(out, a, b); }), 0u);
}

}  // namespace
}  // namespace palimpsest
