// SPDX-License-Identifier: Apache-2.0
// docs/config.md has every key with its default, docs/howto/embed.md every environment variable.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "palimpsest/base/config.hpp"

namespace palimpsest {
namespace {

namespace fs = std::filesystem;

const fs::path kRoot = PALIMPSEST_SOURCE_DIR;

std::string text_of(const fs::path& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

// All matches of the first group of the expression in the text.
std::vector<std::string> all_matches(const std::string& text, const std::string& expression) {
  const std::regex regex(expression);
  std::vector<std::string> found;
  for (std::sregex_iterator it(text.begin(), text.end(), regex), end; it != end; ++it) {
    found.push_back((*it)[1]);
  }
  return found;
}

TEST(ConfigPage, HasEveryKeyWithItsDefaultInTheirOrder) {
  std::vector<std::string> expected;
  for (const std::string& key : Config::keys()) {
    const std::string value = Config().get(key);
    expected.push_back("`" + key + "` |" + (value.empty() ? "" : " `" + value + "`") + " |");
  }
  EXPECT_EQ(
      all_matches(text_of(kRoot / "docs/config.md"), R"(\n\| (`[a-z_.]+` \|(?: `[^`]*`)? \|) \S)"),
      expected);
}

TEST(EmbeddingPage, HasEveryVariableOfTheEnvironment) {
  std::set<std::string> read;
  for (const auto& entry : fs::recursive_directory_iterator(kRoot / "src")) {
    if (entry.path().extension() != ".cpp") continue;
    for (std::string& name : all_matches(text_of(entry.path()), R"RE(getenv\("([A-Z_]+)"\))RE")) {
      read.insert(std::move(name));
    }
  }
  EXPECT_TRUE(read.contains("PALIMPSEST_FLAGS"));
  std::set<std::string> named;
  for (std::string& name :
       all_matches(text_of(kRoot / "docs/howto/embed.md"), R"(\n\| `([A-Z_]+)` \|)")) {
    named.insert(std::move(name));
  }
  for (const std::string& name : read) EXPECT_TRUE(named.contains(name)) << name;
}

}  // namespace
}  // namespace palimpsest
