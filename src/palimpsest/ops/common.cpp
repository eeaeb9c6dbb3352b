// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/ops/common.hpp"

#include <algorithm>
#include <unordered_set>

#include "palimpsest/ops/elementwise/elementwise.hpp"
#include "palimpsest/ops/reduce/reduce.hpp"
#include "palimpsest/ops/shape/shape_op.hpp"
#include "palimpsest/ops/shape/shape_ops.hpp"
#include "palimpsest/ops/shape/strided_op.hpp"

namespace palimpsest::ops {
namespace {

// True if the op shows some elements several times.
bool is_broadcast_view(const Op& op) {
  if (dynamic_cast<const BroadcastTo*>(&op) || dynamic_cast<const BroadcastLike*>(&op)) return true;
  const auto* const strided = dynamic_cast<const Strided*>(&op);
  return strided && strided->overlaps_itself();
}

// Inputs are the cotangent of the result and the input.
class RefusedCotangent final : public Op {
 public:
  explicit RefusedCotangent(std::string text) : text_(std::move(text)) {}
  std::string name() const override { return "RefusedCotangent"; }
  std::string parameters() const override { return text_; }
  Apply make_node(std::span<const Variable> inputs) const override {
    return node(inputs, {inputs[1].type()});
  }
  std::vector<Extents> infer_shapes(const Apply&, ExtentsSpan) const override {
    throw NotSupported(text_);
  }
  Linearity linear_in(const Apply&, int in) const override {
    return in == 0 ? Linearity::real : Linearity::no;
  }
  std::vector<Variable> pullback(const Apply&, CotangentSpan) const override {
    throw NotSupported(text_);
  }
  void run(RunContext&) const override { throw NotSupported(text_); }

