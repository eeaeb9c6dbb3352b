// SPDX-License-Identifier: Apache-2.0
// Loops written by hand for one expression on this machine.
#pragma once

#include <complex>
#include <cstddef>

namespace palimpsest::bench {

using c64 = std::complex<float>;

/// Bounds for all kernels: the sum of all elements, a copy, a[i] + s b[i].
float read_all(const float* a, std::size_t n);
/// Reads eight rows at a time, a cache line of each, with prefetch 1 KiB ahead.
float read_rows(const float* a, std::size_t rows, std::size_t columns);
/// Copies a matrix by columns of the width of a cache line.
void copy_columns(const float* a, float* z, std::size_t rows, std::size_t columns);
void copy_all(const float* a, float* z, std::size_t n);
void copy_streamed(const float* a, float* z, std::size_t n);
void triad(const float* a, const float* b, float* z, std::size_t n);

/// z = a b + c.
void product_sum(const float* a, const float* b, const float* c, float* z, std::size_t n,
                 bool streamed);
/// z = a conj(b) + s c.
void conj_product_sum(const c64* a, const c64* b, c64 s, const c64* c, c64* z, std::size_t n,
                      bool streamed);
/// z = (((((a b + c) d - a) b + d) c - b) a + c).
void chain(const float* a, const float* b, const float* c, const float* d, float* z, std::size_t n,
           bool streamed);

}  // namespace palimpsest::bench
