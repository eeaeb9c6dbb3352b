// SPDX-License-Identifier: Apache-2.0
#include "ops/op_runner.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

#include "palimpsest/ops/loop/measured_op.hpp"

namespace palimpsest::testing {
namespace {

constexpr index_t kGuard = 64;

void poison_all(Tensor& t, unsigned char value) {
  std::memset(t.raw_mutable_data(), value, static_cast<std::size_t>(t.nbytes()));
}

bool only(const void* bytes, std::size_t n, unsigned char value) {
  const auto* data = static_cast<const unsigned char*>(bytes);
  return std::all_of(data, data + n, [&](unsigned char b) { return b == value; });
}

// A destination between two guard zones; `whole` is what must be checked afterwards.
Tensor dense_destination(DType dtype, const Extents& extents, Tensor& whole) {
  const auto size = static_cast<index_t>(item_size(dtype));
  whole = Tensor::empty({byte_count(extents, dtype) + 2 * kGuard}, DType::uint8);
  return {whole.storage(), dtype, extents, contiguous_strides(extents), kGuard / size};
}

Tensor strided_destination(DType dtype, const Extents& extents, Tensor& whole) {
  Extents big = extents;
  big[big.size() - 1] = 2 * big.back() + 1;
  whole = Tensor::empty(big, dtype);
  const Tensor gaps = whole(ellipsis, slice(1, {}, 2));
  const Axes first{0};
  return gaps.flip(first);
}

class Scratch {
 public:
  Scratch(std::size_t size, unsigned char poison)
      : size_(size), poison_(poison), memory_(size + 3 * kGuard, poison) {}
  std::span<std::byte> bytes() {
    if (size_ == 0) return {};
    return {reinterpret_cast<std::byte*>(begin()), size_};
  }
  bool guards_are_intact() {
    const auto before = static_cast<std::size_t>(begin() - memory_.data());
    return only(memory_.data(), before, poison_) &&
           only(begin() + size_, memory_.size() - before - size_, poison_);
  }

 private:
  unsigned char* begin() {
    auto address = reinterpret_cast<std::uintptr_t>(memory_.data()) + kGuard;
    return memory_.data() + kGuard + (kGuard - address % kGuard) % kGuard;
  }
  std::size_t size_;
  unsigned char poison_;
  std::vector<unsigned char> memory_;
};

// All bytes outside the destination must still be poison.
bool surroundings_are_intact(const Tensor& whole, const Tensor& out, bool strided,
                             unsigned char poison) {
  if (!strided) {
    const auto* bytes = static_cast<const unsigned char*>(whole.raw_data());
    const auto n = static_cast<std::size_t>(whole.nbytes());
    return only(bytes, kGuard, poison) && only(bytes + n - kGuard, kGuard, poison);
  }
  static_cast<void>(out);
  const Tensor gaps = whole(ellipsis, slice(0, {}, 2)).clone();
  return only(gaps.raw_data(), static_cast<std::size_t>(gaps.nbytes()), poison);
}

}  // namespace

std::vector<Extents> result_extents(const Apply& node, const std::vector<Tensor>& inputs) {
  std::vector<Extents> extents;
  std::vector<ConstView> views;
  for (const Tensor& t : inputs) {
    extents.push_back(t.shape());
    views.push_back(t.view_of());
  }
  const auto* measured = dynamic_cast<const ops::MeasuredOp*>(&node.op());
  return measured ? measured->measured_shapes(node, views) : node.op().infer_shapes(node, extents);
}

std::vector<Tensor> further_destinations(const Apply& node, const std::vector<Tensor>& inputs) {
  const std::vector<Extents> extents = result_extents(node, inputs);
  std::vector<Tensor> made;
  for (std::size_t k = 1; k < extents.size(); ++k) {
    made.push_back(Tensor::empty(extents[k], node.output(k).dtype()));
  }
  return made;
}

Tensor run_op(const Apply& node, std::vector<Tensor> inputs, RunOptions options) {
  const Op& op = node.op();
  std::vector<Layout> layouts;
  for (const Tensor& t : inputs) {
    layouts.push_back({t.dtype(), t.shape(), t.strides(), 0});
  }
  const Extents shape = result_extents(node, inputs).at(0);
  EXPECT_TRUE(node.output(0).type().admits(shape))
      << op.str() << ": " << node.output(0).type().str() << " " << to_string(shape);
  const std::set<int> destroyed = overwritten_inputs(node);
  std::vector<Tensor> before;
  for (const Tensor& t : inputs) before.push_back(t.clone());

  const DType dtype = node.output(0).dtype();
  Tensor out, whole;
  const bool strided = options.strided_output && !shape.empty();
  if (!destroyed.empty()) {
    Tensor& target = inputs[static_cast<std::size_t>(*destroyed.begin())];
    target.raw_mutable_data();
    out = Tensor(target.storage(), dtype, target.shape(), target.strides(),
                 target.numel() > 0 ? target.offset() : 0);
  } else {
    out =
        strided ? strided_destination(dtype, shape, whole) : dense_destination(dtype, shape, whole);
    poison_all(whole, options.poison);
  }
  std::vector<Tensor> others = further_destinations(node, inputs);
  std::vector<MutableView> outputs{out.mutable_view()};
  for (Tensor& t : others) outputs.push_back(t.mutable_view());
  std::vector<ConstView> views;
  for (const Tensor& t : inputs) views.push_back(t.view_of());
  Scratch scratch(op.scratch_bytes(node, layouts), options.poison);
  RunContext context(views, outputs, scratch.bytes());
  op.run(context);

  EXPECT_TRUE(scratch.guards_are_intact()) << op.str() << " wrote outside its scratch";
  if (destroyed.empty()) {
    EXPECT_TRUE(surroundings_are_intact(whole, out, strided, options.poison))
        << op.str() << " wrote outside its destination";
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!destroyed.empty() && shares_storage(inputs[i], out)) continue;
    EXPECT_TRUE(equal(inputs[i], before[i])) << op.str() << " changed its input " << i;
  }
  return out;
}

