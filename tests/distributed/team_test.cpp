// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/distributed/team.hpp"

#include <gtest/gtest.h>

#include "palimpsest/distributed/placement.hpp"
#include "palimpsest/distributed/team_node.hpp"
#include "support/expect_error.hpp"

namespace palimpsest::testing {
namespace {

std::vector<int> members_of(const Team& team, const std::vector<std::string>& axes) {
  const distributed_detail::Group group = distributed_detail::group_of(team, axes);
  std::vector<int> members;
  for (int k = 0; k < group.size(); ++k) members.push_back(group.member(k));
  EXPECT_EQ(members[static_cast<std::size_t>(group.self)], team.rank());
  return members;
}

TEST(PartRange, PartsAreBalancedAndCoverAll) {
  for (const index_t extent : {0, 1, 3, 10, 17}) {
    for (const int parts : {1, 2, 3, 4, 12}) {
      index_t next = 0;
      for (int part = 0; part < parts; ++part) {
        const PartRange range = part_range(extent, part, parts);
        EXPECT_EQ(range.start, next);
        EXPECT_GE(range.size(), extent / parts);
        EXPECT_LE(range.size(), extent / parts + 1);
        next = range.stop;
      }
      EXPECT_EQ(next, extent);
    }
  }
}

TEST(Team, OfOneRankNeedsNoAxes) {
  const Team team;
  EXPECT_EQ(team.size(), 1);
  EXPECT_EQ(team.rank(), 0);
  EXPECT_TRUE(team.axes().empty());
  EXPECT_EQ(Team(), team);
}

TEST(Team, WorldHasAllRanksAlongOneAxis) {
  const Team team = Team::world();
  EXPECT_EQ(team.size("rank"), team.size());
  EXPECT_EQ(team.coordinate("rank"), team.rank());
  EXPECT_EQ(team, Team::world());
}

TEST(Team, RanksFollowTheCoordinatesInRowMajorOrder) {
  const Team team = Team::pretend({{"a", 2}, {"b", 3}}, 4);
  EXPECT_EQ(team.size(), 6);
  EXPECT_EQ(team.coordinate("a"), 1);
  EXPECT_EQ(team.coordinate("b"), 1);
  EXPECT_EQ(team.seen_from(2).coordinate("b"), 2);
  EXPECT_EQ(team.str(), "Team(a 2, b 3)[4]");
}

TEST(Team, GroupsDifferAlongTheirAxesAlone) {
  const Team team = Team::pretend({{"a", 2}, {"b", 3}}, 4);
  EXPECT_EQ(members_of(team, {"a"}), (std::vector<int>{1, 4}));
  EXPECT_EQ(members_of(team, {"b"}), (std::vector<int>{3, 4, 5}));
  EXPECT_EQ(distributed_detail::group_of(team, {"b"}).self, 1);
  EXPECT_EQ(distributed_detail::group_of(team, {"a", "b"}).size(), 6);
  EXPECT_EQ(members_of(team, {}), (std::vector<int>{4}));
  const Team cube = Team::pretend({{"a", 2}, {"b", 2}, {"c", 2}}, 3);
  EXPECT_EQ(members_of(cube, {"c", "a"}), (std::vector<int>{2, 3, 6, 7}));
}

TEST(Team, RefusesWhatIsNoShapeOfTheRun) {
  const int size = Team::world().size();
  expect_error<ValueError>([&] { Team({{"a", size + 1}}); }, "the ranks of the run");
  expect_error<ValueError>([] { Team::pretend({{"a", 0}}); }, "axes");
  expect_error<ValueError>([] { Team::pretend({{"a", 2}, {"a", 2}}); }, "different names");
  expect_error<ValueError>([] { Team::pretend({{"a", 2}}, 2); }, "rank: got 2");
  expect_error<ValueError>([] { Team::world(0); }, "timeout_s");
  expect_error<NameError>([] { Team::world().size("other"); }, "axis: got \"other\"");
  expect_error<StateError>([] { Team::world().seen_from(0); }, "real ranks");
}

TEST(Placement, NamesEachDimensionAndAxisOnce) {
  const Team team = Team::pretend({{"a", 2}, {"b", 3}});
  Placement({{"C", "a"}, {"T", "b"}}).check(team);
  expect_error<ValueError>([&] { Placement({{"C", "a"}, {"C", "b"}}).check(team); }, "once");
  expect_error<ValueError>([&] { Placement({{"C", "a"}, {"T", "a"}}).check(team); }, "once");
  expect_error<NameError>([&] { Placement({{"C", "c"}}).check(team); }, "axis");
  EXPECT_EQ(Placement({{"C", "a"}}).str(), "{C along a}");
}

TEST(GatherTexts, GivesTheTextOfEachRankToAll) {
  const Team team = Team::world();
  const std::string mine(static_cast<std::size_t>(team.rank()) * 3,
                         static_cast<char>('a' + team.rank()));
  const auto texts = distributed_detail::gather_texts(team, mine);
  ASSERT_EQ(static_cast<int>(texts.size()), team.size());
  for (int r = 0; r < team.size(); ++r) {
    EXPECT_EQ(texts[static_cast<std::size_t>(r)],
              std::string(static_cast<std::size_t>(r) * 3, static_cast<char>('a' + r)));
  }
}

}  // namespace
}  // namespace palimpsest::testing
