// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/kernels/reduce/reduce.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <map>

#include "kernels/arrays.hpp"
#include "kernels/targets.hpp"
#include "palimpsest/kernels/reduce/reduce_leaves.hpp"
#include "support/cache_size.hpp"

namespace palimpsest::testing {
namespace {

using Wide = std::complex<long double>;

Axes random_axes(Random& random, std::size_t rank) {
  Axes axes;
  for (std::size_t i = 0; i < rank; ++i) {
    if (uniform(random, 0, 1) == 0) axes.push_back(static_cast<index_t>(i));
  }
  return axes;
}

Extents kept_extents(const Extents& extents, const Axes& axes) {
  Extents kept;
  for (std::size_t i = 0; i < extents.size(); ++i) {
    if (!std::binary_search(axes.begin(), axes.end(), static_cast<index_t>(i))) {
      kept.push_back(extents[i]);
    }
  }
  return kept;
}

// The number of the output to which element i of x contributes.
index_t target_of(index_t i, const Extents& extents, const Axes& axes) {
  index_t target = 0, factor = 1;
  for (std::size_t axis = extents.size(); axis-- > 0;) {
    const index_t position = i % extents[axis];
    i /= extents[axis];
    if (std::binary_search(axes.begin(), axes.end(), static_cast<index_t>(axis))) continue;
    target += position * factor;
    factor *= extents[axis];
  }
  return target;
}

// The values of x, grouped by output.
std::vector<std::vector<Wide>> grouped(const Array& x, const Axes& axes) {
  std::vector<std::vector<Wide>> groups(
      static_cast<std::size_t>(element_count(kept_extents(x.extents(), axes))));
  for (index_t i = 0; i < x.count(); ++i) {
    groups[static_cast<std::size_t>(target_of(i, x.extents(), axes))].emplace_back(x.value(i));
  }
  return groups;
}

Wide naive(ReduceOp op, const std::vector<Wide>& values) {
  Wide result = op == ReduceOp::prod || op == ReduceOp::all ? 1 : 0;
  if (op == ReduceOp::max || op == ReduceOp::min) result = values.at(0);
  for (const Wide v : values) {
    switch (op) {
      case ReduceOp::sum:
        result += v;
        break;
      case ReduceOp::prod:
        result *= v;
        break;
      case ReduceOp::max:
        result = std::max(result.real(), v.real());
        break;
      case ReduceOp::min:
        result = std::min(result.real(), v.real());
        break;
      case ReduceOp::any:
        result = Wide(result != Wide(0) || v != Wide(0));
        break;
      case ReduceOp::all:
        result = Wide(result != Wide(0) && v != Wide(0));
        break;
    }
  }
  return result;
}

TEST(Reduce, AnyAxesLayoutsAndDtypesGiveTheNaiveResult) {
  Random random(21);
  for (int trial = 0; trial < 1500; ++trial) {
    const auto op = static_cast<ReduceOp>(uniform(random, 0, 5));
    DType dtype = random_dtype(random);
    if (is_complex(dtype) && (op == ReduceOp::max || op == ReduceOp::min)) dtype = real_of(dtype);
    const Extents extents = random_extents(random, 8, trial % 3 == 0 ? 400 : 12);
    Array x = random_array(random, dtype, extents, true);
    if (op == ReduceOp::prod) x.fill(random, 1);
    const Axes axes = random_axes(random, extents.size());
    const DType result = result_dtype(op, dtype);
    Array out = random_array(random, result, kept_extents(extents, axes), false);
    run_reduce(op, x.view(), axes, out.mutable_view());
    const auto groups = grouped(x, axes);
    for (index_t i = 0; i < out.count(); ++i) {
      const Wide expected = naive(op, groups[static_cast<std::size_t>(i)]);
      const Wide got(out.value(i));
      const long double eps = result == DType::float32 || result == DType::complex64 ? 1e-5 : 1e-13;
      if (is_inexact(result)) {
        ASSERT_LE(std::abs(got - expected), eps * (1 + std::abs(expected)))
            << name_of(op) << " " << name_of(dtype) << to_string(extents) << to_string(axes);
      } else {
        ASSERT_EQ(got, expected) << name_of(op) << " " << name_of(dtype) << to_string(extents)
                                 << to_string(x.strides()) << to_string(axes);
      }
    }
  }
}

TEST(Reduce, GapsOfTheResultAreNotWritten) {
  Random random(22);
  for (int trial = 0; trial < 60; ++trial) {
    const Extents extents = random_extents(random, 4, 60);
    const Array x = random_array(random, DType::float64, extents, true);
    const Axes axes = random_axes(random, extents.size());
    const Extents kept = kept_extents(extents, axes);
    Array out(DType::float64, kept, random_strides(random, kept, false));
    run_reduce(ReduceOp::sum, x.view(), axes, out.mutable_view());
    ASSERT_TRUE(out.gaps_are_intact());
  }
}

TEST(Reduce, NothingGivesTheNeutralElement) {
  const Array x(DType::float32, {3, 0, 2});
  const Axes axes{1};
  const std::map<ReduceOp, double> neutral{{ReduceOp::sum, 0}, {ReduceOp::prod, 1}};
  for (const auto& [op, value] : neutral) {
    Array out(DType::float32, {3, 2});
    run_reduce(op, x.view(), axes, out.mutable_view());
    for (index_t i = 0; i < 6; ++i) EXPECT_EQ(out.value(i), value);
  }
  Array all(DType::bool_, {3, 2}), any(DType::bool_, {3, 2});
  run_reduce(ReduceOp::all, x.view(), axes, all.mutable_view());
  run_reduce(ReduceOp::any, x.view(), axes, any.mutable_view());
  EXPECT_TRUE(all.get<bool>(0));
  EXPECT_FALSE(any.get<bool>(5));
  Array none(DType::float32, {3, 0});
  run_reduce(ReduceOp::sum, x.view(), Axes{2}, none.mutable_view());
  EXPECT_TRUE(none.gaps_are_intact());
}

TEST(Reduce, MaximumAndMinimumPassOnNaN) {
  for (const index_t n : {1, 7, 16, 100, 5000}) {
    for (const index_t where : {index_t{0}, n / 2, n - 1}) {
      Array x(DType::float32, {n});
      for (index_t i = 0; i < n; ++i) x.set<float>(i, static_cast<float>(i % 13));
      x.set<float>(where, std::numeric_limits<float>::quiet_NaN());
      Array out(DType::float32, {});
      for (const ReduceOp op : {ReduceOp::max, ReduceOp::min}) {
        run_reduce(op, x.view(), Axes{0}, out.mutable_view());
        EXPECT_TRUE(std::isnan(out.get<float>(0))) << n << " " << where;
      }
    }
  }
}

TEST(Reduce, IntegersWrap) {
  Array x(DType::int8, {300});
  for (index_t i = 0; i < 300; ++i) x.set<std::int8_t>(i, 127);
  Array out(DType::int8, {});
  run_reduce(ReduceOp::sum, x.view(), Axes{0}, out.mutable_view());
  EXPECT_EQ(out.get<std::int8_t>(0), static_cast<std::int8_t>(300 * 127));
}

// Errors of 2^20 terms: plain summation in single precision loses 3 digits here.
TEST(Reduce, SumsAreAsAccurateAsPairwiseOnes) {
  constexpr index_t kTerms = 1 << 20;
  for (const Strides& strides : {Strides{1, 4}, Strides{kTerms, 1}}) {
    const bool terms_first = strides[0] == 1;
    const Extents extents = terms_first ? Extents{kTerms, 4} : Extents{4, kTerms};
    Array x(DType::float32, extents);
    for (index_t i = 0; i < x.count(); ++i) x.set<float>(i, 0.1F);
    Array out(DType::float32, {4});
    run_reduce(ReduceOp::sum, x.view(), Axes{terms_first ? 0 : 1}, out.mutable_view());
    for (index_t i = 0; i < 4; ++i) {
      const double expected = static_cast<double>(0.1F) * kTerms;
      EXPECT_NEAR(out.get<float>(i), expected, 25 * 6e-8 * expected);
    }
  }
  Array wide(DType::float32, {1 << 14, 300});
  for (index_t i = 0; i < wide.count(); ++i) wide.set<float>(i, 0.1F);
  Array out(DType::float32, {300});
  run_reduce(ReduceOp::sum, wide.view(), Axes{0}, out.mutable_view());
  EXPECT_NEAR(out.get<float>(299), 0.1 * (1 << 14), 20 * 6e-8 * 0.1 * (1 << 14));
}

TEST(Reduce, ResultsDoNotDependOnThreads) {
  Random random(23);
  for (const Extents& extents :
       {Extents{1000000}, Extents{300000, 3}, Extents{3, 300000}, Extents{400, 50, 50}}) {
    Array x(DType::complex64, extents);
    x.fill_normal(random);
    for (std::size_t axis = 0; axis < extents.size(); ++axis) {
      const Axes axes{static_cast<index_t>(axis)};
      expect_same_on_threads([&] {
        Array out(DType::complex64, kept_extents(extents, axes));
        run_reduce(ReduceOp::sum, x.view(), axes, out.mutable_view());
        return elements(out);
      });
    }
  }
}

// The bits of all reductions of x and y, on one instruction set; 0: plain loops only.
std::vector<std::vector<unsigned char>> all_reductions(std::int64_t target, const Array& x,
                                                       const Array& y) {
  const TargetScope scope(target);
  std::vector<std::vector<unsigned char>> all;
  for (const ReduceOp op : {ReduceOp::sum, ReduceOp::prod, ReduceOp::max}) {
    if (op == ReduceOp::max && is_complex(x.dtype())) continue;
    for (std::size_t axis = 0; axis < x.extents().size(); ++axis) {
      const Axes axes{static_cast<index_t>(axis)};
      Array out(x.dtype(), kept_extents(x.extents(), axes));
      run_reduce(op, x.view(), axes, out.mutable_view());
      all.push_back(elements(out));
    }
  }
  for (const bool conj : {false, true}) {
    Array out(x.dtype(), {});
    run_inner(x.view(), conj, y.view(), out.mutable_view());
    all.push_back(elements(out));
  }
  Array norm(is_complex(x.dtype()) ? real_of(x.dtype()) : x.dtype(), {});
  run_norm2(x.view(), norm.mutable_view());
  all.push_back(elements(norm));
  return all;
}

TEST(Reduce, EveryInstructionSetGivesTheBitsOfThePlainLoops) {
  Random random(29);
  for (const DType dtype : {DType::float32, DType::float64, DType::complex64, DType::complex128}) {
    for (const Extents& extents :
         {Extents{1023}, Extents{1024}, Extents{5000}, Extents{100000}, Extents{3, 2600},
          Extents{37, 300}, Extents{21, 5, 700}, Extents{2600, 3}}) {
      Array x(dtype, extents), y(dtype, extents);
      x.fill_normal(random);
      y.fill_normal(random);
      const auto expected = all_reductions(0, x, y);
      for (const std::int64_t target : vector_targets()) {
        EXPECT_EQ(all_reductions(target, x, y), expected)
            << name_of(dtype) << ' ' << to_string(extents) << ' ' << hwy::TargetName(target);
      }
    }
  }
}

// Sums of 1 to 40 rows, at any offset within a cache line.
std::vector<std::vector<unsigned char>> sums_of_rows(std::int64_t target, const Array& x) {
  const TargetScope scope(target);
  std::vector<std::vector<unsigned char>> all;
  const Axes first{0};
  for (index_t rows = 1; rows <= x.extents()[0]; ++rows) {
    const Extents extents{rows, x.extents()[1]};
    for (const index_t shift : {0, 1, 5}) {
      const ConstView top{x.address(0), x.dtype(), extents, x.strides()};
      Array out(x.dtype(), {x.extents()[1]}, {1}, shift);
      run_reduce(ReduceOp::sum, top, first, out.mutable_view());
      EXPECT_TRUE(out.gaps_are_intact());
      all.push_back(elements(out));
    }
  }
  return all;
}

TEST(Reduce, AnyNumberOfRowsGivesTheBitsOfThePlainLoopsPastTheCachesToo) {
  Random random(30);
  for (const DType dtype : {DType::float32, DType::float64, DType::complex64, DType::complex128}) {
    Array x(dtype, {40, 331});
    x.fill_normal(random);
    const auto expected = sums_of_rows(0, x);
    for (const std::int64_t target : vector_targets()) {
      for (const index_t streamed : {0, 1}) {
        set_streaming_bytes(streamed);
        EXPECT_EQ(sums_of_rows(target, x), expected)
            << name_of(dtype) << ' ' << streamed << ' ' << hwy::TargetName(target);
        set_streaming_bytes(0);
      }
    }
  }
}

// Each product and each sum is rounded; contracted instructions would give other bits.
template <class R>
std::complex<R> rounded_product(std::complex<R> a, std::complex<R> b) {
  const auto times = [](R u, R v) {
    volatile R product = u * v;
    return R{product};
  };
  return {times(a.real(), b.real()) - times(a.imag(), b.imag()),
          times(a.real(), b.imag()) + times(a.imag(), b.real())};
}

template <class R>
void expect_rounded_products(DType dtype, std::int64_t target) {
  using C = std::complex<R>;
  Random random(31);
  const TargetScope scope(target);
  for (const auto& [conj_a, conj_b] : {std::pair(false, false), {true, false}, {true, true}}) {
    const ReduceLeaf leaf = product_leaf(dtype, conj_a, conj_b);
    for (const index_t n : {1, 2, 3, 5, 9, 15, 16, 17, 31, 40, 255, 256}) {
      Array a(dtype, {n}), b(dtype, {n}), sums(dtype, {n});
      a.fill_normal(random);
      b.fill_normal(random);
      sums.fill_normal(random);
      const auto at = [](const Array& x, index_t i) { return static_cast<C>(x.value(i)); };
      const auto term = [&, conj_a = conj_a, conj_b = conj_b](index_t i) {
        const C u = at(a, i), v = at(b, i);
        return rounded_product(conj_a ? std::conj(u) : u, conj_b ? std::conj(v) : v);
      };
      std::vector<C> lanes, rows, onto;
      for (index_t i = 0; i < n; ++i) {
        rows.push_back(term(i));
        onto.push_back(at(sums, i) + term(i));
        const auto lane = static_cast<std::size_t>(n < 16 ? 0 : i % 16);
        lane < lanes.size() ? lanes[lane] += term(i) : (lanes.push_back(term(i)), lanes[lane]);
      }
      for (std::size_t half = lanes.size() / 2; half > 0; half /= 2) {
        for (std::size_t k = 0; k < half; ++k) lanes[k] += lanes[k + half];
      }
      const std::byte* const x[] = {static_cast<const std::byte*>(a.address(0)),
                                    static_cast<const std::byte*>(b.address(0))};
      auto* const to = static_cast<std::byte*>(sums.address(0));
      C sum;
      leaf.horizontal(x, n, reinterpret_cast<std::byte*>(&sum));
      EXPECT_EQ(sum, lanes[0]) << n << ' ' << hwy::TargetName(target);
      leaf.vertical(x, 1, to, n, Rows::onto);
      for (index_t i = 0; i < n; ++i)
        EXPECT_EQ(at(sums, i), onto[static_cast<std::size_t>(i)]) << n;
      leaf.vertical(x, 1, to, n, Rows::first);
      for (index_t i = 0; i < n; ++i)
        EXPECT_EQ(at(sums, i), rows[static_cast<std::size_t>(i)]) << n;
    }
  }
}

TEST(Reduce, ComplexProductsAreRoundedOneByOne) {
  for (const std::int64_t target : vector_targets()) {
    expect_rounded_products<float>(DType::complex64, target);
    expect_rounded_products<double>(DType::complex128, target);
  }
}

TEST(Inner, IsTheSumOfProductsWithTheFirstConjugatedIfAsked) {
  Random random(24);
  for (int trial = 0; trial < 300; ++trial) {
    const Extents extents = random_extents(random, 5, 300);
    const DType dtypes[] = {DType::float32, DType::float64, DType::complex64, DType::complex128,
                            DType::int64};
    const DType dtype = dtypes[trial % 5];
    const Array a = random_array(random, trial % 4 == 0 ? DType::float32 : dtype, extents, true);
    const Array b = random_array(random, dtype, extents, true);
    const bool conj = trial % 2 == 0;
    Array out(dtype, {});
    run_inner(a.view(), conj, b.view(), out.mutable_view());
    Wide expected = 0;
    for (index_t i = 0; i < a.count(); ++i) {
      const Wide x = is_inexact(dtype) ? Wide(a.value(i)) : Wide(std::trunc(a.value(i).real()));
      expected += (conj ? std::conj(x) : x) * Wide(b.value(i));
    }
    // Multiples of 1/16 far below 2^24 / 16: exact.
    ASSERT_EQ(Wide(out.value(0)), expected) << name_of(dtype) << to_string(extents);
  }
}

TEST(Inner, OfNothingIsZero) {
  const Array a(DType::complex64, {0, 4});
  Array out(DType::complex64, {});
  run_inner(a.view(), true, a.view(), out.mutable_view());
  EXPECT_EQ(out.value(0), 0.0);
  Array norm(DType::float32, {});
  run_norm2(a.view(), norm.mutable_view());
  EXPECT_EQ(norm.value(0), 0.0);
}

TEST(Norm2, IsTheSumOfSquaredMagnitudes) {
  Random random(25);
  for (int trial = 0; trial < 200; ++trial) {
    const Extents extents = random_extents(random, 5, 300);
    const DType dtypes[] = {DType::float32, DType::float64, DType::complex64, DType::complex128,
                            DType::int16};
    const DType dtype = dtypes[trial % 5];
    const Array x = random_array(random, dtype, extents, true);
    Array out(trial % 5 == 4 ? DType::int64 : real_of(dtype), {});
    run_norm2(x.view(), out.mutable_view());
    long double expected = 0;
    for (index_t i = 0; i < x.count(); ++i) expected += std::norm(Wide(x.value(i)));
    ASSERT_EQ(out.value(0).real(), expected) << name_of(dtype) << to_string(extents);
  }
}

TEST(Norm2, IsAccurateAndIndependentOfThreads) {
  Array x(DType::complex64, {1 << 19});
  for (index_t i = 0; i < x.count(); ++i) x.set<std::complex<float>>(i, {0.1F, 0.2F});
  expect_same_on_threads([&] {
    Array out(DType::float32, {});
    run_norm2(x.view(), out.mutable_view());
    EXPECT_NEAR(out.get<float>(0), 0.05 * (1 << 19), 30 * 6e-8 * 0.05 * (1 << 19));
    Array inner(DType::complex64, {});
    run_inner(x.view(), true, x.view(), inner.mutable_view());
    EXPECT_NEAR(inner.value(0).real(), 0.05 * (1 << 19), 30 * 6e-8 * 0.05 * (1 << 19));
    auto bytes = elements(out);
    const auto more = elements(inner);
    bytes.insert(bytes.end(), more.begin(), more.end());
    return bytes;
  });
}

TEST(ReduceOp, ResultDtypesAndNames) {
  EXPECT_EQ(name_of(ReduceOp::prod), "prod");
  EXPECT_EQ(result_dtype(ReduceOp::sum, DType::bool_), DType::int64);
  EXPECT_EQ(result_dtype(ReduceOp::sum, DType::uint8), DType::uint64);
  EXPECT_EQ(result_dtype(ReduceOp::prod, DType::complex64), DType::complex64);
  EXPECT_EQ(result_dtype(ReduceOp::max, DType::int8), DType::int8);
  EXPECT_EQ(result_dtype(ReduceOp::any, DType::complex64), DType::bool_);
  try {
    result_dtype(ReduceOp::max, DType::complex64);
    FAIL();
  } catch (const DTypeError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("[max] got complex64"));
  }
}

}  // namespace
}  // namespace palimpsest::testing
