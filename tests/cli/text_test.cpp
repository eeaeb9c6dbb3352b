// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/cli/text.hpp"

#include <gtest/gtest.h>

namespace palimpsest::cli {
namespace {

TEST(Text, NumbersAndTables) {
  EXPECT_EQ(with_commas(0), "0");
  EXPECT_EQ(with_commas(999), "999");
  EXPECT_EQ(with_commas(1234567), "1,234,567");
  EXPECT_EQ(with_commas(-123456), "-123,456");
  EXPECT_EQ(counted(1, "coil"), "1 coil");
  EXPECT_EQ(counted(0, "coil"), "0 coils");
  EXPECT_EQ(counted(1024, "iteration"), "1,024 iterations");
  EXPECT_EQ(aligned_table({{"", "n"}, {"a", "10"}}), "    n\na  10\n");
}

}  // namespace
}  // namespace palimpsest::cli
