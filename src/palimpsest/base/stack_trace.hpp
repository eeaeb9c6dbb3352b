// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "palimpsest/base/api.hpp"

namespace PALIMPSEST_API palimpsest {

/// The calls that led somewhere, and the rewrite, if any, that put something there in their place.
class StackTrace {
 public:
  /// No calls.
  StackTrace() = default;
  /// Where the caller is now, without this library's own calls; at most `limit` of them.
  static StackTrace capture(std::size_t limit);
  /// The same calls, of what a rewrite of this name made.
  StackTrace introduced_by(std::string rewrite) const;

  /// No calls?
  bool empty() const { return frames_.empty(); }
  /// Empty: no rewrite.
  const std::string& rewrite() const { return rewrite_; }
  /// One call per line, the innermost first: its name where the program tells it, else the address
  /// in its file, for addr2line.
  std::string str() const;

 private:
  std::vector<void*> frames_;
  std::string rewrite_;
};

}  // namespace palimpsest
