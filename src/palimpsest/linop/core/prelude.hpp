// SPDX-License-Identifier: Apache-2.0
// Internal: what the sources of operators have in common.
#pragma once

#include "palimpsest/base/immortal.hpp"
#include "palimpsest/linop/core/axes.hpp"
#include "palimpsest/linop/core/builtin_types.hpp"
#include "palimpsest/linop/core/isometry.hpp"
#include "palimpsest/linop/core/node.hpp"
#include "palimpsest/linop/core/splitting.hpp"
#include "palimpsest/ops/elementwise/elementwise.hpp"
#include "palimpsest/ops/index/index.hpp"
#include "palimpsest/ops/shape/shape_ops.hpp"

/// The type with these fields, made at the first call from this place and never destroyed:
///
///     const LinopType& linop_types::scalar() {
///       return PALIMPSEST_LINOP_TYPE(.name = "Scalar", .functions = {.fn = scalar_fn});
///     }
#define PALIMPSEST_LINOP_TYPE(...) \
  ::palimpsest::immortal([] { return ::palimpsest::LinopType{__VA_ARGS__}; })
