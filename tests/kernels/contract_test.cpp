// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/kernels/matrices/contract.hpp"

#include <cmath>
#include <limits>
#include <map>
#include <string>

#include "kernels/arrays.hpp"
#include "kernels/targets.hpp"

namespace palimpsest::testing {
namespace {

using Wide = std::complex<double>;

// `ij,jk->ik`, one letter per label.
Contraction parse(const std::string& text, bool conj_a = false, bool conj_b = false) {
  Contraction c;
  c.conj_a = conj_a;
  c.conj_b = conj_b;
  SmallVector<int, 8>* lists[] = {&c.a, &c.b, &c.out};
  std::size_t k = 0;
  for (const char letter : text) {
    if (letter == ',') {
      k = 1;
    } else if (letter == '>') {
      k = 2;
    } else if (letter != '-') {
      lists[k]->push_back(letter - 'a');
    }
  }
  return c;
}

Extents extents_of(const SmallVector<int, 8>& labels, const std::map<int, index_t>& sizes) {
  Extents extents;
  for (const int label : labels) extents.push_back(sizes.at(label));
  return extents;
}

// The row-major number of the element at these positions.
index_t number_at(const SmallVector<int, 8>& labels, const std::map<int, index_t>& sizes,
                  const std::map<int, index_t>& position) {
  index_t n = 0;
  for (const int label : labels) n = n * sizes.at(label) + position.at(label);
  return n;
}

std::vector<Wide> naive(const Contraction& c, const std::map<int, index_t>& sizes, const Array& a,
                        const Array& b) {
  std::vector<Wide> out(static_cast<std::size_t>(element_count(extents_of(c.out, sizes))));
  index_t total = 1;
  for (const auto& [label, size] : sizes) total *= size;
  for (index_t flat = 0; flat < total; ++flat) {
    std::map<int, index_t> position;
    index_t rest = flat;
    for (const auto& [label, size] : sizes) {
      position[label] = rest % size;
      rest /= size;
    }
    Wide x = a.value(number_at(c.a, sizes, position)), y = b.value(number_at(c.b, sizes, position));
    if (c.conj_a) x = std::conj(x);
    if (c.conj_b) y = std::conj(y);
    out[static_cast<std::size_t>(number_at(c.out, sizes, position))] +=
        Wide(x.real() * y.real() - x.imag() * y.imag(), x.real() * y.imag() + x.imag() * y.real());
  }
  return out;
}

void run_with_scratch(const Contraction& c, const Array& a, const Array& b, Array& out) {
  const std::size_t bytes = contraction_scratch_bytes(c, a.view(), b.view(), out.mutable_view());
  Array scratch(DType::uint8, {static_cast<index_t>(bytes)});
  run_contraction(c, a.view(), b.view(), out.mutable_view(),
                  {static_cast<std::byte*>(scratch.address(0)), bytes});
}

constexpr DType kDtypes[] = {DType::float32, DType::float64, DType::complex64, DType::complex128,
                             DType::int64};

// Values are small integers and quarters, so every sum is exact.
void check(const std::string& text, index_t largest, int trials, std::uint64_t seed,
           bool plain_layout) {
  Random random(seed);
  for (int trial = 0; trial < trials; ++trial) {
    const Contraction c = parse(text, uniform(random, 0, 1) == 0, uniform(random, 0, 1) == 0);
    std::map<int, index_t> sizes;
    index_t products = 1;  // the naive sum is slow
    for (const auto* labels : {&c.a, &c.b}) {
      for (const int label : *labels) {
        if (sizes.contains(label)) continue;
        sizes[label] = uniform(random, 1, std::clamp<index_t>(20000 / products, 2, largest));
        products *= sizes[label];
      }
    }
    const DType dtype = kDtypes[trial % 5];
    const auto make = [&](const SmallVector<int, 8>& labels, bool broadcast) {
      const Extents extents = extents_of(labels, sizes);
      if (!plain_layout) return random_array(random, dtype, extents, broadcast);
      Array array(dtype, extents);
      array.fill(random);
      return array;
    };
    const Array a = make(c.a, true), b = make(c.b, true);
    const Extents out_extents = extents_of(c.out, sizes);
    Array out(dtype, out_extents,
              plain_layout ? contiguous_strides(out_extents)
                           : random_strides(random, out_extents, false));
    run_with_scratch(c, a, b, out);
    const auto expected = naive(c, sizes, a, b);
    for (index_t i = 0; i < out.count(); ++i) {
      ASSERT_EQ(out.value(i), expected[static_cast<std::size_t>(i)])
          << text << " " << name_of(dtype) << " trial " << trial << " conj " << c.conj_a << c.conj_b
          << to_string(a.extents()) << to_string(a.strides()) << to_string(b.extents())
          << to_string(b.strides()) << to_string(out.strides());
    }
    ASSERT_TRUE(out.gaps_are_intact());
  }
}

TEST(Contraction, MatrixProductsInEveryOrientation) {
  for (const char* text : {"ij,jk->ik", "ji,jk->ik", "ij,kj->ik", "ji,kj->ik", "ij,jk->ki",
                           "ji,jk->ki", "ij,kj->ki", "ji,kj->ki"}) {
    check(text, 30, 15, 31, true);
    check(text, 30, 30, 32, false);
  }
}

TEST(Contraction, BatchesOfMatrixProducts) {
  for (const char* text : {"bij,bjk->bik", "ibj,jkb->bik", "bij,jk->bik", "aij,bjk->abik",
                           "abij,abjk->abik", "ijk,kjl->il", "aibj,jbck->iack"}) {
    check(text, 20, 20, 33, false);
    check(text, 9, 20, 34, true);
  }
}

TEST(Contraction, EverythingElse) {
  for (const char* text : {"i,i->", "i,j->ij", "i,i->i", "ij,j->i", "ij,i->j", "cyx,yx->cyx",
                           "cyx,cyx->yx", "cyx,xy->cxy", "ij,jk->", "ij,kl->ik", ",->", "ij,->ij",
                           ",i->i", "ij,ij->ji", "abcd,dcba->", "ab,cd->cadb", "abc,b->ac"}) {
    check(text, 8, 40, 35, false);
    check(text, 8, 10, 36, true);
  }
}

TEST(Contraction, ZeroExtents) {
  for (const auto& [i, j, k] : {std::array<index_t, 3>{0, 3, 4}, {3, 0, 4}, {3, 4, 0}}) {
    const Array a(DType::complex64, {i, j}), b(DType::complex64, {j, k});
    Array out(DType::complex64, {i, k});
    out.set_value(0, {1, 1});
    if (out.count() == 0) continue;
    run_with_scratch(parse("ij,jk->ik"), a, b, out);
    for (index_t n = 0; n < out.count(); ++n) EXPECT_EQ(out.value(n), 0.0);
  }
}

TEST(Contraction, OldContentsDoNotMatter) {
  Random random(37);
  for (const index_t n : {3, 40}) {
    Array a(DType::float64, {n, n}), b(DType::float64, {n, n}), out(DType::float64, {n, n});
    a.fill(random);
    b.fill(random);
    for (index_t i = 0; i < out.count(); ++i) out.set<double>(i, std::nan(""));
    run_contraction(parse("ij,jk->ik"), a.view(), b.view(), out.mutable_view());
    for (index_t i = 0; i < out.count(); ++i) ASSERT_FALSE(std::isnan(out.get<double>(i)));
  }
}

TEST(Contraction, WithoutScratchTheResultIsTheSameUpToRounding) {
  Random random(38);
  Array a(DType::complex128, {40, 50}, {100, 2}), b(DType::complex128, {50, 30}, {60, 2});
  a.fill(random);
  b.fill(random);
  const Contraction c = parse("ij,jk->ik", true, false);
  Array with(DType::complex128, {40, 30}), without(DType::complex128, {40, 30});
  EXPECT_GE(contraction_scratch_bytes(c, a.view(), b.view(), with.mutable_view()),
            (40U * 50U + 50U * 30U) * 16U);
  run_with_scratch(c, a, b, with);
  run_contraction(c, a.view(), b.view(), without.mutable_view());
  EXPECT_EQ(elements(with), elements(without));  // quarters: exact
}

TEST(Contraction, OperandsMayBeOneArray) {
  Random random(39);
  Array a(DType::complex64, {30, 25}), out(DType::complex64, {30, 30});
  a.fill(random);
  const Contraction c = parse("ij,kj->ik", false, true);
  EXPECT_EQ(contraction_scratch_bytes(c, a.view(), a.view(), out.mutable_view()), 0U);
  run_contraction(c, a.view(), a.view(), out.mutable_view());
  const auto expected = naive(c, {{8, 30}, {9, 25}, {10, 30}}, a, a);
  for (index_t i = 0; i < out.count(); ++i) {
    ASSERT_EQ(out.value(i), expected[static_cast<std::size_t>(i)]);
  }
}

TEST(Contraction, ResultsDoNotDependOnThreads) {
  Random random(40);
  Array a(DType::complex64, {300, 200}), b(DType::complex64, {200, 250});
  Array maps(DType::complex64, {8, 200, 200}), images(DType::complex64, {8, 200, 200});
  for (Array* x : {&a, &b, &maps, &images}) x->fill_normal(random);
  expect_same_on_threads([&] {
    Array out(DType::complex64, {300, 250});
    run_contraction(parse("ij,jk->ik"), a.view(), b.view(), out.mutable_view());
    return elements(out);
  });
  expect_same_on_threads([&] {
    Array out(DType::complex64, {200, 200});
    run_contraction(parse("cyx,cyx->yx", true), maps.view(), images.view(), out.mutable_view());
    return elements(out);
  });
  expect_same_on_threads([&] {
    Array out(DType::complex64, {8});
    run_contraction(parse("cyx,cyx->c", true), maps.view(), images.view(), out.mutable_view());
    return elements(out);
  });
}

// Sums over many terms are cut into parts. Elements are small integers and quarters, so every sum
// is exact.
TEST(Contraction, GramMatricesOfLongColumns) {
  Random random(97);
  constexpr index_t kTerms = 9001, kRows = 40, kCols = 24;
  for (const DType dtype : {DType::float32, DType::float64, DType::complex64, DType::complex128}) {
    for (const std::string text : {"ki,kj>ij", "ik,kj>ij", "ki,jk>ji", "ik,jk>ij"}) {
      const bool conj = is_complex(dtype) && text != "ik,jk>ij";
      const Contraction c = parse(text, conj, false);
      const std::map<int, index_t> sizes{
          {'i' - 'a', kRows}, {'j' - 'a', kCols}, {'k' - 'a', kTerms}};
      Array a(dtype, extents_of(c.a, sizes)), b(dtype, extents_of(c.b, sizes));
      a.fill(random);
      b.fill(random);
      Array out(dtype, extents_of(c.out, sizes));
      expect_same_on_threads([&] {
        run_with_scratch(c, a, b, out);
        return elements(out);
      });
      const bool a_first = text.starts_with("ki"), b_first = text[3] == 'k',
                 out_first = text[6] == 'i';
      for (index_t i = 0; i < kRows; i += 13) {
        for (index_t j = 0; j < kCols; j += 7) {
          Wide sum = 0;
          for (index_t k = 0; k < kTerms; ++k) {
            const Wide x = a.value(a_first ? k * kRows + i : i * kTerms + k);
            const Wide y = b.value(b_first ? k * kCols + j : j * kTerms + k);
            sum += (conj ? std::conj(x) : x) * y;
          }
          EXPECT_EQ(out.value(out_first ? i * kCols + j : j * kRows + i), sum) << text;
        }
      }
    }
  }
}

TEST(Contraction, RowsTimesNumbersHaveTheBitsOfPlainLoopsOnEveryInstructionSet) {
  Random random(46);
  for (const DType dtype : {DType::float32, DType::float64, DType::complex64, DType::complex128}) {
    for (const index_t columns : {9, 64, 331, 700}) {
      const index_t rows = uniform(random, 17, 90);
      Array matrix(dtype, {rows, columns}, {columns + 3, 1}), numbers(dtype, {rows}, {2});
      matrix.fill_normal(random);
      numbers.fill_normal(random);
      for (const auto& [conj_a, conj_b] : {std::pair{false, false}, {true, false}, {false, true}}) {
        const auto run = [&, conj_a = conj_a, conj_b = conj_b](std::int64_t target, bool first) {
          const TargetScope scope(target);
          Array out(dtype, {columns});
          const Contraction c = parse(first ? "i,ij->j" : "ij,i->j", conj_a, conj_b);
          run_contraction(c, first ? numbers.view() : matrix.view(),
                          first ? matrix.view() : numbers.view(), out.mutable_view());
          return elements(out);
        };
        for (const bool first : {false, true}) {
          const auto expected = run(0, first);
          for (const std::int64_t target : vector_targets()) {
            EXPECT_EQ(run(target, first), expected)
                << name_of(dtype) << ' ' << rows << 'x' << columns << ' ' << conj_a << conj_b
                << first << ' ' << hwy::TargetName(target);
          }
        }
      }
    }
  }
}

// Products of up to 16 rows, columns and terms, compared with sums in order of the terms.
TEST(SmallProducts, HaveTheBitsOfPlainSumsInEveryLayoutAndOnEveryInstructionSet) {
  Random random(44);
  for (const DType dtype : {DType::float32, DType::float64, DType::complex64, DType::complex128}) {
    for (int trial = 0; trial < 60; ++trial) {
      const index_t m = uniform(random, 1, 16), n = uniform(random, 1, 16),
                    k = uniform(random, 1, 16), batch = uniform(random, 1, 5);
      Contraction c{{0, 1, 3}, {0, 3, 2}, {0, 1, 2}};
      c.conj_a = is_complex(dtype) && uniform(random, 0, 1) == 1;
      c.conj_b = is_complex(dtype) && uniform(random, 0, 1) == 1;
      const auto matrix = [&](index_t rows, index_t cols, bool across) {
        const Strides strides =
            across ? Strides{rows * cols + 3, 1, rows} : Strides{rows * (cols + 1), cols + 1, 1};
        return Array(dtype, {batch, rows, cols}, strides);
      };
      Array a = matrix(m, k, trial % 2 == 1), b = matrix(k, n, trial / 2 % 2 == 1);
      a.fill_normal(random);
      b.fill_normal(random);
      const auto run = [&](std::int64_t target) {
        const TargetScope scope(target);
        Array out = matrix(m, n, trial / 4 % 2 == 1);
        run_contraction(c, a.view(), b.view(), out.mutable_view());
        EXPECT_TRUE(out.gaps_are_intact());
        return out;
      };
      const Array out = run(0);
      for (const std::int64_t target : vector_targets()) {
        EXPECT_EQ(elements(run(target)), elements(out)) << hwy::TargetName(target);
      }
      const double rounding = real_of(dtype) == DType::float32 ? 1.2e-7 : 2.3e-16;
      for (index_t i = 0; i < out.count(); ++i) {
        const index_t at_batch = i / (m * n), row = i / n % m, col = i % n;
        std::complex<double> sum;
        double size = 0;
        for (index_t p = 0; p < k; ++p) {
          std::complex<double> x = a.value((at_batch * m + row) * k + p),
                               y = b.value((at_batch * k + p) * n + col);
          if (c.conj_a) x = std::conj(x);
          if (c.conj_b) y = std::conj(y);
          sum += x * y;
          size += std::abs(x) * std::abs(y);
        }
        ASSERT_LE(std::abs(out.value(i) - sum), 20 * rounding * size)
            << name_of(dtype) << " " << m << " " << n << " " << k;
      }
    }
  }
}

TEST(SmallProducts, DoNotDependOnThreadsAndPassOnWhatIsNoNumber) {
  Random random(45);
  Array a(DType::complex64, {20000, 4, 4}), b(DType::complex64, {20000, 4, 4});
  a.fill_normal(random);
  b.fill_normal(random);
  a.set_value(16 * 100 + 5, std::numeric_limits<double>::quiet_NaN());
  const Contraction c{{0, 1, 3}, {0, 3, 2}, {0, 1, 2}};
  expect_same_on_threads([&] {
    Array out(DType::complex64, {20000, 4, 4});
    run_contraction(c, a.view(), b.view(), out.mutable_view());
    EXPECT_TRUE(std::isnan(out.value(16 * 100 + 4).real()));
    EXPECT_FALSE(std::isnan(out.value(16 * 100).real()));
    return elements(out);
  });
}

}  // namespace
}  // namespace palimpsest::testing
