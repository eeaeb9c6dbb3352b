// SPDX-License-Identifier: Apache-2.0
// Internal: which steps of a plan run block by block.
#pragma once

#include <vector>

#include "palimpsest/plan/plan.hpp"

namespace palimpsest {

/// Groups of neighbouring steps, of ops that work by rows, on arrays of more bytes than a core's
/// cache, so that in a block of rows what one step hands to another stays there. In such a group
/// different rows touch different memory; places are those of the plan, so that its bytes stay.
std::vector<StepBlocks> find_step_blocks(const Plan& plan);

/// Replaces the size of a core's cache, for tests; 0 restores the machine's.
void set_cache_of_blocks(index_t bytes);

}  // namespace palimpsest
