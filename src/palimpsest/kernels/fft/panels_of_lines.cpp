// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "palimpsest/kernels/fft/panel_forms.hpp"

namespace palimpsest {
namespace {

constexpr index_t kLongPanelLines = 8;
constexpr index_t kShortLine = 64;  // shorter lines: one call of FFTW transforms a panel

// Prefetches a line while another one is transformed: the transform reads it out of order.
template <class T>
void ask_for_line(const std::complex<T>* line, index_t n) {
  constexpr index_t kLine = 64 / index_t{sizeof(std::complex<T>)};
  for (index_t b = 0; b < n; b += kLine) __builtin_prefetch(line + b);
}

}  // namespace

template <class T>
PanelsOfLines<T>::PanelsOfLines(const PassAxis& line, std::vector<PassAxis> others, Options options)
    : LinePass<T>(line, std::move(others), std::move(options)),
      distance_(scratch_distance<T>(line.extent)) {
  constexpr auto kItem = index_t{sizeof(std::complex<T>)};
  const index_t panels = this->panels_in_scratch();
  const std::size_t weight_bytes = weights_ ? weights_->bytes_per_line() : 0;
  const index_t bytes = panels * distance_ * kItem + static_cast<index_t>(weight_bytes);
  const index_t fitting = kPassScratchBytes / bytes - 1;
  const index_t lines = std::min(
      panel_.extent, fitting >= 1 ? std::min(fitting, kPanelRowBytes / kItem) : kLongPanelLines);
  together_ = line_.extent < kShortLine ? lines : 1;
  if (options_.transforms) choose_plans();
  this->cut_into_panels(lines, (first_line_ + panels * lines) * distance_,
                        static_cast<std::size_t>(lines + 1) * weight_bytes);
}

template <class T>
void PanelsOfLines<T>::choose_plans() {
  first_line_ = together_;
  const auto plan = [&](bool forward) {
    return LinePlan<T>::find_or_make(line_.extent, together_, distance_, forward, options_.effort);
  };
  plan_ = plan(options_.forward);
  if (weights_) back_ = plan(!options_.forward);
}

// Lines that a plan transforms in vain.
template <class T>
void PanelsOfLines<T>::fill_up(std::complex<T>* slots, index_t lines) const {
  std::fill(slots + lines * distance_, slots + together_ * distance_, std::complex<T>(0));
}

// Single lines use one additional line of scratch: each line moves down by one place, from the
// first to the last.
template <class T>
void PanelsOfLines<T>::transform(std::complex<T>* scratch, index_t lines) const {
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
bool PanelsOfLines<T>::transform_to(const std::complex<T>* scratch, std::complex<T>* to,
                                    index_t lines) const {
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
bool PanelsOfLines<T>::is_plain() const {
  return plan_ && together_ == 1 && line_.in_stride == 1 && line_.out_stride == 1 &&
         line_.given == line_.extent && line_.taken == line_.extent && is_none(options_.before) &&
         is_none(options_.after) && options_.twiddles == nullptr &&
         options_.factors == LineFactors::none;
}

// Transforms lines from one array to the other; through scratch where they are not aligned.
template <class T>
void PanelsOfLines<T>::transform_rows(const std::complex<T>* from, std::complex<T>* to,
                                      std::complex<T>* scratch, index_t lines) const {
  const auto bytes = static_cast<std::size_t>(line_.extent) * sizeof(std::complex<T>);
  std::complex<T>* const spare = scratch + distance_;
  const bool from_fits = plan_->fits(from) && plan_->fits(from + panel_.in_stride);
  const bool to_fits = plan_->fits(to) && plan_->fits(to + panel_.out_stride);
  for (index_t c = 0; c < lines; ++c, from += panel_.in_stride, to += panel_.out_stride) {
    if (c + 1 < lines) ask_for_line(from + panel_.in_stride, line_.extent);
    const std::complex<T>* source = from;
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

// Such lines stay in the first level of cache from the product to the result. The next one is
// prefetched: lines of a page each stop the hardware's prefetchers.
template <class T>
void PanelsOfLines<T>::run_line_by_line(const Panel& panel, std::complex<T>* slot) const {
  const index_t given = line_.given, taken = line_.taken;
  std::complex<T>* const result = slot + distance_;
  const bool multiplies = options_.factors == LineFactors::before;
  for (index_t c = 0; c < panel.lines; ++c) {
    const std::complex<T>* const from = panel.from + c * panel_.in_stride;
    const std::complex<T>* const factors = panel.factors() + c * panel_.weight_stride;
    std::complex<T>* const to = panel.to + c * panel_.out_stride;
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
    std::fill(slot + given, slot + line_.extent, std::complex<T>(0));
    const bool is_direct = multiplies && taken == line_.extent && plan_->fits(to);
    plan_->execute(slot, is_direct ? to : result);
    if (!multiplies) {
      multiply(ConjugateProduct<T>{reals(result), reals(factors), reals(to), taken, panel.adds});
    } else if (!is_direct) {
      std::copy_n(result, taken, to);
    }
  }
}

// Lines of the panel, dense in scratch.
template <class T>
void PanelsOfLines<T>::load_lines(const Panel& panel, std::complex<T>* slots,
                                  std::complex<T>* spare) const {
  move_panel<T>(panel.from, {panel_.in_stride, line_.in_stride}, slots, {distance_, 1}, panel.lines,
                line_.given, options_.before);
  if (options_.factors == LineFactors::before) {
    this->multiply_runs(panel, slots, {true, panel.lines, line_.given, distance_}, spare);
  }
  for (index_t c = 0; c < panel.lines && line_.given < line_.extent; ++c) {
    std::complex<T>* const slot = slots + c * distance_;
    std::fill(slot + line_.given, slot + line_.extent, std::complex<T>(0));
  }
}

template <class T>
void PanelsOfLines<T>::store_lines(const Panel& panel, std::complex<T>* slots,
                                   std::complex<T>* spare) const {
  if (options_.factors == LineFactors::conjugated) {
    this->combine_runs(panel, slots, {true, panel.lines, line_.taken, distance_}, spare);
  }
  move_panel<T>(slots, {distance_, 1}, panel.to, {panel_.out_stride, line_.out_stride}, panel.lines,
                line_.taken, options_.after);
}

// Prefetches the part of the next panel that is due with line c of this one: rows far apart take
// longer to arrive than squares of them take to transpose.
template <class T>
void PanelsOfLines<T>::ask_for_next(const Panel& panel, index_t c) const {
  const index_t n = line_.given;
  const index_t width = std::min(panel.lines, panel_.extent - panel.first - panel.lines);
  if (width == 0 || panel_.in_stride != 1) return;
  if (std::abs(line_.in_stride) * index_t{sizeof(std::complex<T>)} < kPassPage / 2) return;
  const std::complex<T>* const from = panel.from + panel.lines;
  for (index_t j = c * n / panel.lines; j < (c + 1) * n / panel.lines; ++j) {
    ask_for_line(from + j * line_.in_stride, width);
  }
}

// Transform, weights and transform back. A single line goes through the first line of scratch,
// where it is in the first level of cache all the while.
template <class T>
void PanelsOfLines<T>::weigh(const Panel& panel, std::complex<T>* scratch) const {
  const index_t lines = panel.lines;
  std::complex<T>* const slots = scratch + first_line_ * distance_;
  auto* const weights = reinterpret_cast<std::byte*>(slots + lines_ * distance_);
  weights_->load(panel.weights, panel.first, lines, weights);
  load_lines(panel, slots, nullptr);
  const bool at_once = plan_ && together_ > 1, alone = plan_ && together_ == 1;
  if (at_once) {
    fill_up(slots, lines);
    plan_->execute(slots, scratch);
  }
  for (index_t c = 0; c < lines; ++c) {
    std::complex<T>* const slot = slots + c * distance_;
    ask_for_next(panel, c);
    if (alone) plan_->execute(slot, scratch);
    weights_->apply(weights, c, alone ? scratch : at_once ? scratch + c * distance_ : slot);
    if (alone) back_->execute(scratch, slot);
  }
  if (at_once) back_->execute(scratch, slots);
  store_lines(panel, slots, nullptr);
}

template <class T>
void PanelsOfLines<T>::run_panel(const Panel& panel, std::complex<T>* scratch,
                                 bool is_in_place) const {
  const index_t lines = panel.lines;
  if (weights_) return weigh(panel, scratch);
  // Lines of more than a page load faster by a copy than in the access order of a transform.
  if (!is_in_place && line_.extent * index_t{sizeof(std::complex<T>)} <= kPassPage && is_plain()) {
    transform_rows(panel.from, panel.to, scratch, lines);
    return;
  }
  if (options_.factors != LineFactors::none && plan_ && together_ == 1 && this->has_dense_lines()) {
    run_line_by_line(panel, scratch);
    return;
  }
  std::complex<T>* const spare = scratch + (first_line_ + lines_) * distance_;
  load_lines(panel, scratch + first_line_ * distance_, spare);
  if (transform_to(scratch, panel.to, lines)) return;
  transform(scratch, lines);
  for (index_t c = 0; c < lines && options_.twiddles != nullptr; ++c) {
    options_.twiddles->apply(panel.first + c, scratch + c * distance_, line_.extent);
  }
  store_lines(panel, scratch, spare);
}

template class PanelsOfLines<float>;
template class PanelsOfLines<double>;

}  // namespace palimpsest
