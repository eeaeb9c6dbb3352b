// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "palimpsest/base/api.hpp"
#include "palimpsest/base/error.hpp"
#include "palimpsest/graph/variable.hpp"

namespace PALIMPSEST_API palimpsest {
namespace ops {

/// `then` if the condition holds, else `otherwise`. In a function only the steps of the taken
/// branch run. Steps that both branches need, or something else, run in any case.
///
/// Shapes   the condition has no axes; the branches have one rank, and equal extents as far as
///          these are known in the graph. If they turn out to differ, those of the result are known
///          only when it runs
/// DTypes   the condition: bool, or a number that is compared with 0; the branches are promoted
/// Aliases  the result may lie in the memory of either branch
/// Errors   TypeError: a condition with axes; ShapeError: branches known to differ
/// Cost     none if the branch is computed for this alone, else a copy of its value
Variable ifelse(const Variable& condition, const Operand& then, const Operand& otherwise);
/// Several values under one condition.
std::vector<Variable> ifelse(const Variable& condition, const std::vector<Variable>& then,
                             const std::vector<Variable>& otherwise);

/// x, after every element of the conditions has been found to be true. A view.
///
/// Errors   AssertionError, when it runs: the message and where the condition does not hold, five
///          places at most, with the elements of x there if x has the condition's extents
/// Cost     one pass over the conditions
Variable assert_that(const Variable& x, const Variable& condition, std::string message);
Variable assert_that(const Variable& x, const std::vector<Variable>& conditions,
                     std::string message);

}  // namespace ops
}  // namespace palimpsest
