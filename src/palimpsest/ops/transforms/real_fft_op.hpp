// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include "palimpsest/graph/op.hpp"
#include "palimpsest/ops/transforms/fft_op.hpp"

namespace palimpsest::ops {

struct RealFftParameters {
  std::size_t axis = 0;
  index_t n = 0;  // elements of a real line
  FftScale scale = FftScale::one;
  friend bool operator==(const RealFftParameters&, const RealFftParameters&) = default;
};
std::string written(const RealFftParameters& value);
void read(ParameterText& text, RealFftParameters& value);

/// Half of the spectrum of real lines along one axis, or the real lines of such halves.
///
/// Math     y[k] = s sum_j x[j] exp(-2 pi i j k / n), k = 0 .. n/2; back: x[j] = s sum_k y[k]
///          exp(2 pi i j k / n) over all n, where y[n - k] is the conjugate of y[k]
/// Shapes   n even, up to kLongestRealLine
class RealFft final : public Declared<RealFft> {
 public:
  RealFft(RealFftParameters parameters, bool back) : parameters_(parameters), back_(back) {}

  Apply make_node(std::span<const Variable> inputs) const override;
  std::vector<Extents> infer_shapes(const Apply& apply, ExtentsSpan inputs) const override;
  Linearity linear_in(const Apply&, int) const override {
    return back_ ? Linearity::real : Linearity::complex;
  }
  std::vector<Variable> pullback(const Apply& apply, CotangentSpan cotangents) const override;
  bool can_fail() const override { return false; }
  void run(RunContext& context) const override;
  static constexpr auto declaration() {
    return declare("RealFft", field(&RealFft::parameters_),
                   named<RealFft, bool>(&RealFft::back_, {{"", false}, {"Back", true}}));
  }

 private:
  RealFftParameters parameters_;
  bool back_;
};

/// The factors 1, 2, 2, .. of half a spectrum along an axis, for the elements that stand for their
/// mirror image too; to the power p = 1 or -1.
Variable mirror_weights(const Variable& half, std::size_t axis, index_t n, int power);

}  // namespace palimpsest::ops
