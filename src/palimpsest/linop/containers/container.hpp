// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "palimpsest/linop/core/node.hpp"

// Common parts of containers.
namespace palimpsest {

/// The graph of operators one after the other; their positions in `container` are first,
/// first + step, ... Sizes that earlier ones showed complete later ones that lack them.
Variable run_in_order(const NamedLinop& container, std::span<const NamedLinop> linops,
                      const Variable& x, std::ptrdiff_t first, std::ptrdiff_t step);

/// Makes the wildcards in two neighbouring shapes as definite as the other one allows, in copies;
/// with config().shape_inference only. True when something changed.
bool infer_shapes(NamedLinop& before, NamedLinop& after);

/// Common answer of the children that have one; none when they differ, as they may for a dimension
/// that lies inside of each.
std::optional<index_t> common_size(const std::vector<NamedLinop>& children, const ND& d);
/// The same for operators of equal shapes, side by side. An unnamed dimension has the size that the
/// first child knows of what stands at its place.
std::optional<index_t> size_of_summands(const std::vector<NamedLinop>& children, const ND& d);
/// ShapeError "Conflicting" where children differ on a dimension of their inputs and outputs, but
/// for these.
void check_sizes(std::string_view who, const std::vector<NamedLinop>& children,
                 const Dims& except = {});

/// The same for operators of equal shapes, and for what stands at one place in their shapes.
void check_summand_sizes(std::string_view who, const std::vector<NamedLinop>& children,
                         const Dims& except = {});

/// Pairs of dimensions that are one in two shapes that match: up to the first ellipsis, and from
/// the end to the last.
std::vector<std::pair<ND, ND>> places(const Dims& a, const Dims& b);
/// The size of a dimension of an operator, if the name stands for a single one.
std::optional<index_t> size_of_one(const NamedLinop& A, const ND& d);
[[noreturn]] void refuse_sizes(std::string_view who, std::size_t i, const NamedLinop& child,
                               const ND& d, index_t got, index_t expected);

/// ValueError "at least one".
void expect_children(std::string_view who, const std::vector<NamedLinop>& children);

}  // namespace palimpsest
