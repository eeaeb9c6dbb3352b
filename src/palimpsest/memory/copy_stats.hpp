// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "palimpsest/base/api.hpp"

namespace PALIMPSEST_API palimpsest {

/// Counts of lazy clones, copies and take-overs.
struct CopyCounts {
  std::uint64_t lazy_clones = 0;         ///< clones that shared their data when they were made
  std::uint64_t lazy_bytes = 0;          ///< the bytes that eager copies would have moved
  std::uint64_t copies = 0;              ///< writes that had to copy shared or read-only data first
  std::uint64_t copied_bytes = 0;        ///< the bytes that these moved
  std::uint64_t take_overs = 0;          ///< writes that became the only owner without a copy
  std::uint64_t overwrites = 0;          ///< whole overwrites that got fresh memory, nothing copied
  std::uint64_t eager_copies = 0;        ///< lazy clones and results that had to be copied at once
  std::uint64_t eager_copied_bytes = 0;  ///< the bytes that these moved
  std::uint64_t import_copies = 0;       ///< arrays of others that no tensor could show in place

  /// All bytes moved.
  std::uint64_t bytes_copied() const { return copied_bytes + eager_copied_bytes; }
  /// Bytes that eager copies would have moved and no copy ever did.
  std::uint64_t bytes_avoided() const {
    return lazy_bytes > copied_bytes ? lazy_bytes - copied_bytes : 0;
  }
};

/// Counts, over all threads, from its construction on.
class CopyStats {
 public:
  CopyStats() : start_(process()) {}
  CopyCounts counts() const;
  /// Since the process began.
  static CopyCounts process();
  /// For bindings: an array of another library was copied on its way in.
  static void add_import_copy();

 private:
  CopyCounts start_;
};

}  // namespace palimpsest
