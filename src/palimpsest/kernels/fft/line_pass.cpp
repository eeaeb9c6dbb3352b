// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/kernels/fft/line_pass.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>

#include "palimpsest/base/thread_scratch.hpp"
#include "palimpsest/kernels/pool/parallel.hpp"

namespace palimpsest {
namespace {

constexpr index_t kScratchBytes = 262144;
constexpr index_t kPanelBytes = 256;  // bytes of a panel row: four cache lines
constexpr index_t kLongPanelLines = 8;
constexpr index_t kShortLine = 64;  // shorter lines: one call of FFTW transforms a panel

constexpr index_t kPage = 4096, kLine = 64;

template <class T>
using Complex = std::complex<T>;
template <class T>
constexpr index_t kItem = static_cast<index_t>(sizeof(Complex<T>));

// Prefetches a line while another one is transformed: the transform reads it out of order.
template <class T>
void ask_for_line(const Complex<T>* line, index_t n) {
  for (index_t b = 0; b < n; b += kLine / kItem<T>) __builtin_prefetch(line + b);
}

template <class T>
bool is_none(const LinePhases<T>& phases) {
  return phases.real.empty() && phases.complex.empty();
}

struct PanelMemory {
  alignas(64) std::array<std::byte, kScratchBytes> bytes;
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
LinePass<T>::LinePass(const PassAxis& line, std::vector<PassAxis> others, Options options)
    : line_(line), outer_(std::move(others)), options_(std::move(options)) {
  order_axes();
  if (options_.transforms && options_.twiddles == nullptr &&
      RowTransform<T>::is_better(line_.extent)) {
    rows_ = RowTransform<T>::find_or_make(line_.extent, options_.forward);
    if (options_.weights) {
      back_rows_ = RowTransform<T>::find_or_make(line_.extent, !options_.forward);
    }
  }
  if (options_.weights) {
    weights_.emplace(line_.weights(), panel_.weights(), options_.weights->is_complex,
                     options_.weights->scale);
  }
  choose_lines();
  panels_ = (panel_.extent + lines_ - 1) / lines_;
  tasks_ = panels_;
  for (const PassAxis& axis : outer_) tasks_ *= axis.extent;
  if (scratch_bytes() > kScratchBytes) scratch_ = std::make_unique<KeptScratch>(scratch_bytes());
}

template <class T>
void LinePass<T>::choose_lines() {
  if (rows_) {
    const index_t fitting = kScratchBytes / (rows_in_scratch() * kItem<T>);
    const index_t most = std::clamp(fitting / RowTransform<T>::kLines * RowTransform<T>::kLines,
                                    RowTransform<T>::kLines, kPanelBytes / kItem<T>);
    lines_ = std::min(panel_.extent, most);
    return;
  }
  distance_ = scratch_distance<T>(line_.extent);
  const bool at_once = line_.extent < kShortLine;
  const auto weight_bytes = weights_ ? static_cast<index_t>(weights_->bytes_per_line()) : 0;
  const index_t fitting =
      kScratchBytes / (panels_in_scratch() * distance_ * kItem<T> + weight_bytes) - 1;
  lines_ = std::min(panel_.extent,
                    fitting >= 1 ? std::min(fitting, kPanelBytes / kItem<T>) : kLongPanelLines);
  together_ = at_once ? lines_ : 1;
  if (!options_.transforms) return;
  first_line_ = together_;
  const auto plan = [&](bool forward) {
    return LinePlan<T>::find_or_make(line_.extent, together_, distance_, forward, options_.effort);
  };
  plan_ = plan(options_.forward);
  if (weights_) back_ = plan(!options_.forward);
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

// Lines that a plan transforms in vain.
template <class T>
void LinePass<T>::fill_up(Complex<T>* slots, index_t lines) const {
  std::fill(slots + lines * distance_, slots + together_ * distance_, Complex<T>(0));
}

// Single lines use one additional line of scratch: each line moves down by one place, from the
// first to the last.
template <class T>
void LinePass<T>::transform(Complex<T>* scratch, index_t lines) const {
  if (!plan_) return;
  if (together_ > 1) {
    fill_up(scratch + first_line_ * distance_, lines);
    plan_->execute(scratch + first_line_ * distance_, scratch);
    return;
  }
  for (index_t c = 0; c < lines; ++c) {
    plan_->execute(scratch + (c + 1) * distance_, scratch + c * distance_);
  }
}

// Transforms from scratch directly to the array if its lines are dense, aligned and without
// factors; else returns false. The plan is the same, so bits do not depend on alignment.
template <class T>
bool LinePass<T>::transform_to(const Complex<T>* scratch, Complex<T>* to, index_t lines) const {
  if (!plan_ || together_ > 1 || line_.out_stride != 1 || line_.taken < line_.extent) return false;
  if (options_.factors == LineFactors::conjugated) return false;
  if (!is_none(options_.after) || options_.twiddles != nullptr) return false;
  for (index_t c = 0; c < lines; ++c) {
    if (!plan_->fits(to + c * panel_.out_stride)) return false;
  }
  for (index_t c = 0; c < lines; ++c) {
    plan_->execute(scratch + (c + 1) * distance_, to + c * panel_.out_stride);
  }
  return true;
}

// Is the pass only a transform of lines that are dense on both sides?
template <class T>
bool LinePass<T>::is_plain() const {
  return plan_ && together_ == 1 && line_.in_stride == 1 && line_.out_stride == 1 &&
         line_.given == line_.extent && line_.taken == line_.extent && is_none(options_.before) &&
         is_none(options_.after) && options_.twiddles == nullptr &&
         options_.factors == LineFactors::none;
}

// Transforms lines from one array to the other; through scratch where they are not aligned.
template <class T>
void LinePass<T>::transform_rows(const Complex<T>* from, Complex<T>* to, Complex<T>* scratch,
                                 index_t lines) const {
  const auto bytes = static_cast<std::size_t>(line_.extent) * sizeof(Complex<T>);
  Complex<T>* const spare = scratch + distance_;
  const bool from_fits = plan_->fits(from) && plan_->fits(from + panel_.in_stride);
  const bool to_fits = plan_->fits(to) && plan_->fits(to + panel_.out_stride);
  for (index_t c = 0; c < lines; ++c, from += panel_.in_stride, to += panel_.out_stride) {
    if (c + 1 < lines) ask_for_line(from + panel_.in_stride, line_.extent);
    const Complex<T>* source = from;
    if (!from_fits) {
      std::memcpy(scratch, from, bytes);
      source = scratch;
    }
    if (to_fits) {
      plan_->execute(source, to);
    } else {
      plan_->execute(source, spare);
      std::memcpy(to, spare, bytes);
    }
  }
}

// Lines of a panel side by side in scratch, as a multiple of RowTransform<T>::kLines.
template <class T>
index_t lines_in_rows(index_t lines) {
  constexpr index_t kLines = RowTransform<T>::kLines;
  return (lines + kLines - 1) / kLines * kLines;
}

// Multiplies a panel in scratch by factors, which are brought there in the same layout.
template <class T>
void LinePass<T>::multiply_runs(const Panel& panel, Complex<T>* numbers, const Runs& runs,
                                Complex<T>* spare) const {
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
void LinePass<T>::combine_runs(const Panel& panel, Complex<T>* numbers, const Runs& runs,
                               Complex<T>* spare) const {
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

// Such lines stay in the first level of cache from the product to the result. The next one is
// prefetched: lines of a page each stop the hardware's prefetchers.
template <class T>
void LinePass<T>::run_line_by_line(const Panel& panel, Complex<T>* slot) const {
  const index_t given = line_.given, taken = line_.taken;
  Complex<T>* const result = slot + distance_;
  const bool multiplies = options_.factors == LineFactors::before;
  for (index_t c = 0; c < panel.lines; ++c) {
    const Complex<T>* const from = panel.from + c * panel_.in_stride;
    const Complex<T>* const factors = panel.factors() + c * panel_.weight_stride;
    Complex<T>* const to = panel.to + c * panel_.out_stride;
    if (c + 1 < panel.lines) {
      ask_for_line(from + panel_.in_stride, given);
      ask_for_line(factors + panel_.weight_stride, multiplies ? given : taken);
      if (panel.adds && !multiplies) ask_for_line(to + panel_.out_stride, taken);
    }
    if (multiplies) {
      multiply(WeightedNumbers<T>{reals(from), reals(factors), reals(slot), given, 2, true, T{1}});
    } else {
      std::copy_n(from, given, slot);
    }
    std::fill(slot + given, slot + line_.extent, Complex<T>(0));
    const bool is_direct = multiplies && taken == line_.extent && plan_->fits(to);
    plan_->execute(slot, is_direct ? to : result);
    if (!multiplies) {
      multiply(ConjugateProduct<T>{reals(result), reals(factors), reals(to), taken, panel.adds});
    } else if (!is_direct) {
      std::copy_n(result, taken, to);
    }
  }
}

// May rows of the panel be read and written where they are? Rows that lie far apart are copied
// first, since copies prefetch them.
template <class T>
bool LinePass<T>::has_near_rows(const Panel& panel, index_t line, index_t step) const {
  return line == 1 && std::abs(step) * kItem<T> < kPage / 2 &&
         options_.factors == LineFactors::none && panel.lines == lines_in_rows<T>(panel.lines);
}

// The rows of the panel: those of x, or else a copy in scratch.
template <class T>
typename LinePass<T>::Rows LinePass<T>::load_rows(const Panel& panel, Complex<T>* rows,
                                                  Complex<T>* spare) const {
  const index_t n = line_.given, lines = panel.lines, width = lines_in_rows<T>(lines);
  if (n == line_.extent && is_none(options_.before) &&
      has_near_rows(panel, panel_.in_stride, line_.in_stride)) {
    return {const_cast<Complex<T>*>(panel.from), line_.in_stride};
  }
  for (index_t j = 0; j < n && lines < width; ++j) {
    std::fill(rows + j * width + lines, rows + (j + 1) * width, Complex<T>(0));
  }
  const bool multiplies = options_.factors == LineFactors::before;
  if (multiplies && has_dense_lines()) {
    for (index_t c = 0; c < lines; ++c) {
      multiply(WeightedNumbers<T>{reals(panel.from + c * panel_.in_stride),
                                  reals(panel.factors() + c * panel_.weight_stride),
                                  reals(spare + c * n), n, 2, true, T{1}});
    }
    move_panel<T>(spare, {n, 1}, rows, {1, width}, lines, n, options_.before);
  } else {
    move_panel<T>(panel.from, {panel_.in_stride, line_.in_stride}, rows, {1, width}, lines, n,
                  options_.before);
    if (multiplies) multiply_runs(panel, rows, {false, n, lines, width}, spare);
  }
  std::fill(rows + n * width, rows + line_.extent * width, Complex<T>(0));
  return {rows, width};
}

// Where the rows of the panel are to be computed: in y, or else in scratch.
template <class T>
typename LinePass<T>::Rows LinePass<T>::rows_to_store(const Panel& panel, Complex<T>* rows) const {
  if (line_.taken == line_.extent && is_none(options_.after) &&
      has_near_rows(panel, panel_.out_stride, line_.out_stride)) {
    return {panel.to, line_.out_stride};
  }
  return {rows, lines_in_rows<T>(panel.lines)};
}

template <class T>
void LinePass<T>::store_rows(const Panel& panel, Complex<T>* rows, Complex<T>* spare) const {
  const index_t n = line_.taken, width = lines_in_rows<T>(panel.lines);
  if (options_.factors == LineFactors::conjugated && has_dense_lines()) {
    move_panel<T>(rows, {1, width}, spare, {n, 1}, panel.lines, n, options_.after);
    for (index_t c = 0; c < panel.lines; ++c) {
      multiply(ConjugateProduct<T>{reals(spare + c * n),
                                   reals(panel.factors() + c * panel_.weight_stride),
                                   reals(panel.to + c * panel_.out_stride), n, panel.adds});
    }
    return;
  }
  if (options_.factors == LineFactors::conjugated) {
    combine_runs(panel, rows, {false, n, panel.lines, width}, spare);
  }
  move_panel<T>(rows, {1, width}, panel.to, {panel_.out_stride, line_.out_stride}, panel.lines, n,
                options_.after);
}

template <class T>
void LinePass<T>::run_rows(const Panel& panel, Complex<T>* scratch) const {
  const index_t n = line_.extent, width = lines_in_rows<T>(panel.lines);
  Complex<T>* const rows = scratch + n * width;
  Complex<T>* const spare = scratch + (n + rows_->rows()) * lines_in_rows<T>(lines_);
  const Rows x = load_rows(panel, scratch, spare);
  const Rows y = rows_to_store(panel, rows);
  rows_->execute(x, y, rows, width);
  if (y.first == rows) store_rows(panel, rows, spare);
}

// Lines of the panel, dense in scratch.
template <class T>
void LinePass<T>::load_lines(const Panel& panel, Complex<T>* slots, Complex<T>* spare) const {
  move_panel<T>(panel.from, {panel_.in_stride, line_.in_stride}, slots, {distance_, 1}, panel.lines,
                line_.given, options_.before);
  if (options_.factors == LineFactors::before) {
    multiply_runs(panel, slots, {true, panel.lines, line_.given, distance_}, spare);
  }
  for (index_t c = 0; c < panel.lines && line_.given < line_.extent; ++c) {
    Complex<T>* const slot = slots + c * distance_;
    std::fill(slot + line_.given, slot + line_.extent, Complex<T>(0));
  }
}

template <class T>
void LinePass<T>::store_lines(const Panel& panel, Complex<T>* slots, Complex<T>* spare) const {
  if (options_.factors == LineFactors::conjugated) {
    combine_runs(panel, slots, {true, panel.lines, line_.taken, distance_}, spare);
  }
  move_panel<T>(slots, {distance_, 1}, panel.to, {panel_.out_stride, line_.out_stride}, panel.lines,
                line_.taken, options_.after);
}

// A panel whose elements are rows: there, weights, and back.
template <class T>
void LinePass<T>::weigh_rows(const Panel& panel, Complex<T>* scratch) const {
  const index_t n = line_.extent, width = lines_in_rows<T>(panel.lines);
  Complex<T>* const rows = scratch + n * width;
  rows_->execute(load_rows(panel, scratch, nullptr), {rows, width}, rows, width);
  for (index_t j = 0; j < n; ++j) {
    weights_->apply_across(panel.weights, j, panel.first, panel.lines, rows + j * width,
                           scratch + j * width);
  }
  const Rows y = rows_to_store(panel, rows);
  back_rows_->execute({scratch, width}, y, rows, width);
  if (y.first == rows) store_rows(panel, rows, nullptr);
}

// Prefetches the part of the next panel that is due with line c of this one: rows far apart take
// longer to arrive than squares of them take to transpose.
template <class T>
void LinePass<T>::ask_for_next(const Panel& panel, index_t c) const {
  const index_t n = line_.given;
  const index_t width = std::min(panel.lines, panel_.extent - panel.first - panel.lines);
  if (width == 0 || panel_.in_stride != 1) return;
  if (std::abs(line_.in_stride) * kItem<T> < kPage / 2) return;
  const Complex<T>* const from = panel.from + panel.lines;
  for (index_t j = c * n / panel.lines; j < (c + 1) * n / panel.lines; ++j) {
    ask_for_line(from + j * line_.in_stride, width);
  }
}

// There, weights, and back. A single line goes through the first line of scratch, where it is in
// the first level of cache all the while.
template <class T>
void LinePass<T>::weigh(const Panel& panel, Complex<T>* scratch) const {
  const index_t lines = panel.lines;
  Complex<T>* const slots = scratch + first_line_ * distance_;
  auto* const weights = reinterpret_cast<std::byte*>(slots + lines_ * distance_);
  weights_->load(panel.weights, panel.first, lines, weights);
  load_lines(panel, slots, nullptr);
  const bool at_once = plan_ && together_ > 1, alone = plan_ && together_ == 1;
  if (at_once) {
    fill_up(slots, lines);
    plan_->execute(slots, scratch);
  }
  for (index_t c = 0; c < lines; ++c) {
    Complex<T>* const slot = slots + c * distance_;
    ask_for_next(panel, c);
    if (alone) plan_->execute(slot, scratch);
    weights_->apply(weights, c, alone ? scratch : at_once ? scratch + c * distance_ : slot);
    if (alone) back_->execute(scratch, slot);
  }
  if (at_once) back_->execute(scratch, slots);
  store_lines(panel, slots, nullptr);
}

template <class T>
typename LinePass<T>::Panel LinePass<T>::panel(const Complex<T>* x, Complex<T>* y,
                                               const PassOperand& operand, index_t task) const {
  Panel panel{
      x, y,           static_cast<const std::byte*>(operand.elements), task % panels_ * lines_,
      0, operand.adds};
  const bool has_factors = options_.factors != LineFactors::none;
  const index_t item = weights_ ? weights_->item() : kItem<T>;
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
void LinePass<T>::run_panel(const Panel& panel, Complex<T>* scratch, bool is_in_place) const {
  const index_t lines = panel.lines;
  if (weights_) {
    rows_ ? weigh_rows(panel, scratch) : weigh(panel, scratch);
    return;
  }
  if (rows_) {
    run_rows(panel, scratch);
    return;
  }
  // Lines of more than a page load faster by a copy than in the access order of a transform.
  if (!is_in_place && line_.extent * kItem<T> <= kPage && is_plain()) {
    transform_rows(panel.from, panel.to, scratch, lines);
    return;
  }
  if (options_.factors != LineFactors::none && plan_ && together_ == 1 && has_dense_lines()) {
    run_line_by_line(panel, scratch);
    return;
  }
  Complex<T>* const spare = scratch + (first_line_ + lines_) * distance_;
  load_lines(panel, scratch + first_line_ * distance_, spare);
  if (transform_to(scratch, panel.to, lines)) return;
  transform(scratch, lines);
  for (index_t c = 0; c < lines && options_.twiddles != nullptr; ++c) {
    options_.twiddles->apply(panel.first + c, scratch + c * distance_, line_.extent);
  }
  store_lines(panel, scratch, spare);
}

template <class T>
std::size_t LinePass<T>::scratch_bytes() const {
  if (rows_) {
    return static_cast<std::size_t>(rows_in_scratch() * lines_in_rows<T>(lines_)) *
           sizeof(Complex<T>);
  }
  const std::size_t weights =
      weights_ ? static_cast<std::size_t>(lines_ + 1) * weights_->bytes_per_line() : 0;
  const index_t slots = first_line_ + panels_in_scratch() * lines_;
  return static_cast<std::size_t>(slots * distance_) * sizeof(Complex<T>) + weights;
}

template <class T>
std::size_t LinePass<T>::bytes() const {
  std::size_t total = scratch_ ? scratch_->bytes() : 0;
  for (const auto* phases : {&options_.before, &options_.after}) {
    total += phases->real.size() * sizeof(T) + phases->complex.size() * sizeof(Complex<T>);
  }
  return total;
}

template <class T>
void LinePass<T>::run(const Complex<T>* x, Complex<T>* y, const PassOperand& operand) const {
  const index_t grain = kParallelGrain / (lines_ * line_.extent) + 1;
  parallel_ranges(tasks_, grain, [&](index_t begin, index_t end) {
    const auto run_panels = [&](std::byte* memory) {
      for (index_t task = begin; task < end; ++task) {
        run_panel(panel(x, y, operand, task), reinterpret_cast<Complex<T>*>(memory), x == y);
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
