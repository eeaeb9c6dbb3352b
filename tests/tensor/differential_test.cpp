// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <iostream>
#include <utility>

#include "support/long_run.hpp"
#include "tensor/storage_program.hpp"

namespace palimpsest::testing {
namespace {

constexpr std::size_t kSteps = 24;

// The shortest part of a program that still differs, as text.
std::string explanation(std::uint64_t seed, Fault fault = Fault::none) {
  const Program program = shrunk(random_program(seed, kSteps), fault);
  std::string listing;
  const std::string what = difference(program, fault, &listing);
  return "program " + std::to_string(seed) + ", " + std::to_string(program.size()) +
         " steps: " + what + "\n" + listing;
}

TEST(Differential, RandomProgramsHaveTheBytesTheAliasesAndTheFewestCopies) {
  const auto n = static_cast<std::uint64_t>(longer_unless_sanitized(100'000));
  for (std::uint64_t seed = 0; seed < n; ++seed) {
    if (!difference(random_program(seed, kSteps)).empty()) FAIL() << explanation(seed);
  }
  std::cout << n << " programs of " << kSteps << " steps\n";
}

// A difference of each kind is found quickly and reduced to a short program.
TEST(Differential, EveryPlantedFaultIsFoundAndShrunk) {
  for (const Fault fault :
       {Fault::clones_alias, Fault::views_are_clones, Fault::last_one_copies,
        Fault::overwriting_copies, Fault::failures_write, Fault::pins_are_ignored}) {
    std::uint64_t seed = 0;
    while (seed < 2000 && difference(random_program(seed, kSteps), fault).empty()) ++seed;
    ASSERT_LT(seed, 2000u) << "fault " << static_cast<int>(fault);
    const Program program = shrunk(random_program(seed, kSteps), fault);
    EXPECT_LE(program.size(), 6u) << explanation(seed, fault);
    EXPECT_EQ(difference(program), "") << "the fault is needed";
  }
}

TEST(Differential, AProgramThatDiffersIsListed) {
  std::uint64_t seed = 0;
  while (difference(random_program(seed, kSteps), Fault::clones_alias).empty()) ++seed;
  const std::string text = explanation(seed, Fault::clones_alias);
  EXPECT_NE(text.find("program " + std::to_string(seed)), std::string::npos) << text;
  EXPECT_NE(text.find(" = new"), std::string::npos) << text;
}

}  // namespace
}  // namespace palimpsest::testing
