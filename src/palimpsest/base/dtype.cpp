// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/base/dtype.hpp"

#include <array>
#include <utility>

namespace palimpsest {
namespace {

struct Info {
  std::string_view name, short_name;
};

constexpr std::array<Info, kDTypeCount> kInfo = {{
    {"bool", "b1"},
    {"int8", "i8"},
    {"int16", "i16"},
    {"int32", "i32"},
    {"int64", "i64"},
    {"uint8", "u8"},
    {"uint16", "u16"},
    {"uint32", "u32"},
    {"uint64", "u64"},
    {"float32", "f32"},
    {"float64", "f64"},
    {"complex64", "c64"},
    {"complex128", "c128"},
}};

const Info& info(DType dtype) { return kInfo[static_cast<std::size_t>(dtype)]; }

// The floating type that holds an integer type's range as NumPy pairs them.
DType floating_for(DType dtype) {
  switch (dtype) {
    case DType::bool_:
    case DType::int8:
    case DType::int16:
    case DType::uint8:
    case DType::uint16:
      return DType::float32;
    default:
      return DType::float64;
  }
}

DType signed_of_size(std::size_t bytes) {
  return bytes == 1   ? DType::int8
         : bytes == 2 ? DType::int16
         : bytes == 4 ? DType::int32
                      : DType::int64;
}

}  // namespace

std::string_view name_of(DType dtype) { return info(dtype).name; }

DType parse_dtype(std::string_view name) {
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    if (name == info(dtype).name || name == info(dtype).short_name) return dtype;
  }
  throw ValueError("[dtype] got '" + std::string(name) +
                   "', expected a name such as float32 or complex64");
}

bool is_bool(DType dtype) { return dtype == DType::bool_; }
bool is_integer(DType dtype) { return dtype >= DType::int8 && dtype <= DType::uint64; }
bool is_unsigned(DType dtype) { return dtype >= DType::uint8 && dtype <= DType::uint64; }
bool is_floating(DType dtype) { return dtype == DType::float32 || dtype == DType::float64; }
bool is_complex(DType dtype) { return dtype == DType::complex64 || dtype == DType::complex128; }
bool is_inexact(DType dtype) { return is_floating(dtype) || is_complex(dtype); }

DType real_of(DType dtype) {
  if (dtype == DType::complex64) return DType::float32;
  if (dtype == DType::complex128) return DType::float64;
  return dtype;
}

DType complex_of(DType dtype) {
  if (dtype == DType::float32 || dtype == DType::complex64) return DType::complex64;
  return DType::complex128;
}

DType promote(DType a, DType b) {
  if (a == b) return a;
  if (is_bool(a)) return b;
  if (is_bool(b)) return a;
  if (is_integer(a) && is_integer(b)) {
    if (is_unsigned(a) == is_unsigned(b)) return item_size(a) >= item_size(b) ? a : b;
    if (is_unsigned(b)) std::swap(a, b);  // a is the unsigned one
    if (item_size(a) < item_size(b)) return b;
    return item_size(a) == 8 ? DType::float64 : signed_of_size(2 * item_size(a));
  }
  const DType real_a = is_inexact(a) ? real_of(a) : floating_for(a);
  const DType real_b = is_inexact(b) ? real_of(b) : floating_for(b);
  const DType real = item_size(real_a) >= item_size(real_b) ? real_a : real_b;
  return is_complex(a) || is_complex(b) ? complex_of(real) : real;
}

bool converts_exactly(DType from, DType to) {
  if (from == to || is_bool(from)) return true;
  if (is_bool(to)) return false;
  if (is_complex(from) && !is_complex(to)) return false;
  if (is_integer(from) && is_integer(to)) {
    if (is_unsigned(from)) {
      return is_unsigned(to) ? item_size(from) <= item_size(to) : item_size(from) < item_size(to);
    }
    return !is_unsigned(to) && item_size(from) <= item_size(to);
  }
  if (is_integer(to)) return false;
  const std::size_t mantissa_bits = real_of(to) == DType::float32 ? 24 : 53;
  if (is_integer(from)) {
    return 8 * item_size(from) - (is_unsigned(from) ? 0 : 1) <= mantissa_bits;
  }
  return item_size(real_of(from)) <= item_size(real_of(to));
}

}  // namespace palimpsest
