// SPDX-License-Identifier: Apache-2.0
// Internal: the linear systems of admm, solved by a change of basis or by conjugate gradients.
#pragma once

#include <optional>

#include "palimpsest/solve/frame/solver_type.hpp"

namespace palimpsest::proximal {

/// The axes of Fourier transforms that make N and all K_i^H K_i of a problem diagonal; none where
/// they are diagonal as they are. Nothing: there is no such basis, as far as the types of the
/// operators tell.
std::optional<Axes> common_basis(const Problem& p);

/// The states "N in basis" and "K in basis": eigenvalues of N and of the sum of K_i^H K_i, real.
void declare_basis(const Problem& p, StateList& state);
/// Applies N once, and the K_i^H K_i. The state "outer" is 1.
void set_up_basis(const Problem& p, Scope& s, const Axes& axes);
/// x of (N + rho sum of K_i^H K_i) x = right; 0 in directions that both remove.
Variable solve_in_basis(const Problem& p, Scope& s, const Axes& axes, const Variable& rho,
                        const Variable& right);

/// The same by conjugate gradients from the state "x": at most "inner" steps, until the residual is
/// "inner_tolerance" times that of the last iteration, the state "outer".
Variable solve_by_cg(const Problem& p, Scope& s, const Variable& rho, const Variable& right);

}  // namespace palimpsest::proximal
