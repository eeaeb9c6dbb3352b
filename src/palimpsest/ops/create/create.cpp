// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/ops/create/create.hpp"

#include <array>
#include <cmath>
#include <complex>
#include <utility>

#include "palimpsest/kernels/arrays/copy.hpp"
#include "palimpsest/ops/create/create_op.hpp"
#include "palimpsest/ops/prelude.hpp"

namespace palimpsest::ops {
namespace {

ExtentPrograms extents_like(const Variable& x, std::size_t input) {
  ExtentPrograms result;
  for (std::size_t k = 0; k < x.rank(); ++k) {
    const index_t extent = x.type().shape[k];
    result.push_back(extent == kUnknown ? ExtentProgram::of_input(input, k)
                                        : ExtentProgram(extent));
  }
  return result;
}

Variable scalar_of(const Operand& value, DType other, Device device) {
  return value.is_number() ? value.number().as_variable(other, device) : value.variable();
}

// The first of the arrays is the value.
Variable allocated(SymbolicShape shape) {
  return std::make_shared<Alloc>(std::move(shape.extents))->make_node(shape.arrays).output(0);
}

// Of start, start + step, .. before stop.
index_t count_of(index_t start, index_t stop, index_t step) {
  if (step > 0 ? start >= stop : start <= stop) return 0;
  const auto magnitude = [](index_t from, index_t to) {  // of to - from, which may be 2^64 - 1
    return to > from ? static_cast<std::uint64_t>(to) - static_cast<std::uint64_t>(from)
                     : static_cast<std::uint64_t>(from) - static_cast<std::uint64_t>(to);
  };
  const std::uint64_t n = (magnitude(start, stop) - 1) / magnitude(0, step) + 1;
  if (std::in_range<index_t>(n)) return static_cast<index_t>(n);
  throw OverflowError("[arange] number of elements: got " + std::to_string(n));
}

index_t count_of(double start, double stop, double step) {
  const double n = std::ceil((stop - start) / step);
  if (n < 9e18) return n > 0 ? static_cast<index_t>(n) : 0;
  throw OverflowError("[arange] number of elements: got " + written(n));
}

// Its integer part.
index_t integer_of(const WeakNumber& number) {
  if (number.kind == 0) return number.integer;
  const double value = number.value.real();
  if (std::abs(value) < 0x1p63) return static_cast<index_t>(value);
  throw OverflowError("[arange] got " + written(value) + ", expected a number of int64");
}

Variable filled(double value, const ShapeArgument& shape, DType dtype, Device device) {
  return full(shape, constant(Tensor::scalar(value, device).to(dtype)));
}

}  // namespace

// -- alloc -------------------------------------------------------------------------------------

Apply Alloc::make_node(std::span<const Variable> inputs) const {
  expect_inputs(inputs, std::max<std::size_t>(inputs.size(), 1), name());
  const TensorType& value = inputs[0].type();
  Extents shape = evaluate(extents_, inputs, "alloc");
  check_known_numbers(extents_, "alloc");
  if (is_known(shape)) byte_count(shape, value.dtype);
  if (value.rank() > shape.size()) {
    throw ShapeError("[alloc] number of axes of the value: got " + value.str() +
                     ", expected at most " + std::to_string(shape.size()));
  }
  const std::size_t n_new = shape.size() - value.rank();
  for (std::size_t k = 0; k < value.rank(); ++k) {
    const index_t extent = value.shape[k];
    if (extent == 1) continue;
    if (extent != shape[n_new + k] && extent != kUnknown && shape[n_new + k] != kUnknown) {
      throw ShapeError("[alloc] axis " + std::to_string(n_new + k) + ": got a value " +
                       value.str() + ", expected 1 or the extent in " + to_string(shape));
    }
    if (shape[n_new + k] == kUnknown) shape[n_new + k] = extent;
  }
  return node(inputs, {{value.dtype, std::move(shape), value.device}});
}

std::vector<Extents> Alloc::infer_shapes(const Apply& apply, ExtentsSpan inputs) const {
  Extents shape = evaluate(extents_, inputs, "alloc");
  const Extents& declared = apply.input(0).type().shape;
  const std::size_t n_new = shape.size() - declared.size();
  for (std::size_t k = 0; k < declared.size(); ++k) {
    if (declared[k] != 1 && inputs[0][k] != shape[n_new + k]) {
      throw ShapeError(
          "[alloc] axis " + std::to_string(n_new + k) + ": got a value of extents " +
          to_string(inputs[0]) + ", expected those of " + to_string(shape) +
          "; an axis broadcasts only if it is known to be 1 when the graph is built. " +
          std::string(kBroadcastAdvice));
    }
  }
  return {std::move(shape)};
}

std::vector<Variable> Alloc::pullback(const Apply& apply, CotangentSpan cotangents) const {
  std::vector<Variable> result(apply.input_count());
  result[0] = unbroadcast_to(apply.input(0), cotangents[0]);
  return result;
}

void Alloc::run(RunContext& context) const {
  const MutableView& out = context.output(0);
  const ConstView& value = context.input(0);
  // New leading axes have one element.
  SmallVector<index_t, 8> extents(out.rank(), 1), strides(out.rank(), 0);
  const std::size_t n_new = out.rank() - value.rank();
  for (std::size_t k = 0; k < value.rank(); ++k) {
    extents[n_new + k] = value.extents[k];
    strides[n_new + k] = value.strides[k];
  }
  const ConstView aligned{value.data, value.dtype, extents, strides};
  SmallVector<index_t, 8> wide(out.rank());
  run_copy(stretched(aligned, out.extents, {wide.data(), wide.size()}), out);
}

Variable alloc(const Operand& value, const ShapeArgument& shape) {
  SymbolicShape symbolic = symbolic_shape(shape, {scalar_of(value, DType::bool_, {})}, "alloc");
  return allocated(std::move(symbolic));
}

Variable full(const ShapeArgument& shape, const Operand& value) {
  const Variable scalar = scalar_of(value, DType::bool_, {});
  if (scalar.rank() != 0) {
    throw ShapeError("[full] value: got " + scalar.type().str() +
                     ", expected one of no axes. Try alloc");
  }
  return allocated(symbolic_shape(shape, {scalar}, "full"));
}

Variable zeros(const ShapeArgument& shape, DType dtype, Device device) {
  return filled(0, shape, dtype, device);
}
Variable ones(const ShapeArgument& shape, DType dtype, Device device) {
  return filled(1, shape, dtype, device);
}
Variable empty(const ShapeArgument& shape, DType dtype, Device device) {
  return zeros(shape, dtype, device);
}

Variable full_like(const Variable& x, const Operand& value) {
  const TensorType& type = x.type();
  const Variable scalar = astype(scalar_of(value, type.dtype, type.device), type.dtype);
  if (scalar.rank() != 0) {
    throw ShapeError("[full_like] value: got " + scalar.type().str() + ", expected one of no axes");
  }
  const std::vector<Variable> inputs =
      type.is_fully_known() ? std::vector{scalar} : std::vector{scalar, x};
  return std::make_shared<Alloc>(extents_like(x, 1))->make_node(inputs).output(0);
}
Variable zeros_like(const Variable& x) { return full_like(x, 0); }
Variable ones_like(const Variable& x) { return full_like(x, 1); }
Variable empty_like(const Variable& x) { return zeros_like(x); }

// -- extents as values -------------------------------------------------------------------------

Apply AxisCount::make_node(std::span<const Variable> inputs) const {
  expect_inputs(inputs, 1, name());
  normalize_axes(axes_, inputs[0].rank(), name());
  return node(inputs, {{dtype_, Extents(), inputs[0].type().device}});
}

void AxisCount::run(RunContext& context) const {
  index_t count = 1;
  for (index_t axis : axes_) count *= context.input(0).extents[static_cast<std::size_t>(axis)];
  const ConstView number{&count, DType::int64, {}, {}};
  strided_copy(number, context.output(0));
}

Apply ShapeOf::make_node(std::span<const Variable> inputs) const {
  expect_inputs(inputs, 1, name());
  const auto rank = static_cast<index_t>(inputs[0].rank());
  return node(inputs, {{DType::int64, {rank}, inputs[0].type().device}});
}

void ShapeOf::run(RunContext& context) const {
  const std::span<const index_t> extents = context.input(0).extents;
  const index_t rank = static_cast<index_t>(extents.size()), one = 1;
  strided_copy({extents.data(), DType::int64, {&rank, 1}, {&one, 1}}, context.output(0));
}

Variable shape(const Variable& x) {
  const TensorType& type = x.type();
  if (type.is_fully_known()) {
    return constant(Tensor::from(std::vector<index_t>(type.shape.begin(), type.shape.end()),
                                 Extents{static_cast<index_t>(type.rank())}, type.device));
  }
  return std::make_shared<ShapeOf>()->make_node({&x, 1}).output(0);
}

Variable shape(const Variable& x, index_t axis) {
  axis = normalize_axis(axis, x.rank(), "shape");
  const index_t known = x.type().shape[static_cast<std::size_t>(axis)];
  if (known != kUnknown) return constant(Tensor::scalar<index_t>(known, x.type().device));
  return std::make_shared<AxisCount>(Axes{axis}, DType::int64)->make_node({&x, 1}).output(0);
}

// -- generators --------------------------------------------------------------------------------

Apply Generator::make_node(std::span<const Variable> inputs) const {
  expect_inputs(inputs, inputs.size(), name());
  check_known_numbers(extents_, name());
  return node(inputs, {{dtype_, evaluate(extents_, inputs, name()), device_}});
}

std::vector<Extents> Generator::infer_shapes(const Apply&, ExtentsSpan inputs) const {
  return {evaluate(extents_, inputs, name())};
}

std::string Arange::parameters() const {
  std::string text = written(extents_) + ", " + written(dtype_) + ", " + written(device_);
  if (!is_inexact(dtype())) {
    return text + ", " + parameter("start", numbers_.integer_start) + ", " +
           parameter("step", numbers_.integer_step);
  }
  text += ", start=" + written(numbers_.start) + ", step=" + written(numbers_.step);
  return text + (numbers_.last ? ", last=" + written(*numbers_.last) : "");
}

OpPtr Arange::restored(std::string_view, ParameterText& text) {
  ExtentPrograms extents = text.programs();
  if (extents.size() != 1) throw FormatError("an array of one axis");
  text.expect(", ");
  const DType dtype = text.dtype();
  text.expect(", ");
  const auto device = read_value<Device>(text);
  Arange::Numbers numbers;
  text.expect(", start=");
  if (is_inexact(dtype)) {
    numbers.start = text.number();
    text.expect(", step=");
    numbers.step = text.number();
    if (text.take(", last=")) numbers.last = text.number();
  } else {
    numbers.integer_start = text.integer();
    text.expect(", step=");
    numbers.integer_step = text.integer();
    numbers.start = static_cast<double>(numbers.integer_start);
    numbers.step = static_cast<double>(numbers.integer_step);
  }
  return std::make_shared<Arange>(numbers, std::move(extents[0]), dtype, device);
}

void Arange::run(RunContext& context) const {
  const MutableView& out = context.output(0);
  const index_t n = out.extents[0], stride = out.strides[0];
  visit_dtype(out.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* to = static_cast<T*>(out.data);
    if constexpr (std::is_integral_v<T>) {
      auto value = static_cast<std::uint64_t>(numbers_.integer_start);
      for (index_t i = 0; i < n; ++i, value += static_cast<std::uint64_t>(numbers_.integer_step)) {
        to[i * stride] = static_cast<T>(value);
      }
    } else {
      using Real = decltype(std::real(T{}));
      for (index_t i = 0; i < n; ++i) {
        const double value = numbers_.start + static_cast<double>(i) * numbers_.step;
        to[i * stride] = static_cast<Real>(value);
      }
      if (numbers_.last && n > 0) to[(n - 1) * stride] = static_cast<Real>(*numbers_.last);
    }
  });
}

