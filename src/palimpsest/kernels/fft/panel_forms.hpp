// SPDX-License-Identifier: Apache-2.0
// Internal: the forms of a pass over the lines of an array.
#pragma once

#include <cstdlib>
#include <memory>
#include <utility>
#include <vector>

#include "palimpsest/kernels/fft/line_pass.hpp"
#include "palimpsest/kernels/fft/split_transform.hpp"

namespace palimpsest {

/// Bytes of a thread's scratch, and of a row of a panel: four cache lines.
inline constexpr index_t kPassScratchBytes = 262144, kPanelRowBytes = 256, kPassPage = 4096;

template <class T>
bool is_none(const LinePhases<T>& phases) {
  return phases.real.empty() && phases.complex.empty();
}

/// Panels as dense lines, which plans of FFTW transform one by one, or all at once if they are
/// short.
template <class T>
class PanelsOfLines final : public LinePass<T> {
 public:
  using typename LinePass<T>::Options;
  PanelsOfLines(const PassAxis& line, std::vector<PassAxis> others, Options options);

 private:
  using Panel = typename LinePass<T>::Panel;
  using LinePass<T>::line_, LinePass<T>::panel_, LinePass<T>::options_, LinePass<T>::lines_,
      LinePass<T>::weights_;

  void choose_plans();
  void run_panel(const Panel& panel, std::complex<T>* scratch, bool is_in_place) const override;
  void weigh(const Panel& panel, std::complex<T>* scratch) const;
  void ask_for_next(const Panel& panel, index_t c) const;
  void load_lines(const Panel& panel, std::complex<T>* slots, std::complex<T>* spare) const;
  void store_lines(const Panel& panel, std::complex<T>* slots, std::complex<T>* spare) const;
  void run_line_by_line(const Panel& panel, std::complex<T>* slot) const;
  void transform(std::complex<T>* scratch, index_t lines) const;
  bool transform_to(const std::complex<T>* scratch, std::complex<T>* to, index_t lines) const;
  bool is_plain() const;
  void transform_rows(const std::complex<T>* from, std::complex<T>* to, std::complex<T>* scratch,
                      index_t lines) const;
  void fill_up(std::complex<T>* slots, index_t lines) const;

  index_t distance_ = 0;    // elements between lines in scratch
  index_t together_ = 1;    // lines per call of FFTW
  index_t first_line_ = 0;  // offset of the input lines in scratch; results begin at 0
  std::shared_ptr<const LinePlan<T>> plan_, back_;
};

/// Panels as rows of elements of all lines side by side, which RowTransform computes.
template <class T>
class PanelsOfRows final : public LinePass<T> {
 public:
  using typename LinePass<T>::Options;
  PanelsOfRows(const PassAxis& line, std::vector<PassAxis> others, Options options);

 private:
  using Panel = typename LinePass<T>::Panel;
  using Rows = typename RowTransform<T>::Rows;
  using LinePass<T>::line_, LinePass<T>::panel_, LinePass<T>::options_, LinePass<T>::lines_,
      LinePass<T>::weights_;

  void run_panel(const Panel& panel, std::complex<T>* scratch, bool is_in_place) const override;
  void weigh_rows(const Panel& panel, std::complex<T>* scratch) const;
  bool has_near_rows(const Panel& panel, index_t line, index_t step) const;
  Rows load_rows(const Panel& panel, std::complex<T>* rows, std::complex<T>* spare) const;
  Rows rows_to_store(const Panel& panel, std::complex<T>* rows) const;
  void store_rows(const Panel& panel, std::complex<T>* rows, std::complex<T>* spare) const;
  index_t rows_in_scratch() const {
    return rows_->rows() + this->panels_in_scratch() * line_.extent;
  }

  std::shared_ptr<const RowTransform<T>> rows_, back_rows_;
};

/// Panels that SplitTransform computes, as rows or as dense lines: from one array to the other, or
/// through scratch where a side has another layout.
template <class T>
class SplitPanels final : public LinePass<T> {
 public:
  using typename LinePass<T>::Options;
  SplitPanels(const PassAxis& line, std::vector<PassAxis> others, Options options);

  std::size_t bytes() const override;

 private:
  using Panel = typename LinePass<T>::Panel;
  using Runs = typename LinePass<T>::Runs;
  using LinePass<T>::line_, LinePass<T>::panel_, LinePass<T>::options_, LinePass<T>::lines_,
      LinePass<T>::weights_;
  // A panel where it is transformed, without factors.
  struct Place {
    std::complex<T>* first;
    PanelSide side;
    index_t extent;  // of lines
    const T* factors = nullptr;
  };

  void run_panel(const Panel& panel, std::complex<T>* scratch, bool is_in_place) const override;
  Runs runs(index_t lines) const;
  void load(const Panel& panel, std::complex<T>* numbers, std::complex<T>* spare) const;
  void store(const Panel& panel, std::complex<T>* numbers, std::complex<T>* spare) const;
  void weigh(const Panel& panel, std::complex<T>* numbers, std::byte* weights) const;
  void transform(const Place& from, const Place& to, index_t lines, bool forward,
                 std::byte* scratch) const;
  bool loads() const;
  bool stores() const;
  bool fits(const PanelSide& side) const { return (is_rows_ ? side.line : side.step) == 1; }

  std::shared_ptr<const SplitTransform<T>> transform_;
  bool is_rows_ = false;
  index_t width_ = 0, numbers_ = 0;  // lines, and numbers, of a full panel in scratch
  index_t weight_numbers_ = 0;
};

}  // namespace palimpsest
