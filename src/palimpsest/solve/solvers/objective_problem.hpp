// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include "palimpsest/solve/conjugate_gradients.hpp"
#include "palimpsest/solve/objective.hpp"

namespace palimpsest {

/// The problem of an objective. Operators: "A"; "N", the Hessian of the quadratic part; "W"; "L0",
/// .. of the quadratics that have a c; "K0", .. of the terms. Functions "g0", .., "h". Attributes
/// "lambda0", "c0", "d0", .. and "terms", their number.
Problem objective_problem(const Objective& f, const TensorType& b);
/// That of conjugate_gradients(). Operators "A" and "M"; attribute "refresh".
Problem cg_problem(const NamedLinop& A, const TensorType& b, const CgOptions& options);

}  // namespace palimpsest
