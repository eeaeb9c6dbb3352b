// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "palimpsest/base/api.hpp"
#include "palimpsest/base/call_lock.hpp"
#include "palimpsest/run/value.hpp"

namespace PALIMPSEST_API palimpsest {

/// Name of a container and rules for the values that it takes.
struct ContainerOptions {
  std::string name = {};
  /// Use the caller's Storage itself instead of a lazy clone, unless it, or its memory, belongs to
  /// another container or to a function, as a borrowed result does.
  bool borrow = false;
  /// Values are neither converted nor moved.
  bool strict = false;
  /// See FilterOptions.
  std::optional<bool> allow_downcast = {};
};
struct GetOptions {
  /// The container's own Storage: a write shows in the container, and a later call may change it.
  bool borrow = false;
  /// On the container's device, instead of the one where the first value came from; that is the
  /// host for a first value on an accelerator.
  bool return_internal_type = false;
};
struct SetOptions {
  /// Option of ContainerOptions.
  bool borrow = false;
};

/// replacing: exclusive, and the present value does not matter.
enum class HoldMode { shared, exclusive, replacing };

class Container;

/// Containers that the calling thread holds in one scope. The record keeps a thread from waiting
/// for itself, and lets the only thread of a forked child keep its holds.
///
/// Threads  entered, asked and left by one
class HeldScope {
 public:
  HeldScope(const HeldScope&) = delete;
  HeldScope& operator=(const HeldScope&) = delete;
  virtual bool holds(const Container& container) const = 0;
  /// In the child: Container::keep_hold of all that it holds.
  virtual void keep_in_child() const noexcept = 0;

  /// True if the calling thread has entered one.
  static bool any_here() { return newest_ != nullptr; }
  static bool holds_here(const Container& container);
  static void keep_all_in_child() noexcept;

 protected:
  HeldScope() = default;
  ~HeldScope();
  void enter() noexcept;

 private:
  static constinit thread_local HeldScope* newest_;
  HeldScope *older_ = nullptr, *newer_ = nullptr;
  bool is_entered_ = false;
};

/// The rule by which the value of a container follows from those of others.
///
/// Threads  all members may be called concurrently
class Derivation {
 public:
  virtual ~Derivation() = default;
  /// The containers that it reads, each once.
  virtual std::span<const std::shared_ptr<Container>> sources() const = 0;
  /// True if the present value was computed from the present values of the sources. Never waits for
  /// a thread that may wait for a container.
  virtual bool is_fresh() const = 0;
  /// The value for these values of the sources; locks no container.
  virtual Tensor value_for(std::span<const Tensor> source_values) const = 0;
  /// Brings the container up to date.
  virtual void renew(Container& container) = 0;
};

/// The cell that holds the value of a shared variable; any number of functions may use one cell.
///
/// Invariants
///  1. The value fits type(), and its elements do not overlap one another. A parameter's first
///     value may be stretched; it is copied before it is written in place.
///  2. Two containers never hold one Storage, nor does one hold that of a frame, even for borrowed
///     values. Nor do they hold bytes of one buffer, segment or file in two Storages, if one of
///     the two is written in place.
///  3. version() rises whenever the value may have changed.
/// Threads  all members may be called concurrently. A container that the calling thread holds
///          already (from within modify() or a step of a function) is a StateError
class Container : public Attachment, public std::enable_shared_from_this<Container> {
 public:
  /// The errors of filter().
  Container(TensorType type, const Value& value, ContainerOptions options = {});
  ~Container() override;
  Container(const Container&) = delete;
  Container& operator=(const Container&) = delete;

  const TensorType& type() const { return type_; }
  const std::string& name() const { return name_; }
  bool strict() const { return strict_; }
  std::optional<bool> allow_downcast() const { return allow_downcast_; }
  /// Device of the first value.
  Device home() const { return home_; }
  std::uint64_t id() const { return id_; }

  /// The value in the container's own Storage.
  Tensor value() const { return get_value({.borrow = true, .return_internal_type = true}); }
  Tensor get_value(GetOptions options = {}) const;
  /// The old buffer is dropped, never written into. Nothing changes when it throws.
  void set_value(const Value& value, SetOptions options = {});
  /// Replaces by zeros; with borrow fills the present buffer.
  void zero(SetOptions options = {});
  /// Runs `change` on the value in place. If that throws, the bytes that it wrote stay.
  void modify(const std::function<void(Tensor&)>& change);
  /// Stores a value and returns the old one; neither is copied.
  Tensor exchange(Value value);

  std::uint64_t version() const { return version_.load(std::memory_order_acquire); }
  /// Announces a write through a borrowed handle.
  void touch() { count_version(); }

