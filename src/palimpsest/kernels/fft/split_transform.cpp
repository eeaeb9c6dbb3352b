// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/kernels/fft/split_transform.hpp"

#include <algorithm>

#include "palimpsest/kernels/fft/wide.hpp"

namespace palimpsest {
namespace {

constexpr index_t kLongest = 1024;

using Radices = std::vector<int>;

// A pass in units of memory traffic and operations.
struct RadixCost {
  int radix, first, later;  // 0: never
};
constexpr RadixCost kCosts[] = {{16, 26, 33}, {8, 20, 20}, {7, 0, 23}, {6, 0, 19},
                                {5, 0, 18},   {4, 13, 14}, {3, 0, 14}, {2, 0, 11}};

// Adds the cheapest radices of m to `done`. `by_four`: the first one is a multiple of 4, since
// dense lines take four neighbouring elements of its result at once.
void search(index_t m, bool by_four, int cost, Radices& done, int& least, Radices& best) {
  if (m == 1 && cost < least) {
    least = cost;
    best = done;
  }
  for (const RadixCost& c : kCosts) {
    const int more = by_four && done.empty() ? c.first : c.later;
    if (more == 0 || m % c.radix != 0 || cost + more >= least) continue;
    done.push_back(c.radix);
    search(m / c.radix, by_four, cost + more, done, least, best);
    done.pop_back();
  }
}

// Primes from 11 on come last, where a pass has no factors.
Radices radices_of(index_t m) {
  Radices primes;
  for (int p = 11; p <= kLargestPrime; p += 2) {
    for (; m % p == 0 && largest_prime_factor(p) == p; m /= p) primes.push_back(p);
  }
  Radices done, best;
  int least = 1000;
  search(m, m % 4 == 0, 0, done, least, best);
  best.insert(best.end(), primes.begin(), primes.end());
  return best;
}

template <class T>
std::array<T, 2> root(index_t j, index_t n) {
  const WideComplex w = root_of_unity(j, n, true);
  return {static_cast<T>(w.re), static_cast<T>(w.im)};
}

template <class T>
SplitStage<T> make_stage(int radix, index_t length) {
  SplitStage<T> stage{radix, length / radix, {}, {}};
  if (radix > 8 && radix != 16) stage.products.emplace(radix);
  for (index_t j = 0; j < stage.distance && stage.distance > 1; ++j) {
    for (int q = 1; q < radix; ++q) {
      const auto w = root<T>(j * q, length);
      stage.twiddles.insert(stage.twiddles.end(), w.begin(), w.end());
    }
  }
  return stage;
}

// Position q_1 s_1 + q_2 s_2 + .. holds element q_1 + r_1 (q_2 + r_2 (..)).
std::vector<int> order_of(const Radices& radices) {
  std::vector<int> order = {0};
  for (auto r = radices.rbegin(); r != radices.rend(); ++r) {
    std::vector<int> outer;
    for (int q = 0; q < *r; ++q) {
      for (const int k : order) outer.push_back(q + *r * k);
    }
    order = std::move(outer);
  }
  return order;
}

std::vector<int> inverse_of(const std::vector<int>& order) {
  std::vector<int> inverse(order.size());
  for (std::size_t p = 0; p < order.size(); ++p) {
    inverse[static_cast<std::size_t>(order[p])] = static_cast<int>(p);
  }
  return inverse;
}

}  // namespace

template <class T>
bool SplitTransform<T>::is_able(index_t n) {
  return n >= 1 && n <= kLongest && largest_prime_factor(n) <= kLargestPrime;
}

template <class T>
SplitTransform<T>::SplitTransform(index_t n) : LineTransform<T>(n) {
  const bool joins = n % 4 == 0 && n >= 16;
  const index_t m = joins ? n / 4 : n;
  const Radices radices = radices_of(m);
  index_t length = m;
  for (const int radix : radices) {
    stages_.push_back(make_stage<T>(radix, length));
    length /= radix;
    if (stages_.back().products) spare_rows_ = std::max<index_t>(spare_rows_, 2 * radix);
  }
  const std::vector<int> order = order_of(radices);
  places_ = inverse_of(order);
  if (!joins) return;
  for (index_t p = 0; m % 4 == 0 && p < stages_[0].distance; ++p) {
    for (int q = 0; q < radices[0]; q += 4) {
      groups_.push_back(order[static_cast<std::size_t>(p)] + q);
    }
  }
  for (index_t k = 0; m % 4 != 0 && k < m; k += 4) {
    groups_.push_back(static_cast<int>(std::min(k, m - 4)));
  }
  for (const int k : groups_) {
    for (index_t l = 1; l < 4; ++l) {
      for (const std::size_t part : {0, 1}) {
        for (index_t i = 0; i < 4; ++i) joints_.push_back(root<T>(l * (k + i), n)[part]);
      }
    }
  }
}

template <class T>
std::size_t SplitTransform<T>::bytes() const {
  std::size_t numbers = joints_.size();
  for (const SplitStage<T>& stage : stages_) {
    numbers += stage.twiddles.size();
    if (stage.products) numbers += stage.products->count();
  }
  return numbers * sizeof(T) + (places_.size() + groups_.size()) * sizeof(int);
}

template <class T>
std::size_t SplitTransform<T>::scratch_bytes(LineLayout layout, index_t) const {
  const index_t rows = layout == LineLayout::dense ? this->rows() : this->size();
  return static_cast<std::size_t>(rows + spare_rows_) * kRowBytes;
}

template <class T>
index_t SplitTransform<T>::lines_together(LineLayout layout) const {
  constexpr auto kLanes = static_cast<index_t>(kRowBytes / 2 / sizeof(T));
  return layout == LineLayout::dense && is_joined() ? kLanes / 4 : kLanes;
}

// Vectors hold at least four elements of dense lines: shorter ones are copied to rows.
template <class T>
void SplitTransform<T>::execute(const TransformLines<T>& all, std::byte* scratch) const {
  const index_t n = this->size();
  if (n >= 4 || (all.x_line == 1 && all.y_line == 1)) return run(all, scratch);
  constexpr auto kLanes = static_cast<index_t>(kRowBytes / 2 / sizeof(T));
  std::array<std::complex<T>, 3 * kLanes> rows;
  for (index_t first = 0; first < all.lines; first += kLanes) {
    TransformLines<T> some = all;
    some.x = some.y = rows.data();
    some.x_line = some.y_line = 1;
    some.x_step = some.y_step = kLanes;
    some.lines = std::min(kLanes, all.lines - first);
    const auto place = [&](index_t c, index_t j) {
      return static_cast<std::size_t>(j * kLanes + c);
    };
    for (index_t c = 0; c < some.lines; ++c) {
      for (index_t j = 0; j < all.given; ++j) {
        rows[place(c, j)] = all.x[(first + c) * all.x_line + j * all.x_step];
      }
    }
    run(some, scratch);
    for (index_t c = 0; c < some.lines; ++c) {
      for (index_t k = 0; k < all.taken; ++k) {
        all.y[(first + c) * all.y_line + k * all.y_step] = rows[place(c, k)];
      }
    }
  }
}

template class SplitTransform<float>;
template class SplitTransform<double>;

}  // namespace palimpsest
