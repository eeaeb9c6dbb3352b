// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "palimpsest/base/api.hpp"
#include "palimpsest/solve/frame/solver.hpp"

namespace PALIMPSEST_API palimpsest {

/// lambda / 2 |L x - c|^2; without L the identity, without c zero.
struct Quadratic {
  double lambda = 1;
  std::optional<NamedLinop> L = {};
  std::optional<Tensor> c = {};
};
/// g(K x - d); without K the identity, without d zero.
struct Term {
  Prox g;
  std::optional<NamedLinop> K = {};
  std::optional<Tensor> d = {};
};
/// |A x - b|_W^2 / 2 + sum of the quadratics + sum of g_i(K_i x - d_i) + h(x).
struct Objective {
  NamedLinop A;
  std::optional<NamedLinop> W = {};  ///< Hermitian positive weights of the data
  std::vector<Quadratic> quadratics = {};
  std::vector<Term> terms = {};
  std::optional<Prox> h = {};
};

enum class Method : std::uint8_t { automatic, cg, fista, condat_vu, admm };

struct MinimizeOptions {
  Method method = Method::automatic;
  PALIMPSEST_SOLVE_LIMITS(1e-6);
  PALIMPSEST_SOLVE_PROGRESS;
  /// A bound of the largest eigenvalue of the Hessian of the quadratic part; unset: found.
  std::optional<double> L = {};
  /// condat_vu: the steps of the dual variables relative to those of x.
  double balance = 2.4;
  /// fista: restarts the momentum when it leads uphill.
  bool restart = true;
  /// admm: the penalty, unset: L / 2; the relaxation; most iterations of the inner conjugate
  /// gradients, and their tolerance relative to the outer residual.
  std::optional<double> rho = {};
  double relaxation = 1.6;
  int inner = 10;
  double inner_tolerance = 0.1;
  /// condat_vu: `balance` is where the steps begin, and they then follow the two residuals, ever
  /// more rarely, for a vector more of each term. admm: as of AdmmOptions.
  bool adapt = false;
  PALIMPSEST_SOLVE_START;
  PALIMPSEST_SOLVE_OPTIONS;
};

/// Minimizes an objective. The automatic method: conjugate gradients without terms and h; fista
/// with h alone, or with a single term without K; else condat_vu.
///
/// Units     the functions act on x itself: with scaled data scale lambda too
/// Objective with RecordObjective::always for one N, and one K of each term, more per iteration;
///           with cg always, and that of conjugate_gradients()
/// Errors    ValueError "lambda": negative; "method": one that cannot solve this; "balance";
///           "adapt": without terms; those of Solver
SolveResult minimize(const Objective& f, const Tensor& b, const MinimizeOptions& options = {});
SolvePlan plan_minimize(const Objective& f, const TensorType& b,
                        const MinimizeOptions& options = {});

/// The smallest budget for which minimize() finds tiles; that of the options does not count.
index_t smallest_minimize_budget(const Objective& f, const TensorType& b,
                                 const MinimizeOptions& options = {});

/// The method of Condat and of Vu: one N, K and K^H of each term, and one prox of each function per
/// iteration.
///
/// Stops      when the residuals of both optimality conditions, relative, are at most the tolerance
/// Memory     2 vectors and one of each term
/// Source     Condat 2013, doi:10.1007/s10957-012-0245-9; Vu 2013, doi:10.1007/s10444-011-9254-8
SolveResult condat_vu(const Objective& f, const Tensor& b, const MinimizeOptions& options = {});

struct AdmmOptions {
  /// Of both residuals, relative.
  PALIMPSEST_SOLVE_LIMITS(1e-3);
  PALIMPSEST_SOLVE_PROGRESS;
  std::optional<double> L = {};
  /// The penalty; unset: L / 2. Smaller than needed, the terms are met late; larger, the data.
  std::optional<double> rho = {};
  double relaxation = 1.6;
  /// Most steps of the inner conjugate gradients, and where they end, relative to the residual of
  /// the last iteration.
  int inner = 10;
  double inner_tolerance = 0.1;
  /// rho follows the two residuals, from iteration 5 on and ever more rarely.
  bool adapt = false;
  PALIMPSEST_SOLVE_START;
  PALIMPSEST_SOLVE_OPTIONS;
};
/// The alternating direction method of multipliers; h counts as a term without K.
///
/// Math       x' minimizes the quadratic part + sum of rho / 2 |K_i x - d_i - z_i + u_i|^2, by
///            conjugate gradients from x; r_i = a (K_i x' - d_i) + (1 - a) z_i,
///            z_i' = prox_{g_i / rho}(r_i + u_i), u_i' = u_i + r_i - z_i'
/// Cost       per iteration as many N and K^H K of each term as the inner steps and one, counted as
///            "N" and "K0.N", ..; one K and two K^H of each term
/// Memory     4 vectors and two of each term; the inner steps work in 3 more
/// Errors     ValueError "rho", "relaxation", "inner"
/// Source     Boyd et al. 2011, doi:10.1561/2200000016
SolveResult admm(const Objective& f, const Tensor& b, const AdmmOptions& options = {});

struct PdhgOptions {
  PALIMPSEST_SOLVE_LIMITS(1e-6);
  PALIMPSEST_SOLVE_PROGRESS;
  /// The step of the dual variables over that of x.
  double ratio = 1;
  /// h - strong |x|^2 / 2 is convex: the steps of x shrink and those of the dual variables grow, so
  /// that |x - solution| falls as 1 / iterations.
  double strong = 0;
  /// Both steps follow the two residuals, ever more rarely: the variable that lags behind gets
  /// longer steps, and their product stays. Not with `strong`. Takes one more vector of x, of b and
  /// of each term.
  bool adapt = false;
  PALIMPSEST_SOLVE_START;
  PALIMPSEST_SOLVE_OPTIONS;
};
/// Minimizes f(A x - b) + sum of g_i(K_i x - d_i) + h(x) by the primal-dual hybrid gradient method:
/// for data terms that are not quadratic. Of the objective A, terms and h count.
///
/// Cost       A, A^H, and K and K^H of each term, per iteration
/// Memory     a vector of x, of b and of each term
/// Objective  with RecordObjective::always for one A, and one K of each term, more per iteration
/// Errors     ValueError "ratio", "strong", "adapt"
/// Source     Chambolle and Pock 2011, doi:10.1007/s10851-010-0251-1; adapt: Goldstein, Li and Yuan
///            2015, Adaptive primal-dual splitting methods for statistical learning and image
///            processing
SolveResult pdhg(const Prox& f, const Objective& rest, const Tensor& b,
                 const PdhgOptions& options = {});

}  // namespace palimpsest
