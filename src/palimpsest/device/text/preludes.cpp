// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/device/text/preludes.hpp"

namespace palimpsest {

const char* const kOpenClPrelude = R"(#ifdef cl_khr_fp64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif
#pragma OPENCL FP_CONTRACT OFF
#define KERNEL(name, items) __kernel __attribute__((reqd_work_group_size(items, 1, 1))) void name
#define FUNC static inline
#define GLOBAL __global
#define LOCAL __local
#define RESTRICT restrict
#define GROUP(d) ((i64)get_group_id(d))
#define GROUPS(d) ((i64)get_num_groups(d))
#define ITEM ((i32)get_local_id(0))
#define BARRIER barrier(CLK_LOCAL_MEM_FENCE)
#define UNROLL
typedef uchar u8; typedef ushort u16; typedef uint u32; typedef ulong u64;
typedef char i8; typedef short i16; typedef int i32; typedef long i64;
typedef float f32; typedef float2 c32;
#define c32_(re, im) ((float2)(re, im))
#ifdef cl_khr_fp64
typedef double f64; typedef double2 c64;
#define c64_(re, im) ((double2)(re, im))
#endif
#define AT(T, base, offset) ((GLOBAL T*)((GLOBAL u8*)(base) + (offset)))
)";

const char* const kCudaPrelude = R"(
#define KERNEL(name, items) extern "C" __global__ void __launch_bounds__(items) name
#define FUNC static __device__ __forceinline__
#define GLOBAL
#define LOCAL __shared__
#define RESTRICT __restrict__
#define GROUP(d) ((i64)((d) == 0 ? blockIdx.x : (d) == 1 ? blockIdx.y : blockIdx.z))
#define GROUPS(d) ((i64)((d) == 0 ? gridDim.x : (d) == 1 ? gridDim.y : gridDim.z))
#define ITEM ((i32)threadIdx.x)
#define BARRIER __syncthreads()
#define UNROLL _Pragma("unroll")
typedef unsigned char u8; typedef unsigned short u16; typedef unsigned int u32;
typedef unsigned long long u64;
typedef signed char i8; typedef short i16; typedef int i32; typedef long long i64;
typedef float f32; typedef double f64; typedef float2 c32; typedef double2 c64;
#define c32_(re, im) make_float2(re, im)
#define c64_(re, im) make_double2(re, im)
#define AT(T, base, offset) ((T*)((u8*)(base) + (offset)))
)";

}  // namespace palimpsest
