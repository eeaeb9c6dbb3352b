// SPDX-License-Identifier: Apache-2.0
// docs/rewriting.md lists all passes. With PALIMPSEST_WRITE_DOCS set the table in that page is
// written instead.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "palimpsest/rewrite/pipeline.hpp"

namespace palimpsest {
namespace {

const std::string kPage = std::string(PALIMPSEST_SOURCE_DIR) + "/docs/rewriting.md";
const std::string kBegin = "<!-- table of passes -->\n", kEnd = "<!-- end of the table -->";

std::string table() {
  std::ostringstream text;
  text << "| position | pass | what it does | tags |\n|---|---|---|---|\n";
  for (const Rewrite& rewrite : rewrite_list()) {
    text << "| " << rewrite.position << " | `" << rewrite.name << "` | " << rewrite.what << " | ";
    const char* separator = "";
    for (const std::string& tag : rewrite.tags) {
      text << separator << tag;
      separator = ", ";
    }
    text << " |\n";
  }
  return text.str();
}

TEST(RewriteTable, PageListsThePassesThatThereAre) {
  std::ostringstream content;
  content << std::ifstream(kPage).rdbuf();
  const std::string page = content.str();
  const std::size_t begin = page.find(kBegin), end = page.find(kEnd);
  ASSERT_NE(begin, std::string::npos) << kPage;
  ASSERT_NE(end, std::string::npos) << kPage;
  const std::size_t first = begin + kBegin.size();
  if (std::getenv("PALIMPSEST_WRITE_DOCS") != nullptr) {
    std::ofstream(kPage) << page.substr(0, first) << table() << page.substr(end);
    return;
  }
  EXPECT_EQ(page.substr(first, end - first), table()) << "run with PALIMPSEST_WRITE_DOCS=1";
}

}  // namespace
}  // namespace palimpsest
