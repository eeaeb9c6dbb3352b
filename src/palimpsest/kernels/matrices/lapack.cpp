// SPDX-License-Identifier: Apache-2.0
// LAPACK is column-major: it sees a row-major matrix as its transpose, and a Hermitian one as its
// complex conjugate.
#include "palimpsest/kernels/matrices/lapack.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <type_traits>

#include "palimpsest/base/error.hpp"
#include "palimpsest/kernels/matrices/blas_caller.hpp"

using Complex = std::complex<double>;

extern "C" {
void dsyevd_(const char* jobz, const char* uplo, const int* n, double* a, const int* lda, double* w,
             double* work, const int* lwork, int* iwork, const int* liwork, int* info);
void zheevd_(const char* jobz, const char* uplo, const int* n, Complex* a, const int* lda,
             double* w, Complex* work, const int* lwork, double* rwork, const int* lrwork,
             int* iwork, const int* liwork, int* info);
void dgesdd_(const char* jobz, const int* m, const int* n, double* a, const int* lda, double* s,
             double* u, const int* ldu, double* vt, const int* ldvt, double* work, const int* lwork,
             int* iwork, int* info);
void zgesdd_(const char* jobz, const int* m, const int* n, Complex* a, const int* lda, double* s,
             Complex* u, const int* ldu, Complex* vt, const int* ldvt, Complex* work,
             const int* lwork, double* rwork, int* iwork, int* info);
void dsyrk_(const char* uplo, const char* trans, const int* n, const int* k, const double* alpha,
            const double* a, const int* lda, const double* beta, double* c, const int* ldc);
void zherk_(const char* uplo, const char* trans, const int* n, const int* k, const double* alpha,
            const Complex* a, const int* lda, const double* beta, Complex* c, const int* ldc);
void dgemm_(const char* transa, const char* transb, const int* m, const int* n, const int* k,
            const double* alpha, const double* a, const int* lda, const double* b, const int* ldb,
            const double* beta, double* c, const int* ldc);
void zgemm_(const char* transa, const char* transb, const int* m, const int* n, const int* k,
            const Complex* alpha, const Complex* a, const int* lda, const Complex* b,
            const int* ldb, const Complex* beta, Complex* c, const int* ldc);
// The only function of the Fortran runtime that LAPACK needs, since the runtime is not linked:
// joins a and b, truncated or padded with blanks.
void _gfortran_concat_string(std::size_t length, char* out, std::size_t a_length, const char* a,
                             std::size_t b_length, const char* b) {
  std::string both(a, a_length);
  both.append(b, b_length).resize(length, ' ');
  std::copy(both.begin(), both.end(), out);
}
}

