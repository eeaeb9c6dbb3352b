// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/cli/text.hpp"

#include <algorithm>

namespace palimpsest::cli {

std::string counted(index_t n, const std::string& noun) {
  return with_commas(n) + " " + noun + (n == 1 ? "" : "s");
}

std::string aligned_table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> width;
  for (const auto& row : rows) {
    width.resize(std::max(width.size(), row.size()));
    for (std::size_t c = 0; c < row.size(); ++c) width[c] = std::max(width[c], row[c].size());
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t c = 0; c < row.size(); ++c) {
      const std::string blank(width[c] - row[c].size(), ' ');
      line += c == 0 ? row[c] + blank : "  " + blank + row[c];
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

}  // namespace palimpsest::cli
