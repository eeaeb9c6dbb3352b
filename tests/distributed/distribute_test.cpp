// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/distributed/distribute.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "distributed/counted_messages.hpp"
#include "distributed/distributed_support.hpp"
#include "palimpsest/distributed/gather_operator.hpp"
#include "palimpsest/distributed/team_node.hpp"
#include "palimpsest/distributed/team_plan.hpp"
#include "palimpsest/linop/containers/concat.hpp"
#include "palimpsest/linop/copies/saving.hpp"
#include "palimpsest/linop/operators/simple.hpp"
#include "palimpsest/linop/operators/sum_reduce.hpp"
#include "palimpsest/ops/elementwise/elementwise.hpp"
#include "palimpsest/ops/shape/shape_ops.hpp"
#include "support/expect_error.hpp"

namespace palimpsest::testing {
namespace {

struct Case {
  std::string name;
  NamedLinop A;
  Extents input, output;
  Placement placement;
};

// Every row of the table of distribute(), with parts of unequal sizes and, on four ranks, some
// empty parts.
std::vector<Case> cases() {
  const DType c = DType::complex128;
  const NamedLinop matrix = Dense(Parameter(random_values({5, 3}, c, 1)), "MN,N->M");
  const NamedLinop batched = Dense(Parameter(random_values({3, 5, 4}, c, 2)), "BMN,BN->BM");
  const NamedLinop diagonal = Diagonal(Parameter(random_values({3, 7}, c, 4)), {"S", "N"});
  return {
      {"an output dimension", matrix, {3}, {5}, {{"M", "rank"}}},
      {"an input dimension", matrix, {3}, {5}, {{"N", "rank"}}},
      {"a dimension of both", batched, {3, 4}, {3, 5}, {{"B", "rank"}}},
      {"a dimension of a diagonal", diagonal, {3, 7}, {3, 7}, {{"N", "rank"}}},
      {"a dimension that is nowhere", matrix, {3}, {5}, {{"Q", "rank"}}},
      {"no dimension", matrix, {3}, {5}, {}},
      {"coils", sense(5, 6, 4, c), {6, 4}, {5, 6, 4}, {{"C", "rank"}}},
      {"summands", sense(5, 6, 4, c).N(), {6, 4}, {6, 4}, {{"C", "rank"}}},
  };
}

// The gathered result of all ranks.
Tensor applied(const NamedLinop& part, const Tensor& x, const Dims& from, const Dims& to,
               const Extents& result, const Placement& placement) {
  const Team team = Team::world();
  const DTensor input = DTensor::part_of(x, from, team, placement);
  return DTensor::from_local(part(input.local().contiguous()), to, result, team, placement)
      .gather_to_all();
}

TEST(Distribute, GivesWhatTheWholeOperatorGives) {
  for (const Case& c : cases()) {
    const NamedLinop part = distribute(c.A, Team::world(), c.placement);
    const Tensor x = random_values(c.input, DType::complex128, 10);
    const Tensor y = random_values(c.output, DType::complex128, 11);
    const Dims &in = c.A.ishape(), &out = c.A.oshape();
    EXPECT_LT(distance(applied(part, x, in, out, c.output, c.placement), c.A(x)), 1e-13) << c.name;
    EXPECT_LT(distance(applied(part.H(), y, out, in, c.input, c.placement), c.A.H()(y)), 1e-13)
        << c.name;
    EXPECT_LT(distance(applied(part.N(), x, in, in, c.input, c.placement), c.A.N()(x)), 1e-12)
        << c.name;
    EXPECT_LT(distance(applied(part.H().N(), y, out, out, c.output, c.placement), c.A.H().N()(y)),
              1e-12)
        << c.name;
  }
}

TEST(Distribute, IsTheAdjointOfItsAdjoint) {
  for (const Case& c : cases()) {
    const NamedLinop part = distribute(c.A, Team::world(), c.placement);
    EXPECT_TRUE(part.H().H().is(part)) << c.name;
    EXPECT_TRUE(is_distributed(part.H()));
    EXPECT_EQ(team_of(part), Team::world());
  }
}

TEST(Distribute, NormalOperatorOfCoilsSendsOneImage) {
  const Team team = Team::world();
  const NamedLinop A = sense(8, 32, 40, DType::complex64);
  const NamedLinop N = distribute(A, team, {{"C", "rank"}}).N();
  const Plan plan = N.plan(type_of(DType::complex64, {32, 40}));
  const index_t image = 32 * 40 * 8, n = team.size();
  const Traffic announced = traffic_of(plan);
  EXPECT_EQ(announced.synchronisations, n == 1 ? 0 : 2);
  EXPECT_NEAR(static_cast<double>(announced.bytes), 2.0 * (n - 1) * image / n, 16.0 * n);
  const Tensor x = random_values({32, 40}, DType::complex64, 5);
  const Traffic before = sent_messages();
  N(x);
  EXPECT_EQ(sent_messages().bytes - before.bytes, announced.bytes);
  EXPECT_EQ(sent_messages().messages - before.messages, announced.messages);
}

TEST(Distribute, HoldsAndSendsWhatThePretendedTeamAnnounces) {
  const Team team = Team::world();
  const NamedLinop A = sense(7, 32, 40, DType::complex64);
  const TensorType image = type_of(DType::complex64, {32, 40});
  const TeamPlan announced = plan_on_team(A, Team::pretend({{"rank", team.size()}}),
                                          {{"C", "rank"}}, image, Direction::normal);
  const NamedLinop N = distribute(A, team, {{"C", "rank"}}).N();
  const RankPlan& mine = announced.ranks[static_cast<std::size_t>(team.rank())];
  const Tensor x = random_values({32, 40}, DType::complex64, 5);
  const Traffic before = sent_messages();
  MemoryScope scope;
  const Tensor y = N(x);
  EXPECT_EQ(static_cast<index_t>(scope.peak_bytes()), mine.peak_bytes);
  EXPECT_EQ(sent_messages().bytes - before.bytes, mine.traffic.bytes);
  EXPECT_EQ(sent_messages().messages - before.messages, mine.traffic.messages);
}

TEST(TeamPlan, OfManyRanksIsMadeAnywhere) {
  const NamedLinop A = sense(32, 64, 64, DType::complex64);
  const TeamPlan plan = plan_on_team(A, Team::pretend({{"rank", 24}}), {{"C", "rank"}},
                                     type_of(DType::complex64, {64, 64}), Direction::normal);
  ASSERT_EQ(plan.ranks.size(), 24u);
  const index_t image = 64 * 64 * 8;
  // 2 (n - 1)/n of an image per rank.
  EXPECT_EQ(plan.traffic().bytes, 2 * 23 * image);
  EXPECT_EQ(plan.traffic().messages, 2 * 23 * 24);
  EXPECT_EQ(plan.traffic().synchronisations, 2);
  // 8 ranks have two coils, 16 one.
  EXPECT_EQ(plan.largest().parameter_bytes, 2 * image + 64 * 64 * 4);
  EXPECT_EQ(plan.smallest().parameter_bytes, image + 64 * 64 * 4);
  EXPECT_NE(plan.str().find("all 24 ranks send"), std::string::npos);
}

// Fourier transforms along dimensions that are cut.
std::vector<Case> transforms() {
  const DType c = DType::complex128;
  const NamedLinop F = Fft(2, {.batch = "C", .grid = Grid{"Ny Nx", "Ky Kx"}, .centered = true});
  const NamedLinop G =
      Fft(3, {.batch = {}, .grid = Grid{"Nz Ny Nx", "Kz Ky Kx"}, .norm = FftNorm::backward});
  const DimMap sizes{{"C", 3}, {"Ny", 5}, {"Nx", 6}, {"Ky", 5}, {"Kx", 6}};
  const DimMap cube{{"Nz", 4}, {"Ny", 5}, {"Nx", 6}, {"Kz", 4}, {"Ky", 5}, {"Kx", 6}};
  Tensor mask = Tensor::zeros({6, 10}, DType::float64);
  for (index_t k = 0; k < 6; k += 2) mask.select(0, k).fill(1.0);
  return {
      {"rows of planes", F.with_sizes(sizes), {3, 5, 6}, {3, 5, 6}, {{"Ny", "rank"}}},
      {"columns of planes", F.with_sizes(sizes), {3, 5, 6}, {3, 5, 6}, {{"Kx", "rank"}}},
      {"its adjoint", F.with_sizes(sizes).H(), {3, 5, 6}, {3, 5, 6}, {{"Ky", "rank"}}},
      {"a volume", G.with_sizes(cube), {4, 5, 6}, {4, 5, 6}, {{"Nz", "rank"}}},
      {"coils of a cut image", sense(3, 6, 10, c), {6, 10}, {3, 6, 10}, {{"Nx", "rank"}}},
  };
}

// The placement of the output: the transformed dimension is cut in place of the original one.
Placement behind(const Placement& placement, const Dims& to) {
  Placement::Entries entries;
  for (const auto& [d, axis] : placement.entries()) {
    ND name = d;
    for (const auto& [n, k] : {std::pair{"Nx", "Kx"}, {"Ny", "Ky"}, {"Nz", "Kz"}}) {
      const bool is_there = std::find(to.begin(), to.end(), d) != to.end();
      if (!is_there && d == ND(n)) name = ND(k);
      if (!is_there && d == ND(k)) name = ND(n);
    }
    entries.emplace_back(name, axis);
  }
  return Placement(std::move(entries));
}

TEST(Distribute, TransformsAlongDimensionsThatAreCut) {
  for (const Case& c : transforms()) {
    const Team team = Team::world();
    const NamedLinop part = distribute(c.A, team, c.placement);
    const Dims &in = c.A.ishape(), &out = c.A.oshape();
    const Placement from = behind(c.placement, in), to = behind(c.placement, out);
    const Tensor x = random_values(c.input, DType::complex128, 10);
    const Tensor y = random_values(c.output, DType::complex128, 11);
    const auto run = [&](const NamedLinop& A, const Tensor& v, const Dims& a, const Placement& p,
                         const Dims& b, const Placement& q, const Extents& extents) {
      const DTensor local = DTensor::part_of(v, a, team, p);
      return DTensor::from_local(A(local.local().contiguous()), b, extents, team, q)
          .gather_to_all();
    };
    EXPECT_LT(distance(run(part, x, in, from, out, to, c.output), c.A(x)), 1e-13) << c.name;
    EXPECT_LT(distance(run(part.H(), y, out, to, in, from, c.input), c.A.H()(y)), 1e-13) << c.name;
    EXPECT_LT(distance(run(part.N(), x, in, from, in, from, c.input), c.A.N()(x)), 1e-12) << c.name;
  }
}

TEST(Distribute, TransformsOfAVolumeOnTwoAxes) {
  if (Team::world().size() != 4) return;  // the shape of four ranks
  const Team team({{"a", 2}, {"b", 2}});
  const NamedLinop F =
      Fft(3, {.batch = {}, .grid = Grid{"Nz Ny Nx", "Kz Ky Kx"}})
          .with_sizes({{"Nz", 6}, {"Ny", 5}, {"Nx", 7}, {"Kz", 6}, {"Ky", 5}, {"Kx", 7}});
  const NamedLinop part = distribute(F, team, {{"Nz", "a"}, {"Ny", "b"}});
  const Tensor x = random_values({6, 5, 7}, DType::complex128, 1);
  const DTensor local = DTensor::part_of(x, F.ishape(), team, {{"Nz", "a"}, {"Ny", "b"}});
  const Tensor y = DTensor::from_local(part(local.local().contiguous()), F.oshape(), {6, 5, 7},
                                       team, {{"Kz", "a"}, {"Ky", "b"}})
                       .gather_to_all();
  EXPECT_LT(distance(y, F(x)), 1e-13);
}

TEST(TeamPlan, OfATransformOnTwoAxesFollowsTheFormula) {
  const index_t n = 64;
  const NamedLinop F =
      Fft(3, {.batch = {}, .grid = Grid{"Nz Ny Nx", "Kz Ky Kx"}})
          .with_sizes({{"Nz", n}, {"Ny", n}, {"Nx", n}, {"Kz", n}, {"Ky", n}, {"Kx", n}});
  const Team team = Team::pretend({{"a", 8}, {"b", 16}});
  const TeamPlan plan =
      plan_on_team(F, team, {{"Nz", "a"}, {"Ny", "b"}}, type_of(DType::complex64, {n, n, n}));
  // Two exchanges along each axis: 1 - 1/8 and 1 - 1/16 of a rank's part.
  const index_t part = n * n * n * 8 / team.size();
  for (const RankPlan& rank : plan.ranks) {
    EXPECT_EQ(rank.traffic.bytes, 2 * (part - part / 8) + 2 * (part - part / 16));
    EXPECT_EQ(rank.traffic.messages, 2 * 7 + 2 * 15);
    EXPECT_EQ(rank.traffic.synchronisations, 4);
  }
}

TEST(Distribute, OnTwoAxesCutsTwoDimensions) {
  if (Team::world().size() != 4) return;  // the shape of four ranks
  const Team team({{"a", 2}, {"b", 2}});
  const NamedLinop A = Dense(Parameter(random_values({5, 3}, DType::complex128, 1)), "MN,N->M");
  const Placement placement{{"M", "a"}, {"N", "b"}};
  const NamedLinop part = distribute(A, team, placement);
  const Tensor x = random_values({3}, DType::complex128, 10);
  const DTensor input = DTensor::part_of(x, A.ishape(), team, placement);
  const Tensor y =
      DTensor::from_local(part(input.local().contiguous()), A.oshape(), {5}, team, placement)
          .gather_to_all();
  EXPECT_LT(distance(y, A(x)), 1e-13);
}

TEST(Distribute, RefusesWhatCannotBeCut) {
  const Team team = Team::pretend({{"rank", 2}});
  expect_error<SplitError>(
      [&] {
        distribute(Fft(1).with_sizes({{"Nx", 4}}), team, {{"Nx", "rank"}});
      },
      "cannot split");
  expect_error<ShapeError>(
      [&] {
        distribute(SumReduce({"N", "M"}, {"M"}), team, {{"M", "rank"}});
      },
      "unknown");
  expect_error<NameError>([&] { distribute(Fft(1), team, {{"Nx", "other"}}); }, "axis");
  const NamedLinop part =
      distribute(Dense(Parameter(Tensor::ones({4, 4})), "MN,N->M"), team, {{"M", "rank"}});
  expect_error<SplitError>([&] { part.split({{"M", slice(0, 1)}}); }, "other ranks");
  expect_error<ValueError>([] { team_of(Fft(1)); }, "distribute()");
  expect_error<ValueError>([] { local_part(Fft(1)); }, "distribute()");
}

TEST(Distribute, FindsRanksWithAnotherOperator) {
  const Team team = Team::world();
  if (team.size() == 1) return;
  const index_t n = team.rank() == 0 ? 4 : 6;
  const NamedLinop A = Dense(Parameter(Tensor::ones({n, 4})), "MN,N->M");
  expect_error<ShapeError>([&] { distribute(A, team, {{"M", "rank"}}); }, "ranks 0 and 1 differ");
}

// Rank 0 has a child as a whole, the others would have to cut one that cannot be cut.
// The cut in halves that is tried first falls between the operators; parts of `second` cannot be
// made: rank 0 has none of it.
TEST(Distribute, RefusesOnAllRanksWhatOneRefuses) {
  const Team team = Team::world();
  const index_t n = team.size();
  if (n < 3) return;
  const NamedLinop first = Dense(Tensor::ones({4, n}), "MA,A->M");
  const NamedLinop second =
      Dense(Tensor::ones({4, n}), "MA,A->M") *
      SimpleLinop({.fn = [](const Variable& x) { return x - ops::roll(x, 1, -1); }, .ishape = "A"});
  const NamedLinop A = Concat({first, second}, {.in = "A"});
  const index_t refuses = n / 2;
  expect_error<SplitError>(
      [&] {
        distribute(A, team, {{"A", "rank"}});
      },
      team.rank() < refuses ? "rank " + std::to_string(refuses) + " refuses: " : "cannot split");
  // Nobody waits, and the ranks work together afterwards.
  const NamedLinop part = distribute(A, team, {{"Q", "rank"}});
  EXPECT_EQ(part(Tensor::ones({2 * n})).shape(), Extents{4});
}

TEST(Distribute, ComparesPlacementsBeforeItRefusesOne) {
  const Team team = Team::world();
  if (team.size() == 1) return;
  const NamedLinop A = Dense(Tensor::ones({4, 4}), "MN,N->M");
  const Placement mine{{"M", team.rank() == 0 ? "rank" : "other"}};
  expect_error<ShapeError>([&] { distribute(A, team, mine); }, "ranks 0 and 1 differ");
}

TEST(DebugMode, ComparesWhatRanksHaveAlike) {
  const ConfigScope scope({.mode = "DebugMode"});
  const Team team = Team::world();
  const NamedLinop A = sense(5, 6, 4, DType::complex128);
  const Tensor x = random_values({6, 4}, DType::complex128, 3);
  for (const TeamSums sums : {TeamSums::by_rank, TeamSums::canonical}) {
    const NamedLinop N = distribute(A, team, {{"C", "rank"}}, {.sums = sums}).N();
    EXPECT_LT(distance(N(x), A.N()(x)), 1e-12);
    if (team.size() == 1) continue;
    const bool is_other = team.rank() == team.size() - 1;
    const Tensor mine = is_other ? random_values({6, 4}, DType::complex128, 4) : x;
    expect_error<ValueError>([&] { N(mine); }, "MPI: replicated value differs on rank " +
                                                   std::to_string(team.size() - 1));
    EXPECT_LT(distance(N(x), A.N()(x)), 1e-12);
  }
  if (team.size() == 1) return;
  const Tensor weight = Tensor::full({4}, team.rank() == 1 ? 2.0 : 1.0);
  expect_error<ValueError>(
      [&] {
        distribute(Diagonal(weight, "N"), team, {{"N", "rank"}});
      },
      "replicated value differs on rank 1: the parameter");
}

// A tile of dimensions that are whole on all ranks, before and after distributing.
TEST(Distribute, TilesOfPartsArePartsOfTiles) {
  const Team team = Team::world();
  const DType c = DType::complex128;
  const NamedLinop A = Dense(Parameter(random_values({3, 5, 4}, c, 2)), "BMN,BN->BM");
  const Tile rows{{"M", slice(1, 4)}}, both{{"M", slice(0, 2)}, {"N", slice(1, 4)}};
  const Tensor x = random_values({3, 4}, c, 3);
  for (const auto& [tile, from] : {std::pair(rows, 0), std::pair(both, 1)}) {
    const index_t rest = 4 - from;
    const Tensor v = DTensor::part_of(x.narrow(1, from, rest), "B N", team, {{"B", "rank"}})
                         .local()
                         .contiguous();
    const NamedLinop after = distribute(A, team, {{"B", "rank"}}).split(tile);
    const NamedLinop before = distribute(A.split(tile), team, {{"B", "rank"}});
    EXPECT_TRUE(is_distributed(after));
    const Tensor y = after(v);
    EXPECT_LT(distance(y, before(v)), 1e-13);
    EXPECT_LT(distance(after.H()(y), before.H()(y)), 1e-13);
    EXPECT_LT(distance(after.N()(v), before.N()(v)), 1e-13);
  }
}

// A file name common to all ranks: mpirun is the parent process of each.
std::string shared_file() {
  return ::testing::TempDir() + "palimpsest_operator_" + std::to_string(::getppid());
}

TEST(SaveDistributed, FilesKnowNoRanks) {
  const Team team = Team::world();
  const NamedLinop A = sense(5, 6, 4, DType::complex128);
  const std::string path = shared_file();
  const NamedLinop part = distribute(A, team, {{"C", "rank"}});
  save_distributed(part, path);
  const NamedLinop whole = load(path);
  const Tensor x = random_values({6, 4}, DType::complex128, 3);
  EXPECT_LT(distance(whole(x), A(x)), 1e-13);
  EXPECT_LT(distance(whole.N()(x), A.N()(x)), 1e-12);
  // Loaded by a different number of ranks.
  const Placement coils{{"C", "a"}};
  const Team others = team.size() == 4 ? team.reshaped({{"a", 2}, {"b", 2}})
                                       : team.reshaped({{"a", 1}, {"b", team.size()}});
  EXPECT_LT(distance(distribute(whole, others, coils).N()(x), A.N()(x)), 1e-12);
  // A composition is saved as a composition of undistributed operators; its number is the same on
  // all ranks.
  save_distributed(2.0 * part.N(), path);
  EXPECT_LT(distance(load(path)(x), (2.0 * A.N())(x)), 1e-12);
  distributed_detail::gather_texts(team, "");  // all have read
  if (team.rank() == 0) std::filesystem::remove(path);
}

TEST(SaveDistributed, WritesWhatRanksHaveChanged) {
  const Team team = Team::world();
  const PartRange own = part_range(6, team.rank(), team.size());
  const Tensor weight = Tensor::full({own.size()}, team.rank() + 1.0);
  const NamedLinop mine = Diagonal(Parameter(weight), "N").with_sizes({{"N", own.size()}});
  const NamedLinop part = join_parts(mine, team, {{"N", "rank"}});
  const auto whole = gather_operator(part);
  if (team.rank() != 0) return;
  const Tensor y = (*whole)(Tensor::ones({6}));
  for (index_t i = 0; i < 6; ++i) {
    double expected = 0;
    for (int r = 0; r < team.size(); ++r) {
      const PartRange range = part_range(6, r, team.size());
      if (i >= range.start && i < range.stop) expected = r + 1.0;
    }
    EXPECT_EQ(y.select(0, i).item<double>(), expected);
  }
}

TEST(SaveDistributed, AFullDiskOnRank0EndsAllRanks) {
  const Team team = Team::world();
  const NamedLinop part = distribute(sense(5, 6, 4, DType::complex64), team, {{"C", "rank"}});
  if (team.size() == 1) {
    expect_error<IoError>([&] { save_distributed(part, "/dev/full"); }, "No space left");
    return;
  }
  if (team.rank() == 0) {
    expect_error<IoError>([&] { save_distributed(part, "/dev/full"); }, "No space left");
  } else {
    expect_error<CommunicationError>([&] { save_distributed(part, "/dev/full"); },
                                     "rank 0 failed: [/dev/full]");
  }
  EXPECT_EQ(gather_operator(part).has_value(), team.rank() == 0);  // the team works on
}

TEST(GatherOperator, RefusesWhatIsNotOfRanks) {
  const Team team = Team::world();
  expect_error<ValueError>([&] { gather_operator(Fft(1)); }, "made of parts by distribute()");
  expect_error<ValueError>([&] { save_distributed(Fft(1), "file"); }, "distribute()");
  const NamedLinop part =
      distribute(Dense(Parameter(Tensor::ones({4, 4})), "MN,N->M"), team, {{"M", "rank"}});
  expect_error<ValueError>([&] { gather_operator(part, team.size()); }, "root: got");
  if (team.size() == 1) return;
  const NamedLinop own =
      Diagonal(Parameter(Tensor::full({4}, static_cast<double>(team.rank()))), "N");
  expect_error<ValueError>([&] { gather_operator(Chain(own, part)); }, "other parameters");
}

}  // namespace
}  // namespace palimpsest::testing
