// SPDX-License-Identifier: Apache-2.0
// A fault of each kind, put into every op of the registry by a wrapper, is found at that op with the
// class of the table (debugmode.md 3).
#include <gtest/gtest.h>

#include <functional>
#include <map>

#include "contract/applied.hpp"
#include "palimpsest/compile/debug/debug_mode.hpp"
#include "palimpsest/compile/function.hpp"

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
  other_implementation,
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

// As the op within, but for one fault.
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
    return fault_ == Fault::wrong_region ? nothing(a, in) : inner_->view_region(a, out, in);
  }
  Region write_region(const Apply& a, int in) const override {
    return fault_ == Fault::wrong_region ? nothing(a, in) : inner_->write_region(a, in);
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
  std::vector<std::string> implementations() const override {
    return fault_ == Fault::other_implementation ? std::vector<std::string>{"default", "other"}
                                                 : inner_->implementations();
  }
  void run(RunContext& context) const override;

 private:
  // An empty part of the input.
  static Region nothing(const Apply& a, int in) {
    const Variable& v = a.input(static_cast<std::size_t>(in));
    return Region::lattice(0, {{0, 1}}, static_cast<index_t>(item_size(v.dtype())));
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
    case Fault::other_implementation:
      // The sign and the exponent of a floating number, the sign of an integer.
      if (context.implementation() == "other") {
        const std::size_t last = item_size(real_of(context.output(0).dtype)) - 1;
        output[last] = static_cast<unsigned char>(output[last] ^
                                                  (is_bool(context.output(0).dtype) ? 1 : 0x40));
      }
      return;
    case Fault::unset_scratch:
      // The bit in which two patterns of poison differ.
      output[0] = static_cast<unsigned char>(
          output[0] ^ (static_cast<unsigned char>(context.scratch().back()) >> 2 & 1));
      return;
    case Fault::no_fail:
      throw ShapeError("it fails");
    default:
      return;
  }
}

// Can this fault be put into this node?
bool applies(const Applied& a, Fault fault) {
  const bool has_input = a.node.input_count() > 0 && a.values[0].numel() > 0;
  const std::vector<Extents> extents = [&] {
    std::vector<Extents> list;
    for (const Tensor& t : a.values) list.push_back(t.shape());
    return a.node.op().infer_shapes(a.node, list);
  }();
  const bool has_output = element_count(extents[0]) > 0;
  switch (fault) {
    case Fault::undeclared_write:
    case Fault::read_past_the_end:
      return has_input && a.values[0].is_contiguous();
    case Fault::result_in_input:
      return has_input && a.node.op().view_map(a.node).empty() &&
             a.node.input(0).dtype() == a.node.output(0).dtype() &&
             a.values[0].shape() == extents[0];
    case Fault::wrong_region:
      return has_input && has_output && !a.node.op().view_map(a.node).empty();
    case Fault::none:
    case Fault::no_fail:
      return true;
    default:
      return has_output;
  }
}

std::string outcome(const Applied& a, Fault fault) {
  const auto op = std::make_shared<const Faulty>(a.node.op_ptr(), fault);
  const Apply node = op->make_node(a.node.inputs());
  std::vector<In> inputs;
  std::vector<Tensor> values;
  std::vector<Variable> seen;
  for (std::size_t i = 0; i < node.input_count(); ++i) {
    const Variable& v = node.input(i);
    if (v.is_constant() || std::find(seen.begin(), seen.end(), v) != seen.end()) continue;
    seen.push_back(v);
    inputs.push_back(v);
    values.push_back(a.values[i]);
  }
  const Function f =
      function(inputs, node.outputs(),
               {.mode = DebugMode({.patience = 1, .check_finite = false, .preallocated = {}})});
  std::vector<Tensor> results(f.output_count());
  try {
    f.call(values, results);
  } catch (const DebugModeError& error) {
    EXPECT_EQ(error.node().op().name(), op->name()) << error.what();
    const std::string text = error.what();
    const std::size_t begin = text.find(": ") + 2;
    return text.substr(begin, text.find(']') - begin);
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing";
}

TEST(OpFaults, AreFoundAtTheOpWithTheRightClass) {
  const std::map<Fault, std::string> expected = {
      {Fault::none, "nothing"},
      {Fault::undeclared_write, "BadDestroyMap"},
      {Fault::wrong_region, "BadViewMap"},
      {Fault::result_in_input, "BadViewMap"},
      {Fault::read_past_the_end, "BadAccess"},
      {Fault::write_past_the_end, "BadAccess"},
      {Fault::other_implementation, "BadThunkOutput"},
      {Fault::unset_scratch, "BadThunkOutput"},
      {Fault::no_fail, "BadNoFail"},
  };
  std::map<Fault, int> tried;
  for_each_sample([&](const Applied& a) {
    for (const auto& [fault, name] : expected) {
      if (!applies(a, fault)) continue;
      ++tried[fault];
      EXPECT_EQ(outcome(a, fault), name) << static_cast<int>(fault);
    }
  });
  for (const auto& [fault, name] : expected) EXPECT_GT(tried[fault], 20) << static_cast<int>(fault);
}

}  // namespace
}  // namespace palimpsest
