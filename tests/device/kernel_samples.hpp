// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "palimpsest/device/backend.hpp"

namespace palimpsest::testing {

/// Kernels of float numbers: `duplicate` (to, from, n), `scale_add` (y, a, b, c, n) with
/// y = a b + c, `multiply` (y, a, b, n) of complex numbers, `add_later` (to, value, rounds), which
/// takes its time, and `scale` (y, factor, n) by a number in double.
inline KernelText sample_text() {
  return {.name = "samples",
          .text = R"(
FUNC c32 mul_c32(c32 a, c32 b) { return c32_(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x); }

KERNEL(duplicate, 64)(GLOBAL u8* p0, i64 o0, GLOBAL u8* p1, i64 o1, i64 n) {
  GLOBAL f32* to = AT(f32, p0, o0);
  GLOBAL const f32* from = AT(f32, p1, o1);
  for (i64 i = GROUP(0) * 64 + ITEM; i < n; i += GROUPS(0) * 64) to[i] = from[i];
}

KERNEL(scale_add, 64)(GLOBAL u8* p0, i64 o0, GLOBAL u8* p1, i64 o1, GLOBAL u8* p2, i64 o2,
                      GLOBAL u8* p3, i64 o3, i64 n) {
  for (i64 i = GROUP(0) * 64 + ITEM; i < n; i += GROUPS(0) * 64)
    AT(f32, p0, o0)[i] = AT(f32, p1, o1)[i] * AT(f32, p2, o2)[i] + AT(f32, p3, o3)[i];
}

KERNEL(multiply, 64)(GLOBAL u8* p0, i64 o0, GLOBAL u8* p1, i64 o1, GLOBAL u8* p2, i64 o2, i64 n) {
  for (i64 i = GROUP(0) * 64 + ITEM; i < n; i += GROUPS(0) * 64)
    AT(c32, p0, o0)[i] = mul_c32(AT(c32, p1, o1)[i], AT(c32, p2, o2)[i]);
}

KERNEL(add_later, 1)(GLOBAL u8* p0, i64 o0, i64 value, i64 rounds) {
  u32 x = 1;
  for (i64 i = 0; i < rounds; ++i) x = x * 1664525u + 1013904223u;
  if (x != 0x7fffffffu) *AT(i64, p0, o0) += value;
}

KERNEL(scale, 64)(GLOBAL u8* p0, i64 o0, f64 factor, i64 n) {
  for (i64 i = GROUP(0) * 64 + ITEM; i < n; i += GROUPS(0) * 64)
    AT(f32, p0, o0)[i] = (f32)(factor * AT(f32, p0, o0)[i]);
}
)",
          .kernels = {"duplicate", "scale_add", "multiply", "add_later", "scale"}};
}

enum SampleKernel : std::size_t { kDuplicate, kScaleAdd, kMultiply, kAddLater, kScale };

}  // namespace palimpsest::testing
