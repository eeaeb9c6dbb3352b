// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/distributed/dtensor.hpp"

#include <gtest/gtest.h>

#include "distributed/distributed_support.hpp"
#include "support/expect_error.hpp"

namespace palimpsest::testing {
namespace {

TEST(DTensor, ScattersAndGathersEveryPlacement) {
  const Team team = Team::world();
  for (const Extents& shape : {Extents{1, 1}, Extents{5, 3}, Extents{0, 4}, Extents{16, 9}}) {
    const Tensor whole = random_values(shape, DType::complex64, 1);
    for (const Placement& placement :
         {Placement{}, Placement{{"Y", "rank"}}, Placement{{"X", "rank"}}}) {
      for (int root = 0; root < team.size(); ++root) {
        const bool is_root = team.rank() == root;
        const DTensor d =
            DTensor::scatter(is_root ? std::optional(whole) : std::nullopt,
                             type_of(whole.dtype(), shape), {"Y", "X"}, team, placement, root);
        EXPECT_TRUE(equal(d.local(), DTensor::part_of(whole, {"Y", "X"}, team, placement).local()));
        const auto back = d.gather(root);
        ASSERT_EQ(back.has_value(), is_root);
        EXPECT_TRUE(!back || equal(*back, whole));
        EXPECT_TRUE(equal(d.gather_to_all(), whole));
      }
    }
  }
}

TEST(DTensor, RedistributesFromOneDimensionToAnother) {
  const Team team = Team::world();
  const Tensor whole = random_values({7, 5, 3}, DType::float64, 2);
  const Dims dims{"T", "Y", "X"};
  const std::vector<Placement> placements{{}, {{"T", "rank"}}, {{"Y", "rank"}}, {{"X", "rank"}}};
  for (const Placement& from : placements) {
    for (const Placement& to : placements) {
      const DTensor moved = DTensor::part_of(whole, dims, team, from).redistribute(to);
      EXPECT_TRUE(equal(moved.local(), DTensor::part_of(whole, dims, team, to).local()))
          << from.str() << " -> " << to.str();
      EXPECT_EQ(moved.placement(), to);
    }
  }
}

TEST(DTensor, OfTwoAxes) {
  if (Team::world().size() != 4) return;  // the shape of four ranks
  const Team team({{"a", 2}, {"b", 2}});
  const Tensor whole = random_values({5, 3}, DType::float32, 3);
  const DTensor d = DTensor::part_of(whole, {"Y", "X"}, team, {{"Y", "a"}});
  EXPECT_TRUE(equal(d.gather_to_all(), whole));
  const DTensor e = d.redistribute({{"Y", "b"}, {"X", "a"}});
  EXPECT_TRUE(equal(e.local(), DTensor::part_of(whole, {"Y", "X"}, team, e.placement()).local()));
  EXPECT_TRUE(equal(e.gather_to_all(), whole));
}

TEST(DTensor, PartsAreViewsOfTheWhole) {
  const Tensor whole = random_values({6, 4}, DType::float64, 4);
  const DTensor d = DTensor::part_of(whole, {"Y", "X"}, Team::world(), {{"Y", "rank"}});
  EXPECT_TRUE(shares_storage(d.local(), whole));
}

TEST(DTensor, RefusesWhatIsNoPartOnEveryRank) {
  const Team team = Team::world();
  const Tensor wrong = Tensor::ones({3, team.rank() == team.size() - 1 ? 5 : 4});
  expect_error<ShapeError>(
      [&] {
        DTensor::from_local(wrong, {"Y", "X"}, {3, 4}, team, {});
      },
      "rank " + std::to_string(team.size() - 1));
  expect_error<ShapeError>([&] { DTensor::part_of(wrong, {"Y"}, team, {}); },
                           "one for each dimension");
  expect_error<ShapeError>(
      [&] {
        DTensor::scatter(std::nullopt, type_of(DType::float64, {4}), {"X"}, team, {{"X", "rank"}});
      },
      "nothing");
  const DTensor d = DTensor::part_of(Tensor::ones({3}), {"X"}, team, {});
  const int beyond = team.size();
  expect_error<ValueError>([&] { d.gather(beyond); }, "[DTensor] root: got");
  expect_error<ValueError>([&] { d.ranges_of(-1); }, "[DTensor] rank: got -1");
  expect_error<ValueError>(
      [&] {
        DTensor::scatter(std::nullopt, type_of(DType::float64, {4}), {"X"}, team, {}, beyond);
      },
      "root");
}

}  // namespace
}  // namespace palimpsest::testing
