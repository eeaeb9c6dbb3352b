// SPDX-License-Identifier: Apache-2.0
// Internal: common parts of the solvers for square systems.
#pragma once

#include <vector>

#include "palimpsest/ops/ops.hpp"
#include "palimpsest/solve/frame/solver_type.hpp"

namespace palimpsest::krylov {

/// ShapeError "Mismatched": A is not square in its dimensions, or M does not map its range back.
void check_square(const Problem& p, std::string_view solver);

/// `value` if the condition holds, else 0, even for NaN.
Variable value_if(const Variable& condition, const Variable& value);
/// a / b, and 0 where b is 0.
Variable ratio(const Variable& a, const Variable& b);
/// True if <p, A p> is positive, and real up to rounding. In a graph and on the host.
Variable is_positive(const Variable& pq);
bool is_positive(double re, double im, DType dtype);
/// Re and Im of an inner product as numbers "name" and "name.im".
void complex_number(Scope& s, std::string_view name, const Variable& z);

/// Sets a state and returns |value|^2: one pass over the leaves that make it.
Variable set_with_norm(const Space& space, Scope& s, std::string_view name, const Variable& value,
                       std::vector<Variable> leaves);

/// |b| of an element of the batch, from the number "bb" of the setup.
double norm_of_b(const Problem& p, const Numbers& n);
/// sqrt(rr) / |b|; 0 for rr = 0.
double relative_residual(const Problem& p, const Numbers& n, double rr);

}  // namespace palimpsest::krylov
