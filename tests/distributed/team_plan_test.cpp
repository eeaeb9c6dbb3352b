// SPDX-License-Identifier: Apache-2.0
// Plans of teams without processes, budgets of ranks, and sums with the same bits everywhere.
#include "palimpsest/distributed/team_plan.hpp"

#include <gtest/gtest.h>

#include <tuple>

#include "distributed/counted_messages.hpp"
#include "distributed/distributed_support.hpp"
#include "palimpsest/linop/split/budget.hpp"
#include "palimpsest/solve/conjugate_gradients.hpp"
#include "support/expect_error.hpp"

namespace palimpsest::testing {
namespace {

const Placement kCoils{{"C", "rank"}};

// An array of any size that stores one element.
Tensor without_memory(const Extents& shape, DType dtype) {
  return Tensor::zeros({}, dtype).as_strided(shape, Strides(shape.size(), 0), 0);
}

// SENSE with 32 coils and 256^3 points; no memory is allocated for its maps.
NamedLinop large_sense() {
  const index_t n = 256;
  const Tensor maps = without_memory({32, n, n, n}, DType::complex64),
               mask = without_memory({n, n, n}, DType::float32);
  return Chain(Dense(Parameter(maps), "C Nz Ny Nx", "Nz Ny Nx", "C Nz Ny Nx"),
               Fft(3, {.batch = "C", .grid = Grid{"Nz Ny Nx", "Kz Ky Kx"}}),
               Diagonal(Parameter(mask), "C Kz Ky Kx", {.weight_shape = Dims("Kz Ky Kx")}))
      .with_sizes({{"Nz", n}, {"Ny", n}, {"Nx", n}, {"Kz", n}, {"Ky", n}, {"Kx", n}});
}

TEST(TeamPlan, OfCgSenseOn1024RanksFollowsTheFormula) {
  if (Team::world().size() > 1) return;  // the same on all
  const index_t n = 256, coils = 32, item = 8;
  const NamedLinop A = large_sense();
  const Team team = Team::pretend({{"coil", 32}, {"z", 32}});
  const Placement placement{{"C", "coil"}, {"Nz", "z"}};
  const CgOptions options{.max_iterations = 10};
  const TeamPlan plan = plan_on_team(team, [&](const Team& seen) {
    const NamedLinop N = distribute(A, seen, placement).N();
    const TensorType x = part_of(type_of(DType::complex64, {n, n, n}), A.ishape(), seen, placement);
    const SolvePlan solve = plan_conjugate_gradients(N, x, options);
    return RankPlan{.peak_bytes = solve.peak_bytes,
                    .input_bytes = byte_count(x.shape, x.dtype),
                    .parameter_bytes = n * n * n / 32 * coils / 32 * item,
                    .traffic = traffic_of(solve.step)};
  });
  ASSERT_EQ(plan.ranks.size(), 1024u);
  const index_t part = n * n * n / 32 * item;  // of an image
  for (const RankPlan& rank : plan.ranks) {
    // N: four exchanges of one coil's part along z, and the sum of 32 parts along the coils; two
    // inner products, of float64 and of float32, summed along z.
    const index_t exchanges = 4 * (part - part / 32), sum = 2 * (part - part / 32);
    EXPECT_EQ(rank.traffic.bytes, exchanges + sum + 31 * (8 + 4));
    EXPECT_EQ(rank.traffic.messages, 4 * 31 + 2 * 31 + 2 * 31);
    EXPECT_EQ(rank.traffic.synchronisations, 4 + 2 + 2);
    // State x, r, p and the right-hand side; a coil's part and its message buffers.
    EXPECT_LE(rank.peak_bytes, 8 * part);
  }
  EXPECT_EQ(plan.largest().peak_bytes, plan.smallest().peak_bytes);
}

TEST(TeamPlan, OfATransformOn1024RanksFollowsTheFormula) {
  if (Team::world().size() > 1) return;  // the same on all
  const index_t n = 256;
  const NamedLinop F =
      Fft(3, {.batch = {}, .grid = Grid{"Nz Ny Nx", "Kz Ky Kx"}})
          .with_sizes({{"Nz", n}, {"Ny", n}, {"Nx", n}, {"Kz", n}, {"Ky", n}, {"Kx", n}});
  const Team team = Team::pretend({{"a", 32}, {"b", 32}});
  const TeamPlan plan =
      plan_on_team(F, team, {{"Nz", "a"}, {"Ny", "b"}}, type_of(DType::complex64, {n, n, n}));
  const index_t part = n * n * n * 8 / 1024;
  for (const RankPlan& rank : plan.ranks) {
    EXPECT_EQ(rank.traffic.bytes, 4 * (part - part / 32));
    EXPECT_EQ(rank.traffic.messages, 4 * 31);
    EXPECT_EQ(rank.traffic.synchronisations, 4);
    // The result, the array before and after an exchange, and message buffers.
    EXPECT_EQ(rank.peak_bytes, 3 * part + 2 * (part - part / 32));
  }
}

TEST(TeamPlan, OfASolveIsWhatItHoldsAndSends) {
  const Team team = Team::world();
  const NamedLinop A = sense(7, 24, 20, DType::complex64);
  const CgOptions options{.tolerance = 0, .max_iterations = 3};
  const TensorType x = type_of(DType::complex64, {24, 20});
  const TeamPlan announced =
      plan_on_team(Team::pretend({{"rank", team.size()}}), [&](const Team& seen) {
        const SolvePlan solve =
            plan_conjugate_gradients(distribute(A, seen, kCoils).N(), x, options);
        return RankPlan{.peak_bytes = solve.peak_bytes, .traffic = traffic_of(solve.step)};
      });
  const NamedLinop N = distribute(A, team, kCoils).N();
  const Tensor b = random_values({24, 20}, DType::complex64, 8);
  const RankPlan& mine = announced.ranks[static_cast<std::size_t>(team.rank())];
  const Traffic before = sent_messages();
  MemoryScope scope;
  conjugate_gradients(N, b, options);
  EXPECT_EQ(static_cast<index_t>(scope.peak_bytes()), mine.peak_bytes);
  EXPECT_EQ(sent_messages().bytes - before.bytes, 3 * mine.traffic.bytes);
  EXPECT_EQ(sent_messages().messages - before.messages, 3 * mine.traffic.messages);
}

TEST(SmallestTeam, SaysHowManyRanksABudgetNeeds) {
  const NamedLinop A = sense(16, 32, 32, DType::complex64);
  const TensorType x = type_of(DType::complex64, {32, 32});
  const auto bytes_on = [&](int ranks) {
    return plan_on_team(A, Team::pretend({{"rank", ranks}}), kCoils, x, Direction::normal)
        .ranks[0]
        .total_bytes();
  };
  for (const int ranks : {1, 2, 3, 8}) {
    const index_t bytes = bytes_on(ranks);
    const SmallestTeam team =
        smallest_team(A, bytes, x, Direction::normal, {.candidates = Dims("C")});
    EXPECT_LE(team.ranks, ranks);
    EXPECT_EQ(team.placement, kCoils);
    EXPECT_LE(team.plan.ranks[0].total_bytes(), bytes);
    if (team.ranks > 1) {
      EXPECT_GT(bytes_on(team.ranks - 1), bytes);
    }
  }
  // Another dimension may need fewer ranks.
  EXPECT_LE(smallest_team(A, bytes_on(8), x, Direction::normal).ranks, 8);
  expect_error<BudgetError>([&] { smallest_team(A, 1000, x, Direction::normal); },
                            "no team is large enough");
  expect_error<ShapeError>(
      [&] { smallest_team(Fft(1), 1000, x, Direction::forward, {.candidates = Dims("Nx")}); },
      "unknown");
}

TEST(Budget, OfARankCutsItsPartAndSendsTheSame) {
  const Team team = Team::world();
  const NamedLinop A = sense(72, 24, 20, DType::complex64);  // more than one step takes, on 4 ranks
  const NamedLinop N = distribute(A, team, kCoils).N();
  const TensorType x = type_of(DType::complex64, {24, 20});
  const index_t whole = split_to_budget(N, x, 1 << 30).peak_bytes, least = smallest_budget(N, x);
  EXPECT_LT(least, whole);
  const BudgetSplit cut = split_to_budget(N, x, least);
  EXPECT_LE(cut.peak_bytes, least);
  EXPECT_GT(cut.tiles, 1);
  EXPECT_EQ(traffic_of(cut.plan), traffic_of(N.plan(x)));
  const Tensor v = random_values({24, 20}, DType::complex64, 3);
  const Tensor expected = A.N()(v);
  EXPECT_LT(distance(N(v), expected), 1e-5);
  MemoryScope scope;
  const Tensor y = cut.op(v);
  EXPECT_EQ(static_cast<index_t>(scope.peak_bytes()), cut.plan.peak_bytes);
  EXPECT_LT(distance(y, expected), 1e-5);
}

TEST(Budget, OfASolveHoldsOnEachRank) {
  const NamedLinop A = sense(12, 24, 20, DType::complex64);
  const NamedLinop N = distribute(A, Team::world(), kCoils).N();
  const Tensor b = A.N()(random_values({24, 20}, DType::complex64, 4));
  const CgOptions free{.tolerance = 0, .max_iterations = 5};
  const index_t least = smallest_cg_budget(N, type_of(b.dtype(), b.shape()), free);
  CgOptions tight = free;
  tight.budget_bytes = least;
  const SolvePlan plan = plan_conjugate_gradients(N, type_of(b.dtype(), b.shape()), tight);
  EXPECT_LE(plan.total_bytes(), least);
  EXPECT_LT(distance(conjugate_gradients(N, b, tight).x, conjugate_gradients(N, b, free).x), 1e-3);
}

// -- canonical sums ------------------------------------------------------------------------------

DistributeOptions canonical() { return {.sums = TeamSums::canonical}; }

TEST(CanonicalSums, HaveTheBitsOfOneProcess) {
  const Team team = Team::world(), alone = Team().reshaped({{"rank", 1}});
  for (const DType dtype : {DType::complex64, DType::complex128}) {
    const NamedLinop A = sense(7, 12, 10, dtype);
    const NamedLinop together = distribute(A, team, kCoils, canonical());
    const NamedLinop one = distribute(A, alone, kCoils, canonical());
    const Tensor x = random_values({12, 10}, dtype, 5);
    EXPECT_TRUE(equal(together.N()(x), one.N()(x)));
    EXPECT_LT(distance(together.N()(x), A.N()(x)), 1e-5);
    const Tensor y = random_values({7, 12, 10}, dtype, 6);
    const Tensor mine = DTensor::part_of(y, A.oshape(), team, kCoils).local().contiguous();
    EXPECT_TRUE(equal(together.H()(mine), one.H()(y)));
    EXPECT_LT(
        distance(
            DTensor::from_local(together(x), A.oshape(), y.shape(), team, kCoils).gather_to_all(),
            A(x)),
        1e-5);
    EXPECT_TRUE(is_adjoint(together.with_sizes({{"Nx", 12}, {"Ny", 10}}), dtype));
  }
}

TEST(CanonicalSums, OfASolveGiveOneImageOnAnyNumberOfRanks) {
  const NamedLinop A = sense(8, 24, 18, DType::complex64);
  const Team team = Team::world(), alone = Team().reshaped({{"rank", 1}});
  const Tensor b = A.N()(random_values({24, 18}, DType::complex64, 4));
  const CgOptions options{.tolerance = 0, .max_iterations = 12};
  const auto solve = [&](const Team& on, const DistributeOptions& how) {
    return conjugate_gradients(distribute(A, on, kCoils, how).N(), b, options).x;
  };
  const Tensor one = solve(alone, canonical());
  EXPECT_TRUE(equal(solve(team, canonical()), one));
  EXPECT_LT(distance(solve(team, {}), one), 1e-3);
}

// A segment and several; ranks with one leaf and with none.
TEST(CanonicalSums, SendAndHoldWhatIsAnnounced) {
  const Team team = Team::world(), alone = Team().reshaped({{"rank", 1}});
  const bool is_alone = team.size() == 1;
  const bool is_at_end = team.rank() == 0 || team.rank() == team.size() - 1;
  for (const auto& [coils, nx, ny] : {std::tuple(5, 12, 10),
                                      {3, 300, 250},
                                      {2, 200, 190},
                                      {17, 14, 12},
                                      {39, 250, 180},
                                      {112, 60, 50}}) {
    const NamedLinop A = sense(coils, nx, ny, DType::complex64);
    const NamedLinop N = distribute(A, team, kCoils, canonical()).N();
    const Plan plan = N.plan(type_of(DType::complex64, {nx, ny}));
    const Traffic before = sent_messages(), announced = traffic_of(plan);
    const Tensor x = random_values({nx, ny}, DType::complex64, 5);
    MemoryScope scope;
    const Tensor y = N(x);
    EXPECT_EQ(static_cast<index_t>(scope.peak_bytes()), plan.peak_bytes);
    EXPECT_EQ(sent_messages().bytes - before.bytes, announced.bytes);
    EXPECT_EQ(sent_messages().messages - before.messages, announced.messages);
    // An image to the next rank, and one back; more to the next rank only for more than 16 coils.
    const index_t image = 8 * nx * ny, ways = is_alone ? 0 : is_at_end ? 1 : 2;
    if (coils <= 16) {
      EXPECT_EQ(announced.bytes, ways * image);
    } else {
      EXPECT_LE(announced.bytes, (ways + 2) * image);
    }
    EXPECT_GE(announced.synchronisations, is_alone ? 0 : (image + 262143) / 262144);
    EXPECT_TRUE(equal(y, distribute(A, alone, kCoils, canonical()).N()(x)));
    EXPECT_TRUE(equal(y, A.N()(x)));
  }
}

TEST(CanonicalSums, NeedOneDimension) {
  const NamedLinop A = sense(5, 12, 10, DType::complex64);
  const Team team = Team::pretend({{"a", 2}, {"b", 2}});
  expect_error<ValueError>(
      [&] {
        distribute(A, team, {{"C", "a"}, {"Nx", "b"}}, canonical());
      },
      "canonical sums");
  expect_error<ValueError>([&] { distribute(A, team, {}, canonical()); }, "canonical sums");
}

}  // namespace
}  // namespace palimpsest::testing
