// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace palimpsest {

/// The calls that led somewhere.
class StackTrace {
 public:
  /// No calls.
  StackTrace() = default;
  /// Where the caller is now, without this library's own calls; at most `limit` of them.
  static StackTrace capture(std::size_t limit);

  bool empty() const { return frames_.empty(); }
  /// One call per line, the innermost first: its name where the program tells it, else the address
  /// in its file, for addr2line.
  std::string str() const;

 private:
  std::vector<void*> frames_;
};

}  // namespace palimpsest
