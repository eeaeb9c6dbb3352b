// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include "palimpsest/ops/transforms/weighted_fft_op.hpp"

namespace palimpsest::ops {

/// The normal operator of coil maps, a Fourier transform and weights, as in SENSE.
///
/// Math     y = sum_c conj(m_c) C F'(w_c F(P (m_c x))); F, F', P, C as in WeightedFft
/// Shapes   inputs x; m, with axis 0 for the coils and those of x; w, as the weights of a
///          WeightedFft of m x. At least one coil, and two transformed axes behind axis 0
/// DTypes   one complex dtype; w may be real, of its precision
/// Aliases  y is disjoint from all inputs: x is read for each coil
/// Cost     that of WeightedFft, without passes for products and sums. Scratch of one P x, but of x
///          along the first transformed axis; from 128 KiB to 4 MiB one for each thread. Products
///          are rounded before they are added, in the order of the coils
class SenseNormal final : public Declared<SenseNormal>, public HasLibraryMemory {
 public:
  using Parameters = WeightedFftParameters;

  /// `parameters`: axes and zeros of the axes of m.
  explicit SenseNormal(Parameters parameters) : parameters_(std::move(parameters)) {}

  Apply make_node(std::span<const Variable> inputs) const override;
  std::vector<Extents> infer_shapes(const Apply&, ExtentsSpan inputs) const override;
  Linearity linear_in(const Apply&, int in) const override {
    return in == 1 ? Linearity::no : Linearity::complex;
  }
  std::vector<Variable> pullback(const Apply& apply, CotangentSpan cotangents) const override;
  bool can_fail() const override { return false; }
  std::size_t scratch_bytes(const Apply& apply, std::span<const Layout> inputs) const override;
  std::size_t library_bytes(const Apply&, std::span<const Layout> inputs,
                            std::span<const Layout> outputs) const override;
  void run(RunContext& context) const override;
  static constexpr auto declaration() {
    return declare("SenseNormal", field(&SenseNormal::parameters_));
  }

 private:
  void check_maps(std::span<const index_t> x, std::span<const index_t> maps) const;
  FftSpec spec(const Layout& x, const Layout& maps, const Layout& weights,
               std::span<const index_t> out_strides) const;

  Parameters parameters_;
};

}  // namespace palimpsest::ops
