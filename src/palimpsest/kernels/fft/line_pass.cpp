// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/kernels/fft/line_pass.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>

#include "palimpsest/base/thread_scratch.hpp"
#include "palimpsest/kernels/fft/panel_forms.hpp"
#include "palimpsest/kernels/pool/parallel.hpp"

namespace palimpsest {
namespace {

struct PanelMemory {
  alignas(64) std::array<std::byte, kPassScratchBytes> bytes;
};

index_t reach(const PassAxis& axis) { return std::abs(axis.in_stride) + std::abs(axis.out_stride); }

}  // namespace

KeptScratch::KeptScratch(std::size_t bytes) : bytes_(bytes) {
  spare_.push_back(std::make_unique<FftMemory>(bytes));
}

std::unique_ptr<FftMemory> KeptScratch::take() {
  {
    const std::lock_guard lock(mutex_);
    if (!spare_.empty()) {
      auto memory = std::move(spare_.back());
      spare_.pop_back();
      return memory;
    }
  }
  return std::make_unique<FftMemory>(bytes_);
}

void KeptScratch::give_back(std::unique_ptr<FftMemory> memory) {
  const std::lock_guard lock(mutex_);
  spare_.push_back(std::move(memory));
}

template <class T>
std::unique_ptr<LinePass<T>> LinePass<T>::make(const PassAxis& line, std::vector<PassAxis> others,
                                               Options options) {
  if (options.transforms && options.twiddles == nullptr &&
      SplitTransform<T>::is_able(line.extent)) {
    return std::make_unique<SplitPanels<T>>(line, std::move(others), std::move(options));
  }
  if (options.transforms && options.twiddles == nullptr &&
      RowTransform<T>::is_better(line.extent)) {
    return std::make_unique<PanelsOfRows<T>>(line, std::move(others), std::move(options));
  }
  return std::make_unique<PanelsOfLines<T>>(line, std::move(others), std::move(options));
}

template <class T>
LinePass<T>::LinePass(const PassAxis& line, std::vector<PassAxis> others, Options options)
    : line_(line), options_(std::move(options)), outer_(std::move(others)) {
  order_axes();
  if (options_.weights) {
    weights_.emplace(line_.weights(), panel_.weights(), options_.weights->is_complex,
                     options_.weights->scale);
  }
}

template <class T>
void LinePass<T>::cut_into_panels(index_t lines, index_t scratch_numbers,
                                  std::size_t scratch_bytes) {
  lines_ = lines;
  panels_ = (panel_.extent + lines_ - 1) / lines_;
  tasks_ = panels_;
  for (const PassAxis& axis : outer_) tasks_ *= axis.extent;
  scratch_bytes += static_cast<std::size_t>(scratch_numbers) * sizeof(std::complex<T>);
  if (scratch_bytes > kPassScratchBytes) scratch_ = std::make_unique<KeptScratch>(scratch_bytes);
}

// The axis with the smallest stride makes the panels; axes with even steps on both sides are
// merged.
template <class T>
void LinePass<T>::order_axes() {
  std::erase_if(outer_, [](const PassAxis& a) { return a.extent == 1; });
  std::stable_sort(outer_.begin(), outer_.end(),
                   [](const PassAxis& a, const PassAxis& b) { return reach(a) > reach(b); });
  for (std::size_t i = 1; i < outer_.size();) {
    PassAxis& outer = outer_[i - 1];
    const PassAxis inner = outer_[i];
    if (outer.in_stride == inner.in_stride * inner.extent &&
        outer.out_stride == inner.out_stride * inner.extent &&
        outer.weight_stride == inner.weight_stride * inner.extent && outer.weight_shift == 0 &&
        inner.weight_shift == 0) {
      outer = {outer.extent * inner.extent, inner.in_stride, inner.out_stride, inner.weight_stride};
      outer_.erase(outer_.begin() + static_cast<std::ptrdiff_t>(i));
    } else {
      ++i;
    }
  }
  if (outer_.empty()) return;
  panel_ = outer_.back();
  outer_.pop_back();
}

// Multiplies a panel in scratch by factors, which are brought there in the same layout.
template <class T>
void LinePass<T>::multiply_runs(const Panel& panel, std::complex<T>* numbers, const Runs& runs,
                                std::complex<T>* spare) const {
  move_panel<T>(panel.factors(), {panel_.weight_stride, line_.weight_stride}, spare, runs.side(),
                panel.lines, runs.line_extent(), {});
  for (index_t r = 0; r < runs.count; ++r) {
    T* const z = reals(numbers + r * runs.distance);
    const T* const factors = reals(spare + r * runs.distance);
    if (options_.factors == LineFactors::conjugated) {
      multiply(ConjugateProduct<T>{z, factors, z, runs.length, false});
    } else {
      multiply(WeightedNumbers<T>{z, factors, z, runs.length, 2, true, T{1}});
    }
  }
}

// Multiplies results by their factors, and adds what is there.
template <class T>
void LinePass<T>::combine_runs(const Panel& panel, std::complex<T>* numbers, const Runs& runs,
                               std::complex<T>* spare) const {
  multiply_runs(panel, numbers, runs, spare);
  if (!panel.adds) return;
  move_panel<T>(panel.to, {panel_.out_stride, line_.out_stride}, spare, runs.side(), panel.lines,
                runs.line_extent(), {});
  for (index_t r = 0; r < runs.count; ++r) {
    T* const z = reals(numbers + r * runs.distance);
    const T* const there = reals(spare + r * runs.distance);
    for (index_t j = 0; j < 2 * runs.length; ++j) z[j] = there[j] + z[j];
  }
}

// Is each line dense in all arrays?
template <class T>
bool LinePass<T>::has_dense_lines() const {
  return line_.in_stride == 1 && line_.out_stride == 1 && line_.weight_stride == 1;
}

template <class T>
typename LinePass<T>::Panel LinePass<T>::panel(const std::complex<T>* x, std::complex<T>* y,
                                               const PassOperand& operand, index_t task) const {
  Panel panel{
      x, y,           static_cast<const std::byte*>(operand.elements), task % panels_ * lines_,
      0, operand.adds};
  const bool has_factors = options_.factors != LineFactors::none;
  const index_t item = weights_ ? weights_->item() : index_t{sizeof(std::complex<T>)};
  panel.lines = std::min(lines_, panel_.extent - panel.first);
  if (has_factors) panel.weights += panel.first * panel_.weight_stride * item;
  panel.from += panel.first * panel_.in_stride;
  panel.to += panel.first * panel_.out_stride;
  index_t rest = task / panels_;
  for (std::size_t i = outer_.size(); i-- > 0;) {
    const PassAxis& axis = outer_[i];
    const index_t position = rest % axis.extent;
    rest /= axis.extent;
    panel.from += position * axis.in_stride;
    panel.to += position * axis.out_stride;
    if (weights_ || has_factors) panel.weights += axis.weights().at(position) * item;
  }
  return panel;
}

template <class T>
std::size_t LinePass<T>::bytes() const {
  std::size_t total = scratch_ ? scratch_->bytes() : 0;
  for (const auto* phases : {&options_.before, &options_.after}) {
    total += phases->real.size() * sizeof(T) + phases->complex.size() * sizeof(std::complex<T>);
  }
  return total;
}

template <class T>
void LinePass<T>::run(const std::complex<T>* x, std::complex<T>* y,
                      const PassOperand& operand) const {
  const index_t grain = kParallelGrain / (lines_ * line_.extent) + 1;
  parallel_ranges(tasks_, grain, [&](index_t begin, index_t end) {
    const auto run_panels = [&](std::byte* memory) {
      for (index_t task = begin; task < end; ++task) {
        run_panel(panel(x, y, operand, task), reinterpret_cast<std::complex<T>*>(memory), x == y);
      }
    };
    if (scratch_) {
      scratch_->use(run_panels);
      return;
    }
    const Scratched<PanelMemory> memory;
    run_panels(memory->bytes.data());
  });
}

template class LinePass<float>;
template class LinePass<double>;

}  // namespace palimpsest
