// SPDX-License-Identifier: Apache-2.0
// Random programs in every mode give the results of plain loops that copy everything, and leave
// memory that the user did not lend unchanged. Some calls write into windows of larger arrays.
#include <gtest/gtest.h>

#include "support/checked_calls.hpp"
#include "support/long_run.hpp"

namespace palimpsest {
namespace {

constexpr int kShards = 10;
constexpr int kProgramsPerShard = 8000;

// Counts of the features that the programs covered.
struct Seen {
  int in_place = 0, views = 0, loops = 0, choices = 0, updates = 0;
  void add(const Function& f) {
    for (const Apply& node : f.steps()) {
      in_place += overwritten_inputs(node).empty() ? 0 : 1;
      views += node.op().view_map(node).empty() ? 0 : 1;
      loops += node.op().name().starts_with("Loop") ? 1 : 0;
      choices += node.op().name() == "IfElse" ? 1 : 0;
    }
  }
};

void check(std::uint32_t seed, Seen& seen) {
  const std::pair<const char*, Mode> modes[] = {{"FastRun", Mode::fast_run},
                                                {"FastRun, exact", Mode(Mode::fast_run).exact()},
                                                {"FastCompile", Mode::fast_compile},
                                                {"NoRewrite", Mode::no_rewrite}};
  testing::RandomProgram program(seed);
  std::vector<Tensor> starts;
  for (const SharedVariable& s : program.shared()) starts.push_back(s.get_value().clone());
  for (const auto& [name, mode] : modes) {
    const Function f = program.compiled(mode);
    if (name == modes[0].first) seen.add(f);
    seen.updates += static_cast<int>(program.options().updates.size());
    testing::CheckedCalls calls(program, f);
    if (name != modes[0].first) calls.set_states(starts);
    for (int call = 0, n = seed % 4 == 0 ? 3 : 2; call < n; ++call) {
      calls.call();
      if (!::testing::Test::HasFailure()) continue;
      FAIL() << name << ", call " << call << ", seed " << seed << ", " << program.describe()
             << "\n  " << f.graph().str();
    }
  }
}

class RandomPrograms : public ::testing::TestWithParam<int> {};

TEST_P(RandomPrograms, GiveInEveryModeWhatPlainLoopsGive) {
  const int n = testing::longer_unless_sanitized(kProgramsPerShard);
  Seen seen;
  for (int i = 0; i < n && !HasFailure(); ++i) {
    const auto seed = static_cast<std::uint32_t>(GetParam() + kShards * i);
    try {
      check(seed, seen);
    } catch (const std::exception& error) {
      ADD_FAILURE() << "seed " << seed << ": " << error.what();
    }
  }
  EXPECT_GT(seen.in_place, n / 2);
  EXPECT_GT(seen.views, n / 2);
  EXPECT_GT(seen.updates, n / 2);
  EXPECT_GT(seen.loops, n / 40);
  EXPECT_GT(seen.choices, n / 40);
}

INSTANTIATE_TEST_SUITE_P(Shard, RandomPrograms, ::testing::Range(0, kShards));

}  // namespace
}  // namespace palimpsest
