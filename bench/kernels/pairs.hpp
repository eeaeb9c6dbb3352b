// SPDX-License-Identifier: Apache-2.0
// Times two implementations alternately, so that disturbances affect both.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <ctime>
#include <new>
#include <vector>

namespace palimpsest::bench {

/// Seconds of one call: the median and the minimum over all rounds.
struct Times {
  double median = 0, best = 0;
};

struct PairTimes {
  Times ours, theirs;
  /// The ratio of their time to ours: the median over rounds, and the ratio of the best times.
  double median_ratio = 0, best_ratio = 0;
};

/// Counts processor time instead of wall-clock time: for machines with other work, and for one
/// thread only.
inline bool use_processor_time = false;

namespace detail {

inline double now() {
  timespec t;
  clock_gettime(use_processor_time ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

template <class F>
double seconds(F& f, std::size_t calls) {
  const double start = now();
  for (std::size_t i = 0; i < calls; ++i) f();
  return (now() - start) / static_cast<double>(calls);
}

inline double middle(std::vector<double> x) {
  std::nth_element(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(x.size() / 2), x.end());
  return x[x.size() / 2];
}

inline Times summary(const std::vector<double>& x) {
  return {middle(x), *std::min_element(x.begin(), x.end())};
}

}  // namespace detail

/// Runs rounds of at least a millisecond each, for `budget` seconds.
template <class F, class G>
PairTimes time_pair(F&& ours, G&& theirs, double budget = 0.6) {
  ours();
  theirs();
  const double once =
      std::max(std::min(detail::seconds(ours, 1), detail::seconds(theirs, 1)), 1e-9);
  const auto calls = static_cast<std::size_t>(std::clamp(1e-3 / once, 1.0, 1e5));
  std::vector<double> a, b, ratios;
  const double start = detail::now();
  while (a.size() < 7 || detail::now() - start < budget) {
    a.push_back(detail::seconds(ours, calls));
    b.push_back(detail::seconds(theirs, calls));
    ratios.push_back(b.back() / a.back());
  }
  PairTimes times{detail::summary(a), detail::summary(b), detail::middle(ratios), 0};
  times.best_ratio = times.theirs.best / times.ours.best;
  return times;
}

/// n elements in huge pages if available, like the library's own memory.
template <class T>
class Block {
 public:
  explicit Block(std::size_t n) : n_(n) {
    constexpr std::size_t kHugePage = std::size_t{1} << 21;
    const std::size_t bytes = (n * sizeof(T) + kHugePage - 1) / kHugePage * kHugePage;
    data_ = static_cast<T*>(std::aligned_alloc(kHugePage, bytes));
    if (data_ == nullptr) throw std::bad_alloc();
    madvise(data_, bytes, MADV_HUGEPAGE);
    for (std::size_t i = 0; i < n; ++i) data_[i] = T(static_cast<float>(i % 1021) * 0.001F - 0.5F);
  }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  ~Block() { std::free(data_); }
  T* data() { return data_; }
  std::size_t size() const { return n_; }

 private:
  std::size_t n_;
  T* data_;
};

}  // namespace palimpsest::bench
