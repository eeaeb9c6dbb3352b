// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "palimpsest/base/api.hpp"
#include "palimpsest/base/error.hpp"
#include "palimpsest/graph/variable.hpp"

namespace PALIMPSEST_API palimpsest {

/// Reasons why a graph is inconsistent, the gravest first.
enum class InconsistencyKind {
  none,
  destroys_constant,
  destroys_indestructible,
  destroys_protected,
  destroys_output,
  input_aliasing,
  multiple_destroyers,  // two nodes would each have to precede the other
  ordering_cycle,
  transaction,         // a step that can fail needs a value that overwrote a container
  refused_by_feature,  // a Feature vetoed
};
std::string_view name_of(InconsistencyKind kind);

struct Inconsistency {
  InconsistencyKind kind = InconsistencyKind::none;
  Apply node = {};         // the destroyer
  Variable variable = {};  // the destroyed variable
  Variable other = {};     // a variable in that memory that must keep its value
  Apply other_node = {};   // the reader, or the second destroyer
  // For an ordering_cycle: nodes that each must precede the next one. For a transaction: from the
  // node that overwrites the variable to a node that can fail after it.
  std::vector<Apply> cycle = {};
  std::string text = {};
  explicit operator bool() const { return kind != InconsistencyKind::none; }
};

/// A graph with in-place steps that contradict each other or its readers.
class InconsistencyError : public Error {
 public:
  explicit InconsistencyError(Inconsistency fault)
      : Error(fault.text), fault_(std::make_shared<Inconsistency>(std::move(fault))) {}
  explicit InconsistencyError(const std::string& text, InconsistencyKind kind)
      : InconsistencyError(Inconsistency{kind, {}, {}, {}, {}, {}, text}) {}

  InconsistencyKind kind() const { return fault_->kind; }
  const Apply& node() const { return fault_->node; }
  const Variable& variable() const { return fault_->variable; }
  const Variable& other() const { return fault_->other; }
  const Apply& other_node() const { return fault_->other_node; }
  const std::vector<Apply>& cycle() const { return fault_->cycle; }

 private:
  std::shared_ptr<const Inconsistency> fault_;  // so that copying an exception cannot throw
};

}  // namespace palimpsest
