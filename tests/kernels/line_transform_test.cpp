// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/kernels/fft/line_transform.hpp"

#include <cmath>
#include <map>

#include "kernels/fft_reference.hpp"
#include "kernels/targets.hpp"
#include "palimpsest/kernels/pool/parallel.hpp"

namespace palimpsest::testing {
namespace {

using Precise = std::complex<long double>;
// std::numbers has only that of double precision in libc++.
constexpr long double kPi = 3.141592653589793238462643383279502884L;

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

// Of length n: as numbers of some elements k of the result, no more than 48.
std::vector<index_t> some_of(index_t n, Random& random) {
  std::vector<index_t> some;
  for (index_t k = 0; k < n && n <= 48; ++k) some.push_back(k);
  while (n > 48 && some.size() < 48) {
    some.push_back(std::uniform_int_distribution<index_t>(0, n - 1)(random));
  }
  return some;
}

// The relative error of some elements of a line of y, in units of eps.
double error_of(const Array& x, const Array& y, const std::vector<index_t>& some, index_t lines,
                index_t line, bool forward) {
  const index_t n = x.count() / lines;
  std::vector<Precise> roots, z;
  for (index_t j = 0; j < n; ++j) {
    const long double angle = 2 * kPi * static_cast<long double>(j) / static_cast<long double>(n);
    roots.emplace_back(std::cos(angle), forward ? -std::sin(angle) : std::sin(angle));
    z.emplace_back(x.value(j * lines + line));
  }
  long double error = 0, norm = 0;
  for (const index_t k : some) {
    long double re = 0, im = 0;
    std::size_t at = 0;
    for (const Precise& value : z) {
      const Precise& w = roots[at];
      re += w.real() * value.real() - w.imag() * value.imag();
      im += w.real() * value.imag() + w.imag() * value.real();
      at = (at + static_cast<std::size_t>(k)) % static_cast<std::size_t>(n);
    }
    const Wide got = y.value(k * lines + line);
    error += std::norm(Precise(got.real() - re, got.imag() - im));
    norm += std::norm(Precise(re, im));
  }
  const double eps = x.dtype() == DType::complex64 ? 0x1p-23 : 0x1p-52;
  return std::sqrt(static_cast<double>(error / norm)) / eps;
}

// Lengths without prime factors above 7 have lower errors.
double limit_of(index_t n) {
  const double steps = std::sqrt(std::log2(static_cast<double>(n)));
  return (largest_prime_factor(n) <= 7 ? 0.6 : 1.5) * steps;
}

void expect_accurate(index_t n, index_t lines, Random& random) {
  const std::vector<index_t> some = some_of(n, random);
  for (const DType dtype : {DType::complex64, DType::complex128}) {
    Array x(dtype, {n, lines}), y(dtype, x.extents());
    fill_exactly(x, static_cast<std::uint64_t>(n));
    FftSpec spec = spec_for(x, y, {0});
    spec.forward = (n + (dtype == DType::complex64 ? 1 : 0)) % 2 == 0;
    execute(fft_plan(spec), x.address(0), y.address(0));
    EXPECT_LE(error_of(x, y, some, lines, n % lines, spec.forward), limit_of(n))
        << n << (dtype == DType::complex64 ? " complex64" : " complex128");
  }
}

TEST(LineTransform, LengthsTo512AreAccurate) {
  Random random(91);
  for (index_t n = 1; n <= 512; ++n) expect_accurate(n, n % 9 + 1, random);
}
TEST(LineTransform, LengthsTo1280AreAccurate) {
  Random random(92);
  for (index_t n = 513; n <= 1280; ++n) expect_accurate(n, n % 2 + 1, random);
}
TEST(LineTransform, LengthsTo2048AreAccurate) {
  Random random(93);
  for (index_t n = 1281; n <= 2048; ++n) expect_accurate(n, 1, random);
}
TEST(LineTransform, LongLengthsAreAccurate) {
  Random random(94);
  for (int i = 0; i < 96; ++i) {
    expect_accurate(std::uniform_int_distribution<index_t>(2049, 20000)(random), 1, random);
  }
  for (const index_t n : {65536, 100003, 127 * 1031, 151200, 262144}) {
    expect_accurate(n, 1, random);
  }
}

// Direct ones, joined of four or not, with primes; as matrices; as convolutions.
const std::vector<index_t> kLengths = {
    1,   2,   3,   4,   5,   6,   7,    8,    9,    10,   11,   12,   13,   15,   16,   18,  22,
    26,  31,  33,  48,  60,  64,  77,   96,   100,  109,  120,  127,  131,  143,  176,  180, 191,
    200, 208, 210, 218, 256, 262, 300,  320,  343,  360,  400,  500,  512,  530,  600,  625, 640,
    720, 768, 911, 960, 992, 997, 1000, 1024, 1025, 1143, 1200, 1296, 1536, 2048, 2187, 2310};

// A line alone, lines with any number of neighbours, dense or side by side or neither.
TEST(LineTransform, BitsDependOnTheLineAlone) {
  for (const index_t n : kLengths) {
    for (const DType dtype : {DType::complex64, DType::complex128}) {
      Array x(dtype, {n});
      fill_exactly(x, 7);
      Array expected(dtype, {n});
      FftSpec spec = spec_for(x, expected, {0});
      spec.forward = n % 32 == 0;
      spec.centered = n % 48 == 0;
      spec.scale = 0.3;
      execute(fft_plan(spec), x.address(0), expected.address(0));
      const Extents extents{n, n % 5 + 1, n % 7 * (n > 700 ? 1 : 4) + 1};
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
          of_all.out_strides = of_all.in_strides;
          of_all.in_place = true;
          execute(fft_plan(of_all), all.address(0), all.address(0));
          ASSERT_EQ(elements(all), elements(result)) << describe(of_all);
        }
      }
    }
  }
}

