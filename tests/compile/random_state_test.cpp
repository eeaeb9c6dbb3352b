// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/compile/random_state.hpp"

#include <gtest/gtest.h>

#include <set>

#include "palimpsest/compile/function.hpp"
#include "palimpsest/ops/ops.hpp"

namespace palimpsest {
namespace {

using V = std::vector<double>;
V values(const Tensor& t) { return t.to_vector<double>(); }

TEST(RandomState, CallsDifferAndTheKeyIsUpdatedInPlace) {
  RandomState random(7);
  const Function f = function({}, random.normal({4}));
  const void* address = random.key().container().value().raw_data();
  std::set<V> seen;
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(seen.insert(values(f())).second);
  EXPECT_EQ(random.key().container().value().raw_data(), address);
  EXPECT_EQ(random.key().version(), 5U);
}

TEST(RandomState, EqualSeedsGiveEqualNumbers) {
  RandomState a(7), b(7), c(8);
  const Function f = function({}, {a.normal({3}), a.uniform({2, 2})});
  const Function g = function({}, {b.normal({3}), b.uniform({2, 2})});
  const Function h = function({}, {c.normal({3}), c.uniform({2, 2})});
  for (int i = 0; i < 3; ++i) {
    const auto x = f(), y = g(), z = h();
    EXPECT_TRUE(equal(x[0], y[0]) && equal(x[1], y[1]));
    EXPECT_FALSE(equal(x[0], z[0]));
  }
  a.key().set_value(Tensor::from<std::uint64_t>({7, 0}));
  b.key().set_value(Tensor::from<std::uint64_t>({7, 0}));
  EXPECT_TRUE(equal(f()[0], g()[0]));
}

TEST(RandomState, DrawsInOneGraphDiffer) {
  RandomState random(7);
  const Function f = function({}, {random.normal({3}), random.normal({3}), random.next()});
  const auto r = f();
  EXPECT_FALSE(equal(r[0], r[1]));
  RandomState same = random;
  const Function g = function({}, {same.integers({20}, 0, 3), same.bits({2}, DType::uint8)});
  for (double v : values(Tensor(g()[0]).to(DType::float64))) EXPECT_TRUE(v >= 0 && v < 3);
}

TEST(RandomState, StaysWhereDefaultUpdatesDoNotHappen) {
  RandomState random(7);
  const Function f = function({}, random.normal({3}), {.no_default_updates = true});
  EXPECT_TRUE(equal(Tensor(f()), Tensor(f())));
}

}  // namespace
}  // namespace palimpsest
