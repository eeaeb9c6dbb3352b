// SPDX-License-Identifier: Apache-2.0
// Internal: what the sources of rewrites have in common.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "palimpsest/graph/origin.hpp"
#include "palimpsest/ops/elementwise/elementwise.hpp"
#include "palimpsest/ops/elementwise/elementwise_op.hpp"
#include "palimpsest/ops/products/contract_op.hpp"
#include "palimpsest/ops/reduce/reduce_op.hpp"
#include "palimpsest/ops/shape/shape_op.hpp"
#include "palimpsest/ops/shape/shape_ops.hpp"
#include "palimpsest/rewrite/patterns.hpp"
