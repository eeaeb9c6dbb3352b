// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/kernels/arrays/pad.hpp"

#include "kernels/arrays.hpp"

namespace palimpsest::testing {
namespace {

TEST(Pad, SurroundsWithTheValueAndWritesNothingElse) {
  Random random(61);
  for (int trial = 0; trial < 200; ++trial) {
    const Extents inner = random_extents(random, 4, 9, 500);
    Extents outer = inner, before = inner;
    for (std::size_t i = 0; i < inner.size(); ++i) {
      before[i] = uniform(random, 0, 3);
      outer[i] = inner[i] + before[i] + uniform(random, 0, 3);
    }
    const Array x = random_array(random, random_dtype(random), inner, true);
    Array y(x.dtype(), outer, random_strides(random, outer, false));
    Array value(x.dtype(), {});
    value.set_value(0, 3);
    run_pad(x.view(), before, value.address(0), y.mutable_view());
    for (index_t i = 0; i < y.count(); ++i) {
      index_t rest = i, number = 0, factor = 1;
      bool inside = true;
      for (std::size_t axis = outer.size(); axis-- > 0;) {
        const index_t position = rest % outer[axis] - before[axis];
        rest /= outer[axis];
        inside = inside && position >= 0 && position < inner[axis];
        number += position * factor;
        factor *= inner[axis];
      }
      ASSERT_EQ(y.value(i), inside ? x.value(number) : value.value(0));
    }
    ASSERT_TRUE(y.gaps_are_intact());
  }
}

TEST(Pad, OfNothingIsTheValueEverywhere) {
  const Array x(DType::float32, {2, 0});
  Array y(DType::float32, {4, 3});
  const float value = 7;
  run_pad(x.view(), Extents{1, 1}, &value, y.mutable_view());
  for (index_t i = 0; i < 12; ++i) EXPECT_EQ(y.get<float>(i), 7);
}

}  // namespace
}  // namespace palimpsest::testing
