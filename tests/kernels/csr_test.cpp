// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/kernels/matrices/csr.hpp"

#include <gmock/gmock.h>

#include <limits>
#include <string>
#include <vector>

#include "kernels/arrays.hpp"

namespace palimpsest::testing {
namespace {

using Complex = std::complex<double>;

// The columns of all values, and the start of each row.
struct Pattern {
  Pattern(Random& random, index_t rows, index_t n_columns, index_t most) {
    for (index_t r = 0; r < rows; ++r) {
      starts.push_back(static_cast<index_t>(columns.size()));
      const index_t n = n_columns == 0 ? 0 : uniform(random, 0, most);
      for (index_t k = 0; k < n; ++k) columns.push_back(uniform(random, 0, n_columns - 1));
    }
    starts.push_back(n());
  }
  index_t n() const { return static_cast<index_t>(columns.size()); }
  std::vector<index_t> columns, starts;
};

struct Matrix {
  Matrix(Random& random, DType dtype, index_t rows, index_t columns, index_t most,
         DType index = DType::int64)
      : Matrix(random, dtype, Pattern(random, rows, columns, most), index) {}
  Matrix(Random& random, DType dtype, const Pattern& p, DType index)
      : values(dtype, {p.n()}, {-1}),
        column(index, {p.n()}, {3}),
        start(DType::int64, {static_cast<index_t>(p.starts.size())}, {2}) {
    values.fill_normal(random);
    for (index_t k = 0; k < p.n(); ++k) {
      column.set_value(k, static_cast<double>(p.columns[static_cast<std::size_t>(k)]));
    }
    for (index_t r = 0; r < start.count(); ++r) {
      start.set<index_t>(r, p.starts[static_cast<std::size_t>(r)]);
    }
  }
  SparseRows view() const { return {values.view(), column.view(), start.view()}; }

  Array values, column, start;
};

TEST(Csr, BothDirectionsAreSumsOverTheValuesInEveryLayout) {
  Random random(51);
  for (const DType dtype : {DType::float32, DType::float64, DType::complex64, DType::complex128}) {
    for (const bool real_values : {false, true}) {
      for (const index_t rows : {0, 1, 7, 300}) {
        const index_t columns = uniform(random, 0, 200);
        const Matrix m(random, real_values ? real_of(dtype) : dtype, rows, columns, 9,
                       rows % 2 == 0 ? DType::int64 : DType::int32);
        const Extents batch = random_extents(random, 2, 3);
        Extents of_x(batch), of_y(batch);
        of_x.push_back(columns);
        of_y.push_back(rows);
        Array x(dtype, of_x, random_strides(random, of_x, true)),
            y(dtype, of_y, random_strides(random, of_y, false));
        Array w(dtype, of_y, random_strides(random, of_y, true)),
            z(dtype, of_x, random_strides(random, of_x, false));
        x.fill_normal(random);
        w.fill_normal(random);
        run_sparse_product(m.view(), x.view(), y.mutable_view(), "test");
        run_sparse_adjoint(m.view(), w.view(), z.mutable_view(), "test");
        const double rounding = real_of(dtype) == DType::float32 ? 1e-5 : 1e-13;
        std::vector<Complex> sums(static_cast<std::size_t>(z.count()));
        for (index_t i = 0; i < y.count(); ++i) {
          const index_t b = i / rows, r = i % rows;
          Complex sum;
          for (index_t k = m.start.get<index_t>(r); k < m.start.get<index_t>(r + 1); ++k) {
            const index_t c = b * columns + static_cast<index_t>(m.column.value(k).real());
            sum += m.values.value(k) * x.value(c);
            sums[static_cast<std::size_t>(c)] += std::conj(m.values.value(k)) * w.value(i);
          }
          EXPECT_LE(std::abs(y.value(i) - sum), rounding * (1 + std::abs(sum)));
        }
        for (index_t i = 0; i < z.count(); ++i) {
          const Complex sum = sums[static_cast<std::size_t>(i)];
          EXPECT_LE(std::abs(z.value(i) - sum), rounding * (1 + std::abs(sum)));
        }
        EXPECT_TRUE(y.gaps_are_intact() && z.gaps_are_intact());
      }
    }
  }
}

TEST(Csr, ResultsDoNotDependOnThreads) {
  Random random(52);
  const Matrix m(random, DType::complex64, 40000, 30000, 10);
  Array x(DType::complex64, {2, 30000}), w(DType::complex64, {2, 40000});
  x.fill_normal(random);
  w.fill_normal(random);
  expect_same_on_threads([&] {
    Array y(DType::complex64, {2, 40000}), z(DType::complex64, {2, 30000});
    run_sparse_product(m.view(), x.view(), y.mutable_view(), "test");
    run_sparse_adjoint(m.view(), w.view(), z.mutable_view(), "test");
    std::vector<unsigned char> both = elements(y);
    for (const unsigned char b : elements(z)) both.push_back(b);
    return both;
  });
}

void expect_refused(const Matrix& m, const std::string& text) {
  Array x(DType::float64, {20}), y(DType::float64, {10});
  for (const bool adjoint : {false, true}) {
    try {
      if (adjoint) {
        run_sparse_adjoint(m.view(), y.view(), x.mutable_view(), "SparseProduct");
      } else {
        run_sparse_product(m.view(), x.view(), y.mutable_view(), "SparseProduct");
      }
      FAIL() << text;
    } catch (const ValueError& error) {
      EXPECT_THAT(error.what(), ::testing::HasSubstr("[SparseProduct] " + text));
    }
  }
}

TEST(Csr, IndicesThatAreOutOfRangeAreRefusedAndNeverFollowed) {
  Random random(53);
  for (const index_t wrong : {index_t{-1}, index_t{20}, std::numeric_limits<index_t>::min(),
                              std::numeric_limits<index_t>::max()}) {
    Matrix m(random, DType::float64, 10, 20, 5);
    m.column.set<index_t>(3, wrong);
    expect_refused(m, "column: index out of range: got " + std::to_string(wrong) +
                          " at element 3, expected 0..19");
    if (std::abs(static_cast<double>(wrong)) < 1e9) {
      Matrix narrow(random, DType::float64, 10, 20, 5, DType::int32);
      narrow.column.set<std::int32_t>(3, static_cast<std::int32_t>(wrong));
      expect_refused(narrow, "column: index out of range: got " + std::to_string(wrong));
    }
    Matrix n(random, DType::float64, 10, 20, 5);
    n.start.set<index_t>(4, wrong == 20 ? n.values.count() + 1 : wrong);
    expect_refused(n, "row_start: got");
  }
}

}  // namespace
}  // namespace palimpsest::testing
