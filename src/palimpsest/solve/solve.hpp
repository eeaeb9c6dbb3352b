// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "palimpsest/base/api.hpp"
#include "palimpsest/tensor/tensor.hpp"

namespace PALIMPSEST_API palimpsest {

/// Reason why a solver ended.
enum class Status { converged, max_iterations, breakdown, diverged, stopped };
std::string_view name_of(Status status);

/// One line of a solver's history.
struct Record {
  int iteration = 0;
  double residual = 0;   ///< relative to the right-hand side
  double objective = 0;  ///< what the solver minimizes
  double seconds = 0;    ///< since the start
};

struct SolveResult {
  Tensor x;
  Status status = Status::max_iterations;
  int iterations = 0;
  std::vector<Record> history;
};

}  // namespace palimpsest
