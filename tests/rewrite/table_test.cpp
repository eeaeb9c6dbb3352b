// SPDX-License-Identifier: Apache-2.0
// docs/rewriting.md lists all passes. With PALIMPSEST_WRITE_DOCS set the table in that page is
// written instead.
#include <gtest/gtest.h>

#include <sstream>

#include "palimpsest/rewrite/pipeline.hpp"
#include "support/page_part.hpp"

namespace palimpsest {
namespace {

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
  testing::expect_page_has(PALIMPSEST_SOURCE_DIR "/docs/rewriting.md", table(),
                           "<!-- table of passes -->\n");
}

}  // namespace
}  // namespace palimpsest
