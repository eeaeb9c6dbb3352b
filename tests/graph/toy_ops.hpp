// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "palimpsest/graph/op.hpp"

namespace palimpsest::toy {

/// An opaque op of any number of inputs that declares whatever a test wants.
class ToyOp : public Op {
 public:
  ToyOp(std::string name, AliasMap views, AliasMap destroys, IndexPairs same = {},
        IndexPairs aliased = {})
      : name_(std::move(name)),
        views_(std::move(views)),
        destroys_(std::move(destroys)),
        same_(std::move(same)),
        aliased_(std::move(aliased)) {}

  std::string name() const override { return name_; }
  std::string parameters() const override {
    std::string text;
    for (const auto& [d, j] : same_) text += "s" + std::to_string(d) + std::to_string(j);
    for (const auto& [d, j] : aliased_) text += "a" + std::to_string(d) + std::to_string(j);
    return text;
  }
  Apply make_node(std::span<const Variable> inputs) const override {
    return node(inputs, {inputs[0].type()});
  }
  AliasMap view_map(const Apply&) const override { return views_; }
  AliasMap destroy_map(const Apply&) const override { return destroys_; }
  IndexPairs tolerate_same(const Apply&) const override { return same_; }
  IndexPairs tolerate_aliased(const Apply&) const override { return aliased_; }
  std::vector<Extents> infer_shapes(const Apply&, std::span<const Extents> in) const override {
    return {in[0]};
  }
  void run(RunContext&) const override {}

 private:
  std::string name_;
  AliasMap views_, destroys_;
  IndexPairs same_, aliased_;
};

inline Variable apply(const OpPtr& op, std::vector<Variable> inputs) {
  return op->make_node(inputs).output(0);
}
inline OpPtr make(std::string name, AliasMap views = {}, AliasMap destroys = {},
                  IndexPairs same = {}, IndexPairs aliased = {}) {
  return std::make_shared<ToyOp>(std::move(name), std::move(views), std::move(destroys),
                                 std::move(same), std::move(aliased));
}

/// The letters of the worked examples: S, A, D pure; V a view of its input; A! destroys input 0.
inline const OpPtr S = make("S"), A = make("A"), D = make("D");
inline const OpPtr V = make("V", {{0, {0}}});
inline const OpPtr A_destroys = make("A!", {}, {{0, {0}}});
inline const OpPtr A_same = make("A!s", {}, {{0, {0}}}, {{0, 1}});
inline const OpPtr A_aliased = make("A!a", {}, {{0, {0}}}, {}, {{0, 1}});

inline Variable input(std::string name) {
  return make_input({DType::float64, {kUnknown}, {}}, std::move(name));
}

}  // namespace palimpsest::toy
