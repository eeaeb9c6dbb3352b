// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/kernels/arrays/roll.hpp"

#include "kernels/arrays.hpp"

namespace palimpsest::testing {
namespace {

void expect_rolled(const Array& x, std::span<const index_t> shifts, Array y) {
  const Extents& extents = x.extents();
  run_roll(x.view(), shifts, y.mutable_view());
  for (index_t i = 0; i < y.count(); ++i) {
    index_t rest = i, source = 0, factor = 1;
    for (std::size_t axis = extents.size(); axis-- > 0;) {
      const index_t n = extents[axis];
      source += (rest % n + n - shifts[axis]) % n * factor;
      rest /= n;
      factor *= n;
    }
    ASSERT_EQ(y.value(i), x.value(source));
  }
  ASSERT_TRUE(y.gaps_are_intact());
}

TEST(Roll, RotatesAllAxesAndWritesNothingElse) {
  Random random(62);
  for (int trial = 0; trial < 300; ++trial) {
    const Extents extents = random_extents(random, 4, 9, 500);
    Extents shifts = extents;
    for (index_t& n : shifts) n = n > 1 ? uniform(random, 0, n - 1) : 0;
    const Array x = random_array(random, random_dtype(random), extents, true);
    expect_rolled(x, shifts, Array(x.dtype(), extents, random_strides(random, extents, false)));
  }
}

// Several bands of both pieces of an axis; rows with both pieces in one cache line.
TEST(Roll, GoesInBandsThroughLargeArrays) {
  Random random(63);
  for (const Extents& extents : {Extents{300, 1000}, Extents{150000, 3}, Extents{3, 80000, 2}}) {
    const Array x = random_array(random, DType::float32, extents, false);
    for (const index_t last : {index_t{0}, index_t{1}}) {
      Extents shifts(extents.size(), 1);
      shifts[0] = extents[0] / 3;
      shifts.back() = last;
      expect_rolled(x, shifts, Array(DType::float32, extents));
    }
  }
}

}  // namespace
}  // namespace palimpsest::testing
