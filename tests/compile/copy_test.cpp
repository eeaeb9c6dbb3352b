// SPDX-License-Identifier: Apache-2.0
// Copies of functions.
#include <gtest/gtest.h>

#include "palimpsest/compile/function.hpp"
#include "palimpsest/memory/allocator.hpp"
#include "palimpsest/ops/ops.hpp"
#include "support/expect_error.hpp"
#include "support/vectors.hpp"

namespace palimpsest {
namespace {

using testing::expect_error;

using testing::values;
using testing::vector_of;

struct CopyTest : ::testing::Test {
  Variable x = make_input({DType::float64, {kUnknown}, {}}, "x");
  SharedVariable s = shared(vector_of({1, 2}), {.name = "s"});
  SharedVariable t = shared(vector_of({10, 20}), {.name = "t"});
  Function f = function({x}, {Out(s.var() * x, {.borrow = true})},
                        {.updates = {{s, s.var() + x}}, .name = "f"});
};

// g = f.copy(): other frames, equal results for equal arguments.
TEST_F(CopyTest, HasFramesOfItsOwnAndEqualResults) {
  const Function plain = function({x}, {Out(ops::roll(x, 1, 0), {.borrow = true})});
  const Function g = plain.copy();
  const Tensor a = plain(vector_of({1, 2}))[0], b = g(vector_of({1, 2}))[0];
  EXPECT_EQ(values(a), values(b));
  EXPECT_NE(a.raw_data(), b.raw_data());
  EXPECT_EQ(&plain.graph(), &g.graph());  // nothing is rewritten again
}

TEST_F(CopyTest, SharesFramesWhenAsked) {
  const Function plain = function({x}, {Out(ops::roll(x, 1, 0), {.borrow = true})});
  const Function g = plain.copy({.share_memory = true});
  const Tensor a = vector_of({1, 2});
  const void* address = plain(a)[0].raw_data();
  const MemoryScope scope;
  EXPECT_EQ(g(a)[0].raw_data(), address);
  EXPECT_EQ(scope.calls(), 0u);
}

TEST_F(CopyTest, ContainersStayCommonUnlessSwapped) {
  const Function same = f.copy(), swapped = f.copy({.swap = {{s, t}}});
  same(vector_of({1, 1}));
  EXPECT_EQ(values(s.get_value()), (std::vector<double>{2, 3}));
  EXPECT_EQ(values(swapped(vector_of({1, 1}))[0]), (std::vector<double>{10, 20}));
  EXPECT_EQ(values(t.get_value()), (std::vector<double>{11, 21}));
  EXPECT_EQ(values(s.get_value()), (std::vector<double>{2, 3}));
  EXPECT_EQ(&swapped.container(s.var()), &t.container());
}

TEST_F(CopyTest, WrongSwapsAreRefused) {
  SharedVariable other = shared(vector_of({1}), {.name = "other"}), number = shared(1.0);
  expect_error<ValueError>(
      [&] {
        f.copy({.swap = {{other, t}}});
      },
      "'other' is not used by the function");
  expect_error<TypeError>(
      [&] {
        f.copy({.swap = {{s, number}}});
      },
      "swap of 's': got float64 (), expected float64 (2,)");
  const Function both = function({}, {s.var() + t.var()});
  expect_error<ValueError>([&] { both.copy({.swap = {{s, t}}}); }, "two inputs");
}

TEST_F(CopyTest, DeletedUpdatesDisappearWithTheInputsThatOnlyTheyNeeded) {
  const Variable y = make_input({DType::float64, {kUnknown}, {}}, "y");
  const Function both =
      function({x, y}, {t.var() * x}, {.updates = {{s, s.var() + y}, {t, t.var() + x}}});
  const Function g = both.copy({.delete_updates = true});
  EXPECT_EQ(g.inputs(), (std::vector<Variable>{x}));
  ASSERT_EQ(g.shared_variables().size(), 1u);
  EXPECT_EQ(values(g(vector_of({2, 2}))[0]), (std::vector<double>{20, 40}));
  EXPECT_EQ(values(t.get_value()), (std::vector<double>{10, 20}));
  EXPECT_EQ(values(s.get_value()), (std::vector<double>{1, 2}));
}

// The step that computed the new value worked in the container; its pure twin must not.
TEST_F(CopyTest, DeletedUpdatesLeaveNoStepThatOverwritesTheContainer) {
  const Variable e = s.var() + x;
  const Function inplace = function({x}, {ops::sum(e), e * 2.0}, {.updates = {{s, e}}});
  const Function g = inplace.copy({.delete_updates = true});
  const Storage storage = s.container().value().storage();
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(values(g(vector_of({1, 1}))[1]), (std::vector<double>{4, 6}));
  }
  EXPECT_EQ(values(s.get_value()), (std::vector<double>{1, 2}));
  EXPECT_TRUE(s.container().value().storage().is(storage));
  inplace(vector_of({1, 1}));
  EXPECT_EQ(values(s.get_value()), (std::vector<double>{2, 3}));
}

// A step that overwrites an argument may still do so.
TEST_F(CopyTest, DeletedUpdatesLeaveArgumentsToTheStepsThatOverwriteThem) {
  const Function g = function({In(x, {.is_mutable = true})}, {ops::cumsum(x, 0)},
                              {.updates = {{s, s.var() + 1.0}}});
  const Function copy = g.copy({.delete_updates = true});
  for (const Function& each : {g, copy}) {
    Tensor a = vector_of({1, 2, 3});
    EXPECT_EQ(values(each(a)[0]), (std::vector<double>{1, 3, 6}));
    EXPECT_EQ(values(a), (std::vector<double>{1, 3, 6})) << "it was overwritten";
  }
  EXPECT_EQ(values(s.get_value()), (std::vector<double>{2, 3}));
}

TEST_F(CopyTest, NameIsGivenOrDerived) {
  EXPECT_EQ(f.copy().name(), "f copy");
  EXPECT_EQ(f.copy({.name = "g"}).name(), "g");
}

TEST_F(CopyTest, FlagsAreKept) {
  const Function trusting = function({x}, {x * 2.0}, {.trust_input = true});
  trusting.allow_gc(true);
  const Function g = trusting.copy();
  EXPECT_THROW(g(Tensor::ones({1}, DType::int32)), DTypeError);
  g(vector_of({1}));
  EXPECT_EQ(g.idle_frame_count(), 0u);
}

}  // namespace
}  // namespace palimpsest
