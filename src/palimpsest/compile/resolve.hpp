// SPDX-License-Identifier: Apache-2.0
// Internal: common parts of function().
#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "palimpsest/compile/compile.hpp"
#include "palimpsest/graph/marks.hpp"

namespace palimpsest {

/// An `In` with all defaults filled in.
struct ResolvedInput {
  Variable variable;
  std::string name;
  std::shared_ptr<Container> container;  // null: calls must give it
  bool is_implicit = false;
  bool is_mutable = false;
  bool borrow = false;
  FilterOptions filter;
  Variable update;  // undefined: none
};

/// Errors  TypeError: a constant or a shared variable, an update without a value or of another
///         type, implicit without a value; ValueError: undefined, is_mutable without borrow;
///         UnusedInputError: twice
std::vector<ResolvedInput> resolve_inputs(const std::vector<In>& inputs,
                                          std::optional<bool> allow_downcast);

/// The new value of one container.
struct ResolvedUpdate {
  std::shared_ptr<Container> target;
  Variable value;
};

/// Givens, ready to be applied to any part of the graph.
class Substitution {
 public:
  /// Errors  ValueError: an explicit input, a variable twice, "cycle"; TypeError: another type
  Substitution(const Givens& givens, std::vector<Variable> inputs, bool is_strict);

  std::vector<Variable> operator()(std::span<const Variable> outputs) const;
  Variable operator()(const Variable& output) const { return (*this)({&output, 1})[0]; }
  /// The replacing variables, as given.
  const std::vector<Variable>& replacements() const { return given_; }

 private:
  std::vector<std::size_t> order_of_dependence(
      const std::vector<std::vector<std::size_t>>& needs) const;
  TwinMaker twin() const;

  std::vector<Variable> inputs_;  // where the graph is cut
  std::vector<Variable> old_, new_;
  std::vector<Variable> given_;
  bool is_strict_;
};

/// A value as a Variable of the type, as a constant unless it is a Variable already. The errors of
/// filter().
Variable expression_of(const Value& value, const TensorType& type, std::string_view who);

/// The value with the extents that a shared variable of this type fixes and the value leaves open,
/// which its plan compares before anything runs. The value itself where it cannot fit.
Variable with_extents_of(const TensorType& type, const Variable& value, const std::string& name);

/// The roots that outputs need, in the order of first use; the graph ends at `inputs`.
std::vector<Variable> roots_of(std::span<const Variable> outputs, std::span<const Variable> inputs);

/// `root -> Op -> Op -> output 0`.
std::string path_from(const Variable& root, std::span<const Variable> outputs,
                      std::span<const Variable> inputs);

}  // namespace palimpsest
