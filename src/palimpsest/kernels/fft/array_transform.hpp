// SPDX-License-Identifier: Apache-2.0
// Internal: discrete Fourier transforms of arrays, as one pass of lines per axis (line_pass.hpp).
#pragma once

#include <array>
#include <complex>
#include <memory>
#include <vector>

#include "palimpsest/base/cache_size.hpp"
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
  virtual std::size_t bytes(int threads) const = 0;
  /// Of a transform without weights.
  virtual std::size_t workspace_bytes(int) const { return 0; }

  const FftSpec spec;
  // For which passes were chosen.
  const std::array<index_t, 2> caches{core_cache_bytes(), streaming_bytes()};
};

/// Passes between the first and the last one work in place on `work`.
struct TransformAxis : PassAxis {
  index_t work_stride = 0, factor_stride = 0;
  bool is_transformed = false;
};

/// The axes of more than one element, smallest strides last. Of padded arrays and with factors all
/// axes in their order.
std::vector<TransformAxis> transform_axes(const FftSpec& spec);

/// Does the result of a spec, of whole lines of cache, pass by the last cache? If its axes are in
/// the order of their strides, it does not depend on these.
bool is_streamed(const FftSpec& spec);

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
  explicit ArrayTransform(const FftSpec& s);
  /// `factors`: of what the first pass loads, or of the results of the last one.
  ArrayTransform(const FftSpec& s, std::vector<TransformAxis> axes, LineFactors factors)
      : ArrayTransform(s, std::move(axes), factors, false) {}

  void run(const void* in, void* out, const FftOperands& operands) const override;
  void run(const std::complex<T>* in, std::complex<T>* work, std::complex<T>* out,
           const PassOperand& factors) const {
    if (stage_ != nullptr) run_stage(*stage_, {in, work, out, factors, {}});
  }
  std::size_t bytes(int threads) const override;
  std::size_t workspace_bytes(int threads) const override;

  /// Blocks of separate transforms.
  const TransformBlocks& blocks() const { return stage_->blocks; }
  void run_block(index_t block, const std::complex<T>* in, std::complex<T>* work,
                 std::complex<T>* out, const PassOperand& factors) const {
    run_block(*stage_, blocks().begin(block), {in, work, out, factors, {}});
  }

 private:
  ArrayTransform(const FftSpec& s, std::vector<TransformAxis> axes, LineFactors factors,
                 bool streams);

  // Blocks: first passes over their slices, if there are any, then over whole blocks.
  struct Stage {
    TransformBlocks blocks;
    std::unique_ptr<const Stage> slices;
    std::vector<std::unique_ptr<const LinePass<T>>> passes;
    index_t room = 0;  // elements of a block between its passes; 0: it lies in `work`
  };
  struct Arrays {
    const std::complex<T>* x;
    std::complex<T>*w, *y;
    PassOperand factors;
    std::span<std::byte> rooms;
  };

  std::unique_ptr<const Stage> make_stage(std::vector<TransformAxis> axes,
                                          std::size_t n_transformed, bool is_last,
                                          bool streams) const;
  static bool make_room(std::vector<TransformAxis>& axes, Stage& stage);
  void make_passes(const std::vector<TransformAxis>& axes, std::size_t n_transformed, bool is_last,
                   bool streams, Stage& stage) const;
  std::unique_ptr<const LinePass<T>> make_pass(const PassAxis& line, std::vector<PassAxis> others,
                                               typename LinePass<T>::Options options,
                                               double scale) const;
  static void run_stage(const Stage& stage, const Arrays& arrays);
  static void run_block(const Stage& stage, const TransformBlocks::Begin& begin,
                        const Arrays& arrays);

  LineFactors factors_;
  std::unique_ptr<const Stage> stage_;  // null: no elements
};

extern template class ArrayTransform<float>;
extern template class ArrayTransform<double>;

}  // namespace palimpsest
