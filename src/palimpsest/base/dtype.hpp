// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

#include "palimpsest/base/api.hpp"
#include "palimpsest/base/error.hpp"

namespace PALIMPSEST_API palimpsest {

/// Signed: sizes, extents, strides, indices.
using index_t = std::int64_t;

/// The types of elements. Complex numbers are interleaved (re, im).
enum class DType : std::uint8_t {
  bool_,
  int8,
  int16,
  int32,
  int64,
  uint8,
  uint16,
  uint32,
  uint64,
  float32,
  float64,
  complex64,
  complex128,
};
inline constexpr int kDTypeCount = 13;
inline constexpr std::array<std::uint8_t, kDTypeCount> kItemSizes{1, 1, 2, 4, 8, 1, 2,
                                                                  4, 8, 4, 8, 8, 16};

/// Bytes of one element.
constexpr std::size_t item_size(DType dtype) { return kItemSizes[static_cast<std::size_t>(dtype)]; }
/// The name as printed and parsed: `float32`.
std::string_view name_of(DType dtype);
/// The dtype of a name; also the short forms f32, f64, c64, c128, i8.., u8... ValueError if
/// unknown.
DType parse_dtype(std::string_view name);

bool is_bool(DType dtype);
/// Signed or unsigned integers; not bool.
bool is_integer(DType dtype);
bool is_unsigned(DType dtype);
/// Real floating point.
bool is_floating(DType dtype);
bool is_complex(DType dtype);
/// Floating point or complex: the dtypes of operators' data.
bool is_inexact(DType dtype);

/// The real type of the same precision: complex64 -> float32; others unchanged.
DType real_of(DType dtype);
/// The complex type of the same precision: float32 -> complex64; integers and bool -> complex128.
DType complex_of(DType dtype);
/// The type that holds the result of an operation on both, by NumPy 2's rules for arrays.
DType promote(DType a, DType b);
/// True if every value of `from` converts to `to` without loss.
bool converts_exactly(DType from, DType to);

template <class T>
struct DTypeOf;
#define PALIMPSEST_FOR_EACH_DTYPE(X) \
  X(bool, bool_)                     \
  X(std::int8_t, int8)               \
  X(std::int16_t, int16)             \
  X(std::int32_t, int32)             \
  X(std::int64_t, int64)             \
  X(std::uint8_t, uint8)             \
  X(std::uint16_t, uint16)           \
  X(std::uint32_t, uint32)           \
  X(std::uint64_t, uint64)           \
  X(float, float32)                  \
  X(double, float64)                 \
  X(std::complex<float>, complex64)  \
  X(std::complex<double>, complex128)
#define PALIMPSEST_DTYPE_OF(Type, Name)         \
  template <>                                   \
  struct DTypeOf<Type> {                        \
    static constexpr DType value = DType::Name; \
  };
PALIMPSEST_FOR_EACH_DTYPE(PALIMPSEST_DTYPE_OF)
#undef PALIMPSEST_DTYPE_OF

template <class T>
inline constexpr DType dtype_of = DTypeOf<std::remove_cv_t<T>>::value;

template <class T>
struct TypeTag {
  using type = T;
};

/// Calls `f(TypeTag<T>{})` with the C++ type of a dtype: the one place where dtypes become types.
template <class F>
decltype(auto) visit_dtype(DType dtype, F&& f) {
  switch (dtype) {
#define PALIMPSEST_VISIT(Type, Name) \
  case DType::Name:                  \
    return f(TypeTag<Type>{});
    PALIMPSEST_FOR_EACH_DTYPE(PALIMPSEST_VISIT)
#undef PALIMPSEST_VISIT
  }
  throw InternalError("visit_dtype: not a dtype");
}

/// visit_dtype() for float32, float64, complex64, complex128; others are a DTypeError naming `who`.
template <class F>
decltype(auto) visit_inexact(DType dtype, std::string_view who, F&& f) {
  switch (dtype) {
    case DType::float32:
      return f(TypeTag<float>{});
    case DType::float64:
      return f(TypeTag<double>{});
    case DType::complex64:
      return f(TypeTag<std::complex<float>>{});
    case DType::complex128:
      return f(TypeTag<std::complex<double>>{});
    default:
      throw DTypeError("[" + std::string(who) + "] got " + std::string(name_of(dtype)) +
                       ", expected a floating or complex dtype");
  }
}

}  // namespace palimpsest
