// SPDX-License-Identifier: Apache-2.0
// Internal: discrete Fourier transforms of arrays, as one pass of lines per axis (line_pass.hpp).
#pragma once

#include <complex>
#include <memory>
#include <vector>

#include "palimpsest/kernels/fft/fft.hpp"
#include "palimpsest/kernels/fft/line_pass.hpp"
#include "palimpsest/kernels/pool/parallel.hpp"

namespace palimpsest {

class FftPlan::Impl {
 public:
  explicit Impl(FftSpec s) : spec(std::move(s)) {}
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  virtual ~Impl() = default;
  virtual void run(const void* in, void* out, const FftOperands& operands) const = 0;
  virtual std::size_t bytes() const = 0;

  const FftSpec spec;
};

/// Passes between the first and the last one work in place on `work`.
struct TransformAxis : PassAxis {
  index_t work_stride = 0, factor_stride = 0;
  bool is_transformed = false;
};

/// The axes of more than one element, smallest strides last. Of padded arrays and with factors all
/// axes in their order.
std::vector<TransformAxis> transform_axes(const FftSpec& spec);

/// Blocks with separate transforms.
struct TransformBlocks {
  /// Offset of a block, in elements.
  struct Begin {
    index_t block, in = 0, work = 0, out = 0, weights = 0, factors = 0;
  };
  std::vector<TransformAxis> axes;  // outermost first
  index_t count = 1;

  TransformBlocks() = default;
  /// Takes the axes before the first transformed one.
  explicit TransformBlocks(std::vector<TransformAxis>& from);

  Begin begin(index_t block) const;
  /// Calls f for the Begin of n blocks, on several threads.
  template <class F>
  void for_each(index_t from, index_t n, const F& f) const {
    parallel_ranges(n, 1, [&](index_t first, index_t last) {
      for (index_t block = from + first; block < from + last; ++block) f(begin(block));
    });
  }
};

/// The transform of a spec without weights.
template <class T>
class ArrayTransform final : public FftPlan::Impl {
 public:
  explicit ArrayTransform(const FftSpec& s)
      : ArrayTransform(s, transform_axes(s), LineFactors::none) {}
  /// `factors`: of what the first pass loads, or of the results of the last one.
  ArrayTransform(const FftSpec& s, std::vector<TransformAxis> axes, LineFactors factors);

  void run(const void* in, void* out, const FftOperands&) const override {
    auto* const y = static_cast<std::complex<T>*>(out);
    run(static_cast<const std::complex<T>*>(in), y, y, {});
  }
  void run(const std::complex<T>* in, std::complex<T>* work, std::complex<T>* out,
           const PassOperand& factors) const {
    if (stage_ != nullptr) run_stage(*stage_, in, work, out, factors);
  }
  std::size_t bytes() const override;

  /// Blocks of separate transforms.
  const TransformBlocks& blocks() const { return stage_->blocks; }
  void run_block(index_t block, const std::complex<T>* in, std::complex<T>* work,
                 std::complex<T>* out, const PassOperand& factors) const {
    run_block(*stage_, blocks().begin(block), in, work, out, factors);
  }

 private:
  // Blocks: first passes over their slices, if there are any, then over whole blocks.
  struct Stage {
    TransformBlocks blocks;
    std::unique_ptr<const Stage> slices;
    std::vector<std::unique_ptr<const LinePass<T>>> passes;
  };

  std::unique_ptr<const Stage> make_stage(std::vector<TransformAxis> axes,
                                          std::size_t n_transformed, bool is_last) const;
  void make_passes(const std::vector<TransformAxis>& axes, std::size_t n_transformed, bool is_last,
                   Stage& stage) const;
  std::unique_ptr<const LinePass<T>> make_pass(const PassAxis& line, std::vector<PassAxis> others,
                                               bool transforms, double scale,
                                               LineFactors factors) const;
  static void run_stage(const Stage& stage, const std::complex<T>* x, std::complex<T>* w,
                        std::complex<T>* y, const PassOperand& factors);
  static void run_block(const Stage& stage, const TransformBlocks::Begin& begin,
                        const std::complex<T>* x, std::complex<T>* w, std::complex<T>* y,
                        const PassOperand& factors);

  LineFactors factors_;
  std::unique_ptr<const Stage> stage_;  // null: no elements
};

extern template class ArrayTransform<float>;
extern template class ArrayTransform<double>;

}  // namespace palimpsest
