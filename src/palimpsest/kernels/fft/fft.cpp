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
// the spectrum by c: plain transforms with the weights w[(k + c) mod N] give the same. So do those
// of the position of an array among zeros.
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
  virtual void run(const void* in, void* out, const FftOperands& operands) const = 0;
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

// Passes between the first and the last one work in place on `work`.
struct Axis : PassAxis {
  index_t work_stride = 0, factor_stride = 0;
  bool is_transformed = false;
};

bool is_longer(const FftSpec& s, std::size_t axis) {
  return s.weights && !s.weights->extents.empty() && s.weights->extents[axis] > s.extents[axis];
}
bool is_padded(const FftSpec& s) {
  for (std::size_t i = 0; i < s.extents.size(); ++i) {
    if (is_longer(s, i)) return true;
  }
  return false;
}

// The axes of more than one element, smallest strides last. Of padded arrays and with factors all
// axes in their order.
std::vector<Axis> axes_of(const FftSpec& s) {
  std::vector<Axis> axes;
  const bool is_sorted = !is_padded(s) && !s.factors;
  for (std::size_t i = 0; i < s.extents.size(); ++i) {
    if (s.extents[i] == 1 && is_sorted) continue;
    Axis axis{{s.extents[i], s.in_strides[i], s.out_strides[i]}, s.out_strides[i]};
    if (is_longer(s, i)) axis.extent = s.weights->extents[i];
    axis.is_transformed =
        std::find(s.axes.begin(), s.axes.end(), static_cast<index_t>(i)) != s.axes.end();
    if (s.weights) axis.weight_stride = s.weights->strides[i];
    if (s.factors) axis.factor_stride = s.factors->strides[i];
    if (axis.weight_stride != 0 && s.centered && axis.is_transformed) {
      axis.weight_shift = axis.extent / 2;
    }
    axes.push_back(axis);
  }
  if (is_sorted) {
    std::stable_sort(axes.begin(), axes.end(), [](const Axis& a, const Axis& b) {
      return std::abs(a.out_stride) > std::abs(b.out_stride);
    });
  }
  if (axes.empty()) axes.emplace_back();
  return axes;
}

template <class T>
bool is_long_line(const PassAxis& line, bool centered) {
  return line.given == line.extent && line.taken == line.extent &&
         LongLine<T>::is_better(line.extent, centered);
}

bool has_elements(const FftSpec& s) {
  return std::find(s.extents.begin(), s.extents.end(), 0) == s.extents.end();
}

// Blocks with separate transforms.
struct Blocks {
  // Where a block begins, in elements.
  struct Begin {
    index_t block, in = 0, work = 0, out = 0, weights = 0, factors = 0;
  };
  std::vector<Axis> axes;  // outermost first
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

  // Calls f for the Begin of each block, or of n blocks.
  template <class F>
  void for_each(const F& f) const {
    for_each(0, count, f);
  }
  template <class F>
  void for_each(index_t from, index_t n, const F& f) const {
    parallel_ranges(n, 1, [&](index_t first, index_t last) {
      for (index_t block = from + first; block < from + last; ++block) {
        Begin begin{block};
        index_t rest = block;
        for (std::size_t i = axes.size(); i-- > 0;) {
          const Axis& axis = axes[i];
          const index_t position = rest % axis.extent;
          rest /= axis.extent;
          begin.in += position * axis.in_stride;
          begin.work += position * axis.work_stride;
          begin.out += position * axis.out_stride;
          begin.weights += position * axis.weight_stride;
          begin.factors += position * axis.factor_stride;
        }
        f(begin);
      }
    });
  }
};

template <class T>
class Transform final : public FftPlan::Impl {
 public:
  explicit Transform(const FftSpec& s) : Transform(s, axes_of(s), LineFactors::none) {}
  // `factors`: of what the first pass loads, or of the results of the last one.
  Transform(const FftSpec& s, std::vector<Axis> axes, LineFactors factors)
      : Impl(s), factors_(factors) {
    if (!has_elements(s)) return;
    const auto n_transformed = std::count_if(axes.begin(), axes.end(),
                                             [](const Axis& axis) { return axis.is_transformed; });
    stage_ = make_stage(std::move(axes), static_cast<std::size_t>(n_transformed), true);
  }

