// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "palimpsest/base/dtype.hpp"
#include "palimpsest/base/stop_watch.hpp"

namespace palimpsest::cli {

/// The progress of an iteration, on standard error: a bar, drawn only on a terminal and erased at
/// the end; or lines of JSON, at most one a second and one at each end.
class Progress {
 public:
  Progress(bool as_json, std::string label, index_t total, index_t announced_bytes);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress();

  /// After each iteration: those done, and the most bytes held so far.
  void update(index_t done, double residual, index_t peak_bytes);

 private:
  /// Seconds until the end, from the median of the last iterations; NaN after one or none.
  double seconds_left() const;
  void draw();
  void print_json();

  bool as_json_, is_terminal_, is_drawn_ = false, is_printed_ = true;
  std::string label_;
  index_t total_, announced_bytes_, done_ = 0, peak_bytes_ = 0;
  double residual_ = 0;
  StopWatch iteration_, since_line_;
  std::vector<double> seconds_;  // of the last iterations
};

}  // namespace palimpsest::cli
