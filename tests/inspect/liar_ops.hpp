// SPDX-License-Identifier: Apache-2.0
// Ops for tests: each has one wrong declaration and is otherwise correct.
#pragma once

#include <atomic>
#include <cstring>
#include <functional>
#include <memory>
#include <string>

#include "palimpsest/copy/strided_copy.hpp"
#include "palimpsest/graph/op.hpp"

namespace palimpsest::testing {

/// The properties of an op that tests vary. Defaults are correct for an op that copies its first
/// input, float64 of any shape, to its first output.
struct LiarSpec {
  std::string name = "Liar";
  int outputs = 1;
  AliasMap views = {};
  AliasMap destroys = {};
  std::set<int> destroyed = {};
  std::vector<std::set<int>> aliases = {};
  std::function<std::optional<Layout>(const Layout&)> view_layout = {};
  Region view_region = Region::whole();
  Region write_region = Region::whole();
  std::function<std::vector<Extents>(std::span<const Extents>)> shapes = {};
  std::size_t scratch = 0;
  bool can_fail = true;
  double tolerance = 16;
  DType dtype = DType::float64;
  std::function<void(RunContext&)> run = {};
};

class Liar final : public Op {
 public:
  explicit Liar(LiarSpec spec) : spec_(std::move(spec)), number_(next_number()++) {}
  std::string name() const override { return spec_.name; }
  std::string parameters() const override { return std::to_string(number_); }
  Apply make_node(std::span<const Variable> inputs) const override {
    std::vector<TensorType> types;
    for (int k = 0; k < spec_.outputs; ++k) {
      types.push_back(inputs[0].type());
      types.back().dtype = spec_.dtype;
    }
    return node(inputs, types);
  }
  AliasMap view_map(const Apply&) const override { return spec_.views; }
  AliasMap destroy_map(const Apply&) const override { return spec_.destroys; }
  std::set<int> destroyed_inputs(const Apply&) const override { return spec_.destroyed; }
  std::vector<std::set<int>> output_aliases(const Apply&) const override { return spec_.aliases; }
  std::optional<Layout> view_layout(const Apply&, int, const Layout& in) const override {
    return spec_.view_layout ? spec_.view_layout(in) : std::nullopt;
  }
  Region view_region(const Apply&, int, int) const override { return spec_.view_region; }
  Region write_region(const Apply&, int) const override { return spec_.write_region; }
  std::vector<Extents> infer_shapes(const Apply&, std::span<const Extents> inputs) const override {
    if (spec_.shapes) return spec_.shapes(inputs);
    return std::vector<Extents>(static_cast<std::size_t>(spec_.outputs), inputs[0]);
  }
  std::size_t scratch_bytes(const Apply&, std::span<const Layout>) const override {
    return spec_.scratch;
  }
  bool can_fail() const override { return spec_.can_fail; }
  double tolerance(const Apply&) const override { return spec_.tolerance; }
  void run(RunContext& context) const override {
    if (spec_.run) return spec_.run(context);
    for (const MutableView& out : context.outputs()) copy(context.input(0), out);
  }

  static void copy(const ConstView& in, const MutableView& out) {
    if (in.data != out.data) strided_copy(in, out);
  }

 private:
  // Ops with different functions are different ops.
  static std::atomic<int>& next_number() {
    static std::atomic<int> number{0};
    return number;
  }

  LiarSpec spec_;
  int number_;
};

/// Element 0 of a view with any strides, as a writable number.
inline double& first_element(const ConstView& view) {
  return *static_cast<double*>(const_cast<void*>(view.data));
}
inline double& first_element(const MutableView& view) { return *static_cast<double*>(view.data); }

inline std::vector<Variable> apply_liar(LiarSpec spec, const std::vector<Variable>& inputs) {
  return std::make_shared<const Liar>(std::move(spec))->make_node(inputs).outputs();
}
inline Variable liar(LiarSpec spec, const std::vector<Variable>& inputs) {
  return apply_liar(std::move(spec), inputs)[0];
}

}  // namespace palimpsest::testing
