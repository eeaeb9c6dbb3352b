// SPDX-License-Identifier: Apache-2.0
// Internal: a run on disk.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "palimpsest/solve/frame/solver_type.hpp"
#include "palimpsest/solve/solve.hpp"

namespace palimpsest {

/// Growth of the steps of an element.
struct StepGrowth {
  double before = std::numeric_limits<double>::infinity();  ///< the last step
  double first = 0;                                         ///< the one before the first that grew
  std::int64_t count = 0;
  double most = 0;  ///< the largest before those that grow
};

/// Snapshot of a run between two iterations, without its state.
struct Checkpoint {
  int iteration = 0;
  int restarted = 0;   ///< the iteration after which the recurrence began anew; 0: it did not
  double seconds = 0;  ///< since the very start
  int exponent = 0;
  bool is_zero = false;
  double norm_b = 0;
  std::vector<double> setup_numbers;
  std::vector<std::optional<Status>> ended;
  std::vector<int> iterations;
  std::vector<StepGrowth> growth;  ///< empty: of a file without
  std::vector<double> objectives;  ///< of each element at the last look; empty: none
  std::vector<Record> history;
  std::map<std::string, std::int64_t> applications;
};

/// Texts that distinguish two solves: the name and the value of each part of the problem.
using Fingerprint = std::vector<std::pair<std::string, std::string>>;
/// Reads the data and the parameters of the operators once.
Fingerprint fingerprint(const SolverType& type, const Problem& problem, const Tensor& b);

using NamedTensors = std::vector<std::pair<std::string, Tensor>>;
/// Writes the file whole or not at all; the tensors are read where they lie.
void write_checkpoint(const std::string& path, const SolverType& type, const Fingerprint& of,
                      const Checkpoint& run, const NamedTensors& state);

struct LoadedCheckpoint {
  Checkpoint run;
  NamedTensors state;  // pages of the file
};
/// Errors   FormatError "checkpoint": damaged, or another kind of file; "version"; ValueError "does
///          not fit": another solver, problem or data; IoError
LoadedCheckpoint read_checkpoint(const std::string& path, const SolverType& type,
                                 const Fingerprint& expected);

}  // namespace palimpsest
