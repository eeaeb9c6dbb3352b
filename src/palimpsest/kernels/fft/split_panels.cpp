// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "palimpsest/kernels/fft/panel_forms.hpp"

namespace palimpsest {
namespace {

// Bytes of a panel in scratch: of rows, in the second level of cache; of lines with weights or
// factors, in the first.
constexpr index_t kRowsBytes = 65536, kLinesBytes = 16384;
constexpr index_t kLeastRowBytes = 64;  // shorter rows fill too little of a vector
constexpr index_t kLinesTogether = 4;   // dense lines that a vector holds
constexpr index_t kAligned = 64;

}  // namespace

template <class T>
SplitPanels<T>::SplitPanels(const PassAxis& line, std::vector<PassAxis> others, Options options)
    : LinePass<T>(line, std::move(others), std::move(options)),
      transform_(SplitTransform<T>::find_or_make(line.extent)) {
  constexpr auto kItem = index_t{sizeof(std::complex<T>)};
  constexpr index_t kRow = kPanelRowBytes / kItem;
  const index_t n = line_.extent;
  is_rows_ = panel_.in_stride == 1 && panel_.out_stride == 1 && line_.in_stride != 1 &&
             line_.out_stride != 1 && panel_.extent * kItem >= kLeastRowBytes;
  const index_t least = is_rows_ ? kRow / 2 : kLinesTogether;
  const bool multiplies = weights_ || options_.factors != LineFactors::none;
  const index_t most = kPassScratchBytes - static_cast<index_t>(transform_->scratch_bytes(false));
  const index_t room = is_rows_ ? kRowsBytes : multiplies ? kLinesBytes : most;
  const index_t line_numbers = is_rows_ ? n : scratch_distance<T>(n);
  const index_t fitting = room / (line_numbers * kItem) / least * least;
  const index_t lines = std::min(panel_.extent, std::clamp(fitting, least, kRow));
  width_ = is_rows_ ? lines : line_numbers;
  if (weights_ || loads() || stores()) numbers_ = is_rows_ ? n * width_ : lines * width_;
  if (weights_ && !is_rows_) {
    const auto bytes = (lines + 1) * static_cast<index_t>(weights_->bytes_per_line());
    weight_numbers_ = (bytes + kAligned - 1) / kAligned * (kAligned / kItem);
  }
  this->cut_into_panels(lines, this->panels_in_scratch() * numbers_ + weight_numbers_,
                        transform_->scratch_bytes(is_rows_));
}

template <class T>
std::size_t SplitPanels<T>::bytes() const {
  return LinePass<T>::bytes() + transform_->bytes();
}

// Does the panel go to scratch before the first transform, and from there to the array behind the
// last one?
template <class T>
bool SplitPanels<T>::loads() const {
  return !fits({panel_.in_stride, line_.in_stride}) || (!is_rows_ && line_.given < line_.extent) ||
         options_.factors == LineFactors::before;
}
template <class T>
bool SplitPanels<T>::stores() const {
  return !fits({panel_.out_stride, line_.out_stride}) ||
         (!is_rows_ && line_.taken < line_.extent) || options_.factors == LineFactors::conjugated;
}

template <class T>
typename SplitPanels<T>::Runs SplitPanels<T>::runs(index_t lines) const {
  return is_rows_ ? Runs{false, line_.extent, lines, width_}
                  : Runs{true, lines, line_.extent, width_};
}

template <class T>
void SplitPanels<T>::transform(const Place& from, const Place& to, index_t lines, bool forward,
                               std::byte* scratch) const {
  transform_->execute(
      {from.first, to.first, from.side.line, from.side.step, to.side.line, to.side.step, lines,
       from.extent, to.extent, forward, from.factors, to.factors},
      scratch);
}

// Loads the panel with its factors, beside zeros where the array is shorter.
template <class T>
void SplitPanels<T>::load(const Panel& panel, std::complex<T>* numbers,
                          std::complex<T>* spare) const {
  const index_t given = line_.given;
  Runs all = runs(panel.lines);
  (is_rows_ ? all.count : all.length) = given;
  const bool multiplies = options_.factors == LineFactors::before;
  if (multiplies && !is_rows_ && this->has_dense_lines()) {
    for (index_t c = 0; c < panel.lines; ++c) {
      const std::complex<T>* const from = panel.from + c * panel_.in_stride;
      const std::complex<T>* const factors = panel.factors() + c * panel_.weight_stride;
      multiply(WeightedNumbers<T>{reals(from), reals(factors), reals(numbers + c * width_), given,
                                  2, true, T{1}});
    }
  } else {
    move_panel<T>(panel.from, {panel_.in_stride, line_.in_stride}, numbers, all.side(), panel.lines,
                  given, options_.before);
    if (multiplies) this->multiply_runs(panel, numbers, all, spare);
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
void SplitPanels<T>::store(const Panel& panel, std::complex<T>* numbers,
                           std::complex<T>* spare) const {
  const index_t taken = line_.taken;
  Runs all = runs(panel.lines);
  (is_rows_ ? all.count : all.length) = taken;
  if (options_.factors == LineFactors::conjugated && !is_rows_ && this->has_dense_lines()) {
    for (index_t c = 0; c < panel.lines; ++c) {
      multiply(ConjugateProduct<T>{reals(numbers + c * width_),
                                   reals(panel.factors() + c * panel_.weight_stride),
                                   reals(panel.to + c * panel_.out_stride), taken, panel.adds});
    }
    return;
  }
  if (options_.factors == LineFactors::conjugated) this->combine_runs(panel, numbers, all, spare);
  move_panel<T>(numbers, all.side(), panel.to, {panel_.out_stride, line_.out_stride}, panel.lines,
                taken, options_.after);
}

template <class T>
void SplitPanels<T>::weigh(const Panel& panel, std::complex<T>* numbers, std::byte* weights) const {
  if (is_rows_) {
    for (index_t j = 0; j < line_.extent; ++j) {
      std::complex<T>* const row = numbers + j * width_;
      weights_->apply_across(panel.weights, j, panel.first, panel.lines, row, row);
    }
    return;
  }
  weights_->load(panel.weights, panel.first, panel.lines, weights);
  for (index_t c = 0; c < panel.lines; ++c) weights_->apply(weights, c, numbers + c * width_);
}

template <class T>
void SplitPanels<T>::run_panel(const Panel& panel, std::complex<T>* scratch, bool) const {
  std::complex<T>* const spare = scratch + numbers_;
  auto* const weights = reinterpret_cast<std::byte*>(spare);
  auto* const rows = reinterpret_cast<std::byte*>(scratch + this->panels_in_scratch() * numbers_ +
                                                  weight_numbers_);
  const auto factors = [](const LinePhases<T>& phases) {
    return phases.real.empty() ? nullptr : phases.real.data();
  };
  const Place slots{scratch, runs(panel.lines).side(), line_.extent};
  Place from{const_cast<std::complex<T>*>(panel.from),
             {panel_.in_stride, line_.in_stride},
             line_.given,
             factors(options_.before)};
  if (loads()) {
    load(panel, scratch, spare);
    from = slots;
  }
  Place to{panel.to, {panel_.out_stride, line_.out_stride}, line_.taken, factors(options_.after)};
  if (stores()) to = slots;
  if (weights_) {
    transform(from, slots, panel.lines, options_.forward, rows);
    weigh(panel, scratch, weights);
    transform(slots, to, panel.lines, !options_.forward, rows);
  } else {
    transform(from, to, panel.lines, options_.forward, rows);
  }
  if (stores()) store(panel, scratch, spare);
}

template class SplitPanels<float>;
template class SplitPanels<double>;

}  // namespace palimpsest
