// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/kernels/fft/array_transform.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "palimpsest/copy/stream_store.hpp"
#include "palimpsest/kernels/fft/wide.hpp"

// With e(t) = exp(-+ 2 pi i t / N), (k-c)(j-c) = kj - cj - ck + c^2. So a transform centered at
// element c multiplies by e(-cj) before the plain transform, and by e(c^2 - ck) after it. For even
// N and c = N/2 these are signs: (-1)^j and (-1)^(k + N/2). The first pass brings the lines from
// `in` to `out`, the others work in place; the last one applies the scale.
//
// If the array consists of blocks with separate transforms, each block goes through all its passes
// while it is in cache. So do the slices of a large volume, before the pass that joins them.
//
// Results that do not stay in the last cache are written past it: those of at least an eighth of
// it, since the array that is read passes through it, too. Then a slice of several axes goes to a
// room in the cache of the core between its first and its last pass, if the room fits half of that.
// 64 x 320 x 320 takes 0.75 of the time in place, 32 x 320 x 320 0.88, 16 x 320 x 320 1.07 (300 MiB
// of last cache, shared with others). In place results lie where they have been read, and rows that
// are no whole lines of cache cannot be streamed: such rooms take 1.3 times as long.
namespace palimpsest {
namespace {

// Slices smaller than this, or of arrays that fit the cache, get no passes of their own.
constexpr index_t kSmallSlice = 16384, kCached = 524288;

bool is_large(index_t bytes) { return bytes >= 2 * line_streaming_bytes(); }

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
      const WideComplex before = root_of_unity(c * (n - j) % n, n, forward);
      const WideComplex after = root_of_unity(c * (c + n - j) % n, n, forward);
      options.before.complex.emplace_back(static_cast<T>(before.re), static_cast<T>(before.im));
      options.after.complex.emplace_back(static_cast<T>(Wide(scale) * after.re),
                                         static_cast<T>(Wide(scale) * after.im));
    }
  }
}

bool is_longer(const FftSpec& s, std::size_t axis) {
  return s.weights && !s.weights->extents.empty() && s.weights->extents[axis] > s.extents[axis];
}
bool is_padded(const FftSpec& s) {
  for (std::size_t i = 0; i < s.extents.size(); ++i) {
    if (is_longer(s, i)) return true;
  }
  return false;
}

}  // namespace

std::vector<TransformAxis> transform_axes(const FftSpec& s) {
  std::vector<TransformAxis> axes;
  const bool is_sorted = !is_padded(s) && !s.factors;
  for (std::size_t i = 0; i < s.extents.size(); ++i) {
    if (s.extents[i] == 1 && is_sorted) continue;
    TransformAxis axis{{s.extents[i], s.in_strides[i], s.out_strides[i]}, s.out_strides[i]};
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
    std::stable_sort(axes.begin(), axes.end(), [](const TransformAxis& a, const TransformAxis& b) {
      return std::abs(a.out_stride) > std::abs(b.out_stride);
    });
  }
  if (axes.empty()) axes.emplace_back();
  return axes;
}

bool is_streamed(const FftSpec& s) {
  const auto item = static_cast<index_t>(item_size(s.dtype));
  FftSpec dense = s;
  dense.out_strides = contiguous_strides(s.extents);
  const std::vector<TransformAxis> axes = transform_axes(dense);
  const auto is_same = [](const TransformAxis& a, const TransformAxis& b) {
    return a.extent == b.extent && a.is_transformed == b.is_transformed;
  };
  return !s.in_place && axes.back().extent * item % kCacheLine == 0 &&
         std::ranges::equal(transform_axes(s), axes, is_same) &&
         is_large(element_count(s.extents) * item);
}

TransformBlocks::TransformBlocks(std::vector<TransformAxis>& from) {
  const auto first = std::find_if(from.begin(), from.end(),
                                  [](const TransformAxis& a) { return a.is_transformed; });
  for (auto axis = from.begin(); axis != first; ++axis) {
    axes.push_back(*axis);
    count *= axis->extent;
  }
  from.erase(from.begin(), first);
}

