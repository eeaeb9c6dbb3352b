// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/ops/cotangents.hpp"

#include <utility>

#include "palimpsest/ops/control/control.hpp"
#include "palimpsest/ops/create/create.hpp"
#include "palimpsest/ops/elementwise/elementwise.hpp"

namespace palimpsest::ops {

void Cotangents::fix(const Variable& v, const Variable& w) { fixed_[v.node()] = w; }

void Cotangents::add(const Variable& v, Part part) {
  if (!fixed_.contains(v.node())) parts_[v.node()].push_back(std::move(part));
}

int Cotangents::branch_of(int outer, const Variable& condition, bool when) {
  const auto next = static_cast<int>(branches_.size());
  const auto [it, is_new] = numbers_.try_emplace({outer, condition.node(), when}, next);
  if (is_new) branches_.push_back({outer, condition, when, depth(outer) + 1});
  return it->second;
}

int Cotangents::common(int a, int b) const {
  while (a != b) {
    int& inner = depth(a) > depth(b) ? a : b;
    inner = at(inner).outer;
  }
  return a;
}

// Adds the contributions of each branch, innermost branches first, and then chooses between the two
// sums of a condition.
Variable Cotangents::summed(const Variable& v, std::span<const Part> parts, int within) const {
  if (parts.size() == 1 && parts[0].branch == within) return parts[0].value;
  std::map<std::pair<int, int>, Variable> sums;  // by depth and branch
  const auto add_to = [&](int branch, const Variable& w) {
    Variable& sum = sums[{depth(branch), branch}];
    sum = sum.defined() ? ops::add(sum, w) : w;
  };
  for (const Part& part : parts) add_to(part.branch, part.value);
  const auto take = [&](int branch) {
    const auto found = sums.find({depth(branch), branch});
    if (found == sums.end()) return Variable();
    Variable sum = std::move(found->second);
    sums.erase(found);
    return sum;
  };
  while (sums.rbegin()->first.second != within) {
    const Branch& branch = at(sums.rbegin()->first.second);
    const auto of_side = [&](bool when) {
      const auto side = numbers_.find({branch.outer, branch.condition.node(), when});
      return side == numbers_.end() ? Variable() : take(side->second);
    };
    Variable then = of_side(true), otherwise = of_side(false);
    if (!then.defined()) then = zeros_like(v);
    if (!otherwise.defined()) otherwise = zeros_like(v);
    add_to(branch.outer, ifelse(branch.condition, then, otherwise));
  }
  return sums.rbegin()->second;
}

Cotangents::Part Cotangents::sum_of(const Variable& v) { return sums_of({&v, 1})[0]; }

std::vector<Cotangents::Part> Cotangents::sums_of(std::span<const Variable> variables) {
  std::vector<Part> result(variables.size());
  std::vector<std::span<const Part>> parts(variables.size());
  bool is_first = true;
  int within = kAnywhere;
  for (std::size_t i = 0; i < variables.size(); ++i) {
    const auto fixed = fixed_.find(variables[i].node());
    if (fixed != fixed_.end()) result[i].value = fixed->second;
    const auto found = parts_.find(variables[i].node());
    if (fixed == fixed_.end() && found != parts_.end()) parts[i] = found->second;
    for (const Part& part : parts[i]) {
      within = is_first ? part.branch : common(within, part.branch);
      is_first = false;
    }
    if (fixed == fixed_.end()) continue;
    within = kAnywhere;
    is_first = false;
  }
  for (std::size_t i = 0; i < variables.size(); ++i) {
    result[i].branch = within;
    if (parts[i].empty()) continue;
    result[i].value = summed(variables[i], parts[i], within);
    parts_[variables[i].node()] = {result[i]};
  }
  return result;
}

Variable Cotangents::of(const Variable& v) {
  if (const auto fixed = fixed_.find(v.node()); fixed != fixed_.end()) return fixed->second;
  const auto found = parts_.find(v.node());
  return found == parts_.end() ? Variable() : summed(v, found->second, kAnywhere);
}

}  // namespace palimpsest::ops
