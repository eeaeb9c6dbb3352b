// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <cstdint>

#include "palimpsest/graph/op.hpp"
#include "palimpsest/ops/in_place_twin.hpp"
#include "palimpsest/ops/transforms/library_memory.hpp"

namespace palimpsest {
struct FftSpec;
}

namespace palimpsest::ops {

/// The factor of a transform of N points, as a power of N: 1, 1/sqrt(N), 1/N.
enum class FftScale : std::uint8_t { one, root, inverse };
/// For n points.
double factor_of(FftScale scale, double n);
std::string written(FftScale value);
void read(ParameterText& text, FftScale& value);

struct FftParameters {
  Axes axes;  // sorted, counted from the front
  bool forward = true;
  FftScale scale = FftScale::one;
  bool centered = false;
  friend bool operator==(const FftParameters&, const FftParameters&) = default;
};
std::string written(const FftParameters& value);
void read(ParameterText& text, FftParameters& value);

/// A discrete Fourier transform.
///
/// Math     y[k] = s sum_j x[j] exp(-+2 pi i ...), minus if forward. The adjoint has the other sign
///          and the same scale; two transforms over the same axes cancel if their signs differ and
///          their scales together are 1/N
/// Aliases  in place: the output lies in the memory of the input
class Fft final : public InPlaceTwin<Fft>, public HasLibraryMemory {
 public:
  using Parameters = FftParameters;

  explicit Fft(Parameters parameters, bool in_place = false)
      : InPlaceTwin(in_place), parameters_(std::move(parameters)) {}
  const Axes& axes() const { return parameters_.axes; }
  bool forward() const { return parameters_.forward; }
  FftScale scale() const { return parameters_.scale; }
  bool centered() const { return parameters_.centered; }
  /// Has the other one the other sign, over the same axes? Then the two undo each other but for
  /// scales.
  bool is_opposite_of(const Fft& other) const;
  /// Parameters of the transform that undoes this one, and of its adjoint.
  Parameters inverse() const;
  Parameters adjoint() const;
  const Parameters& values() const { return parameters_; }

  Apply make_node(std::span<const Variable> inputs) const override;
  std::vector<Extents> infer_shapes(const Apply&, ExtentsSpan inputs) const override {
    return {inputs[0]};
  }
  Linearity linear_in(const Apply&, int) const override { return Linearity::complex; }
  std::vector<Variable> pullback(const Apply& apply, CotangentSpan cotangents) const override;
  bool can_fail() const override { return false; }
  std::size_t scratch_bytes(const Apply& apply, std::span<const Layout> inputs) const override;
  std::size_t library_bytes(const Apply&, std::span<const Layout> inputs,
                            std::span<const Layout> outputs) const override;
  void run(RunContext& context) const override;
  static constexpr auto declaration() {
    return declare("Fft", field(&Fft::parameters_), in_place_field(&Fft::in_place_));
  }

 private:
  Parameters parameters_;
};

/// Threads that runs of the plan being made may have.
int planned_threads();

/// The transform of arrays of these layouts.
FftSpec spec_of(const FftParameters& parameters, bool in_place, DType dtype,
                std::span<const index_t> extents, std::span<const index_t> in_strides,
                std::span<const index_t> out_strides);

/// The transform with these parameters; real input is converted.
Variable transform(const Variable& x, Fft::Parameters parameters);

}  // namespace palimpsest::ops
