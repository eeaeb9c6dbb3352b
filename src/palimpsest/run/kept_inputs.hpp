// SPDX-License-Identifier: Apache-2.0
// Internal: copies of overwritten inputs of a watched call, for a watch that ends the call.
#pragma once

#include <utility>
#include <vector>

#include "palimpsest/run/debug_value.hpp"
#include "palimpsest/run/inspection.hpp"

namespace palimpsest {

/// Copies of overwritten inputs, which are restored when a watched call is aborted. The callback of
/// any step may end it, also after the first step that overwrites a shared variable.
class KeptInputs {
 public:
  explicit KeptInputs(const CallAccess& call);
  /// Puts them back unless release() was called.
  ~KeptInputs();
  KeptInputs(const KeptInputs&) = delete;
  KeptInputs& operator=(const KeptInputs&) = delete;
  void release() { kept_.clear(); }

 private:
  std::vector<std::pair<const Tensor*, DebugValue>> kept_;
};

}  // namespace palimpsest