TransformBlocks::Begin TransformBlocks::begin(index_t block) const {
  Begin begin{block};
  for (std::size_t i = axes.size(); i-- > 0;) {
    const TransformAxis& axis = axes[i];
    const index_t position = block % axis.extent;
    block /= axis.extent;
    begin.in += position * axis.in_stride;
    begin.work += position * axis.work_stride;
    begin.out += position * axis.out_stride;
    begin.weights += axis.weights().at(position);
    begin.factors += position * axis.factor_stride;
  }
  return begin;
}

template <class T>
ArrayTransform<T>::ArrayTransform(const FftSpec& s, std::vector<TransformAxis> axes,
                                  LineFactors factors, bool streams)
    : Impl(s), factors_(factors) {
  if (element_count(s.extents) == 0) return;
  const auto n_transformed = static_cast<std::size_t>(std::count_if(
      axes.begin(), axes.end(), [](const TransformAxis& axis) { return axis.is_transformed; }));
  stage_ = make_stage(std::move(axes), n_transformed, true, streams);
}

template <class T>
ArrayTransform<T>::ArrayTransform(const FftSpec& s)
    : ArrayTransform(s, transform_axes(s), LineFactors::none, is_streamed(s)) {}

template <class T>
std::size_t ArrayTransform<T>::bytes(int threads) const {
  std::size_t total = 0;
  for (const Stage* stage = stage_.get(); stage != nullptr; stage = stage->slices.get()) {
    for (const auto& pass : stage->passes) total += pass->bytes(threads);
  }
  return total;
}

template <class T>
std::size_t ArrayTransform<T>::workspace_bytes(int threads) const {
  if (stage_ == nullptr) return 0;
  const Stage& inner = stage_->slices ? *stage_->slices : *stage_;
  return static_cast<std::size_t>(inner.room * std::min<index_t>(threads, inner.blocks.count)) *
         sizeof(std::complex<T>);
}

// Makes the passes for axes of which n_transformed are transformed. `is_last`: applies the scale.
// `streams`: what they store last passes by the cache.
template <class T>
std::unique_ptr<const typename ArrayTransform<T>::Stage> ArrayTransform<T>::make_stage(
    std::vector<TransformAxis> axes, std::size_t n_transformed, bool is_last, bool streams) const {
  auto stage = std::make_unique<Stage>();
  if (n_transformed > 1) stage->blocks = TransformBlocks(axes);
  index_t bytes = static_cast<index_t>(sizeof(std::complex<T>));
  for (const TransformAxis& axis : axes) bytes *= axis.extent;
  if (n_transformed > 2 && bytes > kCached && bytes / axes[0].extent >= kSmallSlice) {
    std::vector<TransformAxis> inner = axes;
    inner[0].is_transformed = false;
    inner[0].extent = inner[0].given;
    for (TransformAxis& axis : inner) axis.out_stride = axis.work_stride;
    streams = streams && is_large(bytes);
    stage->slices = make_stage(std::move(inner), n_transformed - 1, false, streams);
    for (std::size_t i = 1; i < axes.size(); ++i) {
      axes[i].is_transformed = false;
      axes[i].given = axes[i].taken;
    }
    for (TransformAxis& axis : axes) axis.in_stride = axis.work_stride;
    n_transformed = 1;
  } else if (streams) {
    streams = n_transformed > 1 && make_room(axes, *stage);
  }
  make_passes(axes, n_transformed, is_last, streams, *stage);
  return stage;
}

// Gives a block a room between its passes, if that fits half of a core's cache. Its rows lie an odd
// number of lines of cache apart.
template <class T>
bool ArrayTransform<T>::make_room(std::vector<TransformAxis>& axes, Stage& stage) {
  std::vector<TransformAxis> padded = axes;
  constexpr index_t kRow = 256 / sizeof(std::complex<T>);
  index_t n = 1;
  for (auto axis = padded.rbegin(); axis != padded.rend(); ++axis) {
    axis->work_stride = n;
    const bool is_row = n < kRow && n * axis->extent >= kRow;
    n *= axis->extent;
    if (is_row) n = scratch_distance<T>(n);
  }
  if (n * index_t{sizeof(std::complex<T>)} > core_cache_bytes() / 2) return false;
  axes = std::move(padded);
  for (TransformAxis& axis : stage.blocks.axes) axis.work_stride = 0;
  stage.room = n;
  return true;
}

