// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "distributed/counted_messages.hpp"
#include "distributed/distributed_support.hpp"
#include "palimpsest/compile/function.hpp"
#include "palimpsest/distributed/communication_ops.hpp"
#include "palimpsest/distributed/team_plan.hpp"
#include "palimpsest/graph/inputs.hpp"
#include "palimpsest/ops/gradient.hpp"
#include "palimpsest/ops/ops.hpp"
#include "support/expect_error.hpp"

namespace palimpsest::testing {
namespace {

using distributed_detail::all_reduce;
using distributed_detail::AxisNames;
using distributed_detail::replicate;

Tensor values_of(int rank, const Extents& shape, DType dtype) {
  if (is_floating(dtype) || is_complex(dtype)) {
    return Tensor::random_normal(shape, dtype, RandomKey(static_cast<std::uint64_t>(rank) + 7));
  }
  return Tensor::full<std::int64_t>(shape, rank + 1).to(dtype);
}

// The sum in the order of the ranks: the value of rank 0 comes first.
Tensor expected_sum(const distributed_detail::Group& group, const Extents& shape, DType dtype) {
  Tensor sum = values_of(group.member(0), shape, dtype).clone();
  for (int k = 1; k < group.size(); ++k) {
    sum = function({}, constant(sum) + values_of(group.member(k), shape, dtype))();
  }
  return sum;
}

Variable input_like(const Tensor& t) {
  return tensor(t.dtype(), {t.shape().begin(), t.shape().end()}, "x");
}

TEST(AllReduce, AddsUpInTheOrderOfRanks) {
  const Team team = Team::world();
  const auto group = distributed_detail::group_of(team, {"rank"});
  for (const DType dtype : {DType::float32, DType::float64, DType::complex64, DType::complex128,
                            DType::int32, DType::int64}) {
    for (const Extents& shape : {Extents{}, Extents{0}, Extents{1}, Extents{3, 5}, Extents{2, 1500},
                                 Extents{7, 1001}, Extents{40000}}) {
      const Tensor mine = values_of(team.rank(), shape, dtype);
      const Variable x = input_like(mine);
      const Function f = function({x}, all_reduce(x, team, {"rank"}));
      const Tensor sum = f(mine);
      EXPECT_TRUE(equal(sum, expected_sum(group, shape, dtype)))
          << name_of(dtype) << " " << to_string(shape);
    }
  }
}

TEST(AllReduce, OfViewsAndInPlaceGivesTheSame) {
  const Team team = Team::world();
  const auto group = distributed_detail::group_of(team, {"rank"});
  const Tensor mine = values_of(team.rank(), {60, 50}, DType::float64);
  const Variable x = input_like(mine);
  const Function f =
      function({x}, {all_reduce(x.T(), team, {"rank"}), all_reduce(x * 1.0 + 1.0, team, {"rank"})});
  const Results results = f(mine);
  const Tensor sum = expected_sum(group, {60, 50}, DType::float64);
  EXPECT_TRUE(equal(results[0], sum.permute({1, 0})));
  EXPECT_TRUE(
      allclose(results[1], function({}, constant(sum) + static_cast<double>(team.size()))()));
}

TEST(AllReduce, AlongOneOfTwoAxes) {
  const int size = Team::world().size();
  if (size != 4) return;  // the shape of four ranks
  const Team team({{"a", 2}, {"b", 2}});
  for (const char* const axis : {"a", "b"}) {
    const auto group = distributed_detail::group_of(team, {axis});
    const Tensor mine = values_of(team.rank(), {3000}, DType::float32);
    const Variable x = input_like(mine);
    EXPECT_TRUE(equal(function({x}, all_reduce(x, team, {axis}))(mine),
                      expected_sum(group, {3000}, DType::float32)));
  }
}

TEST(AllReduce, SendsWhatThePlanAnnounces) {
  const Team team = Team::world();
  for (const index_t n : {0, 1, 1000, 1025, 5000, 99991}) {
    const Tensor mine = values_of(team.rank(), {n}, DType::float64);
    const Variable x = input_like(mine);
    const Function f = function({x}, all_reduce(x * 2.0, team, {"rank"}));
    const Traffic announced = traffic_of(f.plan(std::vector{type_of(mine.dtype(), mine.shape())}));
    const Traffic before = sent_messages();
    f(mine);
    const Traffic after = sent_messages();
    EXPECT_EQ(after.bytes - before.bytes, announced.bytes) << n;
    EXPECT_EQ(after.messages - before.messages, announced.messages) << n;
  }
}

TEST(AllReduce, IsTheAdjointOfReplicate) {
  const Team team = Team::world();
  const Tensor mine = values_of(team.rank(), {10}, DType::float64);
  const Variable x = input_like(mine);
  const Variable y = replicate(x, team, {"rank"}) * (team.rank() + 1.0);
  const Function f = function({x}, grad(ops::sum(y), x), {.on_unused_input = Reaction::ignore});
  double expected = 0;
  for (int r = 0; r < team.size(); ++r) expected += r + 1.0;
  EXPECT_TRUE(equal(f(mine), Tensor::full({10}, expected)));
}

TEST(AllReduce, RefusesDtypesWithoutSums) {
  if (Team::world().size() == 1) return;
  const Variable x = tensor(DType::bool_, {3}, "x");
  expect_error<DTypeError>([&] { all_reduce(x, Team::world(), {"rank"}); }, "AllReduce");
}

TEST(Communication, OfAPretendedTeamIsPlannedNeverRun) {
  const Team team = Team::pretend({{"rank", 64}}, 3);
  const Variable x = tensor(DType::float64, {1000}, "x");
  const Function f = function({x}, all_reduce(x, team, {"rank"}));
  EXPECT_EQ(traffic_of(f.plan(std::vector{type_of(DType::float64, {1000})})).messages, 63);
  expect_error<StateError>([&] { f(Tensor::ones({1000})); }, "pretended");
}

}  // namespace
}  // namespace palimpsest::testing
