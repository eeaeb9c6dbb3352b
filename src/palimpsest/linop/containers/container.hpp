// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <span>

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

/// The one answer of the children that have one; none when they differ, as they may for a dimension
/// that lies inside of each.
std::optional<index_t> common_size(const std::vector<NamedLinop>& children, const ND& d);
/// ShapeError "Conflicting" where children differ on a dimension of their inputs and outputs, but
/// for these.
void check_sizes(std::string_view who, const std::vector<NamedLinop>& children,
                 const Dims& except = {});

/// ValueError "at least one".
void expect_children(std::string_view who, const std::vector<NamedLinop>& children);

}  // namespace palimpsest
