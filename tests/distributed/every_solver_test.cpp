// SPDX-License-Identifier: Apache-2.0
// Every registered solver gives the same result on several ranks as in one process.
#include <gtest/gtest.h>

#include <cmath>

#include "distributed/counted_messages.hpp"
#include "distributed/distributed_support.hpp"
#include "palimpsest/base/config.hpp"
#include "palimpsest/distributed/team_plan.hpp"
#include "solve/solver_samples.hpp"
#include "support/expect_error.hpp"

namespace palimpsest::testing {
namespace {

const Placement kCoils{{"C", "rank"}};
constexpr int kIterations = 5;

class EverySolver : public ::testing::TestWithParam<SolverSample> {
 protected:
  const SolverType& type() const { return *find_solver(GetParam().solver); }
  // The same problem with the coils cut.
  Problem cut(const Placement& placement) const {
    const Team team = Team::world();
    const auto made_of = [&](const NamedLinop& A) { return distribute(A, team, placement); };
    for (const SolverSample& s : solver_samples(made_of)) {
      if (s.solver == GetParam().solver && s.variant == GetParam().variant) {
        return s.problem(DType::complex128);
      }
    }
    throw InternalError("no such sample");
  }
  // The result to compare; of a singular value decomposition only the values (the last output),
  // since vectors may differ in sign.
  Tensor values_of(const Tensor& x) const {
    if (GetParam().solver.find("svd") == std::string::npos) return x;
    const index_t k = GetParam().problem(DType::complex128).integer("k", 1);
    return x.narrow(0, x.numel() - k, k);
  }
  bool has_coils() const { return GetParam().data.size() == 3; }
};

// With 3 coils the last of 4 ranks has none.
TEST_P(EverySolver, GivesOnCoilsOfRanksWhatOneProcessGives) {
  const Team team = Team::world();
  const Tensor b = random_values(GetParam().data, DType::complex128, 6);
  const Tensor mine =
      has_coils() ? DTensor::part_of(b, "C S N", team, kCoils).local().contiguous() : b;
  const SolveOptions options{.tolerance = 0, .max_iterations = kIterations};
  const SolveResult whole = solve(type(), GetParam().problem(DType::complex128), b, options);
  const Problem problem = cut(kCoils);
  if (GetParam().solver == "dense_svd" && team.size() > 1) {
    expect_error<NotSupported>([&] { plan_solve(type(), problem, options); },
                               "in parts on several processes");
    return;
  }
  const SolvePlan plan = plan_solve(type(), problem, options);
  {
    const ConfigScope apart({.rewrites_excluding = std::vector<std::string>{"join_messages"}});
    const Traffic joined = traffic_of(plan.step),
                  single = traffic_of(plan_solve(type(), problem, options).step);
    EXPECT_LE(joined.synchronisations, single.synchronisations);
    EXPECT_EQ(joined.bytes, single.bytes);
    RecordProperty("synchronisations", joined.synchronisations);
    RecordProperty("synchronisations_apart", single.synchronisations);
  }
  MemoryScope scope;
  const SolveResult together = solve(type(), problem, mine, options);
  EXPECT_EQ(static_cast<index_t>(scope.peak_bytes()), plan.peak_bytes);
  EXPECT_EQ(together.status, whole.status);
  EXPECT_EQ(together.iterations, whole.iterations);
  EXPECT_EQ(together.applications, whole.applications);
  EXPECT_LT(distance(values_of(together.x), values_of(whole.x)), 1e-9);
  ASSERT_EQ(together.history.size(), whole.history.size());
  for (std::size_t k = 0; k < whole.history.size(); ++k) {
    const double expected = whole.history[k].objective;
    if (std::isnan(expected)) continue;
    EXPECT_NEAR(together.history[k].objective, expected, 1e-9 * (1 + std::abs(expected))) << k;
  }
}

INSTANTIATE_TEST_SUITE_P(Solvers, EverySolver, ::testing::ValuesIn(solver_samples()),
                         [](const auto& s) { return s.param.solver + s.param.variant; });

}  // namespace
}  // namespace palimpsest::testing
