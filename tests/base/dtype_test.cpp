// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/base/dtype.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <sstream>
#include <vector>

#include "support/expect_error.hpp"

namespace palimpsest {
namespace {

using testing::expect_error;

std::vector<DType> all_dtypes() {
  std::vector<DType> all;
  for (int i = 0; i < kDTypeCount; ++i) all.push_back(static_cast<DType>(i));
  return all;
}

std::vector<std::string> words_of(const char* text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

constexpr const char* kShortNames = "b1 i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 c64 c128";

TEST(DType, ParsesWhatItPrintsAndShortForms) {
  const std::vector<std::string> short_names = words_of(kShortNames);
  for (std::size_t i = 0; i < short_names.size(); ++i) {
    const DType dtype = all_dtypes()[i];
    EXPECT_EQ(parse_dtype(name_of(dtype)), dtype);
    EXPECT_EQ(parse_dtype(short_names[i]), dtype) << short_names[i];
  }
  EXPECT_EQ(name_of(DType::bool_), "bool");
  EXPECT_EQ(name_of(DType::complex64), "complex64");
  for (const char* text : {"float16", "", "Float32", "f32 "}) {
    expect_error<ValueError>([=] { parse_dtype(text); }, "'" + std::string(text) + "'");
  }
}

TEST(DType, MatchesItsCppType) {
  for (DType dtype : all_dtypes()) {
    const auto [found, bytes] = visit_dtype(dtype, [](auto tag) {
      using T = typename decltype(tag)::type;
      return std::pair(dtype_of<const T>, sizeof(T));
    });
    EXPECT_EQ(found, dtype);
    EXPECT_EQ(bytes, item_size(dtype));
  }
  expect_error<InternalError>([] { visit_dtype(static_cast<DType>(99), [](auto) {}); },
                              "not a dtype");
}

TEST(DType, FallsIntoKinds) {
  for (DType dtype : all_dtypes()) {
    const int kinds = is_bool(dtype) + is_integer(dtype) + is_floating(dtype) + is_complex(dtype);
    EXPECT_EQ(kinds, 1) << name_of(dtype);
    EXPECT_EQ(is_inexact(dtype), is_floating(dtype) || is_complex(dtype));
    visit_dtype(dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      constexpr bool kIsBool = std::is_same_v<T, bool>;
      EXPECT_EQ(is_floating(dtype), std::is_floating_point_v<T>);
      EXPECT_EQ(is_unsigned(dtype), std::is_unsigned_v<T> && !kIsBool);
      EXPECT_EQ(is_integer(dtype), std::is_integral_v<T> && !kIsBool);
    });
  }
}

TEST(DType, PairsRealAndComplexOfOnePrecision) {
  EXPECT_EQ(real_of(DType::complex64), DType::float32);
  EXPECT_EQ(real_of(DType::complex128), DType::float64);
  EXPECT_EQ(real_of(DType::int8), DType::int8);
  EXPECT_EQ(complex_of(DType::float32), DType::complex64);
  EXPECT_EQ(complex_of(DType::complex64), DType::complex64);
  EXPECT_EQ(complex_of(DType::float64), DType::complex128);
  EXPECT_EQ(complex_of(DType::int8), DType::complex128);
  EXPECT_EQ(complex_of(DType::bool_), DType::complex128);
}

TEST(DType, VisitInexactRefusesOthers) {
  int n_visited = 0;
  for (DType dtype : all_dtypes()) {
    if (is_inexact(dtype)) {
      visit_inexact(dtype, "fft", [&](auto tag) {
        n_visited += dtype_of<typename decltype(tag)::type> == dtype ? 1 : 0;
      });
      continue;
    }
    expect_error<DTypeError>([=] { visit_inexact(dtype, "fft", [](auto) {}); },
                             "[fft] got " + std::string(name_of(dtype)));
  }
  EXPECT_EQ(n_visited, 4);
}

// numpy.result_type of two arrays, NumPy 2.
constexpr std::array<const char*, kDTypeCount> kPromoted = {
    "b1   i8   i16  i32  i64  u8   u16  u32  u64  f32  f64  c64  c128",
    "i8   i8   i16  i32  i64  i16  i32  i64  f64  f32  f64  c64  c128",
    "i16  i16  i16  i32  i64  i16  i32  i64  f64  f32  f64  c64  c128",
    "i32  i32  i32  i32  i64  i32  i32  i64  f64  f64  f64  c128 c128",
    "i64  i64  i64  i64  i64  i64  i64  i64  f64  f64  f64  c128 c128",
    "u8   i16  i16  i32  i64  u8   u16  u32  u64  f32  f64  c64  c128",
    "u16  i32  i32  i32  i64  u16  u16  u32  u64  f32  f64  c64  c128",
    "u32  i64  i64  i64  i64  u32  u32  u32  u64  f64  f64  c128 c128",
    "u64  f64  f64  f64  f64  u64  u64  u64  u64  f64  f64  c128 c128",
    "f32  f32  f32  f64  f64  f32  f32  f64  f64  f32  f64  c64  c128",
    "f64  f64  f64  f64  f64  f64  f64  f64  f64  f64  f64  c128 c128",
    "c64  c64  c64  c128 c128 c64  c64  c128 c128 c64  c128 c64  c128",
    "c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128"};

TEST(Promote, FollowsNumPy) {
  for (DType a : all_dtypes()) {
    const std::vector<std::string> row = words_of(kPromoted[static_cast<std::size_t>(a)]);
    ASSERT_EQ(row.size(), std::size_t{kDTypeCount});
    for (DType b : all_dtypes()) {
      EXPECT_EQ(name_of(promote(a, b)), name_of(parse_dtype(row[static_cast<std::size_t>(b)])))
          << name_of(a) << " and " << name_of(b);
      EXPECT_EQ(promote(a, b), promote(b, a));
    }
  }
}

// The types that hold every value of the row's type. Stricter than NumPy's "safe" casts, which
// allow int64 to float64.
constexpr std::array<const char*, kDTypeCount> kExact = {
    "b1 i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 c64 c128",
    "i8 i16 i32 i64 f32 f64 c64 c128",
    "i16 i32 i64 f32 f64 c64 c128",
    "i32 i64 f64 c128",
    "i64",
    "u8 u16 u32 u64 i16 i32 i64 f32 f64 c64 c128",
    "u16 u32 u64 i32 i64 f32 f64 c64 c128",
    "u32 u64 i64 f64 c128",
    "u64",
    "f32 f64 c64 c128",
    "f64 c128",
    "c64 c128",
    "c128"};

TEST(ConvertsExactly, MeansThatEveryValueSurvives) {
  for (DType from : all_dtypes()) {
    std::vector<DType> exact;
    for (const std::string& name : words_of(kExact[static_cast<std::size_t>(from)])) {
      exact.push_back(parse_dtype(name));
    }
    for (DType to : all_dtypes()) {
      const bool expected = std::find(exact.begin(), exact.end(), to) != exact.end();
      EXPECT_EQ(converts_exactly(from, to), expected) << name_of(from) << " to " << name_of(to);
    }
  }
}

}  // namespace
}  // namespace palimpsest