namespace palimpsest {
namespace {

template <class T>
constexpr bool kIsReal = std::is_same_v<T, double>;

// Elements of the work arrays of dsyevd and zheevd.
struct EigenWork {
  int work, reals, integers;
};
template <class T>
EigenWork eigen_work(index_t size) {
  const auto n = static_cast<int>(size);
  if (n <= 1) return {1, 1, 1};
  if (kIsReal<T>) return {1 + 6 * n + 2 * n * n, 0, 3 + 5 * n};
  return {2 * n + n * n, 1 + 5 * n + 2 * n * n, 3 + 5 * n};
}

void expect_done(int info, const char* what) {
  if (info == 0) return;
  throw InternalError("[" + std::string(what) + "] LAPACK gave up: info = " + std::to_string(info));
}

template <class T>
void expect_finite(const T* begin, index_t n, const char* what) {
  const double* reals = reinterpret_cast<const double*>(begin);
  const index_t count = n * static_cast<index_t>(sizeof(T) / sizeof(double));
  if (std::all_of(reals, reals + count, [](double v) { return std::isfinite(v); })) return;
  throw InternalError("[" + std::string(what) + "] got an element that is not finite");
}

int size_of(index_t n) {
  if (n <= std::numeric_limits<int>::max()) return static_cast<int>(n);
  throw InternalError("LAPACK counts to 2^31 - 1: got " + std::to_string(n));
}

// Computes the vectors of the smaller side only; with length -1 the best length of work, in
// work[0].
template <class T>
int gesdd(int m, int n, int k, T* a, double* s, T* u, T* vh, T* work, int length, double* reals,
          int* integers) {
  const BlasCaller caller;
  int info = 0;
  if constexpr (kIsReal<T>) {
    dgesdd_("S", &m, &n, a, &m, s, u, &m, vh, &k, work, &length, integers, &info);
  } else {
    zgesdd_("S", &m, &n, a, &m, s, u, &m, vh, &k, work, &length, reals, integers, &info);
  }
  return info;
}

// Elements of the work arrays of dgesdd and zgesdd.
struct SingularWork {
  std::size_t work, reals, integers;
};
template <class T>
SingularWork singular_work(index_t rows, index_t columns) {
  const int m = size_of(columns), n = size_of(rows), k = std::min(m, n), larger = std::max(m, n);
  if (k == 0) return {0, 0, 0};
  T best{}, none{};
  double real = 0;
  int integer = 0;
  expect_done(gesdd(m, n, k, &none, &real, &none, &none, &best, -1, &real, &integer),
              "singular_values");
  const auto count = [](index_t v) { return static_cast<std::size_t>(v); };
  const index_t side = k;
  const index_t reals = kIsReal<T> ? 0 : side * std::max(5 * side + 7, 2 * (larger + side) + 1);
  return {count(static_cast<index_t>(std::real(best))), count(reals), count(8 * side)};
}

}  // namespace

template <class T>
std::size_t hermitian_eigen_work(index_t n) {
  const EigenWork w = eigen_work<T>(n);
  return static_cast<std::size_t>(w.work) * sizeof(T) +
         static_cast<std::size_t>(w.reals) * sizeof(double) +
         static_cast<std::size_t>(w.integers + 1) * sizeof(int);
}

template <class T>
void hermitian_eigen(index_t size, T* matrix, double* values, std::span<std::byte> work) {
  expect_finite(matrix, size * size, "hermitian_eigen");
  const auto n = static_cast<int>(size);
  if (n == 0) return;
  const EigenWork w = eigen_work<T>(size);
  T* const first = reinterpret_cast<T*>(work.data());
  double* const reals = reinterpret_cast<double*>(first + w.work);
  int* const integers = reinterpret_cast<int*>(reals + w.reals);
  int info = 0;
  {
    const BlasCaller caller;
    if constexpr (kIsReal<T>) {
      dsyevd_("V", "L", &n, matrix, &n, values, first, &w.work, integers, &w.integers, &info);
    } else {
      zheevd_("V", "L", &n, matrix, &n, values, first, &w.work, reals, &w.reals, integers,
              &w.integers, &info);
    }
  }
  expect_done(info, "hermitian_eigen");
  if constexpr (!kIsReal<T>) {
    for (index_t i = 0; i < size * size; ++i) matrix[i] = std::conj(matrix[i]);
  }
}

template <class T>
std::size_t singular_values_work(index_t rows, index_t columns) {
  const SingularWork w = singular_work<T>(rows, columns);
  return w.work * sizeof(T) + w.reals * sizeof(double) + (w.integers + 1) * sizeof(int);
}

template <class T>
void singular_values(index_t rows, index_t columns, T* matrix, T* u, double* s, T* vh,
                     std::span<std::byte> work) {
  expect_finite(matrix, rows * columns, "singular_values");
  // The transpose: its left vectors are the rows of vh.
  const int m = size_of(columns), n = size_of(rows), k = std::min(m, n);
  if (k == 0) return;
  const SingularWork w = singular_work<T>(rows, columns);
  T* const first = reinterpret_cast<T*>(work.data());
  double* const reals = reinterpret_cast<double*>(first + w.work);
  int* const integers = reinterpret_cast<int*>(reals + w.reals);
  expect_done(gesdd(m, n, k, matrix, s, vh, u, first, static_cast<int>(w.work), reals, integers),
              "singular_values");
}

template <class T>
void add_gram(index_t rows, index_t n, const T* a, T* c) {
  const BlasCaller caller;
  const auto k = static_cast<int>(rows), side = static_cast<int>(n);
  const double one = 1;
  if constexpr (kIsReal<T>) {
    dsyrk_("L", "N", &side, &k, &one, a, &side, &one, c, &side);
  } else {
    zherk_("L", "N", &side, &k, &one, a, &side, &one, c, &side);
  }
}

template <class T>
void times(index_t rows, index_t n, const T* a, const T* p, T* out) {
  const BlasCaller caller;
  const auto k = static_cast<int>(rows), side = static_cast<int>(n);
  const T one = 1, none = 0;
  if constexpr (kIsReal<T>) {
    dgemm_("N", "N", &side, &k, &side, &one, p, &side, a, &side, &none, out, &side);
  } else {
    zgemm_("N", "N", &side, &k, &side, &one, p, &side, a, &side, &none, out, &side);
  }
}

#define PALIMPSEST_LAPACK(T)                                                                     \
  template void hermitian_eigen<T>(index_t, T*, double*, std::span<std::byte>);                  \
  template std::size_t hermitian_eigen_work<T>(index_t);                                         \
  template void singular_values<T>(index_t, index_t, T*, T*, double*, T*, std::span<std::byte>); \
  template std::size_t singular_values_work<T>(index_t, index_t);                                \
  template void add_gram<T>(index_t, index_t, const T*, T*);                                     \
  template void times<T>(index_t, index_t, const T*, const T*, T*)
PALIMPSEST_LAPACK(double);
PALIMPSEST_LAPACK(Complex);
#undef PALIMPSEST_LAPACK

}  // namespace palimpsest
