// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/kernels/fft/split_transform.hpp"

#include <cmath>
#include <map>
#include <numbers>

#include "kernels/fft_reference.hpp"
#include "kernels/targets.hpp"
#include "palimpsest/kernels/pool/parallel.hpp"

namespace palimpsest::testing {
namespace {

using Precise = std::complex<long double>;

std::vector<index_t> lengths() {
  std::vector<index_t> all;
  for (index_t n = 1; n <= 8192; ++n) {
    if (SplitTransform<float>::is_able(n)) all.push_back(n);
  }
  return all;
}

// Numbers of 24 bits, the same everywhere.
void fill_exactly(Array& x, std::uint64_t seed) {
  const auto draw = [&] {
    seed = seed * 6364136223846793005U + 1442695040888963407U;
    return static_cast<double>(static_cast<std::int64_t>(seed >> 40U) - (1 << 23)) / (1 << 23);
  };
  for (index_t i = 0; i < x.count(); ++i) {
    const double re = draw();
    x.set_value(i, {re, draw()});
  }
}

// FNV-1a.
std::uint64_t digest(const std::vector<unsigned char>& bytes) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const unsigned char byte : bytes) hash = (hash ^ byte) * 0x100000001b3U;
  return hash;
}

// The relative error of a line of y, in units of eps.
double error_of(const Array& x, const Array& y, index_t lines, index_t line, bool forward) {
  const index_t n = x.count() / lines;
  std::vector<Precise> roots;
  for (index_t j = 0; j < n; ++j) {
    const long double angle = 2 * std::numbers::pi_v<long double> * static_cast<long double>(j) /
                              static_cast<long double>(n);
    roots.emplace_back(std::cos(angle), forward ? -std::sin(angle) : std::sin(angle));
  }
  long double error = 0, norm = 0;
  for (index_t k = 0; k < n; ++k) {
    long double re = 0, im = 0;
    for (index_t j = 0; j < n; ++j) {
      const Wide z = x.value(j * lines + line);
      const Precise& w = roots[static_cast<std::size_t>(j * k % n)];
      re += w.real() * z.real() - w.imag() * z.imag();
      im += w.real() * z.imag() + w.imag() * z.real();
    }
    const Wide got = y.value(k * lines + line);
    error += std::norm(Precise(got.real() - re, got.imag() - im));
    norm += std::norm(Precise(re, im));
  }
  const double eps = x.dtype() == DType::complex64 ? 0x1p-23 : 0x1p-52;
  return std::sqrt(static_cast<double>(error / norm)) / eps;
}

TEST(SplitTransform, AllLengthsAreAccurate) {
  for (const index_t n : lengths()) {
    for (const DType dtype : {DType::complex64, DType::complex128}) {
      Array x(dtype, {n, 9}), y(dtype, x.extents());
      fill_exactly(x, static_cast<std::uint64_t>(n));
      FftSpec spec = spec_for(x, y, {0});
      for (const bool forward : {true, false}) {
        spec.forward = forward;
        execute(fft_plan(spec), x.address(0), y.address(0));
        const double limit = 0.6 * std::sqrt(std::log2(static_cast<double>(n)));
        EXPECT_LE(error_of(x, y, 9, n % 9, forward), limit) << n;
      }
    }
  }
}

// A line alone, lines with any number of neighbours, dense or side by side or neither.
TEST(SplitTransform, BitsDependOnTheLineAlone) {
  for (const index_t n : lengths()) {
    for (const DType dtype : {DType::complex64, DType::complex128}) {
      Array x(dtype, {n});
      fill_exactly(x, 7);
      Array expected(dtype, {n});
      FftSpec spec = spec_for(x, expected, {0});
      spec.forward = n % 32 == 0;
      spec.centered = n % 48 == 0;
      spec.scale = 0.3;
      execute(fft_plan(spec), x.address(0), expected.address(0));
      const Extents extents{n, n % 5 + 1, n % 7 * 4 + 1};
      const index_t lines = extents[1] * extents[2];
      for (const Strides& strides : {Strides{lines, extents[2], 1}, Strides{1, n * extents[2], n},
                                     Strides{2 * lines, 2 * extents[2], 2}}) {
        for (const bool exchanges : {false, true}) {
          Array all(dtype, extents, strides, 1);
          Array result(dtype, extents, exchanges ? contiguous_strides(extents) : strides, 1);
          for (index_t i = 0; i < all.count(); ++i) all.set_value(i, x.value(i / lines));
          FftSpec of_all = spec_for(all, result, {0});
          of_all.forward = spec.forward;
          of_all.centered = spec.centered;
          of_all.scale = spec.scale;
          execute(fft_plan(of_all), all.address(0), result.address(0));
          for (index_t i = 0; i < all.count(); ++i) {
            ASSERT_EQ(result.value(i), expected.value(i / lines)) << describe(of_all);
          }
        }
      }
    }
  }
}

