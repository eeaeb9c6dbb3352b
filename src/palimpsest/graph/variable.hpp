// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <complex>
#include <concepts>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "palimpsest/base/api.hpp"
#include "palimpsest/graph/type.hpp"
#include "palimpsest/tensor/tensor.hpp"

namespace PALIMPSEST_API palimpsest {

class Op;
using OpPtr = std::shared_ptr<const Op>;
class Apply;
class StackTrace;
struct VariableNode;
struct ApplyNode;

/// Object that another layer attaches to a root variable, such as its container.
class Attachment {
 public:
  virtual ~Attachment() = default;
};

/// Marks on a variable for rewrites and checks.
struct VariableTags {
  /// True: never overwritten by a rewrite.
  bool indestructible = false;
  /// False: not looked at by the guard that searches for NaN.
  bool nan_guard = true;
  friend bool operator==(const VariableTags&, const VariableTags&) = default;
};

class Operand;
class IndexEntry;
class ShapeArgument;

/// Axes of a reduction: all if none are given, no axis for an empty list.
class AxesArgument {
 public:
  AxesArgument() = default;
  AxesArgument(std::integral auto axis) : axes_(Axes{static_cast<index_t>(axis)}) {}
  AxesArgument(std::initializer_list<index_t> axes) : axes_(Axes(axes)) {}
  AxesArgument(Axes axes) : axes_(std::move(axes)) {}
  AxesArgument(std::optional<Axes> axes) : axes_(std::move(axes)) {}
  const std::optional<Axes>& value() const { return axes_; }

 private:
  std::optional<Axes> axes_;
};

/// A bool of an options struct that takes no number: of `max(x, {0, 1})` the 1 is refused rather
/// than read as `keepdims`.
class Flag {
 public:
  template <std::same_as<bool> T>
  constexpr Flag(T value) : value_(value) {}
  constexpr operator bool() const { return value_; }

 private:
  bool value_;
};

/// A value of a graph: a handle, compared by identity. A root is an input, a constant or a shared
/// variable; every other variable is an output of an Apply.
///
/// Aliases  copying the handle keeps identity; graphs that users build are never changed
/// Cost     O(1); a handle keeps all that the value is computed from alive
class Variable {
 public:
  Variable() = default;
  explicit Variable(std::shared_ptr<VariableNode> node) : node_(std::move(node)) {}
  /// constant(value): so a tensor stands wherever a graph takes a variable.
  Variable(const Tensor& value);

  bool defined() const { return node_ != nullptr; }
  const TensorType& type() const;
  DType dtype() const { return type().dtype; }
  std::size_t rank() const { return type().rank(); }
  const std::string& name() const;
  /// Gives the variable a name. Names are for reading and need not be unique.
  const Variable& named(std::string name) const;
  /// The application that computes it; undefined for a root.
  Apply owner() const;
  /// Position among the outputs of its owner.
  int index() const;
  bool is_root() const;
  bool is_constant() const;
  /// A lazy clone of a constant's value, so that nothing done to it reaches the graph or a compiled
  /// function. TypeError for others.
  Tensor constant_value() const;
  Attachment* attachment() const;
  /// Tags of the variable, shared by all handles; copies and clones of the variable keep them.
  VariableTags& tags() const;
  bool is_indestructible() const { return tags().indestructible; }
  void set_indestructible(bool value = true) const { tags().indestructible = value; }
  /// Another variable for the same value, with the same name and tags: a root of its own, or the
  /// output of another application of the same op to the same inputs.
  Variable copy() const;
  /// The name, or `<float64 (?, 3)>`.
  std::string str() const;

  VariableNode* node() const { return node_.get(); }
  const std::shared_ptr<VariableNode>& handle() const { return node_; }
  friend bool operator==(const Variable& a, const Variable& b) {
    return a.node_.get() == b.node_.get();
  }
  /// A variable and a tensor are never the same handle; elementwise equality is ops::eq.
  friend bool operator==(const Variable& a, const Tensor& b) = delete;

