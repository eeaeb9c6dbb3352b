// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/kernels/fft/line_pass.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <type_traits>

#include "palimpsest/base/thread_scratch.hpp"
#include "palimpsest/kernels/fft/panel_exchange.hpp"
#include "palimpsest/kernels/pool/parallel.hpp"

namespace palimpsest {
namespace {

constexpr index_t kScratchBytes = 262144;
constexpr index_t kPanelBytes = 256;  // bytes of a panel row: four cache lines
constexpr index_t kLongPanelLines = 8;
constexpr index_t kShortLine = 64;  // shorter lines: one call of FFTW transforms a panel

constexpr index_t kPage = 4096, kLine = 64;
constexpr index_t kAhead = 16;  // prefetch distance in rows

template <class T>
using Complex = std::complex<T>;
template <class T>
constexpr index_t kItem = static_cast<index_t>(sizeof(Complex<T>));

template <class T>
Complex<T> times(Complex<T> a, Complex<T> b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}
template <class T>
Complex<T> times(Complex<T> a, T b) {
  return {a.real() * b, a.imag() * b};
}

// No phases.
struct None {
  None operator[](index_t) const { return {}; }
};
template <class T>
Complex<T> times(Complex<T> a, None) {
  return a;
}

// One side of a panel: element j of line c lies at c * line + j * step.
struct Layout {
  index_t line, step;
};

// Prefetches rows that lie a page or more apart, which hardware prefetchers do not detect. Into the
// second level: rows a power of two apart would evict each other from the first.
template <class T>
void ask_for(const Complex<T>* row, index_t direction, index_t lines) {
  if (direction < 0) row -= lines - 1;
  for (index_t b = 0; b < lines; b += kLine / kItem<T>) __builtin_prefetch(row + b, 0, 2);
}

// Prefetches a line while another one is transformed: the transform reads it out of order.
template <class T>
void ask_for_line(const Complex<T>* line, index_t n) {
  for (index_t b = 0; b < n; b += kLine / kItem<T>) __builtin_prefetch(line + b);
}

// Are the rows of elements of a side so far apart that they are prefetched?
template <class T>
bool is_far(const Layout& side) {
  return std::abs(side.line) == 1 && std::abs(side.step) * kItem<T> >= kPage / 2;
}

// Computes to[c, j] = from[c, j] * phases[j], in the order that suits a side whose lines are not
// dense.
template <class T, class Phases>
void move_panel(const Complex<T>* from, Layout in, Complex<T>* to, Layout out, index_t lines,
                index_t n, Phases phases) {
  const auto is_wild = [](const Layout& side) { return std::abs(side.step) > std::abs(side.line); };
  if ((is_wild(in) || is_wild(out)) && lines > 1) {
    const bool far_in = is_far<T>(in), far_out = is_far<T>(out);
    for (index_t j = 0; j < n; ++j) {
      const Complex<T>* const x = from + j * in.step;
      Complex<T>* const y = to + j * out.step;
      if (far_in && j + kAhead < n) ask_for(x + kAhead * in.step, in.line, lines);
      if (far_out && j + kAhead < n) ask_for(y + kAhead * out.step, out.line, lines);
      const auto phase = phases[j];
      if (in.line == 1 && out.line == 1) {
        for (index_t c = 0; c < lines; ++c) y[c] = times(x[c], phase);
      } else {
        for (index_t c = 0; c < lines; ++c) y[c * out.line] = times(x[c * in.line], phase);
      }
    }
    return;
  }
  for (index_t c = 0; c < lines; ++c) {
    const Complex<T>* x = from + c * in.line;
    Complex<T>* y = to + c * out.line;
    if (std::is_same_v<Phases, None> && in.step == 1 && out.step == 1) {
      std::memmove(y, x, static_cast<std::size_t>(n) * sizeof(Complex<T>));
    } else if (in.step == 1 && out.step == 1) {
      for (index_t j = 0; j < n; ++j) y[j] = times(x[j], phases[j]);
    } else {
      for (index_t j = 0; j < n; ++j) y[j * out.step] = times(x[j * in.step], phases[j]);
    }
  }
}

// Exchanges lines that lie side by side in the array by vector code; false: not available for these
// lines.
bool exchange_panel(const Complex<float>* from, Layout in, Complex<float>* to, Layout out,
                    index_t lines, index_t n, const LinePhases<float>& phases) {
  const bool gathers = in.line == 1 && out.step == 1, scatters = in.step == 1 && out.line == 1;
  if (lines == 1 || gathers == scatters) return false;
  const PanelExchanges exchanges = panel_exchanges();
  if (exchanges.gather == nullptr) return false;
  const PanelExchange panel{from,
                            to,
                            gathers ? in.step : in.line,
                            gathers ? out.line : out.step,
                            lines,
                            n,
                            phases.real.empty() ? nullptr : phases.real.data(),
                            phases.complex.empty() ? nullptr : phases.complex.data()};
  (gathers ? exchanges.gather : exchanges.scatter)(panel);
  return true;
}
bool exchange_panel(const Complex<double>*, Layout, Complex<double>*, Layout, index_t, index_t,
                    const LinePhases<double>&) {
  return false;
}

template <class T>
void move_panel(const Complex<T>* from, Layout in, Complex<T>* to, Layout out, index_t lines,
                index_t n, const LinePhases<T>& phases) {
  if (exchange_panel(from, in, to, out, lines, n, phases)) return;
  if (!phases.real.empty()) {
    move_panel<T>(from, in, to, out, lines, n, phases.real.data());
  } else if (!phases.complex.empty()) {
    move_panel<T>(from, in, to, out, lines, n, phases.complex.data());
  } else {
    move_panel<T>(from, in, to, out, lines, n, None{});
  }
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
    const index_t fitting = kScratchBytes / (rows_->rows() * kItem<T>);
    const index_t most = std::clamp(fitting / RowTransform<T>::kLines * RowTransform<T>::kLines,
                                    RowTransform<T>::kLines, kPanelBytes / kItem<T>);
    lines_ = std::min(panel_.extent, most);
    return;
  }
  distance_ = scratch_distance<T>(line_.extent);
  const bool at_once = line_.extent < kShortLine;
  const auto weight_bytes = weights_ ? static_cast<index_t>(weights_->bytes_per_line()) : 0;
  const index_t fitting = kScratchBytes / (distance_ * kItem<T> + weight_bytes) - 1;
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
         is_none(options_.after) && options_.twiddles == nullptr;
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

// Rows of scratch are elements of the panel.
template <class T>
void LinePass<T>::load_rows(const Panel& panel, Complex<T>* rows) const {
  const index_t n = line_.given, lines = panel.lines, width = lines_in_rows<T>(lines);
  for (index_t j = 0; j < n && lines < width; ++j) {
    std::fill(rows + j * width + lines, rows + (j + 1) * width, Complex<T>(0));
  }
  move_panel<T>(panel.from, {panel_.in_stride, line_.in_stride}, rows, {1, width}, lines, n,
                options_.before);
  std::fill(rows + n * width, rows + line_.extent * width, Complex<T>(0));
}

template <class T>
void LinePass<T>::store_rows(const Panel& panel, const Complex<T>* rows) const {
  move_panel<T>(rows, {1, lines_in_rows<T>(panel.lines)}, panel.to,
                {panel_.out_stride, line_.out_stride}, panel.lines, line_.taken, options_.after);
}

// Lines of the panel, dense in scratch.
template <class T>
void LinePass<T>::load_lines(const Panel& panel, Complex<T>* slots) const {
  move_panel<T>(panel.from, {panel_.in_stride, line_.in_stride}, slots, {distance_, 1}, panel.lines,
                line_.given, options_.before);
  for (index_t c = 0; c < panel.lines && line_.given < line_.extent; ++c) {
    Complex<T>* const slot = slots + c * distance_;
    std::fill(slot + line_.given, slot + line_.extent, Complex<T>(0));
  }
}

template <class T>
void LinePass<T>::store_lines(const Panel& panel, const Complex<T>* slots) const {
  move_panel<T>(slots, {distance_, 1}, panel.to, {panel_.out_stride, line_.out_stride}, panel.lines,
                line_.taken, options_.after);
}

// A panel whose elements are rows of scratch: there, weights, and back.
template <class T>
void LinePass<T>::weigh_rows(const Panel& panel, Complex<T>* scratch) const {
  const index_t n = line_.extent, width = lines_in_rows<T>(panel.lines);
  Complex<T>* const results = scratch + n * width;
  load_rows(panel, scratch);
  rows_->execute(scratch, width);
  for (index_t j = 0; j < n; ++j) {
    weights_->apply_across(panel.weights, j, panel.first, panel.lines, results + j * width,
                           scratch + j * width);
  }
  back_rows_->execute(scratch, width);
  store_rows(panel, results);
}

// There, weights, and back. A single line goes through the first line of scratch, where it is in
// the first level of cache all the while.
template <class T>
void LinePass<T>::weigh(const Panel& panel, Complex<T>* scratch) const {
  const index_t lines = panel.lines;
  Complex<T>* const slots = scratch + first_line_ * distance_;
  auto* const weights = reinterpret_cast<std::byte*>(slots + lines_ * distance_);
  weights_->load(panel.weights, panel.first, lines, weights);
  load_lines(panel, slots);
  const bool at_once = plan_ && together_ > 1, alone = plan_ && together_ == 1;
  if (at_once) {
    fill_up(slots, lines);
    plan_->execute(slots, scratch);
  }
  for (index_t c = 0; c < lines; ++c) {
    Complex<T>* const slot = slots + c * distance_;
    if (alone) plan_->execute(slot, scratch);
    weights_->apply(weights, c, alone ? scratch : at_once ? scratch + c * distance_ : slot);
    if (alone) back_->execute(scratch, slot);
  }
  if (at_once) back_->execute(scratch, slots);
  store_lines(panel, slots);
}

template <class T>
typename LinePass<T>::Panel LinePass<T>::panel(const Complex<T>* x, Complex<T>* y,
                                               const void* weights, index_t task) const {
  Panel panel{x, y, static_cast<const std::byte*>(weights), task % panels_ * lines_, 0};
  panel.lines = std::min(lines_, panel_.extent - panel.first);
  panel.from += panel.first * panel_.in_stride;
  panel.to += panel.first * panel_.out_stride;
  index_t rest = task / panels_;
  for (std::size_t i = outer_.size(); i-- > 0;) {
    const PassAxis& axis = outer_[i];
    const index_t position = rest % axis.extent;
    rest /= axis.extent;
    panel.from += position * axis.in_stride;
    panel.to += position * axis.out_stride;
    if (weights_) panel.weights += axis.weights().at(position) * weights_->item();
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
    load_rows(panel, scratch);
    const index_t width = lines_in_rows<T>(lines);
    rows_->execute(scratch, width);
    store_rows(panel, scratch + line_.extent * width);
    return;
  }
  // Lines of more than a page load faster by a copy than in the access order of a transform.
  if (!is_in_place && line_.extent * kItem<T> <= kPage && is_plain()) {
    transform_rows(panel.from, panel.to, scratch, lines);
    return;
  }
  load_lines(panel, scratch + first_line_ * distance_);
  if (transform_to(scratch, panel.to, lines)) return;
  transform(scratch, lines);
  for (index_t c = 0; c < lines && options_.twiddles != nullptr; ++c) {
    options_.twiddles->apply(panel.first + c, scratch + c * distance_, line_.extent);
  }
  store_lines(panel, scratch);
}

template <class T>
std::size_t LinePass<T>::scratch_bytes() const {
  if (rows_) {
    return static_cast<std::size_t>(rows_->rows() * lines_in_rows<T>(lines_)) * sizeof(Complex<T>);
  }
  const std::size_t weights =
      weights_ ? static_cast<std::size_t>(lines_ + 1) * weights_->bytes_per_line() : 0;
  return static_cast<std::size_t>((first_line_ + lines_) * distance_) * sizeof(Complex<T>) +
         weights;
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
void LinePass<T>::run(const Complex<T>* x, Complex<T>* y, const void* weights) const {
  const index_t grain = kParallelGrain / (lines_ * line_.extent) + 1;
  parallel_ranges(tasks_, grain, [&](index_t begin, index_t end) {
    const auto run_panels = [&](std::byte* memory) {
      for (index_t task = begin; task < end; ++task) {
        run_panel(panel(x, y, weights, task), reinterpret_cast<Complex<T>*>(memory), x == y);
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
