// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "palimpsest/linop/split/budget.hpp"

namespace palimpsest {

/// Memory and work of one use of an operator: an application, or a solve.
struct BudgetCost {
  index_t peak_bytes = 0;  ///< all that counts against the budget
  double work = 0;         ///< bytes that its steps read and write
  /// Programs compiled in the search, for use by the choice. May be null.
  std::shared_ptr<void> programs = nullptr;
};
/// Tiles of these sizes; dimensions that are not listed are whole.
struct TileChoice {
  DimMap sizes = {};
  index_t tiles = 1;
  BudgetCost cost;
};
/// Dimensions that can be cut, in their order, with their extents.
using TileAxes = std::vector<std::pair<ND, index_t>>;
/// Gives the cost of tiles of these sizes; nothing if that cut is refused. No sizes: uncut.
using TileCost = std::function<std::optional<BudgetCost>(const DimMap& sizes)>;

/// The search of split_to_budget(), for any object that can be cut into tiles. `who` begins
/// messages, `device` has the bytes.
/// Errors   BudgetError naming the smallest budget that the search found
TileChoice search_tiles(const TileAxes& axes, index_t bytes, const TileCost& cost,
                        const std::string& who, Device device = {});
/// The choice with the smallest peak that the search finds, without a budget.
TileChoice smallest_tiles(const TileAxes& axes, const TileCost& cost);
/// The candidates along which an operator whose sizes are known can be cut.
TileAxes tile_axes(const NamedLinop& A, const Dims& candidates);
/// The operator cut into tiles, dimension after dimension; none where it is refused.
std::optional<NamedLinop> cut_into_tiles(const NamedLinop& A, const TileAxes& order,
                                         const DimMap& sizes);

/// operator_bytes() of several operators together: shared bytes count once.
index_t operator_bytes(const std::vector<NamedLinop>& operators);
/// Bytes that the steps of a plan read and write.
double work_of(const Plan& plan);
/// Bytes of the constants of a plan.
index_t constant_bytes(const Plan& plan);

/// `C: 1, Z: 20`.
std::string sizes_text(const DimMap& sizes);

}  // namespace palimpsest
