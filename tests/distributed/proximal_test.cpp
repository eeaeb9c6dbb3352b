// SPDX-License-Identifier: Apache-2.0
// Objectives with unknowns in parts on ranks give the result of one process, or are refused.
#include <gtest/gtest.h>

#include <string>

#include "distributed/distributed_support.hpp"
#include "palimpsest/linop/operators/identity.hpp"
#include "palimpsest/linop/transforms/finite_difference.hpp"
#include "palimpsest/solve/gradient_methods.hpp"
#include "palimpsest/solve/objective.hpp"
#include "palimpsest/solve/prox/composed.hpp"
#include "palimpsest/solve/prox/constraints.hpp"
#include "palimpsest/solve/prox/low_rank.hpp"
#include "palimpsest/solve/prox/norms.hpp"
#include "palimpsest/solve/prox/total_variation.hpp"
#include "palimpsest/solve/prox/wavelets.hpp"
#include "support/expect_error.hpp"

namespace palimpsest::testing {
namespace {

const Placement kSlices{{"S", "rank"}};
constexpr index_t kSliceCount = 5, kN = 12;
const MinimizeOptions kOptions{.tolerance = 0, .max_iterations = 6};

class ProximalOfParts : public ::testing::Test {
 protected:
  const Team team = Team::world();
  const NamedLinop A = Dense(Parameter(random_values({3, kSliceCount, kN}, DType::complex128, 1)),
                             "C S N,S N->C S N");
  const NamedLinop part = distribute(A, team, kSlices);
  const Tensor b = random_values({3, kSliceCount, kN}, DType::complex128, 2);
  const Tensor mine = DTensor::part_of(b, "C S N", team, kSlices).local().contiguous();
  const Dims dims = "S N";

  // `whole` in one process, `of_parts` on all ranks. Norms that a method estimates from random
  // vectors differ between ranks.
  void expect_equal(const Objective& whole, const Objective& of_parts, Method method) const {
    MinimizeOptions options = kOptions;
    options.method = method;
    options.L = 30.0;
    const double tolerance = method == Method::condat_vu ? 1e-3 : 1e-7;
    const SolveResult one = minimize(whole, b, options), all = minimize(of_parts, mine, options);
    const Tensor expected = DTensor::part_of(one.x, "S N", team, kSlices).local().contiguous();
    EXPECT_LT(distance(all.x, expected), tolerance);
    EXPECT_EQ(all.status, one.status);
    EXPECT_EQ(all.iterations, one.iterations);
    ASSERT_EQ(all.history.size(), one.history.size());
    for (std::size_t k = 0; k < one.history.size(); ++k) {
      if (std::isnan(one.history[k].objective)) continue;
      EXPECT_NEAR(all.history[k].objective, one.history[k].objective,
                  tolerance * (1 + std::abs(one.history[k].objective)));
    }
  }
  void expect_refused(const Objective& f, const std::string& message) const {
    if (team.size() == 1) return;
    expect_error<SplitError>([&] { minimize(f, mine, kOptions); }, message);
    expect_error<SplitError>(
        [&] { plan_minimize(f, type_of(DType::complex128, mine.shape()), kOptions); }, message);
  }
};

TEST_F(ProximalOfParts, FunctionsThatFallApartGiveWhatOneProcessGives) {
  for (const Prox& h :
       {L1(0.3), L21(0.3, "N", dims), L1Wavelet(0.2, "N", {.dims = dims}),
        TotalVariation(0.3, "N", {.dims = dims, .inner = 400, .inner_tolerance = 1e-14}),
        SquaredL2(0.4), Huber(0.3, 0.5), RealValued(), Ball(2.0, {.over = Dims("N")}),
        plus_quadratic(L1(0.3), 0.1), weighted(L1(0.2), 2.0)}) {
    SCOPED_TRACE(h.str());
    expect_equal({.A = A, .h = h}, {.A = part, .h = h}, Method::fista);
  }
}

TEST_F(ProximalOfParts, FunctionsOfWholeVectorsAreRefused) {
  const Prox user = CustomProx({.prox = [](const Variable& v, const Variable&) { return v; }});
  for (const Prox& h : {L2(0.3), L21(0.3, "S", dims), L21(0.3, "S N", dims), Ball(2.0),
                        L1Wavelet(0.2, "S N", {.dims = dims}), Nuclear(0.3, "S", "N"),
                        TotalVariation(0.3, "S", {.dims = dims}), weighted(L2(0.3), 2.0),
                        plus_quadratic(L2(0.3), 0.1), user}) {
    SCOPED_TRACE(h.str());
    expect_refused({.A = part, .h = h},
                   "is not separable along S, along which processes have parts");
    expect_refused({.A = part, .terms = {{.g = h}}}, "is not separable along S");
  }
}

// The identity of a term without an operator has no placement, and acts on each part.
TEST_F(ProximalOfParts, OperatorsOfTermsActOnEachPart) {
  const Objective whole{.A = A,
                        .quadratics = {{.lambda = 0.2}},
                        .terms = {{.g = L1(0.2)}, tv_term(0.3, "N", {.dims = dims})}};
  Objective of_parts = whole;
  of_parts.A = part;
  expect_equal(whole, of_parts, Method::admm);
  expect_equal(whole, of_parts, Method::condat_vu);
}

TEST_F(ProximalOfParts, OperatorsAcrossPartsAreDistributedOrRefused) {
  const Term across{.g = L1(0.2), .K = FiniteDifference(dims, "S")};
  expect_refused({.A = part, .terms = {across}}, "cannot be applied to parts along S");
  const NamedLinop sized = FiniteDifference(dims, "S").with_sizes({{"S", kSliceCount}, {"N", kN}});
  Objective of_parts{.A = part, .terms = {{.g = L1(0.2), .K = distribute(sized, team, kSlices)}}};
  for (const Method method : {Method::admm, Method::condat_vu}) {
    expect_equal({.A = A, .terms = {across}}, of_parts, method);
  }
}

}  // namespace
}  // namespace palimpsest::testing