  void run(const void* in, void* out, const FftOperands&) const override {
    auto* const y = static_cast<std::complex<T>*>(out);
    run(static_cast<const std::complex<T>*>(in), y, y, {});
  }
  void run(const std::complex<T>* in, std::complex<T>* work, std::complex<T>* out,
           const PassOperand& factors) const {
    if (stage_ != nullptr) run_stage(*stage_, in, work, out, factors);
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
      inner[0].extent = inner[0].given;
      for (Axis& axis : inner) axis.out_stride = axis.work_stride;
      stage->slices = make_stage(std::move(inner), n_transformed - 1, false);
      for (std::size_t i = 1; i < axes.size(); ++i) axes[i].is_transformed = false;
      for (Axis& axis : axes) axis.in_stride = axis.work_stride;
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
      const bool is_first = stage.passes.empty(), ends = left == 0;
      const bool has_factors = factors_ == LineFactors::before       ? is_first && !stage.slices
                               : factors_ == LineFactors::conjugated ? ends && is_last
                                                                     : false;
      // The axis in this pass. Axes behind it were transformed.
      const auto side = [&](std::size_t k) -> PassAxis {
        const Axis& axis = axes[k];
        const index_t lines = k > i ? axis.taken : axis.given;
        return {k == i ? axis.extent : lines,
                is_first ? axis.in_stride : axis.work_stride,
                ends ? axis.out_stride : axis.work_stride,
                has_factors ? axis.factor_stride : 0,
                0,
                axis.given,
                axis.taken};
      };
      std::vector<PassAxis> others;
      for (std::size_t k = 0; k < axes.size(); ++k) {
        if (k != i) others.push_back(side(k));
      }
      stage.passes.push_back(make_pass(side(i), std::move(others), n_transformed > 0,
                                       is_last && ends ? spec.scale : 1,
                                       has_factors ? factors_ : LineFactors::none));
    }
  }

  std::unique_ptr<const ArrayPass<T>> make_pass(const PassAxis& line, std::vector<PassAxis> others,
                                                bool transforms, double scale,
                                                LineFactors factors) const {
    if (transforms && factors == LineFactors::none && is_long_line<T>(line, spec.centered)) {
      return std::make_unique<LongLine<T>>(
          line, std::move(others),
          typename LongLine<T>::Options{spec.forward, spec.centered, scale, spec.effort});
    }
    typename LinePass<T>::Options options;
    options.transforms = transforms;
    options.forward = spec.forward;
    options.effort = spec.effort;
    options.factors = factors;
    make_phases<T>(line.extent, spec.centered && transforms, spec.forward, scale, options);
    return std::make_unique<LinePass<T>>(line, std::move(others), std::move(options));
  }

  static void run_stage(const Stage& stage, const std::complex<T>* x, std::complex<T>* w,
                        std::complex<T>* y, const PassOperand& factors) {
    stage.blocks.for_each([&](const Blocks::Begin& begin) {
      const std::complex<T>* from = x + begin.in;
      std::complex<T>*const work = w + begin.work, *const to = y + begin.out;
      const PassOperand of_block{
          static_cast<const std::complex<T>*>(factors.elements) + begin.factors, factors.adds};
      if (stage.slices != nullptr) {
        run_stage(*stage.slices, from, work, work, of_block);
        from = work;
      }
      for (const auto& pass : stage.passes) {
        pass->run(from, &pass == &stage.passes.back() ? to : work, of_block);
        from = work;
      }
    });
  }

  LineFactors factors_;
  std::unique_ptr<const Stage> stage_;  // null: no elements
};

// An array that is transformed there and back, in blocks, for each position along an axis that is
// summed over.
struct WeightedBlocks {
  Axis summed;  // of one element without factors
  Blocks blocks;
  std::vector<Axis> axes;  // of a block
  // Elements of a room for the spectrum of a block, of the block's extent along the first axis, of
  // the spectrum's along the others. 0: blocks work in `out`.
  index_t room = 0;

