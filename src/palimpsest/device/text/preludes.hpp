// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

// The language of kernels: the common subset of OpenCL C 1.2 and CUDA C++ behind one of two
// preludes, which define
//
//     KERNEL(name, items) (parameters) {..}   an entry point for groups of `items` items
//     FUNC                                    in front of other functions
//     GLOBAL, LOCAL, RESTRICT                 memory of the device, of a group; no alias
//     GROUP(d), GROUPS(d), ITEM               position and number of groups, position in the group
//     BARRIER, UNROLL                         a statement; in front of a loop
//     u8 .. u64, i8 .. i64, f32, f64, c32, c64
//     c32_(re, im), c64_(re, im)              complex numbers; parts are .x and .y
//     AT(T, base, offset)                     a pointer to T, `offset` bytes behind `base`
//
// An address takes two parameters, GLOBAL u8* base, i64 offset. The others are i64 and f64.
namespace palimpsest {

extern const char* const kOpenClPrelude;
extern const char* const kCudaPrelude;

}  // namespace palimpsest
