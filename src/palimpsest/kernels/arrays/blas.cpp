// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/kernels/arrays/blas.hpp"

#include <cblas.h>

#include <cassert>
#include <complex>
#include <string>

#include "palimpsest/base/error.hpp"
#include "palimpsest/kernels/arrays/blas_caller.hpp"

namespace palimpsest {
namespace {

CBLAS_TRANSPOSE mode(const GemmFactor& x) {
  if (x.conjugated) return x.transposed ? CblasConjTrans : CblasConjNoTrans;
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

template <class T, class Function>
void call_complex(Function function, const int (&sizes)[3], const GemmFactor& a,
                  const GemmFactor& b, void* out, int leading, const GemmScale& scale) {
  const auto alpha = number_at(scale.alpha, std::complex<T>(1));
  const auto beta = number_at(scale.beta, std::complex<T>(0));
  function(CblasRowMajor, mode(a), mode(b), sizes[0], sizes[1], sizes[2], &alpha, a.data,
           static_cast<int>(a.leading), b.data, static_cast<int>(b.leading), &beta, out, leading);
}

}  // namespace

void gemm(DType dtype, index_t m, index_t n, index_t k, const GemmFactor& a, const GemmFactor& b,
          void* out, index_t leading, const GemmScale& scale) {
  const BlasCaller caller;
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

std::string blas_library_version() {
  return std::string(openblas_get_config()) + ", kernels for " + openblas_get_corename();
}

}  // namespace palimpsest