// On all instruction sets, with 1 and 2 threads.
TEST(SplitTransform, BitsAreThoseOfTheDigests) {
  const std::map<index_t, std::pair<std::uint64_t, std::uint64_t>> digests = {
      {16, {0xafed2488d09fc4c3U, 0x272bf3b55fead592U}},
      {32, {0x8c91759fc792aa5cU, 0x38e4f6d2c272742cU}},
      {48, {0xd3f13904a3e7802aU, 0x118d2ca808397c04U}},
      {64, {0x8833f6446f1dd874U, 0x68d19a51c4d13aeaU}},
      {80, {0x044e70ed7d3b7037U, 0x7ca7cccf66602b52U}},
      {96, {0x4f9a22b299b259a3U, 0xc9209f316ddaf594U}},
      {112, {0x3e6170b4b8728e75U, 0x02e12d435b1e8b59U}},
      {128, {0xd91ccc7546d98bd2U, 0xa62c25b1fd142ffaU}},
      {160, {0xb93f7ea97c637026U, 0x4de11406b3055a69U}},
      {192, {0x7b661278dd4a17a0U, 0x540323c6f7df4032U}},
      {224, {0xc39463fde56c40a1U, 0x4d270dfded23ecd8U}},
      {240, {0x35a9a08ce32bb8deU, 0xf9a0d6863cbf3fbeU}},
      {256, {0x5cbaba5a49e34f5bU, 0xd126dcb5d24c1074U}},
      {320, {0x9d7e2bcae9cd2cc5U, 0x08f17fb7ec3f7a90U}},
      {336, {0xb24cdee7e97c9b1dU, 0x66e037ca808167c5U}},
      {384, {0xcfa6c0b2e5975c17U, 0x4f0851a85e442b25U}},
      {400, {0x7ffe4c105469170fU, 0x1f3550ab28dc6d25U}},
      {448, {0xbb1048937bceec49U, 0x865f134b359e33bdU}},
      {512, {0xabcdd97f3388e2b9U, 0x4f2cb3e71c11562cU}},
      {560, {0x3e23623147df02aeU, 0x71099bd11a6a46b5U}},
      {640, {0x5c11d50710b56311U, 0x51a04af894720c24U}},
      {720, {0x976161e410393865U, 0xeede70b81a68cf8fU}},
      {768, {0xd5f7a54dc8718125U, 0x014394ff4d776cf5U}},
      {784, {0x541b34b7edf5b812U, 0x02fdb1b7ae017df6U}},
      {896, {0xf8251f3143a6cd70U, 0x121ca6abf0605a27U}},
      {1024, {0x0df0f8c9ce313f15U, 0x942fcd3484279c5eU}}};
  for (const auto& [n, expected] : digests) {
    for (const DType dtype : {DType::complex64, DType::complex128}) {
      // The last axis is dense, the one before it has rows; both have lines in excess.
      Array x(dtype, {5, n, 16}), y(dtype, x.extents());
      fill_exactly(x, 3);
      FftSpec spec = spec_for(x, y, {1, 2});
      spec.forward = n % 64 != 0;
      const FftPlan plan = fft_plan(spec);
      std::vector<std::int64_t> targets = vector_targets();
      targets.push_back(0);  // no vectors
      for (const std::int64_t target : targets) {
        for (const int threads : {1, 2}) {
          const TargetScope scope(target);
          y.fill_pattern();
          run_with_threads(threads, [&] { execute(plan, x.address(0), y.address(0)); });
          EXPECT_EQ(digest(elements(y)),
                    dtype == DType::complex64 ? expected.first : expected.second)
              << n << " target " << target << " threads " << threads;
        }
      }
    }
  }
}

TEST(SplitTransform, ZerosAndPartsThatAreNotFiniteStayInTheirLine) {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const index_t n : {64, 240}) {
    Array x(DType::complex64, {n, 6}), y(DType::complex64, x.extents());
    for (index_t i = 0; i < x.count(); ++i) x.set_value(i, i % 6 == 3 ? infinity : 0.0);
    execute(fft_plan(spec_for(x, y, {0})), x.address(0), y.address(0));
    for (index_t i = 0; i < x.count(); ++i) {
      const bool is_zero = i % 6 != 3;
      EXPECT_EQ(std::isfinite(std::abs(y.value(i))), is_zero);
      EXPECT_EQ(y.value(i) == Wide(0), is_zero);
    }
  }
}

}  // namespace
}  // namespace palimpsest::testing
