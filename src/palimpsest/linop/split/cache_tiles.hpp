// SPDX-License-Identifier: Apache-2.0
// Internal: tiles that stay in cache. They are chosen when the graph of a chain is built, so that
// operators, solvers and functions that apply operators all get them.
#pragma once

#include <limits>
#include <optional>

#include "palimpsest/base/config.hpp"
#include "palimpsest/linop/core/named_linop.hpp"

namespace palimpsest {

/// A chain in which the operators that act on one dimension are cut into tiles along it. Their
/// intermediate values then stay in a cache. Empty if the predicted gain is less than the cost of
/// the tiles, under a budget that is a limit, and if config() leaves out the rewrite `cache_tiles`
/// or has another mode than FastRun.
///
/// Chosen by predicted memory traffic and the sizes of the caches, without compiling anything.
///
/// Math     the same bits as uncut if the operand of a sum lies row-major: a sum over the dimension
///          is cut into single terms or into whole leaves of its reduction; these are then added in
///          the order of the reduction
/// Cost     for each dimension one cut of the operators that act on it; at most 64 tiles
std::optional<NamedLinop> tiled_for_cache(const NamedLinop& chain, const TensorType& x);

/// True if this chain holds chains and, down to the last one, pointwise operators only: then no
/// value lies in memory, and none of these chains has tiles. They may be nested very deep.
bool has_no_tiles_within(const NamedLinop& chain);

/// Configuration that builds graphs without these tiles.
ConfigOverrides without_cache_tiles();
/// Budget that is no limit.
inline constexpr index_t kNoLimit = std::numeric_limits<index_t>::max();
/// Configuration of what is planned within a budget, or with kNoLimit: functions read mapped files
/// a step at a time and run in one lane, which has the lowest peak. They have no limit of their
/// own: tiles meet the budget, and without a limit stay in cache.
ConfigOverrides config_of_budget(index_t bytes);

}  // namespace palimpsest
