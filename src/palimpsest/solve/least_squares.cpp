// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/solve/least_squares.hpp"

#include "palimpsest/solve/frame/prelude.hpp"

namespace palimpsest {
namespace {

SolveResult solved_with(const char* solver, const NamedLinop& A, const Tensor& b,
                        const LeastSquaresOptions& o) {
  if (o.M && o.x0) {
    throw ValueError("[" + std::string(solver) + "] x0: expected none together with M");
  }
  Problem p(type_of(b));
  p.set("A", o.M ? A * *o.M : A).set("damp", o.damp).set("atol", o.atol).set("btol", o.btol);
  p.set("conlim", o.conlim);
  if (o.M) p.set("M", *o.M);
  return solve(*find_solver(solver), p, b, solve_options(o));
}

}  // namespace

SolveResult cgls(const NamedLinop& A, const Tensor& b, const CglsOptions& options) {
  Problem p(type_of(b));
  p.set("A", A).set("damp", options.damp);
  return solve(*find_solver("cgls"), p, b, solve_options(options));
}

SolveResult lsqr(const NamedLinop& A, const Tensor& b, const LeastSquaresOptions& options) {
  return solved_with("lsqr", A, b, options);
}

SolveResult lsmr(const NamedLinop& A, const Tensor& b, const LeastSquaresOptions& options) {
  return solved_with("lsmr", A, b, options);
}

}  // namespace palimpsest
