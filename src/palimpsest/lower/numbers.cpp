// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/lower/numbers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>

#include "palimpsest/base/error.hpp"

namespace palimpsest::lower {
namespace {

// Classes of dtypes with a common text.
enum Kind : unsigned { B = 1, I = 2, U = 4, F = 8, C = 16 };

Kind kind_of(DType dtype) {
  if (is_bool(dtype)) return B;
  if (is_complex(dtype)) return C;
  if (is_inexact(dtype)) return F;
  return is_unsigned(dtype) ? U : I;
}

// A function of a, b, c. In its body $T is the type of the operands, $R its real type, $W an
// unsigned type of at least 32 bits in which integers wrap, $c makes a complex number, and $name
// is the function of that operation or helper.
struct Text {
  ScalarOp op;
  unsigned kinds;
  std::string_view body;
};

constexpr Text kTexts[] = {
    {ScalarOp::add, B, "return (a | b) != 0;"},
    {ScalarOp::add, I | U, "return ($T)(($W)a + ($W)b);"},
    {ScalarOp::add, F, "return a + b;"},
    {ScalarOp::add, C, "return $c(a.x + b.x, a.y + b.y);"},
    {ScalarOp::sub, I | U, "return ($T)(($W)a - ($W)b);"},
    {ScalarOp::sub, F, "return a - b;"},
    {ScalarOp::sub, C, "return $c(a.x - b.x, a.y - b.y);"},
    {ScalarOp::mul, B, "return (a != 0) & (b != 0);"},
    {ScalarOp::mul, I | U, "return ($T)(($W)a * ($W)b);"},
    {ScalarOp::mul, F, "return a * b;"},
    {ScalarOp::mul, C, "return $c(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);"},
    {ScalarOp::div, F, "return a / b;"},
    {ScalarOp::div, C,
     "const c64 q = $quotient(c64_((f64)a.x, (f64)a.y), c64_((f64)b.x, (f64)b.y));\n"
     "  return $c(($R)q.x, ($R)q.y);"},
    {ScalarOp::neg, I | U, "return ($T)(($W)0 - ($W)a);"},
    {ScalarOp::neg, F, "return -a;"},
    {ScalarOp::neg, C, "return $c(-a.x, -a.y);"},
    {ScalarOp::abs, B, "return a != 0;"},
    {ScalarOp::abs, I, "return a < 0 ? $neg(a) : a;"},
    {ScalarOp::abs, U, "return a;"},
    {ScalarOp::abs, F, "return fabs(a);"},
    {ScalarOp::abs, C, "return $size(a);"},
    {ScalarOp::sign, I, "return ($T)((a > 0) - (a < 0));"},
    {ScalarOp::sign, U, "return ($T)(a > 0);"},
    {ScalarOp::sign, F, "return a != a ? a : ($T)((a > 0) - (a < 0));"},
    {ScalarOp::sign, C,
     "const $R size = $magnitude(a);\n"
     "  if (isinf(size)) {\n"
     "    const $T smaller = $c(a.x * ($R)0.25, a.y * ($R)0.25);\n"
     "    const $T end = $c(isinf(a.x) ? copysign(($R)1, a.x) : a.x * 0,\n"
     "                      isinf(a.y) ? copysign(($R)1, a.y) : a.y * 0);\n"
     "    const $T x = isinf($magnitude(smaller)) ? end : smaller;\n"
     "    const $R length = $magnitude(x);\n"
     "    return $c(x.x / length, x.y / length);\n"
     "  }\n"
     "  return size == 0 ? $c(0, 0) : $c(a.x / size, a.y / size);"},
    {ScalarOp::reciprocal, F, "return 1 / a;"},
    {ScalarOp::reciprocal, C, "return $div($c(1, 0), a);"},
    {ScalarOp::square, I | U | F | C, "return $mul(a, a);"},
    {ScalarOp::sqrt, F, "return sqrt(a);"},
    {ScalarOp::pow, I,
     "if (b < 0) return a == 1 ? 1 : a == -1 ? (b % 2 == 0 ? 1 : -1) : 0;\n"
     "  $W power = 1, factor = ($W)a;\n"
     "  for ($W rest = ($W)b; rest != 0; rest >>= 1) {\n"
     "    if ((rest & 1) != 0) power *= factor;\n"
     "    factor *= factor;\n"
     "  }\n"
     "  return ($T)power;"},
    {ScalarOp::pow, U,
     "$W power = 1, factor = ($W)a;\n"
     "  for ($W rest = ($W)b; rest != 0; rest >>= 1) {\n"
     "    if ((rest & 1) != 0) power *= factor;\n"
     "    factor *= factor;\n"
     "  }\n"
     "  return ($T)power;"},
    {ScalarOp::fma, B | I | U | F | C, "return $add($mul(a, b), c);"},
    {ScalarOp::minimum, B, "return (a != 0) & (b != 0);"},
    {ScalarOp::minimum, I | U, "return a < b ? a : b;"},
    {ScalarOp::minimum, F, "return a < b || a != a ? a : b;"},
    {ScalarOp::maximum, B, "return (a | b) != 0;"},
    {ScalarOp::maximum, I | U, "return a > b ? a : b;"},
    {ScalarOp::maximum, F, "return a > b || a != a ? a : b;"},
    {ScalarOp::floor_div, I,
     "if (b == 0) return 0;\n"
     "  if (b == -1) return $neg(a);\n"
     "  const $T rest = ($T)(a % b);\n"
     "  return ($T)(a / b - (rest != 0 && (rest < 0) != (b < 0)));"},
    {ScalarOp::floor_div, U, "return b == 0 ? ($T)0 : ($T)(a / b);"},
    {ScalarOp::floor_div, F,
     "if (b == 0) return a / b;\n"
     "  const $T rest = fmod(a, b);\n"
     "  $T quotient = (a - rest) / b;\n"
     "  if (rest != 0 && (rest < 0) != (b < 0)) quotient -= 1;\n"
     "  if (quotient == 0) return copysign(($T)0, a / b);\n"
     "  const $T whole = floor(quotient);\n"
     "  return quotient - whole > ($T)0.5 ? whole + 1 : whole;"},
    {ScalarOp::mod, I,
     "if (b == 0 || b == -1) return 0;\n"
     "  const $T rest = ($T)(a % b);\n"
     "  return rest != 0 && (rest < 0) != (b < 0) ? ($T)(rest + b) : rest;"},
    {ScalarOp::mod, U, "return b == 0 ? ($T)0 : ($T)(a % b);"},
    {ScalarOp::mod, F,
     "const $T rest = fmod(a, b);\n"
     "  if (rest == 0) return copysign(($T)0, b);\n"
     "  return (rest < 0) != (b < 0) ? rest + b : rest;"},
    {ScalarOp::round, B, "return a != 0;"},
    {ScalarOp::round, I | U, "return a;"},
    {ScalarOp::round, F, "return rint(a);"},
    {ScalarOp::round, C, "return $c(rint(a.x), rint(a.y));"},
    {ScalarOp::clip, B | I | U | F, "return $minimum($maximum(a, b), c);"},
    {ScalarOp::eq, B, "return (a != 0) == (b != 0);"},
    {ScalarOp::eq, I | U | F, "return a == b;"},
    {ScalarOp::eq, C, "return (a.x == b.x) & (a.y == b.y);"},
    {ScalarOp::ne, B | I | U | F | C, "return !$eq(a, b);"},
    {ScalarOp::lt, B, "return (a != 0) < (b != 0);"},
    {ScalarOp::lt, I | U | F, "return a < b;"},
    {ScalarOp::le, B, "return (a != 0) <= (b != 0);"},
    {ScalarOp::le, I | U | F, "return a <= b;"},
    {ScalarOp::gt, B | I | U | F, "return $lt(b, a);"},
    {ScalarOp::ge, B | I | U | F, "return $le(b, a);"},
    {ScalarOp::isnan, B | I | U, "return 0;"},
    {ScalarOp::isnan, F, "return a != a;"},
    {ScalarOp::isnan, C, "return (a.x != a.x) | (a.y != a.y);"},
    {ScalarOp::isinf, B | I | U, "return 0;"},
    {ScalarOp::isinf, F, "return isinf(a) != 0;"},
    {ScalarOp::isinf, C, "return (isinf(a.x) != 0) | (isinf(a.y) != 0);"},
    {ScalarOp::isfinite, B | I | U, "return 1;"},
    {ScalarOp::isfinite, F, "return isfinite(a) != 0;"},
    {ScalarOp::isfinite, C, "return (isfinite(a.x) != 0) & (isfinite(a.y) != 0);"},
    {ScalarOp::logical_and, B, "return (a != 0) & (b != 0);"},
    {ScalarOp::logical_or, B, "return (a | b) != 0;"},
    {ScalarOp::logical_xor, B, "return (a != 0) != (b != 0);"},
    {ScalarOp::logical_not, B, "return a == 0;"},
    {ScalarOp::bitwise_and, B, "return (a != 0) & (b != 0);"},
    {ScalarOp::bitwise_and, I | U, "return ($T)(a & b);"},
    {ScalarOp::bitwise_or, B, "return (a | b) != 0;"},
    {ScalarOp::bitwise_or, I | U, "return ($T)(a | b);"},
    {ScalarOp::bitwise_xor, B, "return (a != 0) != (b != 0);"},
    {ScalarOp::bitwise_xor, I | U, "return ($T)(a ^ b);"},
    {ScalarOp::bitwise_not, B, "return a == 0;"},
    {ScalarOp::bitwise_not, I | U, "return ($T)~a;"},
    {ScalarOp::conj, B, "return a != 0;"},
    {ScalarOp::conj, I | U | F, "return a;"},
    {ScalarOp::conj, C, "return $c(a.x, -a.y);"},
    {ScalarOp::angle, F, "return a != a ? a : signbit(a) ? ($T)3.14159265358979323846 : ($T)0;"},
    {ScalarOp::abs2, I | U | F, "return $mul(a, a);"},
    {ScalarOp::abs2, C, "return a.x * a.x + a.y * a.y;"},
    {ScalarOp::make_complex, F, "return $c(a, b);"},
    {ScalarOp::real, B, "return a != 0;"},
    {ScalarOp::real, I | U | F, "return a;"},
    {ScalarOp::real, C, "return a.x;"},
    {ScalarOp::imag, B | I | U | F, "return 0;"},
    {ScalarOp::imag, C, "return a.y;"},
    {ScalarOp::where, B | I | U | F | C, "return a != 0 ? b : c;"},
};

// Functions that each device rounds in its own way, of real numbers to a few units in the last
// place.
constexpr Text kRounded[] = {
    {ScalarOp::exp, F, "return exp(a);"},
    {ScalarOp::exp, C,
     "const $R size = exp(a.x);\n"
     "  return a.y == 0 ? $c(size, a.y) : $c(size * cos(a.y), size * sin(a.y));"},
    {ScalarOp::expm1, F, "return expm1(a);"},
    {ScalarOp::expm1, C,
     "const $R half_sine = sin(a.y / 2);\n"
     "  return $c(expm1(a.x) * cos(a.y) - 2 * half_sine * half_sine, exp(a.x) * sin(a.y));"},
    {ScalarOp::log, F, "return log(a);"},
    {ScalarOp::log, C, "return $c(log($magnitude(a)), atan2(a.y, a.x));"},
    {ScalarOp::log1p, F, "return log1p(a);"},
    {ScalarOp::log1p, C,
     "if (fabs(a.x) > ($R)0.5 || fabs(a.y) > ($R)0.5) return $log($c(1 + a.x, a.y));\n"
     "  return $c(($R)0.5 * log1p(a.x * (2 + a.x) + a.y * a.y), atan2(a.y, 1 + a.x));"},
    {ScalarOp::log2, F, "return log2(a);"},
    {ScalarOp::log2, C,
     "const $T y = $log(a);\n"
     "  return $c(y.x * ($R)1.44269504088896340736, y.y * ($R)1.44269504088896340736);"},
    {ScalarOp::log10, F, "return log10(a);"},
    {ScalarOp::log10, C,
     "const $T y = $log(a);\n"
     "  return $c(y.x * ($R)0.43429448190325182765, y.y * ($R)0.43429448190325182765);"},
    {ScalarOp::sin, F, "return sin(a);"},
    {ScalarOp::sin, C, "return $c(sin(a.x) * cosh(a.y), cos(a.x) * sinh(a.y));"},
    {ScalarOp::cos, F, "return cos(a);"},
    {ScalarOp::cos, C, "return $c(cos(a.x) * cosh(a.y), -sin(a.x) * sinh(a.y));"},
    {ScalarOp::tan, F, "return tan(a);"},
    {ScalarOp::tan, C, "return $div($sin(a), $cos(a));"},
    {ScalarOp::arcsin, F, "return asin(a);"},
    {ScalarOp::arccos, F, "return acos(a);"},
    {ScalarOp::arctan, F, "return atan(a);"},
    {ScalarOp::sinh, F, "return sinh(a);"},
    {ScalarOp::sinh, C, "return $c(sinh(a.x) * cos(a.y), cosh(a.x) * sin(a.y));"},
    {ScalarOp::cosh, F, "return cosh(a);"},
    {ScalarOp::cosh, C, "return $c(cosh(a.x) * cos(a.y), sinh(a.x) * sin(a.y));"},
    {ScalarOp::tanh, F, "return tanh(a);"},
    {ScalarOp::arcsinh, F, "return asinh(a);"},
    {ScalarOp::arccosh, F, "return acosh(a);"},
    {ScalarOp::arctanh, F, "return atanh(a);"},
    {ScalarOp::arctan2, F, "return atan2(a, b);"},
    {ScalarOp::hypot, F, "return hypot(a, b);"},
    {ScalarOp::pow, F, "return pow(a, b);"},
    {ScalarOp::erf, F, "return erf(a);"},
    {ScalarOp::sinc, F,
     "const $T x = a * ($T)3.14159265358979323846;\n"
     "  return x == 0 ? ($T)1 : sin(x) / x;"},
    {ScalarOp::sigmoid, F,
     "const $T e = exp(-fabs(a));\n"
     "  return (a < 0 ? e : ($T)1) / (1 + e);"},
    {ScalarOp::sqrt, C,
     "if (a.x == 0 && a.y == 0) return $c(0, a.y);\n"
     "  if (isinf(a.y)) return $c(fabs(a.y), a.y);\n"
     "  const $R part = sqrt(($R)0.5 * fabs(a.x) + ($R)0.5 * $magnitude(a));\n"
     "  const $R other = a.y / (2 * part);\n"
     "  return a.x >= 0 ? $c(part, other) : $c(fabs(other), copysign(part, a.y));"},
    {ScalarOp::angle, C, "return atan2(a.y, a.x);"},
};

// Functions that are no operations; they stand in front of all that call them. Complex quotients
// are computed in double precision, outside a safe range from numbers scaled by powers of 2.
struct Helper {
  std::string_view name, text;
};
constexpr Helper kHelpers[] = {
    {"conj_mul_c32",
     "FUNC c32 conj_mul_c32(c32 a, c32 b) {\n"
     "  return c32_(a.x * b.x + a.y * b.y, a.x * b.y - a.y * b.x);\n"
     "}\n"},
    {"conj_mul_c64",
     "FUNC c64 conj_mul_c64(c64 a, c64 b) {\n"
     "  return c64_(a.x * b.x + a.y * b.y, a.x * b.y - a.y * b.x);\n"
     "}\n"},
    // In the dtype itself, by powers of two where squares leave its range.
    {"size_c32",
     "FUNC f32 size_c32(c32 a) {\n"
     "  const f32 size = sqrt(a.x * a.x + a.y * a.y);\n"
     "  if (size > 0x1p-50f && size < 0x1p50f) return size;\n"
     "  if (isinf(a.x) || isinf(a.y)) return isinf(a.x) ? fabs(a.x) : fabs(a.y);\n"
     "  const f32 largest = fmax(fabs(a.x), fabs(a.y));\n"
     "  const f32 factor = largest > 0x1p50f ? 0x1p-100f : largest < 0x1p-50f ? 0x1p100f : 1.0f;\n"
     "  const f32 x = a.x * factor, y = a.y * factor;\n"
     "  return sqrt(x * x + y * y) * (1 / factor);\n"
     "}\n"},
    {"size_c64",
     "FUNC f64 size_c64(c64 a) {\n"
     "  const f64 size = sqrt(a.x * a.x + a.y * a.y);\n"
     "  if (size > 0x1p-400 && size < 0x1p400) return size;\n"
     "  if (isinf(a.x) || isinf(a.y)) return isinf(a.x) ? fabs(a.x) : fabs(a.y);\n"
     "  const f64 largest = fmax(fabs(a.x), fabs(a.y));\n"
     "  const f64 factor = largest > 0x1p400 ? 0x1p-600 : largest < 0x1p-400 ? 0x1p600 : 1.0;\n"
     "  const f64 x = a.x * factor, y = a.y * factor;\n"
     "  return sqrt(x * x + y * y) * (1 / factor);\n"
     "}\n"},
    {"magnitude_c32",
     "FUNC f32 magnitude_c32(c32 a) {\n"
     "  const f64 re = a.x, im = a.y;\n"
     "  return (f32)sqrt(re * re + im * im);\n"
     "}\n"},
    {"magnitude_c64",
     "FUNC f64 magnitude_c64(c64 a) {\n"
     "  const f64 square = a.x * a.x + a.y * a.y;\n"
     "  return square >= 1e-290 && square <= 1e300 ? sqrt(square) : size_c64(a);\n"
     "}\n"},
    {"quotient",
     "FUNC c64 plain_quotient(c64 a, c64 b) {\n"
     "  const f64 norm2 = b.x * b.x + b.y * b.y;\n"
     "  return c64_((a.x * b.x + a.y * b.y) / norm2, (a.y * b.x - a.x * b.y) / norm2);\n"
     "}\n"
     "FUNC c64 smith_quotient(c64 a, c64 b) {\n"
     "  if (fabs(b.x) >= fabs(b.y)) {\n"
     "    const f64 ratio = b.y / b.x, below = b.x + b.y * ratio;\n"
     "    return c64_((a.x + a.y * ratio) / below, (a.y - a.x * ratio) / below);\n"
     "  }\n"
     "  const f64 ratio = b.x / b.y, below = b.y + b.x * ratio;\n"
     "  return c64_((a.x * ratio + a.y) / below, (a.y * ratio - a.x) / below);\n"
     "}\n"
     "FUNC f64 largest_part(c64 z) {\n"
     "  const f64 re = fabs(z.x), im = fabs(z.y);\n"
     "  return re < im ? im : re;\n"
     "}\n"
     "FUNC c64 scaled(c64 z, i32 exponent) {\n"
     "  return c64_(ldexp(z.x, exponent), ldexp(z.y, exponent));\n"
     "}\n"
     "FUNC c64 far_quotient(c64 a, c64 b) {\n"
     "  if (b.x == 0 && b.y == 0) return plain_quotient(a, b);\n"
     "  if (!isfinite(largest_part(a)) || !isfinite(largest_part(b))) return smith_quotient(a, "
     "b);\n"
     "  const i32 of_b = ilogb(largest_part(b));\n"
     "  if (a.x == 0 && a.y == 0) return plain_quotient(a, scaled(b, -of_b));\n"
     "  const i32 of_a = ilogb(largest_part(a));\n"
     "  return scaled(plain_quotient(scaled(a, -of_a), scaled(b, -of_b)), of_a - of_b);\n"
     "}\n"
     "FUNC c64 quotient(c64 a, c64 b) {\n"
     "  const f64 norm2 = b.x * b.x + b.y * b.y;\n"
     "  const f64 re = a.x * b.x + a.y * b.y, im = a.y * b.x - a.x * b.y;\n"
     "  const f64 size = fabs(re) + fabs(im);\n"
     "  const bool is_safe = norm2 >= 1e-290 && norm2 <= 1e300 && size <= 1.7976931348623157e308 "
     "&&\n"
     "                       (size >= 1e-290 || (a.x == 0 && a.y == 0));\n"
     "  return is_safe ? c64_(re / norm2, im / norm2) : far_quotient(a, b);\n"
     "}\n"},
    {"wrapped",
     "FUNC u64 wrapped(f64 a) {\n"
     "  const f64 half_range = 9223372036854775808.0;\n"
     "  if (a > -half_range && a < half_range) return (u64)(i64)a;\n"
     "  if (!isfinite(a)) return 0;\n"
     "  const f64 rest = fmod(a, 2 * half_range);\n"
     "  const u64 size = (u64)fabs(rest);\n"
     "  return rest < 0 ? 0 - size : size;\n"
     "}\n"},
    // Word 0 or 1 of number i of a stream: Philox 4x32-10.
    {"random_word",
     "FUNC u64 random_word(u64 seed, u64 stream, u64 i, i32 which) {\n"
     "  u32 c0 = (u32)i, c1 = (u32)(i >> 32), c2 = (u32)stream, c3 = (u32)(stream >> 32);\n"
     "  u32 k0 = (u32)seed, k1 = (u32)(seed >> 32);\n"
     "  for (i32 round = 0; round < 10; ++round) {\n"
     "    const u64 a = (u64)0xD2511F53u * c0, b = (u64)0xCD9E8D57u * c2;\n"
     "    c0 = (u32)(b >> 32) ^ c1 ^ k0;\n"
     "    c2 = (u32)(a >> 32) ^ c3 ^ k1;\n"
     "    c1 = (u32)b;\n"
     "    c3 = (u32)a;\n"
     "    k0 += 0x9E3779B9u;\n"
     "    k1 += 0xBB67AE85u;\n"
     "  }\n"
     "  return which == 0 ? (u64)c0 | (u64)c1 << 32 : (u64)c2 | (u64)c3 << 32;\n"
     "}\n"},
    {"multiply_high",
     "FUNC u64 multiply_high(u64 a, u64 b) {\n"
     "  const u64 a0 = (u32)a, a1 = a >> 32, b0 = (u32)b, b1 = b >> 32;\n"
     "  const u64 middle = a1 * b0 + ((a0 * b0) >> 32);\n"
     "  return a1 * b1 + (middle >> 32) + (((middle & 0xFFFFFFFFu) + a0 * b1) >> 32);\n"
     "}\n"},
};

const Text* find_text(std::span<const Text> texts, ScalarOp op, DType working) {
  const auto found = std::ranges::find_if(texts, [&](const Text& text) {
    return text.op == op && (text.kinds & kind_of(working)) != 0;
  });
  return found == texts.end() ? nullptr : &*found;
}
const Text* find_text(ScalarOp op, DType working) {
  const Text* const exact = find_text(kTexts, op, working);
  return exact != nullptr ? exact : find_text(kRounded, op, working);
}

std::optional<ScalarOp> op_named(std::string_view name) {
  for (int i = 0; i < kScalarOpCount; ++i) {
    if (name_of(static_cast<ScalarOp>(i)) == name) return static_cast<ScalarOp>(i);
  }
  return std::nullopt;
}

std::string_view wide_type(DType dtype) { return item_size(dtype) == 8 ? "u64" : "u32"; }

ScalarOpTypes types_of(ScalarOp op, DType working) {
  std::array<DType, kMaxArity> operands{working, working, working};
  if (op == ScalarOp::where) operands[0] = DType::bool_;
  return scalar_op_types(op, std::span(operands).first(static_cast<std::size_t>(arity(op))));
}

DType complex_type(DType dtype) { return is_complex(dtype) ? dtype : complex_of(dtype); }

}  // namespace

std::string_view type_of(DType dtype) { return is_bool(dtype) ? "u8" : suffix_of(dtype); }

std::string_view suffix_of(DType dtype) {
  switch (dtype) {
    case DType::bool_:
      return "b8";
    case DType::uint8:
      return "u8";
    case DType::uint16:
      return "u16";
    case DType::uint32:
      return "u32";
    case DType::uint64:
      return "u64";
    case DType::int8:
      return "i8";
    case DType::int16:
      return "i16";
    case DType::int32:
      return "i32";
    case DType::int64:
      return "i64";
    case DType::float32:
      return "f32";
    case DType::float64:
      return "f64";
    case DType::complex64:
      return "c32";
    case DType::complex128:
      return "c64";
  }
  throw InternalError("[lower] not a dtype");
}

std::string zero_of(DType dtype) {
  return is_complex(dtype) ? fmt::format("{}_(0, 0)", type_of(dtype)) : "0";
}

bool Numbers::has(ScalarOp op, DType working) { return find_text(op, working) != nullptr; }

void Numbers::write(const std::string& name) {
  if (!written_.insert(name).second) return;
  for (const Helper& helper : kHelpers) {
    if (helper.name == name) text_ += helper.text;
  }
}

std::string Numbers::function(ScalarOp op, DType working) {
  const std::string name = fmt::format("{}_{}", name_of(op), suffix_of(working));
  if (written_.contains(name)) return name;
  const Text* const text = find_text(op, working);
  if (text == nullptr) throw InternalError("[lower] no text of " + name);
  std::string body;
  for (std::size_t i = 0; i < text->body.size(); ++i) {
    if (text->body[i] != '$') {
      body += text->body[i];
      continue;
    }
    std::size_t end = i + 1;
    while (end < text->body.size() &&
           (std::isalnum(static_cast<unsigned char>(text->body[end])) != 0 ||
            text->body[end] == '_')) {
      ++end;
    }
    const std::string_view word = text->body.substr(i + 1, end - i - 1);
    i = end - 1;
    if (word == "T") {
      body += type_of(working);
    } else if (word == "R") {
      body += type_of(real_of(working));
    } else if (word == "W") {
      body += wide_type(working);
    } else if (word == "c") {
      body += fmt::format("{}_", type_of(complex_type(working)));
    } else if (word == "quotient" || word == "magnitude" || word == "size") {
      const std::string helper =
          word == "quotient" ? "quotient" : fmt::format("{}_{}", word, suffix_of(working));
      if (helper == "magnitude_c64") write("size_c64");
      write(helper);
      body += helper;
    } else {
      body += function(*op_named(word), working);
    }
  }
  const ScalarOpTypes types = types_of(op, working);
  std::string parameters;
  for (int k = 0; k < arity(op); ++k) {
    parameters += fmt::format("{}{} {}", k == 0 ? "" : ", ", type_of(types.sources[k]),
                              static_cast<char>('a' + k));
  }
  written_.insert(name);
  text_ +=
      fmt::format("FUNC {} {}({}) {{\n  {}\n}}\n", type_of(types.result), name, parameters, body);
  return name;
}

std::string Numbers::helper(std::string_view name) {
  write(std::string(name));
  return std::string(name);
}

void Numbers::write_conversion(DType from, DType to) {
  const std::string_view result = type_of(to);
  std::string value;
  if (is_bool(to)) {
    value = is_complex(from) ? "(a.x != 0) | (a.y != 0)" : "a != 0";
  } else if (is_complex(to)) {
    const std::string_view part = type_of(real_of(to));
    value = is_complex(from) ? fmt::format("{}_(({})a.x, ({})a.y)", result, part, part)
                             : fmt::format("{}_(({})a, 0)", result, part);
  } else {
    const std::string_view number = is_complex(from) ? "a.x" : is_bool(from) ? "(a != 0)" : "a";
    const bool wraps = is_inexact(from) && !is_inexact(to);
    if (wraps) write("wrapped");
    value = wraps ? fmt::format("({})wrapped((f64){})", result, number)
                  : fmt::format("({}){}", result, number);
  }
  text_ += fmt::format("FUNC {} {}_of_{}({} a) {{\n  return {};\n}}\n", result, suffix_of(to),
                       suffix_of(from), type_of(from), value);
}

std::string Numbers::conj_product(DType dtype) {
  if (!is_complex(dtype)) return function(ScalarOp::mul, dtype);
  std::string name = fmt::format("conj_mul_{}", suffix_of(dtype));
  write(name);
  return name;
}

std::string Numbers::converted(std::string_view value, DType from, DType to) {
  if (from == to) return std::string(value);
  const std::string name = fmt::format("{}_of_{}", suffix_of(to), suffix_of(from));
  if (!written_.contains(name)) {
    write_conversion(from, to);
    written_.insert(name);
  }
  return fmt::format("{}({})", name, value);
}

}  // namespace palimpsest::lower
