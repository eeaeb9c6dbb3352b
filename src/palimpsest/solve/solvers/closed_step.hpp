// SPDX-License-Identifier: Apache-2.0
// Internal: the linear systems of admm, solved by a change of basis or by conjugate gradients.
#pragma once

#include "palimpsest/solve/frame/solver_type.hpp"

namespace palimpsest::proximal {

/// Declares the states "N in basis" and "K in basis": the real eigenvalues of N and of the sum of
/// K_i^H K_i. Declares nothing unless the types of N and of the K_i^H K_i tell a common basis.
void declare_basis(const Problem& p, StateList& state);
/// Applies N once, and the K_i^H K_i. The state "outer" is 1.
void set_up_basis(const Problem& p, Scope& s);
/// x of (N + rho sum of K_i^H K_i) x = A^H b + rho sum of K_i^H (z_i - u_i + d_i): in the common
/// basis where there is one, else by conjugate gradients. The states "kz" and "ku" are the sums of
/// K_i^H z_i and of K_i^H u_i.
Variable solve_for_x(const Problem& p, Scope& s, const Variable& rho);

/// The x of a right side by conjugate gradients from the state "x": at most "inner" steps, until
/// the residual is "inner_tolerance" times that of the last iteration, the state "outer".
Variable solve_by_cg(const Problem& p, Scope& s, const Variable& rho, const Variable& right);

}  // namespace palimpsest::proximal
