// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/kernels/fft/real_lines.hpp"
#include "palimpsest/ops/prelude.hpp"
#include "palimpsest/ops/transforms/real_fft_op.hpp"

namespace palimpsest::ops {

std::string written(const RealFftParameters& value) {
  return parameter("axis", static_cast<index_t>(value.axis)) + ", " + parameter("n", value.n) +
         ", scale=" + written(value.scale);
}

void read(ParameterText& text, RealFftParameters& value) {
  text.expect("axis=");
  read(text, value.axis);
  check_axis(value.axis);
  text.expect(", n=");
  value.n = text.integer();
  if (!is_real_line(value.n)) throw FormatError("no length of a real line");
  text.expect(", scale=");
  read(text, value.scale);
}

Apply RealFft::make_node(std::span<const Variable> inputs) const {
  expect_inputs(inputs, 1, name());
  const TensorType& type = inputs[0].type();
  if (is_complex(type.dtype) != back_ || !is_inexact(type.dtype)) {
    throw DTypeError("[" + std::string(name()) + "] got " + type.str() + ", expected " +
                     (back_ ? "complex" : "real floating") + " data");
  }
  normalize_axis(static_cast<index_t>(parameters_.axis), type.rank(), name());
  const DType dtype = back_ ? real_of(type.dtype) : complex_of(type.dtype);
  return node(inputs, {{dtype, infer_shapes({}, {&type.shape, 1})[0], type.device}});
}

std::vector<Extents> RealFft::infer_shapes(const Apply&, ExtentsSpan inputs) const {
  Extents result = inputs[0];
  index_t& extent = result[parameters_.axis];
  const index_t half = parameters_.n / 2 + 1, expected = back_ ? half : parameters_.n;
  if (extent != expected && extent != kUnknown) {
    throw ShapeError("[" + std::string(name()) + "] got " + to_string(inputs[0]) + ", expected " +
                     std::to_string(expected) + " elements along axis " +
                     std::to_string(parameters_.axis));
  }
  extent = back_ ? parameters_.n : half;
  return {std::move(result)};
}

Variable mirror_weights(const Variable& half, std::size_t axis, index_t n, int power) {
  std::vector<double> weights(static_cast<std::size_t>(n / 2 + 1), power > 0 ? 2 : 0.5);
  weights.front() = 1;
  if (n % 2 == 0) weights.back() = 1;
  Extents column(half.rank() - axis, 1);
  column[0] = n / 2 + 1;
  return constant(Tensor::from(weights, column).to(real_of(half.dtype())).to(half.type().device));
}

// The adjoint of one direction is the other one, whose elements with mirror images count once.
std::vector<Variable> RealFft::pullback(const Apply&, CotangentSpan cotangents) const {
  const auto other = std::make_shared<RealFft>(parameters_, !back_);
  const auto apply = [&](const Variable& x) { return other->make_node({&x, 1}).output(0); };
  const auto weights = [&](const Variable& half) {
    return mirror_weights(half, parameters_.axis, parameters_.n, back_ ? 1 : -1);
  };
  if (!back_) return {apply(cotangents[0] * weights(cotangents[0]))};
  const Variable half = apply(cotangents[0]);
  return {half * weights(half)};
}

void RealFft::run(RunContext& context) const {
  const ConstView& in = context.input(0);
  const MutableView& out = context.output(0);
  if (element_count(in.extents) == 0) return;
  const double scale = factor_of(parameters_.scale, static_cast<double>(parameters_.n));
  (back_ ? half_to_real : real_to_half)(in, out, parameters_.axis, scale);
}

void register_ops_of_real_fft() { register_type<RealFft>(); }

}  // namespace palimpsest::ops
