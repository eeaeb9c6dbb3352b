// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "palimpsest/base/api.hpp"

namespace PALIMPSEST_API palimpsest {

/// The calls that led somewhere, and the rewrite, if any, that put something there in their place.
class StackTrace {
 public:
  /// No calls.
  StackTrace() = default;
  /// The present calls of this thread, without this library's own; at most `limit` of them.
  static StackTrace capture(std::size_t limit);
  /// Calls in another language than C++, such as `scan.py:42 in sense`, the innermost first.
  static StackTrace of_lines(std::vector<std::string> lines);
  /// The same calls, for a node that the named rewrite made.
  StackTrace introduced_by(std::string rewrite) const;

  /// No calls?
  bool empty() const { return frames_.empty() && lines_.empty(); }
  /// The lines given to of_lines(); empty for calls in C++.
  const std::vector<std::string>& lines() const { return lines_; }
  /// The rewrite that made the node; empty for a node of the user.
  const std::string& rewrite() const { return rewrite_; }
  /// A call per line, the innermost first: its name where the program tells it, else the address
  /// in its file, for addr2line.
  std::string str() const;

 private:
  std::vector<void*> frames_;
  std::vector<std::string> lines_;
  std::string rewrite_;
};

/// Gives the calls in another language that led to the present call, at most `limit`; null without
/// such calls. It must not throw.
using OriginSource = std::shared_ptr<const StackTrace> (*)(std::size_t limit);

/// Sets the source of origins that is asked whenever an op is applied; null, the default, for none.
/// Errors about an application then name the innermost call, `built at scan.py:42 in sense`; with
/// Config::exception_verbosity "medium" or "high" traceback_limit calls, instead of those of C++.
///
/// Threads  any; several may be in the source at once
void set_origin_source(OriginSource source) noexcept;
OriginSource origin_source() noexcept;

}  // namespace palimpsest
