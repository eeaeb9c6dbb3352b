// SPDX-License-Identifier: Apache-2.0
// Internal: what the sources of ops have in common.
#pragma once

#include <algorithm>

#include "palimpsest/copy/strided_copy.hpp"
#include "palimpsest/ops/common.hpp"
#include "palimpsest/ops/create/create.hpp"
#include "palimpsest/ops/elementwise/elementwise.hpp"
#include "palimpsest/ops/index/index.hpp"
#include "palimpsest/ops/parameters.hpp"
#include "palimpsest/ops/products/products.hpp"
#include "palimpsest/ops/reduce/reduce.hpp"
#include "palimpsest/ops/shape/shape_ops.hpp"
