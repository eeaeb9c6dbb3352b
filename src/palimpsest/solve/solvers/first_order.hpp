// SPDX-License-Identifier: Apache-2.0
// Internal: common parts of ista, fista and pogm: A x - b, a proximal function h, and steps of
// length 1 / L from the gradient.
#pragma once

#include "palimpsest/solve/solvers/proximal.hpp"

namespace palimpsest::proximal {

/// prox_{step h}(v), or v.
Variable prox_of_h(const Problem& p, Scope& s, const Variable& v, const Variable& step);
/// from - step grad(from), the argument of the proximal step, which is the guard.
Variable descended(const Problem& p, Scope& s, const Variable& from, const Variable& step);
/// (1 + sqrt(1 + factor t^2)) / 2.
Variable next_momentum(const Variable& t, double factor = 4);

/// True if the state holds N x and N z. Then N is applied to the new point, and the two follow from
/// it.
bool keeps_images(const Problem& p);
/// Declares x, rhs and L, and the states that options need.
void declare_first_order(const Problem& p, StateList& state);
void set_up_first_order(const Problem& p, Scope& s);
/// The step of ista and fista with "monotone" or "backtrack".
void step_with_images(const Problem& p, Scope& s, bool has_momentum);

/// The last iterates, as many as there are to be in the mean, are summed up.
void add_to_mean(const Problem& p, Scope& s, const Variable& next);
/// The mean; x, where the solve ended before the iterates that are in it.
Variable mean_or_x(const Problem& p, Scope& s);

template <class Declare, class Step>
constexpr SolverType first_order_solver(std::string_view name, Declare declare, Step step) {
  return {.name = name,
          .declare = declare,
          .prepare = lipschitz,
          .prepare_bytes = lipschitz_bytes,
          .setup = set_up_first_order,
          .step = step,
          .judge = judge_change,
          .result = mean_or_x};
}

/// The same solver for problems without h: x is proportional to b and x0.
constexpr SolverType without_h(SolverType type) {
  type.is_linear = true;
  return type;
}

}  // namespace palimpsest::proximal