  explicit WeightedBlocks(const FftSpec& s) : axes(axes_of(s)) {
    if (s.factors) {
      summed = axes[0];
      axes.erase(axes.begin());
    }
    if (transforms(0)) blocks = Blocks(axes);
    const auto is_short = [](const Axis& axis) { return axis.given < axis.extent; };
    const bool needs_room = s.factors || std::any_of(axes.begin() + 1, axes.end(), is_short);
    if (!needs_room || !has_elements(s)) return;
    room = 1;
    for (std::size_t i = axes.size(); i-- > 0;) {
      axes[i].work_stride = room;
      room *= i == 0 ? axes[i].given : axes[i].extent;
    }
  }

  // Of several blocks as many as fit 1 MiB. Of one block, along the summed axis, as many as threads
  // if they are worth a thread and fit a cache.
  index_t rooms(std::size_t item, int threads) const {
    if (room == 0) return 0;
    constexpr index_t kOfBlocks = 1 << 20, kLeast = 1 << 17, kMost = 1 << 22;
    const index_t bytes = room * static_cast<index_t>(item);
    if (blocks.count > 1) return std::clamp<index_t>(kOfBlocks / bytes, 1, blocks.count);
    return kLeast <= bytes && bytes <= kMost ? std::min<index_t>(summed.extent, threads) : 1;
  }

  // Are more than n axes transformed?
  bool transforms(index_t n) const {
    return std::count_if(axes.begin(), axes.end(),
                         [](const Axis& axis) { return axis.is_transformed; }) > n;
  }
};

// A transform, weights, and the transform back. In each block, all axes but the first one are
// transformed before and after the passes along the first one, which weigh. Factors are multiplied
// in the first and the last pass.
template <class T>
class WeightedTransform final : public FftPlan::Impl {
  using Number = std::complex<T>;

 public:
  explicit WeightedTransform(const FftSpec& s) : Impl(s), parts_(s) {
    if (!has_elements(s)) return;
    const bool transforms = parts_.transforms(0);
    std::vector<Axis> axes = parts_.axes;
    if (parts_.transforms(1)) {
      before_ = make_inner(axes, true);
      after_ = make_inner(axes, false);
      for (Axis& axis : axes) axis.in_stride = axis.out_stride = axis.work_stride;
      for (std::size_t i = 1; i < axes.size(); ++i) axes[i].given = axes[i].taken = axes[i].extent;
    }
    make_passes(axes[0], {axes.begin() + 1, axes.end()}, transforms);
  }

  void run(const void* in, void* out, const FftOperands& operands) const override {
    if (middle_ == nullptr) return;
    if (parts_.room == 0) {
      parts_.blocks.for_each([&](const auto& begin) {
        auto* const y = static_cast<Number*>(out) + begin.out;
        back(there(in, y, operands, begin, 0), y, operands, begin, 0);
      });
      return;
    }
    auto* const rooms = reinterpret_cast<Number*>(operands.workspace.data());
    const auto n_rooms =
        static_cast<index_t>(operands.workspace.size() / sizeof(Number)) / parts_.room;
    assert(n_rooms > 0);
    const auto room = [&](index_t i) { return rooms + i * parts_.room; };
    const index_t count = parts_.blocks.count, summed = parts_.summed.extent;
    if (count == 1) {
      run_side_by_side(in, out, operands, room, std::min<index_t>(n_rooms, pool_threads()));
      return;
    }
    for (index_t block = 0; block < count; block += n_rooms) {
      parts_.blocks.for_each(block, std::min(n_rooms, count - block), [&](const auto& begin) {
        auto* const y = static_cast<Number*>(out) + begin.out;
        for (index_t c = 0; c < summed; ++c) {
          back(there(in, room(begin.block - block), operands, begin, c), y, operands, begin, c);
        }
      });
    }
  }

  std::size_t bytes() const override {
    const auto bytes_of = [](const auto& part) { return part == nullptr ? 0 : part->bytes(); };
    return bytes_of(before_) + bytes_of(there_) + bytes_of(middle_) + bytes_of(back_) +
           bytes_of(after_);
  }

