// SPDX-License-Identifier: Apache-2.0
// Casts of rows to integers. This file is compiled once per instruction set; the best one is
// chosen when the program runs. Casts of C++ that fit become vectors; the others are undefined.
#include "palimpsest/copy/integer_rows.hpp"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "palimpsest/copy/loop_targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "palimpsest/copy/integer_rows.cpp"
#define HWY_DISABLED_TARGETS PALIMPSEST_NO_LOOPS_FOR
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace palimpsest {
namespace HWY_NAMESPACE {
namespace {

template <class T>
HWY_INLINE T element(const std::byte* at, index_t i) {
  T value;
  std::memcpy(&value, at + i * index_t{sizeof(T)}, sizeof(T));
  return value;
}

template <class From, class To>
void to_integers(const std::byte* x, std::byte* y, index_t n,
                 void (*careful)(const std::byte*, std::byte*, index_t)) {
  using Middle = std::conditional_t<sizeof(To) == 8, std::int64_t, std::int32_t>;
  constexpr From kLimit = sizeof(To) == 8 ? From{9223372036854775808.0} : From{2147483648.0};
  constexpr index_t kPiece = 64;
  for (; n >= kPiece; n -= kPiece) {
    int n_fit = 0;
    for (index_t k = 0; k < kPiece; ++k) n_fit += std::abs(element<From>(x, k)) < kLimit ? 1 : 0;
    if (n_fit == kPiece) {
      for (index_t k = 0; k < kPiece; ++k) {
        const To value = static_cast<To>(static_cast<Middle>(element<From>(x, k)));
        std::memcpy(y + k * index_t{sizeof(To)}, &value, sizeof(To));
      }
    } else {
      careful(x, y, kPiece);
    }
    x += kPiece * index_t{sizeof(From)};
    y += kPiece * index_t{sizeof(To)};
  }
  careful(x, y, n);
}

template <class From>
IntegerRow row_to(std::size_t bytes) {
  switch (bytes) {
    case 1:
      return to_integers<From, std::uint8_t>;
    case 2:
      return to_integers<From, std::uint16_t>;
    case 4:
      return to_integers<From, std::uint32_t>;
    default:
      return to_integers<From, std::uint64_t>;
  }
}

}  // namespace

IntegerRow row_of(std::size_t number_bytes, std::size_t integer_bytes) {
  return number_bytes == 4 ? row_to<float>(integer_bytes) : row_to<double>(integer_bytes);
}

}  // namespace HWY_NAMESPACE
}  // namespace palimpsest
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace palimpsest {

HWY_EXPORT(row_of);

IntegerRow integer_row(std::size_t number_bytes, std::size_t integer_bytes) {
  return HWY_DYNAMIC_DISPATCH(row_of)(number_bytes, integer_bytes);
}

}  // namespace palimpsest
#endif
