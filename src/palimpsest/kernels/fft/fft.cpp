// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/kernels/fft/fft.hpp"

#include <algorithm>
#include <cassert>
#include <list>
#include <mutex>
#include <string>

#include "palimpsest/base/immortal.hpp"
#include "palimpsest/kernels/fft/weighted_transform.hpp"

namespace palimpsest {
namespace {

constexpr std::size_t kCachedPlans = 64;

void check(const FftWeights& weights, const FftSpec& spec) {
  const std::size_t rank = spec.extents.size();
  if (weights.strides.size() != rank) {
    throw ShapeError("[fft_plan] weights: got strides " + to_string(weights.strides) +
                     ", expected one per axis of " + to_string(spec.extents));
  }
  if (weights.extents.empty()) return;
  bool fits = weights.extents.size() == rank;
  for (std::size_t i = 0; fits && i < rank; ++i) {
    const bool is_transformed =
        std::find(spec.axes.begin(), spec.axes.end(), static_cast<index_t>(i)) != spec.axes.end();
    fits = is_transformed ? weights.extents[i] >= spec.extents[i]
                          : weights.extents[i] == spec.extents[i];
  }
  if (!fits) {
    throw ShapeError("[fft_plan] extents of weights: got " + to_string(weights.extents) +
                     ", expected those of " + to_string(spec.extents) +
                     ", or larger ones along transformed axes");
  }
}

void check(const FftFactors& factors, const FftSpec& spec) {
  if (factors.strides.size() != spec.extents.size()) {
    throw ShapeError("[fft_plan] factors: got strides " + to_string(factors.strides) +
                     ", expected one per axis of " + to_string(spec.extents));
  }
  const bool takes_0 = std::find(spec.axes.begin(), spec.axes.end(), 0) != spec.axes.end();
  if (!spec.weights || takes_0 || spec.axes.size() < 2) {
    throw ShapeError("[fft_plan] factors: got axes " + to_string(spec.axes) +
                     (spec.weights ? "" : " without weights") +
                     ", expected weights, and two axes or more behind axis 0");
  }
}

void check(const FftSpec& spec) {
  if (!is_complex(spec.dtype)) {
    throw DTypeError("[fft_plan] got " + std::string(name_of(spec.dtype)) +
                     ", expected complex64 or complex128. Try a cast");
  }
  const std::size_t rank = spec.extents.size();
  if (spec.in_strides.size() != rank || spec.out_strides.size() != rank) {
    throw ShapeError("[fft_plan] ranks differ: got strides " + to_string(spec.in_strides) +
                     " and " + to_string(spec.out_strides) + ", expected one per axis of " +
                     to_string(spec.extents));
  }
  if (spec.in_place && spec.in_strides != spec.out_strides) {
    throw ShapeError("[fft_plan] in place: got strides " + to_string(spec.in_strides) + " and " +
                     to_string(spec.out_strides) + ", expected the same");
  }
  normalize_axes(spec.axes, rank, "fft_plan");
  if (spec.weights) check(*spec.weights, spec);
  if (spec.factors) check(*spec.factors, spec);
}

template <class T>
std::shared_ptr<const FftPlan::Impl> make_plan(const FftSpec& spec) {
  if (spec.weights) return make_weighted_transform<T>(spec);
  return std::make_shared<ArrayTransform<T>>(spec);
}

// The plans used last, the latest first.
class Cache {
 public:
  FftPlan find_or_make(const FftSpec& spec) {
    const std::array<index_t, 2> caches{core_cache_bytes(), streaming_bytes()};
    const std::lock_guard lock(mutex_);
    const auto found = std::find_if(plans_.begin(), plans_.end(), [&](const FftPlan& p) {
      return p.spec() == spec && p.impl().caches == caches;
    });
    if (found != plans_.end()) {
      plans_.splice(plans_.begin(), plans_, found);
      return plans_.front();
    }
    plans_.emplace_front(spec.dtype == DType::complex64 ? make_plan<float>(spec)
                                                        : make_plan<double>(spec));
    if (plans_.size() > kCachedPlans) plans_.pop_back();
    return plans_.front();
  }
  void clear() {
    const std::lock_guard lock(mutex_);
    plans_.clear();
  }

 private:
  Mutex mutex_;
  std::list<FftPlan> plans_;
};

Cache& cache() {
  return immortal([] { return Cache(); });
}

}  // namespace

const FftSpec& FftPlan::spec() const { return impl_->spec; }
std::size_t FftPlan::external_bytes(int threads) const { return impl_->bytes(threads); }

FftPlan fft_plan(const FftSpec& spec) {
  check(spec);
  return cache().find_or_make(spec);
}

std::size_t fft_workspace_bytes(const FftSpec& spec, int threads) {
  if (spec.weights) return weighted_workspace_bytes(spec, threads);
  FftSpec dense = spec;  // in the order of its strides
  dense.in_strides = dense.out_strides = contiguous_strides(spec.extents);
  return is_streamed(dense) ? fft_plan(dense).impl().workspace_bytes(threads) : 0;
}

void execute(const FftPlan& plan, const void* in, void* out, const FftOperands& operands) {
  assert(plan.spec().in_place == (in == out) || element_count(plan.spec().extents) == 0);
  plan.impl().run(in, out, operands);
}

void clear_fft_cache() { cache().clear(); }

}  // namespace palimpsest
