// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "palimpsest/base/config.hpp"
#include "palimpsest/linop/core/node.hpp"
#include "palimpsest/linop/split/cache_tiles.hpp"
#include "palimpsest/named/sizes.hpp"
#include "palimpsest/solve/frame/planned.hpp"
#include "palimpsest/solve/frame/prelude.hpp"
#include "palimpsest/solve/solvers/objective_problem.hpp"
#include "palimpsest/solve/solvers/svd.hpp"
#include "palimpsest/solve/spectrum.hpp"
#include "palimpsest/tensor/placeholder.hpp"

namespace palimpsest {
namespace {

// The run of one of the two solvers.
struct Prepared {
  TensorType data;
  bool is_dense = false;
  Problem problem = {};
  SolveOptions options = {};
  const SolverType& type() const { return *find_solver(is_dense ? "dense_svd" : "svd"); }
};

Prepared prepared(const NamedLinop& A, index_t k, const SvdOptions& o) {
  Prepared made{.data = data_type(A, A.oshape(), o.dtype, "svd")};
  made.problem = Problem(made.data);
  made.problem.set("A", A).set("k", k).set("vectors", o.vectors);
  made.options = solve_options(o);
  // The start vector is there besides.
  if (const auto budget = o.budget_bytes ? o.budget_bytes : config().budget) {
    const index_t start = byte_count(made.data.shape, made.data.dtype);
    made.options.budget_bytes = std::max<index_t>(*budget - start, 0);
  }
  svd_parts::check_svd(made.problem, "svd");
  Problem resolved = made.problem;
  resolved.resolve(o.batch, false, "svd");
  svd_parts::count_of(resolved);
  const index_t side = std::min(svd_parts::rows_of(resolved), svd_parts::columns_of(resolved));
  if (side > o.dense_side || resolved.x().is_in_parts() || resolved.b().is_in_parts()) return made;
  SolveOptions dense = made.options;
  dense.max_iterations = static_cast<int>(side);
  dense.tolerance = 0;
  const SolverType& type = *find_solver("dense_svd");
  if (made.options.budget_bytes) {
    SolveOptions uncut = dense;
    uncut.budget_bytes = kNoLimit;
    if (plan_solve(type, made.problem, uncut).total_bytes() > *made.options.budget_bytes) {
      return made;
    }
  }
  made.is_dense = true;
  made.options = dense;
  return made;
}

// Names the smallest budget of all that svd() does where its solver finds none.
template <class Work>
auto within_budget(const NamedLinop& A, index_t k, const SvdOptions& options, Work work) {
  try {
    return work();
  } catch (const BudgetError&) {
    const auto budget = options.budget_bytes ? options.budget_bytes : config().budget;
    if (!budget) throw;
    const ConfigScope scope({.budget = kNoLimit});
    SvdOptions unlimited = options;
    unlimited.budget_bytes.reset();
    const Prepared run = prepared(A, k, unlimited);
    SolveOptions iterative = solve_options(unlimited);
    const SolverType& type = *find_solver("svd");
    index_t least = smallest_solve_budget(type, run.problem, iterative);
    iterative.budget_bytes = kNoLimit;
    index_t state = plan_solve(type, run.problem, iterative).state_bytes;
    if (run.is_dense) {
      const SolvePlan dense = plan_solve(run.type(), run.problem, run.options);
      if (dense.total_bytes() < least) state = dense.state_bytes;
      least = std::min(least, dense.total_bytes());
    }
    const index_t start = byte_count(run.data.shape, run.data.dtype);
    refuse_budget("svd", *budget, start + least, state);
  }
}

// The number `part` of the elements of x from `at` on, as an array; moves `at` behind them.
Tensor next_part(const Tensor& x, index_t& at, const Extents& shape) {
  const index_t n = element_count(shape);
  at += n;
  return x.narrow(0, at - n, n).reshape(shape);
}

Tensor real_part(const Tensor& given) {
  const Tensor x = on_host(given);
  Tensor made = Tensor::empty(x.shape(), real_of(x.dtype()));
  const index_t n = x.numel(), step = is_complex(x.dtype()) ? 2 : 1;
  const auto copy = [&](const auto* from, auto* to) {
    for (index_t i = 0; i < n; ++i) to[i] = from[i * step];
  };
  if (made.dtype() == DType::float32) {
    copy(static_cast<const float*>(x.raw_data()), static_cast<float*>(made.raw_mutable_data()));
  } else {
    copy(static_cast<const double*>(x.raw_data()), static_cast<double*>(made.raw_mutable_data()));
  }
  return made;
}

}  // namespace

SvdResult svd(const NamedLinop& A, index_t k, const SvdOptions& options) {
  const Prepared run = prepared(A, k, options);
  Problem resolved = run.problem;
  resolved.resolve(options.batch, false, "svd");
  const Tensor start =
      is_planning() ? placeholder(run.data.dtype, run.data.shape, run.data.device)
                    : Tensor::random_normal(run.data.shape, run.data.dtype, {options.seed, 78});
  SolveResult result = within_budget(
      A, k, options, [&] { return solve(run.type(), run.problem, start, run.options); });
  if (is_planning()) {
    add_bytes_besides(result, byte_count(run.data.shape, run.data.dtype));
    return {};
  }
  Extents left = resolved.b().type().shape, right = resolved.x().type().shape;
  Extents values = resolved.x().number_type().shape;
  left.push_back(k);
  values.push_back(k);
  right.insert(0, k);
  index_t at = 0;
  SvdResult made;
  made.status = result.status;
  made.iterations = result.iterations;
  made.U = next_part(result.x, at, left);
  made.Vh = next_part(result.x, at, right);
  made.S = real_part(next_part(result.x, at, values));
  made.applications = std::move(result.applications);
  made.peak_bytes = result.peak_bytes + byte_count(run.data.shape, run.data.dtype);
  return made;
}

SolvePlan plan_svd(const NamedLinop& A, index_t k, const SvdOptions& options) {
  const Prepared run = prepared(A, k, options);
  SolvePlan plan = within_budget(A, k, options,
                                 [&] { return plan_solve(run.type(), run.problem, run.options); });
  plan.peak_bytes += byte_count(run.data.shape, run.data.dtype);
  return plan;
}

}  // namespace palimpsest
