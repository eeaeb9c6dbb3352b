// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <shared_mutex>
#include <string>
#include <string_view>

#include "palimpsest/graph/variable.hpp"

namespace palimpsest {

/// The cell that holds the value of a shared variable; any number of functions may use one cell.
///
/// Invariants
///  1. The value always fits type().
///  2. Functions never let two containers share a Storage; a caller who lends one tensor to two
///  does.
///  3. version() rises whenever the value may have changed.
/// Threads  a function that only reads holds the lock shared while it runs, one that updates holds
///          it exclusively; set_value swaps the value and leaves running readers their old one
class Container : public Attachment {
 public:
  Container(TensorType type, Tensor value, std::string name);
  ~Container() override;
  Container(const Container&) = delete;
  Container& operator=(const Container&) = delete;

  const TensorType& type() const { return type_; }
  const std::string& name() const { return name_; }
  std::uint64_t id() const { return id_; }
  std::uint64_t version() const;
  /// Announces a write through a borrowed handle.
  void touch();

  // -- for functions: the caller holds lock() ------------------------------------------------
  std::shared_mutex& lock() { return lock_; }
  const Tensor& value_locked() const { return value_; }
  Tensor& value_locked() { return value_; }
  /// Stores without checks and counts a version; never fails.
  void commit_locked(Tensor&& value) noexcept;

 private:
  friend class SharedVariable;

  const TensorType type_;
  const std::string name_;
  const std::uint64_t id_;  // the global locking order
  mutable std::shared_mutex lock_;
  Tensor value_;
  std::uint64_t version_ = 0;
};

struct SharedOptions {
  std::string name = {};
  /// Use the caller's Storage itself instead of a lazy clone.
  bool borrow = false;
  /// Extents to fix, kUnknown elsewhere; absent: all unknown.
  std::optional<Extents> shape = {};
};
struct BorrowOption {
  bool borrow = false;
};

/// State between calls: a Variable bound to a container. Copies share the container.
class SharedVariable {
 public:
  SharedVariable() = default;
  SharedVariable(TensorType type, const Tensor& value, SharedOptions options = {});

  bool defined() const { return container_ != nullptr; }
  /// The variable to build graphs with.
  const Variable& var() const { return variable_; }
  operator const Variable&() const { return variable_; }
  const std::shared_ptr<Container>& container() const { return container_; }
  const TensorType& type() const { return container_->type(); }
  const std::string& name() const { return container_->name(); }
  bool is(const SharedVariable& other) const { return container_ == other.container_; }

  /// A lazy clone; with borrow the container's own Storage, which a later call may change.
  Tensor get_value(BorrowOption options = {}) const;
  /// Stores a lazy clone, with borrow the caller's Storage. Nothing changes when it throws.
  /// Errors  ShapeError, DTypeError, DeviceError: not of the container's type
  void set_value(const Tensor& value, BorrowOption options = {});
  /// Runs `change` on the value in place, under the container's lock.
  void modify(const std::function<void(Tensor&)>& change);
  /// Stores a value and returns the old one; neither is copied.
  Tensor exchange(const Tensor& value);
  std::uint64_t version() const { return container_->version(); }

 private:
  std::shared_ptr<Container> container_;
  Variable variable_;
};

/// A shared variable of the tensor's dtype and rank; `.shape` fixes extents.
SharedVariable shared(const Tensor& value, SharedOptions options = {});

/// The container behind a variable of a graph; null for other variables.
std::shared_ptr<Container> container_of(const Variable& v);

}  // namespace palimpsest
