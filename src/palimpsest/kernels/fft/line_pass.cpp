// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/kernels/fft/line_pass.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>

#include "palimpsest/base/thread_scratch.hpp"
#include "palimpsest/copy/stream_store.hpp"
#include "palimpsest/kernels/pool/parallel.hpp"

namespace palimpsest {
namespace {

// Bytes of a thread's scratch, and of a row of a panel: four cache lines.
constexpr index_t kPassScratchBytes = 262144, kPanelRowBytes = 256;
// Bytes of a panel in scratch: of rows, in the second level of cache; of lines with weights or
// factors, in the first.
constexpr index_t kRowsBytes = 65536, kLinesBytes = 16384;
constexpr index_t kLeastRowBytes = 64;  // shorter rows fill too little of a vector
constexpr index_t kLongRows = 131072;   // longer lines are not transformed side by side
constexpr index_t kAligned = 64;

struct PanelMemory {
  alignas(64) std::array<std::byte, kPassScratchBytes> bytes;
};

constexpr index_t kAhead = 16;  // prefetch distance in rows of weights

// Prefetches a line of the next panel into the second level of cache while this one is computed.
template <class T>
void ask_for(const std::complex<T>* line, index_t n) {
  constexpr index_t kInLine = kAligned / index_t{sizeof(std::complex<T>)};
  for (index_t i = 0; i < n; i += kInLine) __builtin_prefetch(line + i, 0, 2);
}

index_t reach(const PassAxis& axis) { return std::abs(axis.in_stride) + std::abs(axis.out_stride); }

}  // namespace

KeptScratch::KeptScratch(std::size_t bytes) : bytes_(bytes) {
  spare_.push_back(std::make_unique<AlignedMemory>(bytes));
}

std::unique_ptr<AlignedMemory> KeptScratch::take() {
  {
    const std::lock_guard lock(mutex_);
    if (!spare_.empty()) {
      auto memory = std::move(spare_.back());
      spare_.pop_back();
      return memory;
    }
  }
  return std::make_unique<AlignedMemory>(bytes_);
}

void KeptScratch::give_back(std::unique_ptr<AlignedMemory> memory) {
  const std::lock_guard lock(mutex_);
  spare_.push_back(std::move(memory));
}

template <class T>
LinePass<T>::LinePass(const PassAxis& line, std::vector<PassAxis> others, Options options)
    : line_(line), options_(std::move(options)), outer_(std::move(others)) {
  order_axes();
  if (options_.weights) {
    weights_.emplace(line_.weights(), panel_.weights(), options_.weights->is_complex,
                     options_.weights->scale);
  }
  if (options_.transforms) transform_ = LineTransform<T>::find_or_make(line_.extent);
  if (transform_ && transform_->takes_factors()) take_factors();
  choose_layout();
}
template <class T>
LinePass<T>::~LinePass() = default;

// Real phases are signs and a scale: they repeat after two elements.
template <class T>
void LinePass<T>::take_factors() {
  const auto take = [](std::vector<T>& real) {
    const std::array<T, 2> factors =
        real.empty() ? std::array<T, 2>{1, 1} : std::array<T, 2>{real[0], real[1 % real.size()]};
    real = {};
    return factors;
  };
  before_ = take(options_.before.real);
  after_ = take(options_.after.real);
}

// Rows, if lines lie side by side on both sides; those of very short lines always. Else dense
// lines.
template <class T>
void LinePass<T>::choose_layout() {
  constexpr auto kItem = index_t{sizeof(std::complex<T>)};
  constexpr index_t kRow = kPanelRowBytes / kItem, kShortest = 4;
  const index_t n = line_.extent;
  const bool are_rows = panel_.in_stride == 1 && panel_.out_stride == 1 && line_.in_stride != 1 &&
                        line_.out_stride != 1 && panel_.extent * kItem >= kLeastRowBytes;
  is_rows_ = n < kShortest || (are_rows && n <= kLongRows);
  const index_t together = transform_ ? transform_->lines_together(layout()) : 1;
  const index_t least = std::min(is_rows_ ? kRow / 2 : together, kRow);
  const bool multiplies = weights_ || options_.factors != LineFactors::none;
  const std::size_t inner = transform_ ? transform_->scratch_bytes(layout(), least) : 0;
  const index_t most = std::max<index_t>(kPassScratchBytes - static_cast<index_t>(inner), 0);
  const index_t room = is_rows_ ? kRowsBytes : multiplies ? kLinesBytes : most;
  const index_t line_numbers = is_rows_ ? n : scratch_distance<T>(n);
  const index_t fitting = room / (line_numbers * kItem) / least * least;
  const index_t lines = std::min(panel_.extent, std::clamp(fitting, least, kRow));
  width_ = is_rows_ ? lines : line_numbers;
  if (weights_ || loads() || stores()) numbers_ = is_rows_ ? n * width_ : lines * width_;
  if (weights_ && !is_rows_) {
    const index_t bytes = n * weights_->item();
    weight_numbers_ = (bytes + kAligned - 1) / kAligned * (kAligned / kItem);
  }
  cut_into_panels(lines);
}

template <class T>
void LinePass<T>::cut_into_panels(index_t lines) {
  lines_ = lines;
  panels_ = (panel_.extent + lines_ - 1) / lines_;
  tasks_ = panels_;
  for (const PassAxis& axis : outer_) tasks_ *= axis.extent;
  constexpr index_t kInLine = kAligned / index_t{sizeof(std::complex<T>)};
  numbers_ = (numbers_ + kInLine - 1) / kInLine * kInLine;
  auto bytes = static_cast<std::size_t>(panels_in_scratch() * numbers_ + weight_numbers_) *
               sizeof(std::complex<T>);
  if (transform_) bytes += transform_->scratch_bytes(layout(), lines_);
  const bool is_shared = transform_ && transform_->is_shared();
  if (is_shared || bytes > kPassScratchBytes) scratch_ = std::make_unique<KeptScratch>(bytes);
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
      multiply(WeightedNumbers<T>{z, factors, z, runs.length, true, T{1}});
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

// Does the panel go to scratch before the first transform, and from there to the array behind the
// last one?
template <class T>
bool LinePass<T>::loads() const {
  const bool is_free =
      transform_ && options_.before.complex.empty() && options_.before.real.empty();
  return !is_free || !fits({panel_.in_stride, line_.in_stride}) ||
         (!is_rows_ && line_.given < line_.extent) || options_.factors == LineFactors::before;
}
template <class T>
bool LinePass<T>::stores() const {
  const bool is_free = transform_ && options_.after.complex.empty() && options_.after.real.empty();
  return !is_free || !fits({panel_.out_stride, line_.out_stride}) ||
         (!is_rows_ && line_.taken < line_.extent) || options_.factors == LineFactors::conjugated;
}

template <class T>
typename LinePass<T>::Runs LinePass<T>::runs(index_t lines) const {
  return is_rows_ ? Runs{false, line_.extent, lines, width_}
                  : Runs{true, lines, line_.extent, width_};
}

template <class T>
void LinePass<T>::transform(const Place& from, const Place& to, index_t lines, bool forward,
                            std::byte* scratch) const {
  if (!transform_) return;
  transform_->execute(
      {from.first, to.first, from.side.line, from.side.step, to.side.line, to.side.step, lines,
       from.extent, to.extent, forward, from.factors, to.factors, nullptr, 0, 0, to.streams},
      scratch);
}

// Loads the panel with its factors, beside zeros where the array is shorter.
template <class T>
void LinePass<T>::load(const Panel& panel, std::complex<T>* numbers, std::complex<T>* spare) const {
  const index_t given = line_.given;
  Runs all = runs(panel.lines);
  (is_rows_ ? all.count : all.length) = given;
  const bool multiplies = options_.factors == LineFactors::before;
  if (multiplies && !is_rows_ && has_dense_lines()) {
    for (index_t c = 0; c < panel.lines; ++c) {
      const std::complex<T>* const from = panel.from + c * panel_.in_stride;
      const std::complex<T>* const factors = panel.factors() + c * panel_.weight_stride;
      ask_for(factors + panel.lines * panel_.weight_stride, given);
      multiply(WeightedNumbers<T>{reals(from), reals(factors), reals(numbers + c * width_), given,
                                  true, T{1}});
    }
  } else {
    move_panel<T>(panel.from, {panel_.in_stride, line_.in_stride}, numbers, all.side(), panel.lines,
                  given, options_.before);
    if (multiplies) multiply_runs(panel, numbers, all, spare);
  }
  if (is_rows_) {
    std::fill(numbers + given * width_, numbers + line_.extent * width_, std::complex<T>(0));
  }
  for (index_t c = 0; c < panel.lines && !is_rows_; ++c) {
    std::fill(numbers + c * width_ + given, numbers + c * width_ + line_.extent,
              std::complex<T>(0));
  }
}

template <class T>
void LinePass<T>::store(const Panel& panel, std::complex<T>* numbers,
                        std::complex<T>* spare) const {
  const index_t taken = line_.taken;
  Runs all = runs(panel.lines);
  (is_rows_ ? all.count : all.length) = taken;
  if (options_.factors == LineFactors::conjugated && !is_rows_ && has_dense_lines()) {
    for (index_t c = 0; c < panel.lines; ++c) {
      const std::complex<T>* const factors = panel.factors() + c * panel_.weight_stride;
      std::complex<T>* const to = panel.to + c * panel_.out_stride;
      ask_for(factors + panel.lines * panel_.weight_stride, taken);
      if (panel.adds) ask_for(to + panel.lines * panel_.out_stride, taken);
      multiply(ConjugateProduct<T>{reals(numbers + c * width_), reals(factors), reals(to), taken,
                                   panel.adds});
    }
    return;
  }
  if (options_.factors == LineFactors::conjugated) combine_runs(panel, numbers, all, spare);
  move_panel<T>(numbers, all.side(), panel.to, {panel_.out_stride, line_.out_stride}, panel.lines,
                taken, options_.after);
}

template <class T>
void LinePass<T>::weigh(const Panel& panel, std::complex<T>* numbers, std::byte* weights) const {
  if (is_rows_) {
    for (index_t j = 0; j < line_.extent; ++j) {
      std::complex<T>* const row = numbers + j * width_;
      weights_->ask_across(panel.weights, j + kAhead, panel.first, panel.lines);
      weights_->apply_across(panel.weights, j, panel.first, panel.lines, row, row);
    }
    return;
  }
  for (index_t c = 0; c < panel.lines; ++c) {
    weights_->apply(panel.weights, panel.first + c, weights, numbers + c * width_);
  }
}

template <class T>
void LinePass<T>::run_panel(const Panel& panel, std::complex<T>* scratch) const {
  std::complex<T>* const spare = scratch + numbers_;
  auto* const weights = reinterpret_cast<std::byte*>(spare);
  auto* const rows =
      reinterpret_cast<std::byte*>(scratch + panels_in_scratch() * numbers_ + weight_numbers_);
  const Place slots{scratch, runs(panel.lines).side(), line_.extent};
  Place from{
      const_cast<std::complex<T>*>(panel.from), {panel_.in_stride, line_.in_stride}, line_.given};
  if (loads()) {
    load(panel, scratch, spare);
    from = slots;
  }
  Place to{panel.to, {panel_.out_stride, line_.out_stride}, line_.taken};
  to.streams = options_.streams;
  if (stores()) to = slots;
  from.factors = before_;
  to.factors = after_;
  if (weights_) {
    transform(from, slots, panel.lines, options_.forward, rows);
    weigh(panel, scratch, weights);
    transform(slots, to, panel.lines, !options_.forward, rows);
  } else {
    transform(from, to, panel.lines, options_.forward, rows);
  }
  if (stores()) store(panel, scratch, spare);
}

template <class T>
std::size_t LinePass<T>::bytes(int threads) const {
  std::size_t total = scratch_ ? scratch_->bytes() * static_cast<std::size_t>(threads) : 0;
  if (transform_) total += transform_->bytes();
  for (const auto* phases : {&options_.before, &options_.after}) {
    total += phases->real.size() * sizeof(T) + phases->complex.size() * sizeof(std::complex<T>);
  }
  return total;
}

// Long lines are transformed one panel after the other, and threads share each, unless there is a
// panel for each thread.
template <class T>
void LinePass<T>::run(const std::complex<T>* x, std::complex<T>* y,
                      const PassOperand& operand) const {
  const auto run_panels = [&](index_t begin, index_t end, std::byte* memory) {
    for (index_t task = begin; task < end; ++task) {
      run_panel(panel(x, y, operand, task), reinterpret_cast<std::complex<T>*>(memory));
    }
    if (options_.streams) finish_streams();
  };
  const bool is_shared = transform_ && transform_->is_shared();
  if (is_shared && tasks_ < pool_threads()) {
    scratch_->use([&](std::byte* memory) { run_panels(0, tasks_, memory); });
    return;
  }
  const index_t grain = kParallelGrain / (lines_ * line_.extent) + 1;
  parallel_ranges(tasks_, grain, [&](index_t begin, index_t end) {
    if (scratch_) {
      const auto run_all = [&](std::byte* memory) { run_panels(begin, end, memory); };
      const auto alone = [&] { scratch_->use(run_all); };
      is_shared ? run_with_threads(1, alone) : alone();
      return;
    }
    const Scratched<PanelMemory> memory;
    run_panels(begin, end, memory->bytes.data());
  });
}

template class LinePass<float>;
template class LinePass<double>;

}  // namespace palimpsest
