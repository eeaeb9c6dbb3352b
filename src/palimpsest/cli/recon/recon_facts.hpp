// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "palimpsest/base/dtype.hpp"

namespace palimpsest::cli {

/// Facts from a report of `recon --report` that `compare` shows.
struct ReconFacts {
  bool is_known = false;
  /// Sum over all stages.
  double seconds = 0;
  index_t announced_peak_bytes = 0, measured_peak_bytes = 0;
};

/// Errors   UsageError: no such file, or no such report
ReconFacts read_recon_facts(const std::string& path);

}  // namespace palimpsest::cli
