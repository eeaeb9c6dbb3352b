// SPDX-License-Identifier: Apache-2.0
// Internal: common parts of condat_vu and pdhg. The residuals of the optimality conditions use the
// bounds |K| |u' - u| for |K^H (u' - u)|, and |K| |x' - x| for |K (x' - x)|, because the exact
// values would take another application or another vector. Steps that adapt keep these vectors.
#pragma once

#include <string>
#include <vector>

#include "palimpsest/ops/elementwise/one_pass.hpp"
#include "palimpsest/solve/solvers/proximal.hpp"

namespace palimpsest::proximal {

// A rule of adaption, for the steps of condat_vu and pdhg and the penalty of admm.
//
// Math       with r = dual / primal residual, each relative to a size that does not shrink with
//            the solution's K x: the dual steps are multiplied by r^e, limited to 1/10 .. 10 at a
//            time and 1e-4 .. 1e4 in all, where r is beyond 1.5. e is 1/2 at first, and 0.7 times
//            its old value whenever the balance tips to the other side.
// Order      iterations `first`, 1.25 times that, and so on: residuals of the transient behind a
//            change die out before the next one, and ever longer runs with fixed steps converge.
//            Changes in each iteration follow the transients, and stop wherever these have led
// Source     Goldstein, Li and Yuan 2015, Adaptive primal-dual splitting methods; Wohlberg 2017,
//            ADMM penalty parameter selection by residual balancing, arXiv:1704.06209

/// True if the steps follow the residuals.
bool adapts(const Problem& p);
/// The states of the rule; none where the steps do not adapt. The first change is in iteration
/// `first` or later.
void declare_adaption(const Problem& p, StateList& state, double first);
/// The factor of the dual steps, in an iteration that knows these residuals; sets the states, and
/// the number "adapted", which is not 0 where the factor is not 1.
Variable adapt(Scope& s, const Variable& primal, const Variable& dual);
/// |x' - x| as a sign of divergence: steps that were just changed are none.
double growth_of(const Numbers& n, double change);

/// `K0`.
std::string of_term(const char* base, index_t i);
index_t term_count(const Problem& p);
/// sum + term; the term if sum is undefined.
Variable sum_of(const Variable& sum, const Variable& term);
/// The shift d of a term in the dtype of its vectors; undefined where the problem has none.
Variable shift_of(const Problem& p, const std::string& shift, const Variable& like);
/// K x - d of a term, where the problem has the shift d.
Variable shifted(const Problem& p, const std::string& shift, const Variable& image);
/// True if a finite vector may have an image under K or K^H that is not: under any but the identity
/// and differences. It is guarded, since projections make finite numbers of NaN. For differences
/// this would take one more pass.
bool may_leave_range(const NamedLinop& K);
/// g_i(K x - d) of term i, given K x.
Variable term_value(const Problem& p, Scope& s, index_t i, const Variable& image);
/// top / below; 0 for 0 / 0, and 1 where only the top is not 0.
double relative(double top, double below);
Variable relative(const Variable& top, const Variable& below);

/// The dual variable u of a term in the state. Where its function takes norms along a short first
/// axis only, such as that of a gradient, each part along it is a state of its own, `u0[1]`, so
/// that a step is one pass over all of them; else it is one state, `u0`.
class Dual {
 public:
  /// The dual variable of term i.
  Dual(const Problem& p, index_t i);
  /// The dual variable of a function of all of b.
  Dual(const Problem& p, std::string name, std::string g);
  void declare(StateList& state) const;
  /// All of u.
  Variable latest(const Scope& s) const;
  Variable old(const Scope& s) const;

  std::string name, g, shift, kept;  // kept: the state that holds K x where steps adapt
  std::string op;                    // in whose range it lies
  Space space;                       // of a part
  std::vector<std::string> parts;    // names of their states
};

/// The states of all dual variables and, where steps adapt, of the K_i x; and these of a start x.
void declare_duals(const Problem& p, StateList& state);
void set_up_images(const Problem& p, Scope& s);

/// If steps adapt, the squares of |(u - u') / sigma - K (x - x')| and of |u'|, of all dual
/// variables; and the largest relative residual.
struct DualResidual {
  Variable top, size, relative;
};

/// u' = prox_{sigma g*}(u + sigma distance), where image is K (2 x' - x) and distance the same less
/// the shift, with the numbers that the test needs; the result is u' - u. Where steps adapt,
/// K x' = (image + K x) / 2 is kept, and its part of the residual is added.
Variable dual_step(const Problem& p, Scope& s, const Dual& u, const Variable& image,
                   const Variable& distance, const Variable& sigma, DualResidual& residual);

/// x' = prox_{tau h}(x - tau slope) and 2 x' - x, with the numbers for the test. The slope is made
/// of the leaves, without another operator. Without h only 2 x' - x is an array; x' is half the sum
/// of it and x, computed again by each reader.
struct PrimalStep {
  Variable next, ahead, change, size;  // change: |x' - x|^2; size: |x'|^2
};
PrimalStep primal_step(const Problem& p, Scope& s, const Variable& slope, const Variable& tau,
                       std::vector<Variable> leaves);

/// |(u - u') / sigma| + |K| |x - x'| over max(|u'| / sigma, |K x'|).
double dual_residual(const Numbers& n, const std::string& name, const std::string& sigma,
                     double norm_K, double change);

/// Arrays that one pass over the leaves makes, and squared norms of others, summed in the same pass
/// without a batch.
ops::Pass one_pass(const Space& space, const std::vector<Variable>& arrays,
                   const std::vector<Variable>& normed, const std::vector<Variable>& leaves);

}  // namespace palimpsest::proximal
