// SPDX-License-Identifier: Apache-2.0
#include "solve/solver_samples.hpp"

#include <ostream>

#include "palimpsest/linop/containers/chain.hpp"
#include "palimpsest/linop/operators/dense.hpp"
#include "palimpsest/linop/operators/diagonal.hpp"
#include "palimpsest/linop/operators/identity.hpp"
#include "palimpsest/solve/prox/constraints.hpp"
#include "palimpsest/solve/prox/total_variation.hpp"
#include "palimpsest/solve/prox/wavelets.hpp"
#include "palimpsest/solve/solvers/objective_problem.hpp"

namespace palimpsest::testing {
namespace {

constexpr index_t kN = 24;

Tensor random(Extents shape, DType dtype, std::uint64_t stream) {
  return Tensor::random_normal(std::move(shape), dtype, {41, stream});
}

TensorType square_type(DType dtype) { return {dtype, {2, kN}, {}}; }

struct Samples {
  CoilsMadeOf made_of;

  // Maps of 3 coils on S slices of kN points: S N -> C S N, separable along S.
  NamedLinop coils(DType dtype) const {
    const NamedLinop maps = Dense(random({3, 2, kN}, dtype, 1), "C S N,S N->C S N");
    return made_of ? made_of(maps) : maps;
  }
  // The type of the data, with the actual number of coils.
  TensorType data_type(DType dtype) const {
    return {dtype, {coils(dtype).size("C").value(), 2, kN}, {}};
  }
  NamedLinop positive(DType dtype) const { return coils(dtype).N() + 0.5 * Identity("S N"); }
  Problem square(DType dtype) const {
    return Problem(square_type(dtype)).set("A", positive(dtype));
  }
  Problem square_with_m(DType dtype) const {
    Tensor weights = Tensor::linspace(0.1, 0.4, 2 * kN, real_of(dtype)).reshape({2, kN});
    return square(dtype).set("M", Diagonal(weights, "S N"));
  }
  Problem rectangular(DType dtype) const {
    return Problem(data_type(dtype)).set("A", coils(dtype));
  }
  Problem with_h(DType dtype) const {
    Problem p = objective_problem({.A = coils(dtype), .h = L1(0.05)}, data_type(dtype));
    return p.set("restart", true).set("max_iterations", 1000);
  }
  Objective with_terms(DType dtype) const {
    return {.A = coils(dtype), .terms = {tv_term(0.05, "N"), {.g = L1(0.05)}}, .h = NonNegative()};
  }

