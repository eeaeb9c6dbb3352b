// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/device/messages.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace palimpsest {

std::string first_line(const KernelText& text) { return "#line 1 \"" + text.name + "\"\n"; }

std::string first_complaint(std::string_view log, std::string_view otherwise) {
  std::string_view rest = log;
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    if (line.find("error") != std::string_view::npos) return std::string(line);
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
  }
  return std::string(otherwise);
}

std::string does_not_compile(std::string_view text, std::string_view device,
                             std::string_view complaint) {
  return fmt::format("[{}] does not compile on {}: {}", text, device, complaint);
}

std::string foreign_binary(std::string_view text, std::string_view device,
                           std::string_view complaint) {
  return fmt::format("[{}] is no binary for {}: {}", text, device, complaint);
}

std::string forked_text(std::string_view device) {
  return fmt::format("[{}] forked: devices cannot be used here, in a child of fork()", device);
}

}  // namespace palimpsest
