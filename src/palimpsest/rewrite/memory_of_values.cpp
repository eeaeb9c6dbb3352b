// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/rewrite/memory_of_values.hpp"

#include <limits>

#include "palimpsest/ops/index/index_op.hpp"
#include "palimpsest/rewrite/prelude.hpp"

namespace palimpsest {
namespace {

constexpr std::size_t kForever = std::numeric_limits<std::size_t>::max();
constexpr double kUnknownExtent = 1e3;

// True if the view shows all elements. The op tells it for unknown extents.
bool shows_all(const Apply& view, const Variable& from, const Variable& to) {
  const auto is_known = [](const Variable& v) { return v.type().is_fully_known(); };
  if (is_known(from) && is_known(to)) {
    return MemoryOfValues::bytes(to) >= MemoryOfValues::bytes(from);
  }
  const auto* const op = dynamic_cast<const ops::ViewOp*>(&view.op());
  if (!op) return !view.op().destroy_map(view).empty();
  return !dynamic_cast<const ops::Subtensor*>(op) && !dynamic_cast<const ops::Diagonal*>(op) &&
         !dynamic_cast<const ops::ComplexPart*>(op);
}

}  // namespace

MemoryOfValues::MemoryOfValues(const FunctionGraph& graph, const std::vector<Apply>& order)
    : graph_(graph), order_(order) {}

// The position of the input in whose memory a value lies; -1 if it has memory of its own.
int MemoryOfValues::aliased_input(const Variable& v) {
  const std::span<const int> inputs = aliased_.of(v);
  return inputs.empty() ? -1 : inputs.front();
}

const VariableNode* MemoryOfValues::find_root(const Variable& start, Roots& roots) {
  Variable v = start;
  const VariableNode* found = nullptr;
  std::vector<const VariableNode*> passed;
  while (!found) {
    if (const auto* const known = roots.find(v.node())) {
      found = *known;
      break;
    }
    passed.push_back(v.node());
    const int input = aliased_input(v);
    if (input >= 0) {
      v = v.owner().input(static_cast<std::size_t>(input));
    } else {
      found = v.node();
    }
  }
  for (const VariableNode* const node : passed) roots.try_emplace(node, found);
  return found;
}

double MemoryOfValues::bytes(const Variable& v) {
  double elements = 1;
  for (index_t extent : v.type().shape) {
    elements *= extent == kUnknown ? kUnknownExtent : static_cast<double>(extent);
  }
  return elements * static_cast<double>(item_size(v.dtype()));
}

// Finds last uses now. The roots are not kept: later passes may still put values in place.
void MemoryOfValues::find_last_uses() {
  if (has_last_uses_) return;
  has_last_uses_ = true;
  Roots roots;
  for (std::size_t place = 0; place < order_.size(); ++place) {
    for (const Variable& v : order_[place].inputs()) last_use_[find_root(v, roots)] = place;
  }
  for (const Variable& v : graph_.outputs()) last_use_[find_root(v, roots)] = kForever;
}

bool MemoryOfValues::is_last_reader(const Variable& v, std::size_t place) {
  find_last_uses();
  return last_use_[root(v)] <= place;
}

bool MemoryOfValues::shows_part(const Variable& start) {
  bool is_part = false;
  std::vector<const VariableNode*> passed;  // each shows all of the next
  for (Variable v = start;;) {
    if (const bool* const known = is_part_.find(v.node())) {
      is_part = *known;
      break;
    }
    passed.push_back(v.node());
    const int input = aliased_input(v);
    if (input < 0) break;
    const Apply owner = v.owner();
    const Variable from = owner.input(static_cast<std::size_t>(input));
    is_part = !shows_all(owner, from, v);
    if (is_part) break;
    v = from;
  }
  for (const VariableNode* const node : passed) is_part_.try_emplace(node, is_part);
  return is_part;
}

// Inputs and constants are there anyway.
bool MemoryOfValues::would_keep_more(const Variable& v, const Variable& result) {
  if (!v.owner().defined() || !shows_part(v)) return false;
  const VariableNode* const memory = root(v);
  if (memory->owner == nullptr) return false;
  find_last_uses();
  return last_use_[memory] < last_use_[result.node()];
}

void MemoryOfValues::replaced(const Variable& old, const Variable& with) {
  kept_.push_back(with);  // the old one is in the order
  const VariableNode* const memory = root(with);
  if (!has_last_uses_) return;
  const std::size_t last = last_use_[old.node()];
  last_use_[memory] = std::max(last_use_[memory], last);
}

}  // namespace palimpsest
