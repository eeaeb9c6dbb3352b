// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "palimpsest/base/api.hpp"
#include "palimpsest/linop/core/named_linop.hpp"

namespace PALIMPSEST_API palimpsest {

struct RearrangeOptions {
  /// Sizes of dimensions that a group leaves open: all of a group but one.
  DimMap sizes = {};
  /// Names of the axes in place of those of the pattern, one per axis or group.
  std::optional<Dims> in = {}, out = {};
};
/// Groups and ungroups axes, in row-major order: `Rearrange("(A B) C -> A B C", {.sizes = {{"A",
/// 2}}})`.
///
/// Shapes   a group in parentheses is one dimension, named by its parts, lower-cased after the
///          first letter: (A B) is Ab. `...` may stand once on each side, outside groups
/// Math     N is Identity
/// Errors   ValueError: a wrong pattern, names that differ between its sides; "size": more than one
///          unknown size in a group; ShapeError "divisible"
/// Cost     a view where strides allow, else one pass
NamedLinop Rearrange(std::string_view pattern, RearrangeOptions options = {});

}  // namespace palimpsest
