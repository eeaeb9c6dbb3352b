// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "palimpsest/base/api.hpp"
#include "palimpsest/graph/variable.hpp"

namespace PALIMPSEST_API palimpsest {
namespace ops {

/// x on another device: a copy, computed there from then on. x itself where it is on that device.
///
/// DTypes   all
/// Aliases  view_map {}, destroy_map {}
/// Cost     one pass; memory of the result on the target
Variable to_device(const Variable& x, Device target);

}  // namespace ops
}  // namespace palimpsest
