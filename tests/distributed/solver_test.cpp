// SPDX-License-Identifier: Apache-2.0
// Solvers run on distributed operators like on others.
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "distributed/counted_messages.hpp"
#include "distributed/distributed_support.hpp"
#include "palimpsest/compile/function.hpp"
#include "palimpsest/distributed/communication_ops.hpp"
#include "palimpsest/distributed/team_plan.hpp"
#include "palimpsest/graph/inputs.hpp"
#include "palimpsest/linop/transforms/convolution.hpp"
#include "palimpsest/ops/loop/loop.hpp"
#include "palimpsest/ops/ops.hpp"
#include "palimpsest/solve/conjugate_gradients.hpp"
#include "palimpsest/solve/gradient_methods.hpp"
#include "palimpsest/solve/least_squares.hpp"
#include "palimpsest/solve/spectrum.hpp"
#include "palimpsest/solve/square_systems.hpp"
#include "support/expect_error.hpp"

namespace palimpsest::testing {
namespace {

const Placement kCoils{{"C", "rank"}};

Tensor coil_data(const NamedLinop& A) { return A(random_values({12, 10}, DType::complex128, 20)); }

Tensor part_of(const Tensor& whole, const Dims& dims, const Placement& placement) {
  return DTensor::part_of(whole, dims, Team::world(), placement).local().contiguous();
}

TEST(DistributedSolve, CoilsGiveTheImageOfOneProcess) {
  const NamedLinop A = sense(6, 12, 10, DType::complex128);
  const Tensor b = A.H()(coil_data(A));
  const NamedLinop part = distribute(A, Team::world(), kCoils);
  const CgOptions options{.tolerance = 1e-10, .max_iterations = 20};
  const SolveResult whole = conjugate_gradients(A.N(), b, options);
  const SolveResult together = conjugate_gradients(part.N(), b, options);
  EXPECT_EQ(together.status, whole.status);
  EXPECT_EQ(together.iterations, whole.iterations);
  EXPECT_LT(distance(together.x, whole.x), 1e-6);
}

TEST(DistributedSolve, DataThatAreSpreadAreSummedUp) {
  const NamedLinop A = sense(6, 12, 10, DType::complex128);
  const Tensor data = coil_data(A);
  const NamedLinop part = distribute(A, Team::world(), kCoils);
  const Tensor mine = part_of(data, A.oshape(), kCoils);
  const SolveResult whole = cgls(A, data, {.tolerance = 0, .max_iterations = 10});
  const SolveResult together = cgls(part, mine, {.tolerance = 0, .max_iterations = 10});
  EXPECT_LT(distance(together.x, whole.x), 1e-8);
  ASSERT_EQ(together.history.size(), whole.history.size());
  for (std::size_t k = 0; k < whole.history.size(); ++k) {
    EXPECT_NEAR(together.history[k].objective, whole.history[k].objective,
                1e-8 * whole.history[0].objective);
  }
  const SolveResult lsqr_whole = lsqr(A, data, {.max_iterations = 8});
  const SolveResult lsqr_together = lsqr(part, mine, {.max_iterations = 8});
  EXPECT_LT(distance(lsqr_together.x, lsqr_whole.x), 1e-8);
}

// Each rank has only its part of the data; if one part is far from 1, all are scaled.
TEST(DistributedSolve, DataOfDifferentSizesAreScaledAlike) {
  const NamedLinop A = sense(6, 12, 10, DType::complex128);
  const NamedLinop part = distribute(A, Team::world(), kCoils);
  for (const double factor : {1e-170, 0.0, 1e140}) {
    Tensor data = coil_data(A).contiguous().clone();
    // A coil unchanged, all others scaled far away or zero.
    for (index_t c = 0; c < 5; ++c) {
      Tensor coil = data.select(0, c);
      coil.copy_from(function({}, ops::mul(constant(coil), constant(factor)))());
    }
    const SolveResult whole = cgls(A, data, {.tolerance = 0, .max_iterations = 8});
    const SolveResult together =
        cgls(part, part_of(data, A.oshape(), kCoils), {.tolerance = 0, .max_iterations = 8});
    EXPECT_EQ(together.status, whole.status) << factor;
    EXPECT_EQ(together.iterations, whole.iterations) << factor;
    EXPECT_LT(distance(together.x, whole.x), 1e-8) << factor;
  }
}

TEST(DistributedSolve, UnknownsThatAreSpreadAreSolvedTogether) {
  const NamedLinop A = Diagonal(Parameter(Tensor::linspace(1, 5, 9)), "N");
  const Placement placement{{"N", "rank"}};
  const NamedLinop part = distribute(A, Team::world(), placement);
  const Tensor b = Tensor::ones({9});
  const SolveResult whole = conjugate_gradients(A, b, {.tolerance = 1e-9, .max_iterations = 20});
  const SolveResult together = conjugate_gradients(part, part_of(b, {"N"}, placement),
                                                   {.tolerance = 1e-9, .max_iterations = 20});
  EXPECT_EQ(together.status, Status::converged);
  EXPECT_EQ(together.iterations, whole.iterations);
  EXPECT_LT(
      distance(
          DTensor::from_local(together.x, {"N"}, {9}, Team::world(), placement).gather_to_all(),
          whole.x),
      1e-9);
  const SolveResult minres_together = minres(part, part_of(b, {"N"}, placement), {});
  EXPECT_EQ(minres_together.iterations, minres(A, b, {}).iterations);
}

TEST(DistributedSolve, AnnouncesThePeakOfEachRank) {
  const NamedLinop A = sense(6, 12, 10, DType::complex64);
  const NamedLinop N = distribute(A, Team::world(), kCoils).N();
  const Tensor b = random_values({12, 10}, DType::complex64, 8);
  const CgOptions options{.tolerance = 0, .max_iterations = 4};
  const index_t announced =
      plan_conjugate_gradients(N, type_of(b.dtype(), b.shape()), options).peak_bytes;
  MemoryScope scope;
  conjugate_gradients(N, b, options);
  EXPECT_EQ(static_cast<index_t>(scope.peak_bytes()), announced);
}

// Equal parts would hide every frequency except multiples of the number of ranks.
TEST(DistributedSolve, NormsAreEstimatedFromTheStartOfOneProcess) {
  const Team team = Team::world();
  const Placement placement{{"X", "rank"}};
  const Tensor taps = Tensor::from<double>({1.0, -1.0});
  const NamedLinop A = Convolution(taps, {.batch = "Y",
                                          .grid = Dims("X"),
                                          .boundary = Boundary::circular,
                                          .method = ConvolutionMethod::direct})
                           .with_sizes({{"Y", 3}, {"X", 10}});
  const TensorType whole = type_of(DType::float64, {3, 10});
  const NamedLinop part = distribute(A, team, placement);
  const TensorType own = palimpsest::part_of(whole, A.ishape(), team, placement);
  const Tensor start = random_part(part, VectorSide::input, own, {4, 5});
  const Tensor expected =
      part_of(Tensor::random_normal({3, 10}, DType::float64, {4, 5}), A.ishape(), placement);
  EXPECT_TRUE(equal(start, expected));
  const double norm2 = operator_norm2(A, whole).value;
  EXPECT_NEAR(operator_norm2(part, own).value, norm2, 1e-10);
  EXPECT_NEAR(norm2, 4.04, 0.01);
  // Parts without known global indices get different random numbers.
  const NamedLinop mine = Diagonal(Tensor::ones({3}), "N");
  const NamedLinop joined = join_parts(mine, team, {{"N", "rank"}});
  const TensorType three = type_of(DType::float64, {3});
  const Tensor numbers = random_part(joined, VectorSide::input, three, {4, 5});
  const index_t n = 3 * team.size();
  const Tensor all =
      DTensor::from_local(numbers, {"N"}, {n}, team, {{"N", "rank"}}).gather_to_all();
  for (index_t i = 3; i < n; ++i) {
    EXPECT_NE(all.select(0, i).item<double>(), all.select(0, i - 3).item<double>());
  }
}

// Throws on one rank while others wait for it.
class ThrowsOn final : public Op {
 public:
  explicit ThrowsOn(int rank) : rank_(rank) {}
  std::string name() const override { return "ThrowsOn"; }
  std::string parameters() const override { return std::to_string(rank_); }
  Apply make_node(std::span<const Variable> inputs) const override {
    return node(inputs, {inputs[0].type()});
  }
  std::vector<Extents> infer_shapes(const Apply&, std::span<const Extents> inputs) const override {
    return {inputs[0]};
  }
  void run(RunContext&) const override {
    if (Team::world().rank() == rank_) throw ValueError("the disk of this rank is full");
  }

