// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/kernels/fft/line_transform.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <new>
#include <utility>

#include "palimpsest/base/fork.hpp"
#include "palimpsest/base/immortal.hpp"
#include "palimpsest/kernels/fft/chirp_transform.hpp"
#include "palimpsest/kernels/fft/long_transform.hpp"
#include "palimpsest/kernels/fft/split_transform.hpp"

namespace palimpsest {

index_t largest_prime_factor(index_t n) {
  index_t largest = 1;
  for (index_t p = 2; p * p <= n; ++p) {
    for (; n % p == 0; n /= p) largest = p;
  }
  return std::max(largest, n);
}

AlignedMemory::AlignedMemory(std::size_t bytes)
    : data_(static_cast<std::byte*>(
          ::operator new (std::max<std::size_t>(bytes, 1), std::align_val_t{64}))) {}
AlignedMemory::~AlignedMemory() { ::operator delete (data_, std::align_val_t{64}); }

namespace {

template <class T>
std::shared_ptr<const LineTransform<T>> make_transform(index_t n) {
  if (SplitTransform<T>::is_able(n)) return std::make_shared<SplitTransform<T>>(n);
  if (LongTransform<T>::is_able(n)) return std::make_shared<LongTransform<T>>(n);
  return std::make_shared<ChirpTransform<T>>(n);
}

}  // namespace

// A transform is made without the lock, since it makes others.
template <class T>
std::shared_ptr<const LineTransform<T>> LineTransform<T>::find_or_make(index_t n) {
  struct Made {
    Mutex mutex;
    std::map<index_t, std::shared_ptr<const LineTransform>> all;  // guarded by mutex
  };
  Made& made = immortal([] { return Made(); });
  {
    const std::lock_guard lock(made.mutex);
    const auto found = made.all.find(n);
    if (found != made.all.end()) return found->second;
  }
  auto transform = make_transform<T>(n);
  const std::lock_guard lock(made.mutex);
  return made.all.emplace(n, std::move(transform)).first->second;
}

template class LineTransform<float>;
template class LineTransform<double>;

}  // namespace palimpsest