  // -- functions of layer ops/, as members; elementwise equality is ops::eq ----------------------
  /// Brackets: numbers, slice(a, b, s), all, newaxis, ellipsis, and integer or bool arrays.
  template <class... I>
  Variable operator()(const I&... index) const {
    return index_with({IndexEntry(index)...});
  }
  Variable index_with(const std::vector<IndexEntry>& index) const;
  Variable operator[](index_t i) const;
  Variable operator[](const Variable& index) const;
  /// For an indexed value x(...): x with the indexed elements replaced, or increased, by the value.
  /// Repeated indices: set keeps the last, inc adds every one. ValueError for any other value.
  Variable set(const Operand& value) const;
  Variable inc(const Operand& value) const;
  /// With the order of the axes reversed.
  Variable T() const;
  /// T(), conjugated.
  Variable H() const;
  Variable reshape(const ShapeArgument& shape) const;
  Variable ravel() const;
  Variable astype(DType dtype) const;
  /// The extents, int64 (rank,); one of them, int64 ().
  Variable shape() const;
  Variable shape(index_t axis) const;
  Variable sum(const AxesArgument& axes = {}, bool keepdims = false) const;
  Variable prod(const AxesArgument& axes = {}, bool keepdims = false) const;
  Variable mean(const AxesArgument& axes = {}, bool keepdims = false) const;
  Variable max(const AxesArgument& axes = {}, bool keepdims = false) const;
  Variable min(const AxesArgument& axes = {}, bool keepdims = false) const;
  Variable any(const AxesArgument& axes = {}, bool keepdims = false) const;
  Variable all(const AxesArgument& axes = {}, bool keepdims = false) const;

 private:
  std::shared_ptr<VariableNode> node_;
};

/// A number next to a Variable is weak: it takes the other operand's dtype if its kind fits
/// (`x_f32 * 2.0` is float32, `x_i32 * 2.0` float64, `x_f32 * 1i` complex64).
struct WeakNumber {
  template <std::integral T>
  WeakNumber(T v) : value(static_cast<double>(v)), integer(static_cast<index_t>(v)), kind(0) {}
  template <std::floating_point T>
  WeakNumber(T v) : value(static_cast<double>(v)), kind(1) {}
  template <std::floating_point T>
  WeakNumber(std::complex<T> v) : value(v), kind(2) {}
  /// The 0-d constant next to an operand of this dtype.
  Variable as_variable(DType other, Device device = {}) const;
  /// The dtype of that constant.
  DType dtype_next_to(DType other) const;

  std::complex<double> value;
  index_t integer = 0;
  int kind = 0;  // 0 integer, 1 real, 2 complex
};

/// An argument of a builder: a Variable, a Tensor, which becomes a constant, or a number that is
/// weak next to them.
class Operand {
 public:
  Operand(const Variable& v) : variable_(v) {}
  template <class T>
  requires(!std::same_as<T, Variable> && std::convertible_to<const T&, const Variable&>)
      Operand(const T& v)
      : variable_(static_cast<const Variable&>(v)) {}
  template <class T>
  requires std::constructible_from<WeakNumber, T> Operand(T number) : number_(number) {}
  bool is_number() const { return number_.has_value(); }
  const WeakNumber& number() const { return *number_; }
  const Variable& variable() const { return variable_; }

 private:
  Variable variable_;
  std::optional<WeakNumber> number_;
};

/// The extents of a result: numbers, and integer variables that are computed from extents of
/// arrays, such as x.shape(0) * 2. So a plan knows them before anything runs.
class ShapeArgument {
 public:
  ShapeArgument() = default;
  ShapeArgument(std::initializer_list<Operand> extents) : extents_(extents) {}
  ShapeArgument(std::vector<Operand> extents) : extents_(std::move(extents)) {}
  ShapeArgument(const Extents& extents) : extents_(extents.begin(), extents.end()) {}
  const std::vector<Operand>& extents() const { return extents_; }