 private:
  std::string text_;
};

}  // namespace

void expect_inputs(std::span<const Variable> inputs, std::size_t n, std::string_view who) {
  if (inputs.size() != n) {
    throw ValueError("[" + std::string(who) + "] number of inputs: got " +
                     std::to_string(inputs.size()) + ", expected " + std::to_string(n));
  }
  for (std::size_t i = 0; i < n; ++i) {
    if (!inputs[i].defined()) {
      throw ValueError("[" + std::string(who) + "] input " + std::to_string(i) +
                       ": got an undefined variable");
    }
  }
}

std::vector<Extents> shapes_of(std::span<const Variable> variables) {
  std::vector<Extents> result;
  for (const Variable& v : variables) result.push_back(v.type().shape);
  return result;
}

bool contains(const Axes& axes, std::size_t axis) {
  return std::find(axes.begin(), axes.end(), static_cast<index_t>(axis)) != axes.end();
}

Device common_device(std::span<const Variable> inputs, std::string_view who) {
  if (inputs.empty()) return {};
  // Axes of numbers that broadcast are no reason to refuse them.
  const auto is_number = [](const Variable& v) {
    return std::ranges::all_of(v.type().shape, [](index_t extent) { return extent == 1; });
  };
  const auto follows = [&](const Variable& v) {
    return v.type().device.is_host() && (v.is_constant() || is_number(v));
  };
  const auto decides = std::ranges::find_if_not(inputs, follows);
  const Device device = (decides == inputs.end() ? inputs[0] : *decides).type().device;
  for (const Variable& v : inputs) {
    if (v.type().device != device && !follows(v)) {
      throw DeviceError("[" + std::string(who) + "] inputs on several devices: got " +
                        device.str() + " and " + v.type().device.str() +
                        ". Try to move them to one device first");
    }
  }
  return device;
}

index_t agreed_extent(std::span<const index_t> a, std::span<const index_t> b, std::size_t axis,
                      std::string_view who) {
  if (a[axis] == kUnknown) return b[axis];
  if (b[axis] != kUnknown && a[axis] != b[axis]) {
    throw ShapeError("[" + std::string(who) + "] axis " + std::to_string(axis) +
                     ": extents differ: got " + extents_text(a) + " and " + extents_text(b));
  }
  return a[axis];
}

void expect_same_extent(const Variable& a, std::size_t i, const Variable& b, std::size_t j,
                        std::string_view who) {
  const index_t m = a.type().shape[i], n = b.type().shape[j];
  if (m == n || m == kUnknown || n == kUnknown) return;
  throw ShapeError("[" + std::string(who) + "] axis " + std::to_string(i) +
                   " of the first and axis " + std::to_string(j) +
                   " of the second operand: got the extents " + std::to_string(m) + " and " +
                   std::to_string(n) + " of " + extents_text(a.type().shape) + " and " +
                   extents_text(b.type().shape) + ", expected equal ones");
}

Variable with_rank(const Variable& x, std::size_t rank) {
  if (x.rank() >= rank) return x;
  const std::size_t n_new = rank - x.rank();
  if (x.is_constant()) {
    Extents shape(n_new, 1);
    for (index_t extent : x.type().shape) shape.push_back(extent);
    return constant(x.constant_value().reshape(shape), x.name(), x.type().device);
  }
  Axes axes;
  for (std::size_t i = 0; i < n_new; ++i) axes.push_back(static_cast<index_t>(i));
  return expand_dims(x, axes);
}

std::vector<Variable> with_equal_ranks(std::span<const Variable> inputs) {
  std::size_t rank = 0;
  for (const Variable& v : inputs) rank = std::max(rank, v.rank());
  std::vector<Variable> result;
  for (const Variable& v : inputs) result.push_back(with_rank(v, rank));
  return result;
}

bool may_overlap_itself(const Variable& v) {
  std::vector<Variable> list;  // variables still to look at
  std::unordered_set<const VariableNode*> seen;
  for (Variable top = v;;) {
    const Apply owner = top.owner();
    if (owner.defined()) {
      if (is_broadcast_view(owner.op())) return true;
      // An array that a step overwrote was no broadcast view: only views need following.
      const AliasMap views = owner.op().view_map(owner);
      if (const auto it = views.find(top.index()); it != views.end()) {
        for (int i : it->second) {
          const Variable& input = owner.input(static_cast<std::size_t>(i));
          if (seen.insert(input.node()).second) list.push_back(input);
        }
      }
    }
    if (list.empty()) return false;
    top = std::move(list.back());
    list.pop_back();
  }
}

void expect_own_elements(const Variable& v, std::string_view who) {
  if (!may_overlap_itself(v)) return;
  throw ValueError("[" + std::string(who) + "] got " + v.str() +
                   ", a broadcast view, expected an array that can be overwritten");
}

ConstView stretched(const ConstView& view, std::span<const index_t> extents,
                    std::span<index_t> strides) {
  for (std::size_t k = 0; k < extents.size(); ++k) {
    strides[k] = view.extents[k] == 1 && extents[k] != 1 ? 0 : view.strides[k];
  }
  return {view.data, view.dtype, extents, strides};
}

Variable as_cotangent_of(const Variable& x, const Variable& w) {
  if (!is_inexact(x.dtype())) return {};
  Variable result = w;
  if (!is_complex(x.dtype()) && is_complex(w.dtype())) result = real(result);
  Axes axes;
  for (std::size_t k = 0; k < x.rank(); ++k) {
    if (x.type().shape[k] == 1 && w.type().shape[k] != 1) axes.push_back(static_cast<index_t>(k));
  }
  if (!axes.empty()) result = sum(result, {axes, true});
  return astype(result, x.dtype());
}

Variable unbroadcast_to(const Variable& x, const Variable& w) {
  const Variable sums = as_cotangent_of(with_rank(x, w.rank()), w);
  if (!sums.defined()) return sums;
  Axes leading;
  for (std::size_t k = x.rank(); k < w.rank(); ++k) {
    leading.push_back(static_cast<index_t>(k - x.rank()));
  }
  return squeeze(sums, leading);
}

Variable refused_cotangent(const Variable& w, const Variable& input, std::string text) {
  const Variable inputs[] = {w, input};
  return std::make_shared<RefusedCotangent>(std::move(text))->make_node(inputs).output(0);
}

std::string parameter(std::string_view key, std::span<const index_t> values) {
  return std::string(key) + "=" + to_string(values);
}
std::string parameter(std::string_view key, index_t value) {
  return std::string(key) + "=" + std::to_string(value);
}

}  // namespace palimpsest::ops
