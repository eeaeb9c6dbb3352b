// SPDX-License-Identifier: Apache-2.0
// Discrete Fourier transforms of arrays: one pass of lines per axis (line_pass.hpp).
//
// With e(t) = exp(-+ 2 pi i t / N), (k-c)(j-c) = kj - cj - ck + c^2. So a transform centered at
// element c multiplies by e(-cj) before the plain transform, and by e(c^2 - ck) after it. For even
// N and c = N/2 these are signs: (-1)^j and (-1)^(k + N/2). The first pass brings the lines from
// `in` to `out`, the others work in place; the last one applies the scale.
//
// If the array consists of blocks with separate transforms, each block goes through all its passes
// while it is in cache. So do the slices of a large volume, before the pass that joins them.
//
// Of a centered transform, weights and the transform back, all phases cancel but those that move
// the spectrum by c: plain transforms with the weights w[(k + c) mod N] give the same.
#include "palimpsest/kernels/fft/fft.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <complex>
#include <list>
#include <mutex>
#include <string>
#include <vector>

#include "palimpsest/base/immortal.hpp"
#include "palimpsest/kernels/fft/line_pass.hpp"
#include "palimpsest/kernels/fft/long_line.hpp"
#include "palimpsest/kernels/pool/parallel.hpp"

namespace palimpsest {

class FftPlan::Impl {
 public:
  explicit Impl(FftSpec s) : spec(std::move(s)) {}
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  virtual ~Impl() = default;
  virtual void run(const void* in, const void* weights, void* out) const = 0;
  virtual std::size_t bytes() const = 0;

  const FftSpec spec;
};

namespace {

constexpr std::size_t kCachedPlans = 64;

// Computes the phases of a centered transform, and the scale.
template <class T>
void make_phases(index_t n, bool centered, bool forward, double scale,
                 typename LinePass<T>::Options& options) {
  const index_t c = centered ? n / 2 : 0;
  if (c == 0) {
    if (scale != 1) options.after.real.assign(static_cast<std::size_t>(n), static_cast<T>(scale));
    return;
  }
  for (index_t j = 0; j < n; ++j) {
    if (n % 2 == 0) {
      const T sign = j % 2 == 0 ? T{1} : T{-1};
      options.before.real.push_back(sign);
      options.after.real.push_back(static_cast<T>(c % 2 == 0 ? scale : -scale) * sign);
    } else {
      options.before.complex.emplace_back(root_of_unity(c * (n - j) % n, n, forward));
      options.after.complex.emplace_back(scale * root_of_unity(c * (c + n - j) % n, n, forward));
    }
  }
}

struct Axis : PassAxis {
  bool is_transformed = false;
};

// The axes of more than one element, smallest strides last.
std::vector<Axis> axes_of(const FftSpec& s) {
  std::vector<Axis> axes;
  for (std::size_t i = 0; i < s.extents.size(); ++i) {
    if (s.extents[i] == 1) continue;
    Axis axis{{s.extents[i], s.in_strides[i], s.out_strides[i]}};
    axis.is_transformed =
        std::find(s.axes.begin(), s.axes.end(), static_cast<index_t>(i)) != s.axes.end();
    if (s.weights) axis.weight_stride = s.weights->strides[i];
    if (axis.weight_stride != 0 && s.centered && axis.is_transformed) {
      axis.weight_shift = axis.extent / 2;
    }
    axes.push_back(axis);
  }
  std::stable_sort(axes.begin(), axes.end(), [](const Axis& a, const Axis& b) {
    return std::abs(a.out_stride) > std::abs(b.out_stride);
  });
  if (axes.empty()) axes.emplace_back();
  return axes;
}

bool has_elements(const FftSpec& s) {
  return std::find(s.extents.begin(), s.extents.end(), 0) == s.extents.end();
}

// Blocks with separate transforms.
struct Blocks {
  std::vector<PassAxis> axes;  // outermost first
  index_t count = 1;

  Blocks() = default;
  // Takes the axes before the first transformed one.
  explicit Blocks(std::vector<Axis>& from) {
    const auto first =
        std::find_if(from.begin(), from.end(), [](const Axis& a) { return a.is_transformed; });
    for (auto axis = from.begin(); axis != first; ++axis) {
      axes.push_back(*axis);
      count *= axis->extent;
    }
    from.erase(from.begin(), first);
  }

  // Calls f(in, out, weights) with the offsets of each block, in elements.
  template <class F>
  void for_each(const F& f) const {
    parallel_ranges(count, 1, [&](index_t begin, index_t end) {
      for (index_t block = begin; block < end; ++block) {
        index_t in = 0, out = 0, weights = 0, rest = block;
        for (std::size_t i = axes.size(); i-- > 0;) {
          const index_t position = rest % axes[i].extent;
          rest /= axes[i].extent;
          in += position * axes[i].in_stride;
          out += position * axes[i].out_stride;
          weights += position * axes[i].weight_stride;
        }
        f(in, out, weights);
      }
    });
  }
};

template <class T>
class Transform final : public FftPlan::Impl {
 public:
  explicit Transform(const FftSpec& s) : Impl(s) {
    if (!has_elements(s)) return;
    std::vector<Axis> axes = axes_of(s);
    const auto n_transformed = std::count_if(axes.begin(), axes.end(),
                                             [](const Axis& axis) { return axis.is_transformed; });
    stage_ = make_stage(std::move(axes), static_cast<std::size_t>(n_transformed), true);
  }

