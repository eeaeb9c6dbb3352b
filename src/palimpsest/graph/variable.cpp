// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/graph/variable.hpp"

#include <algorithm>
#include <utility>

#include "palimpsest/base/config.hpp"
#include "palimpsest/base/deep_release.hpp"
#include "palimpsest/base/pointer_map.hpp"
#include "palimpsest/base/stack_trace.hpp"
#include "palimpsest/graph/marks.hpp"
#include "palimpsest/graph/op.hpp"
#include "palimpsest/graph/origin.hpp"

namespace palimpsest {
namespace {

const VariableNode& checked(const std::shared_ptr<VariableNode>& node) {
  if (!node) throw ValueError("[Variable] undefined: expected a variable that was made");
  return *node;
}

}  // namespace

Variable::Variable(const Tensor& value) : Variable(constant(value)) {}

const TensorType& Variable::type() const { return checked(node_).type; }
const std::string& Variable::name() const { return checked(node_).name; }

const Variable& Variable::named(std::string name) const {
  checked(node_);
  node_->name = std::move(name);
  return *this;
}

Apply Variable::owner() const {
  ApplyNode* owner = checked(node_).owner;
  return owner ? Apply(owner->shared_from_this()) : Apply();
}

int Variable::index() const { return checked(node_).index; }
bool Variable::is_root() const { return checked(node_).owner == nullptr; }
bool Variable::is_constant() const { return checked(node_).is_constant; }

Tensor Variable::constant_value() const {
  if (!is_constant()) throw TypeError("[constant_value] " + str() + " is not a constant");
  return node_->value.lazy_clone();
}

Attachment* Variable::attachment() const { return checked(node_).attachment.get(); }

VariableTags& Variable::tags() const {
  checked(node_);
  return node_->tags;
}

Variable Variable::copy() const {
  const VariableNode& from = checked(node_);
  if (!from.owner) return Variable(std::make_shared<VariableNode>(from));
  const auto index = static_cast<std::size_t>(from.index);
  const Variable result = applied_again(owner(), from.owner->inputs).output(index);
  copy_marks(*this, result);
  return result;
}

std::string Variable::str() const {
  if (!node_) return "<undefined>";
  return node_->name.empty() ? "<" + node_->type.str() + ">" : node_->name;
}

Apply Apply::make(OpPtr op, std::span<const Variable> inputs, std::vector<TensorType> types) {
  Apply made(std::make_shared<ApplyNode>(std::move(op), inputs, std::move(types)));
  if (made.output_count() > 0) made.node()->outputs[0].attachment = OriginScope::present();
  const OriginSource source = origin_source();
  const bool is_low = config().exception_verbosity == Verbosity::low;
  if (!source && is_low) return made;
  const auto limit = static_cast<std::size_t>(std::max<index_t>(config().traceback_limit, 0));
  auto& built_at = made.node()->built_at;
  if (source) built_at = source(is_low ? 1 : limit);
  if (!built_at && !is_low) built_at = std::make_shared<StackTrace>(StackTrace::capture(limit));
  return made;
}

const Op& Apply::op() const { return *node_->op; }
const OpPtr& Apply::op_ptr() const { return node_->op; }
std::size_t Apply::input_count() const { return node_->inputs.size(); }
std::size_t Apply::output_count() const { return node_->outputs.size(); }
const Variable& Apply::input(std::size_t i) const { return node_->inputs[i]; }
std::span<const Variable> Apply::inputs() const { return node_->inputs; }

Variable Apply::output(std::size_t i) const {
  return Variable(std::shared_ptr<VariableNode>(node_, &node_->outputs.at(i)));
}

std::vector<Variable> Apply::outputs() const {
  std::vector<Variable> result;
  for (std::size_t i = 0; i < output_count(); ++i) result.push_back(output(i));
  return result;
}

ApplyNode::ApplyNode(OpPtr applied, std::span<const Variable> arguments,
                     std::vector<TensorType> types)
    : op(std::move(applied)), inputs(arguments.begin(), arguments.end()), outputs(types.size()) {
  for (std::size_t i = 0; i < types.size(); ++i) {
    outputs[i].type = std::move(types[i]);
    outputs[i].owner = this;
    outputs[i].index = static_cast<int>(i);
  }
}

// The attachment of another layer may hold variables, too.
VariableNode::~VariableNode() {
  if (attachment) release_deep(std::move(attachment));
}

// Releasing the inputs of a node may release their owners, and so on down a chain.
ApplyNode::~ApplyNode() {
  if (op) release_deep(std::move(op));  // it may hold variables
  for (Variable& input : inputs) {
    std::shared_ptr<const void> handle = input.handle();
    input = {};
    release_deep(std::move(handle));
  }
}

Variable make_input(TensorType type, std::string name) {
  auto node = std::make_shared<VariableNode>();
  node->type = std::move(type);
  node->name = std::move(name);
  return Variable(std::move(node));
}

Variable detail::lent_constant(const Tensor& value, std::string name,
                               std::optional<Device> device) {
  auto node = std::make_shared<VariableNode>();
  node->type = TensorType{value.dtype(), value.shape(), device.value_or(value.device())};
  node->name = std::move(name);
  node->is_constant = true;
  node->value = on_host(value).lazy_clone();
  return Variable(std::move(node));
}

Variable constant(const Tensor& value, std::string name, std::optional<Device> device) {
  Variable made = detail::lent_constant(value, std::move(name), device);
  // It never changes: others may write a mapped file, or read-only memory in spite of a promise.
  Storage& kept = made.handle()->value.storage();
  if (kept.state() == StorageState::foreign_read_only) kept.mutable_data();
  return made;
}

std::vector<Apply> applications_of(std::span<const Variable> outputs,
                                   std::span<const Variable> inputs) {
  PointerSet<const VariableNode> stop;
  for (const Variable& v : inputs) stop.insert(v.node());
  std::vector<Apply> order;
  PointerSet<const ApplyNode> seen;
  std::vector<std::pair<Apply, std::size_t>> stack;  // node, next input to visit
  const auto visit = [&](const Variable& v) {
    if (stop.contains(v.node())) return;
    Apply owner = v.owner();
    if (owner.defined() && seen.insert(owner.node())) stack.emplace_back(std::move(owner), 0);
  };
  for (const Variable& output : outputs) {
    visit(output);
    while (!stack.empty()) {
      auto& [node, next] = stack.back();
      if (next < node.input_count()) {
        const Variable& input = node.input(next++);
        visit(input);
      } else {
        order.push_back(std::move(node));
        stack.pop_back();
      }
    }
  }
  return order;
}

std::vector<Variable> clone_graph(std::span<const Variable> outputs,
                                  std::span<const Variable> inputs,
                                  std::span<const Variable> replacements) {
  return map_graph(outputs, inputs, replacements, applied_again);
}

}  // namespace palimpsest
