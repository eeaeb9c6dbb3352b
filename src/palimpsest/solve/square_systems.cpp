// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/solve/square_systems.hpp"

#include <utility>

#include "palimpsest/solve/frame/solver_type.hpp"
#include "palimpsest/solve/frame/types.hpp"

namespace palimpsest {
namespace {

Problem square_problem(const NamedLinop& A, const Tensor& b,
                       const std::optional<NamedLinop>& M = {}) {
  Problem p(type_of(b));
  p.set("A", A);
  if (M) p.set("M", *M);
  return p;
}

}  // namespace

SolveResult minres(const NamedLinop& A, const Tensor& b, const MinresOptions& options) {
  return solve(*find_solver("minres"), square_problem(A, b, options.M), b, solve_options(options));
}

SolveResult gmres(const NamedLinop& A, const Tensor& b, const GmresOptions& options) {
  Problem p = square_problem(A, b, options.M);
  p.set("restart", options.restart);
  return solve(*find_solver("gmres"), p, b, solve_options(options));
}

SolveResult bicgstab(const NamedLinop& A, const Tensor& b, const BicgstabOptions& options) {
  return solve(*find_solver("bicgstab"), square_problem(A, b, options.M), b,
               solve_options(options));
}

SolveResult chebyshev(const NamedLinop& A, const Tensor& b, const ChebyshevOptions& options) {
  Problem p = square_problem(A, b);
  p.set("lower", options.lower).set("upper", options.upper).set("residual", options.residual);
  return solve(*find_solver("chebyshev"), p, b, solve_options(options));
}

PowerResult power_method(const NamedLinop& A, const Tensor& v0, const PowerOptions& options) {
  SolveOptions with = solve_options(options);
  double eigenvalue = 0;
  with.callback = [&](const SolveInfo& info) {
    eigenvalue = info.numbers()[0];
    return !options.callback || options.callback(info);
  };
  SolveResult result = solve(*find_solver("power_method"), square_problem(A, v0), v0, with);
  return {std::move(result.x), eigenvalue, result.status, result.iterations};
}

}  // namespace palimpsest
