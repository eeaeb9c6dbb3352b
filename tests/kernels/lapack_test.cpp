// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/kernels/matrices/lapack.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <thread>
#include <type_traits>
#include <vector>

#include "palimpsest/base/error.hpp"

namespace palimpsest {
namespace {

template <class T>
class Lapack : public ::testing::Test {
 protected:
  static T conjugate(T v) {
    if constexpr (std::is_same_v<T, double>) {
      return v;
    } else {
      return std::conj(v);
    }
  }
  std::vector<T> random(index_t n) {
    std::vector<T> result(static_cast<std::size_t>(n));
    for (T& v : result) {
      if constexpr (std::is_same_v<T, double>) {
        v = normal_(random_);
      } else {
        v = {normal_(random_), normal_(random_)};
      }
    }
    return result;
  }

 private:
  std::mt19937_64 random_{5};
  std::normal_distribution<double> normal_;
};

using Types = ::testing::Types<double, std::complex<double>>;
TYPED_TEST_SUITE(Lapack, Types);

// Concurrent calls do not share buffers of the library below.
TYPED_TEST(Lapack, ConcurrentProductsAreThoseOfOneThread) {
  using T = TypeParam;
  constexpr index_t n = 8;
  constexpr std::size_t kThreads = 4;
  constexpr int kCalls = 300000;
  std::vector<std::vector<T>> a;
  for (std::size_t t = 0; t < kThreads; ++t) a.push_back(this->random(n * n));
  std::vector<std::vector<T>> expected;
  for (const std::vector<T>& m : a) {
    times(n, n, m.data(), m.data(), expected.emplace_back(m.size()).data());
  }
  std::vector<index_t> n_wrong(kThreads, 0);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      std::vector<T> product(a[t].size());
      for (int i = 0; i < kCalls; ++i) {
        times(n, n, a[t].data(), a[t].data(), product.data());
        if (product != expected[t]) ++n_wrong[t];
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const index_t wrong : n_wrong) EXPECT_EQ(wrong, 0) << "of " << kCalls;
}

TYPED_TEST(Lapack, EigenvectorsGiveTheMatrixBack) {
  using T = TypeParam;
  for (const index_t n : {1, 2, 7, 40}) {
    const std::vector<T> a = this->random(n * n);
    std::vector<T> gram(a.size(), T(0)), full(a.size());
    add_gram(n, n, a.data(), gram.data());
    for (index_t i = 0; i < n; ++i) {
      for (index_t j = 0; j < n; ++j) {
        T sum = 0;
        for (index_t k = 0; k < n; ++k) sum += this->conjugate(a[k * n + i]) * a[k * n + j];
        full[i * n + j] = sum;
        if (j >= i) {
          EXPECT_LE(std::abs(gram[i * n + j] - sum), 1e-12 * static_cast<double>(n));
        }
      }
    }
    std::vector<double> values(static_cast<std::size_t>(n));
    std::vector<std::byte> work(hermitian_eigen_work<T>(n));
    hermitian_eigen(n, gram.data(), values.data(), work);
    for (index_t i = 0; i < n; ++i) {
      for (index_t j = 0; j < n; ++j) {
        T sum = 0;
        for (index_t k = 0; k < n; ++k) {
          sum += values[k] * gram[k * n + i] * this->conjugate(gram[k * n + j]);
        }
        EXPECT_LE(std::abs(sum - full[i * n + j]), 1e-11 * static_cast<double>(n * n));
      }
      if (i > 0) {
        EXPECT_GE(values[i], values[i - 1]);
      }
    }
  }
}

TYPED_TEST(Lapack, SingularValuesGiveTheMatrixBack) {
  using T = TypeParam;
  for (const auto& [rows, columns] :
       std::vector<std::pair<index_t, index_t>>{{1, 1}, {5, 3}, {3, 5}, {30, 30}, {1, 4}}) {
    const std::vector<T> a = this->random(rows * columns);
    const index_t k = std::min(rows, columns);
    std::vector<T> u(static_cast<std::size_t>(rows * k)), vh(static_cast<std::size_t>(k * columns));
    std::vector<double> s(static_cast<std::size_t>(k));
    std::vector<T> overwritten = a;
    std::vector<std::byte> work(singular_values_work<T>(rows, columns));
    singular_values(rows, columns, overwritten.data(), u.data(), s.data(), vh.data(), work);
    for (index_t i = 0; i < rows; ++i) {
      for (index_t j = 0; j < columns; ++j) {
        T sum = 0;
        for (index_t l = 0; l < k; ++l) sum += u[i * k + l] * s[l] * vh[l * columns + j];
        EXPECT_LE(std::abs(sum - a[i * columns + j]), 1e-12 * static_cast<double>(rows + columns));
      }
    }
    for (index_t l = 1; l < k; ++l) EXPECT_LE(s[l], s[l - 1]);
  }
}

TYPED_TEST(Lapack, RefusesWhatIsNotFinite) {
  using T = TypeParam;
  std::vector<T> a{1, 0, 0, std::numeric_limits<double>::quiet_NaN()}, u(4), vh(4);
  std::vector<double> values(2);
  std::vector<std::byte> work(hermitian_eigen_work<T>(2));
  EXPECT_THROW(hermitian_eigen(2, a.data(), values.data(), work), InternalError);
  work.resize(singular_values_work<T>(2, 2));
  EXPECT_THROW(singular_values(2, 2, a.data(), u.data(), values.data(), vh.data(), work),
               InternalError);
}

}  // namespace
}  // namespace palimpsest
