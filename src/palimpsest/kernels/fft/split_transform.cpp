// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/kernels/fft/split_transform.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <mutex>
#include <numbers>

#include "palimpsest/base/fork.hpp"
#include "palimpsest/base/immortal.hpp"

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

// Adds the cheapest radices of m to `done`: the first one is a multiple of 4, since dense lines
// take four neighbouring elements of its result at once.
void search(index_t m, int cost, Radices& done, int& least, Radices& best) {
  if (m == 1 && cost < least) {
    least = cost;
    best = done;
  }
  for (const RadixCost& c : kCosts) {
    const int more = done.empty() ? c.first : c.later;
    if (more == 0 || m % c.radix != 0 || cost + more >= least) continue;
    done.push_back(c.radix);
    search(m / c.radix, cost + more, done, least, best);
    done.pop_back();
  }
}

Radices radices_of(index_t m) {
  Radices done, best;
  int least = 1000;
  search(m, 0, done, least, best);
  return best;
}

// exp(-2 pi i j / n), rounded once.
template <class T>
std::array<T, 2> root(index_t j, index_t n) {
  const long double turn = static_cast<long double>(j % n) / static_cast<long double>(n);
  const long double angle = 2 * std::numbers::pi_v<long double> * turn;
  return {static_cast<T>(std::cos(angle)), static_cast<T>(-std::sin(angle))};
}

template <class T>
SplitStage<T> make_stage(int radix, index_t length) {
  SplitStage<T> stage{radix, length / radix, {}};
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

}  // namespace

template <class T>
bool SplitTransform<T>::is_able(index_t n) {
  if (n < 16 || n > kLongest || n % 16 != 0) return false;
  for (const index_t p : {2, 3, 5, 7}) {
    while (n % p == 0) n /= p;
  }
  return n == 1;
}

template <class T>
SplitTransform<T>::SplitTransform(index_t n) : n_(n) {
  const index_t m = n / 4;
  const Radices radices = radices_of(m);
  index_t length = m;
  for (const int radix : radices) {
    stages_.push_back(make_stage<T>(radix, length));
    length /= radix;
  }
  order_ = order_of(radices);
  for (index_t p = 0; p < stages_[0].distance; ++p) {
    for (int q = 0; q < radices[0]; q += 4) {
      for (index_t l = 1; l < 4; ++l) {
        for (const std::size_t part : {0, 1}) {
          for (int k = q; k < q + 4; ++k) {
            joints_.push_back(root<T>(l * (order_[static_cast<std::size_t>(p)] + k), n)[part]);
          }
        }
      }
    }
  }
}

template <class T>
std::shared_ptr<const SplitTransform<T>> SplitTransform<T>::find_or_make(index_t n) {
  struct Made {
    Mutex mutex;
    std::map<index_t, std::shared_ptr<const SplitTransform>> all;
  };
  Made& made = immortal([] { return Made(); });
  const std::lock_guard lock(made.mutex);
  auto& transform = made.all[n];
  if (!transform) transform = std::make_shared<SplitTransform>(n);
  return transform;
}

template <class T>
std::size_t SplitTransform<T>::bytes() const {
  std::size_t numbers = joints_.size();
  for (const SplitStage<T>& stage : stages_) numbers += stage.twiddles.size();
  return numbers * sizeof(T) + order_.size() * sizeof(int);
}

template class SplitTransform<float>;
template class SplitTransform<double>;

}  // namespace palimpsest
