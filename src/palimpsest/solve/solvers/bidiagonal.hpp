// SPDX-License-Identifier: Apache-2.0
// Internal: common parts of lsqr and lsmr.
#pragma once

#include "palimpsest/solve/least_squares.hpp"
#include "palimpsest/solve/solvers/krylov.hpp"

namespace palimpsest::bidiagonal {

/// c = a / r and s = b / r with r = sqrt(a^2 + b^2); 1 and 0 for r = 0.
struct Rotation {
  Variable c, s, r;
};
Rotation rotation(const Variable& a, const Variable& b);
/// A number of the problem as a constant in the precision of its numbers.
Variable number(const Problem& p, double value);

/// States "u" of the space of b, "v" of that of x, and "alpha", with u, v of length 1.
void declare(const Problem& p, StateList& state);
/// The first of them; gives |u| and |v| before. Numbers "bb" and "start.normal" = |A^H b|.
struct Start {
  Variable v, alpha, beta;
};
Start start(const Problem& p, Scope& s);
/// u' = A v - alpha u, beta = |u'|; v' = A^H u' - beta v, alpha' = |v'|. Guards and sets them; w is
/// v' before it is divided by its length.
struct Lengths {
  Variable v, alpha, beta, w;
};
Lengths advance(const Problem& p, Scope& s);

/// The tests of Paige and Saunders on the numbers "rnorm", "arnorm", "anorm", "acond", "xnorm".
Verdict judge(const Problem& p, const Numbers& n);
/// The same before the first step, or where one begins anew.
Verdict judge_start(const Problem& p, const Numbers& n);
void check_damped(const Problem& p, std::string_view solver);
/// M y, or nothing for y itself.
Variable result(const Problem& p, Scope& s);

}  // namespace palimpsest::bidiagonal
