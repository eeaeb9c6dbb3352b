// SPDX-License-Identifier: Apache-2.0
// Internal: common parts of the solvers with a data term |A x - b|^2 / 2.
#pragma once

#include "palimpsest/solve/frame/solver_type.hpp"

namespace palimpsest::proximal {

/// The normal operator of the problem: "N" if it has one, else A^H W A.
NamedLinop normal_of(const Problem& p);
/// State "rhs" = A^H W b + sum of lambda_j L_j^H c_j, and its setup: s.number("rhs", |rhs|^2), and
/// where the problem asks for the objective "bb" = <b, W b> + sum of lambda_j |c_j|^2.
void declare_rhs(const Problem& p, StateList& state);
void set_up_rhs(const Problem& p, Scope& s);
/// N v; A and A^H apart, and counted so, where the problem has no "N".
Variable applied_normal(const Problem& p, Scope& s, const Variable& v);
/// N v - A^H b.
Variable gradient(const Problem& p, Scope& s, const Variable& v);

/// L of the problem: the attribute "L", or the norm of A.
Preparation lipschitz(const Problem& p, std::uint64_t seed);
index_t lipschitz_bytes(const Problem& p);
void check_lipschitz(const Problem& p, std::string_view solver);

/// Numbers "change" = |x' - x|^2 and "size" = |x'|^2, and the verdict on them.
void change_numbers(const Problem& p, Scope& s, const Variable& before, const Variable& after);
Verdict judge_change(const Problem& p, const Numbers& n);

/// <x, N x> / 2 - Re <x, rhs>, given N x; the same and h(x); both of x: one N.
Variable smooth_part(const Problem& p, const Variable& x, const Variable& image,
                     const Variable& rhs);
Variable with_h(const Problem& p, Scope& s, const Variable& smooth, const Variable& x);
Variable objective_of(const Problem& p, Scope& s, const Variable& x, const Variable& rhs);
/// The number "objective", of the state "rhs", where the problem asks for it.
void objective_number(const Problem& p, Scope& s, const Variable& x);
/// The objective: the number "objective" and half of "bb". NaN without it.
double recorded_objective(const Numbers& n);

}  // namespace palimpsest::proximal