Variable arange(const Operand& n, DType dtype, Device device) {
  SymbolicShape shape = symbolic_shape({n}, {}, "arange");
  return std::make_shared<Arange>(Arange::Numbers{}, shape.extents[0], dtype, device)
      ->make_node(shape.arrays)
      .output(0);
}

Variable arange(const WeakNumber& start, const WeakNumber& stop, const WeakNumber& step,
                std::optional<DType> dtype, Device device) {
  if (start.kind == 2 || stop.kind == 2 || step.kind == 2) {
    throw DTypeError("[arange] got complex numbers, expected real ones");
  }
  const double first = start.value.real(), last = stop.value.real(), by = step.value.real();
  if (by == 0) throw ValueError("[arange] step: got 0, expected another number");
  const bool integers = start.kind == 0 && stop.kind == 0 && step.kind == 0;
  const index_t n =
      integers ? count_of(start.integer, stop.integer, step.integer) : count_of(first, last, by);
  const DType type = dtype.value_or(integers ? DType::int64 : DType::float64);
  Arange::Numbers numbers{first, by};
  if (!is_inexact(type)) {
    numbers.integer_start = integer_of(start);
    numbers.integer_step = integer_of(step);
  }
  return std::make_shared<Arange>(numbers, ExtentProgram(n), type, device)->make_node({}).output(0);
}

