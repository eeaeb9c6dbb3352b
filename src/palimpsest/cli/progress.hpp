// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "palimpsest/base/dtype.hpp"

namespace palimpsest::cli {

/// A bar on standard error, drawn only when that is a terminal; erased at the end.
class Progress {
 public:
  Progress(std::string label, index_t total);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress();

  void update(index_t done, const std::string& note = {});

 private:
  std::string label_;
  index_t total_;
  bool is_terminal_;
  bool is_drawn_ = false;
};

}  // namespace palimpsest::cli
