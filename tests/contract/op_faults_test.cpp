// SPDX-License-Identifier: Apache-2.0
// A fault of each kind, put into every op of the registry by a wrapper, is found at that op, with
// the error class of the table.
#include <gtest/gtest.h>

#include <functional>
#include <map>

#include "contract/applied.hpp"
#include "ops/op_runner.hpp"
#include "palimpsest/compile/function.hpp"
#include "palimpsest/inspect/debug/debug_mode.hpp"
#include "palimpsest/ops/loop/measured_op.hpp"

namespace palimpsest {
namespace {

using testing::Applied;
using testing::for_each_sample;

enum class Fault {
  none,
  undeclared_write,
  wrong_region,
  result_in_input,
  read_past_the_end,
  write_past_the_end,
  unset_scratch,
  no_fail,
};

index_t span_bytes(const ConstView& v) {
  index_t highest = 0;
  for (std::size_t k = 0; k < v.rank(); ++k) {
    if (v.extents[k] == 0) return 0;
    highest += v.strides[k] > 0 ? v.strides[k] * (v.extents[k] - 1) : 0;
  }
  return (highest + 1) * static_cast<index_t>(item_size(v.dtype));
}

// Behaves as the wrapped op, except for one fault.
class Faulty final : public Op {
 public:
  Faulty(OpPtr inner, Fault fault) : inner_(std::move(inner)), fault_(fault) {}
  std::string name() const override { return "Faulty" + inner_->name(); }
  std::string parameters() const override {
    return inner_->parameters() + " fault=" + std::to_string(static_cast<int>(fault_));
  }
  Apply make_node(std::span<const Variable> inputs) const override {
    std::vector<TensorType> types;
    for (const Variable& v : inner_->make_node(inputs).outputs()) types.push_back(v.type());
    return node(inputs, types);
  }
  AliasMap view_map(const Apply& a) const override { return inner_->view_map(a); }
  AliasMap destroy_map(const Apply& a) const override { return inner_->destroy_map(a); }
  std::set<int> destroyed_inputs(const Apply& a) const override {
    return inner_->destroyed_inputs(a);
  }
  IndexPairs tolerate_same(const Apply& a) const override { return inner_->tolerate_same(a); }
  IndexPairs tolerate_aliased(const Apply& a) const override { return inner_->tolerate_aliased(a); }
  Region view_region(const Apply& a, int out, int in) const override {
    return fault_ == Fault::wrong_region ? one_element(a, in) : inner_->view_region(a, out, in);
  }
  Region write_region(const Apply& a, int in) const override {
    return fault_ == Fault::wrong_region ? one_element(a, in) : inner_->write_region(a, in);
  }
  std::optional<Layout> view_layout(const Apply& a, int out, const Layout& in) const override {
    return inner_->view_layout(a, out, in);
  }
  std::vector<Extents> infer_shapes(const Apply& a, std::span<const Extents> in) const override {
    return inner_->infer_shapes(a, in);
  }
  std::size_t scratch_bytes(const Apply& a, std::span<const Layout> in) const override {
    const std::size_t bytes = inner_->scratch_bytes(a, in);
    return fault_ == Fault::unset_scratch ? bytes + 64 : bytes;
  }
  bool can_fail() const override { return fault_ != Fault::no_fail; }
  double tolerance(const Apply& a) const override { return inner_->tolerance(a); }
  void run(RunContext& context) const override;

 private:
  // The first element of the input.
  static Region one_element(const Apply& a, int in) {
    const Variable& v = a.input(static_cast<std::size_t>(in));
    return Region::lattice(0, {{1, 1}}, static_cast<index_t>(item_size(v.dtype())));
  }