 private:
  std::vector<Operand> extents_;
};

/// An entry of an index into a Variable: of a basic index, or an array of integers or bools.
class IndexEntry {
 public:
  IndexEntry(std::integral auto i) : basic_(static_cast<index_t>(i)) {}
  IndexEntry(const Slice& s) : basic_(s) {}
  IndexEntry(All a) : basic_(a) {}
  IndexEntry(NewAxis a) : basic_(a) {}
  IndexEntry(EllipsisIndex e) : basic_(e) {}
  IndexEntry(const Index& i) : basic_(i) {}
  IndexEntry(const Variable& array) : array_(array) {}
  template <class T>
  requires(!std::same_as<T, Variable> && std::convertible_to<const T&, const Variable&>)
      IndexEntry(const T& array)
      : array_(static_cast<const Variable&>(array)) {}
  bool is_array() const { return array_.defined(); }
  const Index& basic() const { return basic_; }
  const Variable& array() const { return array_; }

 private:
  Index basic_;
  Variable array_;
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

/// The node behind a Variable, for this library: nothing of it is to be written. Outputs live
/// inside their ApplyNode, so a handle to one keeps the application alive and no cycle of ownership
/// can arise.
struct VariableNode {
  ~VariableNode();

  TensorType type;
  std::string name;
  ApplyNode* owner = nullptr;
  int index = 0;
  bool is_constant = false;
  /// For a value read by an index with arrays: a basic index was applied before, so the indexed
  /// variable is two applications above.
  bool is_indexed_twice = false;
  VariableTags tags;
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
  /// The rewrite it is from, and where a user built it if that is kept
  /// (Config::exception_verbosity).
  std::shared_ptr<const StackTrace> built_at;
};

/// A root that a function takes as an argument.
Variable make_input(TensorType type, std::string name = {});
/// A read-only value; shares data lazily with the tensor given. Data of a mapped file, or in other
/// memory of others, are copied: they might change. The type has the given device, or that of the
/// tensor; data of an accelerator are kept on the host until a plan needs them there.
Variable constant(const Tensor& value, std::string name = {}, std::optional<Device> device = {});
namespace detail {
/// The same without the copy: nobody writes the data while the constant lives.
Variable lent_constant(const Tensor& value, std::string name = {},
                       std::optional<Device> device = {});
}  // namespace detail

template <class T>
concept ConstantNumber = std::integral<T> || std::floating_point<T> ||
    std::same_as<T, std::complex<float>> || std::same_as<T, std::complex<double>>;
/// A number as a value of its own: signed integers are int64, unsigned ones uint64, `7.0` is
/// float64 and `7.0f` float32. Tensor::scalar<T> gives any dtype exactly.
template <ConstantNumber T>
Variable constant(T value, std::string name = {}) {
  using Wide =
      std::conditional_t<std::integral<T> && !std::same_as<T, bool>,
                         std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>, T>;
  return constant(Tensor::scalar<Wide>(static_cast<Wide>(value)), std::move(name));
}
/// Numbers along one axis, of the dtype that each by itself would have.
template <ConstantNumber T>
Variable constant(const std::vector<T>& values, std::string name = {}) {
  return constant(values.empty() ? Tensor::zeros({0}, constant(T{}).dtype())
                                 : Tensor::from(values).to(constant(T{}).dtype()),
                  std::move(name));
}

/// A Variable is itself; a Tensor, a number and a vector of numbers become constants.
inline Variable as_variable(const Variable& v) { return v; }
inline Variable as_variable(const Tensor& value) { return constant(value); }
template <ConstantNumber T>
Variable as_variable(T value) {
  return constant(value);
}
template <ConstantNumber T>
Variable as_variable(const std::vector<T>& values) {
  return constant(values);
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
