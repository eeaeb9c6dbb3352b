// SPDX-License-Identifier: Apache-2.0
// Random programs in every mode give the results of plain loops that copy everything, and leave
// memory that the user did not lend unchanged.
#include <gtest/gtest.h>

#include "compile/naive_program.hpp"
#include "support/long_run.hpp"

namespace palimpsest {
namespace {

using testing::NaiveProgram;
using testing::Plain;

constexpr int kShards = 10;
constexpr int kProgramsPerShard = 10000;
constexpr int kCalls = 2;

// An argument, and the user's array that contains it.
struct Argument {
  Tensor whole, before, view;
  bool is_lent = false;

  // Are the surroundings unchanged, and the argument too unless it is lent?
  bool is_untouched() const {
    const auto without_view = [&](const Tensor& t) {
      Tensor copy = t.clone();
      if (is_lent) {
        Tensor part = copy.as_strided(view.shape(), view.strides(), view.offset());
        part.fill(0.0);
      }
      return copy;
    };
    return equal(without_view(whole), without_view(before));
  }
};

Argument argument_of(NaiveProgram& program, const Plain& value, bool is_lent) {
  Argument result;
  result.is_lent = is_lent;
  const Extents& shape = value.shape;
  const std::size_t last = shape.size() - 1;
  Extents extents = shape;
  const std::size_t kind = program.pick(4);
  if (kind == 1) extents[last] = 2 * extents[last] + 1;
  if (kind == 3) std::swap(extents[0], extents[last]);
  result.whole = Tensor::full(extents, -99.0);
  Axes axes;
  for (std::size_t k = 0; k <= last; ++k) axes.push_back(static_cast<index_t>(last - k));
  switch (kind) {
    case 1:
      result.view = result.whole(ellipsis, slice(1, {}, 2));
      break;
    case 2:
      result.view = result.whole.flip(axes);
      break;
    case 3:
      result.view = result.whole.permute(axes);
      break;
    default:
      result.view = result.whole;
      break;
  }
  result.view.copy_from(Tensor::from(value.data, shape));
  result.before = result.whole.clone();
  return result;
}

class NaiveDifferential : public ::testing::TestWithParam<int> {};

// Calls the function on random values; false with a message if anything is wrong.
::testing::AssertionResult call_gives(NaiveProgram& program, const Function& f,
                                      const std::vector<Plain>& inputs,
                                      const std::vector<Plain>& results,
                                      const std::vector<Plain>& states) {
  std::vector<Argument> arguments;
  std::vector<Tensor> given, got(results.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    arguments.push_back(argument_of(program, inputs[i], program.is_lent(i)));
    given.push_back(arguments.back().view);
  }
  f.call(given, got);
  for (std::size_t k = 0; k < got.size(); ++k) {
    if (!results[k].equals(got[k])) return ::testing::AssertionFailure() << "result " << k;
  }
  for (std::size_t k = 0; k < states.size(); ++k) {
    if (states[k].equals(program.shared()[k].get_value())) continue;
    return ::testing::AssertionFailure() << "shared variable " << k;
  }
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (!arguments[i].is_untouched()) return ::testing::AssertionFailure() << "argument " << i;
  }
  return ::testing::AssertionSuccess();
}

const std::vector<std::pair<const char*, Mode>>& modes() {
  static const std::vector<std::pair<const char*, Mode>> list = {
      {"FastRun", Mode::fast_run},
      {"FastRun, exact", Mode(Mode::fast_run).exact()},
      {"FastCompile", Mode::fast_compile},
      {"NoRewrite", Mode::no_rewrite},
  };
  return list;
}

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
  NaiveProgram program(seed);
  std::vector<Tensor> starts;
  for (const SharedVariable& s : program.shared()) starts.push_back(s.get_value().clone());
  std::vector<Plain> states;
  for (const Tensor& t : starts) states.push_back(Plain::of(t));
  std::vector<std::vector<Plain>> inputs(kCalls), results(kCalls), after(kCalls);
  for (int call = 0; call < kCalls; ++call) {
    for (std::size_t i = 0; i < program.inputs().size(); ++i) {
      inputs[call].push_back(program.fresh(program.shape_of_input(i)));
    }
    results[call] = program.run(inputs[call], states);
    after[call] = states;
  }
  for (const auto& [name, mode] : modes()) {
    for (std::size_t k = 0; k < starts.size(); ++k) {
      SharedVariable s = program.shared()[k];
      s.set_value(starts[k].clone());
    }
    const Function f =
        function(program.inputs(), program.outputs(),
                 {.updates = program.updates(), .mode = mode, .on_unused_input = Reaction::ignore});
    if (name == modes().front().first) seen.add(f);
    seen.updates += static_cast<int>(program.updates().size());
    for (int call = 0; call < kCalls; ++call) {
      EXPECT_TRUE(call_gives(program, f, inputs[call], results[call], after[call]))
          << name << ", call " << call << ", seed " << seed << "\n"
          << f.graph().str();
      if (::testing::Test::HasFailure()) return;
    }
  }
}

TEST_P(NaiveDifferential, EveryModeGivesWhatPlainLoopsGive) {
  const int n = testing::longer_unless_sanitized(kProgramsPerShard);
  Seen seen;
  for (int i = 0; i < n; ++i) {
    const auto seed = static_cast<std::uint32_t>(GetParam() + kShards * i);
    try {
      check(seed, seen);
    } catch (const std::exception& error) {
      ADD_FAILURE() << "seed " << seed << ": " << error.what();
    }
    if (HasFailure()) return;
  }
  EXPECT_GT(seen.in_place, n / 2);
  EXPECT_GT(seen.views, n / 2);
  EXPECT_GT(seen.updates, n / 2);
  EXPECT_GT(seen.loops, n / 40);
  EXPECT_GT(seen.choices, n / 40);
}

INSTANTIATE_TEST_SUITE_P(Shard, NaiveDifferential, ::testing::Range(0, kShards));

}  // namespace
}  // namespace palimpsest