  OpPtr inner_;
  Fault fault_;
};

void Faulty::run(RunContext& context) const {
  inner_->run(context);
  const ConstView& in = context.inputs().empty() ? ConstView{} : context.input(0);
  auto* const input = static_cast<volatile unsigned char*>(const_cast<void*>(in.data));
  auto* const output = static_cast<volatile unsigned char*>(context.output(0).data);
  switch (fault_) {
    case Fault::undeclared_write:
      input[0] = static_cast<unsigned char>(input[0]);
      return;
    case Fault::result_in_input:
      context.set_output(0, in);
      return;
    case Fault::read_past_the_end:
      static_cast<void>(input[span_bytes(in)]);
      return;
    case Fault::write_past_the_end:
      output[span_bytes(context.output(0))] = 1;
      return;
    case Fault::unset_scratch:
      // Flips the bit in which two poison patterns differ.
      output[0] = static_cast<unsigned char>(
          output[0] ^ (static_cast<unsigned char>(context.scratch().back()) >> 2 & 1));
      return;
    case Fault::no_fail:
      throw ShapeError("it fails");
    default:
      return;
  }
}

// Is output 0 a view of input 0 that shows more than its first element?
bool is_long_view(const Applied& a, const Extents& extents) {
  const AliasMap views = a.node.op().view_map(a.node);
  const Tensor& t = a.values[0];
  if (views != AliasMap{{0, {0}}} || element_count(extents) < 2 || t.numel() < 2) return false;
  return a.node.op().view_layout(a.node, 0, {t.dtype(), t.shape(), t.strides(), 0}).has_value();
}

// Can this fault be put into this node?
bool applies(const Applied& a, Fault fault) {
  const bool has_input = a.node.input_count() > 0 && a.values[0].numel() > 0;
  std::vector<Extents> of_inputs;
  for (const Tensor& t : a.values) of_inputs.push_back(t.shape());
  const Extents extents = a.node.op().infer_shapes(a.node, of_inputs)[0];
  const bool has_output = element_count(extents) > 0;
  const DType out = a.node.output(0).dtype();
  switch (fault) {
    case Fault::undeclared_write:
    case Fault::read_past_the_end:
      return has_input && a.values[0].is_contiguous();
    case Fault::result_in_input:
      return has_input && a.node.op().view_map(a.node).empty() && a.node.input(0).dtype() == out &&
             a.values[0].shape() == extents;
    case Fault::wrong_region:
      return has_input && is_long_view(a, extents);
    case Fault::none:
    case Fault::no_fail:
      return true;
    case Fault::unset_scratch:
      // Results that are NaN, such as logarithms of integers below 0, have many irrelevant bits.
      return has_output && (!is_inexact(out) || !has_input || is_inexact(a.values[0].dtype()));
    default:
      return has_output;
  }
}

Outputs outputs_of(const Apply& node) {
  const std::vector<Variable> list = node.outputs();
  return std::vector<Out>(list.begin(), list.end());
}

// The report of DebugMode about the node; its inputs are lent if it overwrites one.
std::string outcome(const Apply& node, const std::vector<Tensor>& given) {
  const bool lent = !overwritten_inputs(node).empty();
  std::vector<In> inputs;
  std::vector<Tensor> values;
  std::vector<Variable> seen;
  for (std::size_t i = 0; i < node.input_count(); ++i) {
    const Variable& v = node.input(i);
    if (v.is_constant() || std::find(seen.begin(), seen.end(), v) != seen.end()) continue;
    seen.push_back(v);
    inputs.push_back(In(v, {.is_mutable = lent, .borrow = lent}));
    values.push_back(lent ? given[i].clone() : given[i]);
  }
  try {
    const Function f =
        function(inputs, outputs_of(node),
                 {.mode = DebugMode({.patience = 1, .check_finite = false, .preallocated = {}}),
                  .accept_inplace = true});
    std::vector<Tensor> results(f.output_count());
    f.call(values, results);
  } catch (const DebugModeError& error) {
    EXPECT_EQ(error.node().op().name(), node.op().name()) << error.what();
    const std::string text = error.what();
    const std::size_t begin = text.find(": ") + 2;
    return text.substr(begin, text.find(']') - begin);
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing";
}

std::string outcome(const Applied& a, Fault fault) {
  const auto op = std::make_shared<const Faulty>(a.node.op_ptr(), fault);
  return outcome(op->make_node(a.node.inputs()), a.values);
}

TEST(OpFaults, AreFoundAtTheOpWithTheRightClass) {
  const std::map<Fault, std::string> expected = {
      {Fault::none, "nothing"},
      {Fault::undeclared_write, "BadDestroyMap"},
      {Fault::wrong_region, "BadViewMap"},
      {Fault::result_in_input, "BadViewMap"},
      {Fault::read_past_the_end, "BadAccess"},
      {Fault::write_past_the_end, "BadAccess"},
      {Fault::unset_scratch, "BadThunkOutput"},
      {Fault::no_fail, "BadNoFail"},
  };
  std::map<Fault, int> tried;
  for_each_sample([&](const Applied& a) {
    // The call itself runs measured ops, with memory of the measured extents.
    if (dynamic_cast<const ops::MeasuredOp*>(&a.node.op())) return;
    for (const auto& [fault, name] : expected) {
      if (!applies(a, fault)) continue;
      ++tried[fault];
      EXPECT_EQ(outcome(a, fault), name) << static_cast<int>(fault);
    }
  });
  for (const auto& [fault, name] : expected) EXPECT_GT(tried[fault], 20) << static_cast<int>(fault);
}

// In-place variants that write a whole input but declare one element.
TEST(OpFaults, WritesBeyondTheDeclaredRegionAreFound) {
  int tried = 0;
  for_each_sample([&](const Applied& a) {
    for (int i = 0; i < static_cast<int>(a.node.input_count()); ++i) {
      const OpPtr in_place = a.node.op().inplace_on_inputs(a.node, {i});
      const Tensor& target = a.values[static_cast<std::size_t>(i)];
      if (!in_place || a.node.input(static_cast<std::size_t>(i)).is_constant()) continue;
      const Apply right = in_place->make_node(a.node.inputs());
      const bool is_whole = in_place->write_region(right, i).is_whole();
      if (!is_whole || target.numel() < 2) continue;
      const auto changes_the_last = [&] {
        const Tensor result = testing::run_op(a.node, a.values);
        if (result.dtype() != target.dtype()) return false;
        const Tensor now = result.view({-1}), old = target.contiguous().view({-1});
        return !equal(now(slice(1, {})), old(slice(1, {})));
      };
      if (!changes_the_last()) continue;
      ++tried;
      const auto op = std::make_shared<const Faulty>(in_place, Fault::wrong_region);
      EXPECT_EQ(outcome(op->make_node(a.node.inputs()), a.values), "BadDestroyMap") << op->str();
    }
  });
  EXPECT_GT(tried, 100);
}

}  // namespace
}  // namespace palimpsest
