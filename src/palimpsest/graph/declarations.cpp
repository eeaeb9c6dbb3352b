// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/graph/op.hpp"

namespace palimpsest {
namespace {

[[noreturn]] void refuse(const Apply& apply, const std::string& what) {
  throw ValueError("[" + apply.op().str() + "] " + what);
}

void check_position(const Apply& apply, int position, std::size_t count, const char* map,
                    const char* what) {
  if (position >= 0 && static_cast<std::size_t>(position) < count) return;
  refuse(apply, std::string(map) + " names an " + what + " that is not there: got " +
                    std::to_string(position) + ", expected 0 .. " +
                    std::to_string(static_cast<long>(count) - 1));
}

void check_map(const Apply& apply, const AliasMap& map, const char* name) {
  for (const auto& [output, inputs] : map) {
    check_position(apply, output, apply.output_count(), name, "output");
    for (int i : inputs) check_position(apply, i, apply.input_count(), name, "input");
  }
}

void check_tolerances(const Apply& apply, const IndexPairs& pairs, const std::set<int>& overwritten,
                      const char* name) {
  for (const auto& [d, j] : pairs) {
    check_position(apply, d, apply.input_count(), name, "input");
    check_position(apply, j, apply.input_count(), name, "input");
    if (overwritten.contains(d)) continue;
    refuse(apply, std::string(name) + " is about input " + std::to_string(d) +
                      ", expected one that is overwritten. Try to add it to destroy_map or "
                      "destroyed_inputs");
  }
}

// Whole outputs of one input are one value under two names; parts must not meet, for each is said
// to be a place of its own.
void check_parts(const Apply& apply, const AliasMap& destroys) {
  if (destroys.size() < 2) return;
  std::map<int, std::vector<std::pair<int, Region>>> parts;
  for (const auto& [output, inputs] : destroys) {
    for (int i : inputs) {
      const Region region = apply.op().view_region(apply, output, i);
      if (region.is_whole() || region.is_unknown()) continue;
      const TensorType& type = apply.input(static_cast<std::size_t>(i)).type();
      for (const auto& [other, taken] : parts[i]) {
        if (!region.meets(taken, type)) continue;
        refuse(apply, "outputs " + std::to_string(other) + " and " + std::to_string(output) +
                          " overlap in input " + std::to_string(i) + ": got " + taken.str() +
                          " and " + region.str() + ", expected disjoint regions");
      }
      parts[i].emplace_back(output, region);
    }
  }
}

}  // namespace

void check_declarations(const Apply& apply) {
  const Op& op = apply.op();
  const AliasMap destroys = op.destroy_map(apply);
  check_map(apply, op.view_map(apply), "view_map");
  check_map(apply, destroys, "destroy_map");
  std::set<int> overwritten = op.destroyed_inputs(apply);
  for (int i : overwritten) {
    check_position(apply, i, apply.input_count(), "destroyed_inputs", "input");
  }
  for (const auto& [output, inputs] : destroys) overwritten.insert(inputs.begin(), inputs.end());
  for (const std::set<int>& group : op.output_aliases(apply)) {
    for (int k : group) {
      check_position(apply, k, apply.output_count(), "output_aliases", "output");
    }
  }
  check_tolerances(apply, op.tolerate_same(apply), overwritten, "tolerate_same");
  check_tolerances(apply, op.tolerate_aliased(apply), overwritten, "tolerate_aliased");
  check_parts(apply, destroys);
}

}  // namespace palimpsest