// On all instruction sets, with 1, 2 and 3 threads, after other lengths.
TEST(LineTransform, BitsAreThoseOfTheDigests) {
  const std::map<index_t, std::pair<std::uint64_t, std::uint64_t>> digests = {
      {1, {0x06bf3051b3964cbbU, 0x5d24934b7774a09fU}},
      {2, {0xe2071685cde8b2a2U, 0x9e23d41767ec27cfU}},
      {3, {0x9809560be2f3211dU, 0x87dd459fdabdd084U}},
      {4, {0x9ff2cf1f54c60df0U, 0x1ff60e2d20fa0caaU}},
      {5, {0x478f897f8aa8206eU, 0xe10e0e04525626a0U}},
      {6, {0x2d42894534347d68U, 0xaaff804b25a1a37eU}},
      {7, {0x19170509569bc555U, 0x8f303c261c3c65e7U}},
      {8, {0x74a5ed77011aa6dbU, 0x6af87c0c11034a46U}},
      {9, {0x8fa02e46c70d35e2U, 0xd3a5c02a98f399d4U}},
      {10, {0xe2aae4bbd59899f4U, 0xa4959c3dc29b6f74U}},
      {11, {0x919e3c211fe56404U, 0x074c759232943748U}},
      {12, {0x28346f036f5d1ae0U, 0xe47ce5dff847399dU}},
      {13, {0xa0af796918a045edU, 0xb9dbf2d06be7d43eU}},
      {14, {0x4346442728a2fa42U, 0x6eefd03183cc49e2U}},
      {15, {0xce70fcbd37268990U, 0x358c5d10d44864c1U}},
      {16, {0xafed2488d09fc4c3U, 0x272bf3b55fead592U}},
      {18, {0x0223f1eb310270d8U, 0xd0214f8beb4c19c1U}},
      {20, {0x72411c1dfa5f3a54U, 0x4f353d8751265fa4U}},
      {21, {0xbb51337e53d20560U, 0x86415a725e0c4909U}},
      {24, {0xa2c2d3da332d3989U, 0xd2646687287d2413U}},
      {25, {0x6451607bad2f7e0fU, 0x9e256722395e88a5U}},
      {26, {0xb71f89eea421ff5cU, 0x96712ab1a11a5721U}},
      {28, {0x5588b4b0d58f53a9U, 0xa81f47883944ed63U}},
      {30, {0x6d32c1ad6f6ad39dU, 0x7a8edc3ebad55f64U}},
      {31, {0xee49fe9edc244b1dU, 0x4ed070ddec50ee0eU}},
      {32, {0x8c91759fc792aa5cU, 0x38e4f6d2c272742cU}},
      {36, {0x7d3e57d00673c09dU, 0x00093e4a273e6b28U}},
      {40, {0x46aedf5fbbe9010fU, 0xa38f1219151a1344U}},
      {47, {0x2571a5585902553fU, 0xe9eac90e4dd4c6bbU}},
      {48, {0xd3f13904a3e7802aU, 0x118d2ca808397c04U}},
      {53, {0x583723fdc4c659c5U, 0xd30774f985b2903dU}},
      {59, {0x33a2b9e10b030a7aU, 0xed56ab0896989dd6U}},
      {60, {0xc0604670b54349fdU, 0x7ed276276c90d1a6U}},
      {64, {0x8833f6446f1dd874U, 0x68d19a51c4d13aeaU}},
      {77, {0x60358e708f7f1a26U, 0x3e6d7f022443a140U}},
      {80, {0x044e70ed7d3b7037U, 0x7ca7cccf66602b52U}},
      {96, {0x4f9a22b299b259a3U, 0xc9209f316ddaf594U}},
      {100, {0x8734e3f6d8eab839U, 0xfe8a06e02b8ab55fU}},
      {109, {0xd4abb0a1045624f7U, 0xf5fb9a071390a250U}},
      {112, {0x3e6170b4b8728e75U, 0x02e12d435b1e8b59U}},
      {120, {0x3917bf5a15031a36U, 0xf815c493dcc6678eU}},
      {127, {0x8724039a27eeae4bU, 0x172793de2213b293U}},
      {128, {0xd91ccc7546d98bd2U, 0xa62c25b1fd142ffaU}},
      {131, {0xb6f0fc26021a1986U, 0xe9179f01875cf845U}},
      {143, {0xf0ab149f488bac48U, 0x62337c9ba70c2acfU}},
      {150, {0x4fa27e85d1d6af46U, 0x7e2866dccef71ff4U}},
      {160, {0xb93f7ea97c637026U, 0x4de11406b3055a69U}},
      {176, {0xe5ad2f558851d98fU, 0xf148996481edfae3U}},
      {180, {0xe18afea4be87863eU, 0x0a8ea7dca692fb7dU}},
      {191, {0x1cdb8f93fe6b6567U, 0xcd1c3552e0ceea3cU}},
      {192, {0x7b661278dd4a17a0U, 0x540323c6f7df4032U}},
      {200, {0x5d6ff771cc293698U, 0xfd4aee52da21a79bU}},
      {208, {0x7455ebcae9a02589U, 0x7beaf200fbe334d4U}},
      {210, {0x20771324d058a29bU, 0x917314b73da1b6edU}},
      {216, {0x157f9541b894ca25U, 0x27e91282b6947f65U}},
      {218, {0xe80a4a464184ac9bU, 0xec3c7b249bc4f7c0U}},
      {224, {0xc39463fde56c40a1U, 0x4d270dfded23ecd8U}},
      {230, {0xe8d23029d188944aU, 0xc4a69b90662eeee3U}},
      {240, {0x35a9a08ce32bb8deU, 0xf9a0d6863cbf3fbeU}},
      {243, {0x1260d0bf15966c5bU, 0x7d11f6b66b0ed23cU}},
      {250, {0x1201835dfea9ce46U, 0x30fc85de7469e4eaU}},
      {256, {0x5cbaba5a49e34f5bU, 0xd126dcb5d24c1074U}},
      {262, {0xecf71c70e8fe43c3U, 0x511ba5afd9bb03f4U}},
      {288, {0xde782b1a5d0b2b41U, 0xc9e28e0eac70da6aU}},
      {300, {0xfdc929a80d11c617U, 0x670dce7395ed4b29U}},
      {320, {0x9d7e2bcae9cd2cc5U, 0x08f17fb7ec3f7a90U}},
      {336, {0xb24cdee7e97c9b1dU, 0x66e037ca808167c5U}},
      {343, {0xa29ca38d6b37c4adU, 0x1a624e9373a8a4cbU}},
      {360, {0x8f7c66dcb117c6f1U, 0x0225f340016c4271U}},
      {384, {0xcfa6c0b2e5975c17U, 0xdcb5403847ee5bbbU}},
      {400, {0x7ffe4c105469170fU, 0x1f3550ab28dc6d25U}},
      {448, {0xbb1048937bceec49U, 0x865f134b359e33bdU}},
      {480, {0xc78ce27c52333172U, 0x21fc1401abdc8c4eU}},
      {500, {0xc6b435fc9650a508U, 0x134a40437da0f225U}},
      {512, {0xabcdd97f3388e2b9U, 0x4f2cb3e71c11562cU}},
      {530, {0x763c1ada38161efbU, 0xc0a16f499f5b78ccU}},
      {560, {0x3e23623147df02aeU, 0x0326368e916413e6U}},
      {600, {0x4982ef3196bda69bU, 0x4564676845d354c9U}},
      {625, {0x39485d654410287cU, 0x71342255b092c30cU}},
      {640, {0x5c11d50710b56311U, 0x51a04af894720c24U}},
      {720, {0x976161e410393865U, 0x4a4d6ab77e089f72U}},
      {768, {0xd5f7a54dc8718125U, 0x014394ff4d776cf5U}},
      {784, {0x541b34b7edf5b812U, 0xff51b95054841eb8U}},
      {800, {0x88f19de08ce85fbfU, 0x1dacbcdde246e073U}},
      {896, {0xf8251f3143a6cd70U, 0x121ca6abf0605a27U}},
      {911, {0xe6fb4d2db99aeb11U, 0x94572ff25fc68bceU}},
      {960, {0x13637bd9df388215U, 0xd7bf817eb1ae010fU}},
      {992, {0x682fcffa471db984U, 0x283ce033d6736bfbU}},
      {1000, {0x05ca4ae245653d9bU, 0x5cf44e5a27a97744U}},
      {1024, {0x0df0f8c9ce313f15U, 0x171f4e544ab6ae27U}},
      {1025, {0xf998791b782dab78U, 0x672f26b4cd544997U}},
      {1143, {0x27cd3ed141725100U, 0x8964a7c5398b7a65U}},
      {1200, {0x9b9cc311402a1a2eU, 0x3333c00c9b684038U}},
      {1280, {0x7d26464fab6b5a3bU, 0x3c673a8d354236c2U}},
      {1296, {0x25b7e11ca7b99f73U, 0x03c7e676d79448c0U}},
      {1536, {0xaf68b15f9d3b421aU, 0x00084a84ee7dc983U}},
      {1920, {0x24d5897186ff2f43U, 0x8461cb478eed61b8U}},
      {2048, {0x6b8b730de4ac678eU, 0xed84b008ca1e1c8aU}},
      {2187, {0x335f628e92b2bd30U, 0xea01c96246774c35U}},
      {2310, {0x7f35c3f14b4005acU, 0xbf7afee5e08e544dU}},
      {2560, {0x6dbc101fd688336cU, 0x9969a83a5fcd13a0U}},
      {4096, {0xcec45ee62fc6c3fdU, 0x58cbf622440ea756U}}};
  for (const auto& [n, expected] : digests) {
    for (const DType dtype : {DType::complex64, DType::complex128}) {
      // The last axis is dense, the one before it has rows; both have lines in excess.
      Array x(dtype, {5, n, n < 1025 ? 16 : 4}), y(dtype, x.extents());
      fill_exactly(x, 3);
      FftSpec spec = spec_for(x, y, {1, 2});
      spec.forward = n % 64 != 0;
      const FftPlan plan = fft_plan(spec);
      std::vector<std::int64_t> targets = vector_targets();
      targets.push_back(0);  // no vectors
      for (const std::int64_t target : targets) {
        for (const int threads : {1, 2, 3}) {
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

TEST(LineTransform, ZerosAndPartsThatAreNotFiniteStayInTheirLine) {
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
