// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "palimpsest/base/api.hpp"
#include "palimpsest/run/shared.hpp"

namespace PALIMPSEST_API palimpsest {

/// Elements of an array: of its values in row-major order, counted in items of `dtype`, as which
/// the bytes are read.
struct ElementLayout {
  DType dtype = DType::float64;
  Extents shape;
  Strides strides;
  index_t offset = 0;
  friend bool operator==(const ElementLayout&, const ElementLayout&) = default;
};

/// Data of an operator: a shared variable of fixed shape, dtype and device, a view of one, or
/// absent. A handle.
///
/// Aliases  copies are the same parameter: a write to one reaches every operator that holds it, and
///          its views. Tensors of the caller, given or returned, are independent of it
class Parameter {
 public:
  /// Absent.
  Parameter() = default;
  /// A new variable with a lazy clone of the value.
  Parameter(const Tensor& value);
  /// A parameter with the value of a shared variable. ValueError: its type leaves an extent open.
  Parameter(SharedVariable variable);
  /// A new variable on the caller's own Storage.
  static Parameter borrow(const Tensor& value);
  /// Made as from a tensor, and marked as one that is to be learned.
  static Parameter trainable(const Tensor& value);
  /// A value computed from other variables: recomputed before use when one of them was written.
  /// Evaluates the expression now.
  /// Errors   MissingInputError: the expression has a root that is not a constant or shared
  ///          variable
  static Parameter derived(const Variable& expression);
  /// The same with a given value; stale: the expression is evaluated on first use.
  static Parameter derived(const Variable& expression, const Tensor& value, bool stale);

  bool present() const { return variable_.defined(); }
  /// The variable to build graphs with; of a view, a view of the variable. ValueError "absent".
  const Variable& var() const;
  const TensorType& type() const { return var().type(); }
  DType dtype() const { return type().dtype; }
  const Extents& shape() const { return type().shape; }
  /// True for the same variable and the same view of it. Two absent parameters are the same.
  bool is(const Parameter& other) const;
  /// True for the same Storage.
  bool shares_storage(const Parameter& other) const;
  /// A derived value is trainable if one of its sources is. Graphs then compute it anew each time,
  /// so that gradients reach the source.
  bool is_trainable() const { return trainable_; }
  Parameter as_trainable(bool is = true) const;
  /// A lazy clone.
  Tensor value() const;
  /// The value in the variable's own Storage, which a later write changes.
  Tensor borrowed() const;
  /// Through a view: writes that part of the variable.
  /// Errors   ShapeError, DTypeError, DeviceError: not of the parameter's type
  void set_value(const Tensor& value);
  /// Runs `change` on the value in place; through a view, on that part.
  void modify(const std::function<void(Tensor&)>& change);
  /// Announces a write through a borrowed handle.
  void touch();
  std::uint64_t version() const;
  /// The whole variable, also of a view.
  const SharedVariable& variable() const { return variable_; }

  /// The part start[k] .. start[k] + extents[k] - 1 along every axis k. Nothing is copied.
  /// Errors   ShapeError: another number of axes; ValueError "out of range"
  Parameter view(const Extents& start, const Extents& extents) const;
  /// Does as view(), along one axis.
  Parameter narrow(std::size_t axis, index_t start, index_t length) const;
  /// Slices as of a tensor, one per axis.
  /// Errors   ShapeError: another number of axes; ValueError "step": 0
  Parameter view(const std::vector<Slice>& slices) const;
  /// Any elements of the whole variable, through any dtype.
  /// Errors   ShapeError "outside", numbers of axes that differ
  Parameter view(const ElementLayout& of_variable) const;
  bool is_view() const { return view_ != nullptr; }
  /// Layout of the elements of the variable that it shows.
  ElementLayout layout() const;
  /// The start, along each axis of the variable, of a view that is a box of it; zeros otherwise.
  Extents view_start() const;

  bool is_derived() const { return derivation_ != nullptr; }
  /// The graph that a derived value is computed by. ValueError when it is not derived.
  const Variable& expression() const;
  /// The versions of its sources that a derived value was computed from, none when it never was;
  /// and those that they have now. The same order in both.
  std::optional<std::vector<std::uint64_t>> computed_from() const;
  std::vector<std::uint64_t> source_versions() const;
  bool is_stale() const { return is_derived() && computed_from() != source_versions(); }
  /// Recomputes a derived value that is stale.
  void refresh() const;

 private:
  struct Derivation;
  struct View;

  const Variable& whole() const;

  SharedVariable variable_;
  std::shared_ptr<const View> view_;
  std::shared_ptr<Derivation> derivation_;
  bool trainable_ = false;
};

/// A parameter per tensor. Tensors that share a Storage become views of one variable, which
/// overlap as before. Its value is a lazy clone of the elements that they use.
std::vector<Parameter> parameters(const std::vector<Tensor>& values);

}  // namespace palimpsest
