// SPDX-License-Identifier: Apache-2.0
// Internal: linear systems of admm that a change of basis solves.
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

}  // namespace palimpsest::proximal
