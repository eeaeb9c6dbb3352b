// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/kernels/fft/prime_products.hpp"

#include <complex>

#include "palimpsest/kernels/fft/line_transform.hpp"

namespace palimpsest {
namespace {

// Smaller matrices gain less than the folds cost.
constexpr int kLeastRows = 24;

// Powers of the least primitive root of p: powers[k] = g^k mod p, for k < p - 1.
std::vector<int> powers_of_root(int p) {
  for (int g = 2;; ++g) {
    std::vector<int> powers{1};
    for (int next = g; next != 1; next = next * g % p) powers.push_back(next);
    if (static_cast<int>(powers.size()) == p - 1) return powers;
  }
}

}  // namespace

template <class T>
PrimeProducts<T>::PrimeProducts(index_t p) {
  const int n = static_cast<int>(p), half = (n - 1) / 2;
  const std::vector<int> powers = powers_of_root(n);
  std::vector<Wide> cosines, sines;
  for (int k = 0; k < half; ++k) {
    pairs.push_back(powers[static_cast<std::size_t>(k)]);
    const WideComplex root = root_of_unity(pairs.back(), p, false);
    cosines.push_back(root.re);
    sines.push_back(root.im);
  }
  add(cosines, true, 0, true);
  add(sines, false, half, false);
}

// The matrix with h(k + j) in row k and column j, where h are the factors, continued with or
// without a change of sign.
template <class T>
void PrimeProducts<T>::add(const std::vector<Wide>& factors, bool is_positive, int at,
                           bool adds_first) {
  const int n = static_cast<int>(factors.size());
  const auto with_sign = [&](Wide value) { return is_positive ? value : -value; };
  const auto h = [&](int m) {
    const Wide value = factors[static_cast<std::size_t>(m % n)];
    return m / n % 2 == 0 ? value : with_sign(value);
  };
  if (n >= kLeastRows && is_positive && n % 2 == 0) {
    const int m = n / 2;
    std::vector<Wide> even, odd;
    for (int k = 0; k < m; ++k) {
      even.push_back((h(k) + h(k + m)) / 2);
      odd.push_back((h(k) - h(k + m)) / 2);
    }
    before.push_back({at, m, 2, true});
    add(even, true, at, adds_first);
    add(odd, false, at + m, false);
    after.push_back({at, m, 2, true});
    return;
  }
  if (n >= kLeastRows && n % 3 == 0) {
    const int m = n / 3;
    std::vector<Wide> common;
    for (int k = 0; k < m; ++k) common.push_back((h(k) + with_sign(h(k + m)) + h(k + 2 * m)) / 3);
    const auto c = [&](int k) {
      return k < m ? common[static_cast<std::size_t>(k)]
                   : with_sign(common[static_cast<std::size_t>(k - m)]);
    };
    Product rest{at, 2 * m, false, {}};
    for (int k = 0; k < 2 * m; ++k) {
      for (int j = 0; j < 2 * m; ++j) {
        // Of the parts of m rows: 0 and 1 along either side, 2 along both.
        const int part = k / m + j / m, rows = k % m + j % m;
        const Wide less = part == 1 ? with_sign(c(rows)) : c(rows);
        rest.factors.push_back(static_cast<T>(h(rows + part * m) - less));
      }
    }
    before.push_back({at, m, 3, is_positive});
    products.push_back(std::move(rest));
    add(common, is_positive, at + 2 * m, adds_first);
    after.push_back({at, m, 3, is_positive});
    return;
  }
  Product all{at, n, adds_first, {}};
  for (int k = 0; k < n; ++k) {
    for (int j = 0; j < n; ++j) all.factors.push_back(static_cast<T>(h(k + j)));
  }
  products.push_back(std::move(all));
}

template <class T>
std::size_t PrimeProducts<T>::count() const {
  std::size_t count = 0;
  for (const Product& product : products) count += product.factors.size();
  return count;
}

template struct PrimeProducts<float>;
template struct PrimeProducts<double>;

}  // namespace palimpsest