 private:
  int rank_;
};

TEST(Failure, OfOneRankEndsTheCallOnAllAndLeavesTheTeamUsable) {
  const Team team = Team::world();
  for (int failing = 0; failing < team.size(); ++failing) {
    const Variable x = tensor(DType::float64, {2000}, "x");
    const Variable broken = std::make_shared<ThrowsOn>(failing)->make_node({&x, 1}).output(0);
    const Function f = function({x}, distributed_detail::all_reduce(broken, team, {"rank"}));
    if (team.rank() == failing) {
      expect_error<ValueError>([&] { f(Tensor::ones({2000})); }, "the disk of this rank is full");
    } else {
      expect_error<CommunicationError>([&] { f(Tensor::ones({2000})); },
                                       "rank " + std::to_string(failing) + " failed");
    }
    const Function works = function({x}, distributed_detail::all_reduce(x, team, {"rank"}));
    const Tensor sum = works(Tensor::ones({2000}));
    EXPECT_TRUE(equal(sum, Tensor::full({2000}, static_cast<double>(team.size()))));
  }
}

// A loop of the graph: y(k + 1) = y(k) + the sum over ranks of y(k).
TEST(CommunicatingLoop, GivesWhatItsStepsGiveAndEndsOnAllRanksIfOneFails) {
  const Team team = Team::world();
  const Variable x = tensor(DType::float64, {3000}, "x");
  for (int failing = team.size() - 1; failing >= -1; --failing) {  // -1: none
    const ops::LoopBody body = [&](const std::vector<Variable>& v) -> std::vector<Variable> {
      const Variable sum = distributed_detail::all_reduce(v[0], team, {"rank"});
      if (failing < 0) return {v[0] + sum};
      return {v[0] + std::make_shared<ThrowsOn>(failing)->make_node({&sum, 1}).output(0)};
    };
    const ops::LoopResult loop = ops::loop(body, {.states = {x}, .n_steps = 3});
    const Function f = function({x}, loop.last(0));
    const Tensor ones = Tensor::ones({3000});
    if (failing == team.rank()) {
      expect_error<ValueError>([&] { f(ones); }, "the disk of this rank is full");
    } else if (failing >= 0) {
      expect_error<CommunicationError>([&] { f(ones); },
                                       "rank " + std::to_string(failing) + " failed");
    } else {
      const Traffic before = sent_messages(), announced = traffic_of(f.plan(std::span(&ones, 1)));
      const double n = team.size() + 1;
      EXPECT_TRUE(equal(Tensor(f(ones)), Tensor::full({3000}, n * n * n)));
      EXPECT_EQ(sent_messages().bytes - before.bytes, announced.bytes);
      EXPECT_EQ(sent_messages().messages - before.messages, announced.messages);
    }
  }
}

// Also between the steps of a solve.
TEST(Failure, OfACallbackOnOneRankEndsTheSolveOnAll) {
  const Team team = Team::world();
  const NamedLinop A = sense(6, 12, 10, DType::complex128);
  const Tensor b = A.H()(coil_data(A));
  const NamedLinop N = distribute(A, team, kCoils).N();
  for (int failing = 0; failing < team.size(); ++failing) {
    CgOptions options{.tolerance = 0, .max_iterations = 6};
    options.callback = [&](const SolveInfo& info) {
      if (team.rank() == failing && info.iteration() == 3) throw ValueError("the user's own error");
      return true;
    };
    const auto solve = [&] { conjugate_gradients(N, b, options); };
    if (team.rank() == failing) {
      expect_error<ValueError>(solve, "the user's own error");
    } else {
      expect_error<CommunicationError>(
          solve, "rank " + std::to_string(failing) + " failed: the user's own error");
    }
    options.callback = {};
    EXPECT_EQ(conjugate_gradients(N, b, options).iterations, 6);
  }
}

// A token that the other ranks do not have.
TEST(Failure, ASolveThatOneRankCancelsEndsOnAll) {
  const Team team = Team::world();
  const NamedLinop A = sense(6, 12, 10, DType::complex128);
  const Tensor b = A.H()(coil_data(A));
  const NamedLinop N = distribute(A, team, kCoils).N();
  for (int failing = 0; failing < team.size(); ++failing) {
    CancelToken token;
    const CancelScope scope(token);
    CgOptions options{.tolerance = 0, .max_iterations = 6};
    options.callback = [&](const SolveInfo& info) {
      if (team.rank() == failing && info.iteration() == 3) token.cancel();
      return true;
    };
    if (team.rank() == failing) {
      const SolveResult result = conjugate_gradients(N, b, options);
      EXPECT_EQ(result.status, Status::cancelled);
      EXPECT_EQ(result.iterations, 3);
    } else {
      expect_error<CommunicationError>([&] { conjugate_gradients(N, b, options); },
                                       "failed: its solve was cancelled");
    }
    token.reset();
    options.callback = {};
    EXPECT_EQ(conjugate_gradients(N, b, options).iterations, 6);
  }
}

// The decision of one rank ends the solve on all of them in the same iteration.
TEST(DistributedSolve, ARankThatStopsOrCancelsEndsItOnAll) {
  const Team team = Team::world();
  const NamedLinop A = sense(6, 12, 10, DType::complex128);
  const Tensor b = A.H()(coil_data(A));
  const NamedLinop N = distribute(A, team, kCoils).N();
  const int last = team.size() - 1;
  CgOptions options{.tolerance = 0, .max_iterations = 50};
  options.callback = [&](const SolveInfo& info) {
    return team.rank() != last || info.iteration() < 3;
  };
  const SolveResult stopped = conjugate_gradients(N, b, options);
  EXPECT_EQ(stopped.status, Status::stopped);
  EXPECT_EQ(stopped.iterations, 3);

  options.cancel.emplace();
  options.callback = [&](const SolveInfo& info) {
    if (team.rank() == last && info.iteration() == 4) options.cancel->cancel();
    return true;
  };
  const SolveResult cancelled = conjugate_gradients(N, b, options);
  EXPECT_EQ(cancelled.status, Status::cancelled);
  EXPECT_EQ(cancelled.iterations, 4);

  options.cancel.reset();
  options.time_limit_s = 0.5;
  options.callback = [&](const SolveInfo& info) {
    // Only one rank is slow.
    if (team.rank() == last && info.iteration() == 5) {
      std::this_thread::sleep_for(std::chrono::milliseconds(600));
    }
    return true;
  };
  const SolveResult late = conjugate_gradients(N, b, options);
  EXPECT_EQ(late.status, Status::time_limit);
  EXPECT_LE(late.iterations, 5);
  const Variable x = tensor(DType::float64, {}, "x");
  const Function sum = function({x}, distributed_detail::all_reduce(x, team, {"rank"}));
  EXPECT_EQ(sum(Tensor::full({}, late.iterations * 1.0)).item<double>(),
            late.iterations * team.size());
}

// A file name common to all ranks: mpirun is the parent process of each.
std::string mark_of(int rank) {
  return ::testing::TempDir() + "palimpsest_silent_" + std::to_string(::getppid()) + "_" +
         std::to_string(rank);
}

TEST(Failure, ARankThatIsSilentIsNamedAfterTheTimeLimit) {
  const Team team = Team::world(0.3), patient = Team::world();
  const Variable x = tensor(DType::float64, {2000}, "x");
  const Function f = function({x}, distributed_detail::all_reduce(x, team, {"rank"}));
  const Function late = function({x}, distributed_detail::all_reduce(x, patient, {"rank"}));
  if (team.rank() != 0) {
    expect_error<CommunicationError>([&] { f(Tensor::ones({2000})); }, "rank");
    std::ofstream(mark_of(team.rank())) << "done";
  } else if (team.size() > 1) {
    // Waits until the others have given up.
    for (int r = 1; r < team.size(); ++r) {
      while (!std::filesystem::exists(mark_of(r))) {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
      }
      std::filesystem::remove(mark_of(r));
    }
    expect_error<CommunicationError>([&] { late(Tensor::ones({2000})); }, "failed: ");
  }
  const Tensor sum = late(Tensor::ones({2000}));
  EXPECT_TRUE(equal(sum, Tensor::full({2000}, static_cast<double>(team.size()))));
}

}  // namespace
}  // namespace palimpsest::testing
