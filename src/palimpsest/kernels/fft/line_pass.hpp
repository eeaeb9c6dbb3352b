// SPDX-License-Identifier: Apache-2.0
// Internal: transforms all lines of an array along one axis.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "palimpsest/base/fork.hpp"
#include "palimpsest/kernels/fft/fftw.hpp"
#include "palimpsest/kernels/fft/line_twiddles.hpp"
#include "palimpsest/kernels/fft/panel_copy.hpp"
#include "palimpsest/kernels/fft/panel_weights.hpp"
#include "palimpsest/kernels/fft/row_transform.hpp"

namespace palimpsest {

/// An axis of an array on both sides, and of weights; strides in elements, any sign. Point j has
/// weight number (j + weight_shift) mod extent. Of a line, the array has the first `given` elements
/// only, the others are 0; the first `taken` elements of the result are stored.
struct PassAxis {
  index_t extent = 1, in_stride = 0, out_stride = 0;
  index_t weight_stride = 0, weight_shift = 0;
  index_t given = extent, taken = extent;

  WeightAxis weights() const { return {extent, weight_stride, weight_shift}; }
};

/// Weights of what a pass transforms; it then transforms back.
template <class T>
struct PassWeights {
  bool is_complex = false;
  T scale = 1;  // a factor of all weights
};

/// Complex factors of the elements of lines, in an array of their own.
enum class LineFactors : std::uint8_t {
  none,
  before,      // of what is loaded
  conjugated,  // conjugated, of results; these are stored, or added to what is there
};

/// An array that a pass reads besides its lines.
struct PassOperand {
  const void* elements = nullptr;  // of point 0 of line 0: weights, real or complex, or factors
  bool adds = false;               // factors `conjugated`: adds its results
};

/// A pass over an array, into another one or in place.
template <class T>
class ArrayPass {
 public:
  ArrayPass() = default;
  ArrayPass(const ArrayPass&) = delete;
  ArrayPass& operator=(const ArrayPass&) = delete;
  virtual ~ArrayPass() = default;
  /// Aliases  y is x with the same strides, or disjoint
  virtual void run(const std::complex<T>* x, std::complex<T>* y,
                   const PassOperand& operand) const = 0;
  /// Bytes of tables and scratch.
  virtual std::size_t bytes() const = 0;
};

/// Scratch of one size that is kept between runs. Concurrent runs get one each.
class KeptScratch {
 public:
  explicit KeptScratch(std::size_t bytes);
  std::size_t bytes() const { return bytes_; }
  /// Calls f(std::byte* scratch).
  template <class F>
  void use(const F& f) {
    std::unique_ptr<FftMemory> memory = take();
    f(memory->data());
    give_back(std::move(memory));
  }

 private:
  std::unique_ptr<FftMemory> take();
  void give_back(std::unique_ptr<FftMemory> memory);

  std::size_t bytes_ = 0;
  Mutex mutex_;
  std::vector<std::unique_ptr<FftMemory>> spare_;
};

/// y = after * FFT(before * x) for every line along one axis; with weights w, y = F'(w FFT(x)) with
/// the transform F' of the other sign.
///
/// Panels of neighbouring lines are copied to dense scratch, transformed and copied back, so that
/// whole cache lines are used for any strides. The copies apply phases and scales. Results do not
/// depend on alignment. The two forms keep a panel as lines or as rows of all lines.
template <class T>
class LinePass : public ArrayPass<T> {
 public:
  struct Options {
    bool transforms = true;  // else y = after * before * x
    bool forward = true;
    FftEffort effort = FftEffort::estimate;
    LinePhases<T> before = {}, after = {};
    /// Additional factors after the transform, for lines that repeat along one axis only; not
    /// owned.
    const LineTwiddles<T>* twiddles = nullptr;
    /// Then there are no other factors.
    std::optional<PassWeights<T>> weights = {};
    /// Their strides are those of weights.
    LineFactors factors = LineFactors::none;
  };
  /// `others`: the axes along which lines repeat.
  static std::unique_ptr<LinePass> make(const PassAxis& line, std::vector<PassAxis> others,
                                        Options options);

  void run(const std::complex<T>* x, std::complex<T>* y, const PassOperand& operand) const override;
  std::size_t bytes() const override;

 protected:
  // A panel: its first lines on both sides, and its weights or factors.
  struct Panel {
    const std::complex<T>* from;
    std::complex<T>* to;
    const std::byte* weights;
    index_t first, lines;
    bool adds;

    const std::complex<T>* factors() const {
      return reinterpret_cast<const std::complex<T>*>(weights);
    }
  };
  // A panel in scratch, as runs of numbers side by side: lines, or rows of elements of all lines.
  struct Runs {
    bool are_lines;
    index_t count, length, distance;

    PanelSide side() const { return are_lines ? PanelSide{distance, 1} : PanelSide{1, distance}; }
    index_t line_extent() const { return are_lines ? length : count; }
  };

  LinePass(const PassAxis& line, std::vector<PassAxis> others, Options options);
  /// Ends the construction of a form: the lines of a full panel, and the scratch of one.
  void cut_into_panels(index_t lines, index_t scratch_numbers, std::size_t scratch_bytes = 0);
  virtual void run_panel(const Panel& panel, std::complex<T>* scratch, bool is_in_place) const = 0;
  bool has_dense_lines() const;
  // `spare`: memory for factors of the panel.
  void multiply_runs(const Panel& panel, std::complex<T>* numbers, const Runs& runs,
                     std::complex<T>* spare) const;
  void combine_runs(const Panel& panel, std::complex<T>* numbers, const Runs& runs,
                    std::complex<T>* spare) const;
  index_t panels_in_scratch() const { return options_.factors == LineFactors::none ? 1 : 2; }

  PassAxis line_;
  PassAxis panel_;  // axis along which neighbouring lines form a panel
  Options options_;
  index_t lines_ = 1;  // lines of a full panel
  std::optional<PanelWeights<T>> weights_;

 private:
  void order_axes();
  Panel panel(const std::complex<T>* x, std::complex<T>* y, const PassOperand& operand,
              index_t task) const;

  std::vector<PassAxis> outer_;  // outermost first
  index_t panels_ = 1, tasks_ = 1;
  mutable std::unique_ptr<KeptScratch> scratch_;  // for lines too long for the thread's own
};

}  // namespace palimpsest
