// SPDX-License-Identifier: Apache-2.0
// Values of ops compared with plain loops, and errors of ops, from the samples.
#include <gtest/gtest.h>

#include "contract/applied.hpp"

namespace palimpsest {
namespace {

TEST(OpValues, AreThoseOfPlainLoops) {
  for (const ops::OpEntry& entry : ops::op_samples()) {
    for (const ops::OpSample& sample : entry.samples()) {
      if (!sample.expected) continue;
      SCOPED_TRACE(std::string(entry.name) + ": " + sample.name);
      const testing::Applied a = testing::applied(entry, sample);
      const Tensor expected = sample.expected(a.values), got = testing::run_op(a.node, a.values);
      ASSERT_EQ(got.shape(), expected.shape());
      EXPECT_EQ(got.dtype(), expected.dtype());
      EXPECT_LE(testing::distance(got, expected), testing::tolerance(got.dtype()));
    }
  }
}

TEST(OpRefusals, SayWhatIsWrong) {
  for (const testing::Refusal& refusal : ops::op_refusals()) {
    SCOPED_TRACE(refusal.text);
    refusal.expect();
  }
}

}  // namespace
}  // namespace palimpsest
