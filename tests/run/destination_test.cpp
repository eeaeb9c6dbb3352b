// SPDX-License-Identifier: Apache-2.0
// Destinations inside larger arrays: no byte beside them changes, whatever part of an intermediate
// a result is.
#include <gtest/gtest.h>

#include <complex>
#include <functional>

#include "palimpsest/compile/function.hpp"
#include "palimpsest/inspect/debug/debug_mode.hpp"
#include "palimpsest/inspect/debug/nan_guard.hpp"
#include "palimpsest/memory/allocator.hpp"
#include "palimpsest/ops/ops.hpp"
#include "support/expect_error.hpp"
#include "support/window.hpp"

namespace palimpsest {
namespace {

using testing::Window;
using testing::window_layout;
using testing::Windows;

std::vector<Mode> all_modes() {
  return {FastRun(), FastCompile(), NoRewrite(), NanGuardMode(),
          DebugMode({.patience = 1, .preallocated = {}})};
}

struct DestinationTest : ::testing::Test {
  const Variable x = dvector("x"), y = ops::roll(x, 1, 0);
  const Tensor a = Tensor::from<double>({1, 2, 3, 4, 5, 6});

  Variable trace() const {
    return ops::loop([](const auto& v) { return std::vector<Variable>{ops::roll(v[0], 1, 0)}; },
                     {.states = {x}, .n_steps = 3})
        .trace(0);
  }

  // The results of a function, into windows of all layouts, in all modes.
  void expect_writes_inside(const std::vector<Out>& outs) const {
    for (const Mode& mode : all_modes()) {
      const Function f = function({x}, outs, {.mode = mode});
      std::vector<Tensor> expected(outs.size());
      f.call(std::vector{a}, expected);
      for (Tensor& t : expected) t = t.clone();
      for (std::size_t k = 0; k < kWindowLayouts.size(); ++k) {
        Windows windows;
        for (std::size_t i = 0; i < outs.size(); ++i) {
          windows.add(expected[i].shape(), expected[i].dtype(), window_layout(k + i));
        }
        std::vector<Tensor> into = windows.tensors();
        f.call_into(into, a);
        for (std::size_t i = 0; i < outs.size(); ++i) EXPECT_TRUE(equal(into[i], expected[i])) << i;
        windows.expect_intact();
      }
    }
  }
};

TEST_F(DestinationTest, APartOfAnIntermediateIsWrittenInside) {
  const std::vector<std::pair<const char*, Variable>> parts = {
      {"leading", y(slice(0, 3))},
      {"last", y(slice(2, 5))},
      {"one element", y(slice(0, 1))},
      {"no element", ops::roll(x, 1, 0)(slice(0, 0)) + 0.0},
      {"whole", y},
      {"of a gather", ops::take(x, constant(Tensor::from<index_t>({0, 1, 2, 3})), 0)(slice(0, 2))},
      {"of fused steps", (x * 2.0)(slice(0, 3))},
      {"of a sum", (ops::cumsum(x) + 0.0)(slice(0, 5))},
      {"of a split", ops::split(ops::cumsum(x), {2, 4}, 0)[0]},
      {"of a product", ops::outer(x, x)(slice(0, 4)).reshape({24})},
      {"of a spectrum", ops::real(ops::fft(x, Axes{0}))(slice(0, 4))},
      {"complex", ops::fft(x, Axes{0})(slice(0, 4))},
      {"real parts", ops::real(ops::complex(y, ops::cumsum(x)))},
      {"transposed", ops::outer(x, x)(slice(0, 2)).T()},
      {"reversed", y(slice(3, {}, -1))},
      {"a step of a loop", trace()(0)(slice(0, 5))},
      {"rows of a loop", trace()(slice(0, 2)).reshape({12})},
  };
  for (const auto& [name, part] : parts) {
    SCOPED_TRACE(name);
    expect_writes_inside({Out(part)});
    expect_writes_inside({Out(part, {.borrow = true})});
  }
}

TEST_F(DestinationTest, SeveralPartsOfOneIntermediateAreWrittenInside) {
  const Variable part = y(slice(0, 4)), rest = y(slice(2, 6));
  for (const auto& outs : std::vector<std::vector<Variable>>{
           {part, y}, {y, part}, {part, rest}, {part, part}, {y(slice(0, 1)), part, y}}) {
    std::vector<Out> owned, borrowed;
    for (const Variable& v : outs) {
      owned.push_back(Out(v));
      borrowed.push_back(Out(v, {.borrow = true}));
    }
    expect_writes_inside(owned);
    expect_writes_inside(borrowed);
  }
}

TEST_F(DestinationTest, APartIsWrittenInsideBesideAnUpdate) {
  SharedVariable s = shared(Tensor::zeros({6}), {.name = "s"});
  const Function f = function({x}, y(slice(0, 4)), {.updates = {{s, y}}});
  Window out({4});
  f.call_into(out.tensor(), a);
  EXPECT_EQ(out.tensor().to_vector<double>(), (std::vector<double>{6, 1, 2, 3}));
  EXPECT_EQ(s.get_value().to_vector<double>(), (std::vector<double>{6, 1, 2, 3, 4, 5}));
}

// Memory that ends with the destination: a write beyond it would end the process.
TEST_F(DestinationTest, AnIntermediateFarLargerThanTheDestinationIsMadeElsewhere) {
  const Function f = function({x}, y(slice(0, 150000)));
  const Tensor value = Tensor::arange(200000, DType::float64);
  std::vector<Tensor> outs;
  for (int i = 0; i < 20; ++i) outs.push_back(Tensor::zeros({150000}));
  for (Tensor& out : outs) f.call_into(out, value);
  for (const Tensor& out : outs) EXPECT_EQ(out.at<double>({149999}), 149998.0);
}

TEST_F(DestinationTest, AWholeIntermediateIsStillMadeInItsDestination) {
  const Function f = function({x}, Out(y, {.borrow = true}));
  const Function g = function({x}, y);
  Window out({6});
  f.call_into(out.tensor(), a);
  g.call_into(out.tensor(), a);
  const CopyStats stats;
  const MemoryScope scope;
  f.call_into(out.tensor(), a);
  g.call_into(out.tensor(), a);
  EXPECT_EQ(scope.calls(), 0u);
  EXPECT_EQ(stats.counts().eager_copies, 0u);
}

}  // namespace
}  // namespace palimpsest
