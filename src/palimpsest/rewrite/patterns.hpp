// SPDX-License-Identifier: Apache-2.0
// Internal: patterns that the passes look for in a graph.
#pragma once

#include <complex>
#include <optional>
#include <string_view>
#include <type_traits>
#include <typeinfo>

#include "palimpsest/graph/function_graph.hpp"
#include "palimpsest/kernels/elementwise/scalar_op.hpp"
#include "palimpsest/rewrite/node_rewrite.hpp"

namespace palimpsest {

/// The op, if it is of this class. Passes ask this of every node, again and again: for a final
/// class the type is compared, which costs less than a cast.
template <class T>
const T* op_as(const Op& op) {
  if constexpr (std::is_final_v<T>) {
    return typeid(op) == typeid(T) ? static_cast<const T*>(&op) : nullptr;
  } else {
    return dynamic_cast<const T*>(&op);
  }
}
/// The op of a node, or of the application that computes a variable, if it is of this class.
template <class T>
const T* op_of(const Apply& node) {
  return node.defined() ? op_as<T>(node.op()) : nullptr;
}
template <class T>
const T* op_of(const Variable& v) {
  return v.is_root() ? nullptr : op_as<T>(*v.node()->owner->op);
}

/// The only scalar operation that a node applies to operands of one dtype, without a conversion and
/// without overwriting anything; `identity` for a conversion.
std::optional<ScalarOp> plain_op(const Apply& node);
bool is_plain(const Apply& node, ScalarOp op);
bool is_plain(const Variable& v, ScalarOp op);

/// The value of a constant of one element, looked for through ExpandDims, Squeeze and Reshape.
std::optional<std::complex<double>> scalar_value(const Variable& v);
/// True if v is a constant of one element with this value.
bool is_number(const Variable& v, double value);
/// The same number, with the same sign of zero.
bool is_exactly(const Variable& v, double value);

/// Replaces all of them; false, and the graph stays as it is, if that closes a circle or if needed
/// values would be overwritten. In graphs of users steps may overwrite their inputs, so even a step
/// that overwrites nothing may not fit where another one did: it reads something later.
bool replace_if_consistent(FunctionGraph& graph, FunctionGraph::Pairs pairs,
                           std::string_view reason);

/// True if only `node` reads v, and v is not an output.
bool only_reader_is(const FunctionGraph& graph, const Variable& v, const Apply& node);
/// v is computed in the graph, by a node that only `node` needs.
bool is_private_to(const FunctionGraph& graph, const Variable& v, const Apply& node);

/// `with` as the only replacement, if it has the type of the node's only output or a narrower one.
/// An axis known to be 1 does not fit one that is unknown: the output may be `with`, broadcast.
Replacements if_it_fits(const Apply& node, const Variable& with);
Replacements if_it_fits(const Apply& node, const std::optional<Variable>& with);

/// A constant of one element, of the rank, dtype and device of `like`.
Variable number_like(double value, const Variable& like);

bool is_real_floating(const Variable& v);

/// True if a step makes this array; false for a view of an input of the graph.
bool is_computed(Variable v);

}  // namespace palimpsest
