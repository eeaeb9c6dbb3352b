// SPDX-License-Identifier: Apache-2.0
// Internal: Ctrl-C during a solve.
#pragma once

#include <optional>

#include "palimpsest/python/solve/result_object.hpp"

namespace palimpsest::python {

/// While it lives in the main thread, the first signal whose handler raises ends the solves there
/// after the iteration that runs. A second one ends them at once.
class SolveInterrupt {
 public:
  SolveInterrupt();
  ~SolveInterrupt();
  SolveInterrupt(const SolveInterrupt&) = delete;
  SolveInterrupt& operator=(const SolveInterrupt&) = delete;

  /// Raises what the handler raised, with the attribute `result`: stopped, with the last iterate.
  void raise_with(ResultObject& result);
  /// Takes the exception that is set. False: there is one already.
  bool take();

 private:
  CancelToken token_;
  CancelScope scope_{token_};
  SolveInterrupt* outer_ = nullptr;
  std::optional<nb::python_error> error_;
};

}  // namespace palimpsest::python
