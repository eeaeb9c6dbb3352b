// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "palimpsest/base/api.hpp"
#include "palimpsest/graph/variable.hpp"
#include "palimpsest/solve/frame/space.hpp"

namespace PALIMPSEST_API palimpsest {

/// Initial value of a state, before the setup of a solver.
class Init {
 public:
  enum class Kind : std::uint8_t { number, x0_or_zero, b, key };
  Init(double value) : kind_(Kind::number), value_(value) {}
  /// The start that the caller gave, else zeros.
  static Init x0_or_zero() { return Init(Kind::x0_or_zero); }
  /// The data, in the dtype of the state.
  static Init b() { return Init(Kind::b); }
  /// A key for random numbers, from the seed of the solve and the name of the state.
  static Init key() { return Init(Kind::key); }
  Kind kind() const { return kind_; }
  double value() const { return value_; }

 private:
  explicit Init(Kind kind) : kind_(kind) {}
  Kind kind_;
  double value_ = 0;
};

/// The named state of a solver or of a proximal function.
class StateList {
 public:
  struct Entry {
    std::string name;
    Space space;
    Init init = 0.0;
  };

  /// A vector. ValueError: there is a state of this name.
  void add(const std::string& name, const Space& space, Init init = 0.0);
  /// An array that belongs to no batch, such as a key: ops::random_key has uint64 (2,).
  void add(const std::string& name, const TensorType& type, Init init = 0.0);
  /// A key for random numbers.
  void add_key(const std::string& name);
  /// Adds the entries of another list, under `prefix.name`.
  void add_all(const std::string& prefix, const StateList& of);
  const std::vector<Entry>& entries() const { return entries_; }

 private:
  std::vector<Entry> entries_;
};

/// The state of a solver, or of a part of one, while a graph is built from it.
///
/// Values are simultaneous: s["x"] is the old value, also after s.set("x", ..). A state that is not
/// set keeps its value.
class StateScope {
 public:
  /// The graph's variables of the entries, in their order.
  StateScope(const StateList& state, std::vector<Variable> values);

  bool has(std::string_view name) const;
  /// The old value. NameError: no such state.
  const Variable& operator[](std::string_view name) const;
  /// The new value, of the state's type. NameError; ShapeError, DTypeError: not of the type.
  void set(std::string_view name, const Variable& value);
  /// The new value as set, else the old one.
  const Variable& latest(std::string_view name) const;
  bool is_set(std::string_view name) const;
  /// The space that the state was declared with.
  const Space& space_of(std::string_view name) const;
  /// The same state for a part of the solver: its name `n` is `prefix.n` here.
  StateScope within(std::string_view prefix) const;

  /// The new values in the order of the entries; undefined where none was set.
  const std::vector<Variable>& updates() const;

 private:
  struct Data;
  std::size_t index_of(std::string_view name) const;

  std::shared_ptr<Data> data_;
  std::string prefix_;
};

}  // namespace palimpsest
