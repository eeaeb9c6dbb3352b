// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/kernels/matrices/blas.hpp"

#include <cblas.h>

#include <cassert>
#include <complex>
#include <vector>

#include "palimpsest/kernels/matrices/blas_caller.hpp"

namespace palimpsest {
namespace {

// CblasConjNoTrans, which OpenBLAS adds to CBLAS.
constexpr auto kConjugated = static_cast<CBLAS_TRANSPOSE>(114);

CBLAS_TRANSPOSE mode(const GemmFactor& x) {
  if (x.conjugated) return x.transposed ? CblasConjTrans : kConjugated;
  return x.transposed ? CblasTrans : CblasNoTrans;
}

template <class T>
T number_at(const void* at, T otherwise) {
  return at ? *static_cast<const T*>(at) : otherwise;
}

template <class T, class Function>
void call_real(Function function, const int (&sizes)[3], const GemmFactor& a, const GemmFactor& b,
               void* out, int leading, const GemmScale& scale) {
  function(CblasRowMajor, mode({a.data, 1, a.transposed, false}),
           mode({b.data, 1, b.transposed, false}), sizes[0], sizes[1], sizes[2],
           number_at(scale.alpha, T{1}), static_cast<const T*>(a.data), static_cast<int>(a.leading),
           static_cast<const T*>(b.data), static_cast<int>(b.leading), number_at(scale.beta, T{0}),
           static_cast<T*>(out), leading);
}

// The rows of a factor that is conjugated and not transposed, as the conjugate copy that a library
// without kConjugated needs; else the factor.
template <class T>
GemmFactor without_conjugate(const GemmFactor& x, int rows, int columns,
                             std::vector<std::complex<T>>& copy) {
  if (!x.conjugated || x.transposed) return x;
  const auto* const from = static_cast<const std::complex<T>*>(x.data);
  copy.reserve(static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns));
  for (index_t i = 0; i < rows; ++i) {
    for (index_t j = 0; j < columns; ++j) copy.push_back(std::conj(from[i * x.leading + j]));
  }
  return {copy.data(), columns, false, false};
}

template <class T, class Function>
void call_complex(Function function, const int (&sizes)[3], const GemmFactor& a,
                  const GemmFactor& b, void* out, int leading, const GemmScale& scale) {
  const auto alpha = number_at(scale.alpha, std::complex<T>(1));
  const auto beta = number_at(scale.beta, std::complex<T>(0));
  GemmFactor left = a, right = b;
  std::vector<std::complex<T>> left_copy, right_copy;
  if (!blas_is_openblas()) {
    left = without_conjugate(a, sizes[0], sizes[2], left_copy);
    right = without_conjugate(b, sizes[2], sizes[1], right_copy);
  }
  function(CblasRowMajor, mode(left), mode(right), sizes[0], sizes[1], sizes[2], &alpha, left.data,
           static_cast<int>(left.leading), right.data, static_cast<int>(right.leading), &beta, out,
           leading);
}

}  // namespace

void gemm(DType dtype, index_t m, index_t n, index_t k, const GemmFactor& a, const GemmFactor& b,
          void* out, index_t leading, const GemmScale& scale) {
  const BlasCaller caller;
  gemm_unguarded(dtype, m, n, k, a, b, out, leading, scale);
}

void gemm_unguarded(DType dtype, index_t m, index_t n, index_t k, const GemmFactor& a,
                    const GemmFactor& b, void* out, index_t leading, const GemmScale& scale) {
  const int sizes[3] = {static_cast<int>(m), static_cast<int>(n), static_cast<int>(k)};
  const int rows = static_cast<int>(leading);
  switch (dtype) {
    case DType::float32:
      return call_real<float>(cblas_sgemm, sizes, a, b, out, rows, scale);
    case DType::float64:
      return call_real<double>(cblas_dgemm, sizes, a, b, out, rows, scale);
    case DType::complex64:
      return call_complex<float>(cblas_cgemm, sizes, a, b, out, rows, scale);
    default:
      assert(dtype == DType::complex128);
      return call_complex<double>(cblas_zgemm, sizes, a, b, out, rows, scale);
  }
}

}  // namespace palimpsest
