// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/graph/op.hpp"

namespace palimpsest {

Layout Layout::dense(DType dtype, Extents extents) {
  Strides strides = contiguous_strides(extents);
  return {dtype, std::move(extents), std::move(strides), 0};
}

bool Layout::is_dense() const { return is_contiguous(extents, strides); }

std::string Op::str() const {
  const std::string text = parameters();
  return text.empty() ? name() : name() + "{" + text + "}";
}

std::optional<Layout> Op::view_layout(const Apply&, int, const Layout&) const {
  throw InternalError("[" + str() + "] declares a view but not where it lies");
}

Region Op::view_region(const Apply& apply, int out, int in) const {
  const AliasMap destroys = destroy_map(apply);
  const auto it = destroys.find(out);
  return it != destroys.end() && it->second.contains(in) ? Region::whole() : Region::unknown();
}

std::vector<Variable> Op::pullback(const Apply&, std::span<const Variable>) const {
  throw NotSupported("[" + str() + "] has no derivative");
}

Apply Op::node(std::span<const Variable> inputs, std::vector<TensorType> types) const {
  const Apply apply = Apply::make(shared_from_this(), inputs, std::move(types));
  check_declarations(apply);
  return apply;
}

std::set<int> overwritten_inputs(const Apply& apply) {
  std::set<int> result = apply.op().destroyed_inputs(apply);
  for (const auto& [output, inputs] : apply.op().destroy_map(apply)) {
    result.insert(inputs.begin(), inputs.end());
  }
  return result;
}

}  // namespace palimpsest
