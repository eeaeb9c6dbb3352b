// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "palimpsest/graph/op.hpp"

namespace palimpsest::toy {

/// All declarations of an op about memory.
struct Spec {
  std::string name = "op";
  AliasMap views = {}, destroys = {};
  IndexPairs same = {}, aliased = {};
  int n_outputs = 1;
  std::set<int> destroyed = {}, unread = {};
  std::vector<std::set<int>> output_aliases = {};
  std::map<std::pair<int, int>, Region> view_regions = {};
  std::map<int, Region> write_regions = {};
  std::string serial = {};  // distinguishes equal specs
  bool can_fail = false;
};

/// An opaque op with any number of inputs and any declarations.
class ToyOp : public Op {
 public:
  explicit ToyOp(Spec spec) : spec_(std::move(spec)) {}

  std::string name() const override { return spec_.name; }
  std::string parameters() const override {
    std::string text = spec_.serial + (spec_.can_fail ? "f" : "");
    for (const auto& [d, j] : spec_.same) text += "s" + std::to_string(d) + std::to_string(j);
    for (const auto& [d, j] : spec_.aliased) text += "a" + std::to_string(d) + std::to_string(j);
    for (const auto& [i, region] : spec_.write_regions) text += "w" + region.str();
    for (const auto& [i, region] : spec_.view_regions) text += "v" + region.str();
    return text;
  }
  Apply make_node(std::span<const Variable> inputs) const override {
    const std::vector<TensorType> types(static_cast<std::size_t>(spec_.n_outputs),
                                        inputs[0].type());
    return node(inputs, types);
  }
  AliasMap view_map(const Apply&) const override { return spec_.views; }
  AliasMap destroy_map(const Apply&) const override { return spec_.destroys; }
  std::set<int> destroyed_inputs(const Apply&) const override { return spec_.destroyed; }
  std::vector<std::set<int>> output_aliases(const Apply&) const override {
    return spec_.output_aliases;
  }
  IndexPairs tolerate_same(const Apply&) const override { return spec_.same; }
  IndexPairs tolerate_aliased(const Apply&) const override { return spec_.aliased; }
  Region view_region(const Apply& apply, int out, int in) const override {
    const auto it = spec_.view_regions.find({out, in});
    return it == spec_.view_regions.end() ? Op::view_region(apply, out, in) : it->second;
  }
  Region write_region(const Apply& apply, int in) const override {
    const auto it = spec_.write_regions.find(in);
    return it == spec_.write_regions.end() ? Op::write_region(apply, in) : it->second;
  }
  bool reads(const Apply&, int in) const override { return !spec_.unread.contains(in); }
  /// `X` has the variant `X!` that overwrites the first of the allowed inputs.
  OpPtr inplace_on_inputs(const Apply&, const std::set<int>& allowed) const override {
    if (!spec_.destroys.empty() || !spec_.views.empty() || allowed.empty()) return nullptr;
    Spec variant = spec_;
    variant.name += "!";
    variant.destroys = {{0, {*allowed.begin()}}};
    return std::make_shared<ToyOp>(variant);
  }
  std::vector<Extents> infer_shapes(const Apply&, std::span<const Extents> in) const override {
    return std::vector<Extents>(static_cast<std::size_t>(spec_.n_outputs), in[0]);
  }
  bool can_fail() const override { return spec_.can_fail; }
  void run(RunContext&) const override {}

 private:
  Spec spec_;
};

inline OpPtr make(Spec spec) { return std::make_shared<ToyOp>(std::move(spec)); }
inline OpPtr make(std::string name, AliasMap views = {}, AliasMap destroys = {},
                  IndexPairs same = {}, IndexPairs aliased = {}) {
  return make(Spec{std::move(name), std::move(views), std::move(destroys), std::move(same),
                   std::move(aliased)});
}

inline Variable apply(const OpPtr& op, std::vector<Variable> inputs) {
  return op->make_node(inputs).output(0);
}

/// The letters of the worked examples: S, A, D pure; V a view of its input; A! destroys input 0.
inline const OpPtr S = make("S"), A = make("A"), D = make("D");
inline const OpPtr V = make("V", {{0, {0}}});
inline const OpPtr A_destroys = make("A!", {}, {{0, {0}}});
inline const OpPtr A_same = make("A!s", {}, {{0, {0}}}, {{0, 1}});
inline const OpPtr A_aliased = make("A!a", {}, {{0, {0}}}, {}, {{0, 1}});

/// `start:start + count * step:step` of an array of one axis.
inline Region slice(index_t start, index_t count, index_t step = 1) {
  return Region::box({{start, step, count, 0}}, 1);
}
/// A view that shows exactly this region.
inline OpPtr part(index_t start, index_t count, index_t step = 1) {
  Spec spec{"part", {{0, {0}}}};
  spec.view_regions.emplace(std::pair(0, 0), slice(start, count, step));
  return make(std::move(spec));
}

inline Variable input(std::string name) {
  return make_input({DType::float64, {kUnknown}, {}}, std::move(name));
}

}  // namespace palimpsest::toy
