// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/solve/square_systems.hpp"

#include <cmath>
#include <utility>

#include "palimpsest/compile/function.hpp"
#include "palimpsest/ops/ops.hpp"
#include "palimpsest/solve/frame/planned.hpp"
#include "palimpsest/solve/frame/solver_type.hpp"
#include "palimpsest/solve/frame/types.hpp"
#include "palimpsest/solve/scaling.hpp"
#include "palimpsest/tensor/placeholder.hpp"

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
  SolveResult result = solve(*find_solver("gmres"), p, b, solve_options(options));
  if (options.M) ++result.applications["M"];  // for x
  return result;
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
  const Problem p = square_problem(A, v0);
  Tensor start = v0;  // its length is free
  const bool has_length = is_floating(v0.dtype()) || is_complex(v0.dtype());
  if (const int e =
          has_length && !is_planning() ? scale_exponent(largest_part(v0), 0, v0.dtype()) : 0;
      e != 0) {
    start = v0.contiguous().clone();
    multiply_by_power_of_two(start, e);
  }
  SolveResult result = solve(*find_solver("power_method"), p, start, with);
  if (is_planning()) return {};
  // A run that had ended when its checkpoint was written makes no step.
  if (eigenvalue == 0 && !result.history.empty()) eigenvalue = result.history.back().numbers[0];
  PowerResult made{std::move(result.x), eigenvalue, {}, result.status, result.iterations};
  if (result.status == Status::diverged) made.eigenvalue = std::nan("");
  if (options.batch.empty()) return made;
  Problem resolved = p;
  resolved.resolve(options.batch, false, "power_method");
  const Variable v = make_input(resolved.x().type(), "v");
  made.eigenvalues = function({v}, ops::sqrt(resolved.x().norm2(A(v))))(made.v);
  if (result.status != Status::diverged) made.eigenvalue = largest_part(made.eigenvalues);
  return made;
}

PowerResult power_method(const NamedLinop& A, const PowerOptions& options) {
  const TensorType type = data_type(A, A.ishape(), {}, "power_method");
  const Tensor v0 = is_planning()
                        ? placeholder(type.dtype, type.shape, type.device)
                        : Tensor::random_normal(type.shape, type.dtype, {options.seed, 79});
  return power_method(A, v0, options);
}

}  // namespace palimpsest