  void run(const void* in, const void*, void* out) const override {
    run(static_cast<const std::complex<T>*>(in), static_cast<std::complex<T>*>(out));
  }
  void run(const std::complex<T>* in, std::complex<T>* out) const {
    if (stage_ != nullptr) run_stage(*stage_, in, out);
  }

  std::size_t bytes() const override {
    std::size_t total = 0;
    for (const Stage* stage = stage_.get(); stage != nullptr; stage = stage->slices.get()) {
      for (const auto& pass : stage->passes) total += pass->bytes();
    }
    return total;
  }

 private:
  // Slices smaller than this, or of arrays that fit the cache, get no passes of their own.
  static constexpr index_t kSmallSlice = 16384, kCached = 524288;

  // Blocks: first passes over their slices, if there are any, then over whole blocks.
  struct Stage {
    Blocks blocks;
    std::unique_ptr<const Stage> slices;
    std::vector<std::unique_ptr<const ArrayPass<T>>> passes;
  };

  // Makes the passes for axes of which n_transformed are transformed. `is_last`: applies the scale.
  std::unique_ptr<const Stage> make_stage(std::vector<Axis> axes, std::size_t n_transformed,
                                          bool is_last) const {
    auto stage = std::make_unique<Stage>();
    if (n_transformed > 1) stage->blocks = Blocks(axes);
    index_t bytes = static_cast<index_t>(sizeof(std::complex<T>));
    for (const Axis& axis : axes) bytes *= axis.extent;
    if (n_transformed > 2 && bytes > kCached && bytes / axes[0].extent >= kSmallSlice) {
      std::vector<Axis> inner = axes;
      inner[0].is_transformed = false;
      stage->slices = make_stage(std::move(inner), n_transformed - 1, false);
      for (std::size_t i = 1; i < axes.size(); ++i) axes[i].is_transformed = false;
      for (Axis& axis : axes) axis.in_stride = axis.out_stride;
      n_transformed = 1;
    }
    make_passes(axes, n_transformed, is_last, *stage);
    return stage;
  }

  void make_passes(const std::vector<Axis>& axes, std::size_t n_transformed, bool is_last,
                   Stage& stage) const {
    // If none is transformed, the last axis is copied and scaled.
    std::size_t left = std::max<std::size_t>(n_transformed, 1);
    for (std::size_t i = axes.size(); i-- > 0;) {
      if (!axes[i].is_transformed && n_transformed > 0) continue;
      if (left == 0) break;
      --left;
      // All passes but the first work on the output alone.
      const auto side = [&](const Axis& axis) -> PassAxis {
        const bool is_first = stage.passes.empty();
        return {axis.extent, is_first ? axis.in_stride : axis.out_stride, axis.out_stride};
      };
      std::vector<PassAxis> others;
      for (std::size_t k = 0; k < axes.size(); ++k) {
        if (k != i) others.push_back(side(axes[k]));
      }
      stage.passes.push_back(make_pass(side(axes[i]), std::move(others), n_transformed > 0,
                                       is_last && left == 0 ? spec.scale : 1));
    }
  }

  std::unique_ptr<const ArrayPass<T>> make_pass(const PassAxis& line, std::vector<PassAxis> others,
                                                bool transforms, double scale) const {
    if (transforms && LongLine<T>::is_better(line.extent, spec.centered)) {
      return std::make_unique<LongLine<T>>(
          line, std::move(others),
          typename LongLine<T>::Options{spec.forward, spec.centered, scale, spec.effort});
    }
    typename LinePass<T>::Options options;
    options.transforms = transforms;
    options.forward = spec.forward;
    options.effort = spec.effort;
    make_phases<T>(line.extent, spec.centered && transforms, spec.forward, scale, options);
    return std::make_unique<LinePass<T>>(line, std::move(others), std::move(options));
  }

  static void run_stage(const Stage& stage, const std::complex<T>* x, std::complex<T>* y) {
    stage.blocks.for_each([&](index_t in, index_t out, index_t) {
      const std::complex<T>* from = x + in;
      std::complex<T>* const to = y + out;
      if (stage.slices != nullptr) {
        run_stage(*stage.slices, from, to);
        from = to;
      }
      for (const auto& pass : stage.passes) {
        pass->run(from, to);
        from = to;
      }
    });
  }

