// SPDX-License-Identifier: Apache-2.0
// Internal: what the sources of solvers and of proximal functions have in common.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "palimpsest/base/error.hpp"
#include "palimpsest/ops/ops.hpp"
#include "palimpsest/solve/frame/options.hpp"
#include "palimpsest/solve/frame/solver_type.hpp"
#include "palimpsest/solve/frame/types.hpp"
