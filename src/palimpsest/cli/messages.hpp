// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdio>
#include <string>

namespace palimpsest::cli {

/// Lines of text: on standard error, unless quiet, and kept for a log.
class Messages {
 public:
  explicit Messages(bool is_quiet) : is_quiet_(is_quiet) {}

  bool is_quiet() const { return is_quiet_; }
  void line(const std::string& text) {
    text_ += text + "\n";
    if (!is_quiet_) std::fprintf(stderr, "%s\n", text.c_str());
  }
  /// All lines so far.
  const std::string& text() const { return text_; }

 private:
  bool is_quiet_;
  std::string text_;
};

}  // namespace palimpsest::cli
