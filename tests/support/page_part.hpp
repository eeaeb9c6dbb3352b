// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

namespace palimpsest::testing {

/// Expects that the page has `made` between two texts. With PALIMPSEST_WRITE_DOCS set it is written
/// there.
inline void expect_page_has(const std::string& page, const std::string& made,
                            const std::string& begin = "<!-- begin of the table -->\n",
                            const std::string& end = "<!-- end of the table -->") {
  std::ifstream file(page);
  const std::string text(std::istreambuf_iterator<char>(file), {});
  const std::size_t from = text.find(begin), to = text.find(end);
  ASSERT_TRUE(from != std::string::npos && to != std::string::npos) << page;
  const std::size_t first = from + begin.size();
  if (std::getenv("PALIMPSEST_WRITE_DOCS") != nullptr) {
    std::ofstream(page) << text.substr(0, first) << made << text.substr(to);
    return;
  }
  EXPECT_EQ(text.substr(first, to - first), made)
      << "Try to run this test with PALIMPSEST_WRITE_DOCS=1";
}

}  // namespace palimpsest::testing
