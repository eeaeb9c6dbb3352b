// SPDX-License-Identifier: Apache-2.0
// Reduces large angles after Payne and Hanek (1983). Of the digits of 2/pi it uses only those that
// matter: the others give whole turns or lie below the required precision.
#include "palimpsest/kernels/functions/large_angle.hpp"

#include <bit>
#include <cmath>
#include <limits>

namespace palimpsest {
namespace {

__extension__ using Wide = unsigned __int128;
using Word = std::uint64_t;

// 2/pi as a binary fraction.
constexpr Word kTwoOverPi[] = {
    0xa2f9836e4e441529, 0xfc2757d1f534ddc0, 0xdb6295993c439041, 0xfe5163abdebbc561,
    0xb7246e3a424dd2e0, 0x06492eea09d1921c, 0xfe1deb1cb129a73e, 0xe88235f52ebb4484,
    0xe99c7026b45f7e41, 0x3991d639835339f4, 0x9c845f8bbdf9283b, 0x1ff897ffde05980f,
    0xef2f118b5a0a6d1f, 0x6d367ecf27cb09b7, 0x4f463f669e5fea2d, 0x7527bac7ebe5f17b,
    0x3d0739f78a5292ea, 0x6bfb5fb11f8d5d08, 0x56033046fc7b6bab};

// Returns 64 digits of 2/pi from `position` on; position >= -63.
Word digits(int position) {
  if (position < 0) return kTwoOverPi[0] >> -position;
  const int word = position / 64, shift = position % 64;
  if (shift == 0) return kTwoOverPi[word];
  return kTwoOverPi[word] << shift | kTwoOverPi[word + 1] >> (64 - shift);
}

// A binary fraction of 192 digits, most significant word first.
struct Fraction {
  Word words[3];
};
Fraction shifted(Fraction f, int n) {
  for (; n >= 64; n -= 64) f = {{f.words[1], f.words[2], 0}};
  if (n == 0) return f;
  return {{f.words[0] << n | f.words[1] >> (64 - n), f.words[1] << n | f.words[2] >> (64 - n),
           f.words[2] << n}};
}
Fraction negated(Fraction f) {
  Fraction result;
  Word carry = 1;
  for (int k = 2; k >= 0; --k) {
    result.words[k] = ~f.words[k] + carry;
    carry = carry != 0 && result.words[k] == 0 ? 1 : 0;
  }
  return result;
}

// Returns m times 192 digits from `position` on, modulo 1.
Fraction times(Word m, int position) {
  Fraction result;
  Word carry = 0;
  for (int k = 2; k >= 0; --k) {
    const Wide product = Wide{digits(position + 64 * k)} * m + carry;
    result.words[k] = static_cast<Word>(product);
    carry = static_cast<Word>(product >> 64);
  }
  return result;
}

}  // namespace

LargeAngle reduce_large_angle(double x) {
  if (!std::isfinite(x)) {
    const double none = std::numeric_limits<double>::quiet_NaN();
    return {none, none, 0};
  }
  int exponent;
  const double fraction = std::frexp(std::abs(x), &exponent);
  const auto m = static_cast<Word>(std::ldexp(fraction, 53));
  exponent -= 53;  // |x| = m 2^exponent
  // Skips digits whose product is a whole number of turns (4 quarters).
  const Fraction turn = times(m, exponent - 2);
  Word quarters = turn.words[0] >> 62;
  Fraction rest = shifted(turn, 2);
  const bool is_above = rest.words[0] >> 63 != 0;
  if (is_above) {
    rest = negated(rest);
    ++quarters;
  }
  int lead = 0;
  while (rest.words[0] == 0 && lead < 128) {
    rest = shifted(rest, 64);
    lead += 64;
  }
  if (rest.words[0] == 0) return {0, 0, quarters};
  const int zeros = std::countl_zero(rest.words[0]);
  rest = shifted(rest, zeros);
  lead += zeros;
  const double high = std::ldexp(static_cast<double>(rest.words[0] >> 11), -53 - lead);
  const double low = std::ldexp(
      static_cast<double>((rest.words[0] << 53 | rest.words[1] >> 11) >> 11), -106 - lead);
  constexpr double kHalfPi = 1.5707963267948966, kHalfPiLow = 6.123233995736766e-17;
  const double product = high * kHalfPi;
  const double error = std::fma(high, kHalfPi, -product) + (high * kHalfPiLow + low * kHalfPi);
  const double r = product + error, r_low = (product - r) + error;
  const bool is_negative = (x < 0) != is_above;
  if (x < 0) quarters = 0 - quarters;
  return is_negative ? LargeAngle{-r, -r_low, quarters} : LargeAngle{r, r_low, quarters};
}

}  // namespace palimpsest
