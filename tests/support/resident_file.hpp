// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <fstream>
#include <string>
#include <string_view>

namespace palimpsest::testing {

/// Bytes of a mapped file in the memory of this process. Other files, and code, do not count.
inline std::size_t resident_bytes_of(const std::string& path) {
  std::ifstream smaps("/proc/self/smaps");
  std::size_t kilobytes = 0;
  bool is_ours = false;
  for (std::string line; std::getline(smaps, line);) {
    const std::string_view key = std::string_view(line).substr(0, line.find(' '));
    if (!key.ends_with(':')) is_ours = line.ends_with(path);
    if (is_ours && key == "Rss:") kilobytes += std::stoul(line.substr(key.size()));
  }
  return kilobytes * 1024;
}

}  // namespace palimpsest::testing
