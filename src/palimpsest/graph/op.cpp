// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/graph/op.hpp"

#include "palimpsest/copy/strided_copy.hpp"

namespace palimpsest {

Layout Layout::dense(DType dtype, Extents extents) {
  Strides strides = contiguous_strides(extents);
  return {dtype, std::move(extents), std::move(strides), 0};
}

bool Layout::is_dense() const { return is_contiguous(extents, strides); }

void RunContext::take_set_outputs() const {
  for (const auto& [j, where] : set_) {
    const MutableView& destination = outputs_[j];
    if (where.dtype != destination.dtype) {
      throw DTypeError("[set_output] output " + std::to_string(j) + ": got " +
                       std::string(name_of(where.dtype)) + ", expected " +
                       std::string(name_of(destination.dtype)));
    }
    const Extents got(where.extents.begin(), where.extents.end());
    const Extents expected(destination.extents.begin(), destination.extents.end());
    if (got != expected) {
      throw ShapeError("[set_output] output " + std::to_string(j) + ": got shape " +
                       to_string(got) + ", expected " + to_string(expected));
    }
    strided_copy(where, destination);
  }
}

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
