// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include "palimpsest/ops/transforms/fft_op.hpp"

namespace palimpsest::ops {

struct WeightedFftParameters {
  FftParameters there;  // of the first transform
  FftScale back = FftScale::one;
  Extents zeros = {};  // behind x along each axis; empty: none
  friend bool operator==(const WeightedFftParameters&, const WeightedFftParameters&) = default;
};
std::string written(const WeightedFftParameters& value);
void read(ParameterText& text, WeightedFftParameters& value);

/// The transform of arrays of these layouts there and back, with weights.
FftSpec spec_of(const WeightedFftParameters& parameters, bool in_place, const Layout& x,
                const Layout& weights, std::span<const index_t> out_strides);
/// Errors   ShapeError, ValueError naming `who`: weights that do not fit the spectrum of x, zeros
///          that are negative or along an axis that is not transformed
void check_weights(const WeightedFftParameters& parameters, const TensorType& x,
                   const TensorType& w, const std::string& who);
/// The same for extents at run time.
void check_weights(const WeightedFftParameters& parameters, std::span<const index_t> x,
                   std::span<const index_t> w, const std::string& who);
/// Returns how the elements of an input lie.
Layout layout_of(const ConstView& view);

/// A discrete Fourier transform, weights, and the transform back, as in F^H W F of a mask. With
/// zeros behind x it is a convolution that does not wrap around.
///
/// Math     y = C F'(w F(P x)), where F' has the axes of F and the other sign; P puts zeros behind
///          x, C drops these elements. Zeros before x would change nothing if C dropped as many
/// Shapes   input 0 is x, input 1 is w, of the rank of x and the extents of P x; w has one element
///          along axes along which it repeats
/// DTypes   w is real or complex, of the precision of x
/// Aliases  in place: the output lies in the memory of x
/// Cost     one pass over memory along the transformed axis with the largest stride, two along each
///          other one; the product takes none. With zeros along two axes or more, scratch of P x,
///          but of x along the first transformed axis
class WeightedFft final : public InPlaceTwin<WeightedFft>, public HasLibraryMemory {
 public:
  using Parameters = WeightedFftParameters;

  explicit WeightedFft(Parameters parameters, bool in_place = false)
      : InPlaceTwin(in_place), parameters_(std::move(parameters)) {}

  /// May weights of this type be those of a spectrum of that type?
  static bool takes(const TensorType& spectrum, const TensorType& weights);
  const Parameters& values() const { return parameters_; }

  Apply make_node(std::span<const Variable> inputs) const override;
  std::vector<Extents> infer_shapes(const Apply&, ExtentsSpan inputs) const override;
  Linearity linear_in(const Apply&, int) const override { return Linearity::complex; }
  std::vector<Variable> pullback(const Apply& apply, CotangentSpan cotangents) const override;
  bool can_fail() const override { return false; }
  std::size_t scratch_bytes(const Apply& apply, std::span<const Layout> inputs) const override;
  std::size_t library_bytes(const Apply&, std::span<const Layout> inputs,
                            std::span<const Layout> outputs) const override;
  void run(RunContext& context) const override;
  static constexpr auto declaration() {
    return declare("WeightedFft", field(&WeightedFft::parameters_),
                   in_place_field(&WeightedFft::in_place_));
  }

 private:
  Parameters parameters_;
};

}  // namespace palimpsest::ops
