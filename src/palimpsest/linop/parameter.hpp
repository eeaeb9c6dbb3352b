// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "palimpsest/compile/shared.hpp"

namespace palimpsest {

/// Data of an operator: a shared variable of fixed shape, dtype and device, or absent. A handle.
///
/// Aliases  copies are the same parameter: writing one is seen by every operator that holds it.
/// What
///          a caller passed in or got out is independent of it
class Parameter {
 public:
  /// Absent.
  Parameter() = default;
  /// A new variable with a lazy clone of the value.
  Parameter(const Tensor& value);
  /// That variable. ValueError when its type leaves an extent open.
  Parameter(SharedVariable variable);
  /// A new variable on the caller's own Storage.
  static Parameter borrow(const Tensor& value);
  /// A value computed from other variables: recomputed before use when one of them was written.
  /// Evaluates the expression now.
  /// Errors   MissingInputError: the expression has a root that is no constant or shared variable
  static Parameter derived(const Variable& expression);

  bool present() const { return variable_.defined(); }
  /// The variable to build graphs with. ValueError "absent".
  const Variable& var() const;
  const TensorType& type() const { return var().type(); }
  DType dtype() const { return type().dtype; }
  const Extents& shape() const { return type().shape; }
  /// The same variable? Two absent parameters are the same.
  bool is(const Parameter& other) const;
  /// The same Storage?
  bool shares_storage(const Parameter& other) const;
  /// A lazy clone.
  Tensor value() const;
  /// Errors   ShapeError, DTypeError, DeviceError: not of the parameter's type
  void set_value(const Tensor& value);
  /// Runs `change` on the value in place.
  void modify(const std::function<void(Tensor&)>& change);
  /// Announces a write through a borrowed handle.
  void touch();
  std::uint64_t version() const;
  const SharedVariable& variable() const { return variable_; }

  bool is_derived() const { return derivation_ != nullptr; }
  /// Recomputes a derived value that is stale.
  void refresh() const;

 private:
  struct Derivation;

  SharedVariable variable_;
  std::shared_ptr<Derivation> derivation_;
};

}  // namespace palimpsest
