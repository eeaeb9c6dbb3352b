// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdlib>

#include "palimpsest/kernels/fft/panel_forms.hpp"

namespace palimpsest {
namespace {

// Lines of a panel side by side in scratch, as a multiple of RowTransform<T>::kLines.
template <class T>
index_t lines_in_rows(index_t lines) {
  constexpr index_t kLines = RowTransform<T>::kLines;
  return (lines + kLines - 1) / kLines * kLines;
}

}  // namespace

template <class T>
PanelsOfRows<T>::PanelsOfRows(const PassAxis& line, std::vector<PassAxis> others, Options options)
    : LinePass<T>(line, std::move(others), std::move(options)),
      rows_(RowTransform<T>::find_or_make(line_.extent, options_.forward)) {
  if (weights_) back_rows_ = RowTransform<T>::find_or_make(line_.extent, !options_.forward);
  constexpr index_t kItem{sizeof(std::complex<T>)}, kLines = RowTransform<T>::kLines;
  const index_t fitting = kPassScratchBytes / (rows_in_scratch() * kItem);
  const index_t most = std::clamp(fitting / kLines * kLines, kLines, kPanelRowBytes / kItem);
  const index_t lines = std::min(panel_.extent, most);
  this->cut_into_panels(lines, rows_in_scratch() * lines_in_rows<T>(lines));
}

// May rows of the panel be read and written where they are? Rows that lie far apart are copied
// first, since copies prefetch them.
template <class T>
bool PanelsOfRows<T>::has_near_rows(const Panel& panel, index_t line, index_t step) const {
  return line == 1 && std::abs(step) * index_t{sizeof(std::complex<T>)} < kPassPage / 2 &&
         options_.factors == LineFactors::none && panel.lines == lines_in_rows<T>(panel.lines);
}

// The rows of the panel: those of x, or else a copy in scratch.
template <class T>
typename PanelsOfRows<T>::Rows PanelsOfRows<T>::load_rows(const Panel& panel, std::complex<T>* rows,
                                                          std::complex<T>* spare) const {
  const index_t n = line_.given, lines = panel.lines, width = lines_in_rows<T>(lines);
  if (n == line_.extent && is_none(options_.before) &&
      has_near_rows(panel, panel_.in_stride, line_.in_stride)) {
    return {const_cast<std::complex<T>*>(panel.from), line_.in_stride};
  }
  for (index_t j = 0; j < n && lines < width; ++j) {
    std::fill(rows + j * width + lines, rows + (j + 1) * width, std::complex<T>(0));
  }
  const bool multiplies = options_.factors == LineFactors::before;
  if (multiplies && this->has_dense_lines()) {
    for (index_t c = 0; c < lines; ++c) {
      multiply(WeightedNumbers<T>{reals(panel.from + c * panel_.in_stride),
                                  reals(panel.factors() + c * panel_.weight_stride),
                                  reals(spare + c * n), n, 2, true, T{1}});
    }
    move_panel<T>(spare, {n, 1}, rows, {1, width}, lines, n, options_.before);
  } else {
    move_panel<T>(panel.from, {panel_.in_stride, line_.in_stride}, rows, {1, width}, lines, n,
                  options_.before);
    if (multiplies) this->multiply_runs(panel, rows, {false, n, lines, width}, spare);
  }
  std::fill(rows + n * width, rows + line_.extent * width, std::complex<T>(0));
  return {rows, width};
}

// Chooses where the rows of the panel are computed: in y, or else in scratch.
template <class T>
typename PanelsOfRows<T>::Rows PanelsOfRows<T>::rows_to_store(const Panel& panel,
                                                              std::complex<T>* rows) const {
  if (line_.taken == line_.extent && is_none(options_.after) &&
      has_near_rows(panel, panel_.out_stride, line_.out_stride)) {
    return {panel.to, line_.out_stride};
  }
  return {rows, lines_in_rows<T>(panel.lines)};
}

template <class T>
void PanelsOfRows<T>::store_rows(const Panel& panel, std::complex<T>* rows,
                                 std::complex<T>* spare) const {
  const index_t n = line_.taken, width = lines_in_rows<T>(panel.lines);
  if (options_.factors == LineFactors::conjugated && this->has_dense_lines()) {
    move_panel<T>(rows, {1, width}, spare, {n, 1}, panel.lines, n, options_.after);
    for (index_t c = 0; c < panel.lines; ++c) {
      multiply(ConjugateProduct<T>{reals(spare + c * n),
                                   reals(panel.factors() + c * panel_.weight_stride),
                                   reals(panel.to + c * panel_.out_stride), n, panel.adds});
    }
    return;
  }
  if (options_.factors == LineFactors::conjugated) {
    this->combine_runs(panel, rows, {false, n, panel.lines, width}, spare);
  }
  move_panel<T>(rows, {1, width}, panel.to, {panel_.out_stride, line_.out_stride}, panel.lines, n,
                options_.after);
}

// Transform, weights and transform back of a panel of rows.
template <class T>
void PanelsOfRows<T>::weigh_rows(const Panel& panel, std::complex<T>* scratch) const {
  const index_t n = line_.extent, width = lines_in_rows<T>(panel.lines);
  std::complex<T>* const rows = scratch + n * width;
  rows_->execute(load_rows(panel, scratch, nullptr), {rows, width}, rows, width);
  for (index_t j = 0; j < n; ++j) {
    weights_->apply_across(panel.weights, j, panel.first, panel.lines, rows + j * width,
                           scratch + j * width);
  }
  const Rows y = rows_to_store(panel, rows);
  back_rows_->execute({scratch, width}, y, rows, width);
  if (y.first == rows) store_rows(panel, rows, nullptr);
}

template <class T>
void PanelsOfRows<T>::run_panel(const Panel& panel, std::complex<T>* scratch, bool) const {
  if (weights_) return weigh_rows(panel, scratch);
  const index_t n = line_.extent, width = lines_in_rows<T>(panel.lines);
  std::complex<T>* const rows = scratch + n * width;
  std::complex<T>* const spare = scratch + (n + rows_->rows()) * lines_in_rows<T>(lines_);
  const Rows x = load_rows(panel, scratch, spare);
  const Rows y = rows_to_store(panel, rows);
  rows_->execute(x, y, rows, width);
  if (y.first == rows) store_rows(panel, rows, spare);
}

template class PanelsOfRows<float>;
template class PanelsOfRows<double>;

}  // namespace palimpsest