  std::unique_ptr<const Stage> stage_;  // null: no elements
};

// A transform, weights, and the transform back. In each block, all axes but the first one are
// transformed before and after the passes along the first one, which weigh.
template <class T>
class WeightedTransform final : public FftPlan::Impl {
 public:
  explicit WeightedTransform(const FftSpec& s) : Impl(s) {
    if (!has_elements(s)) return;
    std::vector<Axis> axes = axes_of(s);
    const auto is_transformed = [](const Axis& axis) { return axis.is_transformed; };
    const bool transforms = std::any_of(axes.begin(), axes.end(), is_transformed);
    if (transforms) blocks_ = Blocks(axes);
    if (std::count_if(axes.begin(), axes.end(), is_transformed) > 1) {
      before_ = std::make_unique<Transform<T>>(inner_spec(axes, true));
      after_ = std::make_unique<Transform<T>>(inner_spec(axes, false));
      for (Axis& axis : axes) axis.in_stride = axis.out_stride;
    }
    make_passes(axes[0], {axes.begin() + 1, axes.end()}, transforms);
  }

  void run(const void* in, const void* weights, void* out) const override {
    if (middle_ == nullptr) return;
    const index_t item = static_cast<index_t>(sizeof(T)) * (spec.weights->is_complex ? 2 : 1);
    blocks_.for_each([&](index_t in_offset, index_t out_offset, index_t weight_offset) {
      const auto* x = static_cast<const std::complex<T>*>(in) + in_offset;
      auto* const y = static_cast<std::complex<T>*>(out) + out_offset;
      const auto run = [&](const auto& step) {
        if (step == nullptr) return;
        step->run(x, y);
        x = y;
      };
      run(before_);
      run(there_);
      middle_->run(x, y, static_cast<const std::byte*>(weights) + weight_offset * item);
      x = y;
      run(back_);
      run(after_);
    });
  }

  std::size_t bytes() const override {
    const auto bytes_of = [](const auto& part) { return part == nullptr ? 0 : part->bytes(); };
    return bytes_of(before_) + bytes_of(there_) + bytes_of(middle_) + bytes_of(back_) +
           bytes_of(after_);
  }

 private:
  // The transform of a block along all axes but the first.
  FftSpec inner_spec(const std::vector<Axis>& axes, bool is_before) const {
    FftSpec inner;
    inner.dtype = spec.dtype;
    for (std::size_t i = 0; i < axes.size(); ++i) {
      inner.extents.push_back(axes[i].extent);
      inner.in_strides.push_back(is_before ? axes[i].in_stride : axes[i].out_stride);
      inner.out_strides.push_back(axes[i].out_stride);
      if (i > 0 && axes[i].is_transformed) inner.axes.push_back(static_cast<index_t>(i));
    }
    inner.forward = is_before == spec.forward;
    inner.in_place = spec.in_place || !is_before;
    inner.effort = spec.effort;
    return inner;
  }

  // Long lines are transformed by passes of their own.
  void make_passes(PassAxis line, std::vector<PassAxis> others, bool transforms) {
    const bool is_long = transforms && LongLine<T>::is_better(line.extent, false);
    const auto long_pass = [&](bool forward) {
      return std::make_unique<LongLine<T>>(
          line, others, typename LongLine<T>::Options{forward, false, 1, spec.effort});
    };
    if (is_long) {
      there_ = long_pass(spec.forward);
      line.in_stride = line.out_stride;
      for (PassAxis& axis : others) axis.in_stride = axis.out_stride;
      back_ = long_pass(!spec.forward);
    }
    typename LinePass<T>::Options options;
    options.transforms = transforms && !is_long;
    options.forward = spec.forward;
    options.effort = spec.effort;
    options.weights = {spec.weights->is_complex, static_cast<T>(spec.scale)};
    middle_ = std::make_unique<LinePass<T>>(line, std::move(others), options);
  }

  Blocks blocks_;
  std::unique_ptr<const Transform<T>> before_, after_;
  std::unique_ptr<const LongLine<T>> there_, back_;
  std::unique_ptr<const LinePass<T>> middle_;  // null: no elements
};

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
  if (spec.weights && spec.weights->strides.size() != rank) {
    throw ShapeError("[fft_plan] weights: got strides " + to_string(spec.weights->strides) +
                     ", expected one per axis of " + to_string(spec.extents));
  }
  normalize_axes(spec.axes, rank, "fft_plan");
}

template <class T>
std::shared_ptr<const FftPlan::Impl> make_plan(const FftSpec& spec) {
  if (spec.weights) return std::make_shared<WeightedTransform<T>>(spec);
  return std::make_shared<Transform<T>>(spec);
}

// The plans used last, the latest first.
class Cache {
 public:
  FftPlan find_or_make(const FftSpec& spec) {
    const std::lock_guard lock(mutex_);
    const auto found = std::find_if(plans_.begin(), plans_.end(),
                                    [&](const FftPlan& p) { return p.spec() == spec; });
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
std::size_t FftPlan::external_bytes() const { return impl_->bytes(); }

FftPlan fft_plan(const FftSpec& spec) {
  check(spec);
  return cache().find_or_make(spec);
}

void execute(const FftPlan& plan, const void* in, void* out, const void* weights) {
  assert(plan.spec().in_place == (in == out) || element_count(plan.spec().extents) == 0);
  plan.impl().run(in, weights, out);
}

void clear_fft_cache() { cache().clear(); }

}  // namespace palimpsest
