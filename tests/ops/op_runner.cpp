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

bool only(const void* bytes, std::size_t n, unsigned char value) {
  const auto* data = static_cast<const unsigned char*>(bytes);
  return std::all_of(data, data + n, [&](unsigned char b) { return b == value; });
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
  const std::vector<Extents> shapes = result_extents(node, inputs);
  const Extents& shape = shapes.at(0);
  EXPECT_TRUE(node.output(0).type().admits(shape))
      << op.str() << ": " << node.output(0).type().str() << " " << to_string(shape);
  const std::set<int> destroyed = overwritten_inputs(node);
  std::vector<Tensor> before;
  for (const Tensor& t : inputs) before.push_back(t.clone());

  std::vector<GuardedWindow> windows;
  for (std::size_t k = 0; k < shapes.size(); ++k) {
    windows.emplace_back(shapes[k], node.output(k).dtype(), options.layout);
    windows.back().fill_bytes(options.poison);
  }
  std::vector<Tensor> outs;
  for (const GuardedWindow& window : windows) outs.push_back(window.tensor());
  Tensor around;  // the destroyed input
  if (!destroyed.empty()) {
    Tensor& target = inputs[static_cast<std::size_t>(*destroyed.begin())];
    target.raw_mutable_data();
    outs[0] = Tensor(target.storage(), outs[0].dtype(), target.shape(), target.strides(),
                     target.numel() > 0 ? target.offset() : 0);
    around = storage_bytes(outs[0]);
  }
  std::vector<MutableView> outputs;
  for (Tensor& t : outs) outputs.push_back(t.mutable_view());
  std::vector<ConstView> views;
  for (const Tensor& t : inputs) views.push_back(t.view_of());
  Scratch scratch(op.scratch_bytes(node, layouts), options.poison);
  RunContext context(views, outputs, scratch.bytes());
  op.run(context);

  EXPECT_TRUE(scratch.guards_are_intact()) << op.str() << " wrote outside its scratch";
  for (std::size_t k = 0; k < windows.size(); ++k) {
    EXPECT_TRUE(windows[k].is_intact()) << op.str() << " wrote beside its destination " << k;
  }
  if (around.defined()) {
    EXPECT_FALSE(first_change_beside(outs[0], around)) << op.str() << " wrote beside its input";
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!destroyed.empty() && shares_storage(inputs[i], outs[0])) continue;
    EXPECT_TRUE(equal(inputs[i], before[i])) << op.str() << " changed its input " << i;
  }
  return outs[0];
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
  std::memset(whole.raw_mutable_data(), 0xFF, static_cast<std::size_t>(whole.nbytes()));
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
