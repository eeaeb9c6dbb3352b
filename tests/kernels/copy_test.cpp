// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/kernels/arrays/copy.hpp"

#include "kernels/arrays.hpp"
#include "support/cache_size.hpp"

namespace palimpsest::testing {
namespace {

void expect_copy(const Array& x, Array& out, void (*copy)(const ConstView&, const MutableView&)) {
  copy(x.view(), out.mutable_view());
  for (index_t i = 0; i < out.count(); ++i) {
    ASSERT_EQ(out.value(i), x.value(i)) << to_string(x.extents()) << to_string(x.strides())
                                        << to_string(out.strides()) << name_of(x.dtype());
  }
  ASSERT_TRUE(out.gaps_are_intact());
}

TEST(Copy, TranspositionsOfEverySizeOfElements) {
  Random random(41);
  for (const DType dtype :
       {DType::int8, DType::int16, DType::float32, DType::complex64, DType::complex128}) {
    for (const auto& [m, n] : {std::pair<index_t, index_t>{1, 200},
                               {64, 64},
                               {65, 63},
                               {3, 130},
                               {67, 3},
                               {128, 96},
                               {130, 201},
                               {70, 1100},
                               {1100, 70}}) {
      for (const index_t streamed : {1, 0}) {
        for (const Strides& strides :
             {Strides{1, m}, Strides{-1, m}, Strides{1, -m - 3}, Strides{-1, -m}}) {
          Array x(dtype, {m, n}, strides), out(dtype, {m, n}, {n + (n % 2) * 5, 1}, n % 3);
          x.fill(random);
          set_streaming_bytes(streamed);
          expect_copy(x, out, strided_copy);
          set_streaming_bytes(0);
        }
      }
    }
  }
}

TEST(Copy, ShortRowsAndColumnsOfAllLengths) {
  Random random(45);
  for (const DType dtype : {DType::int32, DType::complex64, DType::complex128}) {
    for (index_t n = 1; n <= 70; ++n) {
      for (const index_t m : {33, 160, 203}) {
        for (const index_t streamed : {1, 0}) {
          Array x(dtype, {m, n}, {1, m}), out(dtype, {m, n}, {n, 1}, n % 2);
          Array y(dtype, {n, m}, {1, n}), back(dtype, {n, m}, {m, 1}, n % 3);
          x.fill(random);
          y.fill(random);
          set_streaming_bytes(streamed);
          expect_copy(x, out, strided_copy);
          expect_copy(y, back, strided_copy);
          set_streaming_bytes(0);
        }
      }
    }
  }
}

TEST(Copy, TranspositionsToRowsThatBeginAnywhereInALine) {
  Random random(47);
  for (const DType dtype : {DType::float32, DType::complex64, DType::complex128}) {
    for (const auto& [m, n] : {std::pair<index_t, index_t>{37, 100}, {3, 100}, {2, 83}}) {
      for (index_t shift = 0; shift < 16; ++shift) {
        for (const index_t gap : {0, 1, 16}) {
          Array x(dtype, {m, n}, {1, m}), out(dtype, {m, n}, {n + gap, 1}, shift);
          x.fill(random);
          set_streaming_bytes(1);
          expect_copy(x, out, strided_copy);
          set_streaming_bytes(0);
        }
      }
    }
  }
}

TEST(Copy, TranspositionsOfComplexNumbersThatAreAlignedAsRealOnes) {
  Random random(48);
  constexpr index_t kRows = 40, kColumns = 31;
  Array x(DType::float32, {1 + 2 * kRows * kColumns}), out(DType::float32, x.extents());
  x.fill(random);
  const Extents extents{kColumns, kRows};
  const Strides across{1, kColumns}, along{kRows, 1};
  set_streaming_bytes(1);
  strided_copy({x.address(1), DType::complex64, extents, across},
               {out.address(1), DType::complex64, extents, along});
  set_streaming_bytes(0);
  for (index_t i = 0; i < kRows * kColumns; ++i) {
    const index_t from = i % kRows * kColumns + i / kRows;
    for (const index_t part : {1, 2}) {
      ASSERT_EQ(out.value(2 * i + part), x.value(2 * from + part)) << i;
    }
  }
}

TEST(Copy, StreamedRowsOfAllAlignments) {
  Random random(46);
  for (const index_t n : {511, 512, 513, 1000}) {
    for (index_t shift = 0; shift < 16; ++shift) {
      Array x(DType::float32, {7, n}, {n + 3, 1}), out(DType::float32, {7, n}, {n + 5, 1}, shift);
      x.fill(random);
      set_streaming_bytes(1);
      expect_copy(x, out, strided_copy);
      set_streaming_bytes(0);
    }
  }
}

TEST(Copy, StreamedTilesWithWholeLines) {
  // Rows of the destination are whole cache lines, so they are streamed past the caches.
  Random random(42);
  for (const DType dtype : {DType::float32, DType::float64, DType::complex128}) {
    // The second kind is visited along diagonals.
    for (const auto& [m, n] : {std::pair<index_t, index_t>{192, 256}, {512, 1024}}) {
      Array x(dtype, {m, n}, {1, m}), out(dtype, {m, n});
      x.fill(random);
      set_streaming_bytes(1);
      expect_copy(x, out, strided_copy);
      set_streaming_bytes(0);
    }
  }
}

TEST(Copy, RowsBackwards) {
  Random random(43);
  for (const DType dtype :
       {DType::int8, DType::int16, DType::float32, DType::float64, DType::complex128}) {
    for (const index_t n : {1, 2, 3, 15, 16, 17, 100}) {
      Array x(dtype, {n}, {-1}), out(dtype, {n});
      x.fill(random);
      expect_copy(x, out, strided_copy);
    }
  }
}

TEST(Copy, OnThreadsAnyLayoutsAndDtypes) {
  Random random(44);
  for (int trial = 0; trial < 60; ++trial) {
    const Extents extents = random_extents(random, 4, 700, 400000);
    const Array x = random_array(random, random_dtype(random), extents, true);
    Array out(trial % 2 == 0 ? x.dtype() : random_dtype(random), extents,
              random_strides(random, extents, false));
    Array expected(out.dtype(), extents);
    strided_copy(x.view(), expected.mutable_view());
    run_copy(x.view(), out.mutable_view());
    ASSERT_EQ(elements(out), elements(expected)) << to_string(extents) << " trial " << trial;
    ASSERT_TRUE(out.gaps_are_intact());
  }
}

TEST(Copy, OnThreadsLargeTranspositions) {
  Random random(45);
  Array x(DType::complex64, {500, 700}, {1, 500}), out(DType::complex64, {500, 700}),
      thin(DType::complex64, {3, 300000}, {1, 3}), flat(DType::complex64, {3, 300000});
  x.fill(random);
  thin.fill(random);
  expect_copy(x, out, run_copy);
  expect_copy(thin, flat, run_copy);
}

TEST(Copy, OntoItselfAndNothing) {
  Array x(DType::float32, {400, 500}), none(DType::float32, {0, 1000000});
  Random random(46);
  x.fill(random);
  const auto before = elements(x);
  run_copy(x.view(), x.mutable_view());
  EXPECT_EQ(elements(x), before);
  run_copy(none.view(), none.mutable_view());
}

}  // namespace
}  // namespace palimpsest::testing