  std::vector<SolverSample> list_of() const {
    const Extents b{2, kN}, y{3, 2, kN};
    std::vector<SolverSample> list;
    const auto plain = [*this](DType d) { return square(d); };
    const auto with_m = [*this](DType d) { return square_with_m(d); };
    const auto tall = [*this](DType d) { return rectangular(d); };
    const auto regularized = [*this](DType d) { return with_h(d); };
    for (const char* name : {"conjugate_gradients", "minres", "bicgstab"}) {
      list.push_back({name, "", plain, b});
      list.push_back({name, "WithM", with_m, b});
    }
    list.push_back({"conjugate_gradients", "Refreshing",
                    [*this](DType d) { return square_with_m(d).set("refresh", 3); }, b});
    list.push_back({"gmres", "", plain, b});
    const auto restarting = [*this](DType d) { return square_with_m(d).set("restart", 3); };
    list.push_back({"gmres", "Restarting", restarting, b});
    const auto bounded = [*this](DType d) {
      return square(d).set("lower", 0.4).set("upper", 20.0).set("residual", true);
    };
    list.push_back({"chebyshev", "", bounded, b});
    list.push_back({"power_method", "", plain, b});
    list.push_back({"lanczos", "", plain, b});
    const auto triplets = [*this](DType d) { return rectangular(d).set("k", 3); };
    const auto restarted = [*this](DType d) {
      return rectangular(d).set("k", 1).set("vectors", 4);
    };
    list.push_back({"dense_svd", "", triplets, y, false});
    list.push_back({"svd", "", triplets, y, false});
    list.push_back({"svd", "Restarted", restarted, y, false});
    for (const char* name : {"cgls", "lsqr", "lsmr"}) {
      list.push_back({name, "", tall, y});
      list.push_back(
          {name, "Damped", [*this](DType d) { return rectangular(d).set("damp", 0.3); }, y});
    }
    for (const char* name : {"ista", "fista", "pogm", "gradient_descent", "nesterov"}) {
      list.push_back({name, "", regularized, y});
      list.push_back({name, "WithL", [*this](DType d) { return with_h(d).set("L", 40.0); }, y});
    }
    const auto averaged = [*this](DType d) {
      return with_h(d).set("average", 3).set("max_iterations", 6);
    };
    list.push_back({"fista", "Averaged", averaged, y});
    for (const char* name : {"ista", "fista", "nesterov"}) {
      const auto flagged = [this](const char* flag) {
        return [*this, flag](DType d) { return with_h(d).set("L", 40.0).set(flag, true); };
      };
      list.push_back({name, "Monotone", flagged("monotone"), y});
      list.push_back({name, "Backtracking", flagged("backtrack"), y});
    }
    const auto recording = [*this](DType d) {
      return with_h(d)
          .set("L", 4.0)
          .set("monotone", true)
          .set("backtrack", true)
          .set("objective", true);
    };
    list.push_back({"fista", "Recording", recording, y});
    list.push_back({"ista", "WithoutN",
                    [*this](DType d) { return rectangular(d).set("h", L1(0.05)).set("L", 40.0); },
                    y});
    const auto with_prox = [*this](DType d) {
      const Prox tv = TotalVariation(0.05, "N", {.dims = Dims("S N"), .inner = 5});
      return objective_problem({.A = coils(d), .h = tv}, data_type(d));
    };
    list.push_back({"fista", "TotalVariation", with_prox, y, false});
    const auto with_shifts = [*this](DType d) {
      const Prox h = L1Wavelet(0.05, "N", {.shift = Shift::random, .dims = Dims("S N")});
      return objective_problem({.A = coils(d), .h = h}, data_type(d));
    };
    list.push_back({"fista", "ShiftedWavelets", with_shifts, y, false});
    const auto split = [*this](DType d) {
      Objective f = with_terms(d);
      f.terms.push_back({.g = *f.h});
      f.h.reset();
      return objective_problem(f, data_type(d)).set("inner", 3).set("adapt", true);
    };
    list.push_back({"admm", "", split, y});
    list.push_back(
        {"admm", "WithL", [*this, split](DType d) { return split(d).set("L", 40.0); }, y});
    const auto periodic = [*this](DType d) {
      const Term tv =
          tv_term(0.05, "N", {.boundary = DifferenceBoundary::periodic, .dims = Dims("S N")});
      return objective_problem({.A = Identity("S N"), .terms = {tv, {.g = L1(0.05)}}},
                               square_type(d));
    };
    list.push_back(
        {"admm", "Closed", [*this, periodic](DType d) { return periodic(d).set("L", 1.0); }, b});
    const auto diagonal = [*this](DType d) {
      const Tensor weights = Tensor::linspace(0.5, 1, 2 * kN, real_of(d)).reshape({2, kN});
      return objective_problem({.A = Diagonal(weights, "S N"),
                                .terms = {{.g = L1(0.05), .K = Diagonal(weights.clone(), "S N")}}},
                               square_type(d))
          .set("L", 1.0);
    };
    list.push_back({"admm", "Diagonal", diagonal, b});
    const auto terms = [*this](DType d) { return objective_problem(with_terms(d), data_type(d)); };
    list.push_back({"condat_vu", "", terms, y});
    list.push_back({"condat_vu", "Adapting",
                    [*this, terms](DType d) { return terms(d).set("adapt", true); }, y});
    list.push_back({"condat_vu", "Recording",
                    [*this, terms](DType d) { return terms(d).set("objective", true); }, y});
    const auto weighted = [*this](DType d) {
      const Tensor weights = Tensor::linspace(0.5, 1, 2 * kN, real_of(d)).reshape({2, kN});
      const Prox l1 = L1(Tensor::full<double>({}, 0.05).to(real_of(d)));
      return objective_problem(
                 {.A = coils(d),
                  .terms = {tv_term(0.05, "N"),
                            {.g = l1, .K = Diagonal(weights, "S N")},
                            {.g = SquaredL2(0.1), .K = Diagonal(weights.clone(), "S N")}}},
                 data_type(d))
          .set("L", 40.0)
          .set("f", SquaredL2(1.0))
          .set("rho", 5.0);
    };
    for (const char* name : {"condat_vu", "pdhg", "admm"}) {
      list.push_back({name, "Weighted", weighted, y, false});
    }
    const auto adapting_weighted = [weighted](DType d) { return weighted(d).set("adapt", true); };
    for (const char* name : {"condat_vu", "pdhg"}) {
      list.push_back({name, "WeightedAdapting", adapting_weighted, y, false});
    }
    const auto generalized = [*this](DType d) {
      return objective_problem(tgv_objective(coils(d), 0.05, "N"), data_type(d));
    };
    list.push_back({"condat_vu", "Tgv", generalized, y, false});
    list.push_back(
        {"pdhg", "", [*this, terms](DType d) { return terms(d).set("f", SquaredL2(1.0)); }, y});
    const auto strong = [*this, terms](DType d) {
      return terms(d).set("f", SquaredL2(1.0)).set("h", SquaredL2(0.5)).set("strong", 0.5);
    };
    list.push_back({"pdhg", "Strong", strong, y});
    const auto adapting = [*this, terms](DType d) {
      return terms(d).set("f", SquaredL2(1.0)).set("adapt", true).set("objective", true);
    };
    list.push_back({"pdhg", "Adapting", adapting, y});
    return list;
  }
};

}  // namespace

std::ostream& operator<<(std::ostream& stream, const SolverSample& s) {
  return stream << s.solver << s.variant;
}

std::vector<SolverSample> solver_samples(const CoilsMadeOf& made_of) {
  return Samples{made_of}.list_of();
}

}  // namespace palimpsest::testing