 private:
  // One block: n elements along the summed axis are weighed side by side, then added in order.
  template <class Room>
  void run_side_by_side(const void* in, void* out, const FftOperands& operands, const Room& room,
                        index_t n) const {
    const Blocks::Begin begin{0};
    auto* const y = static_cast<Number*>(out);
    const index_t summed = parts_.summed.extent;
    for (index_t first = 0; first < summed; first += n) {
      const index_t some = std::min(n, summed - first);
      parallel_ranges(some, 1, [&](index_t from, index_t to) {
        for (index_t i = from; i < to; ++i) there(in, room(i), operands, begin, first + i);
      });
      for (index_t i = 0; i < some; ++i) back(room(i), y, operands, begin, first + i);
    }
  }

  // Element c along the summed axis of a block: its weighed spectrum along the first axis, in w.
  Number* there(const void* in, Number* w, const FftOperands& operands, const Blocks::Begin& begin,
                index_t c) const {
    const Axis& summed = parts_.summed;
    const auto* x = static_cast<const Number*>(in) + begin.in + c * summed.in_stride;
    const index_t item = static_cast<index_t>(sizeof(T)) * (spec.weights->is_complex ? 2 : 1);
    const PassOperand weights{static_cast<const std::byte*>(operands.weights) +
                              (begin.weights + c * summed.weight_stride) * item};
    if (before_ != nullptr) {
      before_->run(x, w, w, factors(operands, begin, c));
      x = w;
    }
    if (there_ != nullptr) {
      there_->run(x, w, {});
      x = w;
    }
    middle_->run(x, w, weights);
    if (back_ != nullptr) back_->run(w, w, {});
    return w;
  }
  // The transform back along the other axes, to y.
  void back(Number* w, Number* y, const FftOperands& operands, const Blocks::Begin& begin,
            index_t c) const {
    if (after_ != nullptr) after_->run(w, w, y, factors(operands, begin, c));
  }
  PassOperand factors(const FftOperands& operands, const Blocks::Begin& begin, index_t c) const {
    return {static_cast<const Number*>(operands.factors) + begin.factors +
                c * parts_.summed.factor_stride,
            c > 0};
  }

  // The transform of a block along all axes but the first.
  std::unique_ptr<const Transform<T>> make_inner(std::vector<Axis> axes, bool is_before) const {
    axes[0].is_transformed = false;
    axes[0].extent = axes[0].given;
    for (Axis& axis : axes) {
      (is_before ? axis.taken : axis.given) = axis.extent;
      (is_before ? axis.out_stride : axis.in_stride) = axis.work_stride;
    }
    FftSpec inner = spec;
    inner.weights.reset();
    inner.forward = is_before == spec.forward;
    inner.centered = false;
    inner.scale = 1;
    return std::make_unique<Transform<T>>(inner, std::move(axes),
                                          !spec.factors ? LineFactors::none
                                          : is_before   ? LineFactors::before
                                                        : LineFactors::conjugated);
  }

  // Long lines are transformed by passes of their own.
  void make_passes(PassAxis line, std::vector<PassAxis> others, bool transforms) {
    const bool is_long = transforms && is_long_line<T>(line, false);
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

  const WeightedBlocks parts_;
  std::unique_ptr<const Transform<T>> before_, after_;
  std::unique_ptr<const LongLine<T>> there_, back_;
  std::unique_ptr<const LinePass<T>> middle_;  // null: no elements
};

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

std::size_t fft_workspace_bytes(const FftSpec& spec, int threads) {
  if (!spec.weights || !has_elements(spec)) return 0;
  const WeightedBlocks parts(spec);
  const std::size_t item = item_size(spec.dtype);
  return static_cast<std::size_t>(parts.room * parts.rooms(item, threads)) * item;
}

void execute(const FftPlan& plan, const void* in, void* out, const FftOperands& operands) {
  assert(plan.spec().in_place == (in == out) || element_count(plan.spec().extents) == 0);
  plan.impl().run(in, out, operands);
}

void clear_fft_cache() { cache().clear(); }

}  // namespace palimpsest
