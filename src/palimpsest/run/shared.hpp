// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>

#include "palimpsest/base/api.hpp"
#include "palimpsest/run/container.hpp"

namespace PALIMPSEST_API palimpsest {

/// Fixed extents of a shared variable. The default fixes all extents of its first value: graphs
/// then know them, and operators, which need known extents, can be applied to it.
///
///     shared(image);                                // float64 (256, 256)
///     shared(image, {.shape = std::nullopt});       // float64 (?, ?): values of any extents
///     shared(image, {.shape = {std::nullopt, 256}}) // float64 (?, 256)
class SharedShape {
 public:
  SharedShape() = default;
  SharedShape(std::nullopt_t) : is_open_(true) {}
  /// kUnknown is an extent that is not fixed.
  SharedShape(Extents extents) : extents_(std::move(extents)) {}
  SharedShape(std::initializer_list<std::optional<index_t>> extents) : extents_(Extents()) {
    for (const auto& extent : extents) extents_->push_back(extent.value_or(kUnknown));
  }
  /// For a first value of these extents.
  Extents of(const Extents& value) const {
    if (is_open_) return Extents(value.size(), kUnknown);
    return extents_ ? *extents_ : value;
  }

 private:
  bool is_open_ = false;
  std::optional<Extents> extents_;
};

struct SharedOptions {
  std::string name = {};
  /// Use the caller's Storage itself instead of a lazy clone: a write through the caller's tensor
  /// shows in the variable, and an update in place shows in the tensor. A hint: ignored for a
  /// conversion, another device, and a Storage, or bytes of foreign memory, that another variable
  /// holds.
  bool borrow = false;
  /// Values are neither converted nor moved.
  bool strict = false;
  /// See FilterOptions.
  std::optional<bool> allow_downcast = {};
  /// Absent: the extents of the first value are fixed. Later values and updates must have them.
  SharedShape shape = {};
  /// Absent: where the value is.
  std::optional<Device> device = {};
};

/// State between calls: a Variable bound to a container. Copies of the handle are the same
/// variable; clone() is another variable on the same container.
class SharedVariable {
 public:
  SharedVariable() = default;
  /// A container of its own. The errors of filter(); `shape` and `device` of the options are those
  /// of the type.
  SharedVariable(TensorType type, const Value& value, SharedOptions options = {});
  /// Bound to a container that exists. TypeError: another type than the container's.
  SharedVariable(const TensorType& type, std::shared_ptr<Container> container);

  bool defined() const { return container_ != nullptr; }
  /// The variable to build graphs with.
  const Variable& var() const { return variable_; }
  operator const Variable&() const { return variable_; }
  Container& container() const;
  const std::shared_ptr<Container>& container_ptr() const { return container_; }
  SharedVariable clone() const;

  // -- as a Variable: functions that build graphs ------------------------------------------------
  template <class... I>
  Variable operator()(const I&... index) const {
    return variable_(index...);
  }
  Variable operator[](index_t i) const { return variable_[i]; }
  Variable operator[](const Variable& index) const { return variable_[index]; }
  Variable T() const { return variable_.T(); }
  Variable H() const { return variable_.H(); }
  Variable reshape(const ShapeArgument& shape) const { return variable_.reshape(shape); }
  Variable ravel() const { return variable_.ravel(); }
  Variable astype(DType dtype) const { return variable_.astype(dtype); }
  /// The extents in a graph, int64.
  Variable shape() const { return variable_.shape(); }
  Variable shape(index_t axis) const { return variable_.shape(axis); }
  Variable sum(const AxesArgument& axes = {}, bool keepdims = false) const {
    return variable_.sum(axes, keepdims);
  }
  Variable prod(const AxesArgument& axes = {}, bool keepdims = false) const {
    return variable_.prod(axes, keepdims);
  }
  Variable mean(const AxesArgument& axes = {}, bool keepdims = false) const {
    return variable_.mean(axes, keepdims);
  }
  Variable max(const AxesArgument& axes = {}, bool keepdims = false) const {
    return variable_.max(axes, keepdims);
  }
  Variable min(const AxesArgument& axes = {}, bool keepdims = false) const {
    return variable_.min(axes, keepdims);
  }
  Variable any(const AxesArgument& axes = {}, bool keepdims = false) const {
    return variable_.any(axes, keepdims);
  }
  Variable all(const AxesArgument& axes = {}, bool keepdims = false) const {
    return variable_.all(axes, keepdims);
  }
  DType dtype() const { return type().dtype; }
  std::size_t rank() const { return type().rank(); }

  // -- the value ---------------------------------------------------------------------------------
  const TensorType& type() const { return container().type(); }
  const std::string& name() const { return container().name(); }
  /// The extent of the first axis in the graph. ValueError: it is not fixed.
  index_t length() const;
  /// True for the same container.
  bool is(const SharedVariable& other) const { return container_ == other.container_; }

  /// A lazy clone; with borrow the container's own Storage, which a later call may change.
  Tensor get_value(GetOptions options = {}) const { return container().get_value(options); }
  /// Stores a lazy clone, with borrow the caller's Storage. Nothing changes when it throws.
  void set_value(const Value& value, SetOptions options = {}) {
    container().set_value(value, options);
  }
  /// Replaces by zeros; with borrow fills the present buffer, seen by borrowed handles.
  void zero(SetOptions options = {}) { container().zero(options); }
  /// Runs `change` on the value in place, under the container's lock.
  void modify(const std::function<void(Tensor&)>& change) { container().modify(change); }
  /// Stores a value and returns the old one; neither is copied.
  Tensor exchange(Value value) { return container().exchange(std::move(value)); }
  std::uint64_t version() const { return container().version(); }
  /// The new value in every function compiled later that needs this variable and does not say
  /// otherwise. An undefined Variable: none. TypeError: it does not fit.
  void set_default_update(const Variable& expression) {
    container().set_default_update(expression);
  }

 private:
  std::shared_ptr<Container> container_;
  Variable variable_;
};

/// A shared variable of the value's dtype and extents; with `.shape` some or all of these stay
/// open.
/// Errors  TypeError: a Variable as value; ShapeError: a shape that the value does not have
SharedVariable shared(const Value& value, SharedOptions options = {});

}  // namespace palimpsest