template <class T>
void ArrayTransform<T>::make_passes(const std::vector<TransformAxis>& axes,
                                    std::size_t n_transformed, bool is_last, bool streams,
                                    Stage& stage) const {
  std::vector<std::size_t> order;
  for (std::size_t i = axes.size(); i-- > 0;) {
    if (axes[i].is_transformed && order.size() < n_transformed) order.push_back(i);
  }
  // If none is transformed, the last axis is copied and scaled.
  if (n_transformed == 0) order.push_back(axes.size() - 1);
  // Factors go with lines of the last axis, which are dense in most arrays.
  if (factors_ == LineFactors::conjugated) std::reverse(order.begin(), order.end());
  std::vector<bool> is_done(axes.size());
  for (const std::size_t i : order) {
    const bool is_first = stage.passes.empty(), ends = i == order.back();
    const bool has_factors = factors_ == LineFactors::before       ? is_first && !stage.slices
                             : factors_ == LineFactors::conjugated ? ends && is_last
                                                                   : false;
    // The axis in this pass.
    const auto side = [&](std::size_t k) -> PassAxis {
      const TransformAxis& axis = axes[k];
      const index_t lines = is_done[k] ? axis.taken : axis.given;
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
    typename LinePass<T>::Options options;
    options.transforms = n_transformed > 0;
    options.forward = spec.forward;
    options.factors = has_factors ? factors_ : LineFactors::none;
    options.streams = streams && ends;
    stage.passes.push_back(make_pass(side(i), std::move(others), std::move(options),
                                     is_last && ends ? spec.scale : 1));
    is_done[i] = true;
  }
}

template <class T>
std::unique_ptr<const LinePass<T>> ArrayTransform<T>::make_pass(
    const PassAxis& line, std::vector<PassAxis> others, typename LinePass<T>::Options options,
    double scale) const {
  make_phases<T>(line.extent, spec.centered && options.transforms, spec.forward, scale, options);
  return std::make_unique<const LinePass<T>>(line, std::move(others), std::move(options));
}

template <class T>
void ArrayTransform<T>::run(const void* in, void* out, const FftOperands& operands) const {
  if (stage_ == nullptr) return;
  auto* const y = static_cast<std::complex<T>*>(out);
  const Arrays arrays{static_cast<const std::complex<T>*>(in), y, y, {}, operands.workspace};
  run_stage(*stage_, arrays);
}

// Each room takes a share of the blocks. Slices with rooms are those of one block at a time.
template <class T>
void ArrayTransform<T>::run_stage(const Stage& stage, const Arrays& arrays) {
  const index_t count = stage.blocks.count;
  if (stage.slices != nullptr && stage.slices->room > 0) {
    for (index_t block = 0; block < count; ++block) {
      run_block(stage, stage.blocks.begin(block), arrays);
    }
    return;
  }
  if (stage.room == 0) {
    return stage.blocks.for_each(
        0, count, [&](const TransformBlocks::Begin& begin) { run_block(stage, begin, arrays); });
  }
  auto* const rooms = reinterpret_cast<std::complex<T>*>(arrays.rooms.data());
  const auto fitting = static_cast<index_t>(arrays.rooms.size() / sizeof(std::complex<T>));
  const index_t n = std::min(count, fitting / stage.room);
  assert(n > 0);
  parallel_ranges(n, 1, [&](index_t first, index_t last) {
    for (index_t i = first; i < last; ++i) {
      Arrays own = arrays;
      own.w = rooms + i * stage.room;
      for (index_t block = count * i / n; block < count * (i + 1) / n; ++block) {
        run_block(stage, stage.blocks.begin(block), own);
      }
    }
  });
}

template <class T>
void ArrayTransform<T>::run_block(const Stage& stage, const TransformBlocks::Begin& begin,
                                  const Arrays& arrays) {
  const std::complex<T>* from = arrays.x + begin.in;
  std::complex<T>*const work = arrays.w + begin.work, *const to = arrays.y + begin.out;
  const PassOperand of_block{
      static_cast<const std::complex<T>*>(arrays.factors.elements) + begin.factors,
      arrays.factors.adds};
  if (stage.slices != nullptr) {
    run_stage(*stage.slices, {from, work, work, of_block, arrays.rooms});
    from = work;
  }
  for (const auto& pass : stage.passes) {
    pass->run(from, &pass == &stage.passes.back() ? to : work, of_block);
    from = work;
  }
}

template class ArrayTransform<float>;
template class ArrayTransform<double>;

}  // namespace palimpsest
