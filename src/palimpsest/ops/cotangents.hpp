// SPDX-License-Identifier: Apache-2.0
// Internal: cotangents on their way from the outputs of a graph to its roots.
#pragma once

#include <map>
#include <span>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "palimpsest/graph/variable.hpp"

namespace palimpsest::ops {

/// Contributions of the uses of each variable to its cotangent.
///
/// A contribution that came through a branch of an ifelse is zero when the other branch is taken.
/// Multiplying it by that zero at the choice would compute all later steps for nothing. Instead it
/// keeps a note of its branch until it meets contributions from outside the branch; then one ifelse
/// chooses between the contributions of both branches. So the steps of a derivative belong to the
/// branch that they differentiate.
class Cotangents {
 public:
  /// A cotangent, and the branch in which it is needed; kAnywhere: it is needed in any case.
  struct Part {
    Variable value;
    int branch = kAnywhere;
  };
  static constexpr int kAnywhere = -1;

  /// Fixes the cotangent of v to w; later contributions are ignored.
  void fix(const Variable& v, const Variable& w);
  void add(const Variable& v, Part part);
  /// The number of a branch of a choice. The choice itself is needed in `outer` only.
  int branch_of(int outer, const Variable& condition, bool when);

  /// The sum of the contributions, needed where any of them is; undefined without one.
  Part sum_of(const Variable& v);
  /// The sums for several variables, all needed in one branch, the innermost that will do.
  std::vector<Part> sums_of(std::span<const Variable> variables);
  /// The sum, for any branches taken; undefined without a contribution.
  Variable of(const Variable& v);

 private:
  struct Branch {
    int outer = kAnywhere;
    Variable condition;
    bool when = true;
    int depth = 0;
  };
  const Branch& at(int branch) const { return branches_[static_cast<std::size_t>(branch)]; }
  int depth(int branch) const { return branch == kAnywhere ? 0 : at(branch).depth; }
  int common(int a, int b) const;
  Variable summed(const Variable& v, std::span<const Part> parts, int within) const;

  std::unordered_map<const VariableNode*, std::vector<Part>> parts_;
  std::unordered_map<const VariableNode*, Variable> fixed_;
  std::vector<Branch> branches_;
  std::map<std::tuple<int, const VariableNode*, bool>, int> numbers_;
};

}  // namespace palimpsest::ops