Tensor evaluate(const Variable& y, const Bindings& bindings) {
  std::map<const VariableNode*, Tensor> values;
  std::vector<Variable> bound;
  for (const auto& [variable, value] : bindings) {
    values[variable.node()] = value;
    bound.push_back(variable);
  }
  const auto value_of = [&](const Variable& v) {
    return v.is_constant() ? v.constant_value() : values.at(v.node());
  };
  for (const Apply& node : applications_of({&y, 1}, bound)) {
    std::vector<Tensor> inputs;
    for (const Variable& v : node.inputs()) inputs.push_back(value_of(v));
    values[node.output(0).node()] = run_op(node, std::move(inputs));
  }
  return value_of(y);
}

Variable input_like(const Tensor& value, bool known) {
  TensorType type{value.dtype(), value.shape(), value.device()};
  for (index_t& extent : type.shape) {
    if (!known && extent != 1) extent = kUnknown;
  }
  return make_input(type);
}

Tensor with_gaps(const Tensor& t) {
  Extents big = t.shape();
  if (big.empty()) big.push_back(0);
  big[big.size() - 1] = 2 * big.back() + 2;
  Tensor whole = Tensor::empty(big, t.dtype());
  poison_all(whole, 0xFF);
  Tensor view = t.rank() == 0 ? whole(index_t{1}) : whole(ellipsis, slice(1, -1, 2));
  view.copy_from(t);
  return view;
}

Tensor with_negative_strides(const Tensor& t) {
  Axes axes;
  for (std::size_t k = 0; k < t.rank(); ++k) axes.push_back(static_cast<index_t>(k));
  return t.flip(axes).clone().flip(axes);
}

Tensor column_major(const Tensor& t) {
  Axes axes;
  for (std::size_t k = t.rank(); k-- > 0;) axes.push_back(static_cast<index_t>(k));
  return t.permute(axes).clone().permute(axes);
}

double real_inner(const Tensor& a, const Tensor& b) {
  const auto x = a.to(DType::complex128).to_vector<std::complex<double>>();
  const auto y = b.to(DType::complex128).to_vector<std::complex<double>>();
  EXPECT_EQ(x.size(), y.size());
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) sum += (std::conj(x[i]) * y[i]).real();
  return sum;
}

double distance(const Tensor& a, const Tensor& b) {
  if (a.shape() != b.shape() || a.dtype() != b.dtype()) return INFINITY;
  const auto x = a.to(DType::complex128).to_vector<std::complex<double>>();
  const auto y = b.to(DType::complex128).to_vector<std::complex<double>>();
  double largest = 1, error = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto same = [](double a_part, double b_part) {
      return a_part == b_part || (std::isnan(a_part) && std::isnan(b_part));
    };
    if (same(x[i].real(), y[i].real()) && same(x[i].imag(), y[i].imag())) continue;
    const double here = std::abs(x[i] - y[i]);
    if (std::isnan(here)) return INFINITY;
    largest = std::max(largest, std::abs(y[i]));
    error = std::max(error, here);
  }
  return error / largest;
}

double tolerance(DType dtype) {
  switch (real_of(dtype)) {
    case DType::float32:
      return 1e-5;
    case DType::float64:
      return 1e-13;
    default:
      return 0;
  }
}

}  // namespace palimpsest::testing
