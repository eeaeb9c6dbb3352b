// SPDX-License-Identifier: Apache-2.0
// Our side of blas_numpy.py. Prints the library, then for each line `matmul|eigh|svd DTYPE N` that
// it reads the least time of a call in seconds of this thread, over 30 ms.
#include <algorithm>
#include <complex>
#include <cstddef>
#include <ctime>
#include <iostream>
#include <limits>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "palimpsest/kernels/matrices/blas.hpp"
#include "palimpsest/kernels/matrices/contract.hpp"
#include "palimpsest/kernels/matrices/lapack.hpp"
#include "palimpsest/kernels/pool/parallel.hpp"

namespace {

using namespace palimpsest;
using Bytes = std::vector<std::byte>;

double thread_seconds() {
  std::timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

template <class Prepare, class Call>
double least(const Prepare& prepare, const Call& call) {
  double result = std::numeric_limits<double>::infinity();
  const double begin = thread_seconds();
  do {
    prepare();
    const double at = thread_seconds();
    call();
    result = std::min(result, thread_seconds() - at);
  } while (thread_seconds() - begin < 0.03);
  return result;
}

template <class T>
std::vector<T> random_matrix(index_t n) {
  std::mt19937_64 random(1);
  std::normal_distribution<double> normal;
  std::vector<T> result(static_cast<std::size_t>(n * n));
  for (T& v : result) {
    if constexpr (std::is_floating_point_v<T>) {
      v = static_cast<T>(normal(random));
    } else {
      const auto re = static_cast<typename T::value_type>(normal(random));
      v = {re, static_cast<typename T::value_type>(normal(random))};
    }
  }
  return result;
}

template <class T>
double product(DType dtype, index_t n) {
  const std::vector<T> a = random_matrix<T>(n), b = a;
  std::vector<T> out(a.size());
  const Extents extents{n, n};
  const Strides strides{n, 1};
  const Contraction c{{0, 1}, {1, 2}, {0, 2}};
  const ConstView left{a.data(), dtype, extents, strides}, right{b.data(), dtype, extents, strides};
  const MutableView result{out.data(), dtype, extents, strides};
  return least([] {},
               [&] { run_with_threads(1, [&] { run_contraction(c, left, right, result); }); });
}

template <class T>
double eigenvalues(index_t n) {
  std::vector<T> a = random_matrix<T>(n), matrix(a.size());
  for (index_t i = 0; i < n; ++i) {
    for (index_t j = 0; j <= i; ++j) {
      T& v = a[static_cast<std::size_t>(i * n + j)];
      if (i == j) v = std::real(v);
      if constexpr (std::is_floating_point_v<T>) {
        a[static_cast<std::size_t>(j * n + i)] = v;
      } else {
        a[static_cast<std::size_t>(j * n + i)] = std::conj(v);
      }
    }
  }
  std::vector<double> values(static_cast<std::size_t>(n));
  Bytes work(hermitian_eigen_work<T>(n));
  return least([&] { matrix = a; },
               [&] { hermitian_eigen(n, matrix.data(), values.data(), work); });
}

template <class T>
double singular(index_t n) {
  const std::vector<T> a = random_matrix<T>(n);
  std::vector<T> matrix(a.size()), u(a.size()), vh(a.size());
  std::vector<double> values(static_cast<std::size_t>(n));
  Bytes work(singular_values_work<T>(n, n));
  return least(
      [&] { matrix = a; },
      [&] { singular_values(n, n, matrix.data(), u.data(), values.data(), vh.data(), work); });
}

double seconds(const std::string& what, DType dtype, index_t n) {
  const bool is_real = dtype == DType::float64;
  if (what == "eigh")
    return is_real ? eigenvalues<double>(n) : eigenvalues<std::complex<double>>(n);
  if (what == "svd") return is_real ? singular<double>(n) : singular<std::complex<double>>(n);
  double result = 0;
  visit_inexact(dtype, "matmul",
                [&](auto tag) { result = product<typename decltype(tag)::type>(dtype, n); });
  return result;
}

}  // namespace

int main() {
  std::string what, dtype;
  index_t n = 0;
  std::cout << blas_library_version() << std::endl;
  while (std::cin >> what >> dtype >> n) {
    std::cout << seconds(what, parse_dtype(dtype), n) << std::endl;
  }
}