  /// Gives it a value that follows from others: functions bring it up to date before they read it.
  /// Call it before anybody else knows the container.
  void set_derivation(std::shared_ptr<Derivation> derivation) {
    derivation_ = std::move(derivation);
  }
  /// Null if the value follows from no other.
  const Derivation* derivation() const { return derivation_.get(); }
  /// StateError if the calling thread holds a source of the value.
  void renew() {
    if (derivation_) derivation_->renew(*this);
  }

  /// The value that functions give it unless told otherwise; undefined for none.
  void set_default_update(const Variable& expression);
  Variable default_update() const;

  // -- for functions ---------------------------------------------------------------------------
  /// StateError if the calling thread holds it.
  void check_not_held(std::string_view doing) const {
    if (HeldScope::any_here()) [[unlikely]]
      check_not_held_here(doing);
  }
  /// Locks it for the calling thread, which does not hold it and has a HeldScope that will say so.
  /// Several are taken in the order of their ids. StateError if the value was lost by fork():
  /// another thread was writing it.
  void hold(HoldMode mode, std::string_view doing) const {
    mode == HoldMode::shared ? lock_.lock_shared() : lock_.lock();
    if (lock_.is_torn() && mode != HoldMode::replacing) [[unlikely]]
      throw_lost(mode, doing);
  }
  void release(HoldMode mode) const noexcept {
    mode == HoldMode::shared ? lock_.unlock_shared() : lock_.unlock();
  }
  /// Prefetches the memory of hold() and held_value().
  void prefetch() const { __builtin_prefetch(&lock_, 1); }
  /// In a child, for the thread that holds it since before fork().
  void keep_hold(HoldMode mode) const noexcept {
    mode == HoldMode::shared ? lock_.keep_shared() : lock_.keep();
  }
  /// The caller holds it.
  const Tensor& held_value() const { return value_; }
  Tensor& held_value() { return value_; }
  /// Stores without checks and counts a version; never fails. The caller holds it exclusively and
  /// gives a Storage without another owner, claimed for this container.
  void commit(Tensor&& value) noexcept;
  void count_version() noexcept { version_.fetch_add(1, std::memory_order_acq_rel); }

 private:
  void check_not_held_here(std::string_view doing) const;
  [[noreturn]] void throw_lost(HoldMode mode, std::string_view doing) const;
  std::string who() const;
  Tensor admitted(const Value& value, bool borrow);
  void store(Tensor value) noexcept;

  const TensorType type_;
  const std::string name_;
  const bool strict_;
  const std::optional<bool> allow_downcast_;
  const std::uint64_t id_;  // the order in which functions lock containers
  Device home_;
  std::shared_ptr<Derivation> derivation_;
  // The members that a call touches begin a cache line: calls go through thousands of containers.
  alignas(64) mutable CallLock lock_;
  std::atomic<std::uint64_t> version_{0};
  Tensor value_;  // guarded by lock_
  struct DefaultUpdate;
  std::unique_ptr<DefaultUpdate> default_update_;  // guarded by lock_
};

/// Holds a container while it lives. StateError if the calling thread holds it already.
class ContainerHold final : private HeldScope {
 public:
  ContainerHold(const Container& container, HoldMode mode, std::string_view who)
      : container_(container), mode_(mode) {
    container_.check_not_held(who);
    container_.hold(mode_, who);
    enter();
  }
  ~ContainerHold() { container_.release(mode_); }

 private:
  bool holds(const Container& container) const override { return &container == &container_; }
  void keep_in_child() const noexcept override { container_.keep_hold(mode_); }

  const Container& container_;
  HoldMode mode_;
};

/// Holds some containers for reading while it lives. StateError if the calling thread holds one
/// already.
class HeldContainers final : private HeldScope {
 public:
  HeldContainers(std::span<const std::shared_ptr<Container>> containers, std::string_view doing);
  ~HeldContainers();
  /// Releases the containers that no other holder has: no thread is left that could write them.
  void let_go_of_unshared() noexcept;

 private:
  bool holds(const Container& container) const override;
  void keep_in_child() const noexcept override;

  std::vector<std::shared_ptr<Container>> containers_;  // by id
};

/// The container behind a variable of a graph; null for other variables.
std::shared_ptr<Container> container_of(const Variable& v);

/// Checks the type of an update. TypeError unless values of `given` can be values of `type`, and a
/// dimension known to be 1 is so in both. Extents that `given` leaves open and `type` fixes are
/// compared when they are known.
void check_update_type(const TensorType& type, const TensorType& given, std::string_view who);

}  // namespace palimpsest
