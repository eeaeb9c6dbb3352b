// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "palimpsest/graph/type.hpp"
#include "palimpsest/tensor/tensor.hpp"

namespace palimpsest {

class Op;
using OpPtr = std::shared_ptr<const Op>;
class Apply;
struct VariableNode;
struct ApplyNode;

/// What another layer hangs on a root variable, such as the container of a shared variable.
class Attachment {
 public:
  virtual ~Attachment() = default;
};

/// One value of a graph: a handle, compared by identity. A root is an input, a constant or a shared
/// variable; every other variable is an output of an Apply.
///
/// Aliases  copying the handle keeps identity; graphs that users build are never changed
/// Cost     O(1); a handle keeps all that the value is computed from alive
class Variable {
 public:
  Variable() = default;
  explicit Variable(std::shared_ptr<VariableNode> node) : node_(std::move(node)) {}

  bool defined() const { return node_ != nullptr; }
  const TensorType& type() const;
  DType dtype() const { return type().dtype; }
  std::size_t rank() const { return type().rank(); }
  const std::string& name() const;
  /// Gives the variable a name; names are for people and need not be unique.
  const Variable& named(std::string name) const;
  /// The application that computes it; undefined for a root.
  Apply owner() const;
  /// Position among the outputs of its owner.
  int index() const;
  bool is_root() const;
  bool is_constant() const;
  /// The value of a constant; TypeError for others.
  const Tensor& constant_value() const;
  Attachment* attachment() const;
  /// Never to be overwritten, whatever a rewrite would gain.
  bool is_indestructible() const;
  void set_indestructible(bool value = true) const;
  /// The name, or `<float64 (?, 3)>`.
  std::string str() const;

  VariableNode* node() const { return node_.get(); }
  const std::shared_ptr<VariableNode>& handle() const { return node_; }
  friend bool operator==(const Variable& a, const Variable& b) {
    return a.node_.get() == b.node_.get();
  }

 private:
  std::shared_ptr<VariableNode> node_;
};

/// An Op applied to inputs: a handle, compared by identity.
class Apply {
 public:
  Apply() = default;
  explicit Apply(std::shared_ptr<ApplyNode> node) : node_(std::move(node)) {}
  /// A new application; the types are those of the outputs. Called by Op::make_node.
  static Apply make(OpPtr op, std::span<const Variable> inputs, std::vector<TensorType> types);

  bool defined() const { return node_ != nullptr; }
  const Op& op() const;
  const OpPtr& op_ptr() const;
  std::size_t input_count() const;
  std::size_t output_count() const;
  const Variable& input(std::size_t i) const;
  std::span<const Variable> inputs() const;
  Variable output(std::size_t i) const;
  std::vector<Variable> outputs() const;
  ApplyNode* node() const { return node_.get(); }
  friend bool operator==(const Apply& a, const Apply& b) { return a.node_.get() == b.node_.get(); }

 private:
  std::shared_ptr<ApplyNode> node_;
};

/// The node behind a Variable. Outputs live inside their ApplyNode, so a handle to one keeps the
/// application alive and no cycle of ownership can arise.
struct VariableNode {
  TensorType type;
  std::string name;
  ApplyNode* owner = nullptr;
  int index = 0;
  bool is_constant = false;
  bool is_indestructible = false;
  Tensor value;                            // of a constant
  std::shared_ptr<Attachment> attachment;  // of a shared variable
};

/// The node behind an Apply. Only FunctionGraph changes inputs, and only in nodes it has cloned.
struct ApplyNode : std::enable_shared_from_this<ApplyNode> {
  ApplyNode(OpPtr applied, std::span<const Variable> arguments, std::vector<TensorType> types);
  ~ApplyNode();  // iterative: a chain may be longer than the stack is deep
  ApplyNode(const ApplyNode&) = delete;
  ApplyNode& operator=(const ApplyNode&) = delete;

  OpPtr op;
  std::vector<Variable> inputs;
  std::vector<VariableNode> outputs;
};

/// A root that a function takes as an argument.
Variable make_input(TensorType type, std::string name = {});
/// A read-only value; shares data lazily with the tensor given.
Variable constant(const Tensor& value, std::string name = {});
template <class T>
Variable scalar_constant(T value) {
  return constant(Tensor::scalar<T>(value));
}

/// Every application that the outputs need, inputs before users; stops at `inputs`. Any depth.
std::vector<Apply> applications_of(std::span<const Variable> outputs,
                                   std::span<const Variable> inputs = {});

/// Copies a graph: outputs over `inputs`, which are mapped to `replacements`. Roots that are not
/// mapped stay the same variables. Names and tags pass to the copies.
std::vector<Variable> clone_graph(std::span<const Variable> outputs,
                                  std::span<const Variable> inputs,
                                  std::span<const Variable> replacements);

}  // namespace palimpsest

template <>
struct std::hash<palimpsest::Variable> {
  std::size_t operator()(const palimpsest::Variable& v) const noexcept {
    return std::hash<const void*>{}(v.node());
  }
};
template <>
struct std::hash<palimpsest::Apply> {
  std::size_t operator()(const palimpsest::Apply& a) const noexcept {
    return std::hash<const void*>{}(a.node());
  }
};
