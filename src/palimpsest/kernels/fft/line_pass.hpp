// SPDX-License-Identifier: Apache-2.0
// Internal: transforms all lines of an array along one axis.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "palimpsest/base/fork.hpp"
#include "palimpsest/kernels/fft/line_transform.hpp"
#include "palimpsest/kernels/fft/panel_copy.hpp"
#include "palimpsest/kernels/fft/panel_weights.hpp"

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

/// Scratch of one size that is kept between runs. Concurrent runs get one each.
class KeptScratch {
 public:
  explicit KeptScratch(std::size_t bytes);
  std::size_t bytes() const { return bytes_; }
  /// Calls f(std::byte* scratch).
  template <class F>
  void use(const F& f) {
    std::unique_ptr<AlignedMemory> memory = take();
    f(memory->data());
    give_back(std::move(memory));
  }

 private:
  std::unique_ptr<AlignedMemory> take();
  void give_back(std::unique_ptr<AlignedMemory> memory);

  std::size_t bytes_ = 0;
  Mutex mutex_;
  std::vector<std::unique_ptr<AlignedMemory>> spare_;
};

/// y = after * FFT(before * x) for every line along one axis; with weights w, y = F'(w FFT(x)) with
/// the transform F' of the other sign.
///
/// Panels of neighbouring lines are transformed from one array to the other, as rows or as dense
/// lines, or through scratch where a side has another layout, so that whole cache lines are used
/// for any strides. Results do not depend on layouts and alignment.
template <class T>
class LinePass {
 public:
  struct Options {
    bool transforms = true;  // else y = after * before * x
    bool forward = true;
    LinePhases<T> before = {}, after = {};
    /// Then there are no other factors.
    std::optional<PassWeights<T>> weights = {};
    /// Their strides are those of weights.
    LineFactors factors = LineFactors::none;
    /// Stores results past the caches, if they are rows of whole lines of cache.
    bool streams = false;
  };
  /// `others`: the axes along which lines repeat.
  LinePass(const PassAxis& line, std::vector<PassAxis> others, Options options);
  LinePass(const LinePass&) = delete;
  LinePass& operator=(const LinePass&) = delete;
  ~LinePass();

  /// Aliases  y is x with the same strides, or disjoint
  void run(const std::complex<T>* x, std::complex<T>* y, const PassOperand& operand) const;
  /// Bytes of tables, and of scratch for a number of threads.
  std::size_t bytes(int threads) const;

 private:
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
  // A panel where it is transformed.
  struct Place {
    std::complex<T>* first;
    PanelSide side;
    index_t extent;  // of lines
    std::array<T, 2> factors{1, 1};
    bool streams = false;
  };

  void order_axes();
  void take_factors();
  void choose_layout();
  void cut_into_panels(index_t lines);
  Panel panel(const std::complex<T>* x, std::complex<T>* y, const PassOperand& operand,
              index_t task) const;
  void run_panel(const Panel& panel, std::complex<T>* scratch) const;
  Runs runs(index_t lines) const;
  void load(const Panel& panel, std::complex<T>* numbers, std::complex<T>* spare) const;
  void store(const Panel& panel, std::complex<T>* numbers, std::complex<T>* spare) const;
  void weigh(const Panel& panel, std::complex<T>* numbers, std::byte* weights) const;
  void transform(const Place& from, const Place& to, index_t lines, bool forward,
                 std::byte* scratch) const;
  bool has_dense_lines() const;
  // `spare`: memory for factors of the panel.
  void multiply_runs(const Panel& panel, std::complex<T>* numbers, const Runs& runs,
                     std::complex<T>* spare) const;
  void combine_runs(const Panel& panel, std::complex<T>* numbers, const Runs& runs,
                    std::complex<T>* spare) const;
  index_t panels_in_scratch() const { return options_.factors == LineFactors::none ? 1 : 2; }
  bool fits(const PanelSide& side) const { return (is_rows_ ? side.line : side.step) == 1; }
  bool loads() const;
  bool stores() const;
  LineLayout layout() const { return is_rows_ ? LineLayout::rows : LineLayout::dense; }

  PassAxis line_;
  PassAxis panel_;  // axis along which neighbouring lines form a panel
  Options options_;
  std::optional<PanelWeights<T>> weights_;
  std::shared_ptr<const LineTransform<T>> transform_;  // null: copies
  // Real phases, where the transform takes them; others are in options_.
  std::array<T, 2> before_{1, 1}, after_{1, 1};
  bool is_rows_ = false;
  index_t lines_ = 1;                // lines of a full panel
  index_t width_ = 0, numbers_ = 0;  // lines or their distance, and numbers, in scratch
  index_t weight_numbers_ = 0;
  std::vector<PassAxis> outer_;  // outermost first
  index_t panels_ = 1, tasks_ = 1;
  mutable std::unique_ptr<KeptScratch> scratch_;  // for panels too large for the thread's own
};

}  // namespace palimpsest