Variable linspace(double first, double last, index_t n, DType dtype, Device device) {
  if (!is_inexact(dtype)) {
    throw DTypeError("[linspace] got " + std::string(name_of(dtype)) +
                     ", expected a floating or complex dtype");
  }
  Arange::Numbers numbers;
  numbers.start = first;
  numbers.step = n > 1 ? (last - first) / static_cast<double>(n - 1) : 0;
  if (n > 1) numbers.last = last;
  return std::make_shared<Arange>(numbers, ExtentProgram(n), dtype, device)
      ->make_node({})
      .output(0);
}

void Eye::run(RunContext& context) const {
  const MutableView& out = context.output(0);
  const std::array<std::byte, 16> zero{};
  strided_fill(zero.data(), out);
  const index_t row = k_ < 0 ? -k_ : 0, column = k_ > 0 ? k_ : 0;
  const index_t n = std::min(out.extents[0] - row, out.extents[1] - column);
  if (n <= 0) return;
  visit_dtype(out.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* to = static_cast<T*>(out.data) + row * out.strides[0] + column * out.strides[1];
    for (index_t i = 0; i < n; ++i) to[i * (out.strides[0] + out.strides[1])] = T(1);
  });
}

Variable eye(const Operand& n, std::optional<Operand> m, index_t k, DType dtype, Device device) {
  SymbolicShape shape = symbolic_shape({n, m.value_or(n)}, {}, "eye");
  return std::make_shared<Eye>(std::move(shape.extents), dtype, device, k)
      ->make_node(shape.arrays)
      .output(0);
}

void register_ops_of_create() {
  register_type<Alloc>();
  register_type<Arange>();
  register_type<AxisCount>();
  register_type<Eye>();
  register_type<ShapeOf>();
}

}  // namespace palimpsest::ops
