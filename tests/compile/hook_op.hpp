// SPDX-License-Identifier: Apache-2.0
// An op for tests: copies its input and calls back while it runs.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "palimpsest/copy/strided_copy.hpp"
#include "palimpsest/graph/op.hpp"

namespace palimpsest::testing {

/// out = in, after the hook was called. Hooks with different numbers are different ops.
class Hook final : public Op {
 public:
  Hook(int number, bool can_fail, std::function<void()> hook)
      : number_(number), can_fail_(can_fail), hook_(std::move(hook)) {}
  std::string name() const override { return "Hook"; }
  std::string parameters() const override { return std::to_string(number_); }
  Apply make_node(std::span<const Variable> inputs) const override {
    return node(inputs, {inputs[0].type()});
  }
  std::vector<Extents> infer_shapes(const Apply&, std::span<const Extents> inputs) const override {
    return {inputs[0]};
  }
  bool can_fail() const override { return can_fail_; }
  void run(RunContext& context) const override {
    hook_();
    strided_copy(context.input(0), context.output(0));
  }

 private:
  int number_;
  bool can_fail_;
  std::function<void()> hook_;
};

/// `v`, computed by a step that calls `hook`.
inline Variable hooked(const Variable& v, std::function<void()> hook, bool can_fail = true,
                       int number = 0) {
  const auto op = std::make_shared<const Hook>(number, can_fail, std::move(hook));
  const Variable inputs[] = {v};
  return op->make_node(inputs).output(0);
}

}  // namespace palimpsest::testing
