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
  if (o.damp != 0 && (o.M || o.x0)) {
    throw ValueError("[" + std::string(solver) + "] damp: got " + Attribute(o.damp).str() +
                     " together with " + (o.M ? "M" : "x0") + ", expected 0. Try cgls");
  }
  Problem p(type_of(b));
  p.set("A", o.M ? A * *o.M : A).set("damp", o.damp).set("atol", o.atol).set("btol", o.btol);
  p.set("conlim", o.conlim);
  if (o.M) p.set("M", *o.M);
  SolveResult result = solve(*find_solver(solver), p, b, solve_options(o));
  if (o.M) {  // a part of A, and once more for x
    result.applications["M"] = result.applications["A"] + 1;
    result.applications["M^H"] = result.applications["A^H"];
  }
  return result;
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
