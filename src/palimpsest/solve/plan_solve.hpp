// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "palimpsest/base/api.hpp"
#include "palimpsest/solve/solve.hpp"

namespace PALIMPSEST_API palimpsest {

/// The plan of the solve that `call` asks for, of any solver: `plan_solve([&] { lsqr(A, b, o); })`.
/// No iteration runs and no data are made; `call` sees a result without x.
///
/// Cost     compiles what the solve will run
/// Errors   ValueError "no solver": `call` asks for none; those of the solver
SolvePlan plan_solve(const std::function<void()>& call);

}  // namespace palimpsest
